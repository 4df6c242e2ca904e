"""Which of the usual readings a callable has where correct engines differ: the order of filters, ties at a cut and at
temperature 0. None of them is a fault by itself."""

from __future__ import annotations

from typing import Any, Callable, Literal

import numpy as np

from ..cases.filter_cases import FilterRun, filter_case_of
from ..cases.sample_cases import OFF, SampleCase, params_of
from ..cases.verify_sweep import StepsCase

#: Rows of a call; a token of probability 1/4 does not come in it with one of 3 * 10^-8.
ROWS = 64
SIZE = 100

#: The order of filters: top-p over what top-k left, or over the whole row.
FilterOrder = Literal["joint", "top_k_first"]
Drawn = Callable[[Any], np.ndarray | None]
#: (logits, params, seeds) of a batch -> a token of each row, None where the callable does not take them.
Called = Callable[[np.ndarray, dict[str, np.ndarray], np.ndarray], "np.ndarray | None"]


def _row(*head: float) -> np.ndarray:
    """[SIZE]: logits of these probabilities, all others share the rest."""
    rest = (1.0 - sum(head)) / (SIZE - len(head))
    return np.log(np.array([*head, *[rest or 1e-30] * (SIZE - len(head))])).astype(np.float32)


def _case(kind: str, name: str, row: np.ndarray, draft: int | None = None, **given: float) -> Any:
    params = params_of(ROWS, **{key: given.get(key, OFF[key]) for key in OFF if key != "min_p" or "min_p" in given})
    logits, source = np.tile(row, (ROWS, 1)), f"readings: {name}"
    if kind == "verify":
        lens = np.full(ROWS, 0 if draft is None else 1)
        drafts = np.zeros((0, len(row)), np.float32) if draft is None else None
        return StepsCase(name, np.repeat(logits, lens + 1, axis=0), drafts, lens, params, source,
                         fixed=None if draft is None else np.full(ROWS, draft))
    case = SampleCase(name, logits, source, params, batch=ROWS, is_fixed=True)
    return filter_case_of(case) if kind == "filter" else case


def tokens_of_run(run: Any) -> np.ndarray:
    """Which tokens came, or were kept."""
    if isinstance(run, FilterRun):
        assert run.left is not None
        return np.flatnonzero((run.left > -np.inf).any(axis=0))
    return np.unique(run.outputs[0][:, 0] if hasattr(run, "outputs") else run.samples[0])


def filter_order_of(kind: str, drawn: Drawn) -> FilterOrder | None:
    """None where neither shows."""
    both = drawn(_case(kind, "top_k and top_p", _row(0.4, 0.2, 0.15), top_k=2, top_p=0.6))
    if both is None or tuple(both) not in ((0,), (0, 1)):
        return None
    return "joint" if len(both) == 2 else "top_k_first"  # of what top_k leaves the first has two thirds


def readings_of(kind: str, with_min_p: bool, drawn: Drawn) -> list[str]:
    """drawn(case): the tokens that came in one call, None where the callable does not take the case. Its readings, in
    words."""
    out = []
    ties = np.full(2100, -9.0, np.float32)  # several tiles
    ties[[31, 1064, 2098]] = 9.0
    first = drawn(_case(kind, "ties at temperature 0", ties, temperature=0.0)) if kind != "filter" else None
    if first is not None and set(first) <= {31, 1064, 2098}:
        which = {(31,): "the first", (2098,): "the last"}.get(tuple(first),
                                                              "another than the first" if len(first) == 1 else "any")
        out.append(f"of equal largest logits {which} at temperature 0")
    if kind == "verify":
        with_draft = drawn(_case(kind, "a tied draft at temperature 0", ties, draft=1064, temperature=0.0))
        if with_draft is not None and first is not None and list(with_draft) == [1064] and list(first) != [1064]:
            out.append("drafts that tie with it accepted")
    if order := filter_order_of(kind, drawn):
        out.append("top_p over the whole row" if order == "joint" else "top_p over what top_k left")
    if with_min_p:
        cut = drawn(_case(kind, "min_p and top_p", _row(0.5, 0.2, 0.1), top_p=0.7, min_p=0.3))
        if cut is not None and tuple(cut) in ((0,), (0, 1)):  # of what min_p leaves the first has five sevenths
            out.append("top_p over what min_p left" if len(cut) == 1 else "min_p after top_p")
    tied = drawn(_case(kind, "ties at top_k", _row(0.3, 0.2, 0.2, 0.2), top_k=2))
    if tied is not None and 0 in tied and set(tied) <= {0, 1, 2, 3}:
        out.append("all tokens tied at top_k's cut" if len(tied) == 4 else "top_k tokens where some tie at its cut")
    quarters = drawn(_case(kind, "top_p equal to a cumulative mass", _row(*[0.25] * 4), top_p=0.5))
    out += {(0, 1, 2): ["a token kept before which top_p is reached"],
            (2, 3): ["the last of tokens tied at top_p's cut"],
            (0, 1, 2, 3): ["all tokens tied at top_p's cut"]}.get(() if quarters is None else tuple(quarters), [])
    return out


def repeats(called: Called) -> list[str]:
    """Is a token what its row and its seed make it: in an equal call, and in a batch of other order?"""
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(ROWS, 2100)).astype(np.float32)
    params = params_of(ROWS, temperature=np.where(np.arange(ROWS) % 3 == 0, 0.0, 1.0),
                       top_k=np.where(np.arange(ROWS) % 2, 200, 0), top_p=1.0)
    seeds, order = np.arange(ROWS, dtype=np.uint64) + np.uint64(1000), rng.permutation(ROWS)
    first, again = called(logits, params, seeds), called(logits, params, seeds)
    moved = called(logits[order], {name: value[order] for name, value in params.items()}, seeds[order])
    if first is None or again is None or moved is None:
        return []
    if not np.array_equal(first, again):
        return ["equal calls give other tokens"]
    return [] if np.array_equal(first[order],
                                moved) else ["rows in another order draw other tokens with the same seeds"]
