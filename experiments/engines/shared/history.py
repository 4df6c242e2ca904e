"""Requests with a history: penalties, bad words, logit bias and minimum lengths, and what they mean by the
reference."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

PROMPT, OUTPUT = [0, 1, 2], [4, 1, 1]  # of every request
REPETITION, FREQUENCY, PRESENCE = 1.3, 0.4, 0.3
BAD_WORDS = [[3], [1, 6], [4, 7]]  # 6 may not come after 1; 7 may, which would have to follow 4
STOP, MIN_TOKENS = 2, 5  # may not come before the fifth token of the output
BIASED, BIAS = 5, 1.5
DROPPED = [STOP, 3, 6]  # of every row, by the words and the minimum length
DESCRIPTION = f"every request has the prompt {PROMPT} and the output {OUTPUT}"


def penalized(logits: np.ndarray, params: dict[str, np.ndarray]) -> np.ndarray:
    """Probabilities after bad words, penalties, temperature and filters."""
    import draftproof

    size = len(logits)
    return draftproof.process_rows(
        logits, params, bad_words=[BAD_WORDS] * size, repetition_penalty=REPETITION, frequency_penalty=FREQUENCY,
        presence_penalty=PRESENCE, prompt_tokens=[PROMPT] * size, output_tokens=[OUTPUT] * size).probabilities


def with_penalties() -> dict[str, Any]:
    """Options of a component of samplers: the generic cases with small vocabularies."""
    from draftproof.callable.cases.sample_cases import sample_cases

    return {"distribution": penalized, "cases": [case for case in sample_cases(False) if 8 <= case.vocab_size <= 33
                                                 and not case.readings and not case.may_raise]}


def with_constraints(cuts: bool = True) -> dict[str, Any]:
    """Options of a component of filters: the generic cases, in whose rows the tokens are masked that the engine should
    drop; without those about exact ties, which a bias would break by its rounding. Without cuts: top-k and top-p are
    off."""
    from draftproof.callable.cases.filter_cases import filter_cases

    cases = []
    for case in filter_cases(False):
        if case.vocab_size >= 31 and not case.name.startswith(("ties", "top_p equal")):
            rows = case.logits.copy()
            rows[:, DROPPED] = -np.inf
            off = {} if cuts else {"top_k": 0 * case.params["top_k"], "top_p": 0 * case.params["top_p"] + 1}
            cases.append(dataclasses.replace(case, logits=rows, source="", params={**case.params, **off}))
    return {"cases": cases}


def before_constraints(logits: np.ndarray, bias: float = BIAS) -> np.ndarray:
    """The rows that an engine gets: what it should drop is likelier than all else, and BIASED is less likely by the
    bias."""
    given = logits.copy()
    given[:, DROPPED] = logits.max(axis=1, keepdims=True) + 1.0
    given[:, BIASED] -= np.float32(bias)
    return given
