"""What a filter kept (observed.py), and the values that it gave back."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Iterator

import numpy as np

from ..cases.filter_cases import FilterRun
from ..evidence import evidence
from .filter_deviations import Deviation, as_bfloat16, as_half, rare
from .noise_deviations import folded
from .observed import ELEMENTS, Draws, Observed, always_of, masked, regimes_of, window
from .row_deviations import Rows, compacted, extreme_rows, mixed_rows, neighbours, wrong_rows

#: Nats by which a rule that gives another set than was kept falls behind: one row is enough.
WRONG_SET = 20.0


@dataclasses.dataclass(frozen=True, eq=False)
class OfSets:
    """Log probabilities of what rows [n] kept that a rule gives: kept, zone [n, V], of which a token may be kept or
    not."""

    given: Rows
    kept: np.ndarray
    zone: np.ndarray

    @property
    def wrong(self) -> np.ndarray:
        return ((self.given.probabilities > 0.0) != self.kept) & ~self.zone

    def __call__(self) -> np.ndarray:
        return np.where(self.wrong.any(axis=1), -WRONG_SET, 0.0)

    def excused(self) -> bool:
        return False

    def refuted(self, here: np.ndarray, draws: Draws) -> float:
        return float("inf") if (self.wrong & here[:, None]).any() else 0.0


def observed_sets(run: FilterRun, around: int) -> Observed | None:
    case, left = run.case, run.left
    if left is None:
        return None
    at = window(around, len(left), max(1, ELEMENTS // case.vocab_size))
    kept = left[at] > -np.inf
    rows = Rows(case.logits[at], {name: value[at] for name, value in case.params.items()})
    zone = evidence.Rows.of(rows.logits, rows.params).zone

    def of(given: Rows) -> OfSets:
        return OfSets(given, kept, zone)

    def rules() -> Iterator[Deviation]:
        whose = [(words, index[at], is_rare) for words, index, is_rare in (*neighbours(len(left)),
                                                                           *compacted(case.params))]
        yield from (wrong.then(of) for wrong in itertools.chain(
            wrong_rows(rows, case.params), mixed_rows(rows, whose, case.params), extreme_rows(rows, case.params)))
        if case.vocab_size > 1 << 16:
            yield rare("ids have 16 bits", lambda: of(dataclasses.replace(
                rows, draws=lambda *given: folded(Rows(*given).probabilities, 1 << 16))))

    of_sound, by_rows = of(rows), masked(rows.logits)
    sound = of_sound()
    return Observed(of_sound, sound, -0.5 * WRONG_SET, rules,
                    regimes_of(rows.params, at, len(left), sound < -0.5 * WRONG_SET, by_rows), rows.logits.size,
                    Draws(rows.params, at, len(left)),
                    [*always_of(rows.params), *(f"rows with {words}" for words, here in by_rows if here.all())])


def value_of_dropped(run: FilterRun) -> float:
    """The one finite number below all that are kept that tokens which should be dropped have; 0.0: none."""
    assert run.left is not None
    dropped = Rows(run.case.logits, run.case.params).probabilities == 0.0
    values = np.unique(run.left[dropped & np.isfinite(run.case.logits)])
    is_one = values.size == 1 and np.isfinite(values[0]) and values[0] < run.left[~dropped].min()
    return float(values[0]) if is_one else 0.0


def values_wrongly(run: FilterRun) -> str:
    """By the logits that came back."""
    case, left = run.case, run.left
    if left is None:
        return ""
    t = case.params["temperature"][:, None]
    kept = np.isfinite(left)
    with np.errstate(over="ignore", invalid="ignore"):
        told = {"what comes back is of half precision": as_half(case.logits / t),
                "what comes back is of bfloat16": as_bfloat16(case.logits / t),
                "temperature is not applied": case.logits, "the temperature is applied twice": case.logits / t / t}

        def same(rows: np.ndarray, values: np.ndarray) -> np.ndarray:
            return (~kept[rows] |
                    (np.abs(left[rows] - values[rows]) <= 2e-6 * np.abs(values[rows]) + 1e-30)).all(axis=1)

        wrong = ~same(np.arange(len(left)), case.logits / t)
        words = next((name for name, values in told.items() if wrong.any()
                      and same(np.flatnonzero(wrong), values).all()), "")
    where = next((regime.words for regime in regimes_of(case.params, np.arange(len(left)), len(left))
                  if (regime.here == wrong).all()), "")
    return f"{words} in {where}" if words and where else words
