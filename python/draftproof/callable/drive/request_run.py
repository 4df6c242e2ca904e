"""Runs a case of whole requests and judges what came, under every usual reading of what they ask for."""

from __future__ import annotations

import dataclasses
from typing import Any, Iterator

import numpy as np

from ... import _audit, _sampling
from ..cases.request_cases import RequestCase
from ..cases.request_params import FACTORS, PENALTIES, Request, columns, new_request
from ..cases.sample_cases import DTYPES, OF_PEERS, OFF, params_of
from ..cases.sample_sweep import probe
from ..cases.verify_sweep import OneCall, Steps, StepsCase, judge_steps
from ..evidence import evidence, logprobs
from ..evidence.request_ends import EndsSeen, ends_of
from ..evidence.sample_judge import Judgement
from .drive import Driver, Params, drawn_of, numbers_of
from .request_rows import Reading, Row, banned, readings_of_factors, roles, shaped, unshaped


@dataclasses.dataclass
class Step:
    """What one request got and gave in one call. calls: that it had before; asked: its parameters; rows: of its drafts
    and the one behind; q: [K, V]; out: [W]."""

    calls: int
    filters: dict[str, float]
    asked: dict[str, Any]
    rows: list[Row]
    drafts: list[int]
    q: np.ndarray
    seed: int
    out: np.ndarray | None = None
    logprobs: np.ndarray | None = None


