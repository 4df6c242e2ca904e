"""Kernels in NumPy for regress --python, with faults of which the environment variable FAULT chooses one."""

import os

import numpy as np

FAULT = os.environ.get("FAULT", "")


def _filtered(row, temperature, top_k, top_p, min_p):
    if temperature == 0:
        return np.where(np.arange(len(row)) == np.argmax(row), row, np.float32(-np.inf))
    kept = row / temperature
    mass = np.exp(kept.astype(np.float64) - kept.max())
    order = np.lexsort((np.arange(len(row)), -kept))
    before = np.cumsum(mass[order]) - mass[order]
    dropped = before >= (1.03 if FAULT == "top_p"
                         else 1.0) * np.float64(top_p) * mass.sum() if top_p < 1 else np.zeros(len(row), dtype=bool)
    dropped |= mass[order] < np.float64(min_p) * mass.max()
    if top_k > 0:
        dropped[top_k:] = True
    kept[order[dropped]] = -np.inf
    return kept


def _draw(masses, u):
    sums = np.cumsum(masses.astype(np.float64))
    return int(np.searchsorted(sums, u * sums[-1], side="right"))


def filter(logits, temperature, top_k, top_p, min_p):
    if FAULT == "input":
        logits[0, 0] = 5
    if FAULT == "raises":
        raise IndexError("row 7 of 4")
    if FAULT == "exit":
        os._exit(3)
    if FAULT == "shape":
        return logits[:, :-1]
    return np.stack([_filtered(*row) for row in zip(logits, temperature, top_k, top_p, min_p)])


def sample(logits, params, uniforms):
    print("what a function prints is no answer")
    tokens = []
    for row, t, k, p, m, u in zip(logits, *(params[name] for name in ("temperature", "top_k", "top_p", "min_p")),
                                  uniforms):
        kept = _filtered(row, t, k, p, m)
        tokens.append(_draw(np.exp(kept - kept.max()), u))
    return tokens


def verify_chain(draft_tokens, cu_num_draft_tokens, target_probs, draft_probs, coins, draws):
    emitted = []
    longest = int(np.diff(cu_num_draft_tokens).max())
    for b, (first, last) in enumerate(zip(cu_num_draft_tokens, cu_num_draft_tokens[1:])):
        tokens = []
        for i in range(first, last):
            p, x = target_probs[i + b].astype(np.float64), draft_tokens[i]
            q = draft_probs[i].astype(np.float64) if draft_probs is not None else np.eye(len(p))[x]
            if coins[i] * q[x] >= p[x]:
                rest = p if FAULT == "residual" else np.maximum(p - q, 0)
                tokens.append(_draw(rest if rest.any() else p, draws[b]))
                break
            tokens.append(int(x))
        else:
            tokens.append(_draw(target_probs[last + b], draws[b]))
        emitted.append(tokens + [-1] * (longest + 1 - len(tokens)))
    return emitted


def guidance(conditional, unconditional, scale):
    s = scale[:, None]
    with np.errstate(invalid="ignore"):
        return np.where(s == 1, conditional,
                        np.where(np.isinf(conditional), -np.inf, unconditional + s * (conditional - unconditional)))


def tree_mask(cu_num_draft_tokens, parents, draft_len_max):
    mask = np.zeros((len(parents) + len(cu_num_draft_tokens) - 1, draft_len_max + 1), dtype=bool)
    for b, (first, last) in enumerate(zip(cu_num_draft_tokens, cu_num_draft_tokens[1:])):
        mask[first + b, 0] = True
        for i in range(first, last):
            mask[i + b + 1] = mask[first + b + parents[i] + 1]
            mask[i + b + 1, i - first + 1] = True
    return mask


def top_p_alone(logits, temperature, top_p, seeds, steps):
    """Draws with a generator of its own."""
    tokens = []
    for row, t, p, seed, step in zip(logits, temperature, top_p, seeds, steps):
        kept = _filtered(row, t, 0, p, 0)
        number = np.random.default_rng([int(seed), 0 if FAULT == "step" else int(step)]).random()
        tokens.append(_draw(np.exp(kept - kept.max()), number))
    return tokens


def seeds_alone(logits, params, seeds):
    """As draftproof.audit_callable takes it."""
    return top_p_alone(logits, params["temperature"], params["top_p"], seeds, np.zeros(len(seeds)))


def wrong(logits, target_logits):
    return logits
