"""Rules of rows that would give what came (hypotheses.py): of samplers, filters and verifiers alike, a parameter, a
filter (filter_hypotheses.py), the logits or a row that is not what it should be."""

from __future__ import annotations

import dataclasses
from typing import Callable, Iterator

import numpy as np

from ..cases.sample_cases import OFF
from .filter_hypotheses import (
    PRECISIONS,
    SORTED,
    Family,
    Params,
    Rare,
    few_kept,
    rare_as,
    sound,
    warm,
    without_its_last,
    wrong_filters,
)


@dataclasses.dataclass(frozen=True, eq=False)
class Given:
    """A row's logits and parameters, as a hypothesis has them. draws(logits, params) -> probabilities [n, V]; None: as
    they should."""

    logits: np.ndarray
    params: Params
    draws: Callable[[np.ndarray, Params], np.ndarray] | None = None


def probabilities(given: Given) -> np.ndarray:
    return (given.draws or sound)(given.logits, given.params)


def _few_of_tiles(logits: np.ndarray, top_k: np.ndarray, tile: int, few: int) -> np.ndarray:
    """Rows with a top-k lose what is not among the largest of its tile."""
    padded = np.concatenate([logits, np.full((len(logits), -logits.shape[1] % tile), -np.inf, np.float32)], axis=1)
    tiles = padded.reshape(len(logits), -1, tile)
    least = np.partition(tiles, tile - few, axis=2)[:, :, tile - few, None]
    left = np.where(tiles >= least, tiles, -np.inf).reshape(len(logits), -1)[:, :logits.shape[1]]
    return np.where(((top_k > 0) & (top_k < logits.shape[1]))[:, None], left, logits).astype(np.float32)


def _active(params: Params, every: Params) -> list[str]:
    return [name for name in params
            if any((values[name] != np.asarray(OFF[name], values[name].dtype)).any() for values in (params, every))]


def mixed_rows(logits: np.ndarray, params: Params, others: dict[str, np.ndarray],
               every: Params) -> Iterator[tuple[str, Given]]:
    """As wrong_rows; others: by name the row [n] of `every` whose parameters are read instead."""
    names = _active(params, every)

    def changed(name: str, value: np.ndarray) -> Given:
        return Given(logits, {**params, name: np.asarray(value, params[name].dtype)})

    for words, at in others.items():
        for name in names:
            yield rare_as(words, f"{name} is {words}"), changed(name, every[name][at])
        if len(params) > 1:
            yield rare_as(words, f"parameters are {words}"), Given(logits, {name: every[name][at] for name in params})
            yield rare_as(words, f"filters are {words}"), Given(logits,
                                                                {name: every[name][at] if name != "temperature"
                                                                 else params[name]
                                                                         for name in params})


def extreme_rows(logits: np.ndarray, params: Params, every: Params) -> Iterator[tuple[str, Given]]:
    """As wrong_rows: a parameter is that of one row for all."""
    cold = every["temperature"] == 0.0
    if cold.any() and not cold.all():
        for words, value in beside_others(params["temperature"], True):
            yield words, Given(logits, {**params, "temperature": value.astype(np.float32)})
    for name in _active(params, every):
        for words, value in (("largest", every[name].max()), ("smallest", every[name].min())):
            if every[name].min() < every[name].max():
                yield f"{name} is the {words} of the call", Given(logits,
                        {**params, name: np.full_like(params[name], value)})
                on = params[name] != np.asarray(OFF[name], params[name].dtype)
                yield Rare(f"{name} is the {words} of the call, where it is on"), Given(logits,
                        {**params, name: np.where(on, value, params[name])})


def beside_others(temperature: np.ndarray, is_mixed: np.ndarray | bool) -> Iterator[tuple[str, np.ndarray]]:
    """Temperatures [n] of rows whose calls, where they are mixed, have greedy and random rows, and take one way."""
    yield "random rows beside greedy ones are greedy", np.where(is_mixed, 0.0, temperature)
    yield "greedy rows beside random ones are drawn", np.where(is_mixed & (temperature == 0.0), 1.0, temperature)


