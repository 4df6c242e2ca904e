"""audit_callable: drives a sampler, a filter or a verifier through cases of its own and says what it found."""

from __future__ import annotations

import math
import time
from typing import Any, Callable

import numpy as np

from .. import _core
from .._core import Error
from .._results import number
from . import rows
from .drive import CallFailure, Driver
from .filter_cases import FilterCase, FilterRun, filter_cases
from .outcome import CallableAudit, CaseResult, Failure
from .sample_cases import SampleCase, params_of, sample_cases, step_case
from .sample_judge import Judgement, SampleRun
from .shrink import shrink
from .snippet import snippet_of
from .verify_cases import VerifyCase, verify_cases
from .verify_judge import VerifyRun

KINDS = ("sample", "filter", "verify")
#: Shares of a case's false alarms, and of its n: most faults show early.
STAGES = ((1 / 16, 0.25), (1 / 4, 0.25), (1.0, 0.5))
N_MIN = 1024
#: Tests of one audit, about: each has its share of the level.
TESTS = 24
SHRINK_TRIES = 24
#: Seconds of one shrinking, and as a multiple of what finding the failure took.
SHRINK_SECONDS = 10.0
SHRINK_TIMES = 3.0


def run_of(driver: Driver, case: Any, seed: int, offered: tuple[str, ...] = ()) -> Any:
    kind = {SampleCase: SampleRun, FilterCase: FilterRun, VerifyCase: VerifyRun}[type(case)]
    return kind(driver, case, seed, offered)


def planned_n(case: Any, tv: float, alpha: float) -> int:
    """Draws or steps from which a fault of this distance is found with 99 % probability."""
    if isinstance(case, FilterCase):
        return int(case.logits.shape[0])
    groups = case.groups if isinstance(case, SampleCase) else 1
    tokens = 1 if isinstance(case, SampleCase) else min(8, max(case.draft_lens) + 1)
    cells = float(case.vocab_size) ** tokens
    if cells * groups < 2:
        return 256
    wanted = max(tv, case.tv or 0.0)
    n = float(N_MIN)
    while n < 1e9:
        df = int(groups * max(1.0, min(cells, n / groups / 25.0) - 1.0))
        if _core.detectable_distance(n, df, alpha * STAGES[-1][1] / TESTS) <= wanted:
            break
        n *= 1.1
    return int(min(n, case.n_max or math.inf))


