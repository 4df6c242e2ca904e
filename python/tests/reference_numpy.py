"""Samplers, filters and verifiers in plain numpy: independent of the module under test, right, or with one fault."""

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


def draw(p, u):
    return int(min(np.searchsorted(np.cumsum(p), u * p.sum(), side="right"), len(p) - 1))


def row_parameters(params, i):
    return {name: params[name][i] for name in ("temperature", "top_k", "top_p")}


def sampler(logits, params, seeds):
    return np.array([draw(distribution(row, **row_parameters(params, i)), np.random.default_rng(int(seeds[i])).random())
                     for i, row in enumerate(logits)])


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


#: The faults that audit_callable has to find, in a chain verifier or in block verification.
FAULTS = ("residual from unfiltered p", "bonus from q", "one uniform for all positions",
          "uniform shared with the residual",
          "drafts dropped by confidence", "residual floor", "residual with filtered q", "block verification unscaled")


class NumpyVerifier:
    """Chain verification, or block verification, with at most one fault."""

    def __init__(self, fault=None, block=False):
        self.fault = fault
        self.block = block or fault == "block verification unscaled"
        self.cache = {}

    def __call__(self, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
        ends = np.asarray(cu_num_draft_tokens)
        begins = np.concatenate([[0], ends[:-1]])
        width = int((ends - begins).max()) + 1
        out = np.full((len(ends), width), -1, np.int32)
        self.cache = {}
        for b, (begin, end) in enumerate(zip(begins, ends)):
            chosen = row_parameters(params, b)
            p = [self.row(target_logits[i], **chosen) for i in range(begin + b, end + b + 1)]
            raw = [self.row(target_logits[i], temperature=max(chosen["temperature"], 1e-6)) for i in
                   range(begin + b, end + b + 1)] if self.fault == "residual from unfiltered p" else p
            drafts = draft_tokens[begin:end]
            q = [np.eye(len(p[0]))[t] for t in drafts] if draft_probs is None else \
                [draft_probs[i].astype(np.float64) for i in range(begin, end)]
            rng = np.random.default_rng(int(seeds[b]))
            tokens = self.verify_block(drafts, p, q, rng) if self.block else \
                self.verify_chain(drafts, p, raw, q, chosen, rng)
            out[b, :len(tokens)] = tokens
        return out

    def row(self, logits, **chosen):
        key = (logits.tobytes() if len(logits) < 100 else id(logits), *chosen.values())
        if key not in self.cache or len(logits) >= 100:
            self.cache[key] = distribution(logits, **chosen)
        return self.cache[key]

    def verify_chain(self, drafts, p, raw, q, chosen, rng):
        fault = self.fault
        tokens = []
        shared = rng.random()
        for i, x in enumerate(drafts):
            if fault == "drafts dropped by confidence" and q[i][x] < 0.3:
                return [*tokens, draw(p[i], rng.random())]
            u = shared if fault in ("one uniform for all positions",) else rng.random()
            if u * q[i][x] < p[i][x]:
                tokens.append(int(x))
                continue
            below = q[i]
            if fault == "residual with filtered q":
                below = distribution(np.log(np.maximum(q[i], 1e-300)), **{**chosen, "temperature": 1.0})
            residual = np.maximum(raw[i] - below, 1e-5 if fault == "residual floor" else 0.0)
            if not residual.sum() > 0.0:
                residual = p[i]
            return [*tokens, draw(residual, u if fault == "uniform shared with the residual" else rng.random())]
        last = q[-1] if fault == "bonus from q" and len(q) else p[-1]
        return [*tokens, draw(last, rng.random())]

    def verify_block(self, drafts, p, q, rng):
        length, weight, kept, kept_weight = len(drafts), 1.0, 0, 1.0
        for i, x in enumerate(drafts):
            mass = weight * p[i][x]
            weight = 0.0 if mass <= 0.0 else 1.0 if mass >= q[i][x] else mass / q[i][x]
            if i + 1 == length:
                accept = weight
            else:
                left = np.maximum(weight * p[i + 1] - q[i + 1], 0.0).sum()
                accept = left / (left + 1.0 - weight) if left + 1.0 - weight > 0.0 else 1.0
            if rng.random() < accept:
                kept, kept_weight = i + 1, weight
        if kept == length:
            return [*map(int, drafts), draw(p[length], rng.random())]
        scale = 1.0 if self.fault == "block verification unscaled" else kept_weight
        residual = np.maximum(scale * p[kept] - q[kept], 0.0)
        if not residual.sum() > 0.0:
            residual = p[kept]
        return [*map(int, drafts[:kept]), draw(residual, rng.random())]
