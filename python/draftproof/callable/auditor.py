"""The stages of an audit: the sweep over all regimes, rows of other forms, whole requests, then the finer cases."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable

import numpy as np

from .cases.constrained import ConstrainedCase
from .cases.request_cases import RequestEntry, request_cases
from .cases.verify_sweep import PACE
from .drive.callee import Callee
from .drive.drive import STAGES, CallFailure
from .drive.profiles import Profile
from .drive.request_heeded import heeded
from .drive.row_forms import half_rows, nan_rows, placeholder_rows
from .drive.schedule import Trial, cost, planned_n, rounds, run_of, with_batch
from .drive.snippet import snippet_of
from .evidence.evidence import shown_by
from .facts.failing import ELEMENTS, Explainer, size_of
from .facts.needs import minimal
from .outcome import CaseResult, Failure

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
            self.sweep(Sweep(entries, REQUEST_SHARE * self.alpha / len(entries), 0), end, times=1.0)
        self.found.readings += [f"{name} {how}" for name, how in self.driver.reading.items()]

    def sweep(self, plan: Sweep, end: float | None = None, times: float = SWEEP_TIMES) -> None:
        """Every regime once. end: None: when the profile has it; times: of its share of the time, what a case gets at
        most."""
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
            stop = now + times * (end - now) / (len(entries) - i)
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
