"""Deviations of rows, of samplers, filters and verifiers alike: a parameter, a filter (filter_deviations.py), the
logits or the whole row is not what it should be, or is another row's."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Iterator

import numpy as np

from .filter_deviations import (
    FILTERS,
    PRECISIONS,
    SORTED,
    Deviation,
    Draws,
    Params,
    few_kept,
    is_on,
    rare,
    sound,
    switched_off,
    warm,
    without_its_last,
    wrong_filters,
)


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """Logits [n, V] and parameters [n] of rows, as a deviation has them. draws: how they are filtered; None: as they
    should."""

    logits: np.ndarray
    params: Params
    draws: Draws | None = None

    @property
    def probabilities(self) -> np.ndarray:
        return (self.draws or sound)(self.logits, self.params)

    def with_params(self, **changed: Any) -> Rows:
        return Rows(self.logits, {**self.params, **{name: np.asarray(value, self.params[name].dtype)
                                                    for name, value in changed.items()}})

    def with_logits(self, logits: np.ndarray) -> Rows:
        return Rows(logits.astype(np.float32), self.params)


#: Whose parameters are read: of each row the index of another.
Whose = tuple[str, np.ndarray, bool]


def neighbours(count: int, one: str = "one") -> Iterator[Whose]:
    """(words, index [count], is it rare), of rows in order. one: what a row is called."""
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


def _active(params: Params, every: Params) -> list[str]:
    return [name for name in params if is_on(name, params[name]).any() or is_on(name, every[name]).any()]


def mixed_rows(rows: Rows, whose: list[Whose], every: Params) -> Iterator[Deviation]:
    """whose: of each row [n] that of `every` whose parameters are read instead."""
    names = _active(rows.params, every)
    sites = {**{name: (name,) for name in names},
             **({"parameters": tuple(rows.params), "filters": FILTERS} if len(rows.params) > 1 else {})}
    for words, at, is_rare in whose:
        for site, of in sites.items():
            yield Deviation(f"{site} {'are' if site in ('parameters', 'filters') else 'is'} {words}",
                            lambda at=at, of=of: rows.with_params(**{name: every[name][at] for name in of
                                                                     if name in every}), is_rare=is_rare)


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


def wrong_rows(rows: Rows, every: Params) -> Iterator[Deviation]:
    """every: parameters [m] of all rows of a call."""
    params, size, names = rows.params, rows.logits.shape[1], _active(rows.params, every)
    t = params["temperature"]
    random = t > 0.0

    def filtered(name: str, draws: Draws, is_rare: bool = False) -> Deviation:
        return Deviation(name, lambda: Rows(rows.logits, params, draws), is_rare=is_rare)

    for name in names:
        if name != "temperature" and (t != 1.0).any():
            yield filtered(f"{name} is applied before the temperature", warm(name))
        off = np.where(random, 1.0, 0.0) if name == "temperature" else switched_off(params, name)[name]
        yield Deviation(f"{name} is not applied", lambda name=name, off=off: rows.with_params(**{name: off}))
    if set(names) & set(FILTERS):
        yield Deviation("no filter is applied", lambda: Rows(rows.logits, switched_off(params, *FILTERS)))
    for name, low, high in (("top_k", 1, size - 1), ("top_p", 0.05, 0.999), ("min_p", 1e-3, 1.0)):
        on = is_on(name, params[name]) if name in params else np.ones(1, bool)
        if not on.all() and low < high:
            yield rare(f"{name} is {{}} where it is off", lambda x, name=name, on=on: rows.with_params(
                **{name: np.where(on, params[name], x)}), low, high, name == "top_k")
    if not random.all():
        yield rare("greedy rows are drawn at temperature {}",
                   lambda cold: rows.with_params(temperature=np.where(random, t, cold)), 1e-4, 0.5)
        yield Deviation("greedy rows are drawn", lambda: rows.with_params(temperature=np.where(random, t, 1.0)))
    if random.any():
        yield Deviation("random rows are greedy", lambda: rows.with_params(temperature=np.zeros_like(t)))
        yield Deviation("the temperature is applied twice", lambda: rows.with_params(temperature=t * t))
    if "top_k" in names:
        k = params["top_k"]
        for name, value, is_rare in (("keeps one token fewer", np.where(k > 1, k - 1, k), False),
                                     ("keeps one token more", np.where((k > 0) & (k < size), k + 1, k), True),
                                     ("has 8 bits", np.where(k > 0, k & 0xFF, k), False),
                                     ("has 16 bits", np.where(k > 0, k & 0xFFFF, k), False)):
            yield Deviation(f"top_k {name}", lambda value=value: rows.with_params(top_k=value), is_rare=is_rare)
    if "top_p" in names:
        yield filtered("top_p drops the token that crosses it", without_its_last)
    for name in ("top_p", "min_p"):
        if name in names and size > 8:
            yield Deviation(f"{name} keeps {{}} tokens at most", lambda most, name=name: Rows(
                rows.logits, params, few_kept(name, int(most))), 2, size - 1, True)
    if rows.logits.size <= SORTED:
        for name, draws, is_rare in wrong_filters(names, size):
            yield filtered(name, draws, is_rare)
    for name in names:
        yield from _laws(rows, name, size)
    yield from _wrong_logits(rows)
    for name in names:
        for words, rounded in PRECISIONS if name != "top_k" else ():
            yield Deviation(f"{name} is {words}",
                            lambda name=name, rounded=rounded: rows.with_params(**{name: rounded(params[name])}))


def _laws(rows: Rows, name: str, size: int) -> Iterator[Deviation]:
    """What a parameter may act as where it is on, by one number."""
    asked = rows.params[name]
    here = asked > 0.0 if name == "temperature" else is_on(name, asked) & (asked > 0.0)
    if not here.any():
        return
    words, top = ("the temperature", np.inf) if name == "temperature" else (name, size if name == "top_k" else 1.0)
    least, most = float(asked[here].min()), float(asked[here].max())

    def law(text: str, acts_as: Callable[[np.ndarray, float], np.ndarray], low: float, high: float,
            is_rare: bool = False) -> Deviation:
        return Deviation(f"{words} {text}", lambda x: rows.with_params(**{name: np.where(
            here, np.minimum(acts_as(asked.astype(np.float64), x), top), asked)}), low, high, name == "top_k", is_rare)

    yield law("is {} at most", np.minimum, 1 if name == "top_k" else least / 16.0, most)
    if name != "top_k":
        yield law("is {} at least", np.maximum, least, min(top, 16.0 * most))
        yield law("acts as {} times itself", np.multiply, 0.125, 8.0)
        if most < 1.0:
            yield law("acts as itself to the power of {}", np.power, 0.25, 4.0, True)


def _wrong_logits(rows: Rows) -> Iterator[Deviation]:
    logits, size = rows.logits, rows.logits.shape[1]
    finite, ids = np.isfinite(logits), np.arange(size)
    t, random = np.maximum(rows.params["temperature"], 1e-30)[:, None], (rows.params["temperature"] > 0.0)[:, None]
    for words, rounded in PRECISIONS:
        yield Deviation(f"logits are {words}", lambda rounded=rounded: rows.with_logits(
            np.where(finite, rounded(logits), logits)))
    least = int(finite.argmax(axis=1).max()) + 1  # one token of each row stays
    if least < size:
        yield Deviation("tokens from {} on never come", lambda bound: rows.with_logits(
            np.where(ids >= bound, -np.inf, logits)), least, size - 1, True)
    below = logits.max(axis=1, keepdims=True) - logits
    spread = float((below / t)[finite & random].max(initial=0.0))
    if spread > 4.0:
        yield Deviation("tokens {} below the top never come", lambda depth: rows.with_logits(
            np.where(finite & (below > depth * t), -np.inf, logits)), 2.0, min(spread, 100.0))
    largest = float((logits / t)[finite & random].max(initial=0.0))
    if largest > 10.0:
        yield Deviation("logits over the temperature are cut at {}", lambda bound: rows.with_logits(
            np.where(random, np.minimum(logits, bound * t), logits)), 5.0, min(largest, 1e4))
    largest = float(np.abs(logits[finite]).max(initial=0.0))
    if largest > 10.0:
        yield rare("logits are clamped to +-{}", lambda bound: rows.with_logits(
            np.where(finite, np.clip(logits, -bound, bound), logits)), 5.0, largest)
