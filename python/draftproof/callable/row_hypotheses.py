"""Rules of rows that would give what came (hypotheses.py): of samplers, filters and verifiers alike, a parameter, a filter, the
logits or a random number that is not what it should be."""

from __future__ import annotations

import dataclasses
from contextvars import ContextVar
from typing import Callable, Iterator, Literal

import numpy as np

from .. import _sampling
from .._core import Error
from .sample_cases import OFF


class Rare(str):
    """The name of a rule that stands for a rare fault, or the part of it that says so. Such a rule costs more (hypotheses.py)."""


def rare_as(words: str, name: str) -> str:
    """A rule's name, Rare if its `words` are."""
    return Rare(name) if isinstance(words, Rare) else name


#: Logits of which rules that sort them are tried, at most.
SORTED = 1 << 19

#: What a parameter may be off by.
FACTORS = {"temperature": (0.25, 0.5, 0.7, 0.9, 1.1, 1.4, 2.0, 4.0), "top_p": (0.8, 0.9, 0.95, 0.97, 0.99, 1.01, 1.03, 1.05, 1.1, 1.25),
           "min_p": (0.25, 0.5, 0.7, 0.9, 1.1, 1.4, 2.0, 4.0), "top_k": ()}

Params = dict[str, np.ndarray]

#: In which order the callable under audit filters: "top_k_first" (top-p over what top-k left) or "joint" (over the whole row).
FilterOrder = Literal["joint", "top_k_first"]
FILTER_ORDER: ContextVar[FilterOrder] = ContextVar("filter_order", default="joint")


@dataclasses.dataclass(frozen=True, eq=False)
class Given:
    """A row's logits and parameters, as a hypothesis has them. draws(logits, params) -> probabilities [n, V]; None: as they should."""

    logits: np.ndarray
    params: Params
    draws: Callable[[np.ndarray, Params], np.ndarray] | None = None


def probabilities(given: Given) -> np.ndarray:
    return (given.draws or _sound)(given.logits, given.params)


def _sound(logits: np.ndarray, params: Params) -> np.ndarray:
    return _sampling.process_rows(logits, params, ties="keep_all", filter_order=FILTER_ORDER.get()).probabilities


def _without_its_last(logits: np.ndarray, params: Params) -> np.ndarray:
    p = _sound(logits, params)
    crossed = (params["top_p"] < 1.0) & ((p > 0.0).sum(axis=1) > 1)
    p[crossed, np.where(p > 0.0, p, np.inf).argmin(axis=1)[crossed]] = 0.0
    return p / p.sum(axis=1, keepdims=True)


def _without_ties(logits: np.ndarray, params: Params) -> np.ndarray:
    k = np.where(params["top_k"] > 0, np.minimum(params["top_k"], logits.shape[1]), logits.shape[1])
    cut = np.take_along_axis(-np.sort(-logits, axis=1), k[:, None] - 1, axis=1)
    several = (logits >= cut).sum(axis=1) > k
    return _sound(np.where(several[:, None] & (logits == cut), -np.inf, logits).astype(np.float32), params)


def _warm(name: str) -> Callable[[np.ndarray, Params], np.ndarray]:
    """A filter that sees the row at temperature 1."""

    def draws(logits: np.ndarray, params: Params) -> np.ndarray:
        greedy = params["temperature"] == 0.0
        rest = {**params, name: np.full_like(params[name], OFF[name])}
        alone = {other: value if other == name else np.full_like(value, OFF[other]) for other, value in params.items()}
        alone["temperature"] = np.where(greedy, 0.0, 1.0).astype(np.float32)
        return divided(_sampling.process_rows(logits, rest).probabilities * (_sampling.process_rows(logits, alone).probabilities > 0.0))

    return draws


def divided(p: np.ndarray) -> np.ndarray:
    total = p.sum(axis=1, keepdims=True)
    return np.divide(p, total, out=np.zeros_like(p), where=total > 0.0)


