"""Runs a case of a sampler and judges its draws."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ... import _audit
from ..cases.sample_cases import SampleCase
from ..drive.drive import CallFailure, Driver, Params, drawn_of, probabilities_of
from . import evidence


@dataclasses.dataclass(frozen=True)
class Judgement:
    """biased: what was found (test and sentence); detectable: the distance that would have been; suspect: what the test
    says of random numbers."""

    biased: bool
    name: str
    sentence: str
    n: int
    distance: float | None
    detectable: float | None
    group: int = 0
    suspect: str = ""


def _alike(p: np.ndarray) -> int:
    """Of how many tokens several rows [G, V] draw each with the same chance; 0 if they do not."""
    size = int((p[0] > 0.0).sum())
    return size if 1 < len(p) <= 64 and size > 16 and np.abs(p[0][p[0] > 0.0] - 1.0 /
                                                             size).max() < 1e-6 and np.allclose(p, p[0],
                                                                     atol=1e-6) else 0


class SampleRun:
    """Draws of one case, which grow from stage to stage."""

    def __init__(self, driver: Driver, case: SampleCase, seed: int) -> None:
        self.driver = driver
        self.case = case
        self.seed = seed
        self.calls = 0
        self.samples: list[np.ndarray] = []
        self.groups: list[np.ndarray] = []
        self.seeds: list[np.ndarray] = []
        self.logprobs: list[np.ndarray] = []  # where the callable gives them
        self.params_before: dict[str, np.ndarray] | None = None  # of the call before the first one

    @property
    def n(self) -> int:
        return self.calls * self.case.batch

    def call(self) -> None:
        case = self.case
        slots, seeds = case.slots(self.calls, self.seed), case.seeds_of(self.calls, self.seed)
        params = Params({name: values[slots] for name, values in case.params.items()}, case.batch)
        keywords: dict[str, Any] = {}
        if self.calls == 0:
            self.params_before = self.driver.last_params
        self.driver.last_params = dict(params)
        if case.seeds == "one" and self.driver.takes_steps:
            keywords["steps"] = np.full(case.batch, self.calls, np.uint32)
        value = self.driver(case.logits[slots], params, seeds, **keywords)
        tokens, logprobs = drawn_of(value, (case.batch,), "tokens [B]")
        self.samples.append(tokens)
        self.logprobs += [] if logprobs is None else [logprobs]
        self.groups.append(slots)
        self.seeds.append(seeds)
        self.calls += 1

    def draw(self, n: int) -> None:
        while self.n < n:
            try:
                self.call()
            except CallFailure as failure:
                if self.case.may_raise and failure.name == "raises":
                    self.samples.append(np.zeros(self.case.batch, np.int64))
                    self.groups.append(self.case.slots(self.calls, self.seed))
                    self.seeds.append(self.case.seeds_of(self.calls, self.seed))
                    self.calls += 1
                    continue
                raise

    def judge(self, alpha: float) -> Judgement:
        found = self._judge_tokens(alpha)
        case = self.case
        if (found.biased or len(self.logprobs) != self.calls or self.driver.distribution is not None or case.readings
            or case.may_raise):
            return found
        from . import logprobs  # which takes a Judgement from here

        return logprobs.judged(self.driver, case.logits, case.logits, case.params, np.concatenate(self.groups),
                               np.concatenate(self.samples), np.concatenate(self.logprobs)) or found

    def _judge_tokens(self, alpha: float) -> Judgement:
        case = self.case
        samples = np.concatenate(self.samples)
        if case.may_raise:  # nothing can be drawn; what may not come back is an id outside of the vocabulary
            wrong = samples[(samples >= case.vocab_size) | (samples < -1)]
            sentence = f"a row with nothing to draw gave token {wrong[0]}" if wrong.size else "no token out of range"
            return Judgement(bool(wrong.size), "well_formed", sentence, self.n, None, None)
        places: dict[str, Any] = {"draw_row": np.tile(np.arange(case.batch), self.calls)}
        steps = np.repeat(np.arange(self.calls), case.batch)
        places["draw_step"] = steps
        if case.seeds != "one":
            places["draw_seed"] = np.concatenate(self.seeds)
        groups = np.concatenate(self.groups)
        common: dict[str, Any] = {"group": groups, "alpha": alpha, "tv_wanted": 1.0, "seed": self.seed}
        if case.is_sweep:
            return self._judge_by_evidence(alpha, groups, samples)
        if self.driver.distribution is not None:
            probs = probabilities_of(self.driver.distribution, case)
            return self._judged(_audit.audit_draws(samples, probs=probs, **common, **places))
        if not case.readings:
            return self._judged(_audit.audit_draws(samples, case.logits, case.params, **common, **places))
        assert case.merge is not None
        inside = (samples >= 0) & (samples < case.vocab_size)
        cells = np.where(inside, case.merge[np.where(inside, samples, 0)], samples)
        found = [self._judged(_audit.audit_draws(cells, probs=probs.astype(np.float32), **common, **places))
                 for probs in case.readings]
        sound = [judgement for judgement in found if not judgement.biased]
        return sound[0] if sound else min(found, key=lambda judgement: judgement.distance or 0.0)

    def _judge_by_evidence(self, alpha: float, group: np.ndarray, token: np.ndarray) -> Judgement:
        case = self.case
        place = np.tile(np.arange(case.batch), self.calls)
        rows = evidence.Rows.of(case.logits, case.params)
        inside = (token >= 0) & (token < case.vocab_size)
        chance = np.where(inside, rows.probabilities[group, np.where(inside, token, 0)], 0.0)
        zone = inside & rows.zone[group, np.where(inside, token, 0)]
        wrong = np.flatnonzero((chance == 0.0) & ~zone)
        if wrong.size:
            return self._impossible(wrong, group, token, inside)
        open_ = np.flatnonzero(~zone)
        bets: list[evidence.Bet] = []
        if open_.size:
            found = evidence.ranks(rows, group[open_], token[open_], np.random.default_rng([self.seed, 3]))
            params = {name: value[group[open_]] for name, value in case.params.items()}
            bets += evidence.bets_on_ranks(found, params, place[open_], case.batch, group[open_])
            bets += evidence.bets_on_marks(rows, group[open_], token[open_])
        if case.is_flat:
            bets += evidence.bets_on_flat(token, case.vocab_size,
                                          (1, 2, 16, 32, 64, 128, 256, 1024, case.batch, case.batch + 1))
            bets.append(evidence.bet_on_places(token, case.vocab_size, case.batch))
        # rows that are filtered beside others that are not
        elif (size := _alike(rows.probabilities)) and open_.size == len(token):
            bets.append(evidence.bet_on_places(token, size, case.batch))
        best = evidence.best_bet(bets, alpha)
        if best is None:
            return Judgement(False, "", f"{self.n} draws, none impossible", self.n, None, None)
        return Judgement(True, best.name, best.sentence, self.n, best.distance, None,
                         int(group[open_][best.where[0]]) if best.name not in ("repeats", "correlation_places") else 0,
                         best.suspect)

    def _impossible(self, wrong: np.ndarray, group: np.ndarray, token: np.ndarray, inside: np.ndarray) -> Judgement:
        case, first = self.case, wrong[0]
        sentence = (f"{wrong.size} of {self.n} draws are impossible, first token {token[first]} of row {group[first]} "
                    f"in place {first % case.batch} of call {first // case.batch}")
        of_mask = wrong[inside[wrong]]
        of_mask = of_mask[np.isneginf(case.logits[group[of_mask], token[of_mask]])]
        name = "support"
        if of_mask.size and of_mask.size == wrong.size:
            name, more = "masked_token", evidence.mask_value(case.logits, case.params, group, token)
            sentence += f"; all of them have a logit of -infinity{more}"
        return Judgement(True, name, sentence, self.n, wrong.size / self.n, None, int(group[first]))

    def _judged(self, audit: Any) -> Judgement:
        worst = audit.worst()
        # Rows that leave no choice have their support only; n of them show what is likelier than that.
        detectable = audit.detectable_tv
        if audit.verdict != "biased" or worst is None:
            return Judgement(False, "", audit.sentence, self.n, None, detectable)
        group = int(worst.worst_cells[0].get("group", 0)) if worst.worst_cells else 0
        return Judgement(True, worst.name, audit.sentence, self.n, worst.estimated_tv, detectable, group)