def wrong_rows(logits: np.ndarray, params: Params, every: Params) -> Iterator[tuple[str, Given | Family]]:
    """logits [n, V], params [n]: of the rows judged. every: parameters [m] of all rows of a call."""
    names = _active(params, every)

    def changed(name: str, value: np.ndarray) -> Given:
        return Given(logits, {**params, name: np.asarray(value, params[name].dtype)})

    temperature, size = params["temperature"], logits.shape[1]
    random = temperature > 0.0
    for name in names:
        if name != "temperature" and (temperature != 1.0).any():
            yield f"{name} is applied before the temperature", Given(logits, params, warm(name))
    for name in names:
        off = np.full_like(params[name], OFF[name])
        yield f"{name} is not applied", changed(name, off if name != "temperature" else np.where(random, 1.0, 0.0))
    if len(names) - ("temperature" in names) > 1:
        yield "no filter is applied", Given(logits,
                                            {name: value if name == "temperature" else np.full_like(value, OFF[name])
                                                     for name, value in params.items()})
    for name, low, high in (("top_k", 1, size - 1), ("top_p", 0.05, 0.999), ("min_p", 1e-3, 1.0)):
        off = params[name] == np.asarray(OFF[name], params[name].dtype) if name in params else np.zeros(0, bool)
        if off.any() and low < high:
            yield Rare(f"{name} is {{}} where it is off"), Family(lambda value, name=name, off=off: changed(
                name, np.where(off, value, params[name])), low, high, name == "top_k")
    if (temperature == 0.0).any():
        yield Rare("greedy rows are drawn at temperature {}"), Family(lambda cold: changed("temperature",
                np.where(random, temperature, cold)), 1e-4, 0.5)
        yield "greedy rows are drawn", changed("temperature", np.where(random, temperature, 1.0))
    if random.any():
        yield "random rows are greedy", changed("temperature", np.zeros_like(temperature))
        yield "the temperature is applied twice", changed("temperature", temperature * temperature)
    if "top_k" in names:
        k = params["top_k"]
        for tile in (1024, 4096):
            for few in (8, 16, 32, 64):
                if tile < size and (k > few).any():
                    yield Rare(f"a tile of {tile} tokens gives top_k {few} candidates"), Given(_few_of_tiles(logits, k,
                            tile, few), params)
        yield "top_k keeps one token fewer", changed("top_k", np.where(k > 1, k - 1, k))
        yield Rare("top_k keeps one token more"), changed("top_k", np.where((k > 0) & (k < size), k + 1, k))
        for bits in (8, 16):
            yield f"top_k has {bits} bits", changed("top_k", np.where(k > 0, k & ((1 << bits) - 1), k))
    if "top_p" in names:
        yield "top_p drops the token that crosses it", Given(logits, params, without_its_last)
    for name in ("top_p", "min_p"):
        if name in names and size > 8:
            yield f"{name} keeps {{}} tokens at most", Family(lambda most, name=name: Given(logits, params,
                    few_kept(name, int(most))), 2, size - 1, True)
    if logits.size <= SORTED:
        for name, draws in wrong_filters(names, size):
            yield name, Given(logits, params, draws)
    for name in names:
        yield from _laws(name, params[name], size, changed)
    yield from _wrong_logits(logits, params)
    for name in names:
        for words, rounded in PRECISIONS if name != "top_k" else ():
            yield f"{name} is {words}", changed(name, rounded(params[name]))


