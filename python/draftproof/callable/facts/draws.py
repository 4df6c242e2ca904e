"""What a sampler drew and what a filter kept (observed.py), and deviations that read rows and parameters wrongly."""

from __future__ import annotations

import dataclasses
from typing import Callable, Iterator

import numpy as np

from ..cases.filter_cases import FilterRun
from ..evidence import evidence
from ..evidence.sample_judge import SampleRun
from . import grammar
from .grammar import Deviation, Params, Rows, Whose, rare
from .numbers import folded, lost_of_seeds, repeats_of, shared_of, wrong_draws
from .observed import ELEMENTS, Draws, Observed, Part, Rule, of_logits, of_rows, regimes_of, window


def observed_draws(run: SampleRun, around: int) -> Observed | None:
    """around: a row, those next to which are looked at where all are too many."""
    case = run.case
    group, token = np.concatenate(run.groups), np.concatenate(run.samples)
    if not ((token >= 0) & (token < case.vocab_size)).all():
        return None
    calls = group.reshape(-1, case.batch)
    of_calls = {name: value[calls] for name, value in case.params.items()}
    others = [*((words, calls[:, at].ravel(), is_rare) for words, at, is_rare in grammar.neighbours(case.batch)),
              *((words, np.take_along_axis(calls, rank, axis=1).ravel(), is_rare)
                for words, rank, is_rare in grammar.compacted(of_calls))]
    here = np.flatnonzero(np.isin(group, window(around, case.groups, max(1, ELEMENTS // case.vocab_size))))
    whole = len(here) == len(group)
    place = np.tile(np.arange(case.batch), len(calls))[here]
    moved = [(words, at[here], is_rare) for words, at, is_rare in (*others, *_put_back(of_calls, calls))]
    others = moved[:len(others)]
    group, token = group[here], token[here]
    groups, own_row = np.unique(group, return_inverse=True)
    own = Rows(case.logits[groups], {name: value[groups] for name, value in case.params.items()})
    of_sound = of_rows(own, own_row, token)

    def beside(at: np.ndarray) -> tuple[Rows, np.ndarray, Callable[[Rows], Rule]]:
        """at: [n], beside the draw's own row. The rows, once for each pair; at of each; a rule of draws of rules of
        those rows."""
        pairs, row = np.unique(np.stack([group, at]), axis=1, return_inverse=True)
        rows = Rows(case.logits[pairs[0]], {name: value[pairs[0]] for name, value in case.params.items()})
        return rows, pairs[1], lambda one: of_rows(one, row.ravel(), token)

    def rules() -> Iterator[Deviation]:
        for wrong in grammar.wrong_rows(own, case.params):
            yield wrong.then(lambda one: of_rows(one, own_row, token))
        for words, at, is_rare in others:
            rows, of, drawn = beside(at)
            if rows.logits.size <= 4 * ELEMENTS:
                mixed = grammar.mixed_rows(rows, [(words, of, is_rare)], case.params)
                yield from (wrong.then(drawn) for wrong in mixed)
        for words, at, is_rare in moved if len(groups) == case.groups else ():
            yield Deviation(f"rows are {words}", lambda at=at: of_rows(own, at, token), is_rare=is_rare)
        cold = of_calls["temperature"] == 0.0
        is_mixed = (cold.any(axis=1) & ~cold.all(axis=1)).repeat(case.batch)[here]
        if is_mixed.any():
            rows, of, drawn = beside(is_mixed.astype(np.int64))
            yield from (wrong.then(drawn) for wrong in grammar.beside_others(rows, of > 0))
        for name, value in case.params.items():
            for words, which in (("largest", np.argmax), ("smallest", np.argmin)) if len(np.unique(value)) > 1 else ():
                at = np.take_along_axis(calls, which(of_calls[name], axis=1)[:, None], axis=1).repeat(case.batch)
                rows, of, drawn = beside(at[here])
                yield from (wrong.then(drawn) for wrong in grammar.of_call(rows, name, words, value[of]))
        for name, draws in wrong_draws(case.vocab_size):
            yield rare(name, lambda draws=draws: of_rows(
                dataclasses.replace(own, draws=lambda *given: draws(Rows(*given).probabilities)), own_row, token))

    sound = of_sound()
    draws = Draws({name: value[group] for name, value in case.params.items()}, place, case.batch)
    more = [*((words, of[own_row]) for words, of in of_logits(own)),
            ("calls of one row", np.full(len(place), case.batch == 1))]
    p = own.probabilities.astype(np.float64)
    return Observed(of_sound, sound, of_sound.tiny, rules, regimes_of(draws, sound < of_sound.tiny, more),
                    own.logits.size, draws, lambda: _shared(p, own_row, token, case.batch) if whole else (0.0, ""),
                    lambda: lost_of_seeds(np.concatenate(run.seeds), p, own_row, token) if whole else "")


def _put_back(params: Params, calls: np.ndarray) -> Iterator[Whose]:
    """Rows [calls, batch] sorted by a parameter and not put back, or by the wrong permutation: whose token a place
    has."""
    for name, value in params.items():
        for words, sign in (("rising", 1.0), ("falling", -1.0)) if len(np.unique(value)) > 1 else ():
            order = np.argsort(sign * value.astype(np.float64), axis=1, kind="stable")
            for how, at in (("not put back", order),
                            ("put back by the wrong permutation", np.take_along_axis(order, order, axis=1))):
                yield f"sorted by {words} {name} and {how}", np.take_along_axis(calls, at, axis=1).ravel(), True


def _shared(p: np.ndarray, row: np.ndarray, token: np.ndarray, batch: int) -> tuple[float, str]:
    return max(repeats_of(p, row, token, batch), shared_of(p, row, token, np.arange(len(row)), len(row), batch))


def of_sets(given: Rows, kept: np.ndarray, zone: np.ndarray) -> Rule:
    """Whether rows [n] kept what a deviation gives. kept, zone: [n, V], of which a token may be kept or not."""
    count, certain = len(kept), np.array([[1.0, 0.0]])

    def parts() -> list[Part]:
        wrong = (((given.probabilities > 0.0) != kept) & ~zone).any(axis=1)
        return [Part("rows", certain, np.zeros(count, np.int64), wrong.astype(np.int64), np.arange(count),
                     lambda: (np.zeros(count, bool), certain))]

    return Rule(count, kept.shape[1], parts, given, kept)


def observed_sets(run: FilterRun, around: int) -> Observed | None:
    case, left = run.case, run.left
    if left is None:
        return None
    at = window(around, len(left), max(1, ELEMENTS // case.vocab_size))
    kept = left[at] > -np.inf
    rows = Rows(case.logits[at], {name: value[at] for name, value in case.params.items()})
    zone = evidence.Rows.of(rows.logits, rows.params).zone

    def rules() -> Iterator[Deviation]:
        whose = [(words, index[at], is_rare)
                 for words, index, is_rare in (*grammar.neighbours(len(left)), *grammar.compacted(case.params))]
        for wrong in grammar.every_wrong(rows, whose, case.params):
            yield wrong.then(lambda one: of_sets(one, kept, zone))
        if case.vocab_size > 1 << 16:
            yield rare("ids have 16 bits", lambda: of_sets(dataclasses.replace(
                rows, draws=lambda *given: folded(Rows(*given).probabilities, 1 << 16)), kept, zone))

    of_sound, draws = of_sets(rows, kept, zone), Draws(rows.params, at, len(left))
    sound = of_sound()
    return Observed(of_sound, sound, of_sound.tiny, rules,
                    regimes_of(draws, sound < of_sound.tiny, of_logits(rows)), rows.logits.size, draws)
