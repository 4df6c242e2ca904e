"""The audit of constrained samplers (`kind="constrained"`): cases, the run of one, its judgement, and the suspect.

A call is one step of a batch of requests, each with its own grammar and the state behind what it has emitted, which
lives on in the next call. Every emitted token must be legal behind those before it; the states must be those of the
emitted tokens; and the completed strings must follow the target masked at every position, which judge_steps of
verify_sweep.py decides.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable

import numpy as np

from ..drive.drive import Driver, Params, drawn_of
from ..evidence.evidence import Rows
from ..evidence.sample_judge import Judgement
from .grammars import DEAD, Grammar, Matcher, choices, evens, letters, loop
from .sample_cases import SampleCase, params_of
from .verify_sweep import PACE, OneCall, StepsCase, judge_steps

LOGPROB_SLACK = 1e-3


@dataclasses.dataclass(frozen=True, eq=False)
class ConstrainedCase:
    """grammars: of the requests in turn; target(rng, n) -> logits [n, V]; drafter(rng, n) -> probabilities [n, V],
    None: drafts without probabilities, uniform over the vocabulary; lens: drafts of the requests in turn.
    masked_drafts: drawn from masked rows.
    trees: drafts are two paths side by side, of which the callable gets `parents`."""

    name: str
    grammars: tuple[Grammar, ...]
    target: Callable[[np.random.Generator, int], np.ndarray]
    drafter: Callable[[np.random.Generator, int], np.ndarray] | None
    lens: tuple[int, ...]
    params: dict[str, np.ndarray]
    masked_drafts: bool = False
    trees: bool = False
    batch: int = 32
    n_max: int = 1024
    seeds: str = "consecutive"

    @property
    def vocab_size(self) -> int:
        return self.grammars[0].vocab_size


@dataclasses.dataclass(frozen=True)
class Normal:
    """Logits of a normal distribution, others in every row; `softmax`: their probabilities."""

    vocab_size: int
    softmax: bool = False

    def __call__(self, rng: np.random.Generator, n: int) -> np.ndarray:
        rows = 1.5 * rng.standard_normal((n, self.vocab_size))
        if self.softmax:
            rows = np.exp(rows)
            rows /= rows.sum(axis=1, keepdims=True)
        return rows.astype(np.float32)


@dataclasses.dataclass(frozen=True)
class Fixed:
    """One row everywhere: probabilities, or their logarithms."""

    row: tuple[float, ...]
    logits: bool = False

    def __call__(self, rng: np.random.Generator, n: int) -> np.ndarray:
        row = np.asarray(self.row, np.float64)
        return np.tile((np.log(row) if self.logits else row).astype(np.float32), (n, 1))


def constrained_cases(trees: bool) -> list[ConstrainedCase]:
    """Those that find most first. trees: with those that need an argument `parents`."""
    plain = params_of(1, temperature=1.0, top_k=0, top_p=1.0)
    many = (loop(12), loop(12, 1), loop(12, 2), choices(12))
    cases = [
        ConstrainedCase("no drafts", many, Normal(12), None, (0,), plain),
        ConstrainedCase("drafts from masked rows", many, Normal(12), Normal(12, softmax=True), (3,), plain,
                        masked_drafts=True),
        ConstrainedCase("drafts from bare rows, some forbidden", many, Normal(12), Normal(12, softmax=True), (2,),
                        plain),
        ConstrainedCase("ragged drafts from masked rows", many, Normal(12), Normal(12, softmax=True), (3, 0, 1, 4, 2),
                        plain, masked_drafts=True),
        ConstrainedCase("drafts without probabilities", many, Normal(12), None, (2,), plain),
        ConstrainedCase("merged tokens", (letters(),), Normal(11), Normal(11, softmax=True), (1,), plain,
                        masked_drafts=True),
        # A forbidden draft, half of them: where it is cut off and p drawn from, or q masked, the share of token 0
        # moves.
        ConstrainedCase("half of the drafts forbidden", (evens(5),), Fixed((0.25, 0.3, 0.25, 0.1, 0.1), logits=True),
                        Fixed((0.5, 0.5, 0.0, 0.0, 0.0)), (1,), plain),
        # Behind a top_k of 2 the mask leaves token 0 alone, or nothing.
        ConstrainedCase("the likeliest tokens forbidden, top_k 2", (evens(7),),
                        Fixed((0.2, 0.3, 0.15, 0.15, 0.1, 0.05, 0.05), logits=True),
                        None, (0,), params_of(1, temperature=1.0, top_k=2, top_p=1.0)),
        ConstrainedCase("the likeliest tokens forbidden, top_p 0.7", (evens(7),),
                        Fixed((0.3, 0.35, 0.12, 0.1, 0.08, 0.025, 0.025), logits=True),
                        None, (0,), params_of(1, temperature=1.0, top_k=0, top_p=0.7)),
        ConstrainedCase("temperature 0", many, Normal(12), Normal(12, softmax=True), (2,),
                        params_of(1, temperature=0.0, top_k=0, top_p=1.0), masked_drafts=True, n_max=256),
        ConstrainedCase("temperature 0, drafts from bare rows", many, Normal(12), Normal(12, softmax=True), (2,),
                        params_of(1, temperature=0.0, top_k=0, top_p=1.0), n_max=256),
        ConstrainedCase("a vocabulary of 70", (loop(70), loop(70, 1)), Normal(70), Normal(70, softmax=True), (2,),
                        plain, masked_drafts=True, n_max=256),
    ]
    if trees:
        cases.insert(2, ConstrainedCase("trees of two paths", many, Normal(12), None, (4,), plain, trees=True,
                                        n_max=512))
    return cases


def constrained_case(name: str) -> ConstrainedCase:
    """The case of this name: what the code of a failure calls."""
    return next(case for case in constrained_cases(True) if case.name == name)


@dataclasses.dataclass
class Step:
    """What one request got and gave in one call."""

    grammar: Grammar
    committed: int  # the state
    drafts: np.ndarray
    parents: np.ndarray
    logits: np.ndarray  # [K + 1, V]
    q: np.ndarray | None
    out: list[int]
    logprobs: np.ndarray | None = None
    other: tuple[Grammar, int] | None = None  # of the request behind it in the batch

    def states(self, by: str = "path") -> list[int]:
        """The state of each row: along the drafts' paths, or along their flat order."""
        states = [self.committed]
        for i, token in enumerate(self.drafts):
            before = states[self.parents[i] + 1] if by == "path" else states[-1]
            states.append(self.grammar.after(before, int(token)))
        return states

    def row_of(self, place: int) -> int:
        """The row behind the first `place` emitted tokens, -1 where they are no path of drafts."""
        node = -1
        for token in self.out[:place]:
            children = [i for i in range(len(self.drafts)) if self.parents[i] == node and self.drafts[i] == token]
            if not children:
                return -1
            node = children[0]
        return node + 1


