"""Rows in other forms, where the callable takes them: of 16 bits, and with a logit that is NaN beside rows that have
none."""

from __future__ import annotations

import dataclasses
from typing import Callable

import numpy as np

from ... import _audit
from ..cases import rows
from ..cases.sample_cases import is_unambiguous, params_of

#: Rows of a call, in turn of GROUPS kinds; calls; tokens of a row.
ROWS, GROUPS, CALLS, SIZE = 256, 4, 8, 33
#: (logits, params, seeds) -> a token of each row; None where the callable does not take them.
Called = Callable[[np.ndarray, dict[str, np.ndarray], np.ndarray], "np.ndarray | None"]


@dataclasses.dataclass(frozen=True)
class Form:
    """name: of the case; fault: in words, or ''; reading: what a callable does that is no fault, or ''; n: draws; 0:
    not taken."""

    name: str
    fault: str
    reading: str
    n: int


def _params() -> dict[str, np.ndarray]:
    return params_of(GROUPS, temperature=[1.0, 1.0, 1.0, 0.6], top_k=[0, 5, 0, 8], top_p=[1.0, 1.0, 0.8, 0.9])


def _logits() -> np.ndarray:
    """[GROUPS, SIZE], which 16 bits hold, and whose cuts no reading moves."""
    for seed in range(1000):
        logits = rows.normal(GROUPS, SIZE, 2.0, seed).astype(np.float16).astype(np.float32)
        if is_unambiguous(logits, _params()):
            return logits
    raise AssertionError("no rows without ambiguity")


def _drawn(called: Called, logits: np.ndarray) -> np.ndarray | None:
    """[CALLS, ROWS] tokens of rows [ROWS, SIZE] in turn."""
    params = {name: np.resize(value, ROWS) for name, value in _params().items()}
    out = []
    for call in range(CALLS):
        tokens = called(logits, params, np.arange(ROWS, dtype=np.uint64) + np.uint64(1_000_000 + ROWS * call))
        if tokens is None:
            return None
        out.append(tokens)
    return np.stack(out)


def _fault(tokens: np.ndarray, group: np.ndarray, logits: np.ndarray, alpha: float) -> str:
    """tokens, group: [n]; ''."""
    audit = _audit.audit_draws(tokens, logits, _params(), group=group, alpha=alpha, tv_wanted=1.0)
    worst = audit.worst()
    return f"{worst.name}: {audit.sentence}" if audit.verdict == "biased" and worst is not None else ""


def half_rows(called: Called, alpha: float) -> Form:
    """Rows of float16, whose distribution is that of the numbers that they hold."""
    logits = _logits().astype(np.float16)
    tokens = _drawn(called, np.resize(logits, (ROWS, SIZE)))
    if tokens is None:
        return Form("rows of 16 bits", "", "rows of 16 bits are not taken", 0)
    return Form("rows of 16 bits", _fault(tokens.ravel(), np.tile(np.arange(ROWS) % GROUPS, CALLS), logits, alpha), "",
                tokens.size)


def nan_rows(called: Called, alpha: float) -> Form:
    """Every second group of rows has a NaN at its second likeliest token. To raise is sound, and so is any token of the
    vocabulary, or none, from such a row; rows beside it must draw as ever."""
    name, logits = "rows beside one with a NaN logit", _logits()
    given = np.resize(logits, (ROWS, SIZE))
    group, is_nan = np.arange(ROWS) % GROUPS, np.arange(ROWS) // GROUPS % 2 == 1
    given[is_nan, np.argsort(-given[is_nan], axis=1)[:, 1]] = np.nan
    tokens = _drawn(called, given)
    if tokens is None:
        return Form(name, "", "a NaN logit: the call raises", 0)
    group, of = np.tile(group, CALLS), np.tile(is_nan, CALLS)
    flat = tokens.ravel()
    outside = flat[(flat < -1) | (flat >= SIZE)]
    if outside.size:
        return Form(name, f"{outside.size} tokens are outside of the vocabulary of {SIZE}, first {outside[0]}", "",
                    flat.size)
    if fault := _fault(flat[~of], group[~of], logits, alpha):
        return Form(name, fault, "", flat.size)
    masked = logits.copy()
    masked[np.arange(GROUPS), np.argsort(-masked, axis=1)[:, 1]] = -np.inf
    reading = "the row draws something else" if (flat[of] < 0).any() or _fault(flat[of], group[of], masked,
            1e-3) else "it counts as masked"
    return Form(name, "", f"a NaN logit: {reading}", flat.size)
