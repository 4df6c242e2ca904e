"""Cases of whole requests: batches whose requests begin and end at different calls, with histories that grow by what
was drawn."""

from __future__ import annotations

import dataclasses
from typing import Callable, Iterator

from .request_params import FACTORS

Filters = dict[str, float]

#: What requests have in turn: cuts that a penalty moves tokens over, greedy ones, and one without a filter.
FILTERS: tuple[Filters, ...] = ({"top_k": 3}, {"temperature": 0.5, "top_p": 0.5}, {"top_p": 0.9}, {},
                                {"temperature": 1.5, "top_k": 8},
                                {"temperature": 0.0}, {"top_k": 5, "top_p": 0.7})
WITH_MIN_P: tuple[Filters, ...] = (*FILTERS, {"min_p": 0.3}, {"temperature": 1.5, "min_p": 0.2},
                                   {"top_k": 8, "top_p": 0.9, "min_p": 0.1})


@dataclasses.dataclass(frozen=True, eq=False)
class RequestCase:
    """kind: of the callable; factors: of request_params.FACTORS, what requests may ask for; filters: of the requests in
    turn; lens: drafts of the requests in turn; calls: after which a request ends, at most; one_hot: drafts have no
    probabilities. is_one_seed: a request keeps its seed, and has `steps` calls before where the callable reads them;
    else a new seed every call. Every number of a request is drawn by the run's seed."""

    name: str
    kind: str = "sample"
    factors: tuple[str, ...] = ()
    filters: tuple[Filters, ...] = FILTERS
    lens: tuple[int, ...] = (0,)
    calls: int = 8
    batch: int = 24
    vocab_size: int = 48
    one_hot: bool = False
    is_one_seed: bool = False
    n_max: int = 480


@dataclasses.dataclass(frozen=True)
class RequestEntry:
    """As the sweep's entries."""

    name: str
    n: int
    make: Callable[[], RequestCase]
    separates: bool = False


def request_cases(kind: str, factors: tuple[str, ...], with_min_p: bool, is_one_seed: bool,
                  one_hot: bool = True) -> list[RequestCase]:
    """All factors together, each alone, then together in other batches; of verifiers along drafts. Where nothing is
    read and nothing grows, there is nothing to ask."""
    def case(name: str, chosen: tuple[str, ...], n: int = 480, **more: object) -> RequestCase:
        several = {"lens": (2, 0, 3, 1)} if kind == "verify" else {}
        return RequestCase(f"requests: {name}", kind, chosen, WITH_MIN_P if with_min_p else FILTERS,
                           is_one_seed=is_one_seed and kind != "filter", n_max=n, **{**several, **more})  # type: ignore[arg-type]

    factors = tuple(name for name in factors if kind in FACTORS[name].kinds)
    out = [case("histories that grow", ())] if is_one_seed and kind != "filter" else []
    if len(factors) > 1:
        out.append(case("all together", factors, 960))
    for name in factors:
        more = (*FACTORS[name].partners(factors), name)
        out.append(case(" and ".join(more), more))
    if len(factors) > 1:
        out.append(case("all together in a batch of 1", factors, 96, batch=1))
        out.append(case("all together in a batch of 129", factors, 516, batch=129, calls=3))
        out.append(case("all together, V = 1000", factors, 240, vocab_size=1000))
    if kind == "verify":
        if one_hot and factors:
            out.append(case("all together, drafts without probabilities", factors, one_hot=True))
        if factors:
            out.append(case("all together, no drafts", factors, lens=(0,)))
            out.append(case("all together, nine drafts", factors, 240, lens=(9,)))
    return out


def smaller_requests(case: RequestCase) -> Iterator[RequestCase]:
    """What shrinking tries, the largest steps first."""
    for factor in case.factors:
        left = tuple(name for name in case.factors if name != factor)
        if all(FACTORS[name].is_alone or FACTORS[name].partners(left) for name in left):
            yield dataclasses.replace(case, factors=left)
    if len(case.filters) > 1:
        yield from (dataclasses.replace(case, filters=(one,)) for one in case.filters)
    if case.calls > 1:
        yield dataclasses.replace(case, calls=1)
    if any(case.lens):
        yield from (dataclasses.replace(case, lens=lens) for lens in ((0,), (1,)) if lens != case.lens)
    for name in ("one_hot", "is_one_seed"):
        if getattr(case, name):
            yield dataclasses.replace(case, **{name: False})  # type: ignore[arg-type]
    if case.batch > 1:
        yield dataclasses.replace(case, batch=1)