def _laws(name: str, asked: np.ndarray, size: int,
          changed: Callable[[str, np.ndarray], Given]) -> Iterator[tuple[str, Family]]:
    """What a parameter may act as where it is on, by one number."""
    on = asked[(asked != np.asarray(OFF[name], asked.dtype)) &
               (asked > 0.0)] if name != "temperature" else asked[asked > 0.0]
    if not on.size:
        return
    words, is_on = "the temperature" if name == "temperature" else name, np.isin(asked, on)
    least, most = float(on.min()), float(on.max())
    top = {"temperature": np.inf, "top_k": size, "top_p": 1.0, "min_p": 1.0}[name]

    def acting(as_: Callable[[np.ndarray, float], np.ndarray]) -> Callable[[float], Given]:
        return lambda number: changed(name,
                                      np.where(is_on, np.minimum(as_(asked.astype(np.float64), number), top), asked))

    yield f"{words} is {{}} at most", Family(acting(np.minimum), 1 if name == "top_k" else least / 16.0, most,
                                             name == "top_k")
    if name != "top_k":
        yield f"{words} is {{}} at least", Family(acting(np.maximum), least, min(top, 16.0 * most))
        yield f"{words} acts as {{}} times itself", Family(acting(np.multiply), 0.125, 8.0)
        if most < 1.0:
            yield Rare(f"{words} acts as itself to the power of {{}}"), Family(acting(np.power), 0.25, 4.0)


def _wrong_logits(logits: np.ndarray, params: Params) -> Iterator[tuple[str, Given | Family]]:
    finite = np.isfinite(logits)
    for words, bounded in PRECISIONS:
        yield f"logits are {words}", Given(np.where(finite, bounded(logits), logits), params)
    size = logits.shape[1]
    ids, least = np.arange(size), int(finite.argmax(axis=1).max()) + 1  # one token of each row stays
    if least < size:
        yield "tokens from {} on never come", Family(lambda bound: Given(
            np.where(ids >= bound, -np.inf, logits).astype(np.float32), params), least, size - 1, True)
    t = np.maximum(params["temperature"], 1e-30)[:, None]
    below, random = logits.max(axis=1, keepdims=True) - logits, (params["temperature"] > 0.0)[:, None]
    spread = float((below / t)[finite & random].max(initial=0.0))
    if spread > 4.0:
        yield "tokens {} below the top never come", Family(lambda depth:
                                                           Given(np.where(finite & (below > depth * t), -np.inf,
                                                                   logits).astype(np.float32), params),
                                                          2.0, min(spread, 100.0))
    largest = float((logits / t)[finite & random].max(initial=0.0))
    if largest > 10.0:
        yield "logits over the temperature are cut at {}", Family(lambda bound: Given(
            np.where(random, np.minimum(logits, bound * t), logits).astype(np.float32), params), 5.0, min(largest, 1e4))
    largest = float(np.abs(logits[finite]).max(initial=0.0))
    if largest > 10.0:
        yield Rare("logits are clamped to +-{}"), Family(lambda bound:
                                                         Given(np.where(finite, np.clip(logits, -bound, bound),
                                                                 logits).astype(np.float32), params),
                                                        5.0, largest)


def compacted(params: Params) -> Iterator[tuple[str, np.ndarray]]:
    """Some of a call's rows gathered, their parameters not: of each such row its place among them, of others their own,
    [..., B]."""
    for name, words in (("temperature", "random row"), ("top_k", "row with top_k"), ("top_p", "row with top_p")):
        on = params[name] > 0.0 if name != "top_p" else params[name] < 1.0
        if on.any() and not on.all():
            yield Rare(f"place i's for the i-th {words}"), np.where(on, np.cumsum(on, axis=-1) - 1,
                    np.arange(on.shape[-1]))


def neighbours(count: int) -> dict[str, np.ndarray]:
    """Of rows in order: whose parameters might be read."""
    at = np.arange(count)
    return {"the next one's": (at + 1) % count, "the one's before": at - 1, "the first one's": at * 0,
            "the last one's": at * 0 + count - 1,
            **{Rare(f"place i / {width}'s"): at // width for width in (2, 4, 8, 32) if count > width},
            **{Rare(f"place {width - 1}'s behind it"): np.minimum(at, width - 1)
               for width in (16, 32, 48, 64, 128, 256, 512, 1024) if count > width},
            **{Rare(f"place i modulo {width}'s"): at % width for width in (8, 16, 32, 64, 128, 256, 512, 1024)
               if count > width}} if count > 1 else {}
