"""A failure that nothing explains, as it was measured: expected beside observed, where it is largest, and which draws
it is in."""

from __future__ import annotations

import numpy as np

from ..cases.sample_cases import shown
from .filter_deviations import FILTERS, is_on, switched_off
from .kept_deviations import OfSets
from .observed import Observed, OfRows
from .row_deviations import Rows
from .step_likelihood import OfSteps

#: Wrong draws from which on it is said what they have in common; the chance that it is none.
COMMON, CHANCE = 5, 1e-4


def described(observed: Observed | None) -> str:
    """'' where nothing was observed that can be counted."""
    of = None if observed is None else observed.of_sound
    if observed is not None and isinstance(of, OfRows):
        return _of_draws(observed, of)
    if isinstance(of, OfSets):
        return _of_sets(of)
    return _of_steps(observed, of) if observed is not None and isinstance(of, OfSteps) else ""


def _bare(rows: Rows) -> np.ndarray:
    """Probabilities before filters, of greedy rows those at temperature 1."""
    t = rows.params["temperature"]
    return Rows(rows.logits, switched_off(rows.params, *FILTERS)).with_params(
        temperature=np.where(t > 0.0, t, 1.0)).probabilities


def _row(rows: Rows, row: int) -> str:
    """A row by the parameters that are on."""
    on = [f"{name} {shown(value[row])}" for name, value in rows.params.items() if is_on(name, value)[row]]
    return f"a row with {', '.join(on)}" if on else "an unfiltered row"


def _common(observed: Observed, wrong: np.ndarray) -> str:
    """The smallest regime that has all wrong draws [n], where chance would not have it so."""
    found = [regime for regime in observed.regimes if regime.words and not regime.is_outcome
             and (regime.here | ~wrong).all()
             and regime.here.mean() ** np.count_nonzero(wrong) < CHANCE]
    if np.count_nonzero(wrong) < COMMON or not found:
        return ""
    return f", all in {min(found, key=lambda regime: np.count_nonzero(regime.here)).words}"


def _of_draws(observed: Observed, of: OfRows) -> str:
    rows, row, token = of.rows, of.row, of.token
    p = rows.probabilities
    wrong = (p[row, token] <= 0.0) & ~rows.zone[row, token]
    if wrong.any():
        keys, count = np.unique(np.stack([row[wrong], token[wrong]]), axis=1, return_counts=True)
        r, t = keys[:, count.argmax()]
        kept, alone = np.count_nonzero(p[r]), _bare(of.given)[r]
        return (f"{_row(of.given, r)} has {kept} token{'s' if kept > 1 else ''}; token {t}, of rank "
                f"{np.count_nonzero(alone > alone[t]) + 1} with p {alone[t]:.2g} before filters, came "
                f"{count.max()} times in {np.count_nonzero(row == r)}{_common(observed, wrong)}")
    n = np.bincount(row, minlength=len(p))
    seen = np.zeros(p.shape)
    np.add.at(seen, (row, token), 1.0)
    expected = p * n[:, None]
    z = np.where(rows.zone, 0.0, np.abs(seen - expected) / np.sqrt(np.maximum(expected * (1.0 - p), 1.0)))
    r, t = np.unravel_index(z.argmax(), z.shape)
    return (f"token {t} of {_row(of.given, r)}: p {p[r, t]:.3g}, "
            f"{expected[r, t]:.1f} of {n[r]} draws expected, {seen[r, t]:.0f} observed")


def _of_sets(of: OfSets) -> str:
    due, wrong = of.given.probabilities, of.wrong
    if not wrong.any():
        return ""
    r = int(wrong.sum(axis=1).argmax())
    alone = _bare(of.given)[r]
    cut = alone[due[r] > 0.0].min()
    more, fewer = wrong[r] & of.kept[r], wrong[r] & ~of.kept[r]
    parts = [f"{np.count_nonzero(chosen)} {words} with p {alone[chosen].min():.3g} to {alone[chosen].max():.3g}"
             for words, chosen in (("too many", more), ("missing", fewer)) if chosen.any()]
    return (f"{_row(of.given, r)}: {np.count_nonzero(due[r])} tokens due, {np.count_nonzero(of.kept[r])} kept; "
            f"{', '.join(parts)}, the cut is at p {cut:.3g}")


def _of_steps(observed: Observed, of: OfSteps) -> str:
    told, rule = of.emitted, of.chain
    chance = np.clip(told.chance(rule), 0.0, 1.0)
    judged = told.stood | told.fell
    best, text = 0.0, ""
    for i in range(chance.shape[1]):
        here = judged[:, i]
        due, spread = chance[here, i].sum(), np.sqrt(max(1.0, (chance * (1.0 - chance))[here, i].sum()))
        if here.any() and (z := abs(told.stood[here, i].sum() - due) / spread) > best:
            best, text = (z, f"drafts at place {i}: {due:.1f} of {here.sum()} should stand, "
                             f"{told.stood[here, i].sum()} did")
    left, empty, at = told.residuals(rule)
    left = np.maximum(left, 0.0)
    total = left.sum(axis=1, keepdims=True)
    left = np.where(total > 1e-12, left / np.maximum(total, 1e-30), empty)
    for words, table, row, drawn in (("recovered", left, at, ~told.is_bonus),
                                     ("bonus", rule.bonus, told.row, told.is_bonus)):
        if not drawn.any():
            continue
        p = np.clip(table[row[drawn], told.token[drawn]], 0.0, 1.0)
        wrong = np.zeros(len(drawn), bool)
        wrong[drawn] = p <= 0.0
        rows, of_row = np.unique(row[drawn], return_inverse=True)
        seen = np.zeros((len(rows), table.shape[1]))
        np.add.at(seen, (of_row.ravel(), told.token[drawn]), 1.0)
        expected = table[rows] * seen.sum(axis=1, keepdims=True)
        by_token, due = seen.sum(axis=0), expected.sum(axis=0)
        z = np.abs(by_token - due) / np.sqrt(np.maximum((expected * (1.0 - table[rows])).sum(axis=0), 1.0))
        t = int(z.argmax())
        if wrong.any():
            return (f"{np.count_nonzero(wrong)} of {np.count_nonzero(drawn)} {words} tokens have p 0"
                    f"{_common(observed, wrong)}")
        if z[t] > best:
            best, text = (z[t],
                          f"{words} token {t}: {due[t]:.1f} expected, {by_token[t]:.0f} observed in "
                          f"{np.count_nonzero(drawn)}")
    return text
