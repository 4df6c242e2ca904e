"""The documents of the program's verbs as objects (docs/json.md says what each key means)."""

from __future__ import annotations

import functools
import typing
from typing import Any, Iterator, Mapping, Sequence

from ._results import html_of


class Record(Mapping[str, Any]):
    """An object of a document: its keys as attributes and as items. Numbers and texts are Python's."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        hints = _hints(type(self))
        self._values = {key: _typed(value, hints.get(key)) for key, value in values.items()}

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__.get("_values", {})
        if name in values:
            return values[name]
        raise AttributeError(f"there is no {name}; expected one of {', '.join(values)}")

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._values]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self._values.items())})"


@functools.lru_cache(maxsize=None)
def _hints(form: type) -> dict[str, Any]:
    return typing.get_type_hints(form)


def _typed(value: Any, hint: Any) -> Any:
    """Objects become records, of the class that the annotation names where it names one."""
    if isinstance(value, dict):
        forms = [part for part in (hint, *typing.get_args(hint))
                 if typing.get_origin(part) is None and isinstance(part, type) and issubclass(part, Record)]
        return (forms[0] if forms else Record)(value)
    if isinstance(value, list):
        lists = [part for part in (hint, *typing.get_args(hint)) if typing.get_origin(part) is list]
        return [_typed(part, typing.get_args(lists[0])[0] if lists else None) for part in value]
    return value


class Document(Record):
    """What `draftproof VERB --json` prints."""

    version: str
    commit: str
    command: str
    machine: Record

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._head()[1]}>"

    def _head(self) -> tuple[str, str]:
        """The verdict, if there is one, and a sentence."""
        raise NotImplementedError

    def _table(self) -> tuple[Sequence[str], list[Sequence[Any]]]:
        """What people look at first."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return html_of(*self._head(), *self._table())


def _range(low: Any, high: Any) -> str:
    return "" if low is None or high is None else f"{low:.3g} to {high:.3g}"


class Pass(Record):
    """The target's pass over a batch."""

    ms: float
    floor_ms: float
    intensity: float
    memory_bound: bool


class PredictedRow(Record):
    batch: int
    k: int | None
    tree: Record | None
    speedup: float
    low: float
    high: float
    loss_probability: float
    extrapolated: bool
    step_ratio: float
    tokens_per_step: float
    tokens_per_second: float
    verify_pass: Pass


class PredictedBest(PredictedRow):
    pays: bool
    fits: bool
    notes: list[str]
    plain_ms: float
    plain_tokens_per_second: float
    prefill_share: float
    plain_pass: Pass
    best_k: PredictedRow
    best_tree: PredictedRow | None


class Prediction(Document):
    model: str
    gpu: str
    tp: float
    dp: float
    pp: float
    expert_parallel: bool
    precision: str
    engine: str
    drafter: str
    context: int
    prompt: int | None
    output: int | None
    running_k: int | None
    prefills_of_log: bool
    guidance: bool
    acceptance: str
    acceptance_factor: float
    draft_cost_factor: float
    notes: list[str]
    read: Record | None
    calibration: list[Record]
    rows: list[PredictedRow]
    best: list[PredictedBest]
    plain_best: list[Record]
    loss_possible_from: int | None
    break_even_batch: int | None
    break_even_low: int | None
    break_even_high: int | None
    batch_max: int
    batch_of_memory: int
    ridge_intensity: float
    drafts: list[Record]
    compared: list[Record]
    measured: Record | None
    load_advice: str
    advice: str
    files: Record

    def _head(self) -> tuple[str, str]:
        return f"{self.model} on {self.gpu}, {self.drafter}:", self.advice

    def _table(self) -> tuple[Sequence[str], list[Sequence[Any]]]:
        draft = lambda row: f"K = {row.k}" if row.tree is None else f"tree of {row.tree.nodes}"  # noqa: E731
        return (["batch", "best", "speedup", "80 % band", "P(loss)", "tokens per second"],
                [(row.batch, draft(row) if row.pays else f"plain ({draft(row)})", row.speedup,
                  _range(row.low, row.high), row.loss_probability,
                  row.tokens_per_second if row.pays else row.plain_tokens_per_second) for row in self.best])


class AcceptanceSource(Record):
    name: str
    source: str
    format: str
    notes: list[str]
    positions_known: int
    drafts: int | None
    draft_share: float
    acceptance_length: float | None
    acceptance_length_standard_error: float | None
    conditional: list[float]
    unconditional: list[float]
    survival_product: list[float]
    tokens_per_step: list[float]
    speedup: list[float]
    conditional_low: list[float] | None
    conditional_high: list[float] | None
    unconditional_low: list[float] | None
    unconditional_high: list[float] | None
    tokens_per_step_low: list[float] | None
    tokens_per_step_high: list[float] | None
    speedup_low: list[float] | None
    speedup_high: list[float] | None
    running_k: int | None
    best_k: int
    best_k_low: int | None
    best_k_high: int | None
    best_speedup: float
    pays_below: float
    best_k_by_cost: list[int]
    error: None


