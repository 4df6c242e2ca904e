"""What a request may ask for beside temperature and filters: its parameters, the values that switch them off, and how
requests of an audit choose theirs."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Iterable

import numpy as np

from ... import _forms
from .sample_cases import OF_PEERS, OFF, PEERS

#: A window that no history is longer than.
WHOLE = 1 << 16


def within(prompt: list, output: list, last_n: int) -> tuple[list, list]:
    """What the last `last_n` tokens of a prompt and its output have of each."""
    return prompt[max(0, len(prompt) + len(output) - last_n):], output[-last_n:]


PENALTIES = ("repetition_penalty", "frequency_penalty", "presence_penalty")
HISTORIES = ("prompt_tokens", "output_tokens")
COUNTS = ("min_tokens", "no_repeat_ngram_size", "min_tokens_to_keep", "dry_allowed_length", "dry_range")


def _number(name: str) -> Callable[[int, int, int], Any]:
    dtype, off = (np.int32, WHOLE) if name in ("penalty_last_n", "max_tokens") else _forms.PARAMETERS[name]
    return lambda size, rows, vocab_size: np.full(size, off, np.int32 if name in COUNTS else dtype)


#: name -> what `size` requests, of `rows` rows of V tokens in all, have where it is off.
NEUTRAL: dict[str, Callable[[int, int, int], Any]] = {
    **{name: _number(name) for name in (*PENALTIES, "penalty_last_n", "max_tokens", "guidance_scale", *COUNTS, *PEERS,
                                        "dry_multiplier", "dry_base")},
    **{name: lambda size, rows, vocab_size: [np.zeros(0, np.int32) for _ in range(size)]
       for name in (*HISTORIES, "stop_ids", "dry_breakers")},
    **{name: lambda size, rows, vocab_size: [[] for _ in range(size)] for name in ("bad_words", "stop_words")},
    "logit_bias": lambda size, rows, vocab_size: [{} for _ in range(size)],
    "allowed_ids": lambda size, rows, vocab_size: [None] * size,
    "allowed": lambda size, rows, vocab_size: np.ones((rows, vocab_size), bool),
    "bitmask": lambda size, rows, vocab_size: np.full((rows, -(-vocab_size // 32)), -1, np.int32),
    "uncond_logits": lambda size, rows, vocab_size: np.zeros((rows, vocab_size), np.float32),
}
#: Those that are known anew at every row.
OF_ROWS = ("allowed", "bitmask", "uncond_logits")

Drawn = Callable[[np.random.Generator, int], Any]


@dataclasses.dataclass(frozen=True)
class Factor:
    """needs: names that a callable must read to heed it; draws: what a request has, by name, beside histories and what
    is OF_ROWS;
    beside: factors without all of which it changes nothing; is_end: it says where a request ends, and changes no
    distribution, so that only a callable which says where requests end is asked for it. kinds: of callables that
    can have it."""

    needs: tuple[str, ...]
    draws: dict[str, Drawn] = dataclasses.field(default_factory=dict)
    beside: tuple[str, ...] = ()
    is_end: bool = False
    kinds: tuple[str, ...] = ("sample", "filter", "verify")

    @property
    def is_alone(self) -> bool:
        return not self.beside

    def partners(self, factors: Iterable[str]) -> tuple[str, ...]:
        """Of these factors those beside which it changes something."""
        return tuple(name for name in factors if name in self.beside)


def _one_of(*values: float) -> Drawn:
    return lambda rng, vocab_size: float(rng.choice(values))


def _count(least: int, most: int) -> Drawn:
    return lambda rng, vocab_size: int(rng.integers(least, most + 1))


def _ids(least: int, most: int) -> Drawn:
    return lambda rng, vocab_size: rng.choice(vocab_size, min(vocab_size - 1, int(rng.integers(least, most + 1))),
                                              replace=False).astype(np.int32)


def _bias(rng: np.random.Generator, vocab_size: int) -> dict[int, float]:
    return {int(token): float(rng.choice((-100.0, -3.0, 2.0, 5.0)))
            for token in rng.choice(vocab_size, 6, replace=False)}


def _bad_words(rng: np.random.Generator, vocab_size: int) -> list[list[int]]:
    """Single tokens, and words of two and three tokens, whose beginnings come often."""
    ids = rng.permutation(vocab_size)
    words = [[int(token)] for token in ids[:2]]
    return words + [[int(first), int(last)] for first in ids[2:min(26, vocab_size // 2)]
                    for last in rng.choice(vocab_size, 3, replace=False)]


def _stop_words(rng: np.random.Generator, vocab_size: int) -> list[list[int]]:
    """Words of two tokens, which most tokens begin."""
    return [[int(first), int(last)] for first in rng.permutation(vocab_size)[:64]
            for last in rng.choice(vocab_size, min(vocab_size, 3), replace=False)]


def _guidance(rng: np.random.Generator, vocab_size: int) -> float:
    return float(rng.choice((0.5, 1.5, 3.0)))


#: Of a batch each request has each with probability a half. What needs others stands behind them.
FACTORS: dict[str, Factor] = {
    "frequency_penalty": Factor(("frequency_penalty", "output_tokens"),
                                {"frequency_penalty": _one_of(0.7, 1.5, 2.0, -1.0)}),
    "presence_penalty": Factor(("presence_penalty", "output_tokens"),
                               {"presence_penalty": _one_of(1.0, 2.0, 3.5, -1.0)}),
    "repetition_penalty": Factor(("repetition_penalty", "output_tokens"),
                                 {"repetition_penalty": _one_of(1.3, 2.0, 0.6)}),
    "logit_bias": Factor(("logit_bias",), {"logit_bias": _bias}),
    "bad_words": Factor(("bad_words", "output_tokens"), {"bad_words": _bad_words}),
    "min_tokens": Factor(("min_tokens", "stop_ids", "output_tokens"),
                         {"min_tokens": _count(1, 6), "stop_ids": _ids(1, 4)}),
    "allowed": Factor(("allowed",)),
    "bitmask": Factor(("bitmask",)),
    "allowed_ids": Factor(("allowed_ids",), {"allowed_ids": _ids(12, 30)}),
    "guidance_scale": Factor(("guidance_scale", "uncond_logits"), {"guidance_scale": _guidance}),
    "no_repeat_ngram_size": Factor(("no_repeat_ngram_size", "output_tokens"),
                                   {"no_repeat_ngram_size": _count(1, 3)}),
    "dry_multiplier": Factor(("dry_multiplier", "dry_base", "dry_allowed_length", "output_tokens"), {
        "dry_multiplier": _one_of(0.8, 2.0, 5.0), "dry_base": _one_of(1.3, 1.75), "dry_allowed_length": _count(1, 2)}),
    "p_less": Factor(("p_less",), {"p_less": _one_of(1.0, 2.0)}),
    "top_h": Factor(("top_h",), {"top_h": _one_of(0.3, 0.5, 0.8)}),
    "typical_p": Factor(("typical_p",), {"typical_p": _one_of(0.2, 0.5, 0.9)}),
    "epsilon_cutoff": Factor(("epsilon_cutoff",), {"epsilon_cutoff": _one_of(0.1, 0.2)}),
    "eta_cutoff": Factor(("eta_cutoff",), {"eta_cutoff": _one_of(0.3, 0.7)}),
    "top_n_sigma": Factor(("top_n_sigma",), {"top_n_sigma": _one_of(0.1, 0.3)}),
    "adaptive_target": Factor(("adaptive_target", "adaptive_mean"), {
        "adaptive_target": _one_of(0.2, 0.4), "adaptive_mean": _one_of(-1.0, 0.05, 0.9, 0.9), "top_k": _count(3, 6)},
        kinds=("sample",)),
    "smoothing_factor": Factor(("smoothing_factor", "smoothing_curve"), {
        "smoothing_factor": _one_of(1.0, 3.0), "smoothing_curve": _one_of(1.0, 2.0)}, kinds=("sample", "verify")),
    # Where XTC acts by chance, and what Mirostat keeps of its state, is the engine's own.
    "xtc_probability": Factor(("xtc_threshold", "xtc_probability"), {
        "xtc_threshold": _one_of(0.05, 0.1), "xtc_probability": _one_of(1.0)}, kinds=("sample",)),
    "mirostat": Factor(("mirostat", "mirostat_mu"), {"mirostat": _one_of(2.0), "mirostat_mu": _one_of(1.5, 3.0)},
                       kinds=("sample",)),
    "min_tokens_to_keep": Factor(("min_tokens_to_keep",),
                                 {"min_tokens_to_keep": _count(2, 5), "top_p": _one_of(0.1, 0.3)}),
    "stop_ids": Factor(("stop_ids",), {"stop_ids": _ids(2, 6)}, is_end=True),
    "stop_words": Factor(("stop_words", "output_tokens"), {"stop_words": _stop_words}, is_end=True),
    "max_tokens": Factor(("max_tokens", "output_tokens"), {"max_tokens": _count(1, 8)}, is_end=True),
    "prompt_tokens": Factor(("prompt_tokens",),
                            beside=(*PENALTIES, "bad_words", "no_repeat_ngram_size", "dry_multiplier", "min_tokens",
                                    "max_tokens")),
    "penalty_last_n": Factor(("penalty_last_n",), {"penalty_last_n": _count(1, 4)}, PENALTIES),
    "dry_range": Factor(("dry_range",), {"dry_range": _count(2, 7)}, ("dry_multiplier",)),
    "dry_breakers": Factor(("dry_breakers",), {"dry_breakers": _ids(8, 24)}, ("dry_multiplier",)),
}


@dataclasses.dataclass
class Request:
    """One request while it runs. params: what it asks for, by name; calls: that it has had; length: after which it
    ends."""

    params: dict[str, Any]
    seed: int
    length: int
    prompt: list[int] = dataclasses.field(default_factory=list)
    output: list[int] = dataclasses.field(default_factory=list)
    calls: int = 0


def new_request(factors: tuple[str, ...], filters: dict[str, float], rng: np.random.Generator, vocab_size: int,
                seed: int, length: int) -> Request:
    """A request with some of these factors; with the only one where there is one."""
    params: dict[str, Any] = dict(filters)
    alone = sum(FACTORS[name].is_alone for name in factors) == 1
    for name in factors:
        if name != "prompt_tokens" and (rng.random() < 0.5 or (alone and FACTORS[name].is_alone)):
            params.update({key: draw(rng, vocab_size) for key, draw in FACTORS[name].draws.items()})
            params.setdefault(name, True)  # of what is OF_ROWS, that it has them
    if params.get("bitmask") and params.get("allowed"):
        del params["allowed"]
    peers = [name for name in FACTORS if name in params and name in PEERS]
    if peers:  # engines differ in what stands before what
        kept = FACTORS[str(rng.choice([name for name in peers if name in factors]))].draws
        params = {name: value for name, value in params.items()
                  if name in kept or name == "temperature" or not (name in OFF or name in OF_PEERS)}
    if "allowed_ids" in params and "no_repeat_ngram_size" in params:  # a text would soon have had every allowed token
        params["no_repeat_ngram_size"] = max(2, params["no_repeat_ngram_size"])
    prompt = begun = np.zeros(0, np.int64)
    if "prompt_tokens" in factors:
        prompt = rng.integers(0, vocab_size // 2, int(rng.integers(0, 13)))
    if "dry_multiplier" in params or "no_repeat_ngram_size" in params:  # an interrupted text that repeats itself
        few = rng.choice(vocab_size, 4, replace=False)
        prompt, begun = few[prompt % 4], few[rng.integers(0, 4, int(rng.integers(0, 13)))]
    return Request(params, seed, length, prompt.tolist(), begun.tolist())


def columns(names: tuple[str, ...], requests: list[Request], rows: int, vocab_size: int) -> dict[str, Any]:
    """What a callable gets of these names, but of OF_ROWS: each request's own, or the value that switches it off."""
    out: dict[str, Any] = {}
    for name in names:
        if name in OF_ROWS:
            continue
        out[name] = NEUTRAL[name](len(requests), rows, vocab_size)
        for b, request in enumerate(requests):
            if name in HISTORIES:
                out[name][b] = np.asarray(request.prompt if name == "prompt_tokens" else request.output, np.int32)
            elif name in request.params:
                value = request.params[name]
                out[name][b] = dict(value) if isinstance(value, dict) else [list(word)
                        for word in value] if name in ("bad_words", "stop_words") else value
    return out
