"""Rows to distributions, tokens and verified drafts: the reference, bit for bit what the program gives."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np

from . import _core, _forms
from ._core import Error


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """Distributions that rows of logits have after masks, penalties, temperature and filters.

    probabilities: float32 [B, V], 0 for dropped tokens.
    kept_mass: float32 [B], share of the unfiltered row's mass that the kept tokens have.
    kept_count: int64 [B].
    """

    probabilities: np.ndarray
    kept_mass: np.ndarray
    kept_count: np.ndarray

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.probabilities, dtype=dtype)


@dataclasses.dataclass(frozen=True, eq=False)
class Verified:
    """What verification emits.

    tokens: int32 [B, K + 1] (trees: [B, depth + 1]): accepted drafts, the recovered or bonus token, then -1.
    num_accepted: int32 [B].
    logprobs: float32, as tokens: natural log under the target's distribution, -inf where padded; or None.
    path: int32 [B, K]: the accepted nodes, then -1.
    """

    tokens: np.ndarray
    num_accepted: np.ndarray
    logprobs: np.ndarray | None
    path: np.ndarray

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.tokens, dtype=dtype)


def _threads(threads: int | None) -> int:
    return threads if threads is not None else os.cpu_count() or 1


def _row_arguments(logits: Any, params: Any, given: dict[str, Any]) -> dict[str, Any]:
    target = _forms.rows(logits, "logits")
    size, vocab_size = target.shape
    prompt_tokens, output_tokens = given.pop("prompt_tokens", None), given.pop("output_tokens", None)
    allowed = given.pop("allowed", None)
    arguments = {"target": target, **_forms.parameters(params, given, size)}
    arguments.update(_forms.histories(prompt_tokens, output_tokens, size))
    arguments.update(_forms.masks(allowed, size, vocab_size))
    return arguments


def process_rows(logits: Any, params: Any = None, *, threads: int | None = None, **given: Any) -> Rows:
    """The distribution of every row of logits.

    logits: [B, V] float32, float16 or bfloat16: numpy, or anything with DLPack.
    params, keywords: temperature, top_k, top_p, min_p, repetition_penalty, frequency_penalty, presence_penalty, each
        [B] or one number; prompt_tokens, output_tokens: lists of ids, one a row, for the penalties; allowed: bool
        [B, V]; filter_order 'joint' or 'top_k_first'; ties 'exact_k' or 'keep_all'; nan_policy 'error' or
        'as_minus_inf'.
    Raises Error naming the row, the column and what was expected.
    """
    arguments = _row_arguments(logits, params, given)
    return Rows(**_core.process_rows({**arguments, "threads": _threads(threads)}))


def sample(logits: Any, params: Any = None, seeds: Any = 0, *, steps: Any = 0, sampler: str = "inverse",
           threads: int | None = None, **given: Any) -> np.ndarray:
    """One token of every row: int32 [B].

    logits, params, keywords: as process_rows.
    seeds: [B] or one number, 64 bits; steps: [B] or one number, tokens that the seed has drawn before. A seed must not
        meet the same step twice.
    sampler: 'inverse' or 'race'.
    """
    arguments = _row_arguments(logits, params, given)
    size = arguments["target"].shape[0]
    arguments["seeds"] = _forms.integers(seeds, "seeds", np.uint64, size)
    arguments["steps"] = _forms.integers(steps, "steps", np.uint32, size)
    return _core.sample({**arguments, "sampler": sampler, "threads": _threads(threads)})


def draft_arguments(draft_tokens: Any, draft_probs: Any, target_logits: Any, cu_num_draft_tokens: Any, params: Any,
                    given: dict[str, Any], requests: int | None) -> dict[str, Any]:
    """What verify and audit_steps have in common."""
    target_probs = given.pop("target_probs", None)
    if (target_logits is None) == (target_probs is None):
        raise Error("target_logits: give either target_logits or target_probs")
    from_logits = target_probs is None
    target = _forms.rows(target_logits if from_logits else target_probs,
                         "target_logits" if from_logits else "target_probs")
    tokens = _forms.integers(draft_tokens, "draft_tokens", np.int32)
    offsets = _forms.offsets(cu_num_draft_tokens, requests, tokens.size)
    size, vocab_size = offsets.size - 1, target.shape[1]
    n_rows = tokens.size + size
    if target.shape[0] != n_rows:
        raise Error(f"target: has {target.shape[0]} rows; expected {n_rows}, one a draft and one a request")
    parents = given.pop("draft_parents", None)
    prompt_tokens, output_tokens = given.pop("prompt_tokens", None), given.pop("output_tokens", None)
    allowed = given.pop("allowed", None)
    arguments = {"target": target, "target_is_probabilities": not from_logits, "draft_tokens": tokens,
                 "cu_num_draft_tokens": offsets, **_forms.parameters(params, given, size)}
    if parents is not None:
        arguments["draft_parents"] = _forms.integers(parents, "draft_parents", np.int32, tokens.size)
    if draft_probs is not None:
        arguments["proposal"] = _forms.rows(draft_probs, "draft_probs", vocab_size)
        expected = tokens.size if parents is None else n_rows
        if arguments["proposal"].shape[0] != expected:
            raise Error(f"draft_probs: has {arguments['proposal'].shape[0]} rows; expected {expected}")
    arguments.update(_forms.histories(prompt_tokens, output_tokens, size))
    arguments.update(_forms.masks(allowed, n_rows, vocab_size))
    return arguments


def verify(draft_tokens: Any, draft_probs: Any, target_logits: Any, cu_num_draft_tokens: Any, params: Any = None,
           seeds: Any = 0, *, verifier: str = "chain", steps: Any = 0, positions: Any = None, sampler: str = "inverse",
           logprobs: bool = True, threads: int | None = None, **given: Any) -> Verified:
    """One verification step of every request, by any verifier of `verifiers()`.

    B requests with M drafts in all; request b has K_b.
    draft_tokens: [M]. draft_probs: [M, V] (trees: [M + B, V]), what the drafts were drawn from, or None: one-hot.
    target_logits: [M + B, V]: of each request its drafts' rows, then its bonus row; or None with target_probs=.
    cu_num_draft_tokens: [B], inclusive sums of K_b, or [B + 1] from 0.
    params, keywords: as process_rows, [B] or one number; draft_parents: [M], -1 for the context: trees.
    seeds, steps: [B] or one number; positions: [B], of coupled verifiers.
    verifier: a name, with parameters where it takes some ('synthetic:rate=0.8').
    """
    requests = None
    for name, value in (("seeds", seeds), ("steps", steps)):
        array = _forms.as_numpy(value, name)
        if array.ndim == 1:
            requests = array.size
            break
    arguments = draft_arguments(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, given, requests)
    size = arguments["cu_num_draft_tokens"].size - 1
    arguments["seeds"] = _forms.integers(seeds, "seeds", np.uint64, size)
    arguments["steps"] = _forms.integers(steps, "steps", np.uint32, size)
    if positions is not None:
        arguments["positions"] = _forms.integers(positions, "positions", np.uint32, size)
    return Verified(**_core.verify({**arguments, "verifier": verifier, "sampler": sampler, "logprobs": logprobs,
                                    "threads": _threads(threads)}))


@dataclasses.dataclass(frozen=True)
class Verifier:
    """A verifier of the registry: its name, the drafts that it takes and how they must be drawn."""

    name: str
    draft: str
    drafts_drawn: str
    lossless: bool
    guarantee: str
    source: str
    parameters: tuple[str, ...]


def verifiers() -> list[Verifier]:
    """Every verifier by name, as `draftproof verifiers` lists them."""
    return [Verifier(**row) for row in _core.verifiers()]
