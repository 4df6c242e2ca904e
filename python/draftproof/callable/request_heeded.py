"""Which parameters of whole requests a callable reads: those that it asks for by name, and, of one that takes its parameters as they
come, those that change what it draws."""

from __future__ import annotations

from typing import Callable

from .._core import Error
from .drive import CallFailure, Driver
from .request_cases import RequestCase
from .request_params import FACTORS, NEUTRAL
from .request_run import RequestRun

#: The chance that a callable which ignores a parameter is taken for one that reads it; draws that are judged.
ALPHA, DRAWS = 1e-4, 192


def heeded(driver: Driver, kind: str, seed: int, clock: Callable[[], float], end: float) -> tuple[tuple[str, ...], list[str]]:
    """The factors that the callable reads, and the names of what it does not."""
    factors: list[str] = []
    for name, factor in FACTORS.items():
        is_asked = set(factor.needs) <= driver.wanted
        penalties = tuple(other for other in factors if other.endswith("_penalty") and (name != "prompt_tokens" or other.startswith("rep")))
        if (not factor.is_alone and not penalties) or (name == "bitmask" and "allowed" in factors):
            continue
        chosen = (name,) if factor.is_alone else (*penalties[:1], name)
        if is_asked or (clock() < end and name not in driver.wanted and _changes(driver, kind, chosen, seed)):
            factors.append(name)
    read = driver.wanted | {need for name in factors for need in FACTORS[name].needs}
    left_off = [name for name in NEUTRAL if name not in read and not (name == "bitmask" and "allowed" in read)]
    return tuple(factors), left_off


def _changes(driver: Driver, kind: str, factors: tuple[str, ...], seed: int) -> bool:
    """Does what came differ from what it is without the last factor?"""
    run = RequestRun(driver, RequestCase("heeded", kind, factors, lens=(1,) if kind == "verify" else (0,), batch=DRAWS // 4), seed)
    try:
        run.draw(DRAWS)
    except (CallFailure, Error):
        return False
    return run.judge(ALPHA, without=factors[-1]).biased
