"""audit_callable: drives a sampler, a filter or a verifier through cases of its own and says what it found."""

from __future__ import annotations

import copy
import dataclasses
import os
import types
from typing import Any, Callable, Iterator

import numpy as np

from .._core import Error
from .._progress import Progress
from . import rows
from .constrained import ConstrainedCase, constrained_cases
from .dependence import CALLS, CALM, dependence, dependent
from .described import described
from .drive import STAGES, CallFailure, Driver, Params, drawn_of
from .evidence import shown_by
from .filter_cases import FilterCase, filter_case_of, filter_cases
from .hypotheses import OF_NOISE, Kept, account_of, explained
from .outcome import CallableAudit, CaseResult, Failure, kind_of, sentence_of, verdict_of
from .page import page_of
from .pairs import Minimal, minimal
from .processes import in_processes
from .profiles import QUICK, Clock, Profile, profile_of
from .ranges import Ranges, checked, within
from .readings import filter_order_of, readings_of, repeats, tokens_of_run
from .request_cases import RequestCase, RequestEntry, request_cases
from .reproducible import ROWS, in_another_process, probes, unreproduced
from .request_heeded import heeded
from .row_forms import half_rows, nan_rows
from .sample_cases import OFF, SampleCase, params_of, sample_cases, step_case
from .sample_judge import Judgement
from .schedule import SMALLEST_BATCH, Trial, cost, planned_n, rounds, run_of, with_batch
from .sample_sweep import sample_sweep
from .snippet import snippet_of
from .verify_cases import VerifyCase, endpoint_case, verify_cases
from .varied import varied
from .verify_sweep import PACE, StepsCase, pace_of, verify_sweep

#: The kinds of callables, each with the types of its cases.
KINDS: dict[str, tuple[type, ...]] = {"sample": (SampleCase, RequestCase), "filter": (FilterCase, RequestCase),
                                      "verify": (VerifyCase, StepsCase, RequestCase), "constrained": (ConstrainedCase,)}
#: Seconds of one shrinking, as a multiple of what finding the failure took, and as a share of the time that is left.
SHRINK_SECONDS = 3.0
SHRINK_TIMES = 3.0
SHRINK_SHARE = 0.25
#: Cases on which an explanation is tried: of the failing one's kind, spread over the sweep, and of those that passed; seconds of drawing.
AKIN, SPREAD, SEEN, OTHERS_SECONDS = 6, 8, 4, 8.0
#: Larger cases of the sweep tell nothing of suspects.
SUSPECT_ELEMENTS = 1 << 19
#: A case of the sweep gets so many times its share of the time at most.
SWEEP_TIMES = 6.0
#: Parts of the level that the first sweep, later ones, whole requests and rows of other forms have; the finer cases have the rest.
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


def size_of(case: Any) -> int:
    """Of its logits, or of a verifier's target rows."""
    return sum(np.size(row) for row in (case.target if isinstance(case, (VerifyCase, StepsCase)) else case.logits))


def _is_bare(case: Any) -> bool:
    """Has its drafts no probabilities?"""
    if isinstance(case, (VerifyCase, ConstrainedCase)):
        return case.drafter is None and max(case.draft_lens if isinstance(case, VerifyCase) else case.lens) > 0
    return isinstance(case, StepsCase) and (case.one_hot or case.fixed is not None)


def _on(case: Any, group: int) -> list[str]:
    """The parameters that are on in a row or request of a case."""
    return [name for name, value in getattr(case, "params", {}).items() if value[min(group, len(value) - 1)] != np.asarray(OFF[name], value.dtype)]


def _uncalled(sampler: Callable[..., Any]) -> Any:
    """A copy of a callable that may have a state, from before its first call; None where there is none."""
    if isinstance(sampler, (types.FunctionType, types.BuiltinFunctionType)):
        return None
    try:
        return copy.deepcopy(sampler)
    except Exception:  # a device, a lock
        return None


