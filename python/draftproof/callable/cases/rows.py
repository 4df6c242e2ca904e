"""Rows of logits that have broken samplers before, each by a name and a seed, so that a case can be written down."""

from __future__ import annotations

import numpy as np

MASKED = np.float32(-np.inf)


def normal(rows: int, vocab_size: int, scale: float, seed: int) -> np.ndarray:
    """[rows, V] of normal logits, float32."""
    return (scale * np.random.default_rng(seed).standard_normal((rows, vocab_size))).astype(np.float32)


def zipf(vocab_size: int, seed: int) -> np.ndarray:
    """[1, V]: a Zipf distribution over shuffled ids, as a model's next token often has."""
    order = np.random.default_rng(seed).permutation(vocab_size)
    return (-1.1 * np.log(1.0 + order)).astype(np.float32)[None, :]


def masked(logits: np.ndarray, begin: int, end: int) -> np.ndarray:
    """The same with the ids [begin, end) at -infinity."""
    out = logits.copy()
    out[:, begin:end] = MASKED
    return out


def only(vocab_size: int, token: int) -> np.ndarray:
    """[1, V] with one token that is not masked."""
    out = np.full((1, vocab_size), MASKED, np.float32)
    out[0, token] = 0.5
    return out


def peaked(vocab_size: int, likely: int, seed: int) -> np.ndarray:
    """[1, V]: `likely` ids that share nearly all the mass, anywhere in the vocabulary, over a low floor."""
    rng = np.random.default_rng(seed)
    out = np.full((1, vocab_size), -12.0, np.float32) + rng.standard_normal((1, vocab_size)).astype(np.float32)
    ids = np.concatenate([[0, vocab_size - 1], rng.choice(np.arange(1, vocab_size - 1), likely - 2, replace=False)])
    out[0, ids] = rng.standard_normal(likely).astype(np.float32) + 6.0
    return out
