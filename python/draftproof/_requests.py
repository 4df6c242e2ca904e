"""Requests, with what constrains their rows and with their drafts, into the form of the extension module: lists of
lists become one array and offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable

import numpy as np

from . import _forms
from ._core import Error

#: What RowOptions has beside parameters and settings.
CONSTRAINTS = ("uncond_logits", "allowed", "bitmask", "allowed_ids", "stop_ids", "dry_breakers", "prompt_tokens",
               "output_tokens", "bad_words", "logit_bias")


def row_arguments(params: Any, given: Mapping[str, Any], size: int, rows: int, vocab_size: int) -> dict[str, Any]:
    """RowOptions of B = size requests with so many rows in all, from a dict and from keywords."""
    if params is not None and not isinstance(params, Mapping):
        raise Error(f"params: is {type(params).__name__}; expected a dict of arrays or numbers by name")
    merged = {name: value for name, value in {**(params or {}), **given}.items() if value is not None}
    constraints = {name: merged.pop(name) for name in CONSTRAINTS if name in merged}
    out = _forms.parameters(merged, size, CONSTRAINTS)
    if "uncond_logits" in constraints:
        out["unconditional"] = _forms.rows(constraints["uncond_logits"], "uncond_logits", vocab_size)
        if out["unconditional"].shape[0] != rows:
            raise Error(f"uncond_logits: has shape {list(out['unconditional'].shape)}; expected [{rows}, {vocab_size}]")
        if "guidance_scale" not in out:
            raise Error("uncond_logits: needs guidance_scale; without it every scale is 1 and this has no use")
    out.update(_bits(constraints.get("allowed"), constraints.get("bitmask"), rows, vocab_size))
    for name in ("prompt_tokens", "output_tokens", "stop_ids", "allowed_ids", "dry_breakers"):
        if name in constraints:
            out.update(ids(constraints[name], name, size))
    if "bad_words" in constraints:
        out.update(_bad_words(constraints["bad_words"], size))
    if "logit_bias" in constraints:
        out.update(_logit_bias(constraints["logit_bias"], size))
    return out


def draft_arguments(draft_tokens: Any, draft_probs: Any, target_logits: Any, cu_num_draft_tokens: Any, params: Any,
                    given: Mapping[str, Any], *, requests: int | None, draft_logits: Any, draft_processed: bool,
                    target_probs: Any, draft_parents: Any) -> dict[str, Any]:
    """What verify and audit_steps have in common. requests: B, where it is known otherwise."""
    if (target_logits is None) == (target_probs is None):
        raise Error("target_logits: give either target_logits or target_probs")
    if draft_probs is not None and draft_logits is not None:
        raise Error("draft_logits: give draft_probs or draft_logits or neither")
    target_name = "target_logits" if target_probs is None else "target_probs"
    target = _forms.rows(target_logits if target_probs is None else target_probs, target_name)
    tokens = _forms.integers(draft_tokens, "draft_tokens", np.int32)
    offsets = _draft_offsets(cu_num_draft_tokens, requests, tokens.size, target.shape[0])
    size, vocab_size = offsets.size - 1, target.shape[1]
    rows = tokens.size + size
    if target.shape[0] != rows:
        raise Error(f"{target_name}: has {target.shape[0]} rows; expected {rows}, one a draft and one a request")
    arguments = {"target": target, "target_is_probabilities": target_probs is not None, "draft_tokens": tokens,
                 "cu_num_draft_tokens": offsets, **row_arguments(params, given, size, rows, vocab_size)}
    if draft_parents is not None:
        arguments["draft_parents"] = _forms.integers(draft_parents, "draft_parents", np.int32, tokens.size)
    for name, proposal in (("draft_probs", draft_probs), ("draft_logits", draft_logits)):
        if proposal is None:
            continue
        arguments["proposal"] = _forms.rows(proposal, name, vocab_size)
        expected = tokens.size if draft_parents is None else rows
        if arguments["proposal"].shape[0] != expected:
            raise Error(f"{name}: has {arguments['proposal'].shape[0]} rows; expected {expected}")
        arguments.update(proposal_is_logits=name == "draft_logits", draft_processed=draft_processed)
    return arguments


def recorded_arguments(recorded: Mapping[str, Any], drafts: int, size: int, vocab_size: int) -> dict[str, Any]:
    """Random numbers that an engine recorded: M = drafts, B = size."""
    rows = drafts + size
    shapes: dict[str, list[tuple[int, ...]]] = {"uniforms": [(drafts,), (rows,)], "draw_uniforms": [(rows,), (size,)],
              "exponential_noise": [(rows, vocab_size), (size, vocab_size)],
              "gumbel_noise": [(rows, vocab_size), (size, vocab_size)]}
    counts = {"recovered_tokens": drafts, "bonus_tokens": size}
    given = {name: value for name, value in recorded.items() if value is not None}
    return {name: _forms.recorded(value, name, shapes[name]) if name in shapes
            else _forms.integers(value, name, np.int32, counts[name]) for name, value in given.items()}


def _each(value: Any, name: str, size: int | None, what: str) -> Sequence[Any]:
    """One entry a request (or any number, where no size is given)."""
    is_list = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
    if not is_list and not (isinstance(value, np.ndarray) and value.ndim > 0):
        raise Error(f"{name}: is {type(value).__name__}; expected a list of {what}"
                    + ("" if size is None else f", one for each of {size} requests"))
    if size is not None and len(value) != size:
        raise Error(f"{name}: has {len(value)} lists; expected {size}, one a request")
    return value


def _joined(parts: Sequence[Any], name: str, place: Callable[[int], str], offsets_name: str) -> dict[str, Any]:
    """Lists of ids as one array and its offsets; place(i) names list i."""
    arrays = [_forms.integers(np.zeros(0, np.int32) if part is None else part, place(i), np.int32)
              for i, part in enumerate(parts)]
    offsets = np.zeros(len(arrays) + 1, np.int64)
    np.cumsum([array.size for array in arrays], out=offsets[1:])
    return {name: np.concatenate(arrays) if arrays else np.zeros(0, np.int32), offsets_name: offsets}


def ids(lists: Any, name: str, size: int) -> dict[str, Any]:
    parts = _each(lists, name, size, "lists of ids")
    out = _joined(parts, name, lambda b: f"{name}[{b}]", f"cu_{name}")
    if name == "allowed_ids":  # an empty list of the library's is no constraint
        for b, count in enumerate(np.diff(out["cu_allowed_ids"])):
            if count == 0 and parts[b] is not None:
                raise Error(f"allowed_ids[{b}]: is empty, which leaves no token; expected ids, or None for all")
    return out


def _bad_words(value: Any, size: int) -> dict[str, Any]:
    sequences: list[Any] = []
    places: list[str] = []
    counts = np.zeros(size + 1, np.int64)
    for b, entry in enumerate(_each(value, "bad_words", size, "lists of sequences of ids")):
        for s, sequence in enumerate([] if entry is None
                                     else _each(entry, f"bad_words[{b}]", None, "sequences of ids")):
            sequences.append(sequence)
            places.append(f"bad_words[{b}][{s}]")
        counts[b + 1] = len(sequences)
    return {**_joined(sequences, "bad_word_tokens", places.__getitem__, "cu_bad_word_tokens"), "cu_bad_words": counts}


def _logit_bias(value: Any, size: int) -> dict[str, Any]:
    entries = [value] * size if isinstance(value, Mapping) else _each(value, "logit_bias", size, "dicts of id and bias")
    for b, entry in enumerate(entries):
        if entry is not None and not isinstance(entry, Mapping):
            raise Error(f"logit_bias[{b}]: is {type(entry).__name__}; expected a dict of id and bias, or None")
    given = [{} if entry is None else entry for entry in entries]
    place = "logit_bias[{}]".format
    values = [_forms.numbers(list(entry.values()), place(b), len(entry)) for b, entry in enumerate(given)]
    return {**_joined([list(entry) for entry in given], "logit_bias_tokens", place, "cu_logit_bias"),
            "logit_bias_values": np.concatenate(values) if values else np.zeros(0, np.float32)}


def _bits(allowed: Any, bitmask: Any, rows: int, vocab_size: int) -> dict[str, Any]:
    """Booleans [rows, V], or words [rows, ceil(V / 32)], as words."""
    if allowed is None and bitmask is None:
        return {}
    if allowed is not None and bitmask is not None:
        raise Error("bitmask: give allowed or bitmask")
    words = -(-vocab_size // 32)
    if bitmask is not None:
        array = _forms.as_numpy(bitmask, "bitmask")
        if array.dtype not in (np.int32, np.uint32) or array.shape != (rows, words):
            raise Error(f"bitmask: is {array.dtype} {list(array.shape)}; expected int32 or uint32 [{rows}, {words}]")
        return {"bitmask": _forms.flat(array, array.dtype).view(np.uint32)}
    array = _forms.as_numpy(allowed, "allowed")
    if array.dtype != np.bool_ or array.shape != (rows, vocab_size):
        raise Error(f"allowed: is {array.dtype} {list(array.shape)}; expected booleans [{rows}, {vocab_size}]")
    padded = np.zeros((rows, 32 * words), np.bool_)
    padded[:, :vocab_size] = array
    return {"bitmask": np.packbits(padded, axis=1, bitorder="little").reshape(-1).view("<u4").astype(np.uint32)}


def _draft_offsets(cu_num_draft_tokens: Any, requests: int | None, drafts: int, rows: int) -> np.ndarray:
    """[B + 1] from 0: given so, or as inclusive sums [B]; B is the number of rows that are no draft's."""
    given = _forms.integers(cu_num_draft_tokens, "cu_num_draft_tokens", np.int64)
    if requests is not None and given.size not in (requests, requests + 1):
        raise Error(f"cu_num_draft_tokens: has shape [{given.size}]; expected [{requests}], inclusive sums, "
                    f"or [{requests + 1}], from 0")
    from_zero = given.size == (rows - drafts if requests is None else requests) + 1
    out = given if from_zero else np.concatenate([np.zeros(1, np.int64), given])
    if not out.size or out[0] != 0 or (out[1:] < out[:-1]).any() or out[-1] != drafts:
        raise Error(f"cu_num_draft_tokens: is {given[:8].tolist()}{'...' if given.size > 8 else ''}; expected sums "
                    f"that ascend to {drafts}, the number of draft tokens")
    return out