class Auditor:
    def __init__(self, sampler: Callable[..., Any], kind: str, tv: float, seed: int, alpha: float, time_limit: float,
                 time_budget: float, n_max: int, failures_max: int,
                 distribution: Callable[..., Any] | None = None) -> None:
        self.driver = Driver(sampler, time_limit, distribution)
        self.sampler, self.kind, self.tv, self.seed, self.alpha = sampler, kind, tv, seed, alpha
        self.deadline = time.monotonic() + time_budget
        self.n_max = n_max
        self.failures_max = failures_max
        self.failures: list[Failure] = []
        self.results: list[CaseResult] = []
        self.notes: list[str] = []
        self.n = 0
        self.hangs = False
        self.started = time.monotonic()
        self.offered: tuple[str, ...] = ()

    def cases(self) -> list[Any]:
        if self.kind == "verify":
            return list(verify_cases())
        with_min_p = self._reads_min_p()
        if not with_min_p:
            self.notes.append("the callable does not read params['min_p']: min_p was left off")
        if self.kind == "filter":
            return list(filter_cases(with_min_p))
        cases = list(sample_cases(with_min_p))
        if self.driver.distribution is not None:  # of ties and of rows with nothing to draw it says one thing of several
            cases = [case for case in cases if not case.readings and not case.may_raise]
        if self.driver.takes_steps or self._has_state():
            cases.insert(2, step_case(with_min_p))
        else:
            self.notes.append("equal calls give equal tokens and there is no argument `steps`: steps of one seed were "
                              "not tested")
        return cases

    def _probe_case(self) -> Any:
        logits = rows.normal(64, 33, 1.0, 1)
        params = params_of(64, temperature=1.0, top_k=0, top_p=1.0)
        if self.kind == "filter":
            return FilterCase("probe", logits, "", params)
        return SampleCase("probe", logits, "", params, batch=64)

    def _reads_min_p(self) -> bool:
        self.offered = ("min_p",)
        try:
            run_of(self.driver, self._probe_case(), self.seed, self.offered).draw(64)
        except CallFailure:
            pass  # the cases say what is wrong
        self.offered = ()
        return "min_p" in self.driver.read

    def _has_state(self) -> bool:
        drawn = []
        for _ in range(2):
            run = run_of(self.driver, self._probe_case(), self.seed)
            try:
                run.draw(64)
            except CallFailure:
                return False
            drawn.append(run.samples[0])
        return not np.array_equal(drawn[0], drawn[1])

    def run(self, cases: list[Any]) -> None:
        share = self.alpha / max(1, len(cases))
        for case in cases:
            if self.hangs or len(self.failures) >= self.failures_max:
                self.notes.append(f"stopped after {len(self.failures)} failures, before the case '{case.name}'")
                return
            self._run_case(case, share)

    def _run_case(self, case: Any, alpha: float) -> None:
        planned = planned_n(case, self.tv, alpha)
        n_final = min(planned, self.n_max)
        run = run_of(self.driver, case, self.seed)
        self.started = time.monotonic()
        judgement: Judgement | None = None
        in_time = True
        for part, weight in STAGES if n_final > N_MIN else ((1.0, 1.0),):
            try:
                in_time = self._draw(run, max(min(N_MIN, n_final), int(n_final * part)))
            except CallFailure as failure:
                self._note_error(case, run, failure)
                return
            if run.n > 0:
                judgement = run.judge(alpha * weight)
            if judgement is None or judgement.biased or not in_time:
                break
        self.n += run.n
        if judgement is not None and judgement.biased:
            self._note_bias(case, judgement, alpha)
            return
        done = in_time and planned <= self.n_max and judgement is not None
        self.results.append(CaseResult(case.name, "consistent" if done else "inconclusive", run.n,
                                       None if judgement is None else judgement.detectable,
                                       "not run for want of time" if judgement is None else judgement.sentence))

    def _draw(self, run: Any, n: int, end: float | None = None) -> bool:
        """False where time ran out."""
        end = self.deadline if end is None else end
        if isinstance(run, FilterRun):
            n = 1  # its one call
        while run.n < n:
            if time.monotonic() > end:
                return False
            run.draw(run.n + 1)  # one call: some take seconds
        return True

    def _note_error(self, case: Any, run: Any, failure: CallFailure) -> None:
        self.n += run.n
        self.hangs = failure.name == "hangs"
        self.results.append(CaseResult(case.name, "error", run.n, None, failure.sentence))
        smallest = case
        if not self.hangs:
            smallest = shrink(case, 0, lambda smaller: self._call_fails(smaller, failure.name), SHRINK_TRIES)
        self.failures.append(Failure(failure.name, smallest, f"{case.name}: {failure.sentence}",
                                     snippet_of(self.sampler, smallest, max(1, getattr(smallest, "batch", 1)), self.seed,
                                                self.driver.distribution is not None),
                                     run.n, None))

    def _call_fails(self, case: Any, name: str) -> bool:
        try:
            run_of(self.driver, case, self.seed).draw(1)
        except CallFailure as failure:
            return failure.name == name
        return False

    def _note_bias(self, case: Any, judgement: Judgement, alpha: float) -> None:
        self.results.append(CaseResult(case.name, "biased", judgement.n, judgement.detectable, judgement.sentence))

        now = time.monotonic()
        shrink_end = min(self.deadline, now + max(SHRINK_SECONDS, SHRINK_TIMES * (now - self.started)))

        def fails(smaller: Any) -> bool:
            try:
                run = run_of(self.driver, smaller, self.seed)
                return self._draw(run, judgement.n, shrink_end) and run.judge(alpha).biased
            except (CallFailure, Error):
                return False

        smallest = shrink(case, judgement.group, fails, SHRINK_TRIES)
        self.failures.append(Failure(judgement.name, smallest, f"{case.name}: {judgement.sentence}",
                                     snippet_of(self.sampler, smallest, judgement.n, self.seed,
                                                self.driver.distribution is not None), judgement.n,
                                     judgement.distance))

    def verdict(self) -> str:
        if any(not failure.is_error for failure in self.failures):
            return "biased"
        if self.failures:
            return "error"
        return "inconclusive" if any(result.verdict == "inconclusive" for result in self.results) else "consistent"

    def sentence(self, verdict: str) -> str:
        what = {"sample": "draws", "filter": "rows", "verify": "steps"}[self.kind]
        over = f"{len(self.results)} cases, {self.n} {what}, at level {number(self.alpha)}"
        if self.failures:
            first = next((f for f in self.failures if f.is_error == (verdict == "error")), self.failures[0])
            return f"{verdict} ({over}): {first.sentence} (after {first.n} {what})"
        open_cases = [result for result in self.results if result.verdict == "inconclusive"]
        if open_cases:
            return (f"inconclusive ({over}): nothing found, but {len(open_cases)} cases had too few {what} for a "
                    f"distance of {number(self.tv)}, first '{open_cases[0].case}' with {open_cases[0].n}")
        return f"consistent ({over}): nothing found{self._power()}"

    def _power(self) -> str:
        if self.kind == "filter":
            return "; every row was compared exactly"
        found = [result.detectable_tv for result in self.results if result.detectable_tv is not None]
        fine = [distance for distance in found if distance <= 1.05 * self.tv]
        rest = [distance for distance in found if distance > 1.05 * self.tv]
        strings = " of completed strings of K + 1 tokens" if self.kind == "verify" else ""
        text = ""
        if fine:
            text = (f"; a total variation distance{strings} of {number(max(fine))} would have been found with 99 % "
                    f"probability in {len(fine)} cases")
        return text + (f", and of {number(min(rest))} to {number(max(rest))} in the {len(rest)} others" if rest else "")


