"""Rows and a filter in plain numpy, independent of the module under test."""

from __future__ import annotations

import numpy as np


def distribution(logits, temperature, top_k=0, top_p=1.0, min_p=0.0):
    """softmax after temperature, top-k, top-p over what top-k left, min-p. float64 [V]."""
    x = logits.astype(np.float64)
    if temperature == 0.0:
        out = np.zeros(len(x))
        out[np.argmax(x)] = 1.0
        return out
    order = np.argsort(-x, kind="stable")
    p = np.exp((x[order] - x[order[0]]) / temperature)
    p /= p.sum()
    if top_k > 0:
        p[top_k:] = 0.0
        p /= p.sum()
    p[np.cumsum(p) - p >= top_p] = 0.0
    p[p < min_p * p[0]] = 0.0
    out = np.zeros(len(x))
    out[order] = p / p.sum()
    return out


def row_parameters(params, i):
    return {name: params[name][i] for name in ("temperature", "top_k", "top_p")}


def filter_rows(logits, params):
    """float32 throughout, as engines do it; with min-p."""
    x = logits / params["temperature"][:, None]
    order = np.argsort(-x, axis=1, kind="stable")
    ranked = np.take_along_axis(x, order, 1)
    top_k = params["top_k"][:, None]
    keep = (np.arange(x.shape[1]) < top_k) | (top_k == 0)
    p = np.exp(np.where(keep, ranked, -np.inf) - ranked[:, :1])
    p /= p.sum(1, keepdims=True)
    keep &= np.cumsum(p, 1) - p < params["top_p"][:, None]
    keep &= p >= params["min_p"][:, None] * p[:, :1]
    kept = np.zeros_like(keep)
    np.put_along_axis(kept, order, keep, 1)
    return np.where(kept, x, np.float32(-np.inf)).astype(np.float32)
