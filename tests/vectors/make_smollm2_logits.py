#!/usr/bin/env python3
"""Writes tests/vectors/smollm2_logits.txt: logits of SmolLM2-135M-Instruct in double precision, by numpy.

    make_smollm2_logits.py MODEL.gguf

The weights are those that the Python package gguf decodes; nothing of draftproof is used. Needs numpy and gguf.
"""
import pathlib
import sys

import gguf
import numpy as np

HEADS, KV_HEADS, HEAD_LEN, LAYERS = 9, 3, 64, 30
# "The quick brown fox ..." would do; these are ids of common words and marks, so that no tokenizer is needed.
TOKENS = [1, 4093, 198, 504, 3575, 282, 4649, 314, 7042, 30, 657, 314, 253, 1838, 351, 354, 1194, 1216, 284, 260, 2240,
          28]


def main():
    reader = gguf.GGUFReader(sys.argv[1])
    weights = {t.name: gguf.dequantize(t.data, t.tensor_type).astype(np.float64) for t in reader.tensors}

    def norm(x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weights[name]

    def rotate(x):  # [n, heads, HEAD_LEN], adjacent pairs
        angles = np.arange(len(x))[:, None, None] * 1e5 ** (-np.arange(0, HEAD_LEN, 2) / HEAD_LEN)
        a, b = x[..., 0::2], x[..., 1::2]
        out = np.empty_like(x)
        out[..., 0::2] = a * np.cos(angles) - b * np.sin(angles)
        out[..., 1::2] = a * np.sin(angles) + b * np.cos(angles)
        return out

    n = len(TOKENS)
    x = weights["token_embd.weight"][TOKENS]
    mask = np.triu(np.full((n, n), -np.inf), 1)
    for layer in range(LAYERS):
        def at(name):
            return weights[f"blk.{layer}.{name}.weight"]
        h = norm(x, f"blk.{layer}.attn_norm.weight")
        q = rotate((h @ at("attn_q").T).reshape(n, HEADS, HEAD_LEN))
        k = rotate((h @ at("attn_k").T).reshape(n, KV_HEADS, HEAD_LEN))
        v = (h @ at("attn_v").T).reshape(n, KV_HEADS, HEAD_LEN)
        out = np.empty((n, HEADS, HEAD_LEN))
        for head in range(HEADS):
            kv = head // (HEADS // KV_HEADS)
            scores = q[:, head] @ k[:, kv].T / np.sqrt(HEAD_LEN) + mask
            p = np.exp(scores - scores.max(-1, keepdims=True))
            out[:, head] = p / p.sum(-1, keepdims=True) @ v[:, kv]
        x = x + out.reshape(n, -1) @ at("attn_output").T
        h = norm(x, f"blk.{layer}.ffn_norm.weight")
        gate = h @ at("ffn_gate").T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ at("ffn_up").T)) @ at("ffn_down").T
    logits = norm(x, "output_norm.weight") @ weights["token_embd.weight"].T

    lines = ["# Logits of SmolLM2-135M-Instruct (Q4_1) in double precision: make_smollm2_logits.py.",
             "# The tokens; then by position pairs of token and logit: the ten largest, and ten anywhere.",
             " ".join(map(str, TOKENS))]
    for position in range(0, n, 2):
        row = logits[position]
        chosen = list(np.argsort(-row)[:10]) + list((np.arange(10) * 4919 + position * 977) % len(row))
        lines.append(f"{position} " + " ".join(f"{t} {row[t]:.9g}" for t in chosen))
    path = pathlib.Path(__file__).parent / "smollm2_logits.txt"
    path.write_text("\n".join(lines) + "\n")


main()
