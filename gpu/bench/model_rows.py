"""Writes gpu/bench/model_rows.hpp anew: what the logits of a language model look like, rank by rank.

    ./draftproof generate --prompt "The history of the city begins in" --max-tokens 24 --temperature 1 \
      --drafter suffix -k 2 --trace TRACE
    python3 gpu/bench/model_rows.py TRACE >gpu/bench/model_rows.hpp

TRACE: a safetensors file (docs/trace.md) whose target_logits [rows, V] are f32. Every second row is taken. numpy is
needed.
"""
import json
import pathlib
import sys

import numpy as np

ROWS, HEAD, KNOTS = 16, 16, 48  # the first HEAD ranks are knots each, the others lie evenly by their logarithms


def target_logits(file):
    data = pathlib.Path(file).read_bytes()
    length = int.from_bytes(data[:8], "little")
    tensor = json.loads(data[8:8 + length])["target_logits"]
    begin, end = tensor["data_offsets"]
    return np.frombuffer(data[8 + length + begin:8 + length + end], np.float32).reshape(tensor["shape"])


def figures(row):
    p = np.exp(row - row.max(), dtype=np.float64)
    p /= p.sum()
    ordered = np.sort(p)[::-1]
    nucleus = int((np.cumsum(ordered) - ordered < 0.9).sum())
    return nucleus, float(-(p * np.log(np.maximum(p, 1e-300))).sum()), float(ordered[0])


def lines(numbers):
    numbers = list(numbers)
    return ",\n".join("    " + ", ".join(numbers[i:i + 12]) for i in range(0, len(numbers), 12))


def main():
    logits = target_logits(sys.argv[1])[::2][:ROWS]
    vocab = logits.shape[1]
    ranks = np.r_[0:HEAD, np.geomspace(HEAD, vocab - 1, KNOTS - HEAD).round().astype(int)]
    print(f"""\
// Logits of {len(logits)} rows of SmolLM2-135M-Instruct (Q4_1) by their ranks; model_rows.py says how they are made.
// clang-format off
#pragma once

namespace draftproof::bench {{

inline constexpr int kModelVocabSize = {vocab};
inline constexpr int kModelKnots = {len(ranks)};
inline constexpr int kModelRanks[kModelKnots] = {{
{lines(map(str, ranks))}}};

struct ModelRow {{
  int nucleus;      // tokens of top_p 0.9
  double entropy;   // nats
  double largest;   // probability
  float logits[kModelKnots];  // less the first
}};
inline constexpr ModelRow kModelRows[] = {{""")
    for row in logits:
        nucleus, entropy, largest = figures(row)
        knots = np.sort(row)[::-1][ranks] - row.max()
        print(f"  {{{nucleus}, {entropy:.4f}, {largest:.4f}, {{")
        print(lines(f"{x:.2f}f" for x in knots) + "}},")
    print("};\n\n}  // namespace draftproof::bench")


if __name__ == "__main__":
    main()
