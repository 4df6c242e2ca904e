"""What a callable takes: rows of a case with parameters beyond that are left out."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ..._core import Error
from .request_cases import RequestCase
from .sample_cases import OFF, SampleCase
from .verify_cases import VerifyCase
from .verify_sweep import StepsCase

#: By parameter, the least and the largest value that is taken beside its neutral one; 0 of temperatures is greedy.
Ranges = dict[str, tuple[float, float]]


def checked(ranges: Ranges | None) -> Ranges:
    if not isinstance(ranges or {}, dict):
        raise Error(f"ranges: is {ranges!r}; expected a dict of (least, largest) by parameter")
    for name, given in (ranges or {}).items():
        if name not in OFF:
            raise Error(f"ranges: has {name!r}; expected parameters of {', '.join(OFF)}")
        try:
            least, largest = map(float, given)
        except (TypeError, ValueError):
            least, largest = 1.0, 0.0
        if not least <= largest:
            raise Error(f"ranges: {name} is {given!r}; expected (least, largest)")
    return ranges or {}


def with_rows(case: Any, keep: Any, text: str) -> Any:
    """A case of a sampler or a filter with some of its rows. text: of `keep`, as Python."""
    changed: dict[str, Any] = {"logits": case.logits[keep], "source": f"{case.source}[{text}]",
                               "params": {name: value[keep] for name, value in case.params.items()}}
    if isinstance(case, SampleCase):
        changed["readings"] = tuple(reading[keep] for reading in case.readings)
        if case.is_fixed:  # as many rows in a batch as there are groups
            changed["batch"] = len(changed["logits"])
    return dataclasses.replace(case, **changed)


def within(case: Any, ranges: Ranges) -> Any:
    """The case with the rows that are within; None if there are none."""
    if isinstance(case, RequestCase):
        kept = tuple(filters for filters in case.filters if all(
            name not in filters or (name == "temperature" and filters[name] == 0.0) or least <= filters[name] <= largest
            for name, (least, largest) in ranges.items()))
        return case if kept == case.filters else dataclasses.replace(case, filters=kept) if kept else None
    params = getattr(case, "params", {})
    inside = np.ones(len(next(iter(params.values()), [])), bool)
    for name, (least, largest) in ranges.items():
        if name in params:
            value = params[name]
            neutral = (value == np.asarray(OFF[name], value.dtype)) | ((value == 0) if name == "temperature" else False)
            inside &= neutral | ((value >= np.float32(least)) & (value <= np.float32(largest)))
    if inside.all():
        return case
    if not inside.any() or isinstance(case, VerifyCase):
        return None
    keep = np.flatnonzero(inside)
    return case.take(keep) if isinstance(case, StepsCase) else with_rows(case, keep, f"np.array({keep.tolist()})")
