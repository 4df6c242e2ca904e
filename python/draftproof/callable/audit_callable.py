"""audit_callable: drives a sampler, a filter or a verifier through cases of its own and says what it found."""

from __future__ import annotations

import dataclasses
import os
from typing import Any, Callable

from .._core import Error
from .._progress import Progress
from .auditor import FIRST_SHARE, FORM_SHARE, LATER_SHARE, REQUEST_SHARE, Auditor, Found
from .cases.constrained import ConstrainedCase
from .cases.filter_cases import FilterCase
from .cases.ranges import Ranges, checked
from .cases.request_cases import RequestCase
from .cases.sample_cases import SampleCase
from .cases.verify_cases import VerifyCase
from .cases.verify_sweep import StepsCase, pace_of
from .drive.callee import Callee
from .drive.drive import CallFailure, Driver
from .drive.processes import in_processes
from .drive.profiles import CEILING, Clock, profile_of
from .drive.reproducible import ROWS
from .drive.schedule import run_of
from .outcome import CallableAudit, CaseResult, Failure, sentence_of, verdict_of
from .page import page_of

#: The kinds of callables, each with the types of its cases.
KINDS: dict[str, tuple[type, ...]] = {"sample": (SampleCase, RequestCase), "filter": (FilterCase, RequestCase),
                                      "verify": (VerifyCase, StepsCase, RequestCase), "constrained": (ConstrainedCase,)}


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
    profile: 'quick' (60 seconds of CPU, half an hour of the wall on a busy machine at most: every regime of regimes.py
        once, then the finer cases as far as time goes; never 'inconclusive' where every regime was seen), 'full' (half
        an hour), 'soak' (eight hours).
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
    clock.calls_queued = lambda: auditor.driver.queued
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
    if clock.is_at_ceiling and clock() >= deadline:
        found.notes.append(f"a busy machine: the audit ended after {CEILING * deadline:.0f} s of the wall")
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
