"""What a sampler drew (observed.py), and deviations that read rows, parameters and random numbers wrongly."""

from __future__ import annotations

import dataclasses
from typing import Callable, Iterator

import numpy as np

from ..cases.sample_cases import OFF
from ..evidence.sample_judge import SampleRun
from .filter_deviations import FILTERS, Deviation, Params, rare, switched_off
from .noise_deviations import lost_of_seeds, repeats_of, shared_sums, wrong_draws
from .observed import ELEMENTS, Draws, Observed, OfRows, Regime, always_of, masked, regimes_of, tiny_of, window
from .row_deviations import Rows, Whose, beside_others, compacted, mixed_rows, neighbours, of_call, wrong_rows


def observed_draws(run: SampleRun, around: int) -> Observed | None:
    """around: a row, those next to which are looked at where all are too many."""
    case = run.case
    group, token = np.concatenate(run.groups), np.concatenate(run.samples)
    if not ((token >= 0) & (token < case.vocab_size)).all():
        return None
    calls = len(group) // case.batch
    calls_groups = group.reshape(calls, case.batch)
    every, last = _of_last_call(run, group)
    others = [*((words, calls_groups[:, at].ravel(), is_rare) for words, at, is_rare in neighbours(case.batch)),
              ("the last call's", last, False),
              *((words, np.take_along_axis(calls_groups, rank, axis=1).ravel(), is_rare) for words, rank, is_rare
                in compacted({name: value[calls_groups] for name, value in case.params.items()}))]
    here = np.flatnonzero(np.isin(group, window(around, case.groups, max(1, ELEMENTS // case.vocab_size))))
    place = np.tile(np.arange(case.batch), calls)[here]
    is_whole = len(here) == len(group)
    moved = [(words, at[here], is_rare) for words, at, is_rare in (*others, *_put_back(case.params, calls_groups))]
    others = moved[:len(others)]
    group, token = group[here], token[here]
    groups, own_row = np.unique(group, return_inverse=True)
    own = Rows(case.logits[groups], {name: value[groups] for name, value in case.params.items()})
    of_sound = OfRows(own, own_row, token)

    def with_other(at: np.ndarray) -> tuple[Rows, np.ndarray, Callable[[Rows], OfRows]]:
        """at: [n], beside the draw's own row. The rows, once for each pair; at of each; a rule of draws of rules of
        those rows."""
        pairs, row = np.unique(np.stack([group, at]), axis=1, return_inverse=True)
        rows = Rows(case.logits[pairs[0]], {name: value[pairs[0]] for name, value in case.params.items()})
        return rows, pairs[1], lambda one: OfRows(one, row.ravel(), token)

    def rules() -> Iterator[Deviation]:
        rows, _, drawn = with_other(group)
        yield from (wrong.then(drawn) for wrong in wrong_rows(rows, case.params))
        for words, at, is_rare in others:
            rows, of, drawn = with_other(at)
            if rows.logits.size <= 4 * ELEMENTS:
                yield from (wrong.then(drawn) for wrong in mixed_rows(rows, [(words, of, is_rare)], every))
        for words, at, is_rare in moved:
            of_row = np.searchsorted(groups, np.clip(at, groups[0], groups[-1]))
            if len(groups) == case.groups and at.max() < case.groups:
                yield Deviation(f"rows are {words}", lambda of_row=of_row: OfRows(own, of_row, token), is_rare=is_rare)
        cold = case.params["temperature"][calls_groups] == 0.0
        is_mixed = (cold.any(axis=1) & ~cold.all(axis=1)).repeat(case.batch)[here]
        if is_mixed.any():
            rows, of, drawn = with_other(is_mixed.astype(np.int64))
            yield from (wrong.then(drawn) for wrong in beside_others(rows, of > 0))
        for words, which in (("largest", np.argmax), ("smallest", np.argmin)):
            for name, value in case.params.items():
                if len(np.unique(value)) > 1:
                    at = calls_groups[np.arange(calls), which(value[calls_groups], axis=1)].repeat(case.batch)[here]
                    rows, of, drawn = with_other(at)
                    yield from (wrong.then(drawn) for wrong in of_call(rows, name, words, value[of]))
        for name, draws in wrong_draws(case.vocab_size):
            yield rare(name, lambda draws=draws: OfRows(
                dataclasses.replace(own, draws=lambda *given: draws(Rows(*given).probabilities)), own_row, token))
        if case.batch * case.vocab_size > 1 << 24:
            rows, of, drawn = with_other(place)
            yield Deviation("the index of row and token together is a float32", lambda: drawn(dataclasses.replace(
                rows, draws=lambda *given: _of_float_index(Rows(*given).probabilities, of * case.vocab_size))))

    params = {name: value[group] for name, value in case.params.items()}
    sound, tiny = of_sound(), tiny_of(case.vocab_size)
    by_rows = [(words, of[own_row]) for words, of in masked(own.logits)]
    top = Rows(own.logits, switched_off(own.params, *FILTERS)).probabilities.max(axis=1)[own_row]
    peaked = [Regime(f"rows with a token of {bound:g} or more", top >= bound) for bound in (0.5, 0.9, 0.99)]
    regimes = [*regimes_of(params, place, case.batch, sound < tiny, by_rows),
               *(regime for regime in peaked if regime.here.any() and not regime.here.all())]
    return Observed(of_sound, sound, tiny, rules, regimes, own.logits.size, Draws(params, place, case.batch),
                    [*always_of(params), *(["calls of one row"] if case.batch == 1 else []),
                     *(f"rows with {words}" for words, of in by_rows if of.all())],
                    lambda: max(of(own.probabilities.astype(np.float64), own_row, token, case.batch)
                                for of in (repeats_of, shared_sums)) if is_whole else (0.0, ""),
                    lambda: lost_of_seeds(np.concatenate(run.seeds), own.probabilities.astype(np.float64), own_row,
                                          token) if is_whole else "")


def _of_float_index(p: np.ndarray, begin: np.ndarray) -> np.ndarray:
    """[n, V]: where begin + token is rounded to float32."""
    out, size = np.zeros(p.shape), p.shape[1]
    for i, first in enumerate(begin):
        rounded = (first + np.arange(size)).astype(np.float32).astype(np.int64) - first
        np.add.at(out[i], np.clip(rounded, 0, size - 1), p[i])
    return out


def _put_back(params: Params, groups: np.ndarray) -> Iterator[Whose]:
    """Rows [calls, batch] sorted by a parameter and not put back, or by the wrong permutation: whose token a place
    has."""
    for name, value in params.items():
        for words, sign in (("rising", 1.0), ("falling", -1.0)) if len(np.unique(value)) > 1 else ():
            order = np.argsort(sign * value[groups].astype(np.float64), axis=1, kind="stable")
            for how, at in (("not put back", order),
                            ("put back by the wrong permutation", np.take_along_axis(order, order, axis=1))):
                yield (f"sorted by {words} {name} and {how}", np.take_along_axis(groups, at, axis=1).ravel(), True)


def _of_last_call(run: SampleRun, group: np.ndarray) -> tuple[Params, np.ndarray]:
    """(parameters of all groups and of the call before this case's first, whose of them each draw's place had a call
    before)."""
    case, before = run.case, run.params_before
    at = np.concatenate([group[:case.batch], group[:-case.batch]])
    if before is None:
        return case.params, at
    size = len(before["temperature"])
    both = min(size, case.batch)
    at[:both] = case.groups + np.arange(both)
    return {name: np.concatenate([value, before.get(name, np.full(size, OFF[name]))]).astype(value.dtype)
            for name, value in case.params.items()}, at
