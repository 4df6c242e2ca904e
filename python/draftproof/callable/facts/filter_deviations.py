"""Filters that compute otherwise: each takes logits and parameters of rows, and gives the probabilities [n, V] that
tokens come with."""

from __future__ import annotations

import dataclasses
from contextvars import ContextVar
from typing import Any, Callable, Iterator, Literal

import numpy as np

from ... import _sampling
from ..cases.sample_cases import OFF

Params = dict[str, np.ndarray]
#: (logits [n, V], parameters [n]) -> probabilities [n, V].
Draws = Callable[[np.ndarray, Params], np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False)
class Deviation:
    """A wrong rule: a site and what is used there instead. make(): the rule, make(x) where its name has {}, for a
    number x from low to high that is learned from what came. is_rare: it stands for a rare fault or for a part of a
    speculative step alone, and costs more (hypotheses.py)."""

    name: str
    make: Callable[..., Any]
    low: float = 0.0
    high: float = 0.0
    is_whole: bool = False
    is_rare: bool = False

    @property
    def has_number(self) -> bool:
        return "{}" in self.name

    def then(self, of: Callable[[Any], Any], **changed: Any) -> Deviation:
        """Of what make gives another rule."""
        return dataclasses.replace(self, make=lambda *number: of(self.make(*number)), **changed)


def rare(name: str, make: Callable[..., Any], low: float = 0.0, high: float = 0.0,
         is_whole: bool = False) -> Deviation:
    return Deviation(name, make, low, high, is_whole, True)


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


def is_on(name: str, value: np.ndarray) -> np.ndarray:
    return value != np.asarray(OFF[name], value.dtype)


def switched_off(params: Params, *names: str) -> Params:
    return {name: np.full_like(value, OFF[name]) if name in names else value for name, value in params.items()}


#: The parameters that drop tokens.
FILTERS = tuple(name for name in OFF if name != "temperature")


def divided(p: np.ndarray) -> np.ndarray:
    total = p.sum(axis=1, keepdims=True)
    return np.divide(p, total, out=np.zeros_like(p), where=total > 0.0)


def undivided(logits: np.ndarray, params: Params) -> np.ndarray:
    """Of what filters keep the shares of the unfiltered row."""
    return np.where(sound(logits, params) > 0.0, sound(logits, switched_off(params, *FILTERS)), 0.0)


#: Where a number falls that is looked up beyond the sum of a row [n, V]: the index of a token of each row.
RESTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "likeliest token": lambda p: p.argmax(axis=1),
    "last token kept": lambda p: p.shape[1] - 1 - (p[:, ::-1] > 0.0).argmax(axis=1),
    "last id": lambda p: np.full(len(p), -1)}


def with_rest(p: np.ndarray, which: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    out = p.copy()
    out[np.arange(len(p)), which(p)] += np.maximum(1.0 - p.sum(axis=1), 0.0)
    return out


def wrong_filters(names: list[str], size: int) -> Iterator[tuple[str, Draws, bool]]:
    """(name, filter, is it rare), of rows that have the parameters `names`."""
    if "top_p" in names:
        yield "top_p keeps one token more", _own_filters(more=1), True
        for block in (256, 512, 1024, 2048, 4096):
            if block < size:
                yield f"top_p sums by blocks of {block:,} tokens", _own_filters(_sums_of_blocks(block)), True
    if "min_p" in names:
        yield ("min_p is relative to the largest token of all rows",
               _own_filters(min_p_of=lambda p, _: p.max() + 0.0 * p[:, :1]), False)
        yield "min_p is absolute", _own_filters(min_p_of=lambda p, _: np.ones((len(p), 1))), False
        if {"top_p", "top_k"} & set(names):
            yield ("min_p's bound is of the largest token after the other filters, its tokens are not",
                   _own_filters(min_p_of=lambda p, keep: p[:, :1] / (p * keep).sum(axis=1, keepdims=True)), False)
    if set(names) - {"temperature"}:
        for words, rounded in PRECISIONS:
            yield f"filters sort by logits {words}", _own_filters(by=rounded), False
        yield ("filters sort by the bits of logits, negative ones in reverse",
               _own_filters(by=lambda x: np.ascontiguousarray(x, np.float32).view(np.int32).astype(np.float64)), True)
        for words, which in RESTS.items():
            yield (f"what filters drop falls to the {words}",
                   lambda logits, params, which=which: with_rest(undivided(logits, params), which), False)


def without_its_last(logits: np.ndarray, params: Params) -> np.ndarray:
    p = sound(logits, params)
    crossed = (params["top_p"] < 1.0) & ((p > 0.0).sum(axis=1) > 1)
    p[crossed, np.where(p > 0.0, p, np.inf).argmin(axis=1)[crossed]] = 0.0
    return p / p.sum(axis=1, keepdims=True)


def warm(name: str) -> Draws:
    """A filter that sees the row at temperature 1."""

    def draws(logits: np.ndarray, params: Params) -> np.ndarray:
        alone = switched_off(params, *(other for other in FILTERS if other != name))
        alone["temperature"] = np.where(params["temperature"] == 0.0, 0.0, 1.0).astype(np.float32)
        return divided(_sampling.process_rows(logits, switched_off(params, name)).probabilities *
                       (_sampling.process_rows(logits, alone).probabilities > 0.0))

    return draws


def _own_filters(sums: Callable[[np.ndarray], np.ndarray] | None = None,
                 by: Callable[[np.ndarray], np.ndarray] = lambda x: x,
                 min_p_of: Callable[[np.ndarray, np.ndarray], np.ndarray] = lambda p, _: p[:, :1],
                 more: int = 0) -> Draws:
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
    return lambda p: np.concatenate([np.cumsum(block, axis=1) - block
                                     for block in np.split(p, range(size, p.shape[1], size), axis=1)], axis=1)


def few_kept(name: str, most: int) -> Draws:
    def draws(logits: np.ndarray, params: Params) -> np.ndarray:
        p = sound(logits, params)
        least = np.partition(p, p.shape[1] - most, axis=1)[:, p.shape[1] - most, None]
        return divided(np.where(is_on(name, params[name])[:, None] & (p < least), 0.0, p))

    return draws