class ConstrainedRun:
    """Steps of one case. Requests go on from call to call until they end."""

    def __init__(self, driver: Driver, case: ConstrainedCase, seed: int) -> None:
        self.driver, self.case, self.seed, self.calls = driver, case, seed, 0
        self.steps: list[Step] = []
        self.matchers: list[Matcher] = []
        self.emitted: list[list[int]] = []
        self.lost: list[tuple[int, list[int], list[int]]] = []  # request, its matcher's tokens, those it emitted
        self.pace = np.zeros(len(PACE))
        self.suspect = ""
        self.detectable: float | None = None
        self._seeds = SampleCase("", np.zeros((1, case.vocab_size), np.float32), "", {}, batch=case.batch,
                                 seeds=case.seeds)
        for b in range(case.batch):
            self.matchers.append(Matcher(case.grammars[b % len(case.grammars)]))
            self.emitted.append([])

    @property
    def n(self) -> int:
        return self.calls * self.case.batch

    def _step(self, b: int, rng: np.random.Generator) -> Step:
        case, grammar = self.case, self.matchers[b].grammar
        state = 0
        for token in self.emitted[b]:
            state = grammar.after(state, token)
        count = case.lens[b % len(case.lens)]
        q = None if case.drafter is None else case.drafter(rng, count).copy()
        parents = np.array([-1, 0, -1, 2] if case.trees else np.arange(count) - 1, np.int64)
        drafts, states = np.zeros(count, np.int64), [state]
        for i in range(count):
            before = states[parents[i] + 1]
            row = np.full(case.vocab_size, 1.0 / case.vocab_size) if q is None else q[i].astype(np.float64)
            if case.masked_drafts or q is None:
                row = np.where(grammar.allowed(before), row, 0.0)
            if q is not None:
                q[i] = row / row.sum()
            drafts[i] = rng.choice(case.vocab_size, p=row / row.sum())
            if case.trees and i == 2 and drafts[2] == drafts[0]:  # siblings differ, where that is legal
                others = np.flatnonzero(grammar.allowed(before) & (np.arange(case.vocab_size) != drafts[0]))
                drafts[2] = rng.choice(others) if others.size else (drafts[0] + 1) % case.vocab_size
            states.append(grammar.after(before, int(drafts[i])))
        return Step(grammar, state, drafts, parents, case.target(rng, count + 1), q, [])

    def call(self) -> None:
        case = self.case
        rng = np.random.default_rng([self.seed, self.calls, 6])
        steps = [self._step(b, rng) for b in range(case.batch)]
        for b, step in enumerate(steps):
            behind = steps[(b + 1) % case.batch]
            step.other = (behind.grammar, behind.committed)
        lens = np.array([len(step.drafts) for step in steps], np.int64)
        probs = None if case.drafter is None else np.concatenate([step.q for step in steps])
        params = Params({name: np.repeat(value, case.batch) for name, value in case.params.items()}, case.batch)
        keywords = {"parents": np.concatenate([step.parents for step in steps]).astype(np.int32)} if case.trees else {}
        value = self.driver(np.concatenate([step.drafts for step in steps]).astype(np.int32), probs,
                            np.concatenate([step.logits for step in steps]), np.cumsum(lens), params,
                            self._seeds.seeds_of(self.calls, self.seed), list(self.matchers), **keywords)
        depth = 2 if case.trees else int(lens.max(initial=0))
        out, logprobs = drawn_of(value, (case.batch, depth + 1), "output tokens [B, K + 1]")
        for b, step in enumerate(steps):
            step.out = [int(token) for token in out[b][:int(np.cumprod(out[b] != -1).sum())]]
            step.logprobs = None if logprobs is None else logprobs[b]
            self._commit(b, step)
        self.steps += steps
        self.calls += 1

    def _commit(self, b: int, step: Step) -> None:
        self.emitted[b] += step.out
        state = step.committed
        for token in step.out:
            state = step.grammar.after(state, token)
        if state != DEAD and self.matchers[b].tokens != self.emitted[b]:
            self.lost.append((b, list(self.matchers[b].tokens), list(self.emitted[b])))
        if state in (DEAD, step.grammar.ended) or self.matchers[b].tokens != self.emitted[b]:
            self.matchers[b], self.emitted[b] = Matcher(step.grammar), []

    def draw(self, n: int) -> None:
        while self.n < n:
            self.call()

    def judge(self, alpha: float) -> Judgement:
        self.suspect = ""
        found = self._illegal() or self._states() or self._strings(alpha) or self._logprobs()
        return found or Judgement(False, "",
                                  f"{self.n} steps, every token legal, every state that of the emitted tokens", self.n,
                                  None, self.detectable)

    def _illegal(self) -> Judgement | None:
        wrong: list[tuple[int, Step, int]] = []
        empty = [i for i, step in enumerate(self.steps) if not step.out]
        if empty:
            return self._refuted("well_formed", len(empty), f"{len(empty)} of {self.n} steps emit nothing")
        for i, step in enumerate(self.steps):
            state = step.committed
            for place, token in enumerate(step.out):
                row = step.row_of(place)
                if row < 0:
                    return self._refuted("not_a_draft", 1,
                                         f"a step emits {step.out} after drafts {step.drafts.tolist()}: the tokens "
                                         "before the last one are no drafts")
                after = step.grammar.after(state, token)
                if after == DEAD:
                    wrong.append((i, step, place))
                    break
                state = after
        if not wrong:
            return None
        i, step, place = wrong[0]
        self.suspect = suspect_of_illegal([(s, at) for _, s, at in wrong])
        return self._refuted("illegal", len(wrong),
                             f"{len(wrong)} of {self.n} steps emit a token that the grammar forbids, first token "
                             f"{step.out[place]} at place {place} of request {i % self.case.batch} with "
                             f"{len(step.drafts)} drafts")

    def _states(self) -> Judgement | None:
        if not self.lost:
            return None
        b, held, emitted = self.lost[0]
        self.suspect = "state not advanced by the emitted tokens"
        if any(held != emitted[:len(held)] for _, held, emitted in self.lost):
            self.suspect = "state not rolled back over rejected drafts"
        return self._refuted("state", len(self.lost),
                             f"{len(self.lost)} of {self.n} steps leave a matcher in another state, first request "
                             f"{b}: its matcher holds {held[-6:]} where {emitted[-6:]} were emitted")

    def _whole(self) -> tuple[StepsCase, Any]:
        """All steps as one call of a verifier whose rows are masked."""
        case = self.case
        rows = []
        for step in self.steps:
            allowed = np.stack([step.grammar.allowed(state) for state in step.states()])
            rows.append(np.where(allowed, step.logits, -np.inf).astype(np.float32))
        lens = np.array([len(step.drafts) for step in self.steps], np.int64)
        q = None if case.drafter is None else np.concatenate([step.q for step in self.steps])
        whole = StepsCase(case.name, np.concatenate(rows), q, lens,
                          {name: np.repeat(value, len(lens)) for name, value in case.params.items()},
                          "", one_hot=q is None)
        run = OneCall(whole, self.seed)
        out = np.full((len(lens), int(lens.max(initial=0)) + 1), -1, np.int64)
        for i, step in enumerate(self.steps):
            out[i, :len(step.out)] = step.out
        run.outputs, run.drafts = [out], [np.concatenate([step.drafts for step in self.steps])]
        return whole, run

    def _strings(self, alpha: float) -> Judgement | None:
        if self.case.trees:
            return None
        judgement = judge_steps(self._whole()[1], alpha)
        self.detectable = judgement.detectable
        if not judgement.biased:
            return None
        params = self.case.params
        filtered = bool((params["top_k"] > 0).any() or (params["top_p"] < 1.0).any())
        self.suspect = self._suspect_of_bias(filtered)
        return judgement

    def _suspect_of_bias(self, filtered: bool) -> str:
        if filtered:
            return "masks after the filters"
        forbidden = [step for step in self.steps if len(step.drafts)
                     and not step.grammar.allowed(step.committed)[step.drafts[0]]]
        if not forbidden or self.case.drafter is None:
            return ""
        # Behind a forbidden first draft a token comes from the residual max(p - q, 0) of the masked row, or from p.
        residual = sum(1 for step in forbidden if _in_residual(step))
        return ("forbidden drafts cut off, and their place drawn from p" if residual < len(forbidden)
                else "q masked in the ratio, though drafts were drawn from bare rows")

    def _logprobs(self) -> Judgement | None:
        """Of the distribution that tokens were drawn from: filtered and masked."""
        checked = [step for step in self.steps if step.logprobs is not None]
        if not checked or self.case.trees or (self.case.params["temperature"] == 0.0).any():
            return None
        whole, _ = self._whole()
        rows = Rows.of(whole.target, {name: value[whole.of_row] for name, value in whole.params.items()})
        bare = Rows.of(np.concatenate([step.logits for step in self.steps]),
                       {name: value[whole.of_row] for name, value in whole.params.items()})
        first = np.cumsum(whole.lens + 1) - (whole.lens + 1)
        wrong = as_bare = 0
        for i, step in enumerate(self.steps):
            for place, token in enumerate(step.out):
                row = first[i] + place
                if rows.zone[row].any() or step.logprobs is None:
                    continue
                if not abs(np.log(rows.usual[row, token]) - step.logprobs[place]) <= LOGPROB_SLACK:
                    wrong += 1
                    with np.errstate(divide="ignore"):
                        as_bare += bool(abs(np.log(bare.usual[row, token]) - step.logprobs[place]) <= LOGPROB_SLACK)
        if not wrong:
            return None
        filtered = bool((self.case.params["top_k"] > 0).any() or (self.case.params["top_p"] < 1.0).any())
        self.suspect = ("log-probabilities of the row before the mask" if as_bare == wrong
                        else "masks after the filters" if filtered
                        else "log-probabilities")
        return self._refuted("logprobs", wrong, f"{wrong} log-probabilities are not those of the masked row")

    def _refuted(self, name: str, count: int, sentence: str) -> Judgement:
        return Judgement(True, name, sentence, self.n, count / self.n, None)


