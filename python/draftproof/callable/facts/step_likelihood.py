"""Chain verification (Leviathan et al. 2023, algorithm 1) with one thing wrong, and the log probabilities of steps
under it."""

from __future__ import annotations

import copy
import dataclasses
import functools
from typing import Callable

import numpy as np

from ..._core import Error
from ..cases.verify_sweep import Steps
from ..evidence import evidence
from .observed import ELEMENTS, STRAY, Draws, log_of
from .row_deviations import Rows


def ratio_of(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    return np.minimum(1.0, p / np.maximum(q, 1e-30))


def left_of(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The residual, not divided by its sum."""
    return np.maximum(p - q, 0.0)


@dataclasses.dataclass(frozen=True, eq=False)
class Chain:
    """p: target's rows [N, V], of accepting, of residuals, of bonus tokens; q: drafts' [N, V] (rows of bonus tokens are
    0)."""

    accept: np.ndarray
    recover: np.ndarray
    bonus: np.ndarray
    q: np.ndarray
    ratio: Callable[[np.ndarray, np.ndarray], np.ndarray] = ratio_of
    residual: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray] = lambda p, q, _x: left_of(p, q)
    of_draft: bool = False  # `residual` looks at the draft x
    q_residual: np.ndarray | None = None  # where it is not q
    sure_at_end: bool = False  # the last draft
    sure_from: int = 1 << 30
    never_from: int = 1 << 30  # of the drafts of a call
    bits_of_ids: int = 62  # by which drafts are looked up
    next_token: str = ""  # "p" or "q": it is looked up for the next draft
    #: "last": bonus tokens have that of the last draft; "first": all drafts of a request have its first one's;
    #: "product": own ones, against the product of p / q up to their place
    coins: str = "own"
    given: Rows | None = None  # the target's rows, where they are read otherwise


@dataclasses.dataclass(frozen=True, eq=False)
class OfSteps:
    """Log probabilities of steps [n] that a rule gives, and how well it fits them. sound_zone: [N, V], of the target's
    rows."""

    emitted: Emitted
    chain: Chain
    sound_zone: np.ndarray

    @functools.cached_property
    def zone(self) -> np.ndarray:
        """Of rows that are read otherwise, too, usual readings may differ."""
        given = self.chain.given
        return self.sound_zone if given is None else self.sound_zone | evidence.Rows.of(given.logits, given.params).zone

    def __call__(self) -> np.ndarray:
        return self.emitted(self.chain)

    def excused(self) -> np.ndarray:
        of, zone = self.emitted, self.zone
        return ((of.stood | of.fell) & zone[of.steps.row, of.x]).any(axis=1) | zone[of.row, of.token]

    def refuted(self, here: np.ndarray, draws: Draws) -> float:
        return self.emitted.refuted(self.chain, here, draws, self.zone)


class Emitted:
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
        # index of a draft among its call's
        self.of_call = (before - before[everything // batch * batch])[:, None] + self.place

    def __call__(self, rule: Chain) -> np.ndarray:
        chance = self.chance(rule)
        log_p = (np.where(self.stood, log_of(chance, self.size), 0.0) +
                 np.where(self.fell, log_of(1.0 - chance, self.size), 0.0)).sum(axis=1)
        left, empty, of = self.residuals(rule)
        total = left.sum(axis=1)[of]
        recovered = np.where(total > 1e-12, left[of, self.token] / np.maximum(total, 1e-30), empty[of, self.token])
        bonus = rule.bonus[self.row, self.token]
        if rule.coins == "last":  # it lies below the chance of the last draft
            if rule.bonus.size > ELEMENTS:
                raise Error("too many rows")
            until = np.cumsum(rule.bonus, axis=1)[self.row, self.token]
            below = chance[np.arange(len(chance)), np.maximum(self.steps.lens - 1, 0)]
            below = np.where(self.steps.lens > 0, np.clip(below, 1e-30, 1.0), 1.0)
            bonus = np.maximum(np.minimum(until, below) - np.minimum(until - bonus, below), 0.0) / below
        drawn = np.where(self.is_bonus, bonus, recovered)
        return log_p + log_of(drawn, self.size)

    def refuted(self, rule: Chain, here: np.ndarray, draws: Draws, zone: np.ndarray) -> float:
        """Nats against the rule (observed.Rule), by the drafts that are judged, then by the tokens drawn. zone: [N,
        V] of the target's rows."""
        rng = np.random.default_rng(len(here))
        chance = np.clip(self.chance(rule), 0.0, 1.0)
        # Of a row with ties at its cut readings differ in the probability of every token.
        unsure = (np.where(zone, np.maximum(rule.accept, rule.bonus), 0.0).sum(axis=1) > STRAY if zone.any()
                  else np.zeros(len(zone), bool))
        judged = (self.stood | self.fell) & here[:, None] & ~zone[self.steps.row, self.x] & ~unsure[self.steps.row]
        cannot = judged & ((self.stood & (chance < 1e-9)) | (self.fell & (chance > 1.0 - 1e-7)))
        bonus, recovered = here & self.is_bonus, here & ~self.is_bonus
        bets, wrong = [], np.count_nonzero(cannot.any(axis=1))
        v = rng.random(chance.shape)
        coins = np.where(self.stood, v * chance, chance + v * (1.0 - chance))
        step, place = np.nonzero(judged & ~cannot)
        groups = [("", np.ones(len(step), bool)), *((f"place {i}", place == i) for i in range(min(8, chance.shape[1]))),
                  *((f"{length} drafts", self.steps.lens[step] == length) for length in np.unique(self.steps.lens)[:8]),
                  *evidence.classes(*draws.at(step))]
        bets += [evidence.uniform_log_e(coins[step[of], place[of]]) for _, of in groups if of.sum() >= 8]
        left, empty, of = self.residuals(rule)
        left = np.maximum(np.nan_to_num(left), 0.0)
        total = left.sum(axis=1, keepdims=True)
        left = np.where(total > 1e-12, left / np.maximum(total, 1e-30), empty)
        if rule.coins == "last":
            bonus = np.zeros_like(bonus)
        for table, row, drawn in ((left, of, recovered), (rule.bonus, self.row, bonus)):
            p = table[row, self.token]
            excused = zone[self.row, self.token] | unsure[self.row]
            wrong += np.count_nonzero(drawn & (p <= 0.0) & ~excused)
            open_ = np.flatnonzero(drawn & (p > 0.0) & ~excused)
            if open_.size < 8:
                continue
            rows = evidence.Rows(table, np.zeros((0, 0), bool), table)
            found = evidence.ranks(rows, row[open_], self.token[open_], rng)
            params, at, batch = draws.at(open_)
            for u in (found.by_rank, found.by_id):
                bets += [evidence.uniform_log_e(u),
                         *(evidence.uniform_log_e(u[self.last[open_] == i]) for i in range(min(4, chance.shape[1])))]
            bets += [evidence.uniform_log_e(found.by_rank[of_class]) for _,
                     of_class in evidence.classes(params, at, batch) if of_class.sum() >= 8]
        if wrong > STRAY * np.count_nonzero(here):
            return float("inf")
        return max(bets) - float(np.log(len(bets))) if bets else 0.0

    def chance(self, rule: Chain) -> np.ndarray:
        """[n, K + 1]: of each draft that is judged, that it stands."""
        x = self.x & ((1 << rule.bits_of_ids) - 1)
        later = np.where(np.roll(self.is_draft, -1, axis=1), np.roll(x, -1, axis=1), x)
        p = rule.accept[self.steps.row, later if rule.next_token == "p" else x]
        q = rule.q[self.steps.row, later if rule.next_token == "q" else x]
        chance = np.where(self.of_call >= rule.never_from, 0.0, rule.ratio(p, q))
        chance = np.where((self.place >= rule.sure_from) |
                          (rule.sure_at_end & (self.place == self.steps.lens[:, None] - 1)), 1.0, chance)
        if rule.coins == "product":
            chance = np.cumprod(np.where(self.is_draft, chance, 1.0), axis=1)
        if rule.coins == "first":
            least = np.minimum.accumulate(np.where(self.is_draft, chance, 1.0), axis=1)
            chance = least / np.maximum(np.concatenate([np.ones_like(least[:, :1]), least[:, :-1]], axis=1), 1e-30)
        return chance

    def with_bonus_of(self, row: np.ndarray) -> Emitted:
        """The same with other rows [n] of bonus tokens."""
        other = copy.copy(self)
        other.row = np.where(self.is_bonus, row, self.row)
        return other

    def residuals(self, rule: Chain) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights [R, V] of recovered tokens; what they are drawn from where those are all 0, [R, V]; which of them
        each step has, [n]."""
        q = rule.q if rule.q_residual is None else rule.q_residual
        if not rule.of_draft:
            return rule.residual(rule.recover, q, self.x), rule.recover, self.row
        # Rows with the rejected draft, each once.
        fallen = np.flatnonzero(~self.is_bonus)
        last = self.last[fallen]
        keys, of = np.unique(np.stack([self.steps.row[fallen, last], self.x[fallen, last]]), axis=1,
                             return_inverse=True)
        if keys.shape[1] * self.size > 4 * ELEMENTS:
            raise Error("too many drafts")
        if not len(fallen):
            return rule.recover, rule.recover, self.row
        step = np.zeros(len(self.row), np.int64)
        step[fallen] = of.ravel()
        return rule.residual(rule.recover[keys[0]], q[keys[0]], keys[1]), rule.recover[keys[0]], step