def _with_own_filters(sums: Callable[[np.ndarray], np.ndarray] | None = None, by: Callable[[np.ndarray], np.ndarray] = lambda x: x,
                      min_p_of: Callable[[np.ndarray, np.ndarray], np.ndarray] = lambda p, _: p[:, :1], more: int = 0,
                      least: int = 1, is_never_off: bool = False, is_half: bool = False) -> Callable[[np.ndarray, Params], np.ndarray]:
    """top-k, then top-p, then min-p, over rows sorted by by(logits). sums(p): what top-p compares, the sum before each place;
    min_p_of(p, keep): what min-p is a share of; more: tokens that top-p keeps behind its last; least: that any filter keeps;
    is_never_off: a top-p of 1 is compared with too; is_half: with a top-p of half precision."""

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
        count = np.where((before < (top_p.astype(np.float16) if is_half else top_p)) & (of_p > 0.0), at + 1, 0).max(axis=1, keepdims=True)
        keep &= ((top_p >= 1.0) & (not is_never_off)) | (at < np.maximum(count + more, least))
        if "min_p" in params:
            keep &= (params["min_p"][:, None] <= 0.0) | (p >= params["min_p"][:, None] * min_p_of(p, keep)) | (at < least)
        out = np.zeros_like(p)
        np.put_along_axis(out, order, divided(np.where(keep, p, 0.0)), axis=1)
        greedy = params["temperature"] == 0.0
        if greedy.any():
            out[greedy] = _sound(logits[greedy], {name: value[greedy] for name, value in params.items()})
        return out

    return draws


def _half_sums(p: np.ndarray) -> np.ndarray:
    total = np.cumsum(p.astype(np.float16), axis=1, dtype=np.float16)
    return np.concatenate([np.zeros((len(p), 1), np.float16), total[:, :-1]], axis=1)


def _sums_of_blocks(size: int) -> Callable[[np.ndarray], np.ndarray]:
    def sums(p: np.ndarray) -> np.ndarray:
        return np.concatenate([np.cumsum(block, axis=1) - block for block in np.split(p, range(size, p.shape[1], size), axis=1)], axis=1)

    return sums


def undivided(logits: np.ndarray, params: Params) -> np.ndarray:
    """Of what filters keep the shares of the unfiltered row."""
    bare = {name: value if name == "temperature" else np.full_like(value, OFF[name]) for name, value in params.items()}
    return np.where(_sound(logits, params) > 0.0, _sound(logits, bare), 0.0)


def evenly(logits: np.ndarray, params: Params) -> np.ndarray:
    return divided((logits > -np.inf).astype(np.float64))


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
    return divided(np.where(_sound(logits, params) > 0.0, _sound(logits, bare), 0.0))


def _with_tail(begin: int) -> Callable[[np.ndarray, Params], np.ndarray]:
    def draws(logits: np.ndarray, params: Params) -> np.ndarray:
        bare = {name: value if name == "temperature" else np.full_like(value, OFF[name]) for name, value in params.items()}
        return divided(np.where((_sound(logits, params) > 0.0) | (np.arange(logits.shape[1]) >= begin), _sound(logits, bare), 0.0))

    return draws


def _whole_bin(logits: np.ndarray, params: Params) -> np.ndarray:
    rest = _sound(logits, {**params, "top_p": np.ones_like(params["top_p"])})
    cut = np.where(_sound(logits, params) > 0.0, rest, np.inf).min(axis=1, keepdims=True)
    return divided(np.where(rest >= 2.0 ** np.floor(np.log2(cut)), rest, 0.0))


def _by_id(logits: np.ndarray, params: Params) -> np.ndarray:
    left = _sound(logits, {**params, "top_p": np.ones_like(params["top_p"])})
    top_p = params["top_p"][:, None]
    return divided(np.where((top_p >= 1.0) | (np.cumsum(left, axis=1) - left < top_p), left, 0.0))


def _rejected(rounds: int) -> Callable[[np.ndarray, Params], np.ndarray]:
    """Tokens are drawn from the unfiltered row until filters keep one, so often at most."""

    def draws(logits: np.ndarray, params: Params) -> np.ndarray:
        bare = {name: value if name == "temperature" else np.full_like(value, OFF[name]) for name, value in params.items()}
        whole, kept = _sound(logits, bare), _sound(logits, params) > 0.0
        falls = 1.0 - np.where(kept, whole, 0.0).sum(axis=1, keepdims=True)
        return divided(np.where(kept, whole * (1.0 - falls ** rounds) / np.maximum(1.0 - falls, 1e-9), whole * falls ** (rounds - 1)))

    return draws


def _rejected_with_one_number(logits: np.ndarray, params: Params, points: int = 1024) -> np.ndarray:
    """As _rejected, until one is kept: each round draws, with the number of the first, from what is likelier than the token that was
    rejected and from what filters keep. Numbers are evenly spaced."""
    bare = {name: value if name == "temperature" else np.full_like(value, OFF[name]) for name, value in params.items()}
    whole, kept = _sound(logits, bare), _sound(logits, params) > 0.0
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


