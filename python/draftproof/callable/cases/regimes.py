"""Where engines' code changes its path: the axes of a sweep, and covering designs over them.

Each value of an axis is a boundary that real samplers have (a tile, a block, a fast path, a type's end); a sweep has it
with its neighbours. A covering design of strength t has every combination of values of any t axes in a row at least.
"""

from __future__ import annotations

import itertools
from typing import Any, Iterable, Sequence

import numpy as np

VOCABULARIES = (1, 2, 3, 31, 32, 64, 128, 255, 1000, 1023, 1024, 4096, 8192, 32_000, 49_152, 50_257, 65_535, 65_536,
                128_256, 151_936, 262_144)
BATCHES = (1, 2, 7, 8, 31, 32, 64, 127, 128, 255, 256, 512, 1023, 1024, 2048, 4096)
DRAFTS = (0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33)
#: 0 is greedy. Beside the extremes, values at which code clamps, skips or takes a fast path.
TEMPERATURES = (0.0, 1e-7, 1e-5, 1e-3, 0.01, 0.04, 0.09, 0.2, 0.5, 0.95, 1.0, 1.05, 1.5, 2.5, 8.0, 100.0, 1e3, 1e7)
TOP_K = (1, 2, 3, 7, 8, 15, 16, 20, 31, 32, 40, 50, 63, 64, 65, 99, 100, 127, 128, 129, 199, 255, 256, 257, 511, 512,
         513, 1023, 1024, 1025, 2048)
TOP_P = (0.0, float(np.float32(1.5e-45)), 1e-6, 0.01, 0.1, 0.3, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0 - 2.0 ** -24)
MIN_P = (float(np.float32(1.5e-45)), 1e-6, 0.01, 0.1, 0.3, 0.5, 0.9, 0.999, 1.0)
OFFSETS = (0.0, 100.0, -100.0, 1e4, -1e4, 3e4, -3e4)


def neighbours(values: Iterable[int], least: int = 1) -> list[int]:
    """Each value with the one below and the one above."""
    return sorted({v + d for v in values for d in (-1, 0, 1) if v + d >= least})


def covering(axes: dict[str, Sequence[Any]], strength: int = 2, seed: int = 0) -> list[dict[str, Any]]:
    """Rows of {axis: value} in which every combination of values of any `strength` axes occurs. Greedy: each row is the
    best of 20 that are completed at random from a combination that is still missing."""
    names, rng = list(axes), np.random.default_rng(seed)
    sizes = [len(axes[name]) for name in names]
    groups = list(itertools.combinations(range(len(names)), min(strength, len(names))))
    missing = {(group, values) for group in groups for values in itertools.product(*(range(sizes[i]) for i in group))}
    rows = []
    while missing:
        first = min(missing)
        best: tuple[int, list[int]] = (-1, [])
        for _ in range(20):
            row = [int(rng.integers(size)) for size in sizes]
            for i, value in zip(*first):
                row[i] = value
            new = sum((group, tuple(row[i] for i in group)) in missing for group in groups)
            best = max(best, (new, row))
        row = best[1]
        missing -= {(group, tuple(row[i] for i in group)) for group in groups}
        rows.append({name: axes[name][value] for name, value in zip(names, row)})
    return rows
