"""What a failing case needs: one named factor is taken from it at a time. Where it fails without, the factor does not
matter and stays away; where it passes, the factor is needed, and of a number the smallest that fails is found beside
the largest that passes."""

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
SEEDS = {"families": "seeds that agree in low, high or folded bits", "high_bits": "seeds that differ only above bit 32",
         "large": "consecutive seeds beyond 2^40", "double": "consecutive seeds beyond 2^53",
         "signed": "seeds from 2^63 on"}


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
        if factor.words:
            needs.append(factor.words)
        else:
            found = fails(factor.at(passes), 4) if high - passes <= max(1, high // 8) else None
            sure = found is not None and not found
            if sure:
                needs.append(f"{name} {high} ({'off' if name == 'top_k' and not passes else passes} passes)")
            elif name != "vocabulary":  # fewer tokens are another row
                needs.append(f"{name} (seen from {high})")
        case = failing
    return Minimal(case, tuple(needs), tuple(free))


OTHERS = "other rows"
#: Factors in the order in which they are taken away.
NAMES = ("unequal drafts", OTHERS, *OFF, "order", "seeds", "drafts", "batch", "vocabulary")


def factors(case: Any, group: int) -> Iterator[Factor]:
    if isinstance(case, SampleCase) and (case.readings or case.may_raise):
        return
    if isinstance(case, (SampleCase, FilterCase)):
        yield from _of_rows(case, min(group, len(case.logits) - 1))
    yield from _of_parameters(case)
    if getattr(case, "seeds", "consecutive") in SEEDS:
        yield Factor("seeds", lambda _: dataclasses.replace(case, seeds="consecutive"), words=SEEDS[case.seeds])
    if isinstance(case, StepsCase):
        yield from _of_steps(case, group)
    elif isinstance(case, VerifyCase):
        if len(set(case.draft_lens)) > 1:
            yield Factor("unequal drafts", lambda _: dataclasses.replace(case, draft_lens=(max(case.draft_lens),)),
                         words="unequal drafts")
        elif case.draft_lens[0] > 1:
            yield Factor("drafts", lambda k: dataclasses.replace(case, draft_lens=(k,)), 1, case.draft_lens[0])
        if case.batch > 16 and case.n_max is None:
            yield Factor("batch", lambda size: dataclasses.replace(case, batch=size), 16, case.batch)


def _of_rows(case: SampleCase | FilterCase, group: int) -> Iterator[Factor]:
    if len(case.logits) > 1:
        yield Factor(OTHERS, lambda _: with_rows(case, slice(group, group + 1), f"{group}:{group + 1}"),
                     words="rows that differ")
    if isinstance(case, SampleCase):
        if case.shuffled:
            yield Factor("order", lambda _: dataclasses.replace(case, shuffled=False), words="rows in random order")
        if case.batch > 1 and not case.is_fixed:
            yield Factor("batch", lambda size: dataclasses.replace(case, batch=size), 1, case.batch)
    elif len(case.logits) > 1:
        yield Factor("batch", lambda size: with_rows(case, slice(0, size), f":{size}"), 1, len(case.logits))

    def cut(size: int) -> Any:
        logits = np.ascontiguousarray(case.logits[:, :size])
        return dataclasses.replace(case, logits=logits,
                                   source=f"{case.source}[:, :{size}]") if np.isfinite(logits).any(
                                           axis=1).all() else None

    if case.vocab_size > 2:
        yield Factor("vocabulary", cut, 2, case.vocab_size)


def _of_steps(case: StepsCase, group: int) -> Iterator[Factor]:
    longest = int(case.lens.max(initial=0))
    if case.batch > 1:
        yield Factor(OTHERS, lambda _: case.take([group] * case.batch), words="requests that differ")
        yield Factor("batch", lambda size: case.take(np.arange(size) + max(0, group - size + 1)), 1, case.batch)
    if longest:
        yield Factor("drafts", case.first_drafts, 0, longest)


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