class RequestRun:
    """Steps of one case; requests go on from call to call until they end, each in its place of the batch."""

    def __init__(self, driver: Driver, case: RequestCase, seed: int) -> None:
        self.driver, self.case, self.seed, self.calls = driver, case, seed, 0
        self.steps: list[Step] = []
        self.left: list[np.ndarray] = []  # of filters
        self._roles: dict[tuple[int, int], dict[str, np.ndarray]] = {}
        self.names = tuple(dict.fromkeys(name for factor in case.factors for name in FACTORS[factor].needs))
        self._off = {**OFF, **{name: off for name, off in OF_PEERS.items() if name in self.names}}
        self._rng = np.random.default_rng([seed, 8])
        self._count = 0
        self.ends = EndsSeen()
        self._requests = [self._new(b, int(self._rng.integers(1, case.calls + 1))) for b in range(case.batch)]

    @property
    def n(self) -> int:
        return self.calls * self.case.batch

    def _new(self, place: int, length: int) -> Request:
        case, self._count = self.case, self._count + 1
        filters = case.filters[(place + self._count // case.batch) % len(case.filters)]
        if case.kind == "filter" and filters.get("temperature") == 0.0:
            filters = {}
        return new_request(case.factors, filters, self._rng, case.vocab_size,
                           (self.seed & 0xFFFF) * (1 << 24) + 1_000_003 + self._count, length)

    def _step(self, b: int) -> Step:
        """Rows along drafts that are drawn one after the other, as an engine's drafter does, from a distribution near
        the target."""
        case, rng, request = self.case, self._rng, self._requests[b]
        size, length = case.vocab_size, case.lens[b % len(case.lens)]
        filters = {name: request.params.get(name, off) for name, off in self._off.items()}
        drafts: list[int] = []
        rows, proposals = [], np.zeros((length, size), np.float32)
        for place in range(length + 1):
            row = self._row(request, drafts, filters)
            rows.append(row)
            if place == length:
                break
            p = _sampling.process_rows(shaped(row, {})[None, :],
                                       params_of(1, **filters)).probabilities[0].astype(np.float64)
            others = rng.random(size) ** 4
            q = 0.8 * p * rng.uniform(0.5, 1.5, size) + 0.2 * others / others.sum()
            proposals[place] = q / q.sum()
            exact = proposals[place].astype(np.float64)
            drafts.append(int(rng.choice(size, p=exact / exact.sum())))
        seed = request.seed + (0 if case.is_one_seed else 7919 * request.calls)
        return Step(request.calls, filters, request.params, rows, drafts, proposals, seed)

    def _row(self, request: Request, drafts: list[int], filters: dict[str, Any]) -> Row:
        case, rng = self.case, self._rng
        row = Row(np.zeros(case.vocab_size, np.float32), request.params, request.prompt, [*request.output, *drafts])
        if "guidance_scale" in request.params:
            row.uncond = rng.standard_normal(case.vocab_size).astype(np.float32)
        if request.params.get("allowed") or request.params.get("bitmask"):
            row.allowed = (rng.random(case.vocab_size) < 0.6) | (np.cumsum(~banned(row, {}, case.vocab_size)) == 1)
        if any(filters[name] != self._off[name] for name in OF_PEERS if name in filters):  # a token at every share
            steep = np.linspace(0.0, -rng.choice((6.0, 32.0)), case.vocab_size)
            wanted = max(0.5, filters["temperature"]) * rng.permutation(steep).astype(np.float32)
        else:
            wanted = probe(case.vocab_size, filters["temperature"], int(filters["top_k"]), filters["top_p"],
                           filters["min_p"], seed=int(rng.integers(1 << 30)))
        # the text goes on to repeat itself
        if row.output and {"dry_multiplier", "no_repeat_ngram_size"} & request.params.keys():
            wanted[list({*row.output})] += np.float32(2.0 * max(0.5, filters["temperature"]))
        # of both signs, or of one
        wanted = wanted - np.float32(rng.choice((np.median(wanted), wanted.max() + 0.5, wanted.min() - 0.5)))
        told = [mask for mask in roles(row, len(drafts)).values() if mask.any()]
        if told and rng.random() < 0.7:  # what is something to the request is the likeliest, and would not be
            rarest = min(told,
                         key=lambda mask: int(mask.sum())) if rng.random() < 0.5 else told[rng.integers(len(told))]
            token, top = rng.choice(np.flatnonzero(rarest)), wanted.argmax()
            wanted[[token, top]] = wanted[[top, token]]
        row.raw = unshaped(row, wanted)
        return row

    def call(self) -> None:
        case, steps = self.case, [self._step(b) for b in range(self.case.batch)]
        rows = [row for step in steps for row in step.rows]
        params = Params({**self._filters(steps), **columns(self.names, self._requests, len(rows), case.vocab_size),
                         **self._of_rows(rows)},
                        case.batch)
        seeds = np.array([step.seed for step in steps], np.uint64)
        keywords = {}
        if case.is_one_seed and self.driver.takes_steps:
            keywords["steps"] = np.array([step.calls for step in steps], np.uint32)
        logits = np.stack([row.raw for row in rows])
        if case.kind == "filter":
            self._filtered(steps,
                           numbers_of(self.driver(logits, params), logits.shape, "filtered logits").astype(np.float32))
        elif case.kind == "sample":
            value = self.driver(logits, params, seeds, **keywords)
            out, given = drawn_of(value, (case.batch,), "tokens [B]")
            self._drawn(steps, value, out[:, None], None if given is None else given[:, None])
        else:
            lens = np.array([len(step.drafts) for step in steps], np.int64)
            drafts = np.array([token for step in steps for token in step.drafts], np.int32)
            probs = None if case.one_hot else np.concatenate([step.q for step in steps])
            value = self.driver(drafts, probs, logits, np.cumsum(lens), params, seeds, **keywords)
            self._drawn(steps, value,
                        *drawn_of(value, (case.batch, int(lens.max(initial=0)) + 1), "output tokens [B, K + 1]"))
        self.calls += 1

    def _filters(self, steps: list[Step]) -> dict[str, np.ndarray]:
        names = [name for name in self._off if name != "min_p" or any(name in filters for filters in self.case.filters)]
        return {name: np.array([step.filters[name] for step in steps], DTYPES[name]) for name in names}

    def _of_rows(self, rows: list[Row]) -> dict[str, np.ndarray]:
        out: dict[str, np.ndarray] = {}
        size = self.case.vocab_size
        allowed = np.stack([np.ones(size, bool) if row.allowed is None else row.allowed for row in rows])
        if "allowed" in self.names:
            out["allowed"] = np.where(np.array([bool(row.params.get("allowed")) for row in rows])[:, None], allowed,
                                      True)
        if "bitmask" in self.names:
            padded = np.zeros((len(rows), -(-size // 32) * 32), bool)
            padded[:, :size] = np.where(np.array([bool(row.params.get("bitmask")) for row in rows])[:, None], allowed,
                                        True)
            out["bitmask"] = np.packbits(padded, axis=1, bitorder="little").view("<i4").astype(np.int32)
        if "uncond_logits" in self.names:
            out["uncond_logits"] = np.stack([np.zeros(size, np.float32) if row.uncond is None else row.uncond
                                             for row in rows])
        return out

    def _drawn(self, steps: list[Step], value: Any, out: np.ndarray, given: np.ndarray | None) -> None:
        ends = ends_of(value, len(steps)) if isinstance(value, dict) else None
        for b, (step, tokens) in enumerate(zip(steps, out)):
            step.out, step.logprobs = tokens, None if given is None else given[b]
            emitted = [int(token) for token in tokens[:int(np.cumprod(tokens != -1).sum())]
                       if 0 <= token < self.case.vocab_size]
            is_end = False
            if ends is not None:
                request, count = self._requests[b], None if ends.counts is None else int(ends.counts[b])
                is_end = self.ends.see(f"request {b} of call {self.calls}", request.params, request.output, emitted,
                                       ends.reasons[b], count)
            self._go_on(b, emitted, is_end)
        self.steps += steps

    def _filtered(self, steps: list[Step], left: np.ndarray) -> None:
        self.left.append(left)
        for b, step in enumerate(steps):
            p = _sampling.process_rows(shaped(step.rows[0], {})[None, :],
                                       params_of(1, **step.filters)).probabilities[0].astype(np.float64)
            self._go_on(b, [int(self._rng.choice(len(p), p=p / p.sum()))])
        self.steps += steps

    def _go_on(self, b: int, tokens: list[int], is_end: bool = False) -> None:
        request = self._requests[b]
        request.output, request.calls = [*request.output, *tokens], request.calls + 1
        if is_end or request.calls >= request.length:
            self._requests[b] = self._new(b, int(self._rng.integers(1, self.case.calls + 1)))

    def draw(self, n: int) -> None:
        while self.n < n:
            self.call()

    def judge(self, alpha: float, without: str = "") -> Judgement:
        """without: a factor that is taken as ignored."""
        known = self.driver.reading
        readings = sorted(readings_of_factors(self.case.factors),
                          key=lambda reading: sum(known.get(name, value) != value for name, value in reading.items()))
        first: Judgement | None = None
        for reading in readings:
            found = self._judged(reading, alpha, without)
            if not found.biased:
                if not without:
                    known.update(reading)
                return found
            first = first or found
        assert first is not None
        return first

    def _shaped(self, reading: Reading, without: str) -> np.ndarray:
        rows = [row for step in self.steps for row in step.rows]
        if without:
            rows = [dataclasses.replace(row,
                                        params={name: value for name, value in row.params.items() if name != without},
                                        prompt=[] if without == "prompt_tokens" else row.prompt,
                                        allowed=None if without in ("allowed", "bitmask") else row.allowed)
                    for row in rows]
        return np.stack([shaped(row, reading) for row in rows])

    def _judged(self, reading: Reading, alpha: float, without: str) -> Judgement:
        case, steps = self.case, self.steps
        target = self._shaped(reading, without)
        filters = self._filters(steps)
        if without in OF_PEERS:
            filters[without] = np.full_like(filters[without], OF_PEERS[without])
        if case.kind == "filter":
            check = _audit.check_filter(target, np.concatenate(self.left), filters)
            if check.holds:
                return Judgement(False, "", check.sentence, self.n, None, 0.0)
            worst = check.failing[0]
            facts = self._facts([row.row for row in check.failing], None)
            return Judgement(True, worst.fault, check.sentence + facts, self.n, worst.distance, 0.0)
        lens = np.array([len(step.drafts) for step in steps], np.int64)
        asked = {name: np.array([float(step.asked.get(name, 0.0)) for step in steps]) for name in PENALTIES
                 if name in case.factors}
        asked["calls_before"] = np.array([step.calls for step in steps])
        whole = StepsCase(case.name, target, None, lens, {**filters, **asked}, "", one_hot=True)
        run = OneCall(whole, self.seed)
        width = max(len(step.out) for step in steps if step.out is not None)
        out = np.full((len(steps), width), -1, np.int64)
        for i, step in enumerate(steps):
            if step.out is not None:
                out[i, :len(step.out)] = step.out
        run.outputs, run.drafts = [out], [np.array([token for step in steps for token in step.drafts], np.int64)]
        found = judge_steps(run, alpha, self._bets)
        if not found.biased:
            if self.ends.wrong:
                return Judgement(True, "ends", self.ends.sentence, self.n, len(self.ends.wrong) / self.ends.steps, None)
            return self._wrong_logprobs(target, filters, out) or dataclasses.replace(found,
                    sentence=f"{self.n} steps, no impossible token")
        return dataclasses.replace(found, sentence=found.sentence + self._facts(run.wrong, out), group=0)

    def _wrong_logprobs(self, target: np.ndarray, filters: dict[str, np.ndarray], out: np.ndarray) -> Judgement | None:
        if any(step.logprobs is None for step in self.steps):
            return None
        of_row = np.repeat(np.arange(len(self.steps)), [len(step.rows) for step in self.steps])
        begins = np.searchsorted(of_row, np.arange(len(self.steps)))
        at = np.nonzero(np.cumprod(out != -1, axis=1))
        given = np.array([self.steps[i].logprobs[place] for i, place in zip(*at)])  # type: ignore[index]
        raw = np.stack([row.raw if row.uncond is None else np.full_like(row.raw, np.nan) for step in self.steps
                        for row in step.rows])
        return logprobs.judged(self.driver, raw, target, {name: value[of_row] for name, value in filters.items()},
                               begins[at[0]] + at[1], out[at], given)

    def _bets(self, steps: Steps, rows: evidence.Rows, usable: np.ndarray, reach: np.ndarray) -> Iterator[evidence.Bet]:
        """On what a token is to its request, over completed strings."""
        rng = np.random.default_rng([self.seed, 9])
        hits: dict[str, list[tuple[bool, float, int]]] = {}
        for i, step in enumerate(self.steps):
            for place in range(len(step.rows)):
                if not reach[i, place]:
                    continue
                p, token = rows.probabilities[steps.row[i, place]], int(steps.out[i, place])
                for name, mask in self._roles_of(i, place).items():
                    chance = min(1.0, float(p[mask].sum()))
                    if chance < 1.0 and mask.any():
                        hit = bool(mask[token]) if usable[i, place] else bool(rng.random() < chance)
                        hits.setdefault(name, []).append((hit, chance, i))
        for name, of in hits.items():
            hit, chance, where = (np.array(column) for column in zip(*of))
            yield evidence.Bet("marked",
                               f"tokens {name} came {int(hit.sum())} times where {chance.sum():.3g} are expected",
                               evidence.marked_log_e(hit, chance), where, abs(float(hit.mean() - chance.mean())))

    def _roles_of(self, i: int, place: int) -> dict[str, np.ndarray]:
        if (i, place) not in self._roles:
            self._roles[i, place] = roles(self.steps[i].rows[place], place)
        return self._roles[i, place]

    def _facts(self, wrong: list[int] | np.ndarray, out: np.ndarray | None) -> str:
        """What holds for all of the steps that are wrong, and not for all steps."""
        steps, facts = [self.steps[i] for i in wrong], []
        if len(steps) < 3:
            return ""
        first = min(step.calls for step in steps)
        if first > 0 and any(step.calls < first for step in self.steps):
            facts.append(f"none before a request's call {first + 1}")
        for name in (*FACTORS, *OFF):
            has = [step.filters[name] != OFF[name] if name in OFF else bool(step.rows[0].prompt)
                   if name == "prompt_tokens" else
                   name in step.asked for step in self.steps]
            if all(has[i] for i in wrong) and not all(has):
                facts.append(f"all in requests with {name}")
        if out is not None:
            of_wrong = [{name for name, mask in roles(row, place).items() if 0 <= token < len(mask) and mask[token]}
                        for row, place, token in map(self._last, wrong)]
            facts += [f"all of them tokens {name}" for name in sorted(set.intersection(*of_wrong))]
        return f"; {', '.join(facts)}" if facts else ""

    def _last(self, i: int) -> tuple[Row, int, int]:
        step = self.steps[i]
        assert step.out is not None
        place = max(0, min(int(np.cumprod(step.out != -1).sum()), len(step.rows)) - 1)
        return step.rows[place], place, int(step.out[place])
