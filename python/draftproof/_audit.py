"""Audits of what a sampler drew, checks of filters, and proofs."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core, _forms
from ._core import Error
from ._results import Audit, FilterCheck, FilterRow, Proof, audit_of
from ._sampling import _row_arguments, _threads, draft_arguments


def _places(given: dict[str, Any], size: int) -> dict[str, Any]:
    """Where draws were made: seed, step, row and position, each [n], for tests of independence."""
    out: dict[str, Any] = {}
    for name, dtype in (("seed", np.uint64), ("step", np.int64), ("row", np.int64), ("position", np.int64)):
        value = given.pop(f"draw_{name}", None)
        if value is not None:
            out[f"at_{name}"] = _forms.integers(value, f"draw_{name}", dtype, size)
    return out


def audit_draws(samples: Any, logits: Any = None, params: Any = None, *, probs: Any = None, group: Any = None,
                alpha: float = 1e-6, tv_wanted: float = 0.05, seed: int = 0, threads: int | None = None,
                **given: Any) -> Audit:
    """Are these draws a sample of the distributions they should have been drawn from?

    samples: [n] token ids. logits: [G, V] with params [G] as of process_rows; or probs: [G, V], final.
    group: [n], the row that each sample was drawn from; not needed where G is 1.
    draw_seed, draw_step, draw_row, draw_position: [n] each, where the draw was made, for tests of independence.
    A token outside of the vocabulary is a failure of the sampler: the verdict is 'biased'.
    """
    if (logits is None) == (probs is None):
        raise Error("logits: give either logits or probs")
    drawn = _forms.integers(samples, "samples", np.int64)
    places = _places(given, drawn.size)
    arguments = _row_arguments(logits if probs is None else probs, params, given)
    arguments["target_is_probabilities"] = probs is not None
    if group is not None:
        arguments["group"] = _forms.integers(group, "group", np.int64, drawn.size)
    return audit_of(_core.audit_draws({**arguments, **places, "samples": drawn, "alpha": alpha, "tv_wanted": tv_wanted,
                                       "audit_seed": seed, "threads": _threads(threads)}))


def audit_steps(output_tokens: Any, draft_tokens: Any, draft_probs: Any, target_logits: Any, cu_num_draft_tokens: Any,
                params: Any = None, *, verifier: str = "chain", group: Any = None, alpha: float = 1e-6,
                tv_wanted: float = 0.05, seed: int = 0, threads: int | None = None, **given: Any) -> Audit:
    """Did a verifier emit what the target's distributions ask for?

    output_tokens: [B, K + 1], what each step emitted, -1 after the last token; the rest as of verify, with
    target_probs= in place of target_logits.
    verifier: a name of verifiers(), or 'any', a lossless one of which nothing more is known.
    group: [B], requests of one context. draw_seed, draw_step, draw_row: [B], as of audit_draws.
    """
    emitted = _forms.as_numpy(output_tokens, "output_tokens")
    if emitted.ndim != 2 or emitted.dtype.kind not in "iu":
        raise Error(f"output_tokens: is {emitted.dtype} {list(emitted.shape)}; expected whole numbers [B, K + 1]")
    size = emitted.shape[0]
    places = _places(given, size)
    arguments = draft_arguments(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, given, size)
    if group is not None:
        arguments["group"] = _forms.integers(group, "group", np.int64, size)
    tokens = np.ascontiguousarray(emitted.astype(np.int64, copy=False)).reshape(-1)
    return audit_of(_core.audit_steps({**arguments, **places, "emitted_tokens": tokens, "verifier": verifier,
                                       "alpha": alpha, "tv_wanted": tv_wanted, "audit_seed": seed,
                                       "threads": _threads(threads)}))


def check_filter(logits: Any, filtered_logits: Any = None, params: Any = None, *, kept: Any = None,
                 threads: int | None = None, **given: Any) -> FilterCheck:
    """Which tokens did a filter wrongly keep or drop? Exact: nothing is drawn.

    logits: [B, V] raw, params as of process_rows. filtered_logits: [B, V], logits over the temperature with dropped
    tokens at -inf (a row may be shifted by a constant); or kept: bool [B, V].
    Ties at a cut, sums of floats within rounding and the order of the filters are left to the engine.
    """
    if (filtered_logits is None) == (kept is None):
        raise Error("filtered_logits: give either filtered_logits or kept")
    arguments = _row_arguments(logits, params, given)
    shape = tuple(arguments["target"].shape)
    if kept is not None:
        array = _forms.as_numpy(kept, "kept")
        if array.dtype != np.bool_ or array.shape != shape:
            raise Error(f"kept: is {array.dtype} {list(array.shape)}; expected booleans {list(shape)}")
        arguments["kept"] = np.ascontiguousarray(array.reshape(-1)).view(np.uint8)
    else:
        arguments["filtered"] = _forms.rows(filtered_logits, "filtered_logits", shape[1])
        if arguments["filtered"].shape[0] != shape[0]:
            raise Error(f"filtered_logits: has shape {list(arguments['filtered'].shape)}; expected {list(shape)}")
    found = _core.check_filter({**arguments, "threads": _threads(threads)})
    found["failing"] = [FilterRow(**{**row, "wrongly_kept": tuple(map(int, row["wrongly_kept"])),
                                     "wrongly_dropped": tuple(map(int, row["wrongly_dropped"]))})
                        for row in found["failing"]]
    return FilterCheck(**found)


def prove(verifier: str = "all", *, vocab_size: int = 3, draft_len: int = 3, steps: int = 2, instances: int = 20,
          seed: int = 0, threads: int | None = None) -> list[Proof]:
    """Is the distribution of a verifier exactly the target's? By enumeration over fractions, case by case."""
    return [Proof(**row) for row in _core.prove({"verifier": verifier, "vocab_size": vocab_size, "draft_len": draft_len,
                                                 "steps": steps, "instances": instances, "proof_seed": seed,
                                                 "threads": _threads(threads)})]
