"""What an adapter lists: the functions of an engine that are driven, each as a callable of
draftproof.audit_callable."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable

import numpy as np

#: The total variation distance that is looked for where kernels are interpreted: 1 to 20 ms a program.
COARSE = 0.15


@dataclasses.dataclass(frozen=True)
class Component:
    """name: what the function is for; file: where it is in the engine's package; function: its name there; kind, call:
    as of audit_callable; tv: the total variation distance that is looked for; options: more arguments of it; note: what
    the adapter does around the function, or what a stub replaced."""

    name: str
    file: str
    function: str
    kind: str
    call: Callable[..., Any]
    tv: float = 0.05
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    note: str = ""


def mixed(seed: int) -> int:
    """32 bits of all 64: PyTorch's CPU generator and llama.cpp take no more, and their callers see to the rest."""
    return ((int(seed) ^ (int(seed) >> 31)) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF) >> 32


#: Option of a component: its drafts have probabilities.
WITH_PROBABILITIES = {"one_hot": False}


def by_length(run: Callable[..., np.ndarray], draft_tokens: np.ndarray, draft_probs: np.ndarray | None,
              target_logits: np.ndarray, cu_num_draft_tokens: np.ndarray) -> np.ndarray:
    """For engines whose batches have drafts of one length K: run(requests [n], drafts [n, K], probabilities [n, K, V]
    or None, target rows [n, K + 1, V]) -> tokens [n, K + 1], -1 after the last. Gives those of all requests."""
    ends = np.asarray(cu_num_draft_tokens)
    lens = np.diff(ends, prepend=0)
    out = np.full((len(ends), lens.max() + 1), -1, np.int64)
    for length in np.unique(lens):
        chosen = np.flatnonzero(lens == length)
        of_draft = (ends - lens)[chosen][:, None] + np.arange(length)
        of_target = (ends - lens + np.arange(len(ends)))[chosen][:, None] + np.arange(length + 1)
        probs = None if draft_probs is None else draft_probs[of_draft].reshape(*of_draft.shape, target_logits.shape[1])
        out[chosen, :length + 1] = run(chosen, draft_tokens[of_draft].astype(np.int64), probs, target_logits[of_target])
    return out


def padded(emitted: list[np.ndarray], width: int) -> np.ndarray:
    """Tokens of each request [B, width], -1 after the last."""
    out = np.full((len(emitted), width), -1, np.int64)
    for row, tokens in zip(out, emitted):
        row[:len(tokens)] = tokens
    return out
