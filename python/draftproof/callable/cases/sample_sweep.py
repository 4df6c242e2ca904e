"""The sweep of a sampler: every regime of regimes.py in rows made so that a wrong branch shows in the first draws.

A row is made for its parameters (`probe`): what they drop holds most of the mass without them, so that a filter that is
skipped, cut short or another row's gives tokens that are impossible; the order of the tokens kept is strict, so that a
cap leaves out a known share; a temperature is met by logits that are flat at it and at no other.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, Callable, Iterator, Sequence

import numpy as np

from . import regimes, rows
from .sample_cases import OFF, SampleCase, params_of

#: Logits of a call of a large vocabulary; those of all calls of a case that is not put off.
ELEMENTS, LARGE = 1 << 19, 3 << 20


def columns(combos: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Every parameter of rows that have these."""
    return {name: [combo.get(name, OFF[name]) for combo in combos] for name in OFF}


def probe(vocab_size: int, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0, *,
          seed: int = 0) -> np.ndarray:
    """[V] float32: a row for these parameters. Of several filters one that the seed chooses makes the cut."""
    rng = np.random.default_rng([seed, vocab_size])
    active = [name for name, on in (("top_k", 0 < top_k < vocab_size), ("top_p", top_p < 1.0), ("min_p", min_p > 0.0))
              if on]
    cut = active[int(rng.integers(len(active)))] if active else ""
    if vocab_size < 4:
        scaled = np.log(np.array([0.2, 0.5, 0.3])[:vocab_size])
    else:
        head, rest = {"top_k": lambda: _for_top_k(vocab_size, top_k), "top_p": lambda: _for_top_p(vocab_size, top_p),
                      "min_p": lambda: _for_min_p(vocab_size, min_p), "": lambda: _for_temperature(vocab_size)}[cut]()
        scaled = np.concatenate([head, rest])
    row = np.empty(vocab_size)
    row[rng.permutation(vocab_size)] = scaled
    return ((temperature if temperature > 0.0 else 1.0) * row).astype(np.float32)


