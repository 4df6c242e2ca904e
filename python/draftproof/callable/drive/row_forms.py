"""Rows in other forms, where the callable takes them: of 16 bits, with a logit that is NaN beside rows that have none,
and with placeholders among their drafts. Of filters the tokens kept are checked, of verifiers the first token emitted,
which follows the first row."""

from __future__ import annotations

import dataclasses
from typing import Callable

import numpy as np

from ... import _audit
from ..cases import rows
from ..cases.sample_cases import is_unambiguous, params_of

#: Rows of a call, in turn of GROUPS kinds; calls; tokens of a row.
ROWS, GROUPS, CALLS, SIZE = 256, 4, 8, 32
#: (logits, params, seeds) -> a token of each row, or what a filter left of it; None where the callable does not take
#: them.
Called = Callable[[np.ndarray, dict[str, np.ndarray], np.ndarray], "np.ndarray | None"]
#: The same of a step with drafts [B, K], of equal probability each: tokens [B, K + 1].
Stepped = Callable[[np.ndarray, dict[str, np.ndarray], np.ndarray, np.ndarray], "np.ndarray | None"]
#: Filters drop a token by -infinity, or by the least number of a type.
DROPPED = -1e4


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


def _in_turn() -> dict[str, np.ndarray]:
    return {name: np.resize(value, ROWS) for name, value in _params().items()}


def _logits() -> np.ndarray:
    """[GROUPS, SIZE], which 16 bits hold, and whose cuts no reading moves."""
    for seed in range(1000):
        logits = rows.normal(GROUPS, SIZE, 2.0, seed).astype(np.float16).astype(np.float32)
        if is_unambiguous(logits, _params()):
            return logits
    raise AssertionError("no rows without ambiguity")


def _drawn(called: Called, logits: np.ndarray) -> np.ndarray | None:
    """[CALLS, ROWS] tokens of rows [ROWS, SIZE] in turn; of a filter [1, ROWS, SIZE], which are kept."""
    params = _in_turn()
    out = []
    for call in range(CALLS):
        tokens = called(logits, params, np.arange(ROWS, dtype=np.uint64) + np.uint64(1_000_000 + ROWS * call))
        if tokens is None:
            return None
        if tokens.ndim > 1:
            return (tokens > DROPPED)[None]
        out.append(tokens)
    return np.stack(out)


def _fault(tokens: np.ndarray, group: np.ndarray, logits: np.ndarray, alpha: float) -> str:
    """tokens, group: [n], or kept: [n, SIZE]; ''."""
    if tokens.ndim > 1:
        params = {name: value[group] for name, value in _params().items()}
        check = _audit.check_filter(logits[group], kept=tokens, params=params)
        return "" if check.holds else check.sentence
    audit = _audit.audit_draws(tokens, logits, _params(), group=group, alpha=alpha, tv_wanted=1.0)
    worst = audit.worst()
    return f"{worst.name}: {audit.sentence}" if audit.verdict == "biased" and worst is not None else ""


def _outside(tokens: np.ndarray) -> str:
    outside = tokens[(tokens < -1) | (tokens >= SIZE)]
    return f"{outside.size} tokens are outside of the vocabulary of {SIZE}, first {outside[0]}" if outside.size else ""


def half_rows(called: Called, alpha: float) -> Form:
    """Rows of float16, whose distribution is that of the numbers that they hold."""
    logits = _logits().astype(np.float16)
    tokens = _drawn(called, np.resize(logits, (ROWS, SIZE)))
    if tokens is None:
        return Form("rows of 16 bits", "", "rows of 16 bits are not taken", 0)
    flat = tokens.reshape(-1, *tokens.shape[2:])
    group = np.resize(np.arange(ROWS) % GROUPS, len(flat))
    return Form("rows of 16 bits", _outside(flat) or _fault(flat, group, logits, alpha), "", len(flat))


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
    flat = tokens.reshape(-1, *tokens.shape[2:])
    group, of = np.resize(group, len(flat)), np.resize(is_nan, len(flat))
    if fault := _outside(flat) or _fault(flat[~of], group[~of], logits, alpha):
        return Form(name, fault, "", len(flat))
    masked = logits.copy()
    masked[np.arange(GROUPS), np.argsort(-masked, axis=1)[:, 1]] = -np.inf
    reading = "the row draws something else" if (flat[of] < 0).any() or _fault(flat[of], group[of], masked,
            1e-3) else "it counts as masked"
    return Form(name, "", f"a NaN logit: {reading}", len(flat))


def placeholder_rows(stepped: Stepped, alpha: float) -> Form:
    """Of verifiers: every second group of requests has a placeholder, then a draft. vLLM rejects it and draws a token.
    Another answer is no fault of a verifier that never meets one, but requests beside it must be as ever."""
    name, logits = "requests beside one with a placeholder", _logits()
    group, is_held = np.arange(ROWS) % GROUPS, np.arange(ROWS) // GROUPS % 2 == 1
    out = []
    for call in range(CALLS):
        seeds = np.arange(ROWS, dtype=np.uint64) + np.uint64(2_000_000 + ROWS * call)
        drafts = np.random.default_rng(call).integers(0, SIZE, (ROWS, 2))
        drafts[is_held, 0] = -1
        tokens = stepped(np.resize(logits, (ROWS, SIZE)), _in_turn(), seeds, drafts)
        if tokens is None:
            return Form(name, "", "placeholders (-1) within drafts: the call raises", 0)
        out.append(tokens)
    first, held = np.concatenate(out), np.tile(is_held, CALLS)
    group = np.tile(group, CALLS)
    if fault := _fault(first[~held, 0], group[~held], logits, alpha):
        return Form(name, fault, "", len(first))
    is_vllm = ((first[held, 0] >= 0).all() and (first[held, 1:] == -1).all()
               and not _fault(first[held, 0], group[held], logits, 1e-3))
    reading = "rejected, and a token is drawn" if is_vllm else "something else is emitted"
    return Form(name, "", f"placeholders (-1) within drafts: {reading}", len(first))
