"""Filters that compute otherwise, and what they leave: of hypotheses.py, the rules of rows that have top-k, top-p or min-p wrong
inside. Each takes logits and parameters, and gives the probabilities [n, V] that tokens come with."""

from __future__ import annotations

import dataclasses
from contextvars import ContextVar
from typing import Any, Callable, Iterator, Literal

import numpy as np

from .. import _sampling
from .sample_cases import OFF

Params = dict[str, np.ndarray]


class Rare(str):
    """The name of a rule that stands for a rare fault, or the part of it that says so. Such a rule costs more (hypotheses.py)."""


class InPart(str):
    """The name of a rule that holds in one part of a speculative step alone. It costs as much as a rule of one regime."""


@dataclasses.dataclass(frozen=True, eq=False)
class Family:
    """Rules with a number, which is learned from what came: make(number), between low and high; in their name it stands for {}."""

    make: Callable[[float], Any]
    low: float
    high: float
    is_whole: bool = False

    def with_rule(self, of: Callable[[Any], Any]) -> Family:
        """Of what make gives a rule."""
        return dataclasses.replace(self, make=lambda number: of(self.make(number)))


def rare_as(words: str, name: str) -> str:
    """A rule's name, Rare if its `words` are."""
    return Rare(name) if isinstance(words, Rare) else name


#: Logits of which rules that sort them are tried, at most.
SORTED = 1 << 19
#: In which order the callable under audit filters: "top_k_first" (top-p over what top-k left) or "joint" (over the whole row).
FilterOrder = Literal["joint", "top_k_first"]
FILTER_ORDER: ContextVar[FilterOrder] = ContextVar("filter_order", default="joint")


def as_half(x: np.ndarray) -> np.ndarray:
    return np.clip(x, -65504.0, 65504.0).astype(np.float16).astype(np.float32)


