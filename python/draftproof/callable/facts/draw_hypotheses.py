"""The account of a sampler's draws (accounts.py): rules that read rows, parameters and random numbers wrongly."""

from __future__ import annotations

from typing import Callable, Iterator

import numpy as np

from ..cases.sample_cases import OFF
from ..evidence.sample_judge import SampleRun
from .accounts import ELEMENTS, Account, Draws, OfRows, Regime, Rules, always_of, masked, regimes_of, tiny_of, window
from .filter_hypotheses import Family, Params, Rare, rare_as
from .noise_hypotheses import lost_of_seeds, repeats_of, shared_sums, wrong_draws
from .row_hypotheses import (
    Given,
    beside_others,
    compacted,
    mixed_rows,
    neighbours,
    probabilities,
    wrong_rows,
)


def account_of_draws(run: SampleRun, around: int) -> Account | None:
    """around: a row, those next to which are looked at where all are too many."""
    case = run.case
    group, token = np.concatenate(run.groups), np.concatenate(run.samples)
    if not ((token >= 0) & (token < case.vocab_size)).all():
        return None
    calls = len(group) // case.batch
    all_groups = group.reshape(calls, case.batch)
    others = {words: all_groups[:, at].ravel() for words, at in neighbours(case.batch).items()}
    every, others["the last call's"] = _of_last_call(run, group)
    for words, rank in compacted({name: value[all_groups] for name, value in case.params.items()}):
        others[words] = np.take_along_axis(all_groups, rank, axis=1).ravel()
    here = np.flatnonzero(np.isin(group, window(around, case.groups, max(1, ELEMENTS // case.vocab_size))))
    place = np.tile(np.arange(case.batch), calls)[here]
    is_whole = len(here) == len(group)
    group, token = group[here], token[here]
    others = {words: at[here] for words, at in others.items()}
    permuted = {words: at[here] for words, at in _put_back(case.params, all_groups)}

    groups, own_row = np.unique(group, return_inverse=True)
    own = Given(case.logits[groups], {name: value[groups] for name, value in case.params.items()})
    of_sound = OfRows(own, own_row, token)
    sound = of_sound()

    def own_p() -> np.ndarray:
        return probabilities(own).astype(np.float64)

    def of_table(table: Callable[[], np.ndarray], rows: np.ndarray | slice = slice(None),
                 row: np.ndarray = own_row) -> OfRows:
        """table(): probabilities of these of the rows; row: [n], which of them a draw has."""
        return OfRows(Given(own.logits[rows], {name: value[rows] for name, value in own.params.items()},
                            lambda *_: table()), row, token)

    def rules() -> Rules:
        # A row stands once for each that its parameters may be mixed with.
        for words, at in (("", group), *others.items()):
            pairs, row = np.unique(np.stack([group, at]), axis=1, return_inverse=True)
            row = row.ravel()
            if pairs.shape[1] * case.vocab_size > 4 * ELEMENTS:
                continue
            params = {name: value[pairs[0]] for name, value in case.params.items()}
            rows = case.logits[pairs[0]]
            for name, given in mixed_rows(rows, params, {words: pairs[1]}, every) if words else wrong_rows(rows, params,
                    case.params):
                yield name, given.with_rule(lambda one, row=row: OfRows(one, row, token)) if isinstance(given,
                        Family) else OfRows(given, row, token)
        for words, at in {**others, **permuted}.items():
            of_row = np.searchsorted(groups, np.clip(at, groups[0], groups[-1]))
            if len(groups) == case.groups and at.max() < case.groups:
                yield rare_as(words, f"rows are {words}"), OfRows(own, of_row, token)
        cold = case.params["temperature"][all_groups] == 0.0
        is_mixed = (cold.any(axis=1) & ~cold.all(axis=1)).repeat(case.batch)[here]
        keys, row = np.unique(np.stack([group, is_mixed]), axis=1, return_inverse=True)
        params_of = {name: value[keys[0]] for name, value in case.params.items()}
        for words, value in beside_others(params_of["temperature"], keys[1] > 0) if is_mixed.any() else ():
            yield words, OfRows(Given(case.logits[keys[0]], {**params_of, "temperature": value.astype(np.float32)}),
                                row.ravel(), token)
        for words, which in (("largest", np.argmax), ("smallest", np.argmin)):
            for name, value in case.params.items():
                if len(np.unique(value)) > 1:
                    of_call = all_groups[np.arange(calls), which(value[all_groups], axis=1)].repeat(case.batch)[here]
                    pairs, row = np.unique(np.stack([group, of_call]), axis=1, return_inverse=True)
                    mixed = {**{other: values[pairs[0]] for other, values in case.params.items()},
                             name: value[pairs[1]]}
                    yield f"{name} is the {words} of the call", OfRows(Given(case.logits[pairs[0]], mixed), row.ravel(),
                            token)
                    mixed = {**mixed,
                             name: np.where(value[pairs[0]] != np.asarray(OFF[name], value.dtype), mixed[name],
                                            value[pairs[0]])}
                    yield Rare(f"{name} is the {words} of the call, where it is on"), OfRows(
                            Given(case.logits[pairs[0]], mixed), row.ravel(), token)
        for name, draws in wrong_draws(case.vocab_size):
            yield name, OfRows(Given(own.logits, own.params,
                                     lambda *given, draws=draws: draws(probabilities(Given(*given)))), own_row, token)
        if case.batch * case.vocab_size > 1 << 24:
            keys, row = np.unique(np.stack([own_row, place]), axis=1, return_inverse=True)
            yield "the index of row and token together is a float32", of_table(
                lambda: _of_float_index(probabilities(own)[keys[0]], keys[1].astype(np.int64) * case.vocab_size),
                keys[0], row.ravel())

    params = {name: value[group] for name, value in case.params.items()}
    by_rows = [(words, here[own_row]) for words, here in masked(case.logits[groups])]
    peaked = [(words, here) for words, here in _peaked(own, own_row) if here.any() and not here.all()]
    regimes = regimes_of(params, place, case.batch, sound < tiny_of(case.vocab_size), by_rows)
    regimes += [Regime(f"rows with {words}", here) for words, here in peaked]
    return Account(of_sound, sound, tiny_of(case.vocab_size), rules, regimes, len(groups) * case.vocab_size,
                   Draws(params, place, case.batch),
                   [*always_of(params), *(["calls of one row"] if case.batch == 1 else []),
                    *(f"rows with {words}" for words, here in by_rows if here.all())],
                   lambda: max(of(own_p(), own_row, token, case.batch) for of in (repeats_of, shared_sums)) if is_whole
                   else (0.0, ""),
                   lambda: lost_of_seeds(np.concatenate(run.seeds), own_p(), own_row, token) if is_whole else "")


def _of_float_index(p: np.ndarray, begin: np.ndarray) -> np.ndarray:
    """[n, V]: where begin + token is rounded to float32."""
    out, size = np.zeros(p.shape), p.shape[1]
    for i, first in enumerate(begin):
        rounded = (first + np.arange(size)).astype(np.float32).astype(np.int64) - first
        np.add.at(out[i], np.clip(rounded, 0, size - 1), p[i])
    return out


def _put_back(params: Params, groups: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Rows [calls, batch] sorted by a parameter and not put back, or by the wrong permutation: whose token a place
    has."""
    for name, value in params.items():
        if len(np.unique(value)) > 1:
            for words, sign in (("rising", 1.0), ("falling", -1.0)):
                order = np.argsort(sign * value[groups].astype(np.float64), axis=1, kind="stable")
                yield Rare(f"sorted by {words} {name} and not put back"), np.take_along_axis(groups, order,
                        axis=1).ravel()
                yield (Rare(f"sorted by {words} {name} and put back by the wrong permutation"),
                       np.take_along_axis(groups, np.take_along_axis(order, order, axis=1), axis=1).ravel())


def _peaked(given: Given, row: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Regimes of draws [n] by the mass of the likeliest token before filters."""
    bare = {name: value if name == "temperature" else np.full_like(value, OFF[name]) for name,
            value in given.params.items()}
    top = probabilities(Given(given.logits, bare)).max(axis=1)[row]
    for bound in (0.5, 0.9, 0.99):
        yield f"a token of {bound:g} or more", top >= bound


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