def audit_callable(sampler: Callable[..., Any], kind: str = "sample", tv: float = 0.02, seed: int = 0, *,
                   cases: Any = None, alpha: float = 1e-6, time_limit: float = 60.0, time_budget: float = 1800.0,
                   n_max: int = 2_000_000, failures_max: int = 3,
                   distribution: Callable[..., Any] | None = None) -> CallableAudit:
    """Drives a sampler, a filter or a verifier through adversarial cases, and says whether it does what it should.

    kind 'sample': sampler(logits [B, V] float32, params, seeds [B] uint64) -> tokens [B]. params is a dict of arrays
        [B]: temperature, top_k (0: off), top_p, and min_p where the sampler reads it. Where the sampler has an argument
        `steps`, it gets [B] steps of its seeds in one case. Temperature 0 is greedy.
    kind 'filter': sampler(logits, params) -> logits over the temperature, dropped tokens at -inf [B, V].
    kind 'verify': sampler(draft_tokens [M], draft_probs [M, V] or None, target_logits [M + B, V],
        cu_num_draft_tokens [B], inclusive sums, params, seeds) -> output tokens [B, K + 1], padded with -1, K the
        longest draft of the batch.
    tv: the total variation distance that is to be found with 99 % probability; n is chosen by it. Cases with large
        vocabularies look for grosser faults, and say so.
    seed: of everything that the audit draws. cases: a list of cases instead of its own.
    alpha: the probability that a sound callable is accused, over all cases and tests.
    distribution: of samplers with filters that this module lacks (kind 'sample'): distribution(logits [G, V], params) ->
        the probabilities [G, V] that the sampler is meant to have.
    time_limit: seconds of one call; time_budget: of all; n_max: draws of one case; failures_max: stop after so many.
    Returns a CallableAudit: verdict 'consistent', 'biased', 'inconclusive' or 'error', sentence, failures, n.
    """
    if kind not in KINDS:
        raise Error(f"kind: is {kind!r}; expected one of {', '.join(KINDS)}")
    for name, value in (("tv", tv), ("alpha", alpha)):
        if not 0.0 < value < 1.0:
            raise Error(f"{name}: is {value}; expected a number in (0, 1)")
    if distribution is not None and kind != "sample":
        raise Error(f"distribution: is given; expected none with kind {kind!r}")
    if int(seed) < 0:
        raise Error(f"seed: is {seed}; expected 0 or more")
    start = time.monotonic()
    auditor = Auditor(sampler, kind, tv, int(seed), alpha, time_limit, time_budget, n_max, failures_max,
                      distribution)
    auditor.run(list(cases) if cases is not None else auditor.cases())
    verdict = auditor.verdict()
    return CallableAudit(kind, verdict, auditor.sentence(verdict), auditor.failures, auditor.n, alpha, tv,
                         time.monotonic() - start, auditor.results, auditor.notes)


def run_case(sampler: Callable[..., Any], case: Any, n: int, *, seed: int = 0, alpha: float = 1e-6,
             time_limit: float = 60.0, distribution: Callable[..., Any] | None = None) -> CaseResult:
    """One case again, with n draws, steps or rows: what the snippet of a failure calls."""
    run = run_of(Driver(sampler, time_limit, distribution), case, seed)
    try:
        run.draw(n)
    except CallFailure as failure:
        return CaseResult(case.name, "error", run.n, None, f"{failure.name}: {failure.sentence}")
    judgement = run.judge(alpha)
    return CaseResult(case.name, "biased" if judgement.biased else "consistent", run.n, judgement.detectable,
                      judgement.sentence)
