"""audit_callable: drives a sampler, a filter or a verifier through cases of its own and says what it found."""

from __future__ import annotations

import dataclasses
import os
from typing import Any, Callable

import numpy as np

from .._core import Error
from .._progress import Progress
from .cases.constrained import ConstrainedCase
from .cases.filter_cases import FilterCase
from .cases.ranges import Ranges, checked
from .cases.request_cases import RequestCase, RequestEntry, request_cases
from .cases.sample_cases import SampleCase
from .cases.verify_cases import VerifyCase
from .cases.verify_sweep import PACE, StepsCase, pace_of
from .drive.callee import Callee
from .drive.drive import STAGES, CallFailure, Driver
from .drive.processes import in_processes
from .drive.profiles import Clock, Profile, profile_of
from .drive.reproducible import ROWS
from .drive.request_heeded import heeded
from .drive.row_forms import half_rows, nan_rows, placeholder_rows
from .drive.schedule import Trial, cost, planned_n, rounds, run_of, with_batch
from .drive.snippet import snippet_of
from .evidence.evidence import shown_by
from .facts.failing import ELEMENTS, Explainer, size_of
from .facts.pairs import minimal
from .outcome import CallableAudit, CaseResult, Failure, sentence_of, verdict_of
from .page import page_of

#: The kinds of callables, each with the types of its cases.
KINDS: dict[str, tuple[type, ...]] = {"sample": (SampleCase, RequestCase), "filter": (FilterCase, RequestCase),
                                      "verify": (VerifyCase, StepsCase, RequestCase), "constrained": (ConstrainedCase,)}
#: A case of the sweep gets so many times its share of the time at most.
SWEEP_TIMES = 6.0
#: Parts of the level that the first sweep, later ones, whole requests and rows of other forms have; the finer cases
#: have the rest.
FIRST_SHARE, LATER_SHARE, REQUEST_SHARE, FORM_SHARE = 0.5, 0.25, 0.1, 0.02
#: The share of the time that is left behind the first sweep which whole requests have.
REQUEST_TIME = 0.6


@dataclasses.dataclass(frozen=True)
class Sweep:
    """share: of the level, for each entry; again: how often they were swept before, with other seeds."""

    entries: list[Any]
    share: float
    again: int


@dataclasses.dataclass
class Found:
    """What some of the cases showed."""

    results: list[CaseResult] = dataclasses.field(default_factory=list)
    failures: list[Failure] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    n: int = 0
    stops: str = ""
    readings: list[str] = dataclasses.field(default_factory=list)
    pace: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(len(PACE)))

    def add(self, other: Found) -> None:
        self.results += other.results
        self.failures += other.failures
        self.notes += other.notes
        self.n += other.n
        self.pace = self.pace + other.pace
        self.stops = self.stops or other.stops
        self.readings = self.readings or other.readings


