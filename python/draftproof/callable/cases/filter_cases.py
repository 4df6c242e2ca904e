"""Cases for filters (`kind="filter"`): raw logits and parameters; what is left is checked exactly."""

from __future__ import annotations

import dataclasses
from typing import Any, Iterator

import numpy as np

from ... import _audit
from ..drive.drive import Driver, Params, numbers_of
from ..evidence.sample_judge import Judgement
from . import rows
from .sample_cases import SampleCase, params_of


@dataclasses.dataclass(frozen=True, eq=False)
class FilterCase:
    """logits: [B, V], one call with params [B] each; compared with the same rows in other batches."""

    name: str
    logits: np.ndarray
    source: str
    params: dict[str, np.ndarray]

    @property
    def vocab_size(self) -> int:
        return self.logits.shape[1]


def filter_cases(with_min_p: bool) -> Iterator[FilterCase]:
    full = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, **({"min_p": 0.0} if with_min_p else {})}

    def case(name: str, logits: np.ndarray, source: str, **given: Any) -> FilterCase:
        size = logits.shape[0]
        resized = {key: np.resize(np.asarray(value), size) for key, value in given.items()}
        return FilterCase(name, logits, source, params_of(size, **{**full, **resized}))

    def normal(size: int, vocab_size: int, scale: float, seed: int) -> tuple[np.ndarray, str]:
        return rows.normal(size, vocab_size, scale, seed), f"rows.normal({size}, {vocab_size}, {scale}, {seed})"

    for size in (1, 2, 63, 64, 65, 129):
        yield case(f"mixed parameters, batch of {size}", *normal(size, 1000, 3.0, size),
                   temperature=[1.0, 0.1, 0.7, 1.5, 0.3], top_k=[0, 50, 1, 0, 7, 0, 999], top_p=[0.9, 1.0, 0.5, 0.95])
    for size in (64, 129):
        yield case(f"low temperatures with top_p, batch of {size}", *normal(size, 1000, 3.0, 7),
                   temperature=[0.1, 0.2, 0.3, 0.02], top_p=[0.9, 0.95, 0.5])
    for vocab_size in (1, 2, 31, 32, 33, 50_257, 128_256):
        yield case(f"vocabulary of {vocab_size}", *normal(4, vocab_size, 2.0, vocab_size), temperature=[1.0, 0.5],
                   top_k=[0, 3, 0, 40], top_p=[0.9, 1.0, 0.6, 1.0])
    for size in (3, 65):
        yield case(f"first 8192 tokens masked, batch of {size}",
                   rows.masked(rows.normal(size, 9000, 3.0, 4), 0, 8192),
                   f"rows.masked(rows.normal({size}, 9000, 3.0, 4), 0, 8192)", top_p=[0.5, 0.9, 1.0], top_k=[0, 0, 5])
    yield case("all tokens masked but one", np.repeat(rows.only(1000, 777), 65, axis=0),
               "np.repeat(rows.only(1000, 777), 65, axis=0)", top_p=[0.5, 1.0], top_k=[0, 3])
    ties = np.array([[1.0, 0.5, 0.5, 0.5, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0]], np.float32)
    yield case("ties at top_k", ties, repr_of(ties), top_k=[2, 3])
    yield case("ties at top_p", ties, repr_of(ties), top_p=[0.5, 0.3])
    equal = np.log(np.array([[0.5, 0.25, 0.25], [0.4, 0.4, 0.2]], np.float32))
    yield case("top_p equal to a cumulative mass", equal,
               "np.log(np.array([[.5, .25, .25], [.4, .4, .2]], np.float32))", top_p=[0.5, 0.8])
    yield case("top_k above the vocabulary", *normal(3, 12, 1.0, 3), top_k=[12, 13, 1000])
    yield case("huge temperature", *normal(3, 33, 2.0, 3), temperature=1e4, top_k=[5, 0, 0], top_p=[1.0, 0.5, 1.0])
    if with_min_p:
        yield case("min_p", *normal(8, 100, 2.0, 12), min_p=[0.01, 0.1, 0.5, 1.0], temperature=[1.0, 0.5])


def filter_case_of(case: SampleCase) -> FilterCase | None:
    """The rows of a sampler's case in one call; None where nothing is left: filters have no greedy rows."""
    slots = case.slots(0, 0)
    slots = slots[case.params["temperature"][slots] > 0.0]
    if not slots.size:
        return None
    whole = slots.size == case.groups and np.array_equal(slots, np.arange(case.groups))
    return FilterCase(case.name, case.logits[slots],
                      case.source if whole else f"{case.source}[np.array({slots.tolist()})]",
                      {name: value[slots] for name, value in case.params.items()})


def repr_of(array: np.ndarray) -> str:
    return f"np.array({array.tolist()}, np.float32)"


class FilterRun:
    """One call of a case; nothing grows."""

    def __init__(self, driver: Driver, case: FilterCase, seed: int) -> None:
        self.driver = driver
        self.case = case
        self.seed = seed
        self.left: np.ndarray | None = None

    @property
    def n(self) -> int:
        return 0 if self.left is None else self.case.logits.shape[0]

    def draw(self, n: int) -> None:
        shape = self.case.logits.shape
        self.left = numbers_of(self.driver(self.case.logits, Params(self.case.params, shape[0])), shape,
                               "filtered logits").astype(np.float32)

    def judge(self, alpha: float) -> Judgement:
        check = _audit.check_filter(self.case.logits, self.left, self.case.params)
        if check.holds:
            return Judgement(False, "", check.sentence, self.n, None, 0.0)
        worst, sentence = check.failing[0], check.sentence
        if worst.fault == "wrong_set":
            sentence = (f"{len(check.failing)} of {self.n} rows are wrong; row {worst.row} keeps {worst.kept_count} "
                        f"tokens, {worst.expected_count} are due; distance {worst.distance:.2g}")
        return Judgement(True, worst.fault, sentence, self.n, worst.distance, 0.0, worst.row)
