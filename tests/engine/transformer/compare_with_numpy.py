#!/usr/bin/env python3
"""Compares the program's logits of the int8 target with numpy, by the definitions in docs/models.md.

    python3 -m venv venv && venv/bin/pip install gguf safetensors numpy
    venv/bin/python tests/engine/transformer/compare_with_numpy.py ./draftproof build/models/SmolLM2-135M-Instruct.gguf

Every row of logits that the program verified (verified_rows.py) is computed again from the blocks of the file:
activations are rounded to int8 by blocks of 32, and a block's sum is one of integers. Of the package gguf only the
tensors' bytes are used. Prints the differences, and fails unless every logit has the same bits: one activation that is
rounded to another integer changes others behind it, and after a few layers all, so that nothing in between can be asked
for. The rows of the f32 target must differ, or the comparison says nothing.
"""

import sys

import numpy as np
from gguf import GGUFReader
from verified_rows import differences, verified_steps

OTHER_TARGET_MIN = 0.05  # mean difference of the f32 target

f32 = np.float32


def fma(a, b, c):
    """a b + c in binary32, rounded once. In binary64 the product is exact; where the sum's rounding there hits the
    middle of two numbers of binary32, what it left out decides."""
    product = np.asarray(a, np.float64) * b
    total = np.asarray(product + c)
    in_middle = (total.view(np.int64) & 0x1fffffff) == 0x10000000
    if in_middle.any():
        s, p, q = total[in_middle], np.broadcast_to(product, total.shape)[in_middle], np.broadcast_to(c,
                total.shape)[in_middle].astype(np.float64)
        left_out = (p - (s - (s - p))) + (q - (s - p))
        total[in_middle] = np.where(left_out == 0, s, np.nextafter(s, np.copysign(np.inf, left_out)))
    return total.astype(f32)


def exp(x):
    """By the definition in reference/numerics/exp_parts.hpp; x within +-86."""
    magic = f32(1.5 * 2**23)
    n = fma(x, f32(float.fromhex("0x1.715476p+0")), magic) - magic
    r = fma(-n, f32(float.fromhex("0x1.62e430p-1")), x)
    r = fma(-n, f32(float.fromhex("-0x1.05c610p-29")), r)
    p = np.full_like(r, float.fromhex("0x1.6a1e66p-10"))
    for c in ("0x1.123d64p-7", "0x1.555908p-5", "0x1.55548cp-3", "0x1.fffffcp-2", "1", "1"):
        p = fma(p, r, f32(float.fromhex(c)))
    return np.ldexp(p, n.astype(np.int32))


def lanes_sum(x, add):
    """Along the last axis by the written order: element i into lane i mod 16 by add(element, lane), then lanes l and l
    + 8, 4, 2, 1 are added."""
    x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, -x.shape[-1] % 16)])
    lanes = np.zeros(x.shape[:-1] + (16,), f32)
    for part in range(0, x.shape[-1], 16):
        lanes = add(x[..., part:part + 16], lanes)
    for half in (8, 4, 2, 1):
        lanes = lanes[..., :half] + lanes[..., half:2 * half]
    return lanes[..., 0]


class Matrix:
    """Q8_0 or Q4_1, as the file has it: codes [blocks, columns of a block, rows], scales and minima [blocks, rows]."""

    def __init__(self, tensor):
        kind = tensor.tensor_type.name
        rows = tensor.data.shape[0]
        data = tensor.data.reshape(rows, -1, {"Q8_0": 34, "Q4_1": 20}[kind])
        def halves(at):
            return data[:, :, at:at + 2].copy().view(np.float16)[:, :, 0].astype(f32).T
        self.scales = halves(0)
        if kind == "Q8_0":
            self.minima = None
            codes = data[:, :, 2:].view(np.int8)
        else:
            self.minima = halves(2)
            codes = np.concatenate([data[:, :, 4:] & 15, data[:, :, 4:] >> 4], axis=2)
        # Integers, in binary32 for the multiplication: every sum of 32 products is below 2^24, and so exact.
        self.codes = np.ascontiguousarray(codes.transpose(1, 2, 0).astype(f32))

    def row(self, index):
        values = self.codes[:, :, index] * self.scales[:, index, None]
        return (values if self.minima is None else values + self.minima[:, index, None]).reshape(-1)

    def product(self, x):
        """x: [tokens, columns] -> [tokens, rows]"""
        blocks = x.reshape(len(x), -1, 32)
        amax = np.abs(blocks).max(axis=2)
        is_zero = amax <= 1e-30
        inverse = np.where(is_zero, f32(0), f32(127) / np.where(is_zero, f32(1), amax))
        d = np.where(is_zero, f32(0), amax / f32(127))
        q = np.rint(blocks * inverse[:, :, None])
        sums = q.sum(axis=2)
        acc = np.zeros((len(x), self.codes.shape[2]), f32)
        for b in range(blocks.shape[1]):
            acc = fma(q[:, b] @ self.codes[b], self.scales[b] * d[:, b, None], acc)
            if self.minima is not None:
                acc = fma(np.broadcast_to(self.minima[b], acc.shape), (d[:, b] * sums[:, b])[:, None], acc)
        return acc


