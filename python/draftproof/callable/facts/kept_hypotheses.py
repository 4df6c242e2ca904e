"""The account of what a filter kept (accounts.py), and of the values that it gave back."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

from ..cases.filter_cases import FilterRun
from ..evidence import evidence
from .accounts import ELEMENTS, Account, Draws, Rules, always_of, masked, regimes_of, window
from .filter_hypotheses import Family, Rare, as_bfloat16, as_half
from .noise_hypotheses import folded
from .row_hypotheses import Given, compacted, extreme_rows, mixed_rows, neighbours, probabilities, wrong_rows

#: Nats by which a rule that gives another set than was kept falls behind: one row is enough.
WRONG_SET = 20.0


@dataclasses.dataclass(frozen=True, eq=False)
class OfSets:
    """Log probabilities of what rows [n] kept that a rule gives: kept, zone [n, V], of which a token may be kept or
    not."""

    given: Given
    kept: np.ndarray
    zone: np.ndarray

    def __call__(self) -> np.ndarray:
        return np.where((((probabilities(self.given) > 0.0) == self.kept) | self.zone).all(axis=1), 0.0, -WRONG_SET)

    def excused(self) -> bool:
        return False

    def refuted(self, here: np.ndarray, draws: Draws) -> float:
        wrong = ((probabilities(self.given) > 0.0) != self.kept) & ~self.zone & here[:, None]
        return float("inf") if wrong.any() else 0.0


def account_of_kept(run: FilterRun, around: int) -> Account | None:
    """By the sets that were kept."""
    case, left = run.case, run.left
    if left is None:
        return None
    rows = window(around, len(left), max(1, ELEMENTS // case.vocab_size))
    logits, kept = case.logits[rows], left[rows] > -np.inf
    params = {name: value[rows] for name, value in case.params.items()}

    zone = evidence.Rows.of(logits, params).zone

    def log_p(given: Given) -> OfSets:
        return OfSets(given, kept, zone)

    def rules() -> Rules:
        others = {words: at[rows] for words, at in neighbours(len(left)).items()}
        others.update({words: rank[rows] for words, rank in compacted(case.params)})
        for name, given in itertools.chain(wrong_rows(logits, params, case.params),
                                           mixed_rows(logits, params, others, case.params),
                                           extreme_rows(logits, params, case.params)):
            yield name, given.with_rule(log_p) if isinstance(given, Family) else log_p(given)
        if case.vocab_size > 1 << 16:
            yield Rare("ids have 16 bits"), log_p(Given(logits, params,
                                                        lambda *given: folded(probabilities(Given(*given)), 1 << 16)))

    of_sound = log_p(Given(logits, params))
    sound = of_sound()
    by_rows = masked(logits)
    return Account(of_sound, sound, -0.5 * WRONG_SET, rules,
                   regimes_of(params, rows, len(left), sound < -0.5 * WRONG_SET, by_rows), logits.size,
                   Draws(params, rows, len(left)),
                   [*always_of(params), *(f"rows with {words}" for words, here in by_rows if here.all())])


def value_of_dropped(run: FilterRun) -> float:
    """The one finite number below all that are kept that tokens which should be dropped have; 0.0: none."""
    assert run.left is not None
    dropped = probabilities(Given(run.case.logits, run.case.params)) == 0.0
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
