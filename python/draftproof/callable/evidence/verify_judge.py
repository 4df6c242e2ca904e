"""Runs a case of a verifier and judges what it emitted, as completed strings of up to K + 1 tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _audit
from ..cases.sample_cases import SampleCase
from ..cases.verify_cases import VerifyCase
from ..drive.drive import Driver, Params, drawn_of
from . import logprobs
from .sample_judge import Judgement


class VerifyRun:
    """Steps of one case, which grow from stage to stage."""

    def __init__(self, driver: Driver, case: VerifyCase, seed: int) -> None:
        self.driver = driver
        self.case = case
        self.seed = seed
        self.calls = 0
        self.outputs: list[np.ndarray] = []
        self.drafts: list[np.ndarray] = []
        self.seeds: list[np.ndarray] = []
        self.logprobs: list[np.ndarray] = []  # where the callable gives them
        self._seeds = SampleCase("", case.target[0], "", {}, batch=case.batch, seeds=case.seeds)

    @property
    def n(self) -> int:
        return self.calls * self.case.batch

    @property
    def is_shared(self) -> bool:
        """One row serves all places: large vocabularies are never copied."""
        return self.case.order == 0

    def lens(self) -> np.ndarray:
        return np.resize(np.asarray(self.case.draft_lens), self.case.batch)

    def _gather(self, tables: tuple[np.ndarray, ...], drafts: np.ndarray, lens: np.ndarray, more: int) -> Any:
        """Rows of all requests one after the other: of each its lens + more first ones."""
        case = self.case
        total = int((lens + more).sum())
        if self.is_shared:
            return np.broadcast_to(tables[0], (total, case.vocab_size))
        width = drafts.shape[1] + more
        rows = np.zeros((drafts.shape[0], width, case.vocab_size), np.float32)
        for depth in range(width):
            path = np.maximum(drafts[:, :depth], 0)
            rows[:, depth] = case.at_depth(tables, depth)[case.row_index(path)]
        return rows[np.arange(width)[None, :] < (lens + more)[:, None]]

    def call(self) -> None:
        case = self.case
        rng = np.random.default_rng([self.seed, self.calls, 2])
        lens = self.lens()
        longest = int(lens.max(initial=0))
        drafts = case.draw_drafts(case.batch, longest, rng)
        drafts[np.arange(longest)[None, :] >= lens[:, None]] = -1
        seeds = self._seeds.seeds_of(self.calls, self.seed)
        tokens = drafts[drafts >= 0].astype(np.int32)
        probs = None if case.drafter is None else np.ascontiguousarray(self._gather(case.drafter, drafts, lens, 0))
        params = Params({name: np.repeat(value, case.batch) for name, value in case.params.items()}, case.batch)
        target = np.ascontiguousarray(self._gather(case.target, drafts, lens, 1))
        keywords = {"uniforms": self._endpoints(rng, longest)} if case.endpoints else {}
        value = self.driver(tokens, probs, target, np.cumsum(lens).astype(np.int64), params, seeds, **keywords)
        out, given = drawn_of(value, (case.batch, longest + 1), "output tokens [B, K + 1]")
        self.outputs.append(out)
        self.logprobs += [] if given is None else [given]
        self.drafts.append(drafts)
        self.seeds.append(seeds)
        self.calls += 1

    def _wrong_logprobs(self) -> Judgement | None:
        """Of every emitted token, under the row behind the tokens before it."""
        if len(self.logprobs) != self.calls:
            return None
        case, out, given = self.case, np.concatenate(self.outputs), np.concatenate(self.logprobs)
        begins = np.cumsum([0, *(len(table) for table in case.target)])
        rows = np.stack([begins[min(depth, case.order)] + case.row_index(np.maximum(out[:, :depth], 0))
                         for depth in range(out.shape[1])], axis=1)
        at = np.nonzero(np.cumprod(out != -1, axis=1))
        table = np.concatenate(case.target)
        params = {name: np.repeat(value, len(table)) for name, value in case.params.items()}
        return logprobs.judged(self.driver, table, table, params, rows[at], out[at], given[at])

    def _endpoints(self, rng: np.random.Generator, longest: int) -> np.ndarray:
        """[B, K + 1] of [0, 1), a third of them the first and a third the last number there."""
        shape = (self.case.batch, longest + 1)
        ends = np.stack([np.zeros(shape), rng.random(shape), np.full(shape, 1.0 - 2.0 ** -24)]).astype(np.float32)
        return np.minimum(np.take_along_axis(ends, rng.integers(3, size=(1, *shape)), axis=0)[0], ends[2])

    def _judge_support(self) -> Judgement:
        """Uniforms were given, so that frequencies say nothing; a token of probability 0 may never come."""
        case, outputs = self.case, np.concatenate(self.outputs)
        wrong, first = 0, ""
        for depth in range(outputs.shape[1]):
            here = np.flatnonzero(outputs[:, depth] >= 0)
            index = case.row_index(np.clip(outputs[here, :depth], 0, case.vocab_size - 1))
            chance = case.at_depth(case.target, depth)[index, np.minimum(outputs[here, depth], case.vocab_size - 1)]
            impossible = here[(chance == -np.inf) | (outputs[here, depth] >= case.vocab_size)]
            if impossible.size and not first:
                first = f"first token {outputs[impossible[0], depth]} at position {depth}"
            wrong += impossible.size
        if not wrong:
            return Judgement(False, "", "no impossible token", self.n, None, None)
        return Judgement(True, "support", f"refuted: {wrong} impossible tokens in {self.n} steps, {first}", self.n,
                         wrong / self.n, None)

    def draw(self, n: int) -> None:
        while self.n < n:
            self.call()

    def judge(self, alpha: float) -> Judgement:
        case = self.case
        if case.endpoints:
            return self._judge_support()
        drafts = np.concatenate(self.drafts)
        lens = np.tile(self.lens(), self.calls)
        probs = None if case.drafter is None else self._gather(case.drafter, drafts, lens, 0)
        audit = _audit.audit_steps(
            np.concatenate(self.outputs), drafts[drafts >= 0], probs, self._gather(case.target, drafts, lens, 1),
            np.cumsum(lens), {name: np.repeat(value, lens.size) for name, value in case.params.items()}, verifier="any",
            alpha=alpha, tv_wanted=1.0, seed=self.seed, draw_seed=np.concatenate(self.seeds),
            draw_row=np.tile(np.arange(case.batch), self.calls), draw_step=np.repeat(np.arange(self.calls), case.batch))
        detectable = max(audit.detectable_tv,
                         audit.string_detectable_tv) if audit.string_tokens > 1 else audit.detectable_tv
        worst = audit.worst()
        if audit.verdict != "biased" or worst is None:
            return self._wrong_logprobs() or Judgement(False, "", audit.sentence, self.n, None, detectable)
        return Judgement(True, worst.name, audit.sentence, self.n, worst.estimated_tv, detectable)