class Auditor:
    def __init__(self, callee: Callee, tv: float, alpha: float, profile: Profile, n_max: int,
                 failures_max: int) -> None:
        self.callee, self.driver, self.kind, self.seed = callee, callee.driver, callee.kind, callee.seed
        self.clock, self.deadline = callee.clock, callee.deadline
        self.explainer = Explainer(callee)
        self.tv, self.alpha, self.profile, self.n_max, self.failures_max = tv, alpha, profile, n_max, failures_max
        self.is_first_sweep = self.asks_forms = False
        self.found = Found()
        self.hangs = False
        self.interrupted = ""

    def sweeps(self) -> list[Sweep]:
        """The first is the same in every profile, level and seeds too: what `quick` finds there, the others find with
        the same draws. It has half of the level, those behind it a quarter."""
        first = self.callee.entries()
        if not first:
            return []
        plan = [Sweep(first, FIRST_SHARE * self.alpha / len(first), 0)]
        if self.profile.repeats > 1:
            every = self.callee.entries("full")
            seen = {entry.name for entry in first}
            further = [entry for entry in every if entry.name not in seen]
            share = LATER_SHARE * self.alpha / (len(further) + (self.profile.repeats - 1) * len(every))
            plan += [Sweep(further, share, 0),
                     *(Sweep(every, share, again) for again in range(1, self.profile.repeats))]
        return plan

    def _forms(self) -> None:
        """Rows of 16 bits, of NaN and with placeholders, where the callable takes them."""
        callee, share = self.callee, FORM_SHARE * self.alpha / 3
        if self.driver.distribution is not None or self.driver.shards is not None or callee.ranges:
            return
        called = {"filter": callee.left, "verify": callee.first}.get(self.kind, callee.called)
        placeholders = [placeholder_rows(callee.stepped, share)] if self.kind == "verify" else []
        for form in (half_rows(called, share), nan_rows(called, share), *placeholders):
            if self.clock() >= self.deadline:  # it was not called, or not to the end
                return
            self.found.n += form.n
            self.found.readings += [form.reading] if form.reading else []
            if form.n:
                self.found.results.append(CaseResult(form.name, "biased" if form.fault else "consistent", form.n, None,
                                                     form.fault))
            if form.fault:
                self.found.failures.append(Failure("row_form", None, f"{form.name}: {form.fault}", "", form.n, None))

    def _requests(self) -> None:
        """Whole requests, of what a callable that was found sound so far reads."""
        if self.kind == "constrained" or self.driver.distribution is not None or self.driver.shards is not None:
            return
        end = self.clock() + REQUEST_TIME * (self.deadline - self.clock())
        factors, notes = heeded(self.driver, self.kind, self.seed, self.clock, end)
        self.callee.notes += notes
        grows = self.kind != "filter" and self.callee.grows()
        entries = [RequestEntry(case.name, case.n_max, lambda case=case: case)
                   for case in request_cases(self.kind, factors, self.callee.with_min_p, grows,
                                             one_hot=self.callee.one_hot)]
        if entries:
            self.sweep(Sweep(entries, REQUEST_SHARE * self.alpha / len(entries), 0), end)
        self.found.readings += [f"{name} {how}" for name, how in self.driver.reading.items()]

    def sweep(self, plan: Sweep, end: float | None = None) -> None:
        """Every regime once. end: None: when the profile has it."""
        entries, share, again = plan.entries, plan.share, plan.again
        end = (self.profile.sweep if again == 0 else 1.0) * self.deadline if end is None else end
        for i, entry in enumerate(entries):
            now = self.clock()
            if self._is_enough() or now >= end:
                if again == 0:
                    self.found.results.append(CaseResult(entry.name, "inconclusive", 0, None, "not reached"))
                continue
            trial = self.callee.trial(entry, share, again)
            if trial is None:
                continue
            case, n = trial.case, trial.n_final
            stop = now + SWEEP_TIMES * (end - now) / (len(entries) - i)
            if self._survives(trial, lambda: trial.draw(n, stop)):  # noqa: B023  # called here
                if trial.look(True):
                    self._note_bias(trial)
                elif again == 0:
                    if entries[i].separates and size_of(trial.case) <= ELEMENTS:
                        self.explainer.seen.append(trial.run)
                    judgement = trial.judgement
                    self.found.results.append(CaseResult(case.name, "consistent", trial.run.n, None,
                                                         judgement.sentence if judgement else "",
                                                         None if self.kind == "filter" else shown_by(trial.run.n)))
            self.found.n += trial.run.n
            self.found.pace = self.found.pace + getattr(trial.run, "pace", 0.0)
            self.found.stops = self.found.stops or getattr(trial.run, "stops", "")
            self.callee.last = case

    def run(self, cases: list[Any], share: float, sweeps: list[Sweep], asks_requests: bool = True) -> Found:
        """share: of the level, for each case; asks_requests: of several processes one does. An interrupt ends it with
        what was found so far."""
        try:
            self._run(cases, share, sweeps, asks_requests)
        except KeyboardInterrupt:
            self._note_interrupt()
            self.found.results.append(CaseResult("the cases after the interrupt", "inconclusive", 0, None,
                                                 "not reached"))
        return self.found

    def _note_interrupt(self) -> None:
        self.interrupted = f"interrupted after {self.clock():.0f} s, with what was found so far"
        self.found.notes.append(self.interrupted)

    def _run(self, cases: list[Any], share: float, sweeps: list[Sweep], asks_requests: bool) -> None:
        self.callee.with_min_p = self.callee.with_min_p or any("min_p" in getattr(case, "params", {}) for case in cases)
        self.explainer.swept = sweeps[0].entries if sweeps else self.callee.entries()
        for i, plan in enumerate(sweeps):
            if plan.again == 0:
                self.is_first_sweep = i == 0
                self.sweep(plan)
        self.is_first_sweep = False
        if sweeps and not self.found.failures and not self.interrupted:
            self.found.readings = self.callee.readings()
            if asks_requests:
                self._forms()
                self._requests()
            if len(self.driver.stages) < len(STAGES):
                self.found.readings.append(f"log-probabilities {' or '.join(sorted(self.driver.stages))}")
        self._run_cases(cases, share)
        if self.kind == "constrained" and self.asks_forms and asks_requests and not self._is_enough():
            self._forms()
        for plan in sweeps:
            if plan.again > 0:
                self.sweep(plan)
        if self.callee.left_out:
            self.found.notes.append(f"{self.callee.left_out} cases were left out, or some of their rows, as the "
                                    "callable does not take them")

    def _run_cases(self, cases: list[Any], share: float) -> None:
        seconds = (self.deadline - self.clock()) / max(1, len(cases))
        pace = self.callee.seconds_per_row(cases)
        trials = []
        for case in sorted(cases, key=cost):
            fitting = with_batch(case, pace, seconds)
            planned = planned_n(case, self.tv, share)
            trials.append(Trial(fitting, run_of(self.driver, fitting, self.seed), share, planned,
                                min(planned, self.n_max), self.clock))
        for trial in rounds(trials, self.deadline, self.clock, self._survives):
            self._note_bias(trial)
            if self._is_enough():
                break
        if self._is_enough() and not self.interrupted:
            self.found.notes.append(f"stopped after {len(self.found.failures)} failures")
        for trial in trials:
            self.found.n += trial.run.n
            if not trial.failed:
                self._note_sound(trial)
        order = {case.name: i for i, case in enumerate(cases)}
        self.found.results.sort(key=lambda result: order.get(result.case, -1))

    def _is_enough(self) -> bool:
        return self.hangs or bool(self.interrupted) or len(self.found.failures) >= self.failures_max

    def _survives(self, trial: Trial, draw: Callable[[], None]) -> bool:
        if self._is_enough():
            return False
        try:
            draw()
        except CallFailure as failure:
            self._note_error(trial, failure)
            return False
        except KeyboardInterrupt:
            self._note_interrupt()
            return False
        return True

    def status(self, seconds: float) -> str:
        """How far it is, for people who wait."""
        return (f"audit, {seconds:.0f} of {self.deadline:.0f} s{' of CPU' if self.clock.is_cpu else ''}, "
                f"{max(0.0, self.deadline - seconds):.0f} s left "
                f"at most; {len(self.found.results)} cases done, {len(self.found.failures)} failures; an interrupt "
                "keeps the verdict so far")

    def _note_sound(self, trial: Trial) -> None:
        done = trial.is_whole and trial.planned <= self.n_max and trial.judgement is not None
        judgement = trial.judgement
        self.found.results.append(CaseResult(trial.case.name, "consistent" if done else "inconclusive", trial.run.n,
                                             None if judgement is None else judgement.detectable,
                                             "not reached" if judgement is None else judgement.sentence if judgement
                                             else "",
                                             shown_by(trial.run.n) if isinstance(trial.case, ConstrainedCase)
                                             else None))

    def _note_error(self, trial: Trial, failure: CallFailure) -> None:
        case, run, trial.failed = trial.case, trial.run, True
        self.hangs = failure.name == "hangs"
        self.found.results.append(CaseResult(case.name, "error", run.n, None, failure.sentence))
        smallest = case
        if not self.hangs:
            smallest = minimal(case, 0, lambda smaller, _: self._call_fails(smaller, failure.name)).case
        self.found.failures.append(
            Failure(failure.name, smallest, f"{case.name}: {failure.sentence}",
                    snippet_of(self.driver.sampler, smallest, max(1, getattr(smallest, "batch", 1)), self.seed,
                               self.driver.distribution is not None, shards=self.driver.shards), run.n, None,
                    traceback=failure.traceback, by_every_profile=self.is_first_sweep))

    def _call_fails(self, case: Any, name: str) -> bool:
        try:
            run_of(self.driver, case, self.seed).draw(1)
        except CallFailure as failure:
            return failure.name == name
        return False

    def _note_bias(self, trial: Trial) -> None:
        judgement, trial.failed = trial.judgement, True
        assert judgement is not None
        self.found.results.append(CaseResult(trial.case.name, "biased", judgement.n, judgement.detectable,
                                             judgement.sentence))
        try:
            failure = self.explainer.failure_of(trial)
        except KeyboardInterrupt:
            self._note_interrupt()
            failure = self.explainer.plain(trial)
        self.found.failures.append(dataclasses.replace(failure, by_every_profile=self.is_first_sweep))


