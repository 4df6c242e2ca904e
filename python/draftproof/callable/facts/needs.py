"""What a failing case needs. One named factor is taken from it at a time: where it fails without, the factor does not
matter and stays away; where it passes, the factor is needed, and of a number the smallest that fails is found beside
the largest that passes. Then the case is run again with seeds that do not follow one another, and with other calls in
between: where it passes then, the fault is one of seeds, or of what a call leaves behind, whatever rule explains it."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Iterator

import numpy as np

from ..cases.filter_cases import FilterCase
from ..cases.ranges import with_rows
from ..cases.request_cases import RequestCase, smaller_requests
from ..cases.sample_cases import OFF, SampleCase, shown
from ..cases.verify_cases import VerifyCase
from ..cases.verify_sweep import StepsCase

#: Seeds that belong together, by the name of the case's kind of them.
RELATED = {"families": "seeds that agree in low, high or folded bits", "high_bits": "seeds that differ only above "
           "bit 32", "large": "consecutive seeds beyond 2^40", "double": "consecutive seeds beyond 2^53",
           "signed": "seeds from 2^63 on"}
OTHERS = "other rows"
#: Factors in the order in which they are taken away.
NAMES = (OTHERS, *OFF, "order", "seeds", "drafts", "batch", "vocabulary")
#: A case passes where nothing is found at this level; it must in so many runs, and fail in as many as it is: a rare
#: fault may do either once.
CALM, RUNS = 0.01, 4
#: Parameters of the calls in between: those that change every row, those that keep every token and yet are not off.
BETWEEN = ({"temperature": 0.6, "top_k": 3, "top_p": 0.7, "min_p": 0.2},
           {"temperature": 1.0, "top_k": 1 << 20, "top_p": float(np.nextafter(np.float32(1.0), np.float32(0.0))),
            "min_p": 1e-9})
SEEDS, CALLS = "random numbers of neighbouring seeds depend on each other", "what an earlier call left"


@dataclasses.dataclass(frozen=True)
class Factor:
    """at(value): the case with this much of it, None where there is none; low: as little as can be; high: as the case
    has it. words: of a factor that is there or not, what is needed."""

    name: str
    at: Callable[[int], Any]
    low: int = 0
    high: int = 1
    words: str = ""


@dataclasses.dataclass(frozen=True)
class Minimal:
    """case: the smallest that fails; needs: what it does not fail without; free: what does not matter."""

    case: Any
    needs: tuple[str, ...] = ()
    free: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "; ".join([*([f"needs: {', '.join(self.needs)}"] if self.needs else []),
                          *([f"not on {', '.join(self.free)}"] if self.free else [])])


def minimal(case: Any, group: int, fails: Callable[[Any, int], bool | None]) -> Minimal:
    """group: a row or request that failed. fails(case, times): does it, in so many times the draws that showed the
    failure? None where there is no time left."""
    while isinstance(case, RequestCase):
        smaller = next((smaller for smaller in smaller_requests(case) if fails(smaller, 1)), None)
        if smaller is None:
            return Minimal(case)
        case = smaller
    needs, free = [], []
    for name in NAMES:
        factor = next((factor for factor in factors(case, group) if factor.name == name), None)
        least = None if factor is None else factor.at(factor.low)
        if factor is None or least is None:
            continue
        found = fails(least, 1)
        if found is None:
            break
        if found:
            case, group = least, 0 if name in (OTHERS, "batch") else group
            free.append(name)
            continue
        passes, high, failing = factor.low, factor.high, case
        while high - passes > 1:
            middle = round((max(passes, 1) * high) ** 0.5) if high > 64 else (passes + high) // 2
            middle = min(max(middle, passes + 1), high - 1)
            smaller = factor.at(middle)
            found = None if smaller is None else fails(smaller, 1)
            if found is None:
                break
            passes, high, failing = (passes, middle, smaller) if found else (middle, high, failing)
        case = failing
        if factor.words:
            needs.append(factor.words)
        elif high - passes <= max(1, high // 8) and fails(factor.at(passes), 4) not in (True, None):
            needs.append(f"{name} {high} ({'off' if name == 'top_k' and not passes else passes} passes)")
        elif name != "vocabulary":  # fewer tokens are another row
            needs.append(f"{name} (seen from {high})")
    return Minimal(case, tuple(needs), tuple(free))


def factors(case: Any, group: int) -> Iterator[Factor]:
    """Those that a case has."""
    def changed(**given: Any) -> Any:
        return dataclasses.replace(case, **given)

    if isinstance(case, SampleCase) and (case.readings or case.may_raise):
        return
    yield from _of_parameters(case)
    if getattr(case, "seeds", "consecutive") in RELATED:
        yield Factor("seeds", lambda _: changed(seeds="consecutive"), words=RELATED[case.seeds])
    if isinstance(case, (SampleCase, FilterCase)):
        row, count = min(group, len(case.logits) - 1), len(case.logits)

        def cut(size: int) -> Any:
            logits = np.ascontiguousarray(case.logits[:, :size])
            return changed(logits=logits, source=f"{case.source}[:, :{size}]") if np.isfinite(logits).any(
                axis=1).all() else None

        if count > 1:
            yield Factor(OTHERS, lambda _: with_rows(case, slice(row, row + 1), f"{row}:{row + 1}"),
                         words="rows that differ")
        if getattr(case, "shuffled", False):
            yield Factor("order", lambda _: changed(shuffled=False), words="rows in random order")
        if isinstance(case, FilterCase) and count > 1:
            yield Factor("batch", lambda size: with_rows(case, slice(0, size), f":{size}"), 1, count)
        elif isinstance(case, SampleCase) and case.batch > 1 and not case.is_fixed:
            yield Factor("batch", lambda size: changed(batch=size), 1, case.batch)
        if case.vocab_size > 2:
            yield Factor("vocabulary", cut, 2, case.vocab_size)
    elif isinstance(case, StepsCase):
        if case.batch > 1:
            yield Factor(OTHERS, lambda _: case.take([group] * case.batch), words="requests that differ")
            yield Factor("batch", lambda size: case.take(np.arange(size) + max(0, group - size + 1)), 1, case.batch)
        if longest := int(case.lens.max(initial=0)):
            yield Factor("drafts", case.first_drafts, 0, longest)
    elif isinstance(case, VerifyCase) and case.draft_lens[0] > 1:
        yield Factor("drafts", lambda k: changed(draft_lens=(k,)), 1, case.draft_lens[0])


def _of_parameters(case: Any) -> Iterator[Factor]:
    for name, value in case.params.items():
        on = value[value != np.asarray(OFF[name], value.dtype)]
        if not on.size:
            continue
        kinds = np.unique(on)
        words = f"{name} {shown(kinds[0])}" if len(kinds) == 1 else f"{name} that differs from row to row"
        if name == "temperature" and kinds[0] == 0.0:
            words = "temperature 0" if (value == 0.0).all() else "temperature 0 beside others"
        elif len(kinds) == 1 and len(on) < len(value):
            words += " beside rows without"
        is_number = name == "top_k" and len(kinds) == 1 and len(on) == len(value)
        yield Factor(name, lambda number, name=name, value=value: dataclasses.replace(
            case, params={**case.params, name: np.full_like(value, number or OFF[name])}), 0,
                     int(kinds[0]) if is_number else 1, "" if is_number else words)


def with_parameters(case: Any, given: dict[str, float]) -> Any:
    """Its rows and batch, each row with these, the greedy ones too."""
    size = len(case.params["temperature"])
    return dataclasses.replace(case, params={name: np.full(size, given[name], value.dtype)
                                             for name, value in case.params.items()})


def dependence(case: Any, probe: Any, seed: int, found: Callable[[Any, int, Any], bool | None]) -> str:
    """SEEDS, CALLS or ''. probe: a small case; found(case, seed, between): does the case fail at CALM, with a call of
    the case `between` before each of its own (None: with none)? None where there is no time."""
    seeds = range(seed + 1, seed + 1 + RUNS)

    def passes(other: Any, between: Any) -> bool:
        return all(found(other, each, between) is False for each in seeds)

    if not all(found(case, each, None) for each in seeds):  # before other calls change what is left behind
        return ""
    if getattr(case, "seeds", "") == "consecutive" and passes(dataclasses.replace(case, seeds="random"), None):
        return SEEDS
    return CALLS if any(passes(case, with_parameters(of, given)) for given in BETWEEN for of in (probe, case)) else ""


def dependent(needed: str, rule: str) -> str:
    """The rule that explains what came, behind what the failure depends on; beside related seeds none but of random
    numbers."""
    if needed == SEEDS and not rule.startswith("random numbers"):
        return SEEDS
    return f"{needed}: {rule}" if needed and rule else needed or rule