def _few_kept(name: str, most: int) -> Callable[[np.ndarray, Params], np.ndarray]:
    def draws(logits: np.ndarray, params: Params) -> np.ndarray:
        p = _sound(logits, params)
        on = params[name] != np.asarray(OFF[name], params[name].dtype)
        least = np.partition(p, p.shape[1] - most, axis=1)[:, p.shape[1] - most, None]
        return divided(np.where(on[:, None] & (p < least), 0.0, p))

    return draws


def _cut_by_halves(halvings: int) -> Callable[[np.ndarray, Params], np.ndarray]:
    """What lies above the last lower bound of a search in [0, the largest probability] stays."""

    def draws(logits: np.ndarray, params: Params) -> np.ndarray:
        rest = _sound(logits, {**params, "top_p": np.ones_like(params["top_p"])})
        kept = _sound(logits, params)
        step = rest.max(axis=1, keepdims=True) * 2.0 ** -halvings
        cut = np.floor(np.where(kept > 0.0, rest, np.inf).min(axis=1, keepdims=True) / step) * step
        return divided(np.where((params["top_p"] >= 1.0)[:, None] | (rest > cut), rest, 0.0))

    return draws


def _min_p_of_first(tile: int) -> Callable[[np.ndarray, Params], np.ndarray]:
    def draws(logits: np.ndarray, params: Params) -> np.ndarray:
        p = _sound(logits, {**params, "min_p": np.zeros_like(params["min_p"])})
        return divided(np.where(p >= params["min_p"][:, None] * p[:, :tile].max(axis=1, keepdims=True), p, 0.0))

    return draws


def _by_unfiltered_tiles(tile: int) -> Callable[[np.ndarray, Params], np.ndarray]:
    def draws(logits: np.ndarray, params: Params) -> np.ndarray:
        bare = {name: value if name == "temperature" else np.full_like(value, OFF[name]) for name, value in params.items()}
        begins = np.arange(0, logits.shape[1], tile)
        kept = _sound(logits, params).astype(np.float64)
        mass, of_tile = np.add.reduceat(_sound(logits, bare).astype(np.float64), begins, axis=1), np.add.reduceat(kept, begins, axis=1)
        times = np.divide(mass, of_tile, out=np.zeros_like(mass), where=of_tile > 0.0)
        return divided(kept * times.repeat(np.diff([*begins, logits.shape[1]]), axis=1))

    return draws


def _padded(to: int) -> Callable[[np.ndarray, Params], np.ndarray]:
    """With logits of 0, tokens beyond taken for the last one."""

    def draws(logits: np.ndarray, params: Params) -> np.ndarray:
        size = logits.shape[1]
        p = _sound(np.concatenate([logits, np.zeros((len(logits), -size % to), np.float32)], axis=1), params)
        out = p[:, :size].copy()
        out[:, -1] += p[:, size:].sum(axis=1)
        return out

    return draws


def folded(p: np.ndarray) -> np.ndarray:
    """[n, V]: the mass of every id on its low 16 bits."""
    out = np.zeros(p.shape)
    for begin in range(0, p.shape[1], 1 << 16):
        part = p[:, begin:begin + (1 << 16)]
        out[:, :part.shape[1]] += part
    return out


def moved_from(p: np.ndarray, bound: int) -> np.ndarray:
    out = p.copy()
    out[:, bound] = 0.0
    out[:, bound + 1:] = p[:, bound:-1]
    out[:, -1] += p[:, -1]
    return out


def moved_down(logits: np.ndarray, row: np.ndarray, before: np.ndarray, by: np.ndarray) -> np.ndarray:
    """[n, V]: of rows [n], each behind another in memory, what is read from so many elements before them."""
    both = np.concatenate([logits[before], logits[row]], axis=1)
    read = np.take_along_axis(both, logits.shape[1] - by[:, None] + np.arange(logits.shape[1])[None, :], axis=1)
    return np.where(np.isneginf(read).all(axis=1, keepdims=True), logits[row], read)