def audit_callable(sampler: Callable[..., Any], kind: str = "sample", tv: float = 0.02, seed: int = 0, *,
                   cases: Any = None, alpha: float = 1e-6, time_limit: float = 60.0,
                   time_budget: float | None = None, n_max: int = 2_000_000, failures_max: int = 3, processes: int = 1,
                   profile: str = "full", emits: str = "any", distribution: Callable[..., Any] | None = None,
                   ranges: Ranges | None = None, one_hot: bool = True, shards: int | None = None,
                   progress: Callable[[str], None] | None = None,
                   reproducible: bool = False, report: str | os.PathLike[str] | None = None) -> CallableAudit:
    """Drives a sampler, a filter or a verifier through adversarial cases, and says whether it does what it should.

    kind 'sample': sampler(logits [B, V] float32, params, seeds [B] uint64) -> tokens [B]. params is a dict of arrays
        [B], in every call of every kind: temperature (0: greedy), top_k (0: off), top_p (1: off), min_p (0: off; varied
        only where the callable reads it). Where the sampler has an argument `steps`, it gets [B] steps of its seeds in
        one case (and zeros in the others, where it has no default).
        With `shards` it gets logits as a list of so many parts [B, V_d] of the vocabulary, in order, as tensor-parallel
        devices hold it, and `readings` says whether its tokens depend on their number (docs/shards.md).
    kind 'filter': sampler(logits, params) -> logits over the temperature, dropped tokens at -inf [B, V].
    kind 'verify': sampler(draft_tokens [M], draft_probs [M, V] or None, target_logits [M + B, V],
        cu_num_draft_tokens [B], inclusive sums, params, seeds) -> output tokens [B, K + 1], padded with -1, K the
        longest draft of the batch. Where it has an argument `uniforms`, it gets [B, K + 1] numbers of [0, 1) in one
        case, of each draft and of the token after them, many of them endpoints.
    Tokens may come with their log-probabilities, as a pair (tokens, logprobs) of one shape: natural, of any one stage
    of the pipeline;
        or as a dict: tokens, logprobs, finish_reasons (B of None, 'stop', 'length') and num_tokens [B], of the step or
        the request. params has more where the callable asks by name (python/README.md): penalties with histories,
        windows, bias, bad words, min_tokens with stop_ids, masks, guidance; they are varied in cases of whole requests.
    kind 'constrained': as 'verify', with a last argument `matchers`: of each request a Matcher in the state behind what
    it has
        emitted, which the callable must leave in the state behind the tokens that it emits now. Steps of a batch go on
        with what was emitted. It may give (tokens, logprobs [B, K + 1]): of the distribution that it draws from. Where
        it has an argument `parents` [M], the place of each draft's parent among its request's, -1 behind the committed
        tokens, one case has trees, for any exact rule without draft probabilities; K is their depth there.
    tv: the total variation distance that is to be found with 99 % probability; n is chosen by it. Cases with large
        vocabularies look for grosser faults, and say so.
    seed: of everything that the audit draws. cases: a list of cases instead of its own.
    alpha: the probability that a sound callable is accused, over all cases and tests.
    distribution: of samplers with filters that this module lacks (kind 'sample'): distribution(logits [G, V], params)
    ->
        the probabilities [G, V] that the sampler is meant to have.
    ranges: what the callable takes, as {'temperature': (0.01, 2.0)}, (least, largest); temperature 0 and values that
    switch a
        parameter off are always taken. Rows beyond are left out, which a note counts. one_hot: of verifiers, False if
        drafts without probabilities are not taken.
    profile: 'quick' (60 seconds of CPU: every regime of regimes.py once, then the finer cases as far as time goes;
    never
        'inconclusive' where every regime was seen), 'full' (half an hour), 'soak' (eight hours).
    time_limit: seconds of one call; time_budget: of all, in place of the profile's, by the clock on the wall; n_max:
    draws of one case; failures_max: stop after so many.
    emits: of verifiers, 'any' number of tokens a step, of which `but` says what is lost to chain verification of the
    same drafts;
        or 'chain': fewer than that is a failure.
    reproducible: demand that a token is made by its row, parameters and seed alone: the same in an equal call, in any
    batch and (kind
        'sample', of a callable that can be pickled) in another process, and that seeds which differ in one bit draw
        other streams.
    processes: forked ones that share the cases, for slow callables that bear a fork; failures_max counts in each.
    progress: gets a line every 30 seconds; without it they go to standard error. An interrupt (Ctrl-C) ends the audit,
    and it
        returns what it has found so far.
    report: a file for one HTML page of what was found, with the failing row drawn.
    Returns a CallableAudit: verdict 'consistent', 'biased', 'inconclusive' or 'error', sentence, failures, n.
    """
    if kind not in KINDS:
        raise Error(f"kind: is {kind!r}; expected one of {', '.join(KINDS)}")
    in_unit, positive, some = (lambda x: 0.0 < x < 1.0), (lambda x: x > 0.0), (lambda x: int(x) == x >= 1)
    for name, value, holds, expected in (
            ("tv", tv, in_unit, "a number in (0, 1)"), ("alpha", alpha, in_unit, "a number in (0, 1)"),
            ("time_limit", time_limit, positive, "seconds above 0"),
            ("time_budget", 0.0 if time_budget is None else time_budget, lambda x: x >= 0.0, "seconds, 0 or more"),
            ("n_max", n_max, some, "1 or more"), ("failures_max", failures_max, some, "1 or more"),
            ("processes", processes, some, "1 or more"),
            ("seed", seed, lambda x: int(x) == x >= 0, "0 or more")):
        try:
            right = bool(holds(value))
        except (TypeError, ValueError, OverflowError):
            right = False
        if not right:
            raise Error(f"{name}: is {value!r}; expected {expected}")
    if shards is not None and not (kind == "sample" and isinstance(shards, int) and 2 <= shards <= 64):
        raise Error(f"shards: is {shards!r} with kind {kind!r}; expected 2 to 64 parts of the vocabulary, with kind "
                    "'sample'")
    if distribution is not None and kind != "sample":
        raise Error(f"distribution: is given; expected none with kind {kind!r}")
    if reproducible and kind not in ("sample", "verify"):
        raise Error(f"reproducible: is set; expected it with kind 'sample' or 'verify', not {kind!r}")
    if emits not in ("any", "chain"):
        raise Error(f"emits: is {emits!r}; expected any or chain")
    if report is not None and not os.path.isdir(os.path.dirname(os.path.abspath(report))):
        raise Error(f"report: is {os.fspath(report)!r}; expected a file in a folder that is there")
    chosen = None if cases is None else list(cases)
    for case in chosen or ():
        if not isinstance(case, KINDS[kind]):
            raise Error(f"cases: has {type(case).__name__}; expected {' or '.join(of.__name__ for of in KINDS[kind])}, "
                        f"as kind is {kind!r}")
    chosen_profile = profile_of(profile)
    clock = Clock(chosen_profile.is_cpu and time_budget is None)
    deadline = chosen_profile.seconds if time_budget is None else time_budget
    callee = Callee(Driver(sampler, time_limit, distribution, shards), kind, int(seed), clock, deadline,
                    checked(ranges), one_hot)
    auditor = Auditor(callee, tv, alpha, chosen_profile, n_max, failures_max)
    signs = Progress(progress)
    clock.each = lambda seconds: signs(lambda: auditor.status(seconds))
    chosen = callee.cases(chosen)
    sweeps = [] if cases is not None else auditor.sweeps()
    auditor.asks_forms = cases is None and (bool(sweeps) or kind == "constrained")
    rest = (1.0 - (FORM_SHARE if auditor.asks_forms else 0.0) - (FIRST_SHARE + REQUEST_SHARE if sweeps else 0.0)
            - (LATER_SHARE if len(sweeps) > 1 else 0.0))
    share = rest * alpha / max(1, len(chosen))
    broken = callee.unreproduced() if reproducible else ""
    found = Found(notes=callee.notes)
    if processes == 1:
        found.add(auditor.run(chosen, share, sweeps))
    else:
        parts = [[dataclasses.replace(plan, entries=plan.entries[i::processes]) for plan in sweeps]
                 for i in range(processes)]
        for part in in_processes([lambda i=i: auditor.run(chosen[i::processes], share, parts[i], i == 0)
                                  for i in range(processes)]):
            found.add(part)
    if shards is not None and not found.failures:
        found.readings = [*found.readings, callee.split()]
    if broken:
        found.failures.append(Failure("not_reproducible", None, broken, "", ROWS, None))
    but = pace_of(found.pace) or found.stops
    if but and emits == "chain":
        found.failures.append(Failure("emits_fewer", None, f"the verifier {but}", "", int(found.pace[0]), None))
    verdict = verdict_of(found.failures, found.results, chosen_profile.is_open or not sweeps)
    audit = CallableAudit(kind, verdict, "", found.failures, found.n, alpha, tv, clock(), found.results, found.notes,
                          profile, but, [] if found.failures else found.readings)
    audit = dataclasses.replace(audit,
                                sentence=sentence_of(audit) +
                                (f"; {auditor.interrupted}" if auditor.interrupted else ""))
    if report is not None:
        with open(report, "w", encoding="utf-8") as file:
            file.write(page_of(audit, auditor.driver, auditor.seed))
    return audit


def run_case(sampler: Callable[..., Any], case: Any, n: int, *, seed: int = 0, alpha: float = 1e-6,
             time_limit: float = 60.0, distribution: Callable[..., Any] | None = None, before: Any = None,
             shards: int | None = None) -> CaseResult:
    """One case again, with n draws, steps or rows: what the snippet of a failure calls. before: a case of which a call
    is made first. shards: as of audit_callable."""
    driver = Driver(sampler, time_limit, distribution, shards)
    run = run_of(driver, case, seed)
    try:
        if before is not None:
            run_of(driver, before, seed).draw(1)
        run.draw(n)
    except CallFailure as failure:
        return CaseResult(case.name, "error", run.n, None, f"{failure.name}: {failure.sentence}")
    judgement = run.judge(alpha)
    return CaseResult(case.name, "biased" if judgement.biased else "consistent", run.n, judgement.detectable,
                      judgement.sentence)
