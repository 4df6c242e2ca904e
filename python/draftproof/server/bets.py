"""Bets on what engines are known to do wrong: e-values of draws whose distributions are seen.

Each is the likelihood ratio of one alternative against the stated distribution, so that its mean is 1 at most where a
server is sound; the mean of all is one too. Where few tokens decide, this needs ten times fewer draws than ranks."""

from __future__ import annotations

import math
import typing

import numpy as np

from ..callable.evidence.evidence import marked_log_e
from . import draws

if typing.TYPE_CHECKING:
    from .draws import Drawn

TAILS = (4, 6, 8, 10)  # tokens of probability 2^-n at most
TAIL_ODDS = np.array([0.0, 0.25, 0.5, 2.0, 4.0, 16.0])
MIXED = (0.005, 0.02, 0.1)  # of mass that is uniform over the kept tokens
STEPS = (256, 2048)  # values of a uniform number in bfloat16 and float16
TRUE = 0.1  # of a bet on such numbers that stays on the stated distribution: cuts are moved by noise
AGAIN_ODDS = np.array([0.5, 0.8, 1.5, 2.5])
BEYOND = (0.005, 0.02, 0.1, 0.5)


def of(drawn: Drawn) -> list[tuple[str, float, str, tuple[int, int] | None]]:
    """Returns name, log of the e-value, words, and where the first evidence stands."""
    found = []
    if drawn.inside + len(drawn.beyond) > 0:
        # a tail that is smaller than its bound makes each bet the smaller
        log_e = _mean([drawn.inside * math.log1p(-part) + sum(
            math.log1p(part / most - part) for *_, most in drawn.beyond) for part in BEYOND])
        words = f"tokens beyond the list were drawn {len(drawn.beyond)} times; at most {drawn.bound:.2g} are expected"
        first = drawn.beyond[:1]
        found.append(("beyond", log_e, words + "".join(f" (first: token {token!r} at position {position} of its text)"
                                                       for _, position, token, _ in first),
                      next(((number, position) for number, position, *_ in first), None)))
    logs = _listed(drawn)
    if logs:
        words = max(logs, key=lambda name: max(logs[name]))
        found.append(("bets", _mean([log_e for several in logs.values() for log_e in several]), words, None))
    return found


def _mean(logs: list[float]) -> float:
    top = max(logs)
    return top + math.log(math.fsum(math.exp(log_e - top) for log_e in logs) / len(logs)) if top > -math.inf else top


def _listed(drawn: Drawn) -> dict[str, list[float]]:
    """Returns logs of e-values by what they bet on, of the draws that are not beyond their list."""
    probs, ids, ranks = draws.arrays(drawn)
    at = np.flatnonzero(ranks < probs.shape[1])
    if not len(at):
        return {}
    p, ids, ranks = probs[at], ids[at], ranks[at]
    p = p / p.sum(axis=1, keepdims=True)
    here = np.arange(len(at))
    q = p[here, ranks]
    logs: dict[str, list[float]] = {}
    for power in TAILS:
        is_tail = p <= 2.0 ** -power
        logs[f"tokens of probability 1/{2 ** power} or less are drawn too often or too seldom"] = [
            _marked(is_tail[here, ranks], np.where(is_tail, p, 0.0).sum(axis=1), TAIL_ODDS)]
    logs["probabilities are as if a part were uniform"] = [
        float(np.log(1.0 - part + part / ((p > 0).sum(axis=1) * q)).sum()) for part in MIXED]
    for steps in STEPS:
        logs[f"tokens are drawn as if by random numbers of {steps} values"] = [
            float(np.log(TRUE + (1.0 - TRUE) * share / q).sum()) for share in _on_grid(p, ids, ranks, steps)]
    rows = [drawn.rows[i] for i in at]
    logs["tokens that came before are drawn too often, as drafts drawn again once rejected, or too seldom"] = [
        _marked(np.array([row.is_again[place] for row in rows]), np.array([row.again[place] for row in rows]),
                AGAIN_ODDS) for place in range(len(draws.GRAMS))]
    return logs


def _marked(hits: np.ndarray, chances: np.ndarray, odds: np.ndarray) -> float:
    """A bet on the odds of some tokens, in rows that leave them a choice."""
    is_open = (chances > 1e-12) & (chances < 1.0 - 1e-12)
    return marked_log_e(hits[is_open], chances[is_open], odds)


def _on_grid(p: np.ndarray, ids: np.ndarray, ranks: np.ndarray, steps: int) -> list[np.ndarray]:
    """Returns the probabilities [n] of the drawn tokens under random numbers of so many values: ends and middles of
    steps, sums by rank and by id."""
    here, shares = np.arange(len(p)), []
    by_id = np.argsort(np.where(p > 0, ids, np.iinfo(np.int64).max), axis=1, kind="stable")
    place = np.argmax(by_id == ranks[:, None], axis=1)
    for ordered, drawn in ((p, ranks), (np.take_along_axis(p, by_id, axis=1), place)):
        above = np.minimum(1.0, np.cumsum(ordered, axis=1))[here, drawn] * steps
        below = above - ordered[here, drawn] * steps
        shares += [np.maximum(0.0, np.ceil(above - shift) - np.ceil(below - shift)) / steps for shift in (0.0, 0.5)]
    return shares
