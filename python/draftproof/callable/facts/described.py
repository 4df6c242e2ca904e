"""A failure that nothing explains, as it was measured: expected beside observed, where it is largest, and which draws
it is in."""

from __future__ import annotations

from typing import Iterator

import numpy as np

from ..evidence import evidence
from .grammar import FILTERS, Rows, switched_off
from .observed import Observed, Part

#: Wrong draws from which on it is said what they have in common; the chance that it is none.
COMMON, CHANCE = 5, 1e-4


def described(observed: Observed | None) -> str:
    """'' where nothing was observed that can be counted."""
    if observed is None:
        return ""
    of = observed.of_sound
    if of.given is not None and of.kept is not None:
        return _of_sets(of.given, of.kept)
    for part in of.parts:
        wrong = np.flatnonzero((part.table[part.row, part.token] <= 0.0) & ~part.looked[0])
        if wrong.size:
            return _impossible(part, wrong, of.given) + _common(observed, np.isin(np.arange(of.n), part.of[wrong]))
    return max((cell for part in of.parts for cell in _cells(part)), default=(0.0, ""))[1]


def _bare(rows: Rows) -> np.ndarray:
    """Probabilities before filters, of greedy rows those at temperature 1."""
    t = rows.params["temperature"]
    return Rows(rows.logits, switched_off(rows.params, *FILTERS)).with_params(
        temperature=np.where(t > 0.0, t, 1.0)).probabilities


def _impossible(part: Part, wrong: np.ndarray, rows: Rows | None) -> str:
    """The token that comes most often and cannot."""
    keys, count = np.unique(np.stack([part.row[wrong], part.token[wrong]]), axis=1, return_counts=True)
    r, t = keys[:, count.argmax()]
    if rows is None:
        how = (" are accepted", " are rejected")[t] + " that cannot be" if part.what == "drafts" else " have p 0"
        return f"{len(wrong)} of {len(part.row)} {part.what}{how}"
    kept, alone = np.count_nonzero(part.table[r]), _bare(rows)[r]
    return (f"{rows.about(r)} has {kept} token{'s' if kept > 1 else ''}; token {t}, of rank "
            f"{np.count_nonzero(alone > alone[t]) + 1} with p {alone[t]:.2g} before filters, came {count.max()} times "
            f"in {np.count_nonzero(part.row == r)}")


def _common(observed: Observed, wrong: np.ndarray) -> str:
    """The smallest regime that has all wrong draws [n], where chance would not have it so."""
    count = np.count_nonzero(wrong)
    found = [regime for regime in observed.regimes if regime.words and (regime.here | ~wrong).all()
             and regime.here.mean() ** count < CHANCE]
    return f", all in {min(found, key=lambda regime: regime.here.sum()).words}" if count >= COMMON and found else ""


def _cells(part: Part) -> Iterator[tuple[float, str]]:
    """Of the draws that are looked at by themselves, the token that is furthest off, by standard deviations."""
    of_rows = part.what == "draws" and len(part.table) <= len(part.among)
    for words, inside in [*([] if of_rows else [("", np.ones(len(part.row), bool))]), *part.among]:
        rows, count = np.unique(part.row[inside], return_counts=True)
        p, n = part.table[rows].astype(np.float64), np.count_nonzero(inside)
        due, spread = count @ p, count @ (p * (1.0 - p))
        seen = np.bincount(part.token[inside], minlength=part.table.shape[1])
        z = np.abs(seen - due) / np.sqrt(np.maximum(spread, 1.0))
        t = int(z.argmax())
        what = f"token {t}" if part.what != "drafts" else ("accepted", "rejected")[t]
        yield z[t], f"{what}{words}: {due[t]:.1f} of {n} {part.what} expected, {seen[t]} observed"


def _of_sets(given: Rows, kept: np.ndarray) -> str:
    due = given.probabilities > 0.0
    wrong = (due != kept) & ~evidence.Rows.of(given.logits, given.params).zone
    if not wrong.any():
        return ""
    r = int(wrong.sum(axis=1).argmax())
    alone = _bare(given)[r]
    parts = [f"{np.count_nonzero(chosen)} {words} with p " +
             " to ".join(dict.fromkeys(f"{p:.3g}" for p in (alone[chosen].min(), alone[chosen].max())))
             for words, chosen in (("too many", wrong[r] & kept[r]), ("missing", wrong[r] & ~kept[r])) if chosen.any()]
    return f"{given.about(r)}: {', '.join(parts)}, the cut is at p {alone[due[r]].min():.3g}"