class Model:
    def __init__(self, path):
        reader = GGUFReader(path)
        def field(name):
            return reader.fields["llama." + name].contents()
        self.layers, self.heads, self.kv_heads = field("block_count"), field("attention.head_count"), field(
                "attention.head_count_kv")
        self.head_size = field("embedding_length") // self.heads
        self.base, self.epsilon = field("rope.freq_base"), f32(field("attention.layer_norm_rms_epsilon"))
        kinds = {tensor.tensor_type.name for tensor in reader.tensors}
        if not kinds <= {"Q8_0", "Q4_1", "F32"}:
            sys.exit(f"{path}: has tensors of {', '.join(sorted(kinds))}; expected Q8_0, Q4_1 and F32 alone")
        self.tensors = {t.name.removesuffix(".weight"): np.array(t.data) if t.tensor_type.name == "F32" else Matrix(t)
                        for t in reader.tensors}
        if "output" in self.tensors:
            sys.exit(f"{path}: has a head of its own; expected a tied one")
        self.tokens = []  # those whose keys and values are kept
        self.kept = [(np.zeros((0, self.kv_heads, self.head_size), f32),) * 2 for _ in range(self.layers)]

    def norm(self, x, weight):
        r = f32(1) / np.sqrt(lanes_sum(x, lambda element, lane: fma(element, element, lane)) / f32(x.shape[-1]) +
                             self.epsilon)
        return (x * r[:, None]) * weight

    def rotate(self, x, first):
        """x: [tokens, heads, head_size], of positions from `first` on; pairs (2 i, 2 i + 1)."""
        pairs = np.arange(self.head_size // 2)
        angles = (first + np.arange(len(x)))[:, None] * np.power(float(self.base), -2.0 * pairs / self.head_size)
        cos, sin = np.cos(angles).astype(f32)[:, None, :], np.sin(angles).astype(f32)[:, None, :]
        a, b = x[..., 0::2], x[..., 1::2]
        return np.stack([a * cos - b * sin, b * cos + a * sin], axis=-1).reshape(x.shape)

    def attention(self, q, k, v, first):
        """q: [tokens, heads, head_size], of positions from `first` on; k, v: [first + tokens, kv_heads, head_size]."""
        k, v = (np.repeat(x, self.heads // self.kv_heads, axis=1) for x in (k, v))
        q = q * (f32(1) / np.sqrt(f32(self.head_size)))
        out = np.zeros_like(q)
        for t in range(len(q)):
            end = first + t + 1
            scores = np.zeros((self.heads, end), f32)
            for i in range(self.head_size):
                scores = fma(q[t, :, i, None], k[:end, :, i].T, scores)
            weights = exp(np.maximum(scores - scores.max(axis=1, keepdims=True), f32(-86)))
            values = np.zeros((self.heads, self.head_size), f32)
            for p in range(end):
                values = fma(weights[:, p, None], v[p], values)
            out[t] = values * (f32(1) / lanes_sum(weights, np.add))[:, None]
        return out.reshape(len(q), -1)

    def logits(self, tokens, rows):
        """Of the last `rows` of the tokens. Those before them that the last call had as well are not computed again."""
        w = self.tensors
        def split(x):
            return x.reshape(len(x), -1, self.head_size)
        def half(x):
            return x.astype(np.float16).astype(f32)
        differ = [i for i, (a, b) in enumerate(zip(tokens, self.tokens)) if a != b]
        first = min(differ + [len(self.tokens), len(tokens) - rows])
        self.tokens = list(tokens)
        x = np.stack([w["token_embd"].row(int(t)) for t in tokens[first:]])
        for layer in range(self.layers):
            def of(name):
                return w[f"blk.{layer}.{name}"]
            h = self.norm(x, of("attn_norm"))
            q, k, v = (split(of(name).product(h)) for name in ("attn_q", "attn_k", "attn_v"))
            k = np.concatenate([self.kept[layer][0][:first], half(self.rotate(k, first))])
            v = np.concatenate([self.kept[layer][1][:first], half(v)])
            self.kept[layer] = k, v
            x = x + of("attn_output").product(self.attention(self.rotate(q, first), k, v, first))
            h = self.norm(x, of("ffn_norm"))
            gate, up = of("ffn_gate").product(h), of("ffn_up").product(h)
            x = x + of("ffn_down").product((gate / (f32(1) + exp(-np.clip(gate, f32(-86), f32(86))))) * up)
        return w["token_embd"].product(self.norm(x[-rows:], w["output_norm"]))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    model = Model(sys.argv[2])
    compared = {"int8": [], "f32": []}
    for arithmetic, pairs in compared.items():
        for context, draft, rows in verified_steps(sys.argv[1], sys.argv[2], arithmetic):
            pairs += zip(rows, model.logits(context + draft, len(rows)))
        print(f"{arithmetic}: {differences(pairs)[0]}", flush=True)
    unlike = sum(int((rows.view(np.int32) != expected.view(np.int32)).sum()) for rows, expected in compared["int8"])
    if unlike:
        sys.exit(f"{unlike} logits of int8 have other bits")
    if not differences(compared["f32"])[1] >= OTHER_TARGET_MIN:
        sys.exit(f"the mean difference of f32, which is another target, is below {OTHER_TARGET_MIN}")


if __name__ == "__main__":
    main()