class Acceptance(Document):
    """Of a head as its source the keys are others (docs/json.md, acceptance head:PATH)."""

    draft_cost: float
    drafts_max: int
    interval_level: float
    costs: list[float]
    sources: list[AcceptanceSource]

    def _head(self) -> tuple[str, str]:
        if "sources" not in self:
            return "", f"{self.head} for {self.model}"
        return "", f"draft cost {self.draft_cost:.3g} target steps"

    def _table(self) -> tuple[Sequence[str], list[Sequence[Any]]]:
        if "sources" not in self:
            return (["work", "steps", "drafts", "acceptance length", "tokens per step"],
                    [(work.work, work.steps, work.drafts, work.acceptance_length, work.tokens_per_step)
                     for work in self.works])
        return (["source", "first draft", "best K", "speedup", "pays below a cost of"],
                [(source.name, source.conditional[0], source.best_k, source.best_speedup, source.pays_below)
                 for source in self.sources])


class Policy(Record):
    name: str
    speculation: str | None
    tree_depth: int | None
    drafter: str | None
    acceptance: str | None
    throughput: float | None
    throughput_interval: list[float] | None
    goodput: float | None
    goodput_interval: list[float] | None
    slo_share: float | None
    slo_share_interval: list[float] | None
    ttft_ms: Record
    tpot_ms: Record
    itl_ms: Record
    queue_ms: float | None
    running: float | None
    kv_use: float | None
    kv_waste: float | None
    wasted_draft_tokens: float | None
    acceptance_length: float | None
    tokens_per_step: float | None
    step_ms: float | None
    draft_share: float | None
    preemptions: float | None
    acceptance_by_position: Record
    speedup: Record
    latency_ratio: Record
    requests: int
    sequence_steps: int
    events: int
    wall_s: float


class Simulation(Document):
    scenario: str
    server: str
    mode: str
    seed: int
    replications: int
    requests: int
    kv_blocks: int | None
    policies: list[Policy]
    load: list[Record]
    trace: Record | None

    def _head(self) -> tuple[str, str]:
        return "", f"{self.server}: {self.requests} requests, {self.replications} times"

    def _table(self) -> tuple[Sequence[str], list[Sequence[Any]]]:
        return (["policy", "speedup", "tokens per second", "goodput", "TTFT p50 (ms)", "TPOT p50 (ms)",
                 "tokens per step"],
                [(policy.name, *("" if value is None else value for value in (
                    policy.speedup.mean, policy.throughput, policy.goodput, policy.ttft_ms.p50, policy.tpot_ms.p50,
                    policy.tokens_per_step))) for policy in self.policies])


class GeneratedRequest(Record):
    prompt: str
    prompt_tokens: int
    text: str
    tokens: list[int]
    finish_reason: str
    error: str | None
    grammar: Record | None
    num_steps: int
    acceptance_length: float | None
    tokens_per_step: float | None


class Generated(Document):
    model: str
    arithmetic: str
    drafter: str
    shared_tokens: Record | None
    verifier: str | None
    tree: str | None
    requests: list[GeneratedRequest]
    acceptance_length: float | None
    tokens_per_step: float | None
    acceptance_by_position: list[Record]
    tokens: int
    generation_ms: float
    tokens_per_second: float | None
    drafter_share: float
    target_share: float
    mask_share: float
    preemptions: int
    files: Record

    def _head(self) -> tuple[str, str]:
        return f"{self.model}, drafter {self.drafter}:", f"{self.tokens} tokens"

    def _table(self) -> tuple[Sequence[str], list[Sequence[Any]]]:
        return (["prompt", "text", "ended by", "steps"],
                [(row.prompt, row.text, row.finish_reason, row.num_steps) for row in self.requests])


class Node(Record):
    token: int
    text: str
    parent: int
    depth: int
    q: float
    p: float
    value: float
    reach: float


class Decision(Record):
    kind: str
    at: int
    node: int | None
    p: float | None
    q: float | None
    u: float | None
    shares: list[float]
    token: int | None
    probability: float | None
    accepted: bool
    text: str


