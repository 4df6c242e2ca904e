"""Which parameters of whole requests a callable reads: those that it asks for by name, and, of one that takes its
parameters as they come, those that change what it draws."""

from __future__ import annotations

from typing import Callable

from ..._core import Error
from ..cases.request_cases import RequestCase
from ..cases.request_params import FACTORS, NEUTRAL
from .drive import CallFailure, Driver
from .request_run import RequestRun

#: The chance that a callable which ignores a parameter is taken for one that reads it; draws that are judged; calls
#: of a look at what it asks for; the part of the time of whole requests that trying what is not asked for may take.
ALPHA, DRAWS, CALLS, TIME = 1e-4, 192, 3, 0.3


def heeded(driver: Driver, kind: str, seed: int, clock: Callable[[], float], end: float) -> tuple[tuple[str, ...],
        list[str]]:
    """The factors that the callable reads, and what a note says of the other names. end: of the time of whole
    requests. A callable that reads its parameters by name alone, and not these, is not called for them."""
    _ask(driver, kind, seed, clock, end)
    factors: list[str] = []
    untried: list[str] = []
    begin, is_by_name = clock(), bool(driver.read) and not driver.takes_whole
    for name, factor in FACTORS.items():
        is_asked, partners = set(factor.needs) <= driver.wanted, factor.partners(factors)
        is_possible = kind in factor.kinds and (factor.is_alone or partners)
        if not is_possible or (name == "bitmask" and "allowed" in factors):
            continue
        if factor.is_end:
            factors += [name] if is_asked and driver.gives_ends else []
        elif is_asked:
            factors.append(name)
        elif name in driver.wanted or is_by_name:
            continue
        elif clock() >= begin + TIME * (end - begin):
            untried.append(name)
        elif _changes(driver, kind, (*partners, name), seed):
            factors.append(name)
    varied = {need for name in factors for need in FACTORS[name].needs}
    others = [name for name in NEUTRAL if name not in varied and not (name == "bitmask" and "allowed" in varied)]
    left_off = [name for name in others if name not in driver.wanted and name not in untried]
    notes = [f"the callable does not read {', '.join(left_off)}: left off"] if left_off else []
    notes += [f"there was no time to see whether the callable reads {', '.join(untried)}: left off"] if untried else []
    for name in others:
        if name in driver.wanted:
            missing = [f"{' and '.join(need for need in factor.needs if need not in driver.wanted)} as well"
                       for factor in FACTORS.values()
                       if name in factor.needs and not set(factor.needs) <= driver.wanted]
            beside = [" or ".join(FACTORS[name].beside)] if name in FACTORS and FACTORS[name].beside else []
            ends = ["finish_reasons beside the tokens"] if name in FACTORS and FACTORS[name].is_end else []
            notes.append(f"the callable reads {name}, and it was left off: that needs "
                         f"{' or '.join([*missing, *beside, *ends])}")
    return tuple(factors), notes


def _ask(driver: Driver, kind: str, seed: int, clock: Callable[[], float], end: float) -> None:
    """Calls with what the callable asks for, until it asks for nothing more: much is read only where something else is
    on, as stop ids below min_tokens."""
    known: set[str] | None = None
    while known != driver.wanted:
        known = set(driver.wanted)
        run = _run(driver, kind, tuple(name for name, factor in FACTORS.items()
                                       if kind in factor.kinds and known & set(factor.needs)), seed)
        try:
            while run.calls < CALLS and clock() < end:
                run.call()
        except (CallFailure, Error):
            pass  # the cases say what is wrong


def _run(driver: Driver, kind: str, factors: tuple[str, ...], seed: int) -> RequestRun:
    return RequestRun(driver, RequestCase("heeded", kind, factors, lens=(1,) if kind == "verify" else (0,),
                                          batch=DRAWS // 8), seed)


def _changes(driver: Driver, kind: str, factors: tuple[str, ...], seed: int) -> bool:
    """Does what came differ from what it is without the last factor?"""
    run = _run(driver, kind, factors, seed)
    try:
        run.draw(DRAWS)
    except (CallFailure, Error):
        return False
    return run.judge(ALPHA, without=factors[-1]).biased