class Auditor:
    def __init__(self, sampler: Callable[..., Any], kind: str, tv: float, seed: int, alpha: float, time_limit: float,
                 seconds: float, clock: Clock, profile: Profile, n_max: int, failures_max: int, distribution: Callable[..., Any] | None,
                 ranges: Ranges, one_hot: bool, shards: int | None) -> None:
        self.driver = Driver(sampler, time_limit, distribution, shards)
        self.sampler, self.kind, self.tv, self.seed, self.alpha = sampler, kind, tv, seed, alpha
        self.clock, self.deadline, self.profile = clock, seconds, profile
        self.before: Any = None  # the case before
        self.fresh = _uncalled(sampler)
        self.is_first_sweep = False
        self.swept: list[Any] = []  # entries of the first sweep
        self.seen: list[Any] = []  # runs of the sweep that passed
        self.n_max, self.ranges, self.one_hot = n_max, ranges, one_hot
        self.left_out = 0
        self.failures_max = failures_max
        self.notes: list[str] = []
        self.found = Found()
        self.hangs = False
        self.interrupted = ""
        self.with_min_p = False

    def cases(self, given: list[Any] | None) -> list[Any]:
        """What the callable takes of the cases given, or of its own."""
        return [case for case in map(self._taken, self._every_case() if given is None else given) if case is not None]

    def _taken(self, case: Any) -> Any:
        """What of a case the callable takes; None if nothing."""
        taken = None if _is_bare(case) and not self.one_hot else within(case, self.ranges)
        self.left_out += taken is not case
        return taken

    def _every_case(self) -> list[Any]:
        if self.kind == "constrained":
            if not self.driver.takes_parents:
                self.notes.append("the callable has no argument `parents`: trees were not tested")
            return list(constrained_cases(self.driver.takes_parents))
        with_min_p = self.with_min_p = self._reads_min_p()
        if not with_min_p:
            self.notes.append("the callable does not read params['min_p']: min_p was left off")
        if self.kind == "verify":
            return [*([endpoint_case()] if self.driver.takes_uniforms else []), *verify_cases(with_min_p)]
        if self.kind == "filter":
            return list(filter_cases(with_min_p))
        cases = list(sample_cases(with_min_p))
        if self.driver.distribution is not None:  # of ties and of rows with nothing to draw it says one thing of several
            cases = [case for case in cases if not case.readings and not case.may_raise]
        if self._grows():
            cases.insert(2, step_case(with_min_p))
        else:
            self.notes.append("equal calls give equal tokens and there is no argument `steps`: steps of one seed were "
                              "not tested")
        return cases

    def entries(self, profile: str = QUICK) -> list[Any]:
        """The sweep; of filters what does not draw, of samplers with a distribution of their own none."""
        if self.kind == "constrained":
            return []
        if self.kind == "verify":
            return list(verify_sweep(self.with_min_p))
        if self.driver.distribution is not None:
            return []
        entries = sample_sweep(self.with_min_p, profile)
        return entries if self.kind == "sample" else [entry for entry in entries if not entry.has_rng]

    def sweeps(self) -> list[Sweep]:
        """The first is the same in every profile, level and seeds too: what `quick` finds there, the others find with the same
        draws. It has half of the level, those behind it a quarter."""
        first = self.entries()
        if not first:
            return []
        plan = [Sweep(first, FIRST_SHARE * self.alpha / len(first), 0)]
        if self.profile.repeats > 1:
            every = self.entries("full")
            seen = {entry.name for entry in first}
            further = [entry for entry in every if entry.name not in seen]
            share = LATER_SHARE * self.alpha / (len(further) + (self.profile.repeats - 1) * len(every))
            plan += [Sweep(further, share, 0), *(Sweep(every, share, again) for again in range(1, self.profile.repeats))]
        return plan

    def _probe_case(self) -> Any:
        logits, source = rows.normal(SMALLEST_BATCH, 33, 1.0, 1), f"rows.normal({SMALLEST_BATCH}, 33, 1.0, 1)"
        params = params_of(SMALLEST_BATCH, temperature=1.0, top_k=0, top_p=1.0)
        if self.kind == "verify":  # no drafts: the bonus token of each row
            return StepsCase("probe", logits, np.zeros((0, 33), np.float32), np.zeros(SMALLEST_BATCH, np.int64), params, source)
        if self.kind == "filter":
            return FilterCase("probe", logits, source, params)
        return SampleCase("probe", logits, source, params, batch=SMALLEST_BATCH)

    def _reads_min_p(self) -> bool:
        try:
            run_of(self.driver, self._probe_case(), self.seed).draw(1)
        except CallFailure:
            pass  # the cases say what is wrong
        self.before = self._probe_case()
        return "min_p" in self.driver.read or ("min_p" not in self.driver.refused and any(map(self._heeds_min_p, (1.0, 0.95))))

    def _heeds_min_p(self, top_p: float) -> bool:
        """For a callable that copies its parameters before it looks: does min_p of 1 leave little but the likeliest token? With a
        top_p too: without other filters a callable may skip it."""
        case = self._probe_case()
        size = 16 * SMALLEST_BATCH
        logits = np.repeat((case.target if self.kind == "verify" else case.logits)[:1], size, axis=0)
        rows = {"target": logits, "lens": np.zeros(size, np.int64)} if self.kind == "verify" else {"logits": logits}
        case = dataclasses.replace(case, params=params_of(size, temperature=1.0, top_k=0, top_p=top_p, min_p=1.0), **rows,
                                   **({"batch": size} if self.kind == "sample" else {}))
        run = run_of(self.driver, case, self.seed)
        try:
            run.draw(1)
        except CallFailure:
            return False
        if self.kind == "filter":
            return bool(np.isfinite(run.left).mean() < 0.5)
        drawn = run.outputs[0][:, 0] if self.kind == "verify" else run.samples[0]
        share = np.unique(drawn, return_counts=True)[1].max() / len(drawn)  # also where it is another token that is left
        return bool((drawn == logits[0].argmax()).mean() > 0.35 or share > 0.9)  # of probability 0.18 without

    def _drawn(self, case: Any) -> np.ndarray | None:
        """What came in one call; None where the callable does not take it, or time is over."""
        if self.clock() >= self.deadline or self._taken(case) is not case:
            return None
        run = run_of(self.driver, case, self.seed)
        try:
            run.draw(1)
        except (CallFailure, Error):
            return None
        return tokens_of_run(run)

    def _called(self, logits: np.ndarray, params: dict[str, np.ndarray], seeds: np.ndarray) -> np.ndarray | None:
        """A token of each row; None as in _drawn."""
        if self.clock() >= self.deadline:
            return None
        if self.kind == "verify":
            given: tuple[Any, ...] = (np.zeros(0, np.int32), np.zeros((0, logits.shape[1]), np.float32), logits,
                                      np.zeros(len(logits), np.int64), Params(params, len(logits)), seeds)
        else:
            given = (logits, Params(params, len(logits)), seeds)
        try:
            return drawn_of(self.driver(*given), (len(logits), 1) if self.kind == "verify" else (len(logits),), "tokens")[0].reshape(-1)
        except (CallFailure, Error):
            return None

    def readings(self) -> list[str]:
        """Of a callable that was found sound."""
        if self.kind == "constrained" or self.driver.distribution is not None:
            return []
        out = readings_of(self.kind, self.with_min_p, self._drawn)
        return out + repeats(self._called) if self.kind != "filter" and not self.ranges else out

    def unreproduced(self) -> str:
        """What `reproducible` demands and the callable does not hold, in words."""
        found = unreproduced(self._called)
        if found or self.kind != "sample":
            return found
        logits, params, seeds = probes()
        here, there = self._called(logits, params, seeds), in_another_process(self.sampler, (logits, params, seeds), self.driver.time_limit)
        if here is None or there is None:
            self.notes.append("another process was not tried: the callable cannot be pickled, or does not run there")
            return ""
        differ = int((here != there).sum())
        return f"{differ} of {len(here)} tokens are others with the same seeds in another process" if differ else ""

    def split(self) -> str:
        """Of a callable that gets parts: do its tokens depend on how many there are? Rows have ties at the cuts."""
        shards, size = self.driver.shards, 64
        logits = np.round(2.0 * rows.normal(size, 33, 1.0, 2)).astype(np.float32) / np.float32(2.0)
        params = params_of(size, temperature=1.0, top_k=np.arange(size) % 4 * 3, top_p=np.where(np.arange(size) % 2, 0.8, 1.0))
        drawn = []
        for self.driver.shards in (1, shards):
            drawn.append(self._called(logits, params, np.arange(size, dtype=np.uint64)))
        if drawn[0] is None or drawn[1] is None:
            return "parts: it was not seen whether tokens depend on their number"
        differ = int((drawn[0] != drawn[1]).sum())
        return (f"parts: {differ} of {size} tokens differ between 1 and {shards} parts, so that another number of devices is another text"
                if differ else f"parts: the same tokens from 1 and {shards} parts")

    def _grows(self) -> bool:
        """Can it know of earlier calls for a seed: by `steps`, or since equal calls give other tokens?"""
        if self.driver.takes_steps:
            return True
        drawn = []
        for _ in range(2):
            run = run_of(self.driver, self._probe_case(), self.seed)
            try:
                run.draw(1)
            except CallFailure:
                return False
            drawn.append(run.outputs[0] if self.kind == "verify" else run.samples[0])
        return not np.array_equal(drawn[0], drawn[1])

    def _forms(self) -> None:
        """Rows of 16 bits and of NaN, where the callable takes them."""
        if self.kind not in ("sample", "verify") or self.driver.distribution is not None or self.driver.shards is not None or self.ranges:
            return
        for form in (half_rows(self._called, FORM_SHARE * self.alpha / 2), nan_rows(self._called, FORM_SHARE * self.alpha / 2)):
            if self.clock() >= self.deadline:  # it was not called, or not to the end
                return
            self.found.n += form.n
            self.found.readings += [form.reading] if form.reading else []
            if form.n:
                self.found.results.append(CaseResult(form.name, "biased" if form.fault else "consistent", form.n, None, form.fault))
            if form.fault:
                self.found.failures.append(Failure("row_form", None, f"{form.name}: {form.fault}", "", form.n, None))

    def _requests(self) -> None:
        """Whole requests, of what a callable that was found sound so far reads."""
        if self.kind == "constrained" or self.driver.distribution is not None or self.driver.shards is not None:
            return
        end = self.clock() + REQUEST_TIME * (self.deadline - self.clock())
        factors, notes = heeded(self.driver, self.kind, self.seed, self.clock, end)
        self.notes += notes
        grows = self.kind != "filter" and self._grows()
        entries = [RequestEntry(case.name, case.n_max, lambda case=case: case)
                   for case in request_cases(self.kind, factors, self.with_min_p, grows, one_hot=self.one_hot)]
        if entries:
            self.sweep(Sweep(entries, REQUEST_SHARE * self.alpha / len(entries), 0), end)
        self.found.readings += [f"{name} {how}" for name, how in self.driver.reading.items()]

    def seconds_per_row(self, cases: list[Any]) -> float:
        """Of the first case, in its second call: the first one may load or compile."""
        if self.kind == "filter" or not cases or isinstance(cases[0], (StepsCase, ConstrainedCase)):
            return 0.0
        run = run_of(self.driver, dataclasses.replace(cases[0], batch=SMALLEST_BATCH), self.seed)
        try:
            run.draw(1)
            begin = self.clock()
            run.draw(run.n + 1)
        except CallFailure:
            return 0.0  # the case says what is wrong
        return (self.clock() - begin) / SMALLEST_BATCH

    def _trial(self, entry: Any, share: float, again: int) -> Trial | None:
        """None where the callable does not take the case."""
        case = self._taken(entry.make())
        if isinstance(case, SampleCase) and self.kind == "filter":
            case = filter_case_of(case)
        if case is None:
            return None
        n = case.logits.shape[0] if isinstance(case, FilterCase) else entry.n
        return Trial(case, run_of(self.driver, case, self.seed + 7919 * again), share, n, n, self.clock)

    def _others(self, trial: Trial, judgement: Judgement) -> Iterator[Any]:
        """Runs that did not choose an explanation of this one: its own case with fresh seeds, other rows, another batch; cases of its
        kind, those next to it first; others from all over the sweep; some that passed. Each is drawn when it is asked for."""
        case, end = trial.case, self.clock() + OTHERS_SECONDS
        drawn = [run_of(self.driver, other, trial.run.seed + 104_729 * i) for i, other in enumerate(varied(case), 1)]
        names = [entry.name for entry in self.swept]
        at = names.index(case.name) if case.name in names else 0
        noise = judgement.name in OF_NOISE or judgement.name.startswith("correlation")
        near = sorted((entry for entry in self.swept if entry.name != case.name and (entry.separates or noise)),
                      key=lambda entry: abs(names.index(entry.name) - at))
        akin = [entry for entry in near if kind_of(entry.name) == kind_of(case.name) or (noise and entry.has_rng)]
        valued = []
        for name in _on(case, judgement.group):  # other values of what is on
            of = [entry for entry in near if entry.name.startswith(name)]
            valued += of[::max(1, len(of) // AKIN)]
        bare = [entry for entry in near if _is_bare(case) and getattr(entry, "is_bare", False)]
        rest = [entry for entry in near if not entry.has_rng and entry not in akin]
        chosen = [*akin[:AKIN], *valued, *bare[:AKIN], *rest[:2], *rest[2::max(1, len(rest) // SPREAD)]]
        for entry in dict.fromkeys(chosen):
            other = self._trial(entry, 1.0, 1)
            if other is not None and size_of(other.case) <= max(SUSPECT_ELEMENTS // 4, size_of(case)):
                drawn.append(other.run)
        for run in drawn:
            n = run.case.logits.shape[0] if isinstance(run.case, FilterCase) else max(getattr(run.case, "n_max", None) or 0, 1)
            n = trial.run.n if kind_of(run.case.name) == kind_of(case.name) and not isinstance(run.case, FilterCase) else n
            try:
                while run.n < n and (run.n == 0 or self.clock() < end):
                    run.draw(run.n + 1)
            except (CallFailure, Error):
                continue
            yield run
        yield from self.seen[-SEEN:]

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
            trial = self._trial(entry, share, again)
            if trial is None:
                continue
            case, n = trial.case, trial.n_final
            stop = now + SWEEP_TIMES * (end - now) / (len(entries) - i)
            if self._survives(trial, lambda: trial.draw(n, stop)):  # noqa: B023  # called here
                if trial.look(True):
                    self._note_bias(trial)
                elif again == 0:
                    if entries[i].separates and size_of(trial.case) <= SUSPECT_ELEMENTS:
                        self.seen.append(trial.run)
                    judgement = trial.judgement
                    self.found.results.append(CaseResult(case.name, "consistent", trial.run.n, None, judgement.sentence,
                                                         None if self.kind == "filter" else shown_by(trial.run.n)))
            self.found.n += trial.run.n
            self.found.pace = self.found.pace + getattr(trial.run, "pace", 0.0)
            self.found.stops = self.found.stops or getattr(trial.run, "stops", "")
            self.before = case

    def run(self, cases: list[Any], share: float, sweeps: list[Sweep], asks_requests: bool = True) -> Found:
        """share: of the level, for each case; asks_requests: of several processes one does. An interrupt ends it with what was
        found so far."""
        try:
            self._run(cases, share, sweeps, asks_requests)
        except KeyboardInterrupt:
            self._note_interrupt()
            self.found.results.append(CaseResult("the cases after the interrupt", "inconclusive", 0, None, "not reached"))
        return self.found

    def _note_interrupt(self) -> None:
        self.interrupted = f"interrupted after {self.clock():.0f} s, with what was found so far"
        self.found.notes.append(self.interrupted)

    def _run(self, cases: list[Any], share: float, sweeps: list[Sweep], asks_requests: bool) -> None:
        self.with_min_p = self.with_min_p or any("min_p" in getattr(case, "params", {}) for case in cases)
        self.swept = sweeps[0].entries if sweeps else self.entries()
        for i, plan in enumerate(sweeps):
            if plan.again == 0:
                self.is_first_sweep = i == 0
                self.sweep(plan)
        self.is_first_sweep = False
        if sweeps and not self.found.failures and not self.interrupted:
            self.found.readings = self.readings()
            if asks_requests:
                self._forms()
                self._requests()
            if len(self.driver.stages) < len(STAGES):
                self.found.readings.append(f"log-probabilities {' or '.join(sorted(self.driver.stages))}")
        self._run_cases(cases, share)
        for plan in sweeps:
            if plan.again > 0:
                self.sweep(plan)
        if self.left_out:
            self.found.notes.append(f"{self.left_out} cases were left out, or some of their rows, as the callable does not take them")

    def _run_cases(self, cases: list[Any], share: float) -> None:
        seconds = (self.deadline - self.clock()) / max(1, len(cases))
        pace = self.seconds_per_row(cases)
        trials = []
        for case in sorted(cases, key=cost):
            fitting = with_batch(case, pace, seconds)
            planned = planned_n(case, self.tv, share)
            trials.append(Trial(fitting, run_of(self.driver, fitting, self.seed), share, planned, min(planned, self.n_max),
                                self.clock))
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
        return (f"audit, {seconds:.0f} of {self.deadline:.0f} s{' of CPU' if self.clock.is_cpu else ''}, {max(0.0, self.deadline - seconds):.0f} s left "
                f"at most; {len(self.found.results)} cases done, {len(self.found.failures)} failures; an interrupt keeps the verdict so far")

    def _note_sound(self, trial: Trial) -> None:
        done = trial.is_whole and trial.planned <= self.n_max and trial.judgement is not None
        judgement = trial.judgement
        self.found.results.append(CaseResult(trial.case.name, "consistent" if done else "inconclusive", trial.run.n,
                                             None if judgement is None else judgement.detectable,
                                             "not reached" if judgement is None else judgement.sentence,
                                             shown_by(trial.run.n) if isinstance(trial.case, ConstrainedCase) else None))

    def _note_error(self, trial: Trial, failure: CallFailure) -> None:
        case, run, trial.failed = trial.case, trial.run, True
        self.hangs = failure.name == "hangs"
        self.found.results.append(CaseResult(case.name, "error", run.n, None, failure.sentence))
        smallest = case
        if not self.hangs:
            smallest = minimal(case, 0, lambda smaller, _: self._call_fails(smaller, failure.name)).case
        self.found.failures.append(
            Failure(failure.name, smallest, f"{case.name}: {failure.sentence}",
                    snippet_of(self.sampler, smallest, max(1, getattr(smallest, "batch", 1)), self.seed,
                               self.driver.distribution is not None, shards=self.driver.shards), run.n, None, traceback=failure.traceback, by_every_profile=self.is_first_sweep))

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
        if isinstance(case, RequestCase):
            self._note_bias_of_requests(trial)
            return
        if isinstance(case, ConstrainedCase):
            again = run_of(self.driver, case, trial.run.seed + 1)
            again.draw(judgement.n)
            suspect = trial.run.suspect if again.judge(trial.alpha).biased and again.suspect == trial.run.suspect else ""
            self.found.failures.append(
                Failure(judgement.name, case, f"{case.name}: {judgement.sentence}",
                        snippet_of(self.sampler, case, judgement.n, trial.run.seed), judgement.n, judgement.distance, suspect, suspect))
            return
        try:
            before, smallest, rule, suspect = self._explained(trial, judgement)
        except KeyboardInterrupt:
            self._note_interrupt()
            before, smallest, rule, suspect = None, case, "", ""
        needs = f"; it needs a call of {before.name!r} before it" if before is not None else ""
        self.found.failures.append(
            Failure(judgement.name, smallest, f"{case.name}: {judgement.sentence}{needs}",
                    snippet_of(self.sampler, smallest, judgement.n, trial.run.seed, self.driver.distribution is not None, before,
                               self.driver.shards),
                    judgement.n, judgement.distance, suspect, rule, before, by_every_profile=self.is_first_sweep))

    def _explained(self, trial: Trial, judgement: Judgement) -> tuple[Any, Any, str, str]:
        """The case before, if it is needed, the smallest case that fails, what explains it, and that with what the failure needs."""
        case, end = trial.case, self._end_of_reruns(trial)

        def fails(smaller: Any, times: int) -> bool | None:
            n = smaller.logits.shape[0] if isinstance(smaller, FilterCase) else times * judgement.n
            again = Trial(smaller, run_of(self.driver, smaller, trial.run.seed), trial.alpha if times == 1 else CALM, n, n, self.clock)
            try:
                again.draw(n, end)
                return None if not again.is_whole else again.look(True)
            except (CallFailure, Error):
                return False

        before = self._needed_before(trial)
        needed = CALLS if before is not None else "" if judgement.suspect and judgement.name != "pairs" else self._dependence(case, judgement.n, trial)
        end = self._end_of_reruns(trial)
        smallest = Minimal(case) if before is not None or needed == CALLS else minimal(case, judgement.group, fails)
        others = Kept(self._others(trial, judgement))
        found = explained(trial.run, judgement, others, filter_order_of(self.kind, self._drawn))
        rule = dependent(needed, found.words)
        noise = judgement.suspect if not rule and any(run.judge(CALM).suspect == judgement.suspect for run in others if run.case.name == case.name) else ""
        text = dependent(needed, str(found)) or noise or described(account_of(trial.run, judgement.group))
        return before, smallest.case, rule or noise, "; ".join(filter(None, [text, str(smallest)]))

    def _needed_before(self, trial: Trial) -> Any:
        """The case before, if this one passes without a call of it: on a copy of the callable that was never called, where there is one."""
        case, end = trial.case, self._end_of_reruns(trial)

        def fails(before: Any) -> bool | None:
            driver = self.driver if self.fresh is None else Driver(copy.deepcopy(self.fresh), self.driver.time_limit, self.driver.distribution, self.driver.shards)
            again = Trial(case, run_of(driver, case, trial.run.seed), trial.alpha, trial.run.n, trial.run.n, self.clock)
            try:
                if before is not None:
                    run_of(driver, before, trial.run.seed).draw(1)
                again.draw(trial.run.n, end)
                return again.look(True) if again.is_whole else None
            except (CallFailure, Error):
                return None

        return self.before if self.before is not None and fails(None) is False and fails(self.before) else None

    def _note_bias_of_requests(self, trial: Trial) -> None:
        """What is said is what was measured: of the smallest case that fails, what all of its wrong tokens have in common."""
        end, case, judgement = self._end_of_reruns(trial, 2.0), trial.case, trial.judgement
        assert judgement is not None
        judgements = {case: judgement}

        def fails(smaller: RequestCase, _: int) -> bool | None:
            run = run_of(self.driver, smaller, trial.run.seed)
            try:
                while run.n < judgement.n and self.clock() < end:
                    run.draw(run.n + 1)
                if run.n < judgement.n:
                    return None
                judgements[smaller] = run.judge(trial.alpha)
                return judgements[smaller].biased
            except (CallFailure, Error):
                return False

        smallest = minimal(case, 0, fails).case
        found = judgements[smallest]
        self.found.failures.append(
            Failure(found.name, smallest, f"{case.name}: {found.sentence}", snippet_of(self.sampler, smallest, found.n, trial.run.seed),
                    judgement.n, found.distance))

    def _end_of_reruns(self, trial: Trial, times: float = 1.0) -> float:
        now = self.clock()
        return now + min(SHRINK_SHARE * (self.deadline - now), times * max(SHRINK_SECONDS, SHRINK_TIMES * trial.seconds))

    def _dependence(self, case: Any, n: int, trial: Trial) -> str:
        """What the failure of the case depends on beside rows and parameters: SEEDS, CALLS or ''."""
        end = self._end_of_reruns(trial, 4.0)

        def found(other: Any, seed: int, between: Any) -> bool | None:
            run = run_of(self.driver, other, seed)
            try:
                while run.n < n:
                    if self.clock() >= end:
                        return None
                    if between is not None and self._taken(between) is between:
                        run_of(self.driver, between, seed).draw(1)
                    run.draw(run.n + 1)
                return run.judge(CALM).biased
            except (CallFailure, Error):
                return None

        return dependence(case, self._probe_case(), trial.run.seed, found)


def audit_callable(sampler: Callable[..., Any], kind: str = "sample", tv: float = 0.02, seed: int = 0, *,
                   cases: Any = None, alpha: float = 1e-6, time_limit: float = 60.0,
                   time_budget: float | None = None, n_max: int = 2_000_000, failures_max: int = 3, processes: int = 1,
                   profile: str = "full", emits: str = "any", distribution: Callable[..., Any] | None = None,
                   ranges: Ranges | None = None, one_hot: bool = True, shards: int | None = None, progress: Callable[[str], None] | None = None,
                   reproducible: bool = False, report: str | os.PathLike[str] | None = None) -> CallableAudit:
    """Drives a sampler, a filter or a verifier through adversarial cases, and says whether it does what it should.

    kind 'sample': sampler(logits [B, V] float32, params, seeds [B] uint64) -> tokens [B]. params is a dict of arrays
        [B], in every call of every kind: temperature (0: greedy), top_k (0: off), top_p (1: off), min_p (0: off; varied only where
        the callable reads it). Where the sampler has an argument `steps`, it gets [B] steps of its seeds in one case (and zeros
        in the others, where it has no default).
        With `shards` it gets logits as a list of so many parts [B, V_d] of the vocabulary, in order, as tensor-parallel
        devices hold it, and `readings` says whether its tokens depend on their number (docs/shards.md).
    kind 'filter': sampler(logits, params) -> logits over the temperature, dropped tokens at -inf [B, V].
    kind 'verify': sampler(draft_tokens [M], draft_probs [M, V] or None, target_logits [M + B, V],
        cu_num_draft_tokens [B], inclusive sums, params, seeds) -> output tokens [B, K + 1], padded with -1, K the
        longest draft of the batch. Where it has an argument `uniforms`, it gets [B, K + 1] numbers of [0, 1) in one case, of
        each draft and of the token after them, many of them endpoints.
    Tokens may come with their log-probabilities, as a pair (tokens, logprobs) of one shape: natural, of any one stage of the pipeline;
        or as a dict: tokens, logprobs, finish_reasons (B of None, 'stop', 'length') and num_tokens [B], of the step or the request.
        params has more where the callable asks by name (python/README.md): penalties with histories, windows, bias, bad words,
        min_tokens with stop_ids, masks, guidance; they are varied in cases of whole requests.
    kind 'constrained': as 'verify', with a last argument `matchers`: of each request a Matcher in the state behind what it has
        emitted, which the callable must leave in the state behind the tokens that it emits now. Steps of a batch go on with
        what was emitted. It may give (tokens, logprobs [B, K + 1]): of the distribution that it draws from. Where it has an
        argument `parents` [M], the place of each draft's parent among its request's, -1 behind the committed tokens, one case
        has trees, for any exact rule without draft probabilities; K is their depth there.
    tv: the total variation distance that is to be found with 99 % probability; n is chosen by it. Cases with large
        vocabularies look for grosser faults, and say so.
    seed: of everything that the audit draws. cases: a list of cases instead of its own.
    alpha: the probability that a sound callable is accused, over all cases and tests.
    distribution: of samplers with filters that this module lacks (kind 'sample'): distribution(logits [G, V], params) ->
        the probabilities [G, V] that the sampler is meant to have.
    ranges: what the callable takes, as {'temperature': (0.01, 2.0)}, (least, largest); temperature 0 and values that switch a
        parameter off are always taken. Rows beyond are left out, which a note counts. one_hot: of verifiers, False if drafts
        without probabilities are not taken.
    profile: 'quick' (60 seconds of CPU: every regime of regimes.py once, then the finer cases as far as time goes; never
        'inconclusive' where every regime was seen), 'full' (half an hour), 'soak' (eight hours).
    time_limit: seconds of one call; time_budget: of all, in place of the profile's, by the clock on the wall; n_max: draws of one case; failures_max: stop after so many.
    emits: of verifiers, 'any' number of tokens a step, of which `but` says what is lost to chain verification of the same drafts;
        or 'chain': fewer than that is a failure.
    reproducible: demand that a token is made by its row, parameters and seed alone: the same in an equal call, in any batch and (kind
        'sample', of a callable that can be pickled) in another process, and that seeds which differ in one bit draw other streams.
    processes: forked ones that share the cases, for slow callables that bear a fork; failures_max counts in each.
    progress: gets a line every 30 seconds; without it they go to standard error. An interrupt (Ctrl-C) ends the audit, and it
        returns what it has found so far.
    report: a file for one HTML page of what was found, with the failing row drawn.
    Returns a CallableAudit: verdict 'consistent', 'biased', 'inconclusive' or 'error', sentence, failures, n.
    """
    if kind not in KINDS:
        raise Error(f"kind: is {kind!r}; expected one of {', '.join(KINDS)}")
    in_unit, positive, some = (lambda x: 0.0 < x < 1.0), (lambda x: x > 0.0), (lambda x: int(x) == x >= 1)
    for name, value, holds, expected in (
            ("tv", tv, in_unit, "a number in (0, 1)"), ("alpha", alpha, in_unit, "a number in (0, 1)"),
            ("time_limit", time_limit, positive, "seconds above 0"), ("time_budget", 0.0 if time_budget is None else time_budget, lambda x: x >= 0.0, "seconds, 0 or more"),
            ("n_max", n_max, some, "1 or more"), ("failures_max", failures_max, some, "1 or more"), ("processes", processes, some, "1 or more"),
            ("seed", seed, lambda x: int(x) == x >= 0, "0 or more")):
        try:
            right = bool(holds(value))
        except (TypeError, ValueError, OverflowError):
            right = False
        if not right:
            raise Error(f"{name}: is {value!r}; expected {expected}")
    if shards is not None and not (kind == "sample" and isinstance(shards, int) and 2 <= shards <= 64):
        raise Error(f"shards: is {shards!r} with kind {kind!r}; expected 2 to 64 parts of the vocabulary, with kind 'sample'")
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
            raise Error(f"cases: has {type(case).__name__}; expected {' or '.join(of.__name__ for of in KINDS[kind])}, as kind is {kind!r}")
    chosen_profile = profile_of(profile)
    clock = Clock(chosen_profile.is_cpu and time_budget is None)
    auditor = Auditor(sampler, kind, tv, int(seed), alpha, time_limit,
                      chosen_profile.seconds if time_budget is None else time_budget, clock, chosen_profile, n_max, failures_max,
                      distribution, checked(ranges), one_hot, shards)
    signs = Progress(progress)
    clock.each = lambda seconds: signs(lambda: auditor.status(seconds))
    chosen = auditor.cases(chosen)
    sweeps = [] if cases is not None else auditor.sweeps()
    rest = 1.0 - (FIRST_SHARE + REQUEST_SHARE + FORM_SHARE if sweeps else 0.0) - (LATER_SHARE if len(sweeps) > 1 else 0.0)
    share = rest * alpha / max(1, len(chosen))
    broken = auditor.unreproduced() if reproducible else ""
    found = Found(notes=auditor.notes)
    if processes == 1:
        found.add(auditor.run(chosen, share, sweeps))
    else:
        parts = [[dataclasses.replace(plan, entries=plan.entries[i::processes]) for plan in sweeps] for i in range(processes)]
        for part in in_processes([lambda i=i: auditor.run(chosen[i::processes], share, parts[i], i == 0) for i in range(processes)]):
            found.add(part)
    if shards is not None and not found.failures:
        found.readings = [*found.readings, auditor.split()]
    if broken:
        found.failures.append(Failure("not_reproducible", None, broken, "", ROWS, None))
    but = pace_of(found.pace) or found.stops
    if but and emits == "chain":
        found.failures.append(Failure("emits_fewer", None, f"the verifier {but}", "", int(found.pace[0]), None))
    verdict = verdict_of(found.failures, found.results, chosen_profile.is_open or not sweeps)
    audit = CallableAudit(kind, verdict, "", found.failures, found.n, alpha, tv, clock(), found.results, found.notes, profile, but,
                          [] if found.failures else found.readings)
    audit = dataclasses.replace(audit, sentence=sentence_of(audit) + (f"; {auditor.interrupted}" if auditor.interrupted else ""))
    if report is not None:
        with open(report, "w", encoding="utf-8") as file:
            file.write(page_of(audit, auditor.driver, auditor.seed))
    return audit


def run_case(sampler: Callable[..., Any], case: Any, n: int, *, seed: int = 0, alpha: float = 1e-6,
             time_limit: float = 60.0, distribution: Callable[..., Any] | None = None, before: Any = None,
             shards: int | None = None) -> CaseResult:
    """One case again, with n draws, steps or rows: what the snippet of a failure calls. before: a case of which a call is made
    first. shards: as of audit_callable."""
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
