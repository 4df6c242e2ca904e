"""A failure that nothing explains, as it was measured: expected beside observed, where it is largest, and which draws
it is in."""

from __future__ import annotations

import numpy as np

from ..cases.sample_cases import OFF, shown
from .accounts import Account, OfRows
from .kept_hypotheses import OfSets
from .row_hypotheses import Given, probabilities
from .step_likelihood import OfSteps

#: Wrong draws from which on it is said what they have in common; the chance that it is none.
COMMON, CHANCE = 5, 1e-4


def described(account: Account | None) -> str:
    """'' where the account is of nothing that can be counted."""
    if account is None:
        return ""
    of = account.of_sound
    if isinstance(of, OfRows):
        return _of_draws(account, of)
    if isinstance(of, OfSets):
        return _of_sets(of)
    return _of_steps(account, of) if isinstance(of, OfSteps) else ""


def _bare(given: Given) -> np.ndarray:
    """Probabilities before filters, of greedy rows those at temperature 1."""
    return probabilities(Given(given.logits,
                               {name: np.where(value > 0.0, value, 1.0).astype(np.float32) if name == "temperature"
                                else np.full_like(value, OFF[name])
                                              for name, value in given.params.items()}))


def _row(given: Given, row: int) -> str:
    """A row by the parameters that are on."""
    on = [f"{name} {shown(value[row])}" for name,
          value in given.params.items() if value[row] != np.asarray(OFF[name], value.dtype)]
    return f"a row with {', '.join(on)}" if on else "an unfiltered row"


def _common(account: Account, wrong: np.ndarray) -> str:
    """The smallest regime that has all wrong draws [n], where chance would not have it so."""
    found = [regime for regime in account.regimes if regime.words and not regime.is_outcome
             and (regime.here | ~wrong).all()
             and regime.here.mean() ** np.count_nonzero(wrong) < CHANCE]
    if np.count_nonzero(wrong) < COMMON or not found:
        return ""
    return f", all in {min(found, key=lambda regime: np.count_nonzero(regime.here)).words}"


def _of_draws(account: Account, of: OfRows) -> str:
    rows, row, token = of.rows, of.row, of.token
    p = rows.probabilities
    wrong = (p[row, token] <= 0.0) & ~rows.zone[row, token]
    if wrong.any():
        keys, count = np.unique(np.stack([row[wrong], token[wrong]]), axis=1, return_counts=True)
        r, t = keys[:, count.argmax()]
        kept, alone = np.count_nonzero(p[r]), _bare(of.given)[r]
        return (f"{_row(of.given, r)} has {kept} token{'s' if kept > 1 else ''}; token {t}, of rank "
                f"{np.count_nonzero(alone > alone[t]) + 1} with p {alone[t]:.2g} before filters, came "
                f"{count.max()} times in {np.count_nonzero(row == r)}{_common(account, wrong)}")
    n = np.bincount(row, minlength=len(p))
    seen = np.zeros(p.shape)
    np.add.at(seen, (row, token), 1.0)
    expected = p * n[:, None]
    z = np.where(rows.zone, 0.0, np.abs(seen - expected) / np.sqrt(np.maximum(expected * (1.0 - p), 1.0)))
    r, t = np.unravel_index(z.argmax(), z.shape)
    return (f"token {t} of {_row(of.given, r)}: p {p[r, t]:.3g}, "
            f"{expected[r, t]:.1f} of {n[r]} draws expected, {seen[r, t]:.0f} observed")


def _of_sets(of: OfSets) -> str:
    due = probabilities(of.given)
    wrong = ((due > 0.0) != of.kept) & ~of.zone
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


def _of_steps(account: Account, of: OfSteps) -> str:
    told, rule = of.told, of.rule()
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
                    f"{_common(account, wrong)}")
        if z[t] > best:
            best, text = (z[t],
                          f"{words} token {t}: {due[t]:.1f} expected, {by_token[t]:.0f} observed in "
                          f"{np.count_nonzero(drawn)}")
    return text
