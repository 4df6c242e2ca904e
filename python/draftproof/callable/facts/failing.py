"""What is said of a case that failed: the smallest that fails, what it needs, and what explains it or was measured."""

from __future__ import annotations

import copy
import functools
import types
from typing import Any, Callable, Iterator

import numpy as np

from ..._core import Error
from ..cases.constrained import ConstrainedCase
from ..cases.filter_cases import FilterCase
from ..cases.request_cases import RequestCase
from ..cases.sample_cases import OFF
from ..cases.varied import varied
from ..cases.verify_cases import VerifyCase
from ..cases.verify_sweep import StepsCase
from ..drive.callee import Callee, is_bare
from ..drive.drive import CallFailure, Driver
from ..drive.schedule import Trial, run_of
from ..drive.snippet import snippet_of
from ..evidence.sample_judge import Judgement
from ..outcome import Failure, kind_of
from .described import described
from .needs import CALLS, CALM, Minimal, dependence, dependent, minimal
from .predict import explained, is_of_noise, observed_of

#: Seconds of one shrinking, as a multiple of what finding the failure took, and as a share of the time that is left.
SHRINK_SECONDS, SHRINK_TIMES, SHRINK_SHARE = 3.0, 3.0, 0.25
#: Cases on which an explanation is tried: of the failing one's kind, spread over the sweep, and of those that passed;
#: seconds of drawing.
AKIN, SPREAD, SEEN, OTHERS_SECONDS = 6, 8, 4, 8.0
#: Larger cases of the sweep tell nothing of explanations.
ELEMENTS = 1 << 19


def size_of(case: Any) -> int:
    """Of its logits, or of a verifier's target rows."""
    return sum(np.size(row) for row in (case.target if isinstance(case, (VerifyCase, StepsCase)) else case.logits))


def _on(case: Any, group: int) -> list[str]:
    """The parameters that are on in a row or request of a case."""
    return [name for name, value in getattr(case, "params", {}).items()
            if value[min(group, len(value) - 1)] != np.asarray(OFF[name], value.dtype)]


def _uncalled(sampler: Callable[..., Any]) -> Any:
    """A copy of a callable that may have a state, from before its first call; None where there is none."""
    if isinstance(sampler, (types.FunctionType, types.BuiltinFunctionType)):
        return None
    try:
        return copy.deepcopy(sampler)
    except Exception:  # a device, a lock
        return None