def _in_residual(step: Step) -> bool:
    assert step.q is not None
    row = np.where(step.grammar.allowed(step.committed),
                   np.exp(step.logits[0].astype(np.float64) - step.logits[0].max()), 0.0)
    p = row / row.sum()
    left = np.maximum(p - step.q[0], 0.0)
    return left.sum() == 0.0 or left[step.out[0]] > 0.0


def suspect_of_illegal(found: list[tuple[Step, int]]) -> str:
    """The fault that explains every illegal token, in words; found: (step, the place of its first illegal token)."""
    def legal_in(step: Step, place: int, state: int, grammar: Grammar | None = None) -> bool:
        # a dead state has no mask
        return state == DEAD or (grammar or step.grammar).after(state, step.out[place]) != DEAD

    def every(holds: Callable[[Step, int], bool]) -> bool:
        return all(holds(step, place) for step, place in found)

    def row(step: Step, place: int) -> int:
        return step.row_of(place)

    if every(lambda s, i: s.out[i] == s.grammar.end):
        return "the end token before an accepting state"
    if every(lambda s, i: bool(s.grammar.texts) and _begins_legally(s, i)):
        return "merged tokens of which only the beginning is legal"
    if every(lambda s, i: len(s.drafts) > 0 and row(s, i) == len(s.drafts)):
        return "no mask in the bonus row"
    if every(lambda s, i: i > 0 and legal_in(s, i, s.states()[_row_before(s, row(s, i))])):
        return "mask one position late"
    if every(lambda s, i: legal_in(s, i, s.states("flat")[row(s, i)])
             and (s.parents != np.arange(len(s.drafts)) - 1).any()):
        return "masks of a tree by the order of its nodes, not along their paths"
    if every(lambda s, i: s.other is not None and _legal_for_other(s, i)):
        return "masks or state of another request"
    if every(lambda s, i: any(s.grammar.after(before, int(x)) == DEAD for before,
                              x in zip(s.states(), s.drafts[:row(s, i)]))):
        return "a forbidden draft accepted"
    return "no mask, or one of another state"


def _row_before(step: Step, row: int) -> int:
    return int(step.parents[row - 1]) + 1


def _begins_legally(step: Step, place: int) -> bool:
    """The first letter of the token is one that a legal token begins with."""
    legal = step.grammar.allowed(step.states()[step.row_of(place)])
    if not 0 <= step.out[place] < step.grammar.vocab_size:
        return False
    return step.grammar.texts[step.out[place]][:1] in {text[:1] for text,
                                                       ok in zip(step.grammar.texts, legal) if ok and text}


def _legal_for_other(step: Step, place: int) -> bool:
    """The other request's matcher, moved by this one's emitted tokens where it takes them, allows the token."""
    assert step.other is not None
    grammar, state = step.other
    for token in step.out[:place]:
        after = grammar.after(state, token)
        state = state if after == DEAD else after
    return grammar.after(state, step.out[place]) != DEAD
