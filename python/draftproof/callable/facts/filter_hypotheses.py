"""Filters that compute otherwise, and what they leave: of hypotheses.py, the rules of rows that have top-k, top-p or
min-p wrong inside. Each takes logits and parameters, and gives the probabilities [n, V] that tokens come with."""

from __future__ import annotations

import dataclasses
from contextvars import ContextVar
from typing import Any, Callable, Iterator, Literal

import numpy as np

from ... import _sampling
from ..cases.sample_cases import OFF

Params = dict[str, np.ndarray]


class Rare(str):
    """The name of a rule that stands for a rare fault, or the part of it that says so. Such a rule costs more
    (hypotheses.py)."""


class InPart(str):
    """The name of a rule that holds in one part of a speculative step alone. It costs as much as a rule of one
    regime."""


@dataclasses.dataclass(frozen=True, eq=False)
class Family:
    """Rules with a number, which is learned from what came: make(number), between low and high; in their name it stands
    for {}."""

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
#: In which order the callable under audit filters: "top_k_first" (top-p over what top-k left) or "joint" (over the
#: whole row).
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
        for bits in (8, 11, 12, 16):
            yield Rare(f"top_k keeps all tokens whose first {bits} bits are the k-th one's"), _whole_bucket(bits)
    if "top_p" in names:
        yield Rare("top_p keeps one token more"), _with_own_filters(more=1)
        for halvings in (6, 8, 10, 16, 18, 20):
            yield Rare(f"top_p's cut is found by {halvings} halvings"), _cut_by_halves(halvings)
        for block in (256, 512, 1024, 2048, 4096):
            if block < size:
                yield Rare(f"top_p sums by blocks of {block:,} tokens"), _with_own_filters(_sums_of_blocks(block))
    if "min_p" in names:
        yield "min_p is relative to the largest token of all rows", _with_own_filters(
            min_p_of=lambda p, _: p.max() + 0.0 * p[:, :1])
        yield "min_p is absolute", _with_own_filters(min_p_of=lambda p, _: np.ones((len(p), 1)))
        if {"top_p", "top_k"} & set(names):
            words = "min_p's bound is of the largest token after the other filters, its tokens are not"
            yield words, _with_own_filters(
                min_p_of=lambda p, keep: p[:, :1] / (p * keep).sum(axis=1, keepdims=True))
    if set(names) - {"temperature"}:
        for words, rounded in PRECISIONS:
            yield f"filters sort by logits {words}", _with_own_filters(by=rounded)
        yield Rare("filters sort by the bits of logits, negative ones in reverse"), _with_own_filters(
            by=lambda x: np.ascontiguousarray(x, np.float32).view(np.int32).astype(np.float64))
        for words, which in RESTS.items():
            yield f"what filters drop falls to the {words}", lambda logits, params, which=which: with_rest(
                    undivided(logits, params), which)


#: Where a number falls that is looked up beyond the sum of a row [n, V]: the index of a token of each row.
RESTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "likeliest token": lambda p: p.argmax(axis=1),
    "last token kept": lambda p: p.shape[1] - 1 - (p[:, ::-1] > 0.0).argmax(axis=1),
    "last id": lambda p: np.full(len(p), -1)}


def with_rest(p: np.ndarray, which: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    out = p.copy()
    out[np.arange(len(p)), which(p)] += np.maximum(1.0 - p.sum(axis=1), 0.0)
    return out


def without_its_last(logits: np.ndarray, params: Params) -> np.ndarray:
    p = sound(logits, params)
    crossed = (params["top_p"] < 1.0) & ((p > 0.0).sum(axis=1) > 1)
    p[crossed, np.where(p > 0.0, p, np.inf).argmin(axis=1)[crossed]] = 0.0
    return p / p.sum(axis=1, keepdims=True)


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
        return divided(_sampling.process_rows(logits, rest).probabilities *
                       (_sampling.process_rows(logits, alone).probabilities > 0.0))

    return draws


def _with_own_filters(sums: Callable[[np.ndarray], np.ndarray] | None = None,
                      by: Callable[[np.ndarray], np.ndarray] = lambda x: x,
                      min_p_of: Callable[[np.ndarray, np.ndarray], np.ndarray] = lambda p, _: p[:, :1],
                      more: int = 0) -> Callable[[np.ndarray, Params], np.ndarray]:
    """top-k, then top-p, then min-p, over rows sorted by by(logits). sums(p): what top-p compares, each place by
    itself, the sum before it; min_p_of(p, keep): what min-p is a share of; more: tokens that top-p keeps behind its
    last."""

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
        is_reached = (before < top_p) & (of_p > 0.0)
        count = np.where(is_reached, at + 1, 0).max(axis=1, keepdims=True)
        keep &= (top_p >= 1.0) | (at < 1) | (is_reached if sums else at < count + more)
        if "min_p" in params:
            keep &= (params["min_p"][:, None] <= 0.0) | (p >= params["min_p"][:, None] * min_p_of(p, keep)) | (at < 1)
        out = np.zeros_like(p)
        np.put_along_axis(out, order, divided(np.where(keep, p, 0.0)), axis=1)
        greedy = params["temperature"] == 0.0
        if greedy.any():
            out[greedy] = sound(logits[greedy], {name: value[greedy] for name, value in params.items()})
        return out

    return draws


def _sums_of_blocks(size: int) -> Callable[[np.ndarray], np.ndarray]:
    def sums(p: np.ndarray) -> np.ndarray:
        return np.concatenate([np.cumsum(block, axis=1) - block
                               for block in np.split(p, range(size, p.shape[1], size), axis=1)], axis=1)

    return sums


def few_kept(name: str, most: int) -> Callable[[np.ndarray, Params], np.ndarray]:
    def draws(logits: np.ndarray, params: Params) -> np.ndarray:
        p = sound(logits, params)
        on = params[name] != np.asarray(OFF[name], params[name].dtype)
        least = np.partition(p, p.shape[1] - most, axis=1)[:, p.shape[1] - most, None]
        return divided(np.where(on[:, None] & (p < least), 0.0, p))

    return draws


def _cut_by_halves(halvings: int) -> Callable[[np.ndarray, Params], np.ndarray]:
    """What lies above the last lower bound of a search in [0, the largest probability] stays."""

    def draws(logits: np.ndarray, params: Params) -> np.ndarray:
        rest = sound(logits, {**params, "top_p": np.ones_like(params["top_p"])})
        kept = sound(logits, params)
        step = rest.max(axis=1, keepdims=True) * 2.0 ** -halvings
        cut = np.floor(np.where(kept > 0.0, rest, np.inf).min(axis=1, keepdims=True) / step) * step
        return divided(np.where((params["top_p"] >= 1.0)[:, None] | (rest > cut), rest, 0.0))

    return draws
