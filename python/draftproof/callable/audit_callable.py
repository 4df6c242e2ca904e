"""audit_callable: drives a sampler, a filter or a verifier through cases of its own and says what it found."""

from __future__ import annotations

import dataclasses
import time
from typing import Any, Callable

import numpy as np

from .._core import Error
from . import rows
from .drive import CallFailure, Driver
from .filter_cases import FilterCase, filter_cases
from .outcome import CallableAudit, CaseResult, Failure, sentence_of, verdict_of
from .processes import in_processes
from .sample_cases import SampleCase, params_of, sample_cases, step_case
from .sample_judge import Judgement
from .schedule import SMALLEST_BATCH, Trial, cost, planned_n, rounds, run_of, with_batch
from .shrink import shrink
from .snippet import snippet_of
from .verify_cases import endpoint_case, verify_cases

KINDS = ("sample", "filter", "verify")
SHRINK_TRIES = 24
#: Seconds of one shrinking, as a multiple of what finding the failure took, and as a share of the time that is left.
SHRINK_SECONDS = 5.0
SHRINK_TIMES = 3.0
SHRINK_SHARE = 0.25


@dataclasses.dataclass
class Found:
    """What some of the cases showed."""

    results: list[CaseResult] = dataclasses.field(default_factory=list)
    failures: list[Failure] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    n: int = 0

    def add(self, other: Found) -> None:
        self.results += other.results
        self.failures += other.failures
        self.notes += other.notes
        self.n += other.n


class Auditor:
    def __init__(self, sampler: Callable[..., Any], kind: str, tv: float, seed: int, alpha: float, time_limit: float,
                 time_budget: float, n_max: int, failures_max: int, distribution: Callable[..., Any] | None) -> None:
        self.driver = Driver(sampler, time_limit, distribution)
        self.sampler, self.kind, self.tv, self.seed, self.alpha = sampler, kind, tv, seed, alpha
        self.deadline = time.monotonic() + time_budget
        self.n_max = n_max
        self.failures_max = failures_max
        self.notes: list[str] = []
        self.found = Found()
        self.hangs = False
        self.offered: tuple[str, ...] = ()

    def cases(self) -> list[Any]:
        if self.kind == "verify":
            return [*([endpoint_case()] if self.driver.takes_uniforms else []), *verify_cases()]
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
        logits = rows.normal(SMALLEST_BATCH, 33, 1.0, 1)
        params = params_of(SMALLEST_BATCH, temperature=1.0, top_k=0, top_p=1.0)
        if self.kind == "filter":
            return FilterCase("probe", logits, "", params)
        return SampleCase("probe", logits, "", params, batch=SMALLEST_BATCH)

    def _reads_min_p(self) -> bool:
        self.offered = ("min_p",)
        try:
            run_of(self.driver, self._probe_case(), self.seed, self.offered).draw(1)
        except CallFailure:
            pass  # the cases say what is wrong
        self.offered = ()
        return "min_p" in self.driver.read

    def _has_state(self) -> bool:
        drawn = []
        for _ in range(2):
            run = run_of(self.driver, self._probe_case(), self.seed)
            try:
                run.draw(1)
            except CallFailure:
                return False
            drawn.append(run.samples[0])
        return not np.array_equal(drawn[0], drawn[1])

    def seconds_per_row(self, cases: list[Any]) -> float:
        """Of the first case, in its second call: the first one may load or compile."""
        if self.kind == "filter" or not cases:
            return 0.0
        run = run_of(self.driver, dataclasses.replace(cases[0], batch=SMALLEST_BATCH), self.seed)
        try:
            run.draw(1)
            begin = time.monotonic()
            run.draw(run.n + 1)
        except CallFailure:
            return 0.0  # the case says what is wrong
        return (time.monotonic() - begin) / SMALLEST_BATCH

    def run(self, cases: list[Any], share: float) -> Found:
        """share: of the level, for each case."""
        seconds = (self.deadline - time.monotonic()) / max(1, len(cases))
        pace = self.seconds_per_row(cases)
        trials = []
        for case in sorted(cases, key=cost):
            fitting = with_batch(case, pace, seconds)
            planned = planned_n(case, self.tv, share)
            trials.append(Trial(fitting, run_of(self.driver, fitting, self.seed), share, planned, min(planned, self.n_max)))
        for trial in rounds(trials, self.deadline, self._survives):
            self._note_bias(trial)
            if self._is_enough():
                break
        if self._is_enough():
            self.found.notes.append(f"stopped after {len(self.found.failures)} failures")
        for trial in trials:
            self.found.n += trial.run.n
            if not trial.failed:
                self._note_sound(trial)
        order = {case.name: i for i, case in enumerate(cases)}
        self.found.results.sort(key=lambda result: order[result.case])
        return self.found

    def _is_enough(self) -> bool:
        return self.hangs or len(self.found.failures) >= self.failures_max

    def _survives(self, trial: Trial, draw: Callable[[], None]) -> bool:
        if self._is_enough():
            return False
        try:
            draw()
        except CallFailure as failure:
            self._note_error(trial, failure)
            return False
        return True

    def _note_sound(self, trial: Trial) -> None:
        done = trial.is_whole and trial.planned <= self.n_max and trial.judgement is not None
        judgement = trial.judgement
        self.found.results.append(CaseResult(trial.case.name, "consistent" if done else "inconclusive", trial.run.n,
                                             None if judgement is None else judgement.detectable,
                                             "not reached" if judgement is None else judgement.sentence))

    def _note_error(self, trial: Trial, failure: CallFailure) -> None:
        case, run, trial.failed = trial.case, trial.run, True
        self.hangs = failure.name == "hangs"
        self.found.results.append(CaseResult(case.name, "error", run.n, None, failure.sentence))
        smallest = case
        if not self.hangs:
            smallest = shrink(case, 0, lambda smaller: self._call_fails(smaller, failure.name), SHRINK_TRIES)
        self.found.failures.append(
            Failure(failure.name, smallest, f"{case.name}: {failure.sentence}",
                    snippet_of(self.sampler, smallest, max(1, getattr(smallest, "batch", 1)), self.seed,
                               self.driver.distribution is not None), run.n, None))

    def _call_fails(self, case: Any, name: str) -> bool:
        try:
            run_of(self.driver, case, self.seed).draw(1)
        except CallFailure as failure:
            return failure.name == name
        return False

    def _note_bias(self, trial: Trial) -> None:
        case, judgement, trial.failed = trial.case, trial.judgement, True
        assert judgement is not None
        self.found.results.append(CaseResult(case.name, "biased", judgement.n, judgement.detectable, judgement.sentence))
        now = time.monotonic()
        end = now + min(SHRINK_SHARE * (self.deadline - now), max(SHRINK_SECONDS, SHRINK_TIMES * trial.seconds))

        def fails(smaller: Any) -> bool:
            n = smaller.logits.shape[0] if isinstance(smaller, FilterCase) else judgement.n
            again = Trial(smaller, run_of(self.driver, smaller, self.seed), trial.alpha, n, n)
            try:
                again.draw(n, end)
                return again.is_whole and again.look(True)
            except (CallFailure, Error):
                return False

        smallest = shrink(case, judgement.group, fails, SHRINK_TRIES)
        self.found.failures.append(
            Failure(judgement.name, smallest, f"{case.name}: {judgement.sentence}",
                    snippet_of(self.sampler, smallest, judgement.n, self.seed, self.driver.distribution is not None),
                    judgement.n, judgement.distance))


