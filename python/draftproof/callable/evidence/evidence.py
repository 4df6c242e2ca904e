"""Evidence from few draws of rows whose distributions are known: impossible tokens, and bets.

A bet is an e-value: the likelihood ratio of an alternative, a mixture over many, against the distribution; its mean is
1 where the callable is sound, so that it reaches 1 / alpha with probability alpha at most, whatever was drawn before.
No approximation is made for small counts. A draw within `zone`, the tokens at a filter's cut that usual readings keep
or
drop, is left out: given that it is not there, all readings agree on its distribution.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Iterator

import numpy as np

from ... import _sampling
from ..cases.sample_cases import shown

#: Odds that a bet on marked tokens tries.
ODDS = np.array([0.0, 0.25, 0.5, 2.0, 4.0, 16.0, 256.0])
#: Logits over the temperature so far below the largest are of tokens that never come.
FAR = 57.0
#: Where the ends of the unit interval are that a bet on uniform numbers tries.
EDGES = (1.0 / 64.0, 1.0 / 16.0, 0.25, 0.75, 15.0 / 16.0, 63.0 / 64.0)


@functools.lru_cache(maxsize=None)
def _log_rising(start: float) -> np.ndarray:
    """[n] of log (start)(start + 1)...(start + n - 1)."""
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1 << 17) + start))])


def bins_log_e(counts: np.ndarray) -> float:
    """Of n draws over m equally likely bins: a bet on the Dirichlet(1/2) mixture of multinomials."""
    m, n = len(counts), int(counts.sum())
    return float(_log_rising(0.5)[counts].sum() - _log_rising(m / 2.0)[n] + n * np.log(m))


def marked_log_e(hits: np.ndarray, chances: np.ndarray, odds: np.ndarray = ODDS) -> float:
    """Of independent events with these chances: a bet on each of `odds` times their odds, equal stakes. Chances that
    are too large win no bet on odds above 1."""
    with np.errstate(divide="ignore"):
        each = int(hits.sum()) * np.log(odds) if hits.any() else np.zeros(len(odds))
        each = each - np.log1p(np.outer(odds - 1.0, chances)).sum(axis=1)
    top = each.max()
    return float(top + np.log(np.exp(each - top).mean()))


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """The distributions of some rows: probabilities [G, V] over the tokens that every usual reading keeps, `zone` [G,
    V] those that some do."""

    probabilities: np.ndarray
    zone: np.ndarray
    usual: np.ndarray  # of the default reading, float32

    @staticmethod
    def of(logits: np.ndarray, params: dict[str, np.ndarray]) -> Rows:
        base = _sampling.process_rows(logits, params, ties="keep_all").probabilities
        cuts = {name: value for name, value in params.items() if not name.startswith("adaptive")}  # which is none
        must, may = _sampling.usual_readings(logits, cuts)
        # dropped or not, none draws them
        must |= may & (logits < logits.max(axis=1, keepdims=True) - FAR * params["temperature"][:, None])
        least = np.where(must, base, 0.0)
        total = least.sum(axis=1, keepdims=True, dtype=np.float64)
        return Rows(np.divide(least, total, where=total > 0.0, out=np.zeros(least.shape, np.float64)), may & ~must,
                    base)


@dataclasses.dataclass(frozen=True, eq=False)
class Ranks:
    """Of each draw that is neither impossible nor in the zone: uniform numbers by probability (`by_rank`, likeliest
    first) and by token id, and how likely a token no likelier than it was."""

    by_rank: np.ndarray
    by_id: np.ndarray
    tail: np.ndarray
    certain: np.ndarray  # rows that leave no choice


def ranks(rows: Rows, group: np.ndarray, token: np.ndarray, rng: np.random.Generator) -> Ranks:
    """group, token: [n], tokens of positive probability."""
    size = len(token)
    by_rank, by_id, tail, certain = np.zeros(size), np.zeros(size), np.ones(size), np.zeros(size, bool)
    split = rng.random(size)
    order = np.argsort(group, kind="stable")
    bounds = np.flatnonzero(np.diff(group[order], prepend=-1))
    for begin, end in zip(bounds, [*bounds[1:], size]):
        here = order[begin:end]
        p = rows.probabilities[group[here[0]]]
        support = np.flatnonzero(p)
        q = p[support]
        falling = np.argsort(-q, kind="stable")
        place = np.empty(len(q), np.int64)
        place[falling] = np.arange(len(q))
        ranked = q[falling]
        below, ids, rest = np.cumsum(ranked) - ranked, np.cumsum(q) - q, np.cumsum(ranked[::-1])[::-1]
        at = np.searchsorted(support, token[here])
        by_rank[here] = below[place[at]] + split[here] * q[at]
        by_id[here] = ids[at] + split[here] * q[at]
        tail[here] = rest[np.searchsorted(-ranked, -q[at], side="left")]  # with its ties
        certain[here] = len(q) == 1
    top = np.nextafter(1.0, 0.0)
    return Ranks(np.clip(by_rank, 0.0, top), np.clip(by_id, 0.0, top), tail, certain)


def uniform_log_e(u: np.ndarray) -> float:
    """A bet on numbers of [0, 1) that are uniform: equal stakes on 2, 4, 16 and, of many, 64 bins, and on ends of
    EDGES."""
    sizes = (2, 4, 16) if len(u) < 512 else (2, 4, 16, 64)
    logs = [bins_log_e(np.bincount(np.minimum((u * m).astype(np.int64), m - 1), minlength=m)) for m in sizes]
    for edge in EDGES:
        hits, chance = np.count_nonzero(u < edge), edge
        with np.errstate(divide="ignore"):
            each = (hits * np.log(ODDS) if hits else np.zeros(len(ODDS))) - len(u) * np.log1p((ODDS - 1.0) * chance)
        logs.append(_mean_of_e(each))
    return _mean_of_e(np.array(logs))


def detectable(n: int, bets: int, alpha: float) -> float:
    """The distance between the likelier and the less likely half of the tokens that one of so many bets, on n ranks,
    finds with 99 % probability at this level."""
    needed = float(np.log(bets / alpha) + np.log(len(EDGES) + 4))
    for moved in np.geomspace(1e-3, 0.5, 128):
        least = int(n * (0.5 + moved) - 2.33 * np.sqrt(n * (0.25 - moved * moved)))
        if least > n / 2 and bins_log_e(np.array([n - least, least])) >= needed:
            return float(moved)
    return 1.0


def _mean_of_e(logs: np.ndarray) -> float:
    """log of the mean of e-values, by their logs."""
    top = logs.max()
    return float(top + np.log(np.exp(logs - top).mean()))


def pairs_log_e(a: np.ndarray, b: np.ndarray) -> float:
    """A bet on b [n], uniform given all that was before it, being uniform given a [n] too; a and b in [0, 1)."""
    bins = np.minimum((a * 8).astype(np.int64), 7)
    logs = []
    for m in (2, 8):
        counts = np.zeros((8, m), np.int64)
        np.add.at(counts, (bins, np.minimum((b * m).astype(np.int64), m - 1)), 1)
        logs.append(sum(bins_log_e(row) for row in counts))
    return _mean_of_e(np.array(logs))


def distance(u: np.ndarray) -> float:
    """Total variation of uniform numbers over eight bins, less what chance gives."""
    counts = np.bincount(np.minimum((u * 8).astype(np.int64), 7), minlength=8)
    return max(0.0, float(np.abs(counts / len(u) - 0.125).sum() / 2.0 - 4.0 * np.sqrt(0.125 * 0.875 / len(u)) * 0.8))


def classes(params: dict[str, np.ndarray], place: np.ndarray, batch: int) -> Iterator[tuple[str, np.ndarray]]:
    """Draws by what a branch may depend on: each value of a parameter that takes several, places of the batch from a
    boundary on, the last place. params and place: [n], of every draw."""
    for name, column in params.items():
        values = np.unique(column)
        if 1 < len(values) <= 64:
            for value in values:
                yield f"{name} {shown(value)}", column == value
    if batch > 1:
        yield "the first place of the batch", place == 0
        yield "the last place of the batch", place == batch - 1
        for bound in (32, 64, 128, 256, 512, 1024, 2048, 4096):
            if bound < batch:
                yield f"places of the batch from {bound} on", place >= bound


def shown_by(n: int) -> float | None:
    """A wrong branch that shows in this share of the draws would have been seen in n of them with probability 0.99."""
    return 1.0 - 0.01 ** (1.0 / n) if n else None


def mask_value(logits: np.ndarray, params: dict[str, np.ndarray], group: np.ndarray, token: np.ndarray) -> str:
    """What finite number the mask behaves as, by how often masked tokens came in unfiltered rows, at the lowest
    temperature at which they came."""
    estimates = []
    for g in np.unique(group):
        row, t = logits[g].astype(np.float64), float(params["temperature"][g])
        off = params["top_k"][g] <= 0 and params["top_p"][g] >= 1.0 and params.get("min_p", np.zeros(g + 1))[g] <= 0.0
        masked, here = np.isneginf(row), token[group == g]
        share = float(masked[np.clip(here, 0, len(row) - 1)].mean())
        if t > 0.0 and off and 0.05 < share < 0.95:
            top = row.max()
            mass = np.exp((row[~masked] - top) / t).sum()
            estimates.append((t, top + t * np.log(share / (1.0 - share) * mass / masked.sum())))
    return (f": the mask behaves as a logit of about {min(estimates)[1]:.2g}" if estimates
            else ", as if masked by a finite number")


@dataclasses.dataclass(frozen=True)
class Bet:
    """log_e: natural log of an e-value, or minus that of a p value; u: where it was made on uniform numbers; where:
    draws; suspect: what it says of random numbers."""

    name: str
    sentence: str
    log_e: float
    where: np.ndarray
    distance: float | None = None
    suspect: str = ""


def best_bet(bets: list[Bet], alpha: float) -> Bet | None:
    """The bet that won most, if it won at this level; all bets share it."""
    best = max(bets, key=lambda bet: bet.log_e, default=None)
    return best if best is not None and best.log_e >= np.log(len(bets) / alpha) else None


def bets_on_ranks(found: Ranks, params: dict[str, np.ndarray], place: np.ndarray, batch: int,
                  group: np.ndarray) -> Iterator[Bet]:
    """On draws of which none is impossible. params, place, group: [n]."""
    everything = np.arange(len(place))
    least = int(found.tail.argmin())
    yield Bet("tail", f"a token came whose like have a probability of {found.tail[least]:.2g} together, of "
                      f"{len(place)} draws",
              -float(np.log(found.tail[least] * len(place))), everything[least:least + 1], None)
    open_ = everything[~found.certain]
    if not open_.size:
        return

    def bet(name: str, of: str, u: np.ndarray, where: np.ndarray) -> Bet:
        return Bet(name, f"{of} do not follow the distribution ({len(where)} draws)", uniform_log_e(u[where]), where,
                   distance(u[where]))

    yield bet("ranks", "ranks of the draws", found.by_rank, open_)
    yield bet("token_ids", "token ids of the draws", found.by_id, open_)
    for of, chosen in classes({name: value[open_] for name, value in params.items()}, place[open_], batch):
        if chosen.sum() >= 8:
            yield bet("ranks", f"{of}: ranks of the draws", found.by_rank, open_[chosen])
    several = np.unique(group[open_])
    if 1 < len(several) <= 64:
        for g in several:
            yield bet("ranks", f"group {g}: ranks of the draws", found.by_rank, open_[group[open_] == g])


def bets_on_marks(rows: Rows, group: np.ndarray, token: np.ndarray) -> Iterator[Bet]:
    """Single tokens of each row: the likeliest, the least likely that is kept, the first and the last id."""
    g, of = np.unique(group, return_inverse=True)
    p = rows.probabilities[g]
    ids = np.arange(p.shape[1])
    for name, marked in (("the likeliest token", p.argmax(axis=1)),
                         ("the least likely token kept", np.where(p > 0.0, p, np.inf).argmin(axis=1)),
                         ("the first token", (p > 0.0).argmax(axis=1)),
                         ("the last token", np.where(p > 0.0, ids, -1).max(axis=1))):
        chance = p[np.arange(len(g)), marked]
        hits, chances = token == marked[of], np.minimum(chance[of], 1.0)
        here = chances < 1.0
        several = np.unique(of[here])
        for one in several if 1 < len(several) <= 16 else ():
            mine = here & (of == one)
            if mine.sum() >= 64:
                yield Bet("marked", f"{name} of group {g[one]} came {int(hits[mine].sum())} times where "
                                    f"{chances[mine].sum():.3g} are expected",
                          marked_log_e(hits[mine], chances[mine]), np.flatnonzero(mine),
                          abs(float(hits[mine].mean() - chances[mine].mean())))
        if here.any():
            log_e = marked_log_e(hits[here], chances[here])
            yield Bet("marked",
                      f"{name} came {int(hits[here].sum())} times where {chances[here].sum():.3g} are expected", log_e,
                      np.flatnonzero(here), abs(float(hits[here].mean() - chances[here].mean())))


def bets_on_flat(token: np.ndarray, size: int, likely: tuple[int, ...]) -> Iterator[Bet]:
    """Draws of one flat row over `size` tokens, in order: low bits of the ids; pairs of draws at every distance that
    are equal too often (events of chance 1 / size each, independent where rows are flat); sums and differences at
    likely ones."""
    everything = np.arange(len(token))
    for bits in (1, 2, 3, 5, 8):
        if size % (1 << bits) == 0 and size > 1 << bits:
            counts = np.bincount(token % (1 << bits), minlength=1 << bits)
            yield Bet("low_bits", f"the low {bits} bits of the token ids are not uniform", bins_log_e(counts),
                      everything, suspect="random numbers have too few bits")
    n, split = len(token), np.random.default_rng(size).random(len(token))
    if n < 2:  # no pair
        return
    order = np.argsort(token, kind="stable")
    starts = np.flatnonzero(np.diff(token[order], prepend=-1))
    equal = np.zeros(n, np.int64)
    for begin, end in zip(starts, [*starts[1:], n]):
        if end - begin > 1:
            at = order[begin:min(end, begin + 1500)]
            np.add.at(equal, (at[None, :] - at[:, None])[np.triu_indices(len(at), 1)], 1)
    odds = ODDS[ODDS > 1.0][:, None]
    lags = np.arange(1, n)
    logs = (equal[1:] * np.log(odds) - (n - lags) * np.log1p((odds - 1.0) / size)).max(axis=0) - np.log(len(odds))
    stakes = np.full(n - 1, 0.5 / (n - 1))
    chosen = [lag for lag in likely if 1 <= lag < n]
    for lag in chosen:
        stakes[lag - 1] += 0.5 / len(chosen)
    lag = int((logs + np.log(stakes)).argmax()) + 1
    yield Bet("repeats", f"{equal[lag]} of {n - lag} pairs of draws {lag} apart are equal, where "
                         f"{(n - lag) / size:.3g} are "
              "expected: random numbers are used again", float(logs[lag - 1] + np.log(stakes[lag - 1])), everything,
              suspect=f"random numbers of draws {lag} apart are the same")
    for lag in chosen:
        for sign, word in ((-1, "differences"), (1, "sums")):
            mixed = (token[lag:] + sign * token[:-lag]) % size + split[lag:]
            yield Bet("correlation", f"{word} of draws {lag} apart are not uniform", uniform_log_e(mixed / size),
                      everything[lag:], suspect=f"random numbers of draws {lag} apart depend on each other")


def bet_on_places(drawn: np.ndarray, size: int, batch: int) -> Bet:
    """Draws [n] over `size` equal chances, call after call of `batch`: do two places of the batch draw alike in every
    call, or, of coins, never alike? A p value: of all pairs together."""
    calls = len(drawn) // batch
    places = drawn[:calls * batch].reshape(calls, batch)
    seen: dict[bytes, int] = {}
    pair, p = (0, 0), 1.0
    for b in range(batch):
        for column in (places[:, b], 1 - places[:, b]) if size == 2 else (places[:, b],):
            if (a := seen.get(column.tobytes())) is not None:
                pair, p = (a, b), min(1.0, max(batch * batch * float(size) ** -calls, 1e-300))
        seen[places[:, b].tobytes()] = b
    return Bet("correlation_places",
               f"requests {pair[0]} and {pair[1]} of the batch draw alike in all of {calls} calls", -float(np.log(p)),
               np.array([pair[1]]),
               suspect=f"random numbers of places {pair[0]} and {pair[1]} of the batch are the same")


def bets_on_coins(fell: np.ndarray) -> Iterator[Bet]:
    """Of fair coins [n], in order: does one fall as the one a distance before it, or never so? Equality at a distance
    is an independent event of chance 1/2; all distances share the stakes, small ones the half."""
    n = len(fell)
    if n < 33:  # no distance has 32 pairs
        return
    signs = np.where(fell, 1.0, -1.0)
    spectrum = np.abs(np.fft.rfft(signs, 2 * n)) ** 2
    lags = np.arange(1, n - 31)
    pairs = n - lags
    equal = np.rint((pairs + np.fft.irfft(spectrum)[1:n - 31]) / 2.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.stack([np.where(equal > 0, equal * np.log(odds), 0.0) - pairs * np.log((1.0 + odds) / 2.0)
                         for odds in ODDS])
    stakes = np.full(len(lags), 0.5 / len(lags))
    stakes[:32] += 0.5 / 32.0
    e = logs.max(axis=0) - np.log(len(ODDS)) + np.log(stakes)
    best = int(e.argmax())
    yield Bet("correlation_coins",
              f"the coins of drafts {lags[best]} requests apart fell alike in {equal[best]:.0f} of {pairs[best]} pairs",
              float(e[best]), np.arange(lags[best], n), suspect=f"coins of requests {lags[best]} apart are the same")