def _truncated(x: np.ndarray, half: int = 0) -> np.ndarray:
    """To bfloat16, towards 0."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + half + (bits >> 16 & bool(half))) & np.uint32(0xFFFF0000)).view(np.float32)


def as_bfloat16(x: np.ndarray) -> np.ndarray:
    return _truncated(x, 0x7FFF)


#: What numbers may be rounded to.
PRECISIONS = (("of half precision", as_half), ("of bfloat16", as_bfloat16), ("cut to bfloat16", _truncated))


def sound(logits: np.ndarray, params: Params) -> np.ndarray:
    return _sampling.process_rows(logits, params, ties="keep_all", filter_order=FILTER_ORDER.get()).probabilities


def divided(p: np.ndarray) -> np.ndarray:
    total = p.sum(axis=1, keepdims=True)
    return np.divide(p, total, out=np.zeros_like(p), where=total > 0.0)


def undivided(logits: np.ndarray, params: Params) -> np.ndarray:
    """Of what filters keep the shares of the unfiltered row."""
    bare = {name: value if name == "temperature" else np.full_like(value, OFF[name]) for name, value in params.items()}
    return np.where(sound(logits, params) > 0.0, sound(logits, bare), 0.0)


def wrong_filters(names: list[str], size: int) -> Iterator[tuple[str, Callable[[np.ndarray, Params], np.ndarray]]]:
    """Filters that compute otherwise, of rows that have the parameters `names`."""
    if "top_k" in names:
        yield Rare("tokens tied at the cut of top_k are all dropped"), _without_ties
        for bits in (8, 11, 12, 16):
            yield Rare(f"top_k keeps all tokens whose first {bits} bits are the k-th one's"), _whole_bucket(bits)
    if "top_p" in names:
        yield Rare("top_p sums in half precision"), _with_own_filters(_half_sums)
        yield Rare("top_p sums in half precision, and has it itself"), _with_own_filters(_half_sums, is_half=True)
        yield Rare("top_p keeps one token more"), _with_own_filters(more=1)
        yield Rare("top_p keeps all tokens of the binary exponent at which it is reached"), _whole_bin
        for halvings in (6, 8, 10, 16, 18, 20):
            yield Rare(f"top_p's cut is found by {halvings} halvings"), _cut_by_halves(halvings)
            yield Rare(f"top_p's cut is found by {halvings} halvings from 1 on"), _cut_by_halves(halvings, of_one=True)
        for block in (256, 512, 1024, 2048, 4096):
            if block < size:
                yield Rare(f"top_p sums by blocks of {block:,} tokens"), _with_own_filters(_sums_of_blocks(block), has_gaps=True)
    if "min_p" in names:
        yield "min_p is relative to the second token", _with_own_filters(min_p_of=lambda p, _: p[:, 1:2])
        yield "min_p is relative to the largest token of all rows", _with_own_filters(min_p_of=lambda p, _: p.max() + 0.0 * p[:, :1])
        yield "min_p is absolute", _with_own_filters(min_p_of=lambda p, _: np.ones((len(p), 1)))
        if size > 1024:
            yield Rare("min_p is relative to the largest of the first 1,024 tokens"), _min_p_of_first(1024)
        if {"top_p", "top_k"} & set(names):
            yield "min_p's bound is of the largest token after the other filters, its tokens are not", _with_own_filters(
                min_p_of=lambda p, keep: p[:, :1] / (p * keep).sum(axis=1, keepdims=True))
            yield "min_p's tokens are of the row after the other filters, its bound is not", _with_own_filters(
                min_p_of=lambda p, keep: p[:, :1] * (p * keep).sum(axis=1, keepdims=True))
    for name in ("top_p", "min_p"):
        if name in names and size > 1:
            yield f"{name} keeps two tokens at least", _with_own_filters(least=2)
    if set(names) - {"temperature"}:
        for rounds in (2, 3, 4, 8, 16, 32):
            yield Rare(f"rejection sampling takes what {rounds} rounds rejected"), _rejected(rounds)
            yield Rare(f"rejection sampling takes the likeliest token after {rounds} rounds"), _rejected(rounds, is_likeliest=True)
        yield Rare("rejection sampling draws again with the number that was rejected"), _rejected_with_one_number
    if "temperature" in names:
        yield Rare("what filters keep is drawn at temperature 1"), _drawn_warm
    if set(names) - {"temperature"}:
        yield Rare("top_p sums in half precision, also where it is off"), _with_own_filters(_half_sums, is_never_off=True, is_half=True)
        for words, rounded in PRECISIONS:
            yield f"filters sort by logits {words}", _with_own_filters(by=rounded)
        yield Rare("filters sort by the bits of logits, negative ones in reverse"), _with_own_filters(
            by=lambda x: np.ascontiguousarray(x, np.float32).view(np.int32).astype(np.float64))
        for block in (4, 8, 32, 128, 1024):
            if block < size and size % block:
                yield Rare(f"the last V modulo {block} tokens are not filtered"), _with_tail(size // block * block)
        for words, rest in (("the likeliest token", lambda p: p.argmax(axis=1)), ("the least likely token kept", _least_likely),
                            ("the last token kept", _last_kept), ("the last id", lambda p: np.full(len(p), -1))):
            yield f"what filters drop falls to {words}", _rest_to(rest)
        if size > 1024:
            yield Rare("a tile of 1,024 tokens is drawn by its mass before the filters"), _by_unfiltered_tiles(1024)
    for to in (8, 16, 32, 64, 128, 256, 1024):
        if size % to:
            yield f"rows are padded to a multiple of {to} with logits of 0", _padded(to)


def without_its_last(logits: np.ndarray, params: Params) -> np.ndarray:
    p = sound(logits, params)
    crossed = (params["top_p"] < 1.0) & ((p > 0.0).sum(axis=1) > 1)
    p[crossed, np.where(p > 0.0, p, np.inf).argmin(axis=1)[crossed]] = 0.0
    return p / p.sum(axis=1, keepdims=True)


def _without_ties(logits: np.ndarray, params: Params) -> np.ndarray:
    k = np.where(params["top_k"] > 0, np.minimum(params["top_k"], logits.shape[1]), logits.shape[1])
    cut = np.take_along_axis(-np.sort(-logits, axis=1), k[:, None] - 1, axis=1)
    several = (logits >= cut).sum(axis=1) > k
    drop = several[:, None] & (logits == cut)
    drop[np.arange(len(logits)), logits.argmax(axis=1)] = False  # one stays in any case
    return sound(np.where(drop, -np.inf, logits).astype(np.float32), params)


def _whole_bucket(bits: int) -> Callable[[np.ndarray, Params], np.ndarray]:
    """A radix selection that ends after so many bits of the float32."""

    def draws(logits: np.ndarray, params: Params) -> np.ndarray:
        raw = np.ascontiguousarray(logits, np.float32).view(np.uint32)
        bucket = np.where(raw >> 31 == 1, ~raw, raw | np.uint32(1 << 31)) >> (32 - bits)  # in the numbers' order
        k = np.where(params["top_k"] > 0, np.minimum(params["top_k"], logits.shape[1]), logits.shape[1])
        cut = np.take_along_axis(np.sort(bucket, axis=1)[:, ::-1], k[:, None] - 1, axis=1)
        rest = {**params, "top_k": np.zeros_like(params["top_k"])}
        return sound(np.where(bucket >= cut, logits, -np.inf).astype(np.float32), rest)

    return draws


def warm(name: str) -> Callable[[np.ndarray, Params], np.ndarray]:
    """A filter that sees the row at temperature 1."""

    def draws(logits: np.ndarray, params: Params) -> np.ndarray:
        greedy = params["temperature"] == 0.0
        rest = {**params, name: np.full_like(params[name], OFF[name])}
        alone = {other: value if other == name else np.full_like(value, OFF[other]) for other, value in params.items()}
        alone["temperature"] = np.where(greedy, 0.0, 1.0).astype(np.float32)
        return divided(_sampling.process_rows(logits, rest).probabilities * (_sampling.process_rows(logits, alone).probabilities > 0.0))

    return draws


def _with_own_filters(sums: Callable[[np.ndarray], np.ndarray] | None = None, by: Callable[[np.ndarray], np.ndarray] = lambda x: x,
                      min_p_of: Callable[[np.ndarray, np.ndarray], np.ndarray] = lambda p, _: p[:, :1], more: int = 0,
                      least: int = 1, is_never_off: bool = False, is_half: bool = False, has_gaps: bool = False) -> Callable[[np.ndarray, Params], np.ndarray]:
    """top-k, then top-p, then min-p, over rows sorted by by(logits). sums(p): what top-p compares, the sum before each place;
    min_p_of(p, keep): what min-p is a share of; more: tokens that top-p keeps behind its last; least: that any filter keeps;
    is_never_off: a top-p of 1 is compared with too; is_half: with a top-p of half precision; has_gaps: sums may fall, and each place
    is compared by itself."""

    def draws(logits: np.ndarray, params: Params) -> np.ndarray:
        wide = logits.astype(np.float64)
        t = np.where(params["temperature"] > 0.0, params["temperature"], 1.0).astype(np.float64)[:, None]
        order = np.argsort(-by(logits), axis=1, kind="stable")
        ranked = np.take_along_axis(wide, order, axis=1)
        at = np.arange(logits.shape[1])[None, :]
        k = params["top_k"][:, None]
        keep = (k <= 0) | (at < k)
        whole = np.exp((ranked - wide.max(axis=1, keepdims=True)) / t)
        p = divided(np.where(keep, whole, 0.0))
        of_p = p if FILTER_ORDER.get() == "top_k_first" else divided(whole)
        before = sums(of_p) if sums else np.cumsum(of_p, axis=1) - of_p
        top_p = params["top_p"][:, None]
        is_reached = (before < (top_p.astype(np.float16) if is_half else top_p)) & (of_p > 0.0)
        count = np.where(is_reached, at + 1, 0).max(axis=1, keepdims=True)
        keep &= ((top_p >= 1.0) & (not is_never_off)) | (at < least) | (is_reached if has_gaps else at < count + more)
        if "min_p" in params:
            keep &= (params["min_p"][:, None] <= 0.0) | (p >= params["min_p"][:, None] * min_p_of(p, keep)) | (at < least)
        out = np.zeros_like(p)
        np.put_along_axis(out, order, divided(np.where(keep, p, 0.0)), axis=1)
        greedy = params["temperature"] == 0.0
        if greedy.any():
            out[greedy] = sound(logits[greedy], {name: value[greedy] for name, value in params.items()})
        return out

    return draws


def _half_sums(p: np.ndarray) -> np.ndarray:
    total = np.cumsum(p.astype(np.float16), axis=1, dtype=np.float16)
    return np.concatenate([np.zeros((len(p), 1), np.float16), total[:, :-1]], axis=1)


def _sums_of_blocks(size: int) -> Callable[[np.ndarray], np.ndarray]:
    def sums(p: np.ndarray) -> np.ndarray:
        return np.concatenate([np.cumsum(block, axis=1) - block for block in np.split(p, range(size, p.shape[1], size), axis=1)], axis=1)

    return sums


def _rest_to(which: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray, Params], np.ndarray]:
    def draws(logits: np.ndarray, params: Params) -> np.ndarray:
        p = undivided(logits, params)
        p[np.arange(len(p)), which(p)] += 1.0 - p.sum(axis=1)
        return p

    return draws


def _least_likely(p: np.ndarray) -> np.ndarray:
    return np.where(p > 0.0, p, np.inf).argmin(axis=1)


def _last_kept(p: np.ndarray) -> np.ndarray:
    return p.shape[1] - 1 - (p[:, ::-1] > 0.0).argmax(axis=1)


def _drawn_warm(logits: np.ndarray, params: Params) -> np.ndarray:
    bare = {name: np.full_like(value, OFF[name]) for name, value in params.items()}
    bare["temperature"] = np.where(params["temperature"] > 0.0, 1.0, 0.0).astype(np.float32)
    return divided(np.where(sound(logits, params) > 0.0, sound(logits, bare), 0.0))


def _with_tail(begin: int) -> Callable[[np.ndarray, Params], np.ndarray]:
    def draws(logits: np.ndarray, params: Params) -> np.ndarray:
        bare = {name: value if name == "temperature" else np.full_like(value, OFF[name]) for name, value in params.items()}
        return divided(np.where((sound(logits, params) > 0.0) | (np.arange(logits.shape[1]) >= begin), sound(logits, bare), 0.0))

    return draws


def _whole_bin(logits: np.ndarray, params: Params) -> np.ndarray:
    rest = sound(logits, {**params, "top_p": np.ones_like(params["top_p"])})
    cut = np.where(sound(logits, params) > 0.0, rest, np.inf).min(axis=1, keepdims=True)
    return divided(np.where(rest >= 2.0 ** np.floor(np.log2(cut)), rest, 0.0))


def by_id(logits: np.ndarray, params: Params) -> np.ndarray:
    left = sound(logits, {**params, "top_p": np.ones_like(params["top_p"])})
    top_p = params["top_p"][:, None]
    return divided(np.where((top_p >= 1.0) | (np.cumsum(left, axis=1) - left < top_p), left, 0.0))


def _rejected(rounds: int, is_likeliest: bool = False) -> Callable[[np.ndarray, Params], np.ndarray]:
    """Tokens are drawn from the unfiltered row until filters keep one, so often at most; then the last or the likeliest comes."""

    def draws(logits: np.ndarray, params: Params) -> np.ndarray:
        bare = {name: value if name == "temperature" else np.full_like(value, OFF[name]) for name, value in params.items()}
        whole, kept = sound(logits, bare), sound(logits, params) > 0.0
        falls = 1.0 - np.where(kept, whole, 0.0).sum(axis=1, keepdims=True)
        found = np.where(kept, whole * (1.0 - falls ** rounds) / np.maximum(1.0 - falls, 1e-9), 0.0)
        if is_likeliest:
            found[np.arange(len(whole)), whole.argmax(axis=1)] += falls[:, 0] ** rounds
            return divided(found)
        return divided(np.where(kept, found, whole * falls ** (rounds - 1)))

    return draws


def _rejected_with_one_number(logits: np.ndarray, params: Params, points: int = 1024) -> np.ndarray:
    """As _rejected, until one is kept: each round draws, with the number of the first, from what is likelier than the token that was
    rejected and from what filters keep. Numbers are evenly spaced."""
    bare = {name: value if name == "temperature" else np.full_like(value, OFF[name]) for name, value in params.items()}
    whole, kept = sound(logits, bare), sound(logits, params) > 0.0
    out = np.where(kept, whole, 0.0).astype(np.float64)
    for g in np.flatnonzero((whole * ~kept).sum(axis=1) > 1e-3):
        count, waiting = np.zeros(logits.shape[1]), {-1.0: (np.arange(points) + 0.5) / points}
        for _ in range(64):
            if not waiting:
                break
            pivot = min(waiting)
            u, w = waiting.pop(pivot), np.cumsum(np.where((whole[g] > pivot) | kept[g], whole[g], 0.0), dtype=np.float64)
            token = np.minimum(np.searchsorted(w, u * w[-1], side="right"), len(w) - 1)
            good = kept[g, token]
            np.add.at(count, token[good], 1.0)
            for value in np.unique(whole[g, token[~good]]):
                again = u[~good][whole[g, token[~good]] == value]
                waiting[float(value)] = np.concatenate([waiting.get(float(value), again[:0]), again])
        out[g] = count
    return divided(out)


def few_kept(name: str, most: int) -> Callable[[np.ndarray, Params], np.ndarray]:
    def draws(logits: np.ndarray, params: Params) -> np.ndarray:
        p = sound(logits, params)
        on = params[name] != np.asarray(OFF[name], params[name].dtype)
        least = np.partition(p, p.shape[1] - most, axis=1)[:, p.shape[1] - most, None]
        return divided(np.where(on[:, None] & (p < least), 0.0, p))

    return draws


def _cut_by_halves(halvings: int, of_one: bool = False) -> Callable[[np.ndarray, Params], np.ndarray]:
    """What lies above the last lower bound of a search in [0, the largest probability] or [0, 1] stays."""

    def draws(logits: np.ndarray, params: Params) -> np.ndarray:
        rest = sound(logits, {**params, "top_p": np.ones_like(params["top_p"])})
        kept = sound(logits, params)
        step = (1.0 if of_one else rest.max(axis=1, keepdims=True)) * 2.0 ** -halvings
        cut = np.floor(np.where(kept > 0.0, rest, np.inf).min(axis=1, keepdims=True) / step) * step
        return divided(np.where((params["top_p"] >= 1.0)[:, None] | (rest > cut), rest, 0.0))

    return draws


def _min_p_of_first(tile: int) -> Callable[[np.ndarray, Params], np.ndarray]:
    def draws(logits: np.ndarray, params: Params) -> np.ndarray:
        p = sound(logits, {**params, "min_p": np.zeros_like(params["min_p"])})
        return divided(np.where(p >= params["min_p"][:, None] * p[:, :tile].max(axis=1, keepdims=True), p, 0.0))

    return draws


def _by_unfiltered_tiles(tile: int) -> Callable[[np.ndarray, Params], np.ndarray]:
    def draws(logits: np.ndarray, params: Params) -> np.ndarray:
        bare = {name: value if name == "temperature" else np.full_like(value, OFF[name]) for name, value in params.items()}
        begins = np.arange(0, logits.shape[1], tile)
        kept = sound(logits, params).astype(np.float64)
        mass, of_tile = np.add.reduceat(sound(logits, bare).astype(np.float64), begins, axis=1), np.add.reduceat(kept, begins, axis=1)
        times = np.divide(mass, of_tile, out=np.zeros_like(mass), where=of_tile > 0.0)
        return divided(kept * times.repeat(np.diff([*begins, logits.shape[1]]), axis=1))

    return draws


def _padded(to: int) -> Callable[[np.ndarray, Params], np.ndarray]:
    """With logits of 0, tokens beyond taken for the last one."""

    def draws(logits: np.ndarray, params: Params) -> np.ndarray:
        size = logits.shape[1]
        padded = np.concatenate([logits, np.zeros((len(logits), -size % to), np.float32)], axis=1)
        p = _sampling.process_rows(padded, params, filter_order=FILTER_ORDER.get()).probabilities  # of equal logits top-k takes the first
        out = p[:, :size].copy()
        out[:, -1] += p[:, size:].sum(axis=1)
        return out

    return draws
