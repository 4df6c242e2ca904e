"""Audits of what a sampler drew, and checks of filters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core, _forms, _requests
from ._core import Error
from ._results import Audit, FilterCheck, FilterRow, audit_of
from ._sampling import row_arguments, threads_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._types import Array, DrawAuditOptions, Params, RowOptions, StepAuditOptions


def _places(given: dict[str, Any], size: int) -> dict[str, Any]:
    """Where draws were made: seed, step, row and position, each [n], for tests of independence."""
    out: dict[str, Any] = {}
    for name, dtype in (("seed", np.uint64), ("step", np.int64), ("row", np.int64), ("position", np.int64)):
        value = given.pop(f"draw_{name}", None)
        if value is not None:
            out[f"at_{name}"] = _forms.integers(value, f"draw_{name}", dtype, size)
    return out


def audit_draws(samples: Array, logits: Array | None = None, params: Params | None = None, *,
                probs: Array | None = None, group: Array | None = None, alpha: float = 1e-6, tv_wanted: float = 0.05,
                seed: int = 0, threads: int | None = None, **given: Unpack[DrawAuditOptions]) -> Audit:
    """Are these draws a sample of the distributions they should have been drawn from?

    samples: [n] token ids. logits: [G, V] with params [G] as of process_rows; or probs: [G, V], final.
    group: [n], the row that each sample was drawn from; not needed where G is 1.
    draw_seed, draw_step, draw_row, draw_position: [n] each, where the draw was made, for tests of independence.
    A token outside of the vocabulary is a failure of the sampler: the verdict is 'biased'.
    """
    if (logits is None) == (probs is None):
        raise Error("logits: give either logits or probs")
    drawn = _forms.integers(samples, "samples", np.int64)
    rest: dict[str, Any] = dict(given)
    places = _places(rest, drawn.size)
    arguments = row_arguments(logits if probs is None else probs, params, rest, threads,
                              "logits" if probs is None else "probs")
    if group is not None:
        arguments["group"] = _forms.integers(group, "group", np.int64, drawn.size)
    return audit_of(_core.audit_draws({**arguments, **places, "target_is_probabilities": probs is not None,
                                       "samples": drawn, "alpha": alpha, "tv_wanted": tv_wanted, "seed": seed}))


def audit_steps(output_tokens: Array, draft_tokens: Array, draft_probs: Array | None, target_logits: Array | None,
                cu_num_draft_tokens: Array, params: Params | None = None, *, draft_logits: Array | None = None,
                draft_processed: bool = True, target_probs: Array | None = None, draft_parents: Array | None = None,
                verifier: str = "chain", group: Array | None = None, alpha: float = 1e-6, tv_wanted: float = 0.05,
                seed: int = 0, threads: int | None = None, **given: Unpack[StepAuditOptions]) -> Audit:
    """Did a verifier emit what the target's distributions ask for?

    output_tokens: [B, K + 1], what each step emitted, -1 after the last token; the rest as of verify. (The history of
        a request is in params['output_tokens'] here.)
    verifier: a name of verifiers(), or 'any', a lossless one of which nothing more is known.
    group: [B], requests of one context. draw_seed, draw_step, draw_row: [B], as of audit_draws.
    """
    emitted = _forms.as_numpy(output_tokens, "output_tokens")
    if emitted.ndim != 2 or emitted.dtype.kind not in "iu":
        raise Error(f"output_tokens: is {emitted.dtype} {list(emitted.shape)}; expected whole numbers [B, K + 1]")
    size = emitted.shape[0]
    rest: dict[str, Any] = dict(given)
    places = _places(rest, size)
    arguments = _requests.draft_arguments(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, rest,
                                          requests=size, draft_logits=draft_logits, draft_processed=draft_processed,
                                          target_probs=target_probs, draft_parents=draft_parents)
    if group is not None:
        arguments["group"] = _forms.integers(group, "group", np.int64, size)
    tokens = _forms.flat(emitted, np.int64)
    return audit_of(_core.audit_steps({**arguments, **places, "emitted_tokens": tokens, "verifier": verifier,
                                       "alpha": alpha, "tv_wanted": tv_wanted, "seed": seed,
                                       "threads": threads_of(threads, arguments["target"])}))


def check_filter(logits: Array, filtered_logits: Array | None = None, params: Params | None = None, *,
                 kept: Array | None = None, threads: int | None = None, **given: Unpack[RowOptions]) -> FilterCheck:
    """Which tokens did a filter wrongly keep or drop? Exact: nothing is drawn.

    logits: [B, V] raw, params as of process_rows. filtered_logits: [B, V], logits over the temperature with dropped
    tokens at -inf (a row may be shifted by a constant); or kept: bool [B, V].
    Ties at a cut, sums of floats within rounding and the order of the filters are left to the engine.
    """
    if (filtered_logits is None) == (kept is None):
        raise Error("filtered_logits: give either filtered_logits or kept")
    arguments = row_arguments(logits, params, given, threads)
    shape = tuple(arguments["target"].shape)
    if kept is not None:
        array = _forms.as_numpy(kept, "kept")
        if array.dtype != np.bool_ or array.shape != shape:
            raise Error(f"kept: is {array.dtype} {list(array.shape)}; expected booleans {list(shape)}")
        arguments["kept"] = _forms.flat(array, np.bool_).view(np.uint8)
    else:
        arguments["filtered"] = _forms.rows(filtered_logits, "filtered_logits", shape[1])
        if arguments["filtered"].shape[0] != shape[0]:
            raise Error(f"filtered_logits: has shape {list(arguments['filtered'].shape)}; expected {list(shape)}")
    found = _core.check_filter(arguments)
    found["failing"] = [FilterRow(**{**row, "wrongly_kept": tuple(map(int, row["wrongly_kept"])),
                                     "wrongly_dropped": tuple(map(int, row["wrongly_dropped"]))})
                        for row in found["failing"]]
    return FilterCheck(**found)
