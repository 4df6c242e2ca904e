"""The sampler of an engine: temperature, top-k, then top-p, in numpy."""

import numpy as np


def sample(logits, params, seeds):  # [B, V], a dict of arrays [B], [B] -> tokens [B]
    tokens = np.empty(len(logits), np.int64)
    for b, row in enumerate(logits.astype(np.float64)):
        if params["temperature"][b] == 0:
            tokens[b] = row.argmax()
            continue
        order = np.argsort(-row, kind="stable")
        scaled = (row[order] - row[order[0]]) / params["temperature"][b]
        probabilities = np.exp(scaled)
        if params["top_k"][b] > 0:
            probabilities[params["top_k"][b]:] = 0
        probabilities /= probabilities.sum()
        before = np.cumsum(probabilities) - probabilities
        dropped = before >= params["top_p"][b]
        dropped[0] = False  # top_p 0 keeps one token
        probabilities[dropped] = 0
        rng = np.random.default_rng(int(seeds[b]))
        tokens[b] = order[rng.choice(len(row), p=probabilities / probabilities.sum())]
    return tokens
