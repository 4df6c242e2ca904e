"""A case with other rows, or in another batch: what an explanation of its failure must predict."""

from __future__ import annotations

import dataclasses
from typing import Any, Iterator

import numpy as np

from .filter_cases import FilterCase
from .sample_cases import SampleCase
from .verify_cases import VerifyCase
from .verify_sweep import StepsCase


def permuted(rows: np.ndarray, seed: int) -> np.ndarray:
    """[N, V]: every row by the same permutation of tokens."""
    return np.ascontiguousarray(rows[:, np.random.default_rng(seed).permutation(rows.shape[1])])


def varied(case: Any) -> Iterator[Any]:
    """The case itself where it draws, with the tokens of its rows in another order, in other batches."""
    if not isinstance(case, FilterCase):
        yield case
    if isinstance(case, (SampleCase, FilterCase)) and not getattr(case, "is_flat", False):
        yield dataclasses.replace(case, logits=permuted(case.logits, 1))
    if isinstance(case, SampleCase) and case.groups > 1:
        yield dataclasses.replace(case, logits=case.logits[::-1].copy(),
                                  params={name: value[::-1].copy() for name, value in case.params.items()})
        yield dataclasses.replace(case, params={name: np.roll(value, 1) for name, value in case.params.items()})
    if isinstance(case, SampleCase) and not case.is_fixed:
        yield dataclasses.replace(case, batch=case.batch // 2 + 1)
        yield dataclasses.replace(case, batch=case.batch + 1)
    elif isinstance(case, StepsCase) and case.batch > 1:
        if case.fixed is None:
            yield dataclasses.replace(case, target=permuted(case.target, 1),
                                      drafts=None if case.drafts is None else permuted(case.drafts, 1))
        yield case.take(np.arange(case.batch)[::-1])
        yield case.take(np.arange(case.batch // 2))
    elif isinstance(case, VerifyCase) and case.batch > 1:
        yield dataclasses.replace(case, batch=case.batch // 2 + 1)
    elif isinstance(case, FilterCase) and len(case.logits) > 1:
        everything = np.arange(len(case.logits))
        for rows in (everything[::-1], everything[:(len(everything) + 1) // 2]):
            yield dataclasses.replace(case, logits=case.logits[rows],
                                      params={name: value[rows] for name, value in case.params.items()})
