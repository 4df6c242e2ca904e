"""The grammar of rows, of samplers, filters and verifiers alike: a site (a parameter, a filter, the logits) and what is
used there instead: nothing, another number, another row's, another precision, another order of steps."""

from __future__ import annotations

import dataclasses
import functools
from contextvars import ContextVar
from typing import Any, Callable, Iterator

import numpy as np

from ... import _sampling
from ..cases.sample_cases import OFF, shown
from ..evidence.readings import FilterOrder

Params = dict[str, np.ndarray]
#: (logits [n, V], parameters [n]) -> probabilities [n, V].
Draws = Callable[[np.ndarray, Params], np.ndarray]
#: The parameters that drop tokens.
FILTERS = tuple(name for name in OFF if name != "temperature")
#: Logits of which rules that sort them are tried, at most.
SORTED = 1 << 19
#: In which order the callable under audit filters: "top_k_first" (top-p over what top-k left) or "joint" (over all).
FILTER_ORDER: ContextVar[FilterOrder] = ContextVar("filter_order", default="joint")


@dataclasses.dataclass(frozen=True, eq=False)
class Deviation:
    """A site and what is used there instead. make(): the rule that it gives; make(x) where its name has {}, for a
    number x from low to high that is learned from what came. is_rare: it costs more (predict.py)."""

    name: str
    make: Callable[..., Any]
    low: float = 0.0
    high: float = 0.0
    is_whole: bool = False
    is_rare: bool = False

    @property
    def has_number(self) -> bool:
        return "{}" in self.name

    def then(self, of: Callable[[Any], Any]) -> Deviation:
        """Of what make gives another rule."""
        return dataclasses.replace(self, make=lambda *number: of(self.make(*number)))


def rare(name: str, make: Callable[..., Any], low: float = 0.0, high: float = 0.0, is_whole: bool = False) -> Deviation:
    return Deviation(name, make, low, high, is_whole, True)


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """Logits [n, V] and parameters [n] of rows, as a deviation has them. draws: how they are filtered; None: as they
    should."""

    logits: np.ndarray
    params: Params
    draws: Draws | None = None

    @functools.cached_property
    def probabilities(self) -> np.ndarray:
        return (self.draws or sound)(self.logits, self.params)

    def about(self, row: int) -> str:
        """A row by the parameters that are on."""
        on = [f"{name} {shown(value[row])}" for name, value in self.params.items() if is_on(name, value)[row]]
        return f"a row with {', '.join(on)}" if on else "an unfiltered row"

    def with_params(self, **changed: Any) -> Rows:
        return Rows(self.logits, {**self.params, **{name: np.asarray(value, self.params[name].dtype)
                                                    for name, value in changed.items()}})

    def with_logits(self, logits: np.ndarray) -> Rows:
        return Rows(logits.astype(np.float32), self.params)


def sound(logits: np.ndarray, params: Params) -> np.ndarray:
    return _sampling.process_rows(logits, params, ties="keep_all", filter_order=FILTER_ORDER.get()).probabilities


def is_on(name: str, value: np.ndarray) -> np.ndarray:
    return value != np.asarray(OFF[name], value.dtype)


def switched_off(params: Params, *names: str) -> Params:
    return {name: np.full_like(value, OFF[name]) if name in names else value for name, value in params.items()}


def divided(p: np.ndarray) -> np.ndarray:
    total = p.sum(axis=1, keepdims=True)
    return np.divide(p, total, out=np.zeros_like(p), where=total > 0.0)


def as_half(x: np.ndarray) -> np.ndarray:
    return np.clip(x, -65504.0, 65504.0).astype(np.float16).astype(np.float32)