class Explainer:
    def __init__(self, callee: Callee) -> None:
        self.callee, self.driver, self.clock, self.deadline = callee, callee.driver, callee.clock, callee.deadline
        self.fresh = _uncalled(callee.driver.sampler)
        self.swept: list[Any] = []  # entries of the first sweep
        self.seen: list[Any] = []  # runs of the sweep that passed

    def failure_of(self, trial: Trial) -> Failure:
        assert trial.judgement is not None
        if isinstance(trial.case, RequestCase):
            return self._of_requests(trial, trial.judgement)
        if isinstance(trial.case, ConstrainedCase):
            return self._of_constrained(trial, trial.judgement)
        return self._explained(trial, trial.judgement)

    def plain(self, trial: Trial, text: str = "", rule: str = "", smallest: Any = None, before: Any = None) -> Failure:
        """A failure with what is known of it."""
        case, judgement = trial.case, trial.judgement
        assert judgement is not None
        smallest = case if smallest is None else smallest
        code = snippet_of(self.driver.sampler, smallest, judgement.n, trial.run.seed,
                          self.driver.distribution is not None, before, self.driver.shards)
        needs = f"; it needs a call of {before.name!r} before it" if before is not None else ""
        return Failure(judgement.name, smallest, f"{case.name}: {judgement.sentence}{needs}", code, judgement.n,
                       judgement.distance, text, rule, before)

    def _end(self, trial: Trial, times: float = 1.0) -> float:
        """Of runs that shrink a failure, or tell on what it depends."""
        now = self.clock()
        return now + min(SHRINK_SHARE * (self.deadline - now),
                         times * max(SHRINK_SECONDS, SHRINK_TIMES * trial.seconds))

    def _judged(self, case: Any, n: int, seed: int, alpha: float, end: float, driver: Driver | None = None,
                before: Any = None, between: Any = None) -> Judgement | None:
        """Of n draws of a case, with a call of another before it, or before each of its own; None: there is no time,
        or a call fails."""
        driver = driver or self.driver
        run = run_of(driver, case, seed)
        try:
            if before is not None:
                run_of(driver, before, seed).draw(1)
            while run.n < n:
                if run.n and self.clock() >= end:
                    return None
                if between is not None and self.callee.taken(between) is between:
                    run_of(driver, between, seed).draw(1)
                run.draw(run.n + 1)
            return run.judge(alpha)
        except (CallFailure, Error):
            return None

    def _explained(self, trial: Trial, judgement: Judgement) -> Failure:
        case, end = trial.case, self._end(trial, 4.0)

        def found(other: Any, seed: int, between: Any) -> bool | None:
            again = self._judged(other, judgement.n, seed, CALM, end, between=between)
            return None if again is None else again.biased

        def fails(smaller: Any, times: int) -> bool | None:
            n = smaller.logits.shape[0] if isinstance(smaller, FilterCase) else times * judgement.n
            again = self._judged(smaller, n, trial.run.seed, trial.alpha if times == 1 else CALM, end)
            return again.biased if again is not None else None if self.clock() >= end else False  # another failure

        before = self._needed_before(trial)
        needed = CALLS if before is not None else ""
        if before is None and (not judgement.suspect or judgement.name == "pairs"):
            needed = dependence(case, self.callee.probe_case(), trial.run.seed, found)
        end = self._end(trial)
        smallest = Minimal(case) if needed == CALLS else minimal(case, judgement.group, fails)
        others = functools.cache(lambda: list(self._others(trial, judgement)))
        rule = explained(trial.run, judgement, others, self.callee.filter_order())
        text = dependent(needed, str(rule)) or described(observed_of(trial.run, judgement.group))
        return self.plain(trial, "; ".join(filter(None, [text, str(smallest)])), dependent(needed, rule.words),
                          smallest.case, before)

    def _needed_before(self, trial: Trial) -> Any:
        """The case before, if this one passes without a call of it: on a copy of the callable that was never called,
        where there is one."""
        last, end = self.callee.last, self._end(trial)

        def fails(before: Any) -> bool | None:
            driver = self.driver if self.fresh is None else Driver(
                copy.deepcopy(self.fresh), self.driver.time_limit, self.driver.distribution, self.driver.shards)
            found = self._judged(trial.case, trial.run.n, trial.run.seed, trial.alpha, end, driver, before)
            return None if found is None else found.biased

        return last if last is not None and fails(None) is False and fails(last) else None

    def _others(self, trial: Trial, judgement: Judgement) -> Iterator[Any]:
        """Runs that did not choose an explanation of this one: its own case with fresh seeds, other rows, another
        batch; cases of its kind, those next to it first; others from all over the sweep; some that passed. Each is
        drawn when it is asked for."""
        case, end, noise = trial.case, self.clock() + OTHERS_SECONDS, is_of_noise(judgement)
        drawn = [run_of(self.driver, other, trial.run.seed + 104_729 * i) for i, other in enumerate(varied(case), 1)]
        names = [entry.name for entry in self.swept]
        at = names.index(case.name) if case.name in names else 0
        near = sorted((entry for entry in self.swept if entry.name != case.name and (entry.separates or noise)),
                      key=lambda entry: abs(names.index(entry.name) - at))
        akin = [entry for entry in near if kind_of(entry.name) == kind_of(case.name) or (noise and entry.has_rng)]
        valued = []
        for name in _on(case, judgement.group):  # other values of what is on
            of = [entry for entry in near if entry.name.startswith(name)]
            valued += of[::max(1, len(of) // AKIN)]
        bare = [entry for entry in near if is_bare(case) and getattr(entry, "is_bare", False)]
        rest = [entry for entry in near if not entry.has_rng and entry not in akin]
        chosen = [*akin[:AKIN], *valued, *bare[:AKIN], *rest[:2], *rest[2::max(1, len(rest) // SPREAD)]]
        for entry in dict.fromkeys(chosen):
            other = self.callee.trial(entry, 1.0, 1)
            if other is not None and size_of(other.case) <= max(ELEMENTS // 4, size_of(case)):
                drawn.append(other.run)
        for run in drawn:
            n = max(getattr(run.case, "n_max", None) or 0, 1)
            if isinstance(run.case, FilterCase):
                n = run.case.logits.shape[0]
            elif kind_of(run.case.name) == kind_of(case.name):
                n = trial.run.n
            try:
                while run.n < n and (run.n == 0 or self.clock() < end):
                    run.draw(run.n + 1)
            except (CallFailure, Error):
                continue
            yield run
        yield from self.seen[-SEEN:]

    def _of_requests(self, trial: Trial, judgement: Judgement) -> Failure:
        """What is said is what was measured: of the smallest case that fails, what all of its wrong tokens have in
        common."""
        end, case, found = self._end(trial, 2.0), trial.case, {trial.case: judgement}

        def fails(smaller: RequestCase, _: int) -> bool | None:
            again = self._judged(smaller, judgement.n, trial.run.seed, trial.alpha, end)
            if again is not None:
                found[smaller] = again
            return again.biased if again is not None else None if self.clock() >= end else False

        smallest = minimal(case, 0, fails).case
        code = snippet_of(self.driver.sampler, smallest, found[smallest].n, trial.run.seed)
        return Failure(found[smallest].name, smallest, f"{case.name}: {found[smallest].sentence}", code, judgement.n,
                       found[smallest].distance)

    def _of_constrained(self, trial: Trial, judgement: Judgement) -> Failure:
        """A run's own words for its illegal tokens and states, if another run gives the same."""
        again = run_of(self.driver, trial.case, trial.run.seed + 1)
        again.draw(judgement.n)
        suspect = trial.run.suspect
        same = suspect if again.judge(trial.alpha).biased and again.suspect == suspect else ""
        return self.plain(trial, same, same)
