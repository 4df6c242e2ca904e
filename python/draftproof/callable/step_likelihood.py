"""Chain verification with one thing wrong, and the log probabilities of steps under it (step_hypotheses.py)."""

from __future__ import annotations

import copy
import dataclasses
from typing import Callable

import numpy as np

from .._core import Error
from .hypotheses import ELEMENTS, log_of
from .verify_sweep import Steps


@dataclasses.dataclass(frozen=True, eq=False)
class Rule:
    """p: target's rows [N, V], of accepting, of residuals, of bonus tokens; q: drafts' [N, V] (rows of bonus tokens are 0)."""

    accept: np.ndarray
    recover: np.ndarray
    bonus: np.ndarray
    q: np.ndarray
    ratio: Callable[[np.ndarray, np.ndarray], np.ndarray] = lambda p, q: np.minimum(1.0, p / np.maximum(q, 1e-30))
    residual: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray] = lambda p, q, _x: np.maximum(p - q, 0.0)
    of_draft: bool = False  # `residual` looks at the draft x
    p_place: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None  # of a recovered token, by its own place and the request's drafts
    q_place: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
    bonus_has_coin: bool = False  # of the last draft
    sure_at_end: bool = False  # the last draft
    sure_from: int = 1 << 30
    period: int = 0  # coins of drafts so many apart are one; 0: none are
    never_from: int = 1 << 30  # of the drafts of a call
    bits_of_ids: int = 62  # by which drafts are looked up
    q_of_last_call: bool = False
    next_token: str = ""  # "p" or "q": it is looked up for the next draft
    adds_up: bool = False  # p, over the places


class Told:
    """Log probabilities of steps under rules."""

    def __init__(self, steps: Steps, vocab_size: int, batch: int) -> None:
        self.steps, self.size, self.batch = steps, vocab_size, batch
        n, width = steps.out.shape
        self.place = np.arange(width)[None, :]
        everything = np.arange(n)
        last = np.maximum(steps.count - 1, 0)
        self.last = last
        self.token = np.clip(steps.out[everything, last], 0, vocab_size - 1)
        self.row = steps.row[everything, last]
        self.is_bonus = (steps.count > steps.lens)
        self.is_draft = self.place < steps.lens[:, None]
        self.stood = self.is_draft & (self.place < last[:, None])
        self.fell = self.is_draft & (self.place == last[:, None]) & ~self.is_bonus[:, None]
        self.x = np.where(self.is_draft, np.clip(steps.drafts, 0, vocab_size - 1), 0)
        before = (np.cumsum(steps.lens) - steps.lens)
        self.of_call = (before - before[everything // batch * batch])[:, None] + self.place  # index of a draft among its call's

    def __call__(self, rule: Rule) -> np.ndarray:
        x = self.x & ((1 << rule.bits_of_ids) - 1)
        q_row = np.concatenate([self.steps.row[:self.batch], self.steps.row[:-self.batch]]) if rule.q_of_last_call else self.steps.row
        later = np.where(np.roll(self.is_draft, -1, axis=1), np.roll(x, -1, axis=1), x)
        p = rule.accept[self.steps.row, later if rule.next_token == "p" else x]
        q = rule.q[q_row, later if rule.next_token == "q" else x]
        p = np.cumsum(p, axis=1) if rule.adds_up else p
        chance = np.where(self.of_call >= rule.never_from, 0.0, rule.ratio(p, q))
        chance = np.where((self.place >= rule.sure_from) | (rule.sure_at_end & (self.place == self.steps.lens[:, None] - 1)), 1.0, chance)
        if rule.period:  # a coin that was below the chances of the drafts so many before it
            bound = np.ones(chance.shape)
            for i in range(rule.period, chance.shape[1]):
                bound[:, i] = np.minimum(bound[:, i - rule.period], chance[:, i - rule.period])
            chance = np.minimum(chance, bound) / np.maximum(bound, 1e-30)
        log_p = (np.where(self.stood, log_of(chance, self.size), 0.0) +
                 np.where(self.fell, log_of(1.0 - chance, self.size), 0.0)).sum(axis=1)
        by_pairs = rule.of_draft or rule.q_of_last_call or rule.p_place is not None or rule.q_place is not None
        recovered = self._of_pairs(rule, q_row) if by_pairs else self._of_rows(rule)
        bonus = rule.bonus[self.row, self.token]
        if rule.bonus_has_coin:  # it lies below the chance of the last draft
            if rule.bonus.size > ELEMENTS:
                raise Error("too many rows")
            until = np.cumsum(rule.bonus, axis=1)[self.row, self.token]
            below = chance[np.arange(len(chance)), np.maximum(self.steps.lens - 1, 0)]
            below = np.where(self.steps.lens > 0, np.clip(below, 1e-30, 1.0), 1.0)
            bonus = np.maximum(np.minimum(until, below) - np.minimum(until - bonus, below), 0.0) / below
        drawn = np.where(self.is_bonus, bonus, recovered)
        return log_p + log_of(drawn, self.size)

    def with_bonus_of(self, row: np.ndarray) -> Told:
        """The same with other rows [n] of bonus tokens."""
        other = copy.copy(self)
        other.row = np.where(self.is_bonus, row, self.row)
        return other

    def _of_rows(self, rule: Rule) -> np.ndarray:
        left = rule.residual(rule.recover, rule.q, self.x)
        total = left.sum(axis=1)
        here = left[self.row, self.token] / np.maximum(total, 1e-30)[self.row]
        return np.where(total[self.row] > 1e-12, here, rule.recover[self.row, self.token])

    def _of_pairs(self, rule: Rule, q_row: np.ndarray) -> np.ndarray:
        """Of rows with the draft that fell, each once."""
        fallen = np.flatnonzero(~self.is_bonus)
        last = self.last[fallen]
        lens = self.steps.lens[fallen]
        p_last, q_last = (last if place is None else np.clip(place(last, lens), 0, lens) for place in (rule.p_place, rule.q_place))
        if rule.q_place is not None:
            q_last = np.minimum(q_last, lens - 1)
        keys, of = np.unique(np.stack([self.steps.row[fallen, p_last], q_row[fallen, q_last], self.x[fallen, last]]), axis=1,
                             return_inverse=True)
        if keys.shape[1] * self.size > 4 * ELEMENTS:
            raise Error("too many drafts")
        left = rule.residual(rule.recover[keys[0]], rule.q[keys[1]], keys[2])
        total = left.sum(axis=1, keepdims=True)
        left = np.where(total > 1e-12, left / np.maximum(total, 1e-30), rule.recover[keys[0]])
        out = np.zeros(len(self.row))
        out[fallen] = left[of.ravel(), self.token[fallen]]
        return out
