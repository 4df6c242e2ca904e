#!/usr/bin/env python3
"""Writes tests/vectors/block_formats.txt with the `gguf` Python package.

It is committed, so this is run only to change it:
    python3 -m venv venv && venv/bin/pip install gguf numpy
    venv/bin/python tests/engine/weights/make_block_formats.py
A line is `decode KIND BLOCK VALUES` or `encode KIND VALUES BLOCK`, blocks and little-endian binary32 values in
hexadecimal. Last written with gguf 0.19.0.
"""

import pathlib

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize, quantize

PATH = pathlib.Path(__file__).resolve().parents[2] / "vectors" / "block_formats.txt"
DECODED = {"F32": 4, "F16": 6, "BF16": 6, "Q8_0": 6, "Q4_0": 6, "Q4_1": 6, "Q5_0": 6, "Q4_K": 4, "Q5_K": 4, "Q6_K": 4}
# Where the binary16 scales of a block are.
SCALES = {"Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}


def random_blocks(kind, count, random):
    """Random codes; scales are, block after block, common, subnormal, negative, the largest, and of any finite bits."""
    size = GGML_QUANT_SIZES[GGMLQuantizationType[kind]][1]
    blocks = random.integers(0, 256, (count, size), dtype=np.uint8)
    for i in range(count):
        for place in SCALES.get(kind, []):
            scale = [0.0123, 5 * 2.0**-24, -0.71, 65504.0][i] if i < 4 else random.uniform(-2,
                    2) * 2.0**-random.integers(0, 20)
            blocks[i, place : place + 2] = np.frombuffer(np.float16(scale).tobytes(), dtype=np.uint8)
    if kind in ("F16", "BF16", "F32"):  # a finite value, a subnormal, zeros of both signs, infinity
        specials = {"F16": [0x3C01, 0x0001, 0x8000, 0x83FF, 0x7C00, 0xFBFF],
                    "BF16": [0x3F81, 0x0001, 0x8000, 0x807F, 0xFF80, 0x7F7F],
                    "F32": [0x3F800001, 1, 0x80000000, 0x7F7FFFFF]}[kind]
        blocks = np.array(specials, dtype=np.uint32 if kind == "F32" else np.uint16).view(np.uint8).reshape(count, size)
    return blocks


def main():
    random = np.random.default_rng(20)
    lines = []
    for kind, count in DECODED.items():
        for block in random_blocks(kind, count, random):
            values = dequantize(block.reshape(1, -1), GGMLQuantizationType[kind]).astype(np.float32)
            lines.append(f"decode {kind} {block.tobytes().hex()} {values.tobytes().hex()}")
    for kind in ("Q8_0", "Q4_0", "Q4_1", "F16", "BF16"):
        for scale in (1.0, 3e-3, 1e-6, 900.0, 0.0):
            values = (random.standard_normal(32) * scale).astype(np.float32)
            if scale == 900.0:
                values[:8] = values[0]  # ties
            if scale == 0.0:
                values = np.zeros(32, dtype=np.float32)
            block = quantize(values.reshape(1, -1), GGMLQuantizationType[kind])
            lines.append(f"encode {kind} {values.tobytes().hex()} {block.tobytes().hex()}")
    PATH.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
