"""What a failure depends on beside rows and parameters. The case is run again with seeds that do not follow one
another, and with
other calls in between: where it passes then, and fails without, the fault is one of seeds, or of what a call leaves
behind, whatever rule explains what came."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable

import numpy as np

#: A case passes where nothing is found at this level; it must in so many runs, and fail in as many as it is: a rare
#: fault may do
#: either once.
CALM, RUNS = 0.01, 4
#: Parameters of the calls in between: those that change every row, those that keep every token and yet are not off.
OTHERS = ({"temperature": 0.6, "top_k": 3, "top_p": 0.7, "min_p": 0.2},
          {"temperature": 1.0, "top_k": 1 << 20, "top_p": float(np.nextafter(np.float32(1.0), np.float32(0.0))),
           "min_p": 1e-9})
SEEDS, CALLS = "random numbers of neighbouring seeds depend on each other", "what an earlier call left"


def with_parameters(case: Any, given: dict[str, float]) -> Any:
    """Its rows and batch, each row with these, the greedy ones too."""
    size = len(case.params["temperature"])
    return dataclasses.replace(case,
                               params={name: np.full(size, given[name], value.dtype) for name,
                                       value in case.params.items()})


def dependence(case: Any, probe: Any, seed: int, found: Callable[[Any, int, Any], bool | None]) -> str:
    """SEEDS, CALLS or ''. probe: a small case; found(case, seed, between): does the case fail at CALM, with a call of
    the case `between` before each of its own (None: with none)? None where there is no time."""
    seeds = range(seed + 1, seed + 1 + RUNS)
    if not all(found(case, each, None) for each in seeds):  # before other calls change what is left behind
        return ""
    if getattr(case, "seeds", "") == "consecutive" and all(
            found(dataclasses.replace(case, seeds="random"), each, None) is False for each in seeds):
        return SEEDS
    for given in OTHERS:
        for between in (with_parameters(probe, given), with_parameters(case, given)):
            if all(found(case, each, between) is False for each in seeds):
                return CALLS
    return ""


def dependent(needed: str, rule: str) -> str:
    """The rule that explains what came, behind what the failure depends on; beside related seeds none but of random
    numbers."""
    if needed == SEEDS and not rule.startswith("random numbers"):
        return SEEDS
    return f"{needed}: {rule}" if needed and rule else needed or rule
