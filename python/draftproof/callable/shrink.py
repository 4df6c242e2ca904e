"""The smallest case that still fails: fewer rows in a batch, one group, parameters off, a smaller vocabulary, fewer
drafts. Each step is tried by running the case again."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Iterator

import numpy as np

from .filter_cases import FilterCase
from .ranges import with_rows
from .request_cases import RequestCase, smaller_requests
from .sample_cases import OFF, SampleCase
from .verify_cases import VerifyCase
from .verify_sweep import StepsCase


def shrink(case: Any, group: int, fails: Callable[[Any], bool], tries: int) -> Any:
    """fails(case): does it still?"""
    progress = True
    while progress:  # every step makes the case smaller, or it is not offered again
        progress = False
        for smaller in smaller_cases(case, group):
            if tries == 0:
                return case
            tries -= 1
            if fails(smaller):
                case, group, progress = smaller, 0, True
                break
    return case


def smaller_cases(case: Any, group: int) -> Iterator[Any]:
    if isinstance(case, SampleCase):
        if case.readings or case.may_raise:
            return
        yield from _of_rows(case, group, case.groups)
        if case.shuffled:
            yield dataclasses.replace(case, shuffled=False)
        if case.seeds != "consecutive":
            yield dataclasses.replace(case, seeds="consecutive")
        for batch in (2, 16, case.batch // 2) if not case.is_fixed else ():
            if 1 <= batch < case.batch and case.groups <= batch * 64:
                yield dataclasses.replace(case, batch=batch)
    elif isinstance(case, RequestCase):
        yield from smaller_requests(case)
    elif isinstance(case, FilterCase):
        yield from _of_rows(case, group, case.logits.shape[0])
    elif isinstance(case, StepsCase):
        if case.batch > 1:
            everything = np.arange(case.batch)
            yield case.take(everything[group:group + 1])
            for part in (everything[:2], everything[:case.batch // 2], everything[case.batch // 2:]):
                if len(part) < case.batch:
                    yield case.take(part)
        yield from _without_parameters(case)
        if case.seeds != "consecutive":
            yield dataclasses.replace(case, seeds="consecutive")
    elif isinstance(case, VerifyCase):
        if len(set(case.draft_lens)) > 1:
            for length in sorted(set(case.draft_lens)):
                yield dataclasses.replace(case, draft_lens=(length,))
        elif case.draft_lens[0] > 1:
            yield dataclasses.replace(case, draft_lens=(case.draft_lens[0] // 2,))
            yield dataclasses.replace(case, draft_lens=(case.draft_lens[0] - 1,))
        yield from _without_parameters(case)
        if case.seeds != "consecutive":
            yield dataclasses.replace(case, seeds="consecutive")
        if case.batch > 16 and case.n_max is None:
            yield dataclasses.replace(case, batch=16)


def _of_rows(case: Any, group: int, groups: int) -> Iterator[Any]:
    if groups > 1:
        group = min(group, groups - 1)
        yield with_rows(case, slice(group, group + 1), f"{group}:{group + 1}")
        yield with_rows(case, slice(0, groups // 2), f":{groups // 2}")
        yield with_rows(case, slice(groups // 2, groups), f"{groups // 2}:")
    yield from _without_parameters(case)
    size = case.vocab_size
    for left in (4, size // 16, size // 4, size // 2):
        if 1 < left < size and np.isfinite(case.logits[:, :left]).any(axis=1).all():
            yield dataclasses.replace(case, logits=np.ascontiguousarray(case.logits[:, :left]),
                                      source=f"{case.source}[:, :{left}]")


def _without_parameters(case: Any) -> Iterator[Any]:
    for name, value in case.params.items():
        off = np.full_like(value, OFF[name])
        if not np.array_equal(value, off):
            yield dataclasses.replace(case, params={**case.params, name: off})
