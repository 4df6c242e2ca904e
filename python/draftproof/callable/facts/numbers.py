"""Random numbers that go wrong: one that another draw had, seeds that are taken for one another, draws that are made
wrongly."""

from __future__ import annotations

from typing import Callable, Iterator

import numpy as np

from ..evidence import evidence

#: Share of pairs that a shared number does not explain.
STRAY_PAIRS = 1e-2
#: Nats for seeds that are taken for one another; pairs of seeds that draw alike which one that does not outweighs.
LEAST_OF_SEEDS, UNLIKE = 30.0, 20.0
#: What may be left of a seed [n] uint64, the likeliest first.
LEFT_OF_SEEDS: tuple[tuple[str, Callable[[np.ndarray], np.ndarray]], ...] = (
    *((f"seeds are cut to their low {bits} bits", lambda seed, bits=bits: seed & np.uint64((1 << bits) - 1))
      for bits in (32, 16, 12, 10, 8, 31, 24, 20, 40, 48, 53, 63)),
    ("seeds are rounded to float32", lambda seed: seed.astype(np.float32)),
    ("seeds are rounded to float64", lambda seed: seed.astype(np.float64)),
    ("seeds are cut to their high 32 bits", lambda seed: seed >> np.uint64(32)),
    *((f"seeds lose bit {bit}", lambda seed, bit=bit: seed & ~np.uint64(1 << bit)) for bit in range(16, 64)))


def repeats_of(p: np.ndarray, row: np.ndarray, token: np.ndarray, batch: int) -> tuple[float, str]:
    """Nats for it that draws [n] of rows p [G, V], call after call, are those of their place some calls before, or of a
    row before them in the call; which. row: [n], of each draw."""
    best, row = (0.0, ""), _alike(p)[row]
    by_chance = np.minimum((p * p).sum(axis=1), 1.0)
    # Counts of rows that were drawn often: another distribution is no repetition.
    pairs, count = np.unique(np.stack([row, token]), axis=1, return_counts=True)
    drawn = np.bincount(row, minlength=len(p))
    often = np.bincount(pairs[0], weights=count * (count - 1.0), minlength=len(p)) / np.maximum(drawn * (drawn - 1.0),
                                                                                                1.0)
    by_chance = np.where(drawn >= 32, np.maximum(by_chance, often), by_chance)
    for lag, words, paired in _lags(len(row), batch):
        same = (row[lag:] == row[:-lag]) & paired
        if not same.any() or (lag != 1 and same.mean() <= 0.4):
            continue
        chance = np.minimum(by_chance[row[lag:][same]], 0.999)
        for shift in (-1, 0, 1) if lag == 1 < batch else (0,):  # a token further: of seeds that follow one another
            equal = (token[lag:] == token[:-lag] + shift)[same]
            if equal.sum() > 1.5 * chance.sum():
                best = max(best, (evidence.marked_log_e(equal, chance), words + ", a token further" * bool(shift)))
    return best


def shared_of(p: np.ndarray, row: np.ndarray, token: np.ndarray, of: np.ndarray, count: int,
              batch: int) -> tuple[float, str]:
    """As repeats_of, of numbers that are looked up in running sums, by ids or from the likeliest token on: do those of
    pairs of draws overlap as one number would have it? of: [m], which of `count` draws these are; others have none."""
    best = (0.0, "")
    for order in (np.broadcast_to(np.arange(p.shape[1]), p.shape), np.argsort(-p, axis=1, kind="stable")):
        sums, begin, end = np.empty(p.shape), np.zeros(count), np.ones(count)
        np.put_along_axis(sums, order, np.cumsum(np.take_along_axis(p, order, axis=1), axis=1), axis=1)
        begin[of], end[of] = sums[row, token] - p[row, token], sums[row, token]
        begin, end = np.where(end > begin, begin, 0.0), np.where(end > begin, end, 1.0)
        for lag, words, paired in _lags(count, batch):
            both = np.minimum(end[lag:], end[:-lag]) - np.maximum(begin[lag:], begin[:-lag])
            ratio = np.maximum(both, 0.0) / ((end - begin)[lag:] * (end - begin)[:-lag])
            best = max(best, (float(np.log((1.0 - STRAY_PAIRS) * ratio[paired] + STRAY_PAIRS).sum()), words))
    return best


def _lags(count: int, batch: int) -> list[tuple[int, str, np.ndarray]]:
    """(draws apart, whose number it is, which pairs [count - lag] are meant)"""
    at = np.arange(count)
    lags = [*((batch * i, "the call before") for i in range(1, 13)),
            *((lag, "another row of the call") for lag in (1, 2, 16, 32, 64) if lag < batch)]
    return [(lag, words, (lag >= batch) | (at[lag:] // batch == at[:-lag] // batch)) for lag, words in lags
            if lag < count]


def _alike(p: np.ndarray) -> np.ndarray:
    """[G]: of each row the first that is equal."""
    seen: dict[bytes, int] = {}
    return np.array([seen.setdefault(row.tobytes(), g) for g, row in enumerate(p)], np.int64)


def lost_of_seeds(seed: np.ndarray, p: np.ndarray, row: np.ndarray, token: np.ndarray) -> str:
    """Of draws [n] with these seeds: which seeds draw alike, by what is left of them; '' if none do."""
    row = _alike(p)[row]
    by_chance = np.clip((p * p).sum(axis=1), 1e-9, 1.0)[row]
    most = 1.0
    words: list[str] = []
    for name, left_of in LEFT_OF_SEEDS:
        left = np.unique(left_of(seed), return_inverse=True)[1].ravel()
        order = np.lexsort((np.arange(len(seed)), left, row))
        a, b = order[:-1], order[1:]
        pair = (left[a] == left[b]) & (row[a] == row[b]) & (seed[a] != seed[b]) & (by_chance[a] < 0.9)
        equal = token[a][pair] == token[b][pair]
        score = equal.sum() - UNLIKE * np.count_nonzero(~equal)
        if score >= most and -np.log(by_chance[a][pair][equal]).sum() > LEAST_OF_SEEDS:
            words = [*(words if score == most else []), name]
            most = score
    return ", or ".join(words[:3])


def wrong_draws(size: int) -> Iterator[tuple[str, Callable[[np.ndarray], np.ndarray]]]:
    """Draws that are made wrongly: probabilities [n, V] -> those with which tokens come."""
    for tile in (1024, 4096, 8192, 1 << 15, 1 << 16):
        if tile < size:
            yield f"a token's place in its tile of {tile:,} comes in its place", lambda p, tile=tile: folded(p, tile)
    yield "the token is 0", lambda p: _only(p, 0)
    yield "the rank of a token comes in its place", lambda p: -np.sort(-p, axis=1)
    yield "half of the random numbers are below 0, which gives token 0", lambda p: 0.5 * (p + _only(p, 0))


def folded(p: np.ndarray, tile: int) -> np.ndarray:
    """[n, V]: the mass of every id on its place in its tile."""
    out = np.zeros(p.shape)
    for begin in range(0, p.shape[1], tile):
        part = p[:, begin:begin + tile]
        out[:, :part.shape[1]] += part
    return out


def _only(p: np.ndarray, token: int) -> np.ndarray:
    return np.zeros_like(p) + (np.arange(p.shape[1]) == token)
