"""The callable under audit: what it takes of cases, and what it answers to single calls."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ..._core import Error
from ..cases import rows
from ..cases.constrained import ConstrainedCase, constrained_cases
from ..cases.filter_cases import FilterCase, filter_case_of, filter_cases
from ..cases.grammars import Matcher, evens
from ..cases.ranges import Ranges, within
from ..cases.sample_cases import SampleCase, params_of, sample_cases, step_case
from ..cases.sample_sweep import sample_sweep
from ..cases.verify_cases import VerifyCase, endpoint_case, verify_cases
from ..cases.verify_sweep import StepsCase, verify_sweep
from ..evidence.readings import FilterOrder, filter_order_of, readings_of, repeats, tokens_of_run
from .drive import CallFailure, Driver, Params, drawn_of, numbers_of
from .profiles import QUICK, Clock
from .reproducible import in_another_process, probes, unreproduced
from .schedule import SMALLEST_BATCH, Trial, run_of


def is_bare(case: Any) -> bool:
    """Has its drafts no probabilities?"""
    if isinstance(case, (VerifyCase, ConstrainedCase)):
        return case.drafter is None and max(case.draft_lens if isinstance(case, VerifyCase) else case.lens) > 0
    return isinstance(case, StepsCase) and (case.one_hot or case.fixed is not None)


class Callee:
    def __init__(self, driver: Driver, kind: str, seed: int, clock: Clock, deadline: float, ranges: Ranges,
                 one_hot: bool) -> None:
        self.driver, self.kind, self.seed, self.clock, self.deadline = driver, kind, seed, clock, deadline
        self.ranges, self.one_hot = ranges, one_hot
        self.left_out = 0
        self.notes: list[str] = []
        self.with_min_p = False
        self.last: Any = None  # the case before

    def cases(self, given: list[Any] | None) -> list[Any]:
        """What the callable takes of the cases given, or of its own."""
        return [case for case in map(self.taken, self._every_case() if given is None else given) if case is not None]

    def taken(self, case: Any) -> Any:
        """What of a case the callable takes; None if nothing."""
        taken = None if is_bare(case) and not self.one_hot else within(case, self.ranges)
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
        # of ties and of rows with nothing to draw it says one thing of several
        if self.driver.distribution is not None:
            cases = [case for case in cases if not case.readings and not case.may_raise]
        if self.grows():
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

    def probe_case(self) -> Any:
        logits, source = rows.normal(SMALLEST_BATCH, 33, 1.0, 1), f"rows.normal({SMALLEST_BATCH}, 33, 1.0, 1)"
        params = params_of(SMALLEST_BATCH, temperature=1.0, top_k=0, top_p=1.0)
        if self.kind == "verify":  # no drafts: the bonus token of each row
            return StepsCase("probe", logits, np.zeros((0, 33), np.float32), np.zeros(SMALLEST_BATCH, np.int64), params,
                             source)
        if self.kind == "filter":
            return FilterCase("probe", logits, source, params)
        return SampleCase("probe", logits, source, params, batch=SMALLEST_BATCH)

    def _reads_min_p(self) -> bool:
        try:
            run_of(self.driver, self.probe_case(), self.seed).draw(1)
        except CallFailure:
            pass  # the cases say what is wrong
        self.last = self.probe_case()
        return "min_p" in self.driver.read or ("min_p" not in self.driver.refused
                                               and any(map(self._heeds_min_p, (1.0, 0.95))))

    def _heeds_min_p(self, top_p: float) -> bool:
        """For a callable that copies its parameters before it looks: does min_p of 1 leave little but the likeliest
        token? With a
        top_p too: without other filters a callable may skip it."""
        case = self.probe_case()
        size = 16 * SMALLEST_BATCH
        logits = np.repeat((case.target if self.kind == "verify" else case.logits)[:1], size, axis=0)
        rows = {"target": logits, "lens": np.zeros(size, np.int64)} if self.kind == "verify" else {"logits": logits}
        case = dataclasses.replace(case, params=params_of(size, temperature=1.0, top_k=0, top_p=top_p, min_p=1.0),
                                   **rows, **({"batch": size} if self.kind == "sample" else {}))
        run = run_of(self.driver, case, self.seed)
        try:
            run.draw(1)
        except CallFailure:
            return False
        if self.kind == "filter":
            return bool(np.isfinite(run.left).mean() < 0.5)
        drawn = run.outputs[0][:, 0] if self.kind == "verify" else run.samples[0]
        # also where it is another token that is left
        share = np.unique(drawn, return_counts=True)[1].max() / len(drawn)
        return bool((drawn == logits[0].argmax()).mean() > 0.35 or share > 0.9)  # of probability 0.18 without

    def trial(self, entry: Any, share: float, again: int) -> Trial | None:
        """None where the callable does not take the case."""
        case = self.taken(entry.make())
        if isinstance(case, SampleCase) and self.kind == "filter":
            case = filter_case_of(case)
        if case is None:
            return None
        n = case.logits.shape[0] if isinstance(case, FilterCase) else entry.n
        return Trial(case, run_of(self.driver, case, self.seed + 7919 * again), share, n, n, self.clock)

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

    def drawn(self, case: Any) -> np.ndarray | None:
        """What came in one call; None where the callable does not take it, or time is over."""
        if self.clock() >= self.deadline or self.taken(case) is not case:
            return None
        run = run_of(self.driver, case, self.seed)
        try:
            run.draw(1)
        except (CallFailure, Error):
            return None
        return tokens_of_run(run)

    def called(self, logits: np.ndarray, params: dict[str, np.ndarray], seeds: np.ndarray) -> np.ndarray | None:
        """A token of each row; None as in drawn. A constrained sampler has a forbidden token of more weight beside each
        one; where that comes, it stands behind the vocabulary."""
        if self.clock() >= self.deadline:
            return None
        given: tuple[Any, ...]
        size, vocab_size = logits.shape
        if self.kind == "constrained":
            wide = np.zeros((size, 2 * vocab_size + 1), logits.dtype)
            wide[:, :-1:2], wide[:, 1::2] = logits, np.nanmax(logits, axis=1, keepdims=True) + 2
            given = (np.zeros(0, np.int32), None, wide, np.zeros(size, np.int64), Params(params, size), seeds,
                     [Matcher(evens(wide.shape[1])) for _ in range(size)])
        elif self.kind == "verify":
            given = (np.zeros(0, np.int32), np.zeros((0, vocab_size), np.float32), logits, np.zeros(size, np.int64),
                     Params(params, size), seeds)
        else:
            given = (logits, Params(params, size), seeds)
        try:
            tokens = drawn_of(self.driver(*given), (size,) if self.kind == "sample" else (size, 1),
                              "tokens")[0].reshape(-1)
        except (CallFailure, Error):
            return None
        if self.kind != "constrained":
            return tokens
        return np.where(tokens < 0, tokens, np.where(tokens % 2 == 0, tokens // 2, vocab_size))

    def left(self, logits: np.ndarray, params: dict[str, np.ndarray], _: np.ndarray) -> np.ndarray | None:
        """What a filter leaves of each row."""
        if self.clock() >= self.deadline:
            return None
        try:
            value = self.driver(logits, Params(params, len(logits)))
            return numbers_of(value, logits.shape, "filtered logits").astype(np.float32)
        except (CallFailure, Error):
            return None

    def stepped(self, logits: np.ndarray, params: dict[str, np.ndarray], seeds: np.ndarray,
                drafts: np.ndarray) -> np.ndarray | None:
        """What a verifier emits for drafts [B, K] of equal probability each, with one row behind each."""
        if self.clock() >= self.deadline:
            return None
        (size, count), vocab_size = drafts.shape, logits.shape[1]
        q = np.full((size * count, vocab_size), 1.0 / vocab_size, logits.dtype)
        given = (drafts.ravel().astype(np.int32), q, np.repeat(logits, count + 1, axis=0),
                 count * np.arange(1, size + 1), Params(params, size), seeds)
        try:
            return drawn_of(self.driver(*given), (size, count + 1), "output tokens [B, K + 1]")[0]
        except (CallFailure, Error):
            return None

    def first(self, logits: np.ndarray, params: dict[str, np.ndarray], seeds: np.ndarray) -> np.ndarray | None:
        """The first token that a verifier emits of a request with one draft."""
        drafts = np.random.default_rng(int(seeds[0])).integers(0, logits.shape[1], (len(logits), 1))
        out = self.stepped(logits, params, seeds, drafts)
        return None if out is None else out[:, 0]

    def filter_order(self) -> FilterOrder | None:
        return filter_order_of(self.kind, self.drawn)

    def readings(self) -> list[str]:
        """Of a callable that was found sound."""
        if self.kind == "constrained" or self.driver.distribution is not None:
            return []
        out = readings_of(self.kind, self.with_min_p, self.drawn)
        return out + repeats(self.called) if self.kind != "filter" and not self.ranges else out

    def unreproduced(self) -> str:
        """What `reproducible` demands and the callable does not hold, in words."""
        found = unreproduced(self.called)
        if found or self.kind != "sample":
            return found
        logits, params, seeds = probes()
        here, there = self.called(logits, params, seeds), in_another_process(self.driver.sampler,
                (logits, params, seeds), self.driver.time_limit)
        if here is None or there is None:
            self.notes.append("another process was not tried: the callable cannot be pickled, or does not run there; "
                              "expected a function of a module, not of a script or a notebook")
            return ""
        differ = int((here != there).sum())
        return f"{differ} of {len(here)} tokens are others with the same seeds in another process" if differ else ""

    def split(self) -> str:
        """Of a callable that gets parts: do its tokens depend on how many there are? Rows have ties at the cuts."""
        shards, size = self.driver.shards, 64
        logits = np.round(2.0 * rows.normal(size, 33, 1.0, 2)).astype(np.float32) / np.float32(2.0)
        params = params_of(size, temperature=1.0, top_k=np.arange(size) % 4 * 3,
                           top_p=np.where(np.arange(size) % 2, 0.8, 1.0))
        drawn = []
        for self.driver.shards in (1, shards):
            drawn.append(self.called(logits, params, np.arange(size, dtype=np.uint64)))
        if drawn[0] is None or drawn[1] is None:
            return "parts: it was not seen whether tokens depend on their number"
        differ = int((drawn[0] != drawn[1]).sum())
        return (f"parts: {differ} of {size} tokens differ between 1 and {shards} parts, so that another number of "
                "devices is another text"
                if differ else f"parts: the same tokens from 1 and {shards} parts")

    def grows(self) -> bool:
        """Can it know of earlier calls for a seed: by `steps`, or since equal calls give other tokens?"""
        if self.driver.takes_steps:
            return True
        drawn = []
        for _ in range(2):
            run = run_of(self.driver, self.probe_case(), self.seed)
            try:
                run.draw(1)
            except CallFailure:
                return False
            drawn.append(run.outputs[0] if self.kind == "verify" else run.samples[0])
        return not np.array_equal(drawn[0], drawn[1])
