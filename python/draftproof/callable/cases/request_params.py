"""What a request may ask for beside temperature and filters: its parameters, the values that switch them off, and how
requests of an audit choose theirs."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Iterable

import numpy as np

#: A window that no history is longer than.
WHOLE = 1 << 16

#: name -> what `size` requests, of `rows` rows of V tokens in all, have where it is off.
NEUTRAL: dict[str, Callable[[int, int, int], Any]] = {
    "repetition_penalty": lambda size, rows, vocab_size: np.ones(size, np.float32),
    "frequency_penalty": lambda size, rows, vocab_size: np.zeros(size, np.float32),
    "presence_penalty": lambda size, rows, vocab_size: np.zeros(size, np.float32),
    "penalty_last_n": lambda size, rows, vocab_size: np.full(size, WHOLE, np.int32),
    "min_tokens": lambda size, rows, vocab_size: np.zeros(size, np.int32),
    "guidance_scale": lambda size, rows, vocab_size: np.ones(size, np.float32),
    "prompt_tokens": lambda size, rows, vocab_size: [np.zeros(0, np.int32) for _ in range(size)],
    "output_tokens": lambda size, rows, vocab_size: [np.zeros(0, np.int32) for _ in range(size)],
    "stop_ids": lambda size, rows, vocab_size: [np.zeros(0, np.int32) for _ in range(size)],
    "bad_words": lambda size, rows, vocab_size: [[] for _ in range(size)],
    "stop_words": lambda size, rows, vocab_size: [[] for _ in range(size)],
    "max_tokens": lambda size, rows, vocab_size: np.full(size, WHOLE, np.int32),
    "logit_bias": lambda size, rows, vocab_size: [{} for _ in range(size)],
    "allowed_ids": lambda size, rows, vocab_size: [None] * size,
    "allowed": lambda size, rows, vocab_size: np.ones((rows, vocab_size), bool),
    "bitmask": lambda size, rows, vocab_size: np.full((rows, -(-vocab_size // 32)), -1, np.int32),
    "uncond_logits": lambda size, rows, vocab_size: np.zeros((rows, vocab_size), np.float32),
}
#: Those that are known anew at every row.
OF_ROWS = ("allowed", "bitmask", "uncond_logits")
HISTORIES = ("prompt_tokens", "output_tokens")
PENALTIES = ("repetition_penalty", "frequency_penalty", "presence_penalty")

Drawn = Callable[[np.random.Generator, int], Any]


@dataclasses.dataclass(frozen=True)
class Factor:
    """needs: names that a callable must read to heed it; draws: what a request has, by name, beside histories and what
    is OF_ROWS;
    beside: factors without all of which it changes nothing; is_end: it says where a request ends, and changes no
    distribution, so that only a callable which says where requests end is asked for it."""

    needs: tuple[str, ...]
    draws: dict[str, Drawn] = dataclasses.field(default_factory=dict)
    beside: tuple[str, ...] = ()
    is_end: bool = False

    @property
    def is_alone(self) -> bool:
        return not self.beside

    def partners(self, factors: Iterable[str]) -> tuple[str, ...]:
        """Of these factors those beside which it changes something."""
        return tuple(name for name in factors if name in self.beside)


def _one_of(*values: float) -> Drawn:
    return lambda rng, vocab_size: float(rng.choice(values))


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
                         {"min_tokens": lambda rng, _: int(rng.integers(1, 7)), "stop_ids": _ids(1, 4)}),
    "allowed": Factor(("allowed",)),
    "bitmask": Factor(("bitmask",)),
    "allowed_ids": Factor(("allowed_ids",), {"allowed_ids": _ids(12, 30)}),
    "guidance_scale": Factor(("guidance_scale", "uncond_logits"), {"guidance_scale": _guidance}),
    "stop_ids": Factor(("stop_ids",), {"stop_ids": _ids(2, 6)}, is_end=True),
    "stop_words": Factor(("stop_words", "output_tokens"), {"stop_words": _stop_words}, is_end=True),
    "max_tokens": Factor(("max_tokens", "output_tokens"), {"max_tokens": lambda rng, _: int(rng.integers(1, 9))},
                         is_end=True),
    "prompt_tokens": Factor(("prompt_tokens",), beside=(*PENALTIES, "bad_words")),
    "penalty_last_n": Factor(("penalty_last_n",), {"penalty_last_n": lambda rng, _: int(rng.choice((1, 2, 3, 4)))},
                             PENALTIES),
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
    prompt = rng.integers(0, vocab_size // 2, int(rng.integers(0, 13))).tolist() if "prompt_tokens" in factors else []
    return Request(params, seed, length, [int(token) for token in prompt])


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