def in_order_of(p: np.ndarray, logits: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Of p [n, V], sorted as logits are: put back by the order of other rows."""
    if p.size > SORTED:
        raise Error("too many tokens")
    out = np.zeros(p.shape)
    back = np.broadcast_to(np.argsort(-others, axis=1, kind="stable"), p.shape)
    np.put_along_axis(out, back, np.take_along_axis(p, np.argsort(-logits, axis=1, kind="stable"), axis=1), axis=1)
    return out


def _few_of_tiles(logits: np.ndarray, top_k: np.ndarray, tile: int, few: int) -> np.ndarray:
    """Rows with a top-k lose what is not among the largest of its tile."""
    padded = np.concatenate([logits, np.full((len(logits), -logits.shape[1] % tile), -np.inf, np.float32)], axis=1)
    tiles = padded.reshape(len(logits), -1, tile)
    least = np.partition(tiles, tile - few, axis=2)[:, :, tile - few, None]
    left = np.where(tiles >= least, tiles, -np.inf).reshape(len(logits), -1)[:, :logits.shape[1]]
    return np.where(((top_k > 0) & (top_k < logits.shape[1]))[:, None], left, logits).astype(np.float32)


def _active(params: Params, every: Params) -> list[str]:
    return [name for name in params if any((values[name] != np.asarray(OFF[name], values[name].dtype)).any() for values in (params, every))]


def mixed_rows(logits: np.ndarray, params: Params, others: dict[str, np.ndarray], every: Params) -> Iterator[tuple[str, Given]]:
    """As wrong_rows; others: by name the row [n] of `every` whose parameters are read instead."""
    names = _active(params, every)

    def changed(name: str, value: np.ndarray) -> Given:
        return Given(logits, {**params, name: np.asarray(value, params[name].dtype)})

    for words, at in others.items():
        for name in names:
            yield rare_as(words, f"{name} is {words}"), changed(name, every[name][at])
        if len(params) > 1:
            yield rare_as(words, f"parameters are {words}"), Given(logits, {name: every[name][at] for name in params})
            yield rare_as(words, f"filters are {words}"), Given(logits, {name: every[name][at] if name != "temperature" else params[name]
                                                                         for name in params})
        if words.startswith("the first "):
            skipped = {name: np.where(every[name][at] == OFF[name], OFF[name], params[name]).astype(params[name].dtype)
                       for name in params if name != "temperature"}
            whose = words.removesuffix("'s")
            yield Rare(f"filters are skipped where {whose} has none"), Given(logits, {**params, **skipped})
            if "temperature" in names:
                random = params["temperature"] > 0.0
                yield f"temperature is not applied where {whose} has 1", changed("temperature", np.where(
                    random & (every["temperature"][at] == 1.0), 1.0, params["temperature"]))


def extreme_rows(logits: np.ndarray, params: Params, every: Params) -> Iterator[tuple[str, Given]]:
    """As wrong_rows: a parameter is that of one row for all."""
    for name in _active(params, every):
        for words, value in (("largest", every[name].max()), ("smallest", every[name].min())):
            if every[name].min() < every[name].max():
                yield f"{name} is the {words} of the call", Given(logits, {**params, name: np.full_like(params[name], value)})
                on = params[name] != np.asarray(OFF[name], params[name].dtype)
                yield Rare(f"{name} is the {words} of the call, where it is on"), Given(logits, {**params, name: np.where(on, value, params[name])})


def wrong_rows(logits: np.ndarray, params: Params, every: Params) -> Iterator[tuple[str, Given]]:
    """logits [n, V], params [n]: of the rows judged. every: parameters [m] of all rows of a call."""
    names = _active(params, every)

    def changed(name: str, value: np.ndarray) -> Given:
        return Given(logits, {**params, name: np.asarray(value, params[name].dtype)})

    temperature, size = params["temperature"], logits.shape[1]
    random = temperature > 0.0
    for name in names:
        if name != "temperature" and (temperature != 1.0).any():
            yield f"{name} is applied before the temperature", Given(logits, params, _warm(name))
    for name in names:
        off = np.full_like(params[name], OFF[name])
        yield f"{name} is not applied", changed(name, off if name != "temperature" else np.where(random, 1.0, 0.0))
    if len(names) - ("temperature" in names) > 1:
        yield "no filter is applied", Given(logits, {name: value if name == "temperature" else np.full_like(value, OFF[name])
                                                     for name, value in params.items()})
    if len(names) - ("temperature" in names) > 2:
        yield "neither top_k nor top_p is applied", Given(logits, {name: np.full_like(value, OFF[name]) if name in ("top_k", "top_p") else value
                                                                   for name, value in params.items()})
    for name, values in (("top_k", (1, 40, 50, 64)), ("top_p", (0.9, 0.95)), ("min_p", (0.05, 0.1))):
        for value in values if name in params else ():
            off = params[name] == np.asarray(OFF[name], params[name].dtype)
            if off.any() and value < size:
                yield Rare(f"{name} is {value} where it is off"), changed(name, np.where(off, value, params[name]))
    if (temperature == 0.0).any():
        for cold in (1e-3, 0.01, 0.02, 0.1):
            yield Rare(f"greedy rows are drawn at temperature {cold:g}"), changed("temperature", np.where(random, temperature, cold))
        yield "greedy rows are drawn", changed("temperature", np.where(random, temperature, 1.0))
    if random.any():
        yield "random rows are greedy", changed("temperature", np.zeros_like(temperature))
        yield "the temperature is applied twice", changed("temperature", temperature * temperature)
        for bound in (1e-5, 1e-4, 1e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0):
            if (random & (temperature < bound)).any():
                yield f"the temperature is {bound:g} at least", changed("temperature", np.where(random, np.maximum(temperature, bound), 0.0))
                yield f"a temperature below {bound:g} is greedy", changed("temperature", np.where(temperature < bound, 0.0, temperature))
                if bound < 1.0:
                    yield f"a temperature below {bound:g} is taken for 1", changed("temperature", np.where(
                        random & (temperature < bound), 1.0, temperature))
        for bound in (100.0, 10.0, 5.0, 4.0, 3.0, 2.0, 1.5, 1.0):
            if (temperature > bound).any():
                yield f"the temperature is {bound:g} at most", changed("temperature", np.minimum(temperature, bound))
        yield "the temperature is of half precision", changed("temperature", as_half(temperature))
        for step in (0.01, 0.1, 1.0):
            yield f"temperatures are rounded to {step:g}", changed("temperature", np.round(temperature / step) * step)
    if "top_k" in names:
        k = params["top_k"]
        for most in (2048, 1024, 1023, 1000, 512, 256, 255, 128, 127, 100, 64, 63, 50, 40, 32, 20, 16, 10, 8, 1):
            if (k > most).any() and most < size:
                yield f"top_k is {most} at most", changed("top_k", np.minimum(k, most))
        yield "top_k is the vocabulary less 1 at most", changed("top_k", np.where(k > 0, np.minimum(k, max(1, size - 1)), k))
        for tile in (1024, 4096):
            for few in (8, 16, 32, 64):
                if tile < size and (k > few).any():
                    yield Rare(f"a tile of {tile} tokens gives top_k {few} candidates"), Given(_few_of_tiles(logits, k, tile, few), params)
        yield "top_k keeps one token fewer", changed("top_k", np.where(k > 1, k - 1, k))
        yield Rare("top_k keeps one token more"), changed("top_k", np.where((k > 0) & (k < size), k + 1, k))
        yield "top_k above the vocabulary wraps around", changed("top_k", np.where(k > size, np.maximum(k % size, 1), k))
    if "top_p" in names:
        yield "top_p acts as 1 less itself", changed("top_p", np.where(params["top_p"] < 1.0, 1.0 - params["top_p"], 1.0))
        yield "top_p drops the token that crosses it", Given(logits, params, _without_its_last)
    for name in ("top_p", "min_p"):
        for most in (1024, 1000, 512, 256, 128, 100, 64, 50) if name in names else ():
            if most < size:
                yield f"{name} keeps {most} tokens at most", Given(logits, params, _few_kept(name, most))
    if {"top_k", "top_p"} <= set(names):
        yield Rare("top_p keeps the lowest ids of what top_k left"), Given(logits, params, _by_id)
    if logits.size <= SORTED:
        for name, draws in _wrong_filters(names, size):
            yield name, Given(logits, params, draws)
    for name, bound in (("min_p", 0.5), ("top_p", 0.99), ("top_p", 0.95)):
        if name in names and ((params[name] > bound) & (params[name] != OFF[name])).any():
            yield f"{name} is {bound:g} at most", changed(name, np.where(params[name] == OFF[name], params[name], np.minimum(params[name], bound)))
    yield from _wrong_logits(logits, params)
    for name in names:
        if name in ("top_p", "min_p"):
            for words, rounded in PRECISIONS:
                yield f"{name} is {words}", changed(name, rounded(params[name]))
    for name in names:
        for factor in FACTORS[name]:
            times = params[name] * np.float32(factor)
            yield f"{name} acts as {factor:g} times itself", changed(name, times if name == "temperature" else np.minimum(times, 1.0))


def _wrong_filters(names: list[str], size: int) -> Iterator[tuple[str, Callable[[np.ndarray, Params], np.ndarray]]]:
    """Filters that compute otherwise, of rows that have the parameters `names`."""
    if "top_k" in names:
        yield Rare("tokens tied at the cut of top_k are all dropped"), _without_ties
    if "top_p" in names:
        yield Rare("top_p sums in half precision"), _with_own_filters(_half_sums)
        yield Rare("top_p sums in half precision, and has it itself"), _with_own_filters(_half_sums, is_half=True)
        yield Rare("top_p keeps one token more"), _with_own_filters(more=1)
        yield Rare("top_p keeps all tokens of the binary exponent at which it is reached"), _whole_bin
        for halvings in (8, 10, 16, 18, 20):
            yield Rare(f"top_p's cut is found by {halvings} halvings"), _cut_by_halves(halvings)
        for block in (256, 512, 1024, 2048, 4096):
            if block < size:
                yield Rare(f"top_p sums by blocks of {block:,} tokens"), _with_own_filters(_sums_of_blocks(block))
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


def _wrong_logits(logits: np.ndarray, params: Params) -> Iterator[tuple[str, Given]]:
    finite = np.isfinite(logits)
    for words, bounded in PRECISIONS:
        yield f"logits are {words}", Given(np.where(finite, bounded(logits), logits), params)
    size = logits.shape[1]
    ends = {size - n for n in (1, size % 32, size % 128, size % 1024, 100, 1000) if n}
    for bound in sorted({1 << 15, 50_000, 1 << 16, 100_000, 1 << 17, *ends}):
        if 0 < bound < size:
            left = np.where((np.arange(size) >= bound)[None, :] & finite[:, :bound].any(axis=1)[:, None], -np.inf, logits)
            yield f"tokens from {bound} on never come", Given(left.astype(np.float32), params)
    below = logits.max(axis=1, keepdims=True) - logits
    for depth in (10.0, 15.0, 20.0, 30.0):
        far = finite & (below > depth * np.maximum(params["temperature"], 1e-30)[:, None])
        if far.any():
            yield f"tokens {depth:g} below the top never come", Given(np.where(far, -np.inf, logits).astype(np.float32), params)
    scaled = np.maximum(params["temperature"], 1e-30)[:, None]
    for bound in (50.0, 80.0, 88.0, 100.0):
        if (random := params["temperature"] > 0.0).any() and (logits[random] > bound * scaled[random]).any():
            cut = np.where(random[:, None], np.minimum(logits, bound * scaled), logits)
            yield f"logits over the temperature are cut at {bound:g}", Given(cut.astype(np.float32), params)
    largest = float(np.abs(logits[finite]).max(initial=0.0))
    for bound in (1e4, 1000.0, 100.0, 80.0, 50.0, 30.0):
        if largest > bound:
            yield Rare(f"logits are clamped to +-{bound:g}"), Given(np.where(finite, np.clip(logits, -bound, bound), logits), params)


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


def compacted(params: Params) -> Iterator[tuple[str, np.ndarray]]:
    """Some of a call's rows gathered, their parameters not: of each such row its place among them, of others their own, [..., B]."""
    for name, words in (("temperature", "random row"), ("top_k", "row with top_k"), ("top_p", "row with top_p")):
        on = params[name] > 0.0 if name != "top_p" else params[name] < 1.0
        if on.any() and not on.all():
            yield Rare(f"place i's for the i-th {words}"), np.where(on, np.cumsum(on, axis=-1) - 1, np.arange(on.shape[-1]))


def neighbours(count: int) -> dict[str, np.ndarray]:
    """Of rows in order: whose parameters might be read."""
    at = np.arange(count)
    return {"the next one's": (at + 1) % count, "the one's before": at - 1, "the first one's": at * 0, "the last one's": at * 0 + count - 1,
            **{Rare(f"place i / {width}'s"): at // width for width in (2, 4, 8, 32) if count > width},
            **{Rare(f"place {width - 1}'s behind it"): np.minimum(at, width - 1)
               for width in (16, 32, 48, 64, 128, 256, 512, 1024) if count > width},
            **{Rare(f"place i modulo {width}'s"): at % width for width in (8, 16, 32, 64, 128, 256, 512, 1024) if count > width}} if count > 1 else {}
