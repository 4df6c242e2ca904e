"""The sweep of a verifier: calls whose requests each have rows, drafts and parameters of their own.

The rows along a draft are given, not a model: of each place a few tokens are possible, others than in the places around
it, so that a wrong row, a neighbour's parameters or a filter that is skipped gives impossible tokens. A lossless
verifier's emitted string, completed by uniform numbers, has independent uniform ranks at every place, whatever its
decisions are; bets on those need no string twice.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from ... import _sampling
from ..drive.drive import Driver, Params, drawn_of
from ..evidence import evidence, logprobs
from ..evidence.sample_judge import Judgement
from . import regimes
from .sample_cases import OF_PEERS, OFF, SampleCase, params_of
from .sample_sweep import PEAKS, columns, heated, just_beside, min_p_beside, peaked, probe


@dataclasses.dataclass(frozen=True, eq=False)
class StepsCase:
    """target: logits [N, V], of each request its drafts' rows, then the bonus row; drafts: probabilities [M, V] that
    drafts are drawn from; lens: [B]; params: [B]. one_hot: the callable does not get `drafts`. fixed: [M] drafts
    instead of drawn ones (then one_hot). Every call is the same batch with other drafts and seeds. taken: which
    requests of `source` these are; None: all."""

    name: str
    target: np.ndarray
    drafts: np.ndarray | None
    lens: np.ndarray
    params: dict[str, np.ndarray]
    source: str
    seeds: str = "consecutive"
    one_hot: bool = False
    fixed: np.ndarray | None = None
    n_max: int | None = None
    taken: np.ndarray | None = None
    most: int | None = None  # drafts of a request, where the case has more

    @property
    def vocab_size(self) -> int:
        return self.target.shape[1]

    @property
    def batch(self) -> int:
        return len(self.lens)

    @property
    def of_row(self) -> np.ndarray:
        """[N]: the request of each row."""
        return np.repeat(np.arange(self.batch), self.lens + 1)

    def take(self, keep: npt.ArrayLike) -> StepsCase:
        """Some requests alone. keep: their indices."""
        keep = np.asarray(keep, np.int64)
        rows = np.concatenate([np.flatnonzero(self.of_row == b) for b in keep])
        of_draft = np.repeat(np.arange(self.batch), self.lens)
        drafts = np.concatenate([np.flatnonzero(of_draft == b) for b in keep])
        return dataclasses.replace(self, target=self.target[rows],
                                   drafts=None if self.drafts is None else self.drafts[drafts],
                                   lens=self.lens[keep],
                                   params={name: value[keep] for name, value in self.params.items()},
                                   fixed=None if self.fixed is None else self.fixed[drafts],
                                   taken=keep if self.taken is None else self.taken[keep])

    def first_drafts(self, most: int) -> StepsCase:
        """Of each request so many drafts at most; the row behind them is its bonus row."""
        place = np.arange(len(self.target)) - np.repeat(np.cumsum(self.lens + 1) - (self.lens + 1), self.lens + 1)
        is_draft = place < np.repeat(self.lens, self.lens + 1)
        keep = place[is_draft] < most
        return dataclasses.replace(self, target=self.target[place <= most],
                                   drafts=None if self.drafts is None else self.drafts[keep],
                                   lens=np.minimum(self.lens, most),
                                   fixed=None if self.fixed is None else self.fixed[keep], most=most)


class StepsRun:
    """Steps of one case, which grow from call to call."""

    def __init__(self, driver: Driver, case: StepsCase, seed: int) -> None:
        self.driver, self.case, self.seed, self.calls = driver, case, seed, 0
        self.outputs: list[np.ndarray] = []
        self.drafts: list[np.ndarray] = []
        self._seeds = SampleCase("", case.target[:1], "", {}, batch=case.batch, seeds=case.seeds)
        self._cumulative: np.ndarray | None = None
        self.pace = np.zeros(len(PACE))
        self.stops = ""
        self.wrong = np.zeros(0, np.int64)
        self.logprobs: list[np.ndarray] = []  # where the callable gives them

    @property
    def n(self) -> int:
        return self.calls * self.case.batch

    def seeds_of(self, call: int) -> np.ndarray:
        return self._seeds.seeds_of(call, self.seed)

    def _drawn(self, rng: np.random.Generator) -> np.ndarray:
        case = self.case
        if case.fixed is not None:
            return case.fixed
        if self._cumulative is None:
            assert case.drafts is not None
            self._cumulative = np.cumsum(case.drafts, axis=1, dtype=np.float64)
        total = self._cumulative
        u = rng.random(len(total)) * total[:, -1]
        return np.array([np.searchsorted(row, x, side="right") for row, x in zip(total, u)], np.int64)

    def call(self) -> None:
        case = self.case
        drafts = self._drawn(np.random.default_rng([self.seed, self.calls, 4])).astype(np.int32)
        probs = None if case.one_hot or case.fixed is not None else case.drafts
        longest = int(case.lens.max(initial=0))
        value = self.driver(drafts, probs, case.target, np.cumsum(case.lens).astype(np.int64),
                            Params(case.params, case.batch), self.seeds_of(self.calls))
        out, given = drawn_of(value, (case.batch, longest + 1), "output tokens [B, K + 1]")
        self.outputs.append(out)
        self.logprobs += [] if given is None else [given]
        self.drafts.append(drafts)
        self.calls += 1

    def draw(self, n: int) -> None:
        while self.n < n:
            self.call()

    def judge(self, alpha: float) -> Judgement:
        found = judge_steps(self, alpha)
        if found.biased or len(self.logprobs) != self.calls:
            return found
        case, steps = self.case, steps_of(self)
        at = np.nonzero(np.arange(steps.out.shape[1])[None, :] < steps.count[:, None])
        params = {name: value[case.of_row] for name, value in case.params.items()}
        return logprobs.judged(self.driver, case.target, case.target, params, steps.row[at], steps.out[at],
                               np.concatenate(self.logprobs)[at]) or found


#: How many tokens were emitted beside what chain verification of the same drafts would: sums over steps.
PACE = ("steps", "emitted", "expected", "variance", "accepted whole", "of those without a bonus token")


def _pace(run: StepsRun | OneCall, steps: Steps, rows: evidence.Rows) -> np.ndarray:
    case, width = run.case, steps.out.shape[1]
    is_draft = steps.drafts >= 0
    x = np.where(is_draft, steps.drafts, 0)
    p = rows.usual[steps.row, x]
    if case.drafts is not None and not case.one_hot:
        start = np.cumsum(case.lens) - case.lens
        at = np.tile(start[:, None], (run.calls, 1)) + np.arange(width)[None, :]
        q = case.drafts[np.where(is_draft, at, 0), x] if len(case.drafts) else np.ones(x.shape)
    else:
        q = np.ones(x.shape)
    # P(accepted >= i + 1)
    stands = np.cumprod(np.where(is_draft, np.minimum(1.0, p / np.maximum(q, 1e-30)), 0.0), axis=1)
    mean = stands.sum(axis=1)
    variance = ((2.0 * np.arange(width) + 1.0) * stands).sum(axis=1) - mean * mean
    everything = np.arange(len(x))
    reached = (steps.count[:, None] > np.arange(width)[None, :] + 1).sum(axis=0)  # drafts that stood, by place
    never = np.flatnonzero((reached == 0) & (stands.sum(axis=0) >= 30.0))  # of a sound chain with a chance of e^-30
    if never.size and not reached[never[0]:].any():
        run.stops = (f"never emits more than {never[0] + 1} tokens in {case.name!r}, where chain verification would in "
                     f"{stands[:, never[0]].sum():.0f} of {len(x)} steps")
    last = np.maximum(steps.lens - 1, 0)
    whole = (steps.lens > 0) & (steps.count >= steps.lens) & (steps.out[everything, last] ==
                                                              steps.drafts[everything, last])
    return np.array([len(x), steps.count.sum(), len(x) + mean.sum(), variance.sum(), whole.sum(),
                     (whole & (steps.count == steps.lens)).sum()])


def pace_of(pace: np.ndarray) -> str:
    """What a verifier leaves on the table, in words; empty where it emits what chain verification does, or more. Six
    standard
    deviations: one of 10^9 sound verifiers."""
    steps, emitted, expected, variance, whole, bare = pace
    if steps < 1 or emitted >= expected - 6.0 * np.sqrt(max(variance, 1.0)):
        return ""
    why = f"; behind {bare:.0f} of {whole:.0f} drafts that were accepted whole it emits no bonus token" if bare else ""
    return (f"emits {emitted / steps:.4g} tokens a step where chain verification of the same drafts emits "
            f"{expected / steps:.4g}{why}")


@dataclasses.dataclass
class Steps:
    """What was emitted, by request and step. out: [n, W]; drafts: [n, W], -1 beyond; last: [n], the place of the last
    token;
    row: [n, W], the row of each place."""

    out: np.ndarray
    drafts: np.ndarray
    lens: np.ndarray
    count: np.ndarray
    row: np.ndarray


def drafts_of(run: StepsRun | OneCall) -> np.ndarray:
    """[n, W], of every step, -1 beyond."""
    width = run.outputs[0].shape[1]
    out = np.full((run.calls, run.case.batch, width), -1, np.int64)
    out[:, np.arange(width)[None, :] < run.case.lens[:, None]] = np.stack(run.drafts)
    return out.reshape(-1, width)


def steps_of(run: StepsRun | OneCall) -> Steps:
    case = run.case
    out = np.concatenate(run.outputs)
    width = out.shape[1]
    place = np.arange(width)[None, :]
    lens = np.tile(case.lens, run.calls)
    first = np.cumsum(case.lens + 1) - (case.lens + 1)
    return Steps(out, drafts_of(run), lens, (np.cumprod(out != -1, axis=1)).sum(axis=1),
                 np.tile(first[:, None] + np.minimum(place, case.lens[:, None]), (run.calls, 1)))


class OneCall:
    """What judge_steps reads of a run, of steps that were made otherwise; wrong: it leaves there which steps tell of a
    fault."""

    def __init__(self, case: StepsCase, seed: int) -> None:
        self.case, self.seed, self.calls, self.n = case, seed, 1, case.batch
        self.outputs: list[np.ndarray] = []
        self.drafts: list[np.ndarray] = []
        self.pace, self.stops, self.wrong = np.zeros(len(PACE)), "", np.zeros(0, np.int64)


#: Bets on steps beside those of every verifier: (steps, rows, what was emitted outside of zones, places of completed
#: strings).
MoreBets = Callable[[Steps, evidence.Rows, np.ndarray, np.ndarray], Iterable[evidence.Bet]]


def judge_steps(run: StepsRun | OneCall, alpha: float, more: MoreBets | None = None) -> Judgement:
    """Parameters of the case beyond those of rows tell classes of requests apart."""
    case, steps = run.case, steps_of(run)
    out, count, width = steps.out, steps.count, steps.out.shape[1]
    place = np.arange(width)[None, :]
    emitted = place < count[:, None]

    def refuted(name: str, wrong: np.ndarray, sentence: str) -> Judgement:
        request = int(wrong[0] % case.batch)
        run.wrong = wrong
        return Judgement(True, name, sentence, run.n, len(wrong) / run.n, None, request)

    malformed = np.flatnonzero(((out != -1) & ~emitted).any(axis=1) | ((count == 0) & (steps.lens == 0)) |
                               (count > steps.lens + 1))
    if malformed.size:
        return refuted("well_formed", malformed,
                       f"{malformed.size} of {run.n} steps emit nothing, too much, or a token after -1, first "
                       f"request {malformed[0] % case.batch}: {out[malformed[0]].tolist()}")
    before = emitted & (place < count[:, None] - 1)
    strange = np.flatnonzero((before & (out != steps.drafts)).any(axis=1))
    if strange.size:
        b = strange[0]
        return refuted("not_a_draft", strange,
                       f"{strange.size} of {run.n} steps emit tokens before their last one that are no drafts, first "
                       f"request {b % case.batch}: {out[b, :count[b]].tolist()} after drafts "
                       f"{steps.drafts[b, :steps.lens[b]].tolist()}")
    params = {name: value[case.of_row] for name, value in case.params.items() if name in OFF or name in OF_PEERS}
    rows = evidence.Rows.of(case.target, params)
    inside = emitted & (out >= 0) & (out < case.vocab_size)
    ids = np.where(inside, out, 0)
    chance = np.where(inside, rows.probabilities[steps.row, ids], 0.0)
    zone = inside & rows.zone[steps.row, ids]
    impossible = emitted & (chance == 0.0) & ~zone
    wrong = np.flatnonzero(impossible.any(axis=1))
    if wrong.size:
        return _impossible(run, steps, impossible, wrong, refuted)
    run.pace = _pace(run, steps, rows)
    bets = list(_bets(run, steps, rows, emitted & ~zone, zone))
    if more is not None:
        bets += more(steps, rows, emitted & ~zone, (place <= steps.lens[:, None]) & ~zone)
    best = evidence.best_bet(bets, alpha)
    if best is None:
        first = emitted[:, 0] & ~zone[:, 0] & ((rows.probabilities > 0.0).sum(axis=1) > 1)[steps.row[:, 0]]
        is_open = isinstance(run, OneCall) and first.any()  # a greedy row leaves no choice
        detectable = evidence.detectable(int(first.sum()), len(bets), alpha) if is_open else None
        return Judgement(False, "", f"{run.n} steps, no impossible token", run.n, None, detectable)
    run.wrong = best.where
    return Judgement(True, best.name, best.sentence, run.n, best.distance, None, int(best.where[0] % case.batch),
                     best.suspect)


def _impossible(run: StepsRun | OneCall, steps: Steps, impossible: np.ndarray, wrong: np.ndarray,
                refuted: Callable[..., Judgement]) -> Judgement:
    case, at = run.case, wrong[0]
    place = int(np.flatnonzero(impossible[at])[0])
    token, length, last = int(steps.out[at, place]), int(steps.lens[at]), place == int(steps.count[at]) - 1
    what = ("a token" if isinstance(run, OneCall) and not steps.lens.any() else
            "an accepted draft" if not last or token == steps.drafts[at, place] else
            "a bonus token" if place == length else "a recovered token")
    sentence = (f"{wrong.size} of {run.n} steps emit an impossible token, first {what}, {token} at place {place} of "
                f"request {at % case.batch} with {length} drafts")
    of_mask = 0 <= token < case.vocab_size and np.isneginf(case.target[steps.row[at, place], token])
    elsewhere = [f"place {i}" for i in range(length + 1) if i != place and 0 <= token < case.vocab_size and
                 case.target[steps.row[at, i], token] > case.target[steps.row[at, i]].max() - 12.0]
    if of_mask and elsewhere:
        sentence += f"; it would be possible at {elsewhere[0]}"
    return refuted("support", wrong, sentence)


def of_numbers(words: str, log_e: float, a: np.ndarray, b: np.ndarray) -> str:
    """words; '' where a bet on the same requests' tokens [n] a call further apart wins too: it is rows then, not random
    numbers, that they share."""
    return words if log_e <= 0.0 or evidence.pairs_log_e(a, b) <= 1.0 else ""


def _bets(run: StepsRun | OneCall, steps: Steps, rows: evidence.Rows, usable: np.ndarray, zone: np.ndarray) -> Any:
    """On ranks of the completed strings."""
    case, rng = run.case, np.random.default_rng([run.seed, 5])
    width = steps.out.shape[1]
    by_rank, by_id = rng.random(steps.out.shape), rng.random(steps.out.shape)
    certain = np.ones(steps.out.shape, bool)
    request = np.arange(len(steps.out)) % case.batch
    params = {name: value[request] for name, value in case.params.items()}
    cells = np.nonzero(usable)
    found = evidence.ranks(rows, steps.row[cells], steps.out[cells], rng)
    by_rank[cells], by_id[cells], certain[cells] = found.by_rank, found.by_id, found.certain
    tail = int(found.tail.argmin()) if found.tail.size else -1
    if tail >= 0:
        yield evidence.Bet("tail",
                           f"a token came whose like have a probability of {found.tail[tail]:.2g} together, at place "
                           f"{cells[1][tail]}", -float(np.log(found.tail[tail] * found.tail.size)),
                           cells[0][tail:tail + 1])
    open_row = (rows.probabilities > 0.0).sum(axis=1) > 1
    reach = (np.arange(width)[None, :] <= steps.lens[:, None]) & open_row[steps.row] & ~zone
    everything = np.arange(len(steps.out))
    # of places in order: did the draft, with what chance, in which steps
    stood: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for place in range(width):
        here = everything[reach[:, place]]
        if here.size < 8:
            continue
        for name, u in (("ranks", by_rank), ("token_ids", by_id)):
            yield evidence.Bet(name,
                               f"{name.replace('_', ' ')} of the tokens at place {place} of completed strings do not "
                               "follow the "
                               f"target ({here.size} steps)", evidence.uniform_log_e(u[here, place]), here,
                               evidence.distance(u[here, place]))
        of = {name: value[here] for name, value in params.items()}
        for text, chosen in evidence.classes(of, request[here], case.batch):
            if chosen.sum() >= 16:
                u = by_rank[here[chosen], place]
                yield evidence.Bet("ranks",
                                   f"{text}: tokens at place {place} of completed strings do not follow the target "
                                   f"({chosen.sum()} steps)", evidence.uniform_log_e(u), here[chosen],
                                   evidence.distance(u))
        if case.fixed is not None and place < width - 1:
            chance = rows.probabilities[steps.row[here, place], steps.drafts[here, place]]
            hits = by_id[here, place] < chance  # it is the first token
            if case.fixed[0] == 0 and here.size == (chance < 1.0).sum():
                yield evidence.Bet("accepted",
                                   f"the draft at place {place} stood in {int(hits.sum())} of {here.size} completed "
                                   "strings, where "
                                   f"{chance.sum():.4g} are expected", evidence.marked_log_e(hits, chance), here,
                                   abs(float(hits.mean() - chance.mean())))
                stood.append((hits, chance, here))
        if place + 1 < width:
            both = here[reach[here, place + 1]]
            if both.size >= 64:
                log_e = evidence.pairs_log_e(by_id[both, place], by_id[both, place + 1])
                first = both[np.isin(both + case.batch, both)]
                suspect = of_numbers(f"random numbers at places {place} and {place + 1} of a request depend on each "
                                     "other", log_e, by_id[first, place], by_id[first + case.batch, place + 1])
                yield evidence.Bet("pairs",
                                   f"tokens at places {place} and {place + 1} of a string depend on each other",
                                   log_e, both, suspect=suspect)
    for bound in (2, 4, 8, 16):
        if len(stood) > bound + 1:
            hits, chance, here = (np.concatenate(column) for column in zip(*stood[bound:]))
            yield evidence.Bet("accepted",
                               f"drafts from place {bound} on stood in {int(hits.sum())} of {here.size} places of "
                               "completed strings, "
                               f"where {chance.sum():.4g} are expected", evidence.marked_log_e(hits, chance), here,
                               abs(float(hits.mean() - chance.mean())))
    if case.fixed is not None and (rows.probabilities[steps.row[:, 0], steps.drafts[:, 0]] == 0.5).all():
        fell = steps.out[:, 0] == steps.drafts[:, 0]
        yield from evidence.bets_on_coins(fell)
        yield evidence.bet_on_places(fell.astype(np.int8), 2, case.batch)
    if not (reach[:, 0].all() and len(set(case.lens.tolist())) == 1):
        return
    for lag in dict.fromkeys((1, 2, 16, 32, 64, case.batch)):
        for a in range(min(2, width)):
            for b in range(min(2, width)):
                if lag < len(by_id) and reach[:, a].all() and reach[:, b].all():
                    log_e, further = evidence.pairs_log_e(by_id[:-lag, a], by_id[lag:, b]), lag + case.batch
                    suspect = of_numbers(f"random numbers at place {a} of a request come again at place {b} of the "
                                         f"request {lag} behind it" +
                                         (" (in the next call)" if lag == case.batch else ""),
                                         log_e, by_id[:-further, a], by_id[further:, b])
                    yield evidence.Bet("correlation_requests",
                                       f"the token at place {b} of a request depends on that at place {a} of the "
                                       f"request {lag} before it" +
                                       (" (the call before)" if lag == case.batch > 64 else ""),
                                       log_e, everything[lag:], suspect=suspect)
    flat = np.ptp(case.target, axis=1).max() == 0.0
    if flat and (steps.count == 1).all():
        yield from evidence.bets_on_flat(steps.out[:, 0], case.vocab_size,
                                         (1, 2, 16, 32, 64, 128, case.batch, case.batch + 1))
        yield evidence.bet_on_places(steps.out[:, 0], case.vocab_size, case.batch)


@dataclasses.dataclass(frozen=True)
class StepsEntry:
    name: str
    n: int
    make: Callable[[], StepsCase]
    has_rng: bool = False
    is_bare: bool = False  # its drafts have no probabilities
    separates: bool = True  # its steps may tell suspects apart


def rows_of(requests: Sequence[dict[str, Any]], lens: Sequence[int], vocab_size: int, seed: int, close: float = 0.6,
            few: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """(target logits [N, V], draft probabilities [M, V]). A request without filters has all tokens masked but `few`;
    close: the share of a draft row's mass that is on the target's tokens in their proportion, the rest is on tokens
    that it drops."""
    rng = np.random.default_rng([seed, vocab_size, 9])
    target, of_row = [], []
    for b, (request, length) in enumerate(zip(requests, lens)):
        for i in range(length + 1):
            row = probe(vocab_size, seed=seed * 1_000_003 + b * 101 + i, **request)
            filtered = 0 < request.get("top_k", 0) < vocab_size or request.get("top_p",
                    1.0) < 1.0 or request.get("min_p", 0.0) > 0.0
            if not filtered and vocab_size > few:
                row[rng.permutation(vocab_size)[few:]] = -np.inf
            target.append(row)
            of_row.append(b)
    logits = np.stack(target)
    params = params_of(len(requests), **columns(requests))
    p = _sampling.process_rows(logits, {name: value[of_row] for name, value in params.items()}).probabilities
    rows = np.asarray(lens) + 1
    is_draft = np.arange(len(p)) != np.repeat(np.cumsum(rows) - 1, rows)
    p = p[is_draft].astype(np.float64)
    others = np.where(p > 0.0, 0.0, rng.random(p.shape) ** 4 + 1e-3 if vocab_size < 5000 else 1.0)
    rest = others.sum(axis=1, keepdims=True)
    tilted = p * rng.uniform(0.5, 1.5, p.shape)
    tilted /= np.maximum(tilted.sum(axis=1, keepdims=True), 1e-30)
    q = np.where(rest > 0.0, close * tilted + (1.0 - close) * others / np.maximum(rest, 1e-30), tilted)
    return logits, (q / q.sum(axis=1, keepdims=True)).astype(np.float32)


class Maker:
    def __init__(self, with_min_p: bool) -> None:
        self.with_min_p = with_min_p
        self.entries: list[StepsEntry] = []

    def add(self, name: str, n: int, requests: Sequence[dict[str, Any]], lens: Sequence[int],
            make: Callable[[], tuple[np.ndarray, np.ndarray | None]] | None = None, *, vocab_size: int = 48,
            close: float = 0.6,
            few: int = 6, seeds: str = "consecutive", one_hot: bool = False, fixed: int | Sequence[int] | None = None,
            separates: bool = True) -> None:
        def built() -> StepsCase:
            target, drafts = make() if make else rows_of(requests, lens, vocab_size, len(name), close, few)
            params = params_of(len(requests), **{key: [request.get(key, OFF[key]) for request in requests]
                                                 for key in OFF if key != "min_p" or self.with_min_p})
            return StepsCase(name, target, drafts, np.asarray(lens, np.int64), params,
                             f"sweep({name!r}, {self.with_min_p})", seeds=seeds,
                             one_hot=one_hot, fixed=None if fixed is None else np.resize(fixed, sum(lens)), n_max=n)
        self.entries.append(StepsEntry(name, n, built, is_bare=one_hot or fixed is not None, separates=separates))


PLAIN: dict[str, float] = {}
GREEDY: dict[str, float] = {"temperature": 0.0}
SOME: list[dict[str, float]] = [{"top_k": 3}, {"temperature": 0.5, "top_p": 0.5}, {"temperature": 1.5}, {"top_p": 0.9},
                                {"temperature": 0.01, "top_k": 5}, {"temperature": 8.0, "top_p": 0.3}, {"top_k": 1},
                                PLAIN]


def _several(maker: Maker, batch: int) -> list[dict[str, float]]:
    """Parameters in turn."""
    some = [*SOME, GREEDY, *([{"min_p": 0.3}, {"min_p": 0.2, "temperature": 1.5}] if maker.with_min_p else [])]
    return [some[i % len(some)] for i in range(batch)]


def repeated(row: Sequence[float], count: int) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.tile(np.log(np.asarray(row)), (count, 1)).astype(np.float32)


def verify_sweep(with_min_p: bool = False) -> list[StepsEntry]:
    """The entries, those that name one feature first."""
    maker = Maker(with_min_p)
    _residuals(maker)
    _parameters(maker)
    _logits(maker)
    _ties(maker)
    _drafts(maker)
    _random_numbers(maker)
    _batches(maker)
    _vocabularies(maker)
    for batch in (2048, 4096):
        maker.add(f"batch of {batch}", batch, _several(maker, batch), [i % 2 for i in range(batch)], close=0.8)
    return maker.entries


def _residuals(maker: Maker) -> None:
    def pair(name: str, p: Sequence[float], q: Sequence[float], n: int = 512, length: int = 1) -> None:
        """One row everywhere: target p, proposal q."""
        maker.add(name, n, [PLAIN] * 64, [length] * 64,
                  lambda: (repeated(p, 64 * (length + 1)), np.tile(np.asarray(q, np.float32), (64 * length, 1))),
                  vocab_size=len(p))

    pair("a residual of one token", [0.1, 0.1, 0.1, 0.7], [0.3, 0.3, 0.3, 0.1])
    pair("the proposal on one token", [0.5, 0.5], [1.0, 0.0])
    pair("proposal and target equal but for two tokens", [0.4, 0.1, 0.3, 0.2], [0.1, 0.4, 0.3, 0.2])
    pair("a residual of one rare token", [0.98, 0.02], [1.0, 0.0], 2048)
    maker.add("a residual of 0.005", 8192, [PLAIN] * 64, [1] * 64, lambda: (repeated([0.995, 0.005], 128), None),
              vocab_size=2, fixed=0)
    pair("tokens that the target never draws", [0.9, 0.1, 0.0, 0.0], [0.1, 0.1, 0.5, 0.3])
    pair("disjoint supports", [0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.3, 0.7])
    pair("proposal equal to target", [0.4, 0.3, 0.2, 0.1], [0.4, 0.3, 0.2, 0.1], length=2)
    for length in regimes.DRAFTS[1:]:  # all are accepted
        pair(f"{length} drafts of the target itself", [0.4, 0.3, 0.2, 0.1], [0.4, 0.3, 0.2, 0.1], 64, length)
    for size in (1 << 10, 1 << 17):  # what is added to q shows where q is small: all are accepted, or half
        flat, half, batch = np.full(size, 1.0 / size), np.repeat([2.0 / size, 0.0],
                size // 2), 64 if size < 1 << 14 else 2
        for name, q in (("the target itself", flat), ("half the vocabulary", half)):
            maker.add(f"a flat proposal of {name}, V = {size}", 192 if size > 1 << 14 else 768, [PLAIN] * batch,
                      [1] * batch,
                      lambda q=q, flat=flat, batch=batch: (repeated(flat, 2 * batch),
                                                           np.tile(q.astype(np.float32), (batch, 1))), vocab_size=size)
    pair("a residual of many tokens", [0.5] + [0.5 / 64] * 64, [1.0] + [0.0] * 64, 1024)
    pair("a proposal with half the vocabulary", [1.0 / 32] * 32, [1.0 / 16] * 16 + [0.0] * 16)
    for length in (1, 2):  # of which the first draft matters
        maker.add(f"a lone request of {length} drafts", 128, [PLAIN], [length],
                  lambda length=length: (repeated([0.5, 0.5], length + 1),
                                         np.tile(np.array([1.0, 0.0], np.float32), (length, 1))), vocab_size=2)
    pair("strings of four tokens", [0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 2048, 3)
    # q is as it was drawn, whatever the target's temperature; the target is the same at both.
    maker.add("a proposal of another shape at temperatures 0.25 and 4", 3072,
              [{"temperature": 0.25}, {"temperature": 4.0}] * 32, [1] * 64,
              lambda: (repeated([0.3, 0.4, 0.3], 128) * np.repeat(np.tile(np.float32([0.25, 4.0]), 32), 2)[:, None],
                       np.tile(np.float32([0.2, 0.3, 0.5]), (64, 1))), vocab_size=3)

    def by_request() -> tuple[np.ndarray, np.ndarray]:
        """Tokens in another order for each request; the proposal has one that the target seldom draws."""
        p, q = [np.stack([np.roll(row, b) for b in range(60)]) for row in ([0.4, 0.3, 0.2, 0.1], [0.1, 0.1, 0.7, 0.1])]
        lens = np.array([2, 1, 0, 3] * 15)
        return np.log(np.repeat(p, lens + 1, axis=0)).astype(np.float32), np.repeat(q, lens, axis=0).astype(np.float32)
    maker.add("rows that differ from request to request", 480, [PLAIN] * 60, [2, 1, 0, 3] * 15, by_request,
              vocab_size=4)

    def falling() -> tuple[np.ndarray, np.ndarray]:
        """Other rows at each place: probable there, improbable before."""
        p = [np.roll([0.7, 0.2, 0.05, 0.05], i) for i in range(4)]
        q = [np.roll([0.5, 0.1, 0.2, 0.2], i) for i in range(3)]
        return np.concatenate([repeated(row, 1) for row in p] * 64), np.tile(np.asarray(q, np.float32), (64, 1))
    maker.add("rows that differ from place to place", 1024, [PLAIN] * 64, [3] * 64, falling, vocab_size=4)
    for name, close in (("drafts of which few are accepted", 0.15), ("drafts of which most are accepted", 0.97)):
        maker.add(name, 1024, [PLAIN] * 32, [3] * 32, close=close)
    maker.add("drafts without probabilities", 512, [PLAIN] * 32, [2] * 32, one_hot=True)
    maker.add("filters that keep 0.6 of a row", 4096, [{"top_k": 2}, {"top_p": 0.55}] * 32, [1] * 64,
              lambda: (repeated([0.4, 0.2, 0.15, 0.14, 0.11], 128),
                       np.tile(np.float32([0.3, 0.7, 0.0, 0.0, 0.0]), (64, 1))), vocab_size=5)
    # Tokens drafted at one place are likely at the others.
    row_of_place = np.log([[0.7, 0.1, 0.1, 0.06, 0.04], [0.3, 0.5, 0.1, 0.06, 0.04], [0.25, 0.3, 0.35, 0.06, 0.04],
                           [0.4, 0.3, 0.2, 0.06, 0.04]])
    # Behind a call whose probabilities, left in a buffer, would be read as theirs.
    maker.add("drafts without probabilities that differ from place to place", 512, [PLAIN] * 20, [3] * 20,
              lambda: (np.tile(row_of_place, (20, 1)).astype(np.float32), None), vocab_size=5, fixed=(0, 1, 2))


def _parameters(maker: Maker) -> None:
    for t in regimes.TEMPERATURES:
        request = {"temperature": t}
        maker.add(f"temperature {t:g}", 96, [request, {**request, "top_k": 5}, {**request, "top_p": 0.5}] * 8,
                  [2, 1, 2] * 8, close=0.8)
    for k in (1, 2, 31, 32, 40, 47, 48, 49, 1000):
        maker.add(f"top_k {k}", 96, [{"top_k": k}] * 24, [2] * 24, close=0.8)
    for k in (64, 65, 128, 129, 256, 257, 1024, 1025):
        maker.add(f"top_k {k} of {2 * k + 30}", 96, [{"top_k": k}] * 6, [1] * 6, vocab_size=2 * k + 30, close=0.8)
    for p in regimes.TOP_P:
        maker.add(f"top_p {p:.9g}", 96, [{"top_p": p}, {"top_p": p, "temperature": 0.5}] * 12, [2] * 24, close=0.8)
    for name in ("top_p", "min_p") if maker.with_min_p else ("top_p",):
        combos, beside = just_beside(name)
        maker.add(f"{name} of which the next token is just kept or dropped", 1792, combos * 4, [1] * 56,
                  lambda beside=beside: (np.tile(np.repeat(beside, 2, axis=0), (4, 1)),
                                         np.full((56, 24), 1.0 / 24, np.float32)), vocab_size=24)
    if maker.with_min_p:
        combos, beside = min_p_beside()
        maker.add("min_p beside top_p and top_k", 384, combos * 16, [1] * 32,
                  lambda: (np.tile(np.repeat(beside, 2, axis=0), (16, 1)), np.full((32, 43), 1.0 / 43, np.float32)),
                  vocab_size=43)
    for m in [m for m in regimes.MIN_P if m >= 0.01] if maker.with_min_p else []:
        some = [{"min_p": m}, {"min_p": m, "temperature": 0.5}, {"min_p": m, "temperature": 2.0},
                {"min_p": m, "top_k": 9}]
        maker.add(f"min_p {m:g}", 96, some * 6, [2, 1, 2] * 8, vocab_size=480 if m < 0.05 else 48, close=0.8)
    mixed = [SOME[(3 * i + i // 8) % 8] for i in range(32)]
    lens = [(2, 0, 3, 1, 5)[i % 5] for i in range(32)]
    patterns: dict[str, list[dict[str, Any]]] = {
        "each request its own parameters": mixed,
        "greedy and random in turn": [GREEDY if i % 2 else row for i, row in enumerate(mixed)],
        "greedy first": [GREEDY, *mixed[1:]], "greedy last": [*mixed[:-1], GREEDY],
        "random first, the others greedy": [{"temperature": 0.7, "top_k": 3}, *[GREEDY] * 31],
        "random last, the others greedy": [*[GREEDY] * 31, {"temperature": 0.7, "top_k": 3}],
        "filtered first, the others not": [{"top_k": 3}, *[PLAIN] * 31],
        "filtered last, the others not": [*[PLAIN] * 31, {"top_p": 0.3}],
        "off beside neutral": [({"top_k": 48}, {"top_k": 2}, {}, {"top_p": 0.3}, {"top_k": 49, "top_p": 0.5})[i % 5]
                               for i in range(32)],
        "temperatures that grow with the request": [{"temperature": 0.1 + i / 8.0, "top_k": 1 + i % 7}
                                                    for i in range(32)]}
    if maker.with_min_p:
        patterns["min_p in some requests"] = [({"min_p": 0.3}, {}, {"top_p": 0.5},
                                               {"min_p": 0.1, "temperature": 2.0})[i % 4]
                                              for i in range(32)]
    for name, requests in patterns.items():
        maker.add(f"{name}, ragged drafts", 160, requests, lens, close=0.8)
        maker.add(f"{name}, two drafts each", 160, requests, [2] * 32, close=0.8)
    for name in ("each request its own parameters", "greedy and random in turn"):
        maker.add(f"drafts without probabilities, {name}", 160, patterns[name], lens, close=0.8, one_hot=True)
    maker.add("greedy rows of one draft beside random ones", 256, [GREEDY, PLAIN] * 16, [1] * 32, close=0.5, few=40)


def _logits(maker: Maker) -> None:
    requests: list[dict[str, Any]] = [PLAIN, {"top_p": 0.9}, {"temperature": 0.5}, {"top_k": 5},
                                      {"temperature": 2.0, "top_p": 0.5}, GREEDY] * 4

    def about(offset: float) -> tuple[np.ndarray, np.ndarray]:
        target, drafts = rows_of(requests, [2] * len(requests), 48, int(abs(offset)), 0.8)
        return target + np.float32(offset), drafts

    for offset in regimes.OFFSETS[1:]:
        maker.add(f"logits about {offset:g}", 96, requests, [2] * len(requests), lambda offset=offset: about(offset))
    for top, of_draft in zip(PEAKS, (0.999, 0.9, 0.96, 0.98)):  # drafts that are surer than the target, or less so
        some = [PLAIN, PLAIN, {"top_p": top + 0.15 * (1.0 - top)}, {"temperature": 2.0}] * 16

        def sure(top: float = top, of_draft: float = of_draft, some: list[dict[str, float]] = some) -> tuple[np.ndarray,
                np.ndarray]:
            p = np.tile(peaked(50, top), (64, 1))
            return np.repeat(heated(some, p), 3, axis=0), np.tile(peaked(50, of_draft).astype(np.float32), (128, 1))
        maker.add(f"rows whose likeliest token has {top}, and {of_draft} in drafts", 2048, some, [2] * 64, sure,
                  vocab_size=50, separates=False)
    wide = np.concatenate([np.zeros(8), np.linspace(-90.0, -200.0, 40)]).astype(np.float32)
    maker.add("a range of 200", 256, [PLAIN] * 32, [2] * 32,
              lambda: (np.tile(wide, (96, 1)), np.full((64, 48), 1.0 / 48, np.float32)))


def _ties(maker: Maker) -> None:
    """Equal tokens at a cut, any of which may stay, over a sea that no reading keeps; of greedy rows several of the
    largest."""
    sea = [0.55 / 40] * 40
    for name, head, request in (("top_k", [0.15, 0.1, 0.1, 0.1], {"top_k": 3}),
                                ("top_p", [0.15, 0.1, 0.1, 0.1], {"top_p": 0.3}),
                                ("top_k and top_p", [0.15, 0.1, 0.1, 0.1], {"top_k": 3, "top_p": 0.6}),
                                ("the top, temperature 0", [0.1] * 4, GREEDY)):
        def make(head: list[float] = head) -> tuple[np.ndarray, np.ndarray]:
            target = np.concatenate([np.roll(repeated([*head, *sea], 1), 5 * i, axis=1) for i in range(3)] * 16)
            return target, np.full((32, 44), 1.0 / 44, np.float32)
        maker.add(f"ties at {name}", 256, [request] * 16, [2] * 16, make, vocab_size=44)


def _drafts(maker: Maker) -> None:
    for length in regimes.DRAFTS:
        maker.add(f"{length} drafts", 96, [PLAIN] * 12, [length] * 12, close=0.95)
    shapes = {"the first is empty": [0, 2, 2, 2], "the last is empty": [2, 2, 2, 0], "all are empty": [0, 0, 0, 0],
              "one long among short": [1, 1, 17, 1], "one short among long": [9, 9, 0, 9],
              "growing": [0, 1, 2, 3, 4, 5, 6, 7, 8],
              "falling": [5, 4, 3, 2, 1, 0], "empty in turn": [0, 3, 0, 3, 0, 1]}
    for name, lens in shapes.items():
        maker.add(f"drafts: {name}", 32 * len(lens), [SOME[i % 8] for i in range(len(lens))], lens, close=0.9)
        maker.add(f"drafts: {name}, unfiltered", 32 * len(lens), [PLAIN] * len(lens), lens, close=0.9)
    # Coins that repeat every 1, 4, 8, 16 drafts: those behind such a distance stand for certain, if they are reached.
    for length, share, n in ((2, 0.9, 2048), (5, 0.9, 4096), (9, 0.95, 2048), (17, 0.97, 1024), (33, 0.98, 512)):
        maker.add(f"{length} drafts, each accepted with {share}", n, [PLAIN] * 64, [length] * 64,
                  lambda length=length, share=share: (repeated([share, 1.0 - share], 64 * (length + 1)), None),
                  vocab_size=2, fixed=0)


def _random_numbers(maker: Maker) -> None:
    def flat(length: int, batch: int, size: int) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
        """Drafts that the target never draws, and flat rows."""
        def make() -> tuple[np.ndarray, np.ndarray]:
            target = np.zeros((batch * (length + 1), size), np.float32)
            drafts = np.zeros((batch * length, size), np.float32)
            if length:
                target[:, 0] = -np.inf
                drafts[:, 0] = 1.0
            return target, drafts
        return make

    for kind in ("consecutive", "families", "large", "double", "signed", "random"):
        maker.add(f"bonus tokens of flat rows, seeds: {kind}", 512, [PLAIN] * 256, [0] * 256, flat(0, 256, 512),
                  vocab_size=512, seeds=kind)
        maker.add(f"coins and recovered tokens, seeds: {kind}", 4096 if kind == "consecutive" else 1024, [PLAIN] * 256,
                  [1] * 256, lambda: (repeated([0.5] + [0.5 / 64] * 64, 512), None), vocab_size=65, seeds=kind, fixed=0)
    for batch in (129, 513, 1025):
        maker.add(f"bonus tokens of flat rows in batches of {batch}", 2 * batch, [PLAIN] * batch, [0] * batch,
                  flat(0, batch, 128), vocab_size=128)
    maker.add("coins of 64 requests in 64 calls", 4096, [PLAIN] * 64, [1] * 64,
              lambda: (repeated([0.5] + [0.5 / 64] * 64, 128), None), vocab_size=65, fixed=0)
    maker.add("coins of 24 ragged requests in 64 calls", 1536, [PLAIN] * 24, [1, 2, 4] * 8,
              lambda: (repeated([0.5] + [0.5 / 64] * 64, 80), None), vocab_size=65, fixed=0)
    maker.add("coins and recovered tokens in batches of 33", 1056, [PLAIN] * 33, [2] * 33,
              lambda: (repeated([0.5] + [0.5 / 64] * 64, 99), None), vocab_size=65, fixed=0)
    maker.add("coins and bonus tokens in batches of 65", 1040, [PLAIN] * 65, [1] * 65,
              lambda: (np.stack([*repeated([0.5] + [0.5 / 64] * 64, 1), np.zeros(65, np.float32)] * 65), None),
              vocab_size=65, fixed=0)
    maker.add("a token of probability 2^-20 drafted", 12288, [PLAIN] * 512, [1] * 512,
              lambda: (repeated([2.0 ** -20, 0.5, 0.5 - 2.0 ** -20], 1024), None), vocab_size=3, fixed=0)
    for size, batch in ((1 << 17, 4), (1 << 13, 32)):
        for length, what in ((0, "bonus"), (1, "recovered")):
            maker.add(f"{what} tokens of a flat row of {size}", 64 if size > 1 << 14 else 128, [PLAIN] * batch,
                      [length] * batch, flat(length, batch, size), vocab_size=size)


def _batches(maker: Maker) -> None:
    for batch in sorted({b + d for b in regimes.BATCHES for d in (0, 1)} - {2048, 2049, 4096, 4097}):
        lens = [(1, 0, 2, 1, 3)[i % 5] for i in range(batch)] if batch < 200 else [(1, 0, 1)[i % 3]
                for i in range(batch)]
        maker.add(f"batch of {batch}", max(batch, 64), _several(maker, batch), lens, close=0.8)


def _vocabularies(maker: Maker) -> None:
    for size in (2, 3, 7, 33, 50, 64, 100, 255, 257, 1000, 1023, 1025, 4097, 8193, 32_000, 50_257, 65_535, 65_537,
                 131_073, 151_936, 262_144):
        if size > 60_000 or size < 8:
            batch, few = (2 if size > 60_000 else 16), 6
        else:
            batch, few = (8 if size < 5000 else 4), 6
        some: list[dict[str, Any]] = [PLAIN, {"top_k": min(3, size)}, {"temperature": 0.5, "top_p": 0.5}, GREEDY]
        if maker.with_min_p and batch > 4:
            some.append({"min_p": 0.3})
        requests = [some[i % len(some)] for i in range(batch)]
        maker.add(f"V = {size}, filtered", 8 * batch if size > 9000 else 16 * batch,
                  requests[::-1] if size % 2 else requests, [1] * batch, vocab_size=size, close=0.7, few=few)
        maker.add(f"V = {size}", 8 * batch if size > 60_000 else 32 * batch, [PLAIN] * batch,
                  [2] * batch if size < 60_000 else [1] * batch, vocab_size=size, close=0.7, few=min(few, size))
    few_ids = np.zeros(131_072)  # the draft's id has no chance in its low 16 bits, another one in its low 15
    few_ids[[105_536, 105_537, 7232]] = [0.6, 0.3, 0.1]
    maker.add("a draft beyond 65,536 tokens", 64, [PLAIN] * 2, [1] * 2, lambda: (repeated(few_ids, 4), None),
              vocab_size=131_072, fixed=105_536)


def sweep(name: str, with_min_p: bool = False) -> StepsCase:
    """The case of this name: what the code of a failure calls."""
    return {entry.name: entry for entry in verify_sweep(with_min_p)}[name].make()