def _to_bfloat16(x: np.ndarray, half: int) -> np.ndarray:
    """half: 0 cuts towards 0."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + half + (bits >> 16 & bool(half))) & np.uint32(0xFFFF0000)).view(np.float32)


PRECISIONS: tuple[tuple[str, Callable[[np.ndarray], np.ndarray]], ...] = (
    ("of half precision", as_half), ("of bfloat16", lambda x: _to_bfloat16(x, 0x7FFF)),
    ("cut to bfloat16", lambda x: _to_bfloat16(x, 0)))
#: Where a number falls that is looked up beyond the sum of a row [n, V]: the index of a token of each row.
RESTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "likeliest token": lambda p: p.argmax(axis=1), "last id": lambda p: np.full(len(p), -1),
    "last token kept": lambda p: p.shape[1] - 1 - (p[:, ::-1] > 0.0).argmax(axis=1)}


def with_rest(p: np.ndarray, which: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    out = p.copy()
    out[np.arange(len(p)), which(p)] += np.maximum(1.0 - p.sum(axis=1), 0.0)
    return out


# Filters that compute otherwise


def undivided(logits: np.ndarray, params: Params) -> np.ndarray:
    """Of what filters keep the shares of the unfiltered row."""
    return np.where(sound(logits, params) > 0.0, sound(logits, switched_off(params, *FILTERS)), 0.0)


def _warm(name: str, logits: np.ndarray, params: Params) -> np.ndarray:
    """A filter sees the row at temperature 1."""
    alone = switched_off(params, *(other for other in FILTERS if other != name))
    alone["temperature"] = np.where(params["temperature"] == 0.0, 0.0, 1.0).astype(np.float32)
    return divided(_sampling.process_rows(logits, switched_off(params, name)).probabilities *
                   (_sampling.process_rows(logits, alone).probabilities > 0.0))


def _at_most(name: str, most: int, logits: np.ndarray, params: Params) -> np.ndarray:
    """A filter keeps so many tokens at most."""
    p = sound(logits, params)
    least = np.partition(p, p.shape[1] - most, axis=1)[:, p.shape[1] - most, None]
    return divided(np.where(is_on(name, params[name])[:, None] & (p < least), 0.0, p))


def _without_its_last(logits: np.ndarray, params: Params) -> np.ndarray:
    p = sound(logits, params)
    crossed = (params["top_p"] < 1.0) & ((p > 0.0).sum(axis=1) > 1)
    p[crossed, np.where(p > 0.0, p, np.inf).argmin(axis=1)[crossed]] = 0.0
    return divided(p)


def _own(logits: np.ndarray, params: Params, block: int = 0, by: Callable[[np.ndarray], np.ndarray] = lambda x: x,
         min_p_of: Callable[[np.ndarray, np.ndarray], Any] = lambda p, _: p[:, :1], more: int = 0) -> np.ndarray:
    """top-k, then top-p, then min-p, over rows sorted by by(logits). block: ranks after which top-p's sum begins again;
    min_p_of(p, keep): what min-p is a share of; more: tokens that top-p keeps behind its last."""
    wide, k, top_p = logits.astype(np.float64), params["top_k"][:, None], params["top_p"][:, None]
    t = np.where(params["temperature"] > 0.0, params["temperature"], 1.0).astype(np.float64)[:, None]
    order, at = np.argsort(-by(logits), axis=1, kind="stable"), np.arange(logits.shape[1])[None, :]
    keep = (k <= 0) | (at < k)
    whole = np.exp((np.take_along_axis(wide, order, axis=1) - wide.max(axis=1, keepdims=True)) / t)
    p = divided(np.where(keep, whole, 0.0))
    of_p = p if FILTER_ORDER.get() == "top_k_first" else divided(whole)
    before = np.cumsum(of_p, axis=1) - of_p
    if block:
        before = before - before[:, at[0] // block * block]
    reached = (before < top_p) & (of_p > 0.0)
    count = np.where(reached, at + 1, 0).max(axis=1, keepdims=True)
    keep &= (top_p >= 1.0) | (at < 1) | (reached if block else at < count + more)
    if "min_p" in params:
        keep &= (params["min_p"][:, None] <= 0.0) | (p >= params["min_p"][:, None] * min_p_of(p, keep)) | (at < 1)
    out, greedy = np.zeros_like(p), params["temperature"] == 0.0
    np.put_along_axis(out, order, divided(np.where(keep, p, 0.0)), axis=1)
    if greedy.any():
        out[greedy] = sound(logits[greedy], {name: value[greedy] for name, value in params.items()})
    return out


def _wrong_filters(names: set[str], rows: Rows) -> Iterator[tuple[str, Draws, bool]]:
    """(name, filter, is it rare), of rows that have the parameters `names`."""
    part, size = functools.partial, rows.logits.shape[1]
    if (rows.params["temperature"] != 1.0).any():
        yield from ((f"{name} is applied before the temperature", part(_warm, name), False)
                    for name in FILTERS if name in names)
    if "top_p" in names:
        yield "top_p drops the token that crosses it", _without_its_last, False
    if rows.logits.size > SORTED:
        return
    if "top_p" in names:
        yield "top_p keeps one token more", part(_own, more=1), True
        yield from ((f"top_p sums by blocks of {block:,} tokens", part(_own, block=block), True)
                    for block in (256, 512, 1024, 2048, 4096) if block < size)
    if "min_p" in names:
        yield "min_p is relative to the largest token of all rows", part(_own, min_p_of=lambda p, _: p.max()), False
        yield "min_p is absolute", part(_own, min_p_of=lambda p, _: 1.0), False
    if "min_p" in names and {"top_p", "top_k"} & names:
        yield ("min_p's bound is of the largest token after the other filters, its tokens are not", part(
            _own, min_p_of=lambda p, keep: p[:, :1] / (p * keep).sum(axis=1, keepdims=True)), False)
    if names - {"temperature"}:
        yield from ((f"filters sort by logits {words}", part(_own, by=rounded), False) for words, rounded in PRECISIONS)
        yield "filters sort by the bits of logits, negative ones in reverse", part(
            _own, by=lambda x: np.ascontiguousarray(x, np.float32).view(np.int32).astype(np.float64)), True
        yield from ((f"what filters drop falls to the {words}", lambda logits, params, which=which: with_rest(
            undivided(logits, params), which), False) for words, which in RESTS.items())


# Rows


def _active(params: Params, every: Params) -> list[str]:
    return [name for name in params if is_on(name, params[name]).any() or is_on(name, every[name]).any()]


def wrong_rows(rows: Rows, every: Params) -> Iterator[Deviation]:
    """every: parameters [m] of all rows of a call."""
    params, size, names = rows.params, rows.logits.shape[1], _active(rows.params, every)
    for name in params:
        for words, acts_as, low, high, is_rare in _laws(rows, name, name in names):
            yield Deviation(words, lambda *x, name=name, acts_as=acts_as: rows.with_params(**{name: acts_as(*x)}), low,
                            high, name == "top_k", is_rare)
        if name in names and name in ("top_p", "min_p") and size > 8:
            yield Deviation(f"{name} keeps {{}} tokens at most", lambda most, name=name: Rows(
                rows.logits, params, functools.partial(_at_most, name, int(most))), 2, size - 1, True)
    if set(names) & set(FILTERS):
        yield Deviation("no filter is applied", lambda: Rows(rows.logits, switched_off(params, *FILTERS)))
    for words, draws, is_rare in _wrong_filters(set(names), rows):
        yield Deviation(words, lambda draws=draws: Rows(rows.logits, params, draws), is_rare=is_rare)
    yield from _wrong_logits(rows)


#: What a parameter acts as: words, its values [n] (of a number that is learned, between two), is it rare.
Law = tuple[str, Callable[..., np.ndarray], float, float, bool]


def _laws(rows: Rows, name: str, is_active: bool) -> Iterator[Law]:
    asked, size = rows.params[name], rows.logits.shape[1]
    is_heat, is_count = name == "temperature", name == "top_k"
    on = asked > 0.0 if is_heat else is_on(name, asked)
    here = on & (asked > 0.0)
    low, high = {"temperature": (1e-4, 0.5), "top_k": (1, size - 1), "top_p": (0.05, 0.999)}.get(name, (1e-3, 1.0))
    if not on.all() and low < high:
        words = "greedy rows are drawn at temperature {}" if is_heat else f"{name} is {{}} where it is off"
        yield words, lambda x: np.where(on, asked, x), low, high, True
    if not is_active:
        return
    yield f"{name} is not applied", lambda: np.where(on, OFF[name], asked), 0.0, 0.0, False
    if is_heat and not on.all():
        yield "greedy rows are drawn", lambda: np.where(on, asked, 1.0), 0.0, 0.0, False
    if not here.any():
        return
    words, top = ("the temperature", np.inf) if is_heat else (name, size if is_count else 1.0)
    least, most = float(asked[here].min()), float(asked[here].max())

    def acting(by: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
        return lambda *x: np.where(here, np.minimum(by(asked.astype(np.float64), *x), top), asked)

    yield f"{words} is {{}} at most", acting(np.minimum), 1 if is_count else least / 16.0, most, False
    if is_count:
        yield "top_k keeps one token fewer", acting(lambda k: np.maximum(k - 1, 1)), 0.0, 0.0, False
        yield "top_k keeps one token more", acting(lambda k: k + 1), 0.0, 0.0, True
        for bits in (8, 16):
            low_bits = np.where(here, asked & ((1 << bits) - 1), asked)
            yield f"top_k has {bits} bits", lambda low_bits=low_bits: low_bits, 0.0, 0.0, False
        return
    yield f"{words} is {{}} at least", acting(np.maximum), least, min(top, 16.0 * most), False
    yield f"{words} acts as {{}} times itself", acting(np.multiply), 0.125, 8.0, False
    if most < 1.0:
        yield f"{words} acts as itself to the power of {{}}", acting(np.power), 0.25, 4.0, True
    if is_heat:
        yield "random rows are greedy", lambda: np.zeros_like(asked), 0.0, 0.0, False
        yield "the temperature is applied twice", lambda: asked * asked, 0.0, 0.0, False
    yield from ((f"{name} is {text}", lambda rounded=rounded: rounded(asked), 0.0, 0.0, False)
                for text, rounded in PRECISIONS)


def _wrong_logits(rows: Rows) -> Iterator[Deviation]:
    logits, ids = rows.logits, np.arange(rows.logits.shape[1])
    finite, random = np.isfinite(logits), (rows.params["temperature"] > 0.0)[:, None]
    t, below = np.maximum(rows.params["temperature"], 1e-30)[:, None], logits.max(axis=1, keepdims=True) - logits

    def largest(x: np.ndarray, here: np.ndarray) -> float:
        return float(x[finite & here].max(initial=0.0))

    for words, rounded in PRECISIONS:
        yield Deviation(f"logits are {words}", lambda rounded=rounded: rows.with_logits(
            np.where(finite, rounded(logits), logits)))
    always = np.ones_like(finite)
    for words, instead, least, low, high, is_whole, is_rare in (
            ("tokens from {} on never come", lambda x: np.where(ids >= x, -np.inf, logits), 1,
             int(finite.argmax(axis=1).max()) + 1, len(ids) - 1, True, False),  # one token of each row stays
            ("tokens {} below the top never come", lambda x: np.where(finite & (below > x * t), -np.inf, logits), 4.0,
             2.0, min(largest(below / t, random), 100.0), False, False),
            ("logits over the temperature are cut at {}", lambda x: np.where(random, np.minimum(logits, x * t), logits),
             10.0, 5.0, min(largest(logits / t, random), 1e4), False, False),
            ("logits are clamped to +-{}", lambda x: np.where(finite, np.clip(logits, -x, x), logits), 10.0, 5.0,
             largest(np.abs(logits), always), False, True)):
        if high > max(least, low):
            yield Deviation(words, lambda x, instead=instead: rows.with_logits(instead(x)), low, high, is_whole,
                            is_rare)


#: Whose parameters are read: words, of each row the index of another, is it rare.
Whose = tuple[str, np.ndarray, bool]


def neighbours(count: int, one: str = "one") -> Iterator[Whose]:
    """Of rows in order, [count]. one: what a row is called."""
    if count < 2:
        return
    at = np.arange(count)
    yield f"the next {one}'s", (at + 1) % count, False
    yield f"the {one}'s before", at - 1, False
    yield f"the first {one}'s", at * 0, False
    yield f"the last {one}'s", at * 0 + count - 1, False
    for width in (2, 4, 8, 16, 32, 48, 64, 128, 256, 512, 1024):
        if count <= width:
            continue
        if width in (2, 4, 8, 32):
            yield f"place i / {width}'s", at // width, True
        if width >= 8 and width != 48:
            yield f"place i modulo {width}'s", at % width, True
        if width >= 16:
            yield f"place {width - 1}'s behind it", np.minimum(at, width - 1), True


def compacted(params: Params, one: str = "row") -> Iterator[Whose]:
    """Some of a call's rows gathered, their parameters not: of each such row its place among them, of others their own,
    [..., B]."""
    for name, words in (("temperature", f"random {one}"), ("top_k", f"{one} with top_k"),
                        ("top_p", f"{one} with top_p")):
        on = params[name] > 0.0 if name == "temperature" else is_on(name, params[name])
        if on.any() and not on.all():
            yield (f"place i's for the i-th {words}", np.where(on, np.cumsum(on, axis=-1) - 1, np.arange(on.shape[-1])),
                   True)


def mixed_rows(rows: Rows, whose: list[Whose], every: Params) -> Iterator[Deviation]:
    """whose: of each row [n] that of `every` whose parameters are read instead."""
    sites = {name: f"{name} is" for name in _active(rows.params, every)}
    for words, at, is_rare in whose:
        for of, site in [*(((name,), site) for name, site in sites.items()),
                         *([(tuple(rows.params), "parameters are"), (FILTERS, "filters are")] if len(rows.params) > 1
                           else [])]:
            yield Deviation(f"{site} {words}", lambda at=at, of=of: rows.with_params(
                **{name: every[name][at] for name in of if name in every}), is_rare=is_rare)


def extreme_rows(rows: Rows, every: Params) -> Iterator[Deviation]:
    """A parameter is that of one row for all."""
    cold = every["temperature"] == 0.0
    if cold.any() and not cold.all():
        yield from beside_others(rows, True)
    for name in _active(rows.params, every):
        for words, value in (("largest", every[name].max()), ("smallest", every[name].min())):
            if every[name].min() < every[name].max():
                yield from of_call(rows, name, words, np.full_like(rows.params[name], value))


def of_call(rows: Rows, name: str, words: str, value: np.ndarray) -> Iterator[Deviation]:
    """A parameter is the largest or smallest of its call, value [n]."""
    yield Deviation(f"{name} is the {words} of the call", lambda: rows.with_params(**{name: value}))
    yield rare(f"{name} is the {words} of the call, where it is on", lambda: rows.with_params(
        **{name: np.where(is_on(name, rows.params[name]), value, rows.params[name])}))


def beside_others(rows: Rows, is_mixed: np.ndarray | bool) -> Iterator[Deviation]:
    """Rows whose calls, where they are mixed, have greedy and random rows, and take one way."""
    t = rows.params["temperature"]
    yield Deviation("random rows beside greedy ones are greedy",
                    lambda: rows.with_params(temperature=np.where(is_mixed, 0.0, t)))
    yield Deviation("greedy rows beside random ones are drawn",
                    lambda: rows.with_params(temperature=np.where(is_mixed & (t == 0.0), 1.0, t)))


def every_wrong(rows: Rows, whose: list[Whose], every: Params) -> Iterator[Deviation]:
    """Of rows of one call."""
    yield from wrong_rows(rows, every)
    yield from mixed_rows(rows, whose, every)
    yield from extreme_rows(rows, every)