class Tree(Document):
    builder: str
    verifier: str
    pair: str
    seed: int
    nodes: list[Node]
    mask: list[str]
    walk: list[Decision]
    path: list[int]
    emitted: list[str]
    expected_by_draft: float
    expected_by_target: float
    rank_rates: list[float]
    curves: list[Record]
    comparison: Record | None
    notes: list[str]

    def _head(self) -> tuple[str, str]:
        return "", (f"{len(self.nodes)} nodes ({self.builder}), {self.verifier}: {len(self.path)} accepted, "
                    f"{len(self.emitted)} emitted; {self.expected_by_target:.3g} accepted on average")

    def _table(self) -> tuple[Sequence[str], list[Sequence[Any]]]:
        return ["step", "decision"], [(i + 1, decision.text) for i, decision in enumerate(self.walk)]


class LabTest(Record):
    statistic: float
    degrees_of_freedom: int
    p_value: float
    impossible_token: int | None
    observed_tv: float
    detectable_tv: float


class Lab(Document):
    vocab: int
    weights: Record
    parameters: Record
    verifier: Record | None
    draft_tokens: int | None
    bug: Record | None
    seed: int
    p: list[float]
    q: list[float]
    min_p_q: list[float]
    residual: list[float]
    total_variation: float
    acceptance: float
    guidance_distance: Record | None
    expected: list[float]
    samples: int
    level: float
    power: float
    test: LabTest
    mean_accepted: float | None
    accepted_share: float | None
    counts: list[int]
    looks: list[Record]
    lossy: list[Record]
    verdict: str
    sentence: str

    def _head(self) -> tuple[str, str]:
        return self.verdict, self.sentence

    def _table(self) -> tuple[Sequence[str], list[Sequence[Any]]]:
        return (["token", "p", "q", "min(p, q)", "residual", "drawn"],
                [(token, *row, count / self.samples) for token, (*row, count) in enumerate(
                    zip(self.p, self.q, self.min_p_q, self.residual, self.counts))])


class Proof(Record):
    """A case of a verifier, on random small models."""

    verifier: str
    lossless: bool
    receives_drawn_q: bool
    exact: bool
    as_claimed: bool
    instances: int
    vocab: int
    draft: int
    outcomes_enumerated: int
    acceptance_oracles: int
    acceptance_equal: bool
    mean_accepted: float
    total_variation_max: float
    float_distance_max: float | None
    counterexample: Record | None
    source: str
    ms: float

    @property
    def verdict(self) -> str:
        return "exact" if self.exact else "refuted"

    @property
    def sentence(self) -> str:
        claim = "lossless" if self.lossless else "lossy" if self.receives_drawn_q else "biased"
        found = self.counterexample
        if found is None:
            against = ""
        elif "failure" in found:
            against = f"; after {found.prefix} it throws '{found.failure}'"
        else:
            against = (f"; string {[*found.prefix, found.token]} comes out with probability "
                       f"{found.probability_emitted}, "
                       f"the target has {found.probability_expected}")
        return (f"{self.verifier}, claimed to be {claim}: {self.verdict} in {self.instances} models, "
                f"{self.outcomes_enumerated} outcomes"
                + against)


class Parity(Document):
    verdict: str
    sentence: str
    rows: int
    rows_only_a: int
    rows_only_b: int
    precision: str
    precision_is_inferred: bool
    differing_rows: int
    largest: float
    largest_at: Record | None
    largest_column: int | None
    typical: float
    typical_relative: float
    units: float
    argmax_turned: int
    first_difference: Record | None
    first_turned: Record | None
    temperatures: list[Record]
    findings: list[Record]

    def _head(self) -> tuple[str, str]:
        return self.verdict + ":", self.sentence

    def _table(self) -> tuple[Sequence[str], list[Sequence[Any]]]:
        return (["temperature", "total variation of a row", "at most"],
                [(at.temperature, at.total_variation_mean, at.total_variation_max) for at in self.temperatures])


class Proofs(Document):
    vocab: int
    draft: int
    steps: int
    seed: int
    proofs: list[Proof]
    claims: list[Record]
    top_k_resample: list[Record]
    as_claimed: bool
    files: Record

    def _head(self) -> tuple[str, str]:
        right = sum(proof.as_claimed for proof in self.proofs)
        return "as claimed:" if self.as_claimed else "not as claimed:", f"{right} of {len(self.proofs)} cases"

    def _table(self) -> tuple[Sequence[str], list[Sequence[Any]]]:
        return (["case", "lossless", "distribution", "K", "outcomes", "accepted drafts", "counterexample"],
                [(proof.verifier, "yes" if proof.lossless else "no", proof.verdict, proof.draft,
                  proof.outcomes_enumerated,
                  proof.mean_accepted, "" if proof.exact else proof.sentence.partition("; ")[2])
                 for proof in self.proofs])
