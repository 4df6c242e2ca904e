"""In which order an audit runs its cases: all of them a little, then all of them more.

A slow callable gets to every case before any is run to its end, so that a gross fault shows early wherever it is; what
time is left makes all cases finer.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Callable, Iterator

from ... import _core
from ..cases.constrained import ConstrainedCase, ConstrainedRun
from ..cases.filter_cases import FilterCase, FilterRun
from ..cases.request_cases import RequestCase
from ..cases.sample_cases import BATCH, SampleCase
from ..cases.verify_cases import VerifyCase
from ..cases.verify_sweep import StepsCase, StepsRun
from ..evidence.sample_judge import Judgement, SampleRun
from ..evidence.verify_judge import VerifyRun
from .drive import Driver
from .request_run import RequestRun

#: Draws of the first look at a case; every look has so many times those of the one before.
N_FIRST, GROWTH = 256, 4
#: The last look has this share of a case's false alarms; those before it halve the rest, one after the other.
LAST_SHARE = 0.5
#: A case is not planned with fewer draws, unless the distance asked for is a coarse one.
N_MIN, COARSE = 1024, 0.1
#: Tests of one audit, about: each has its share of the level.
TESTS = 24
#: Calls that a case should get before it is looked at (one tells nothing of batches); rows below which no batch is made
#: smaller for that.
CALLS, SMALLEST_BATCH = 4, 16

#: Vocabularies from which on a row takes as much longer as it is longer than ROW, and any batch will do.
LARGE, ROW = 20_000, 4096


def run_of(driver: Driver, case: Any, seed: int) -> Any:
    kind = {SampleCase: SampleRun, FilterCase: FilterRun, VerifyCase: VerifyRun, StepsCase: StepsRun,
            ConstrainedCase: ConstrainedRun, RequestCase: RequestRun}[type(case)]
    return kind(driver, case, seed)


def planned_n(case: Any, tv: float, alpha: float) -> int:
    """Draws or steps from which a fault of this distance is found with 99 % probability."""
    if isinstance(case, FilterCase):
        return int(case.logits.shape[0])
    if isinstance(case, (StepsCase, ConstrainedCase, RequestCase)):
        return case.n_max or N_MIN
    groups = case.groups if isinstance(case, SampleCase) else 1
    tokens = 1 if isinstance(case, SampleCase) else min(8, max(case.draft_lens) + 1)
    cells = float(case.vocab_size) ** tokens
    if cells * groups < 2:
        return 256
    wanted = max(tv, case.tv or 0.0)
    n = float(N_MIN if tv < COARSE else N_FIRST)
    while n < 1e9:
        df = int(groups * max(1.0, min(cells, n / groups / 25.0) - 1.0))
        if _core.detectable_distance(n, df, alpha * LAST_SHARE / TESTS) <= wanted:
            break
        n *= 1.1
    return int(min(n, case.n_max or math.inf))


def cost(case: Any) -> tuple[int, int]:
    """Sorts cases: those with small vocabularies first, filters by their size; else as they come."""
    if isinstance(case, FilterCase):
        return 0, int(case.logits.size)
    return sum(case.vocab_size > limit for limit in (64, 2000, LARGE)), 0


def with_batch(case: Any, seconds_per_row: float, share: float) -> Any:
    """The case with a smaller batch, where a call would take too much of its time and any batch will do.
    seconds_per_row: of a small vocabulary."""
    large = case.vocab_size > LARGE
    if isinstance(case, (FilterCase, StepsCase, ConstrainedCase, RequestCase)) or not (case.batch == BATCH or large):
        return case
    batch, smallest = case.batch, 2 if large else SMALLEST_BATCH
    seconds = seconds_per_row * max(1.0, case.vocab_size / ROW)
    while batch > smallest and CALLS * batch * seconds > share:
        batch //= 2
    return dataclasses.replace(case, batch=batch)


@dataclasses.dataclass
class Trial:
    """A case under way. alpha: its share of the level; n_final: draws that it should get."""

    case: Any
    run: Any
    alpha: float
    planned: int
    n_final: int
    clock: Callable[[], float]
    looks: int = 0
    seconds: float = 0.0
    failed: bool = False
    judgement: Judgement | None = None

    @property
    def size(self) -> int:
        """Of a filter's one call; it tells how long that takes."""
        return int(self.case.logits.size) if isinstance(self.case, FilterCase) else 0

    @property
    def batch(self) -> int:
        return getattr(self.case, "batch", 0)

    @property
    def is_whole(self) -> bool:
        return self.run.n >= self.n_final

    def draw(self, n: int, end: float) -> None:
        """Up to n draws, while there is time; one call in any case."""
        begin = self.clock()
        while self.run.n < n and (self.run.n == 0 or self.clock() < end):
            self.run.draw(self.run.n + 1)  # one call: some take seconds
        self.seconds += self.clock() - begin

    def look(self, is_last: bool) -> bool:
        """Does what was drawn so far show a fault?"""
        if self.run.n == 0:
            return False
        self.looks += 1
        share = LAST_SHARE if is_last else (1.0 - LAST_SHARE) / 2.0 ** self.looks
        self.judgement = self.run.judge(self.alpha * share)
        return self.judgement.biased


def rounds(trials: list[Trial], deadline: float, clock: Callable[[], float],
           guard: Callable[[Trial, Callable[[], None]], bool]) -> Iterator[Trial]:
    """Runs trials breadth first and gives those that show a fault as they do. guard(trial, draw) draws, and says
    whether the callable survived; a trial that is over is not run again. Ends when all are whole or time is over: each
    has had its last look then."""
    open_trials, target, pace = list(trials), N_FIRST, 0.0
    while open_trials and clock() < deadline:
        still, reached = [], 0
        for i, trial in enumerate(open_trials):
            now = clock()
            end = now + (deadline - now) / (len(open_trials) - i)
            # Steps of one seed may have a state that another case would end.
            at_once = isinstance(trial.case, SampleCase) and trial.case.seeds == "one"
            n = trial.n_final if at_once else min(max(target, CALLS * trial.batch), trial.n_final)
            before = trial.run.n
            if pace * trial.size > 2.0 * (deadline - now):  # one call would take far more than is left
                still.append(trial)
                continue
            reached += 1
            if not guard(trial, lambda: trial.draw(n, end)):
                continue
            pace = trial.seconds / trial.size if trial.size else 0.0
            is_last = trial.is_whole or at_once
            if trial.run.n > before and (is_last or trial.run.n >= n or target == N_FIRST) and trial.look(is_last):
                yield trial
            elif not is_last:
                still.append(trial)
        open_trials, target = still, target * GROWTH
        if reached == 0:
            break
    for trial in open_trials:
        if trial.look(True):
            yield trial