def audit_callable(sampler: Callable[..., Any], kind: str = "sample", tv: float = 0.02, seed: int = 0, *,
                   cases: Any = None, alpha: float = 1e-6, time_limit: float = 60.0, time_budget: float = 1800.0,
                   n_max: int = 2_000_000, failures_max: int = 3, processes: int = 1,
                   distribution: Callable[..., Any] | None = None) -> CallableAudit:
    """Drives a sampler, a filter or a verifier through adversarial cases, and says whether it does what it should.

    kind 'sample': sampler(logits [B, V] float32, params, seeds [B] uint64) -> tokens [B]. params is a dict of arrays
        [B]: temperature, top_k (0: off), top_p, and min_p where the sampler reads it. Where the sampler has an argument
        `steps`, it gets [B] steps of its seeds in one case. Temperature 0 is greedy.
    kind 'filter': sampler(logits, params) -> logits over the temperature, dropped tokens at -inf [B, V].
    kind 'verify': sampler(draft_tokens [M], draft_probs [M, V] or None, target_logits [M + B, V],
        cu_num_draft_tokens [B], inclusive sums, params, seeds) -> output tokens [B, K + 1], padded with -1, K the
        longest draft of the batch. Where it has an argument `uniforms`, it gets [B, K + 1] numbers of [0, 1) in one case, of
        each draft and of the token after them, many of them endpoints.
    tv: the total variation distance that is to be found with 99 % probability; n is chosen by it. Cases with large
        vocabularies look for grosser faults, and say so.
    seed: of everything that the audit draws. cases: a list of cases instead of its own.
    alpha: the probability that a sound callable is accused, over all cases and tests.
    distribution: of samplers with filters that this module lacks (kind 'sample'): distribution(logits [G, V], params) ->
        the probabilities [G, V] that the sampler is meant to have.
    time_limit: seconds of one call; time_budget: of all, shared by the cases: all of them are reached before one gets more
        than a few draws; n_max: draws of one case; failures_max: stop after so many.
    processes: forked ones that share the cases, for slow callables that bear a fork; failures_max counts in each.
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
    if int(processes) < 1:
        raise Error(f"processes: is {processes}; expected 1 or more")
    start = time.monotonic()
    auditor = Auditor(sampler, kind, tv, int(seed), alpha, time_limit, time_budget, n_max, failures_max, distribution)
    chosen = list(cases) if cases is not None else auditor.cases()
    share = alpha / max(1, len(chosen))
    found = Found(notes=auditor.notes)
    if processes == 1:
        found.add(auditor.run(chosen, share))
    else:
        for part in in_processes([lambda i=i: auditor.run(chosen[i::processes], share) for i in range(processes)]):
            found.add(part)
    verdict = verdict_of(found.failures, found.results)
    audit = CallableAudit(kind, verdict, "", found.failures, found.n, alpha, tv, time.monotonic() - start, found.results,
                          found.notes)
    return dataclasses.replace(audit, sentence=sentence_of(audit))


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