def _for_top_k(vocab_size: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """k tokens of about equal mass; the others have four fifths of all, each far less than those."""
    rest = vocab_size - k
    return np.linspace(0.0, -0.1, k), min(-0.8, float(np.log(3.1 * k / rest))) - np.linspace(0.0, 0.3, rest)


def _for_top_p(vocab_size: int, top_p: float) -> tuple[np.ndarray, np.ndarray]:
    """The fewest tokens that reach top_p have about equal mass, a little more than top_p together."""
    mass = min(0.95, 1.3 * top_p) if top_p < 0.73 else top_p + 0.5 * (1.0 - top_p)
    mass = max(mass, 3.0 / (vocab_size + 3.0))
    count = int(max(1.0, min(mass / max(mass - 0.97 * top_p, 1e-9), 64.0, vocab_size // 2,
                             mass * vocab_size / (1.5 * (1.0 - mass) + 1e-9))))
    rest = vocab_size - count
    return np.log(mass / count) + np.linspace(0.02, -0.02, count), np.log((1.0 - mass) / rest) + np.linspace(0.05,
            -0.05, rest)


def _for_min_p(vocab_size: int, min_p: float) -> tuple[np.ndarray, np.ndarray]:
    """One token, three at one and a half times the bound where that is below 1, all others below it by as much."""
    few = np.log(1.5 * min_p) - 0.01 * np.arange(3) if 1.5 * min_p < 0.97 and vocab_size > 8 else np.zeros(0)
    return np.concatenate([[0.0], few]), np.log(min_p / 1.5) - np.linspace(0.0, 0.1, vocab_size - 1 - len(few))


def _for_temperature(vocab_size: int) -> tuple[np.ndarray, np.ndarray]:
    """Four tokens of a tenth each over a sea: any other temperature gives one side nearly all the mass."""
    few = min(4, vocab_size // 2)
    rest = vocab_size - few
    return np.log(0.1) - 0.05 * np.arange(few), np.log((1.0 - 0.1 * few) / rest) + np.linspace(0.5, -0.5, rest)


@dataclasses.dataclass(frozen=True)
class Entry:
    """A case of the sweep before its rows are made. n: draws in `quick`; has_rng: it is about random numbers alone;
    size: logits of all its draws; is_late: it comes last, as it takes long; separates: its draws may tell suspects
    apart."""

    name: str
    n: int
    make: Callable[[], SampleCase]
    has_rng: bool = False
    size: int = 0
    is_late: bool = False
    separates: bool = True


class Maker:
    def __init__(self, with_min_p: bool) -> None:
        self.with_min_p = with_min_p
        self.entries: list[Entry] = []

    def params(self, size: int, **given: Any) -> dict[str, np.ndarray]:
        off = OFF if self.with_min_p else {name: value for name, value in OFF.items() if name != "min_p"}
        return params_of(size, **{**off, **{name: value for name, value in given.items() if name in off}})

    def add(self, name: str, n: int, logits: Callable[[], np.ndarray], vocab_size: int, batch: int,
            is_fixed: bool = False,
            seeds: str = "consecutive", flat: bool = False, has_rng: bool = False, is_late: bool = False,
            separates: bool = True, **given: Any) -> None:
        def make() -> SampleCase:
            made = logits()
            return SampleCase(name, np.ascontiguousarray(made, np.float32),
                              f"sweep({name!r}, {self.with_min_p}).logits",
                              self.params(len(made), **given), batch=batch, is_fixed=is_fixed, seeds=seeds,
                              is_flat=flat, is_sweep=True, n_max=n)
        self.entries.append(Entry(name, n, make, has_rng, n * vocab_size, is_late or n * vocab_size > LARGE, separates))

    def probes(self, name: str, n: int, vocab_size: int, combos: list[dict[str, Any]], batch: int,
               is_fixed: bool = False,
               change: Callable[[np.ndarray], np.ndarray] = lambda logits: logits, is_late: bool = False) -> None:
        """A row for each of these parameters."""
        combos = [{key: value for key, value in combo.items() if key != "min_p" or self.with_min_p} for combo in combos]
        self.add(name, n,
                 lambda: change(np.stack([probe(vocab_size, seed=17 * i + 1, **combo) for i,
                                          combo in enumerate(combos)])),
                 vocab_size, batch, is_fixed, is_late=is_late, **columns(combos))


def filters(vocab_size: int, with_min_p: bool = True) -> list[dict[str, Any]]:
    """One combination for every value of a filter, and pairs of filters."""
    out: list[dict[str, Any]] = [{}]
    out += [{"top_k": k} for k in (*(k for k in regimes.TOP_K if k <= vocab_size // 2), vocab_size - 1, vocab_size,
                                   vocab_size + 1)
            if k > 0]
    out += [{"top_p": p} for p in regimes.TOP_P]
    out += [{"min_p": m} for m in regimes.MIN_P if m >= 1e-3] if with_min_p else []
    out += [{"top_k": k, "top_p": p} for k,
            p in ((5, 0.5), (64, 0.9), (vocab_size, 0.3), (vocab_size // 4, 0.1), (1, 1e-6))]
    if with_min_p:
        out += [{"top_k": 3, "min_p": 0.3}, {"top_p": 0.9, "min_p": 0.1}, {"top_k": 40, "top_p": 0.95, "min_p": 0.3}]
    return out


def patterns(batch: int, vocab_size: int, with_min_p: bool, seed: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Parameters of a batch, each named: what one row has beside the others."""
    rng = np.random.default_rng([seed, batch])
    some = [{"temperature": t, **combo} for t in (0.5, 1.0, 1.5, 0.01, 8.0)
            for combo in filters(vocab_size, with_min_p)]
    random = [some[i] for i in rng.integers(len(some), size=batch)]
    greedy: dict[str, Any] = {"temperature": 0.0}
    plain: dict[str, Any] = {}
    few, half = {"top_k": 3}, {"temperature": 0.7, "top_p": 0.5}

    def beside(one: dict[str, Any], others: list[dict[str, Any]], *places: int) -> list[dict[str, Any]]:
        return [one if i in [place % batch for place in places] else row for i, row in enumerate(others)]

    yield "each row its own", [greedy if i % 9 == 4 else row for i, row in enumerate(random)]
    yield "all rows equal", [{"temperature": 0.7, "top_k": 5, "top_p": 0.9}] * batch
    yield "greedy and random in turn", [greedy if i % 2 else row for i, row in enumerate(random)]
    yield "greedy first", beside(greedy, random, 0)
    yield "greedy last", beside(greedy, random, -1)
    yield "random first and last, the others greedy", beside(half, [greedy] * batch, 0, -1)
    yield "filtered first and last, the others not", beside(few, [plain] * batch, 0, -1)
    yield "filtered in the middle, the others not", beside(half, [plain] * batch, batch // 2, batch // 3)
    yield "unfiltered first and last, the others filtered", beside(plain, [few] * batch, 0, -1)
    yield "parameters that grow with the row", [{"temperature": 0.5 + 2.0 * i / batch,
                                                 "top_k": 1 + (3 * i) % (vocab_size // 3)}
                                                for i in range(batch)]
    yield "off beside neutral", [({"top_k": vocab_size}, {"top_k": 2}, {}, {"top_p": 0.3},
                                  {"top_k": vocab_size + 1, "top_p": 0.5})
                                 [i % 5] for i in range(batch)]
    if with_min_p:
        yield "min_p in some rows", [({"min_p": 0.3}, {}, {"top_p": 0.5}, {"min_p": 0.1, "temperature": 2.0})[i % 4]
                                     for i in range(batch)]


def flat(vocab_size: int) -> Callable[[], np.ndarray]:
    return lambda: np.zeros((1, vocab_size), np.float32)


def just_beside(name: str) -> tuple[list[dict[str, Any]], np.ndarray]:
    """Values of top_p or min_p [n], and rows [n, 24] of which the second likeliest token is kept, or dropped, by a
    little: more than sums in float32 are off, less than a parameter of 16 bits is."""
    combos, out = [], []
    falling = np.linspace(2.0, 0.1, 22)
    for value in (0.1, 0.3, 0.6, 0.7, 0.8, 0.9, 0.95):
        for side in (1.0, -1.0):  # kept, dropped
            if name == "top_p":
                first = value - 5e-5 * side
                second = min(0.8 * (1.0 - first), 0.9 * first)
                rest = 1.0 - first - second
            else:
                first, second, rest = 1.0, value * (1.0 + 2.5e-4 * side), value
            combos.append({name: value})
            out.append(np.log([first, second, *(rest * falling / falling.sum())]))
    return combos, np.array(out, np.float32)


def min_p_beside() -> tuple[list[dict[str, Any]], np.ndarray]:
    """Combinations of min_p with another filter [2], and rows [2, 43]: a token is just above min_p's bound, one just
    below it, and neither is where the bound or the tokens are those of the row before the other filter cut it."""
    row = np.log(np.array([0.4, 0.14, 0.1] + [0.36 / 40] * 40))
    return [{"top_p": 0.75, "min_p": 0.3},
            {"top_k": 3, "min_p": 0.3}], np.stack([row, np.roll(row, 20)]).astype(np.float32)


#: What the likeliest token of a row has, as those of real models often do.
PEAKS = (0.96, 0.98, 0.99, 0.999)


def peaked(vocab_size: int, top: float) -> np.ndarray:
    """[V]: `top`, then three tenths of the rest, then all others alike."""
    rest = 1.0 - top
    return np.concatenate([[top, 0.3 * rest], np.full(vocab_size - 2, 0.7 * rest / (vocab_size - 2))])


def peaks(vocab_size: int) -> tuple[list[dict[str, Any]], np.ndarray]:
    """Parameters [n], and the rows [n, V] of float64 probabilities that they are for, of which the likeliest token has
    one of PEAKS: filters that leave it alone, or with the second, which has three tenths of the rest."""
    combos, out = [], []
    for i, top in enumerate(PEAKS):
        rest = 1.0 - top
        some: list[dict[str, Any]] = [{}, {"temperature": 0.5}, {"temperature": 2.0}, {"top_k": 1}, {"top_k": 2},
                                      {"top_p": 0.5 * top},
                                        {"top_p": top + 0.15 * rest}, {"min_p": 0.2 * rest / top}]
        for j, combo in enumerate(some):
            combos.append(combo)
            out.append(np.random.default_rng([i, j]).permutation(peaked(vocab_size, top)))
    return combos, np.array(out)


def heated(combos: Sequence[dict[str, Any]], p: np.ndarray) -> np.ndarray:
    """Logits [n, V] which have these probabilities at the temperatures of the parameters."""
    return (np.log(p) * np.array([combo.get("temperature", 1.0) for combo in combos])[:, None]).astype(np.float32)


def at_edges(vocab_size: int, seed: int) -> np.ndarray:
    """[V]: the mass is at the ids where tiles, words and types end, and on the last one."""
    edges = [0, 1, vocab_size - 2, *(2 ** i + d for i in range(5, 19) for d in (-1, 0)), vocab_size // 32 * 32 - 1]
    ids = np.unique([i for i in edges if 0 <= i < vocab_size])
    row = np.full(vocab_size, -25.0)
    row[ids] = np.random.default_rng(seed).normal(size=len(ids)) * 0.5
    partial = np.arange(vocab_size // 32 * 32 if vocab_size % 32 else max(0, vocab_size - 32), vocab_size)
    last = partial if vocab_size % 32 else np.array([vocab_size - 1])
    row[last] = np.log(np.exp(row[ids]).sum() * 0.8 / len(last))
    return row.astype(np.float32)


def combined(vocab_size: int, batch: int, with_min_p: bool, shift: int) -> list[dict[str, Any]]:
    """Some parameters for a batch that meets them with another axis."""
    pick = [{"top_k": min(50, max(1, vocab_size // 4))}, {"temperature": 0.7, "top_p": 0.5}, {"temperature": 0.0},
            {"temperature": 1.3}, {"temperature": 0.5, "top_k": min(1024, vocab_size // 2 + 1), "top_p": 0.9},
            {"temperature": 2.0, "min_p": 0.3} if with_min_p else {"temperature": 2.0, "top_k": 2}, {"top_p": 0.9},
            {"top_k": 1},
            {"top_k": vocab_size}, {"temperature": 0.01, "top_p": 0.9}, {"top_k": min(200, vocab_size // 2 + 1)}]
    return [pick[(i + shift) % len(pick)] for i in range(batch)]


def sample_sweep(with_min_p: bool, profile: str = "quick") -> list[Entry]:
    """The entries, those that name one feature first."""
    maker = Maker(with_min_p)
    _filters(maker)
    _temperatures(maker)
    _logits(maker)
    _vocabularies(maker, profile)
    _random_numbers(maker)
    _batches(maker, profile)
    return sorted(maker.entries, key=lambda entry: entry.is_late)


def _filters(maker: Maker) -> None:
    for k in regimes.TOP_K:
        maker.probes(f"top_k {k}", 128 if k < 1000 else 64, 2 * k + 30, [{"top_k": k}], 64)
        if 7 < k < 600:  # one token fewer shows in 35 k draws
            maker.probes(f"top_k {k}, its last token", 40 * k if k < 260 else 8 * k, 2 * k + 30, [{"top_k": k}], 64,
                         is_late=True)
    for size in (12, 64, 1000):
        values = (size - 1, size, size + 1, 2 * size, 2 * size + 1, 2 ** 31 - 1)
        maker.probes(f"top_k about or above V = {size}", 4096 if size < 100 else 384, size,
                     [{"top_k": k} for k in values], 64)
    few: list[dict[str, Any]] = [{"top_k": 2}, {"top_k": 3}, {"top_p": 0.5}, {"top_p": 0.8}, {"top_p": 0.95},
                                 {"min_p": 0.3}, {"min_p": 0.1}]
    steps = np.log([0.33, 0.24, 0.16, 0.11, 0.08, 0.045, 0.035])  # each token shows, those next to a cut most
    maker.add("filters over seven tokens", 1792, lambda: np.stack([np.roll(steps, i) for i in range(len(few))]), 7, 56,
              **columns(few))
    for p in regimes.TOP_P:
        n = 4096 if 0.98 < p < 1.0 - 1e-6 else 256
        maker.probes(f"top_p {p:.9g}", n, 200,
                     [{"top_p": p}, {"top_p": p, "temperature": 0.5}, {"top_p": p, "temperature": 2.0}], 64)
    for name in ("top_p", "min_p") if maker.with_min_p else ("top_p",):
        combos, beside = just_beside(name)
        maker.add(f"{name} of which the next token is just kept or dropped", 256 * len(combos),
                  lambda beside=beside: beside, 24, 64, **{name: columns(combos)[name]})
    for size in (1000, 5000, 33_000, 131_073):
        def sloping(size: int = size) -> np.ndarray:
            row = np.linspace(0.0, -1.0, size)[np.random.default_rng(size).permutation(size)]
            return row.astype(np.float32)[None, :]
        for p in (0.5, 0.9):
            maker.add(f"top_p {p} over a flat row of {size}", max(16, min(256, (1 << 20) // size)), sloping, size,
                      min(64, (1 << 19) // size), top_p=p)
    for m in regimes.MIN_P[1:]:
        if maker.with_min_p and m >= 1e-3:
            size = 4096 if m < 0.05 else 200
            maker.probes(f"min_p {m:g}", 256, size,
                         [{"min_p": m}, {"min_p": m, "temperature": 0.5}, {"min_p": m, "temperature": 2.0}],
                         64 if size < 1000 else 24)
    if maker.with_min_p:
        combos, beside = min_p_beside()
        maker.add("min_p beside top_p and top_k", 256, lambda beside=beside: beside, 43, 32,
                  **columns(combos))
        # a sixth of the mass is below it
        maker.probes("min_p 1e-06 of 262144", 48, 262_144, [{"min_p": 1e-6}], 4, is_late=True)
    if maker.with_min_p:  # many tokens kept
        maker.add("min_p over 300 and 2000 tokens", 512, lambda: np.stack(
            [np.random.default_rng(kept).permutation(np.concatenate([np.linspace(0.0, -0.5, kept),
                    np.full(4000 - kept, np.log(0.3 / 1.5))]))
             for kept in (300, 2000)]), 4000, 32, min_p=0.3)
    # Both filters cut, and top_p the same whatever it sums: what top_k drops has no mass.
    counts = (50, 200, 800, 1500)
    maker.add("top_p among many that top_k leaves", 512, lambda: np.stack(
        [np.random.default_rng(count).permutation(np.concatenate([np.linspace(0.0, -1.0, count),
                np.linspace(-15.0, -16.0, 3000 - count)]))
         for count in counts]), 3000, 32, top_k=[64, 256, 1000, 2048], top_p=0.7)
    pairs = [combo for combo in filters(300, maker.with_min_p) if len(combo) > 1]
    maker.probes("filters together", 512, 300,
                 [{"temperature": t, **combo} for t in (1.0, 0.5, 1.5) for combo in pairs], 64)


def _temperatures(maker: Maker) -> None:
    for t in regimes.TEMPERATURES:
        if t > 0.0:
            combos = [{"temperature": t, **more} for more in ({}, {"top_k": 5}, {"top_p": 0.5}, {"min_p": 0.3})]
            maker.probes(f"temperature {t:g}", 256, 300, combos, 64)
    maker.probes("temperatures about 1", 8192, 300, [{"temperature": t} for t in (0.95, 1.05)], 64)
    cold, hot = (1e-7, 1e-5, 1e-3, 0.01, 0.05), (8.0, 1e3, 1e7)
    for name, scale, some in (("cold", 3.0, cold), ("cold, large ones", 1000.0, cold[1:])):
        maker.add(f"ordinary logits at temperatures that are {name}", 160,
                  lambda scale=scale, some=some: rows.normal(2 * len(some), 100, scale, 3), 100, 40,
                  temperature=[*some, *some], top_p=[1.0] * len(some) + [0.9] * len(some))
    maker.add("ordinary logits at temperatures that are hot", 384, lambda: rows.normal(6, 50, 3.0, 4), 50, 48,
              temperature=[*hot, *hot], top_k=[0] * 3 + [10] * 3)
    greedy = {"temperature": 0.0}
    maker.probes("temperature 0", 256, 300,
                 [greedy, {**greedy, "top_k": 5}, {**greedy, "top_p": 0.5}, {**greedy, "min_p": 0.3}], 64)

    def near(size: int, step: float, base: float) -> Callable[[], np.ndarray]:
        def make() -> np.ndarray:
            out = np.full((4, size), base, np.float32)
            for i, at in enumerate((0, 1, size // 2, size - 1)):
                out[i, at] = base + step
            return out
        return make

    for step, base in ((2.0 ** -9, 1.0), (2.0 ** -20, 1.0), (1e-30, 0.0), (1e-40, 0.0), (0.5, 2.0 ** 15), (1.0, -1e6)):
        maker.add(f"temperature 0, the largest by {step:.3g} at {base:g}", 64, near(100, step, base), 100, 16,
                  temperature=0.0)

    def tied() -> np.ndarray:
        out = rows.normal(6, 100, 1.0, 3)
        for i, ids in enumerate(((0, 1), (98, 99), (0, 99), (31, 32), (5, 50), tuple(range(100)))):
            out[i, list(ids)] = 9.0
        return out
    maker.add("temperature 0, ties at the top", 96, tied, 100, 24, temperature=0.0)


def _logits(maker: Maker) -> None:
    some: list[dict[str, Any]] = [{"temperature": t, **more} for t in (1.0, 2.0, 0.5)
                                  for more in ({}, {"top_k": 5}, {"top_p": 0.5}, {"min_p": 0.3})]
    some.append({"temperature": 0.0})

    def masked(logits: np.ndarray, left: int = 0) -> np.ndarray:
        """All but `left` tokens at -infinity; 0: every second of those that are not the likeliest 8."""
        out = logits.copy()
        for i, row in enumerate(logits):
            falling = np.argsort(-row, kind="stable")
            out[i, falling[left:] if left else falling[8::2]] = -np.inf
        return out

    for offset in regimes.OFFSETS:
        for name, change in (("", lambda x: x), (" with a mask", masked)):
            if offset or name:
                maker.probes(f"logits about {offset:g}{name}", 39 * 8, 100, some, 39,
                             change=lambda x, offset=offset, change=change: change(x + np.float32(offset)))
    for left in (1, 2, 3):
        more: list[dict[str, Any]] = [{"top_p": 0.9}, {"top_p": 0.95, "temperature": 0.5}, {"top_k": 50},
                                      {"top_k": 50, "top_p": 0.9}]
        maker.probes(f"all tokens masked but {left}", 136, 100, [*some, *more], 34,
                     change=lambda x, left=left: masked(x, left))
    hot = [1e3, 3e3, 1e4, 3e4, 1e5, 1e7]
    for offset in (0.0, -3e4):
        def half_masked(offset: float = offset) -> np.ndarray:
            return np.where(np.arange(100) % 2, -np.inf, offset + np.linspace(0.0, 0.1, 100))[None, :].repeat(6, axis=0)
        maker.add(f"a mask at high temperatures, logits about {offset:g}", 192, half_masked, 100, 48, temperature=hot)
    for size in (1000, 32_000, 262_144):  # half of the mass is on the sea
        maker.add(f"a peak over a sea of {size} tokens", 48,
                  lambda size=size: np.concatenate([[np.log(size)], np.zeros(size)])[None, :],
                  size + 1, max(4, min(48, ELEMENTS // size)), is_late=size > 100_000)
    maker.add("a peak over a sea of 32000 tokens, top_p 0.9", 48, lambda: np.concatenate(
        [[np.log(32_000.0)], np.random.default_rng(4).permutation(np.linspace(0.0, -0.5, 32_000))])[None, :], 32_001,
              16, top_p=0.9)
    combos, p = peaks(50)
    maker.add("rows whose likeliest token has 0.96 to 0.999", 256 * len(combos), lambda: heated(combos, p), 50, 64,
              separates=False, **columns(combos))
    maker.add("a range of 200", 256, lambda: np.stack([np.concatenate([np.zeros(8), np.linspace(-90.0, -200.0, 92)]),
                                                       np.concatenate([np.linspace(110.0, 0.0, 92),
                                                               np.full(8, 112.0)])]), 100, 32)
    maker.add("offsets that differ from row to row", 256,
              lambda: np.stack([probe(100, seed=i) + np.float32(o) for i,
                                o in enumerate((3e4, -3e4, 0.0, 1e4, -100.0, 100.0, -1e4))]), 100, 28)
    maker.add("logits that bfloat16 does not hold", 1024,  # all would be 100
              lambda: np.stack([np.random.default_rng(i).permutation(np.repeat([100.24, 99.76], 32))
                                for i in range(2)]), 64, 64)
    maker.add("logits that differ by denormal numbers", 64,
              lambda: np.stack([np.linspace(0.0, 1e-39, 16), np.linspace(1e-41, 0.0, 16)]), 16, 16)
    maker.add("first 8192 tokens masked", 60, lambda: np.stack(
        [rows.masked(probe(9000, t, 0, p, seed=i)[None, :] - np.float32(0.0), 0, 8192)[0]
         for i, (t, p) in enumerate(((1.0, 1.0), (0.1, 0.5), (1.0, 0.5)))]), 9000, 30,
        temperature=[1.0, 0.1, 1.0], top_p=[1.0, 0.5, 0.5])

    ends = np.full(33_000, -np.inf)  # whole tiles of 16,384 and less are masked between tokens that are not
    ends[[3, 40, 32_900, 32_990]] = np.log([0.31, 0.19, 0.29, 0.21])
    maker.add("all tokens masked between the first and the last", 72, lambda: ends[None, :].repeat(3, axis=0), 33_000,
              24, temperature=[1.0, 0.5, 1.0], top_k=[0, 0, 3])


def _vocabularies(maker: Maker, profile: str) -> None:
    wide = 1 << 21 if profile == "quick" else 1 << 24
    for size in regimes.neighbours(regimes.VOCABULARIES):
        batch = max(4, min(64, ELEMENTS // size))
        maker.add(f"V = {size}: edges of tiles", 64 if size < 40_000 else 48 if profile == "quick" else 256,
                  lambda size=size: np.stack([at_edges(size, i) for i in (1, 2, 3, 1)]) if size > 3
                  else np.stack([probe(size)] * 4), size, batch, temperature=[1.0, 1.0, 1.0, 0.0])
    for size in regimes.VOCABULARIES:
        if size >= 8:
            batch = max(6, min(66, wide // 4 // size))
            maker.probes(f"V = {size} with parameters", 2 * batch, size,
                         combined(size, min(batch, 11), maker.with_min_p, size % 11), batch)


def _random_numbers(maker: Maker) -> None:
    maker.add("equal rows, consecutive seeds", 2048, flat(1024), 1024, 256, flat=True, has_rng=True)
    for kind in ("families", "large", "double", "signed", "random"):
        maker.add(f"equal rows, seeds: {kind}", 1024, flat(1024), 1024, 256, seeds=kind, flat=True, has_rng=True)
    for batch in (3, 33, 65, 129, 513, 1025):
        maker.add(f"equal rows in batches of {batch}", max(4 * batch, 264), flat(1024), 1024, batch, flat=True,
                  has_rng=True)
    maker.add("equal rows in batches of 4097", 8194, flat(64), 64, 4097, flat=True, has_rng=True)
    for size, batch in ((1 << 17, 8), (1 << 18, 4), (1 << 13, 64)):
        maker.add(f"a flat row of {size}", 96 if size > 1 << 14 else 512, flat(size), size, batch, flat=True,
                  has_rng=True)
    head, rest = np.zeros(64), np.full(64, -1.0)
    maker.add("flat rows, every second one filtered", 192,
              lambda: np.stack([np.concatenate([head, rest * np.inf]), np.concatenate([head, rest])]),
              128, 16, is_fixed=True, has_rng=True, top_k=[0, 64])
    maker.add("a flat row of 64", 2048, flat(64), 64, 64, flat=True, has_rng=True)


def _batches(maker: Maker, profile: str) -> None:
    size = 160
    sizes = [b + d for b in regimes.BATCHES
             for d in (0, 1)] if profile == "quick" else regimes.neighbours(regimes.BATCHES)
    sizes = sorted(set(sizes))
    names = [name for name, _ in patterns(8, size, maker.with_min_p, 0)]
    pairs = [(b, name) for b in sizes for name in (names if b < 300 else names[:1])]
    if profile == "quick":  # all patterns at some sizes, the first at all
        pairs = [(b, name) for b, name in pairs if name == names[0] or b in (2, 8, 33, 65, 129, 257)]
    for batch, name in pairs:
        if batch == 1 and name != names[0]:
            continue
        combos = dict(patterns(max(batch, 24 if name == names[0] else 1), size, maker.with_min_p, 5))[name]
        maker.probes(f"batch of {batch}, {name}", max(batch, min(8 * batch, 264), 96), size, combos, batch,
                     is_fixed=len(combos) == batch)
    # Calls in turn: what a call leaves behind, in the next one of the same shape.
    combos = [{"temperature": t, **more} for more in filters(100, maker.with_min_p)[::2] for t in (1.0, 0.3, 3.0)]
    maker.probes("calls in turn with other rows and parameters", 640, 100, combos, 16)
    maker.add("calls in turn with other masks", 256, lambda: np.repeat(np.concatenate(
        [rows.masked(np.zeros((1, 64), np.float32), begin, begin + 28) for begin in (0, 32)]), 16, axis=0), 64, 16)
    # Strength 3: temperature x filter x pattern of the batch.
    every = [{"temperature": t, **combo} for t in regimes.TEMPERATURES for combo in filters(260, maker.with_min_p)]
    order = np.random.default_rng(2).permutation(len(every))
    maker.probes("every temperature with every filter", len(every), 260, [every[i] for i in order], 256)
    greedy: dict[str, Any] = {"temperature": 0.0}
    maker.probes("every temperature with every filter, each beside a greedy row", 2 * len(every), 260,
                 [row for i in order for row in (every[i], greedy)], 128)
    # Beyond 2^24 logits a float32 does not hold their index: the likeliest token of each greedy row is an odd one.
    def greedy_rows() -> np.ndarray:
        out = np.zeros((4, 151_936), np.float32)
        out[np.arange(4), [1, 75_967, 131_073, 151_935]] = 9.0
        return out
    maker.add("V = 151936 in a batch of 128, temperature 0", 128, greedy_rows, 151_936, 128, is_late=True,
              temperature=0.0)
    for size, batch in ((65_537, 33), (32_001, 65), (8193, 129), (4097, 257), (1025, 1025), (100, 4097)):
        maker.probes(f"V = {size} in batches of {batch}", batch, size,
                     combined(size, min(batch, 11), maker.with_min_p, 3), batch)


@functools.lru_cache(maxsize=4)
def _named(with_min_p: bool, profile: str) -> dict[str, Entry]:
    return {entry.name: entry for entry in sample_sweep(with_min_p, profile)}


def sweep(name: str, with_min_p: bool = True) -> SampleCase:
    """The case of this name: what the code of a failure calls."""
    for profile in ("quick", "full"):
        if name in _named(with_min_p, profile):
            return _named(with_min_p, profile)[name].make()
    raise KeyError(name)
