"""Chain verification (Leviathan et al. 2023, algorithm 1) with one thing wrong, and the draws that steps are of it."""

from __future__ import annotations

import dataclasses
from typing import Callable

import numpy as np

from ..._core import Error
from ..cases.verify_sweep import Steps
from ..evidence import evidence
from .grammar import Rows
from .observed import ELEMENTS, STRAY, Part, Rule


def ratio_of(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    return np.minimum(1.0, p / np.maximum(q, 1e-30))


def left_of(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The residual, not divided by its sum."""
    return np.maximum(p - q, 0.0)


class Emitted:
    """Steps [n] by what became of their drafts. stood, fell: [n, K + 1]; token: [n], the last, not a draft, of `row`;
    x: the drafts' ids, 0 beyond; of_call: a draft's index among its call's."""

    def __init__(self, steps: Steps, vocab_size: int, batch: int) -> None:
        n, width = steps.out.shape
        self.steps, self.size = steps, vocab_size
        self.place, everything = np.arange(width)[None, :], np.arange(n)
        self.last = np.maximum(steps.count - 1, 0)
        self.token = np.clip(steps.out[everything, self.last], 0, vocab_size - 1)
        self.row = steps.row[everything, self.last]
        self.is_bonus = steps.count > steps.lens
        self.is_draft = self.place < steps.lens[:, None]
        self.stood = self.is_draft & (self.place < self.last[:, None])
        self.fell = self.is_draft & (self.place == self.last[:, None]) & ~self.is_bonus[:, None]
        self.x = np.where(self.is_draft, np.clip(steps.drafts, 0, vocab_size - 1), 0)
        before = np.cumsum(steps.lens) - steps.lens
        self.of_call = (before - before[everything // batch * batch])[:, None] + self.place

    def next_x(self) -> np.ndarray:
        return np.where(np.roll(self.is_draft, -1, axis=1), np.roll(self.x, -1, axis=1), self.x)


@dataclasses.dataclass(frozen=True, eq=False)
class Chain:
    """p: target's rows [N, V], of accepting, of residuals, of bonus tokens; q: drafts' [N, V] (rows of bonus tokens are
    0). ratio(p, q): the chance that a draft stands; judged(emitted, chance): those of all drafts [n, K + 1]; p_at,
    q_at: by which ids drafts are looked up; residual(p, q, x): weights of recovered tokens; of_draft: it reads x."""

    accept: np.ndarray
    recover: np.ndarray
    bonus: np.ndarray
    q: np.ndarray
    ratio: Callable[[np.ndarray, np.ndarray], np.ndarray] = ratio_of
    judged: Callable[[Emitted, np.ndarray], np.ndarray] = lambda of, chance: chance
    p_at: Callable[[Emitted], np.ndarray] = lambda of: of.x
    q_at: Callable[[Emitted], np.ndarray] = lambda of: of.x
    residual: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray] = lambda p, q, _x: left_of(p, q)
    of_draft: bool = False
    q_residual: np.ndarray | None = None  # where it is not q
    has_last_coin: bool = False  # bonus tokens have the coin of the last draft
    given: Rows | None = None  # the target's rows, where they are read otherwise


def of_steps(of: Emitted, rule: Chain, zone: np.ndarray) -> Rule:
    """Steps [n] under a rule. zone: [N, V], of the target's rows, what usual readings disagree on."""
    return Rule(len(of.row), of.size, lambda: _parts(of, rule, zone))


def _parts(of: Emitted, rule: Chain, zone: np.ndarray) -> list[Part]:
    chance = rule.judged(of, rule.ratio(rule.accept[of.steps.row, rule.p_at(of)], rule.q[of.steps.row, rule.q_at(of)]))
    chance = np.where(chance < 1e-9, 0.0, np.where(chance > 1.0 - 1e-7, 1.0, chance))

    def part(what: str, table: np.ndarray, row: np.ndarray, token: np.ndarray, step: np.ndarray, read: np.ndarray,
             x: np.ndarray, place: np.ndarray) -> Part:
        """read, x: of each draw the row and id in the zone."""
        def look() -> tuple[np.ndarray, np.ndarray]:
            both = zone
            if rule.given is not None:  # of rows that are read otherwise, too, usual readings may differ
                both = zone | evidence.Rows.of(rule.given.logits, rule.given.params).zone
            # Of a row with ties at its cut readings differ in the probability of every token.
            unsure = np.where(both, np.maximum(rule.accept, rule.bonus), 0.0).sum(axis=1) > STRAY
            return both[read, x] | unsure[read], table

        return Part(what, table, row, token, step, look, [(f" at place {i}", place == i) for i in np.unique(place)[:8]])

    step, place = np.nonzero(of.stood | of.fell)
    values, at = np.unique(chance[step, place], return_inverse=True)
    coins = part("drafts", np.stack([values, 1.0 - values], axis=1), at.ravel(), of.fell[step, place].astype(np.int64),
                 step, of.steps.row[step, place], of.x[step, place], place)
    parts = [coins]
    fallen, whole = np.flatnonzero(~of.is_bonus), np.flatnonzero(of.is_bonus)
    if len(fallen):
        row = of.row[fallen]
        left, at = _recovered(of, rule, fallen)
        parts.append(part("recovered tokens", left, at, of.token[fallen], fallen, row, of.token[fallen],
                          of.last[fallen]))
    if len(whole):
        row, token, table, at = of.row[whole], of.token[whole], rule.bonus, of.row[whole]
        if rule.has_last_coin:  # it lies below the chance of the last draft
            if len(whole) * of.size > 4 * ELEMENTS:
                raise Error("too many rows")
            lens = of.steps.lens[whole]
            below = np.where(lens > 0, np.maximum(chance[whole, np.maximum(lens - 1, 0)], 1e-30), 1.0)[:, None]
            until = np.cumsum(rule.bonus, axis=1)[row]
            table = np.maximum(np.minimum(until, below) - np.minimum(until - rule.bonus[row], below), 0.0) / below
            at = np.arange(len(whole))
        parts.append(part("bonus tokens", table, at, token, whole, row, token, of.last[whole]))
    return parts


def _recovered(of: Emitted, rule: Chain, fallen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities [R, V] of recovered tokens, of an empty residual those of the target; which each step has."""
    p, q, at, x = rule.recover, rule.q if rule.q_residual is None else rule.q_residual, of.row[fallen], of.x[fallen, 0]
    if rule.of_draft:  # rows with the rejected draft, each once
        keys, at = np.unique(np.stack([at, of.x[fallen, of.last[fallen]]]), axis=1, return_inverse=True)
        if keys.shape[1] * of.size > 4 * ELEMENTS:
            raise Error("too many drafts")
        p, q, x = p[keys[0]], q[keys[0]], keys[1]
    left = np.maximum(np.nan_to_num(rule.residual(p, q, x)), 0.0)
    total = left.sum(axis=1, keepdims=True)
    return np.where(total > 1e-12, left / np.maximum(total, 1e-30), p), at.ravel()
