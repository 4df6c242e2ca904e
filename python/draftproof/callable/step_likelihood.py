"""Chain verification with one thing wrong, and the log probabilities of steps under it (step_hypotheses.py)."""

from __future__ import annotations

import copy
import dataclasses
from typing import Callable

import numpy as np

from .._core import Error
from .accounts import ELEMENTS, log_of, shortfall
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
    multiplies: bool = False  # what drafts are accepted with, over the places


@dataclasses.dataclass(frozen=True, eq=False)
class OfSteps:
    """Log probabilities of steps [n] that a rule gives, and how well it fits them; the rule is made when it is tried."""

    told: Told
    rule: Callable[[], Rule]

    def __call__(self) -> np.ndarray:
        return self.told(self.rule())

    def misfit(self, here: np.ndarray) -> float:
        return self.told.misfit(self.rule(), here)


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
        chance = self._chance(rule)
        log_p = (np.where(self.stood, log_of(chance, self.size), 0.0) +
                 np.where(self.fell, log_of(1.0 - chance, self.size), 0.0)).sum(axis=1)
        left, empty, of = self._residuals(rule)
        total = left.sum(axis=1)[of]
        recovered = np.where(total > 1e-12, left[of, self.token] / np.maximum(total, 1e-30), empty[of, self.token])
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

    def misfit(self, rule: Rule, here: np.ndarray) -> float:
        """Standard deviations by which the log likelihood of the steps `here` [n] is below what the rule expects, given the drafts."""
        if rule.bonus_has_coin:
            return 0.0
        chance = self._chance(rule)
        stands, falls = log_of(chance, self.size), log_of(1.0 - chance, self.size)
        judged = (self.stood | self.fell) & here[:, None]
        short = np.where(judged, chance * stands + (1.0 - chance) * falls - np.where(self.stood, stands, falls), 0.0).sum()
        variance = np.where(judged, chance * (1.0 - chance) * (stands - falls) ** 2, 0.0).sum()
        left, empty, of = self._residuals(rule)
        total = left.sum(axis=1, keepdims=True)
        recovered = np.where(total > 1e-12, left / np.maximum(total, 1e-30), empty)
        for table, row, drawn in ((recovered, of, here & ~self.is_bonus), (rule.bonus, self.row, here & self.is_bonus)):
            below, spread = shortfall(table, row[drawn], self.token[drawn])
            short, variance = short + below, variance + spread
        return float(short / np.sqrt(max(variance, 1.0)))

    def _chance(self, rule: Rule) -> np.ndarray:
        """[n, K + 1]: of each draft that is judged, that it stands."""
        x = self.x & ((1 << rule.bits_of_ids) - 1)
        later = np.where(np.roll(self.is_draft, -1, axis=1), np.roll(x, -1, axis=1), x)
        p = rule.accept[self.steps.row, later if rule.next_token == "p" else x]
        q = rule.q[self._q_row(rule), later if rule.next_token == "q" else x]
        p = np.cumsum(p, axis=1) if rule.adds_up else p
        chance = np.where(self.of_call >= rule.never_from, 0.0, rule.ratio(p, q))
        chance = np.where((self.place >= rule.sure_from) | (rule.sure_at_end & (self.place == self.steps.lens[:, None] - 1)), 1.0, chance)
        if rule.multiplies:
            chance = np.cumprod(np.where(self.is_draft, chance, 1.0), axis=1)
        if rule.period:  # a coin that was below the chances of the drafts so many before it
            bound = np.ones(chance.shape)
            for i in range(rule.period, chance.shape[1]):
                bound[:, i] = np.minimum(bound[:, i - rule.period], chance[:, i - rule.period])
            chance = np.minimum(chance, bound) / np.maximum(bound, 1e-30)
        return chance

    def _q_row(self, rule: Rule) -> np.ndarray:
        row = self.steps.row
        return np.concatenate([row[:self.batch], row[:-self.batch]]) if rule.q_of_last_call else row

    def with_bonus_of(self, row: np.ndarray) -> Told:
        """The same with other rows [n] of bonus tokens."""
        other = copy.copy(self)
        other.row = np.where(self.is_bonus, row, self.row)
        return other

    def _residuals(self, rule: Rule) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights [R, V] of recovered tokens; what they are drawn from where those are all 0, [R, V]; which of them each step has, [n]."""
        if not (rule.of_draft or rule.q_of_last_call or rule.p_place is not None or rule.q_place is not None):
            return rule.residual(rule.recover, rule.q, self.x), rule.recover, self.row
        # Of rows with the draft that fell, each once.
        fallen = np.flatnonzero(~self.is_bonus)
        last = self.last[fallen]
        lens = self.steps.lens[fallen]
        p_last, q_last = (last if place is None else np.clip(place(last, lens), 0, lens) for place in (rule.p_place, rule.q_place))
        if rule.q_place is not None:
            q_last = np.minimum(q_last, lens - 1)
        keys, of = np.unique(np.stack([self.steps.row[fallen, p_last], self._q_row(rule)[fallen, q_last], self.x[fallen, last]]), axis=1,
                             return_inverse=True)
        if keys.shape[1] * self.size > 4 * ELEMENTS:
            raise Error("too many drafts")
        if not len(fallen):
            return rule.recover, rule.recover, self.row
        step = np.zeros(len(self.row), np.int64)
        step[fallen] = of.ravel()
        return rule.residual(rule.recover[keys[0]], rule.q[keys[1]], keys[2]), rule.recover[keys[0]], step
