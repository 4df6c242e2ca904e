"""Rows of logits of whole requests: what masks, bias and penalties make of them, in plain numpy under every usual
reading, and rows made so that one of these that is lost, or another request's, shows at once."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, Collection, Iterator

import numpy as np

from ..cases.request_params import PENALTIES, WHOLE, within

#: Where correct engines differ: by what is read, the readings, ours first.
READINGS: dict[str, tuple[str, ...]] = {
    "penalty window": ("over the output alone, with the whole prompt", "over prompt and output, which count alike",
                       "over the output alone", "over prompt and output"),
    "bias": ("before the penalties", "behind the penalties"),
    "bad words": ("begin in the prompt too", "begin in the output"),
    "n-grams": ("of prompt and output", "of the output"),
    "DRY": ("over prompt and output", "over the output"),
    # which have other signs, of which a penalty by a factor asks
    "guidance": ("over logits", "over log-probabilities"),
}
Reading = dict[str, str]


def readings_of_factors(factors: tuple[str, ...]) -> Iterator[Reading]:
    """Every reading of requests that have these, in all combinations."""
    open_ = []
    if "penalty_last_n" in factors:
        open_.append("penalty window")
    if "logit_bias" in factors and "repetition_penalty" in factors:
        open_.append("bias")
    if "bad_words" in factors and "prompt_tokens" in factors:
        open_.append("bad words")
    if "prompt_tokens" in factors:
        of_texts = {"n-grams": "no_repeat_ngram_size", "DRY": "dry_multiplier"}
        open_ += [name for name, factor in of_texts.items() if factor in factors]
    if "guidance_scale" in factors and "repetition_penalty" in factors:
        open_.append("guidance")
    for values in itertools.product(*(READINGS[name] for name in open_)):
        yield dict(zip(open_, values))


@dataclasses.dataclass
class Row:
    """raw: [V] logits that the callable gets; uncond: [V] or None; allowed: [V] bool or None; output: with the drafts
    before it."""

    raw: np.ndarray
    params: dict[str, Any]
    prompt: list[int]
    output: list[int]
    uncond: np.ndarray | None = None
    allowed: np.ndarray | None = None


def counted(row: Row, reading: Reading, vocab_size: int) -> tuple[np.ndarray, np.ndarray]:
    """[V]: does a repetition penalty hold for a token; how often do frequency and presence penalties count it?"""
    n = min(int(row.params.get("penalty_last_n", WHOLE)), WHOLE)
    how = reading.get("penalty window", READINGS["penalty window"][0])
    prompt, output = within(row.prompt, row.output, n)
    if not how.startswith("over prompt"):
        prompt = [] if how == "over the output alone" else row.prompt
    elif how.endswith("alike"):
        prompt, output = [], [*prompt, *output]
    counts = np.bincount(np.asarray(output, np.int64), minlength=vocab_size)
    return (counts > 0) | np.isin(np.arange(vocab_size), prompt), counts


def banned(row: Row, reading: Reading, vocab_size: int) -> np.ndarray:
    """[V]: tokens that masks, bad words and min_tokens forbid."""
    out = np.zeros(vocab_size, bool) if row.allowed is None else ~row.allowed
    if "allowed_ids" in row.params:
        out |= ~np.isin(np.arange(vocab_size), row.params["allowed_ids"])
    tokens = row.output if reading.get("bad words") == "begin in the output" else [*row.prompt, *row.output]
    for word in row.params.get("bad_words", []):
        if len(word) == 1 or tokens[len(tokens) - len(word) + 1:] == word[:-1]:
            out[word[-1]] = True
    if len(row.output) < row.params.get("min_tokens", 0):
        out[row.params["stop_ids"]] = True
    if n := int(row.params.get("no_repeat_ngram_size", 0)):
        text = row.output if reading.get("n-grams") == "of the output" else [*row.prompt, *row.output]
        out[[text[i + n - 1] for i in range(len(text) - n + 1) if text[i:i + n - 1] == text[len(text) - n + 1:]]] = True
    return out


def repetitions(row: Row, reading: Reading, breakers: Collection[int]) -> dict[int, int]:
    """By token: how many tokens would it repeat, the most?"""
    text = row.output if reading.get("DRY") == "over the output" else [*row.prompt, *row.output]
    text, longest = text[-int(row.params.get("dry_range", 0)):], dict[int, int]()
    for at in range(1, len(text)):
        length = 0
        while length < at and text[at - 1 - length] == text[-1 - length] and text[at - 1 - length] not in breakers:
            length += 1
        longest[text[at]] = max(length, longest.get(text[at], 0))
    least = row.params["dry_allowed_length"]
    return {token: length for token, length in longest.items() if length >= least and token not in breakers}


def _dry(row: Row, reading: Reading, vocab_size: int) -> np.ndarray:
    """[V]: what DRY takes."""
    out = np.zeros(vocab_size, np.float32)
    if "dry_multiplier" in row.params:
        breakers = set(np.asarray(row.params.get("dry_breakers", ())).tolist())
        for token, length in repetitions(row, reading, breakers).items():
            power = length - row.params["dry_allowed_length"]
            out[token] = row.params["dry_multiplier"] * row.params["dry_base"] ** power
    return out


def _biased(row: Row, logits: np.ndarray, sign: float = 1.0) -> np.ndarray:
    out = logits.copy()
    for token, bias in row.params.get("logit_bias", {}).items():
        out[token] += np.float32(sign * bias)
    return out


def _penalised(row: Row, logits: np.ndarray, reading: Reading, is_undone: bool = False) -> np.ndarray:
    if not any(name in row.params for name in PENALTIES):
        return logits
    repeated, counts = counted(row, reading, len(logits))
    factor = np.float32(row.params.get("repetition_penalty", 1.0))
    less = (np.float32(row.params.get("frequency_penalty", 0.0)) * counts.astype(np.float32)
            + np.float32(row.params.get("presence_penalty", 0.0)) * (counts > 0).astype(np.float32))
    factor = np.float32(1.0) / factor if is_undone else factor
    out = logits + less if is_undone else logits
    out = np.where(repeated, np.where(out > 0.0, out / factor, out * factor), out)
    return (out if is_undone else out - less).astype(np.float32)


def shaped(row: Row, reading: Reading) -> np.ndarray:
    """[V] float32: the row before its temperature."""
    out = row.raw.astype(np.float32)
    if row.uncond is not None and "guidance_scale" in row.params:
        uncond = row.uncond
        if reading.get("guidance") == "over log-probabilities":
            out, uncond = (x - np.float32(np.logaddexp.reduce(x.astype(np.float64))) for x in (out, uncond))
        out = uncond + np.float32(row.params["guidance_scale"]) * (out - uncond)
    out = np.where(banned(row, reading, len(out)), np.float32(-np.inf), out)
    if reading.get("bias") == "behind the penalties":
        out = _biased(row, _penalised(row, out, reading))
    else:
        out = _penalised(row, _biased(row, out), reading)
    return out - _dry(row, reading, len(out))


def unshaped(row: Row, wanted: np.ndarray) -> np.ndarray:
    """[V]: logits which become `wanted`, about, and far above all others where they are banned."""
    out = _biased(row, _penalised(row, wanted + _dry(row, {}, len(wanted)), {}, is_undone=True), -1.0)
    if row.uncond is not None and "guidance_scale" in row.params:
        out = (out - row.uncond) / np.float32(row.params["guidance_scale"]) + row.uncond
    temperature = max(0.5, float(row.params.get("temperature", 1.0)))
    return np.where(banned(row, {}, len(out)), out.max() + np.float32(2.0 * temperature), out).astype(np.float32)


def roles(row: Row, drafted: int) -> dict[str, np.ndarray]:
    """[V] bool, by what a token is to the request; drafted: how many of the output's last tokens are drafts of this
    step."""
    ids = np.arange(len(row.raw))
    counts = np.bincount(np.asarray(row.output, np.int64), minlength=len(ids))
    n = int(row.params.get("penalty_last_n", 0))
    out = {"of the prompt alone": np.isin(ids, row.prompt) & (counts == 0), "of the output": counts > 0,
           "several times in the output": counts > 1,
           "drafted in this step": np.isin(ids, row.output[len(row.output) - drafted:]) if drafted
           else np.zeros(len(ids), bool),
           "banned": banned(row, {}, len(ids)), "biased": np.isin(ids, list(row.params.get("logit_bias", {}))),
           "that end a request": np.isin(ids, [*row.params.get("stop_ids", []), *(
               word[-1] for word in row.params.get("stop_words", [])
               if row.output[len(row.output) - len(word) + 1:] == word[:-1])])}
    if "dry_multiplier" in row.params:
        breakers = set(np.asarray(row.params.get("dry_breakers", ())).tolist())
        known, every = (repetitions(row, {}, those) for those in (breakers, ()))
        out["that would repeat"] = np.isin(ids, list(known))
        out["that would repeat but for a breaker"] = np.isin(ids, [token for token in every if token not in known])
    if 0 < n <= len(row.output):
        inside, edge = row.output[-n:], row.output[-n - 1:-n]
        out["just outside the window"] = np.isin(ids, edge) & ~np.isin(ids, inside)
        out["at the window's end"] = np.isin(ids, inside[:1]) & ~np.isin(ids, inside[1:])
    return out
