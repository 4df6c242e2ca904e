#!/usr/bin/env python3
"""Samples for `draftproof audit` by another hand: Python's own random numbers and arithmetic, no package needed.

    make_audit_samples.py FOLDER [DRAWS [STEPS]]      (default 200000 and 20000)

writes
    draws_unbiased.safetensors   tokens drawn from logits with temperature, top-k and top-p, three groups
    draws_biased.safetensors     the same by a sampler that moves 2 % from the likeliest token to the next (TV 0.02)
    steps_unbiased.safetensors   speculative steps, K = 3, by rejection sampling as in the papers
    steps_biased.safetensors     the same with the recovered token drawn from p instead of max(p - q, 0)
    probs.csv, counts_unbiased.csv, counts_biased.csv     single draws as text (the sampler drops the rarest token)

The format is docs/audit.md. The container is a length, a JSON header and the tensors' bytes.
"""

import json
import math
import pathlib
import random
import struct
import sys
from array import array


def write_safetensors(path, tensors):
    """tensors: name -> (dtype, shape, array)"""
    header, data = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        raw = values.tobytes()
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def softmax(logits):
    top = max(logits)
    weights = [math.exp(x - top) for x in logits]
    return [w / sum(weights) for w in weights]


def processed(logits, temperature, top_k, top_p):
    """Both filters look at the whole row and the kept set is what both keep."""
    p = softmax([x / temperature for x in logits])
    order = sorted(range(len(p)), key=lambda i: (-p[i], i))
    kept, mass = set(), 0.0
    for rank, token in enumerate(order):
        if (top_k and rank >= top_k) or (rank > 0 and mass >= top_p):
            break
        kept.add(token)
        mass += p[token]
    return [x / mass if i in kept else 0.0 for i, x in enumerate(p)]


def as_f32(values):
    """What the file holds of them, as Python numbers."""
    return list(array("f", values))


def moved(p, share):
    """`share` of the whole moved from the likeliest token to the next: a distribution at this distance."""
    first, second = sorted(range(len(p)), key=lambda i: -p[i])[:2]
    q = list(p)
    q[first] -= share
    q[second] += share
    return q


def write_draws(path, rng, draws, bias):
    vocabulary, temperature, top_k, top_p = 24, [1.0, 0.7, 1.3], [0, 10, 0], [1.0, 1.0, 0.9]
    logits_rng = random.Random(5)
    rows = [as_f32(logits_rng.gauss(0, 1.5) for _ in range(vocabulary)) for _ in temperature]
    distributions = [processed(row, *rest) for row, *rest in zip(rows, as_f32(temperature), top_k, as_f32(top_p))]
    samples, group = array("i"), array("i")
    for g, distribution in enumerate(distributions):
        count = draws // len(distributions) + (g < draws % len(distributions))
        samples.extend(rng.choices(range(vocabulary), moved(distribution, bias), k=count))
        group.extend([g] * count)
    write_safetensors(path, {
        "target_logits": ("F32", [len(rows), vocabulary], array("f", sum(rows, []))),
        "temperature": ("F32", [3], array("f", temperature)), "top_k": ("I32", [3], array("i", top_k)),
        "top_p": ("F32", [3], array("f", top_p)), "samples": ("I32", [len(samples)], samples),
        "group": ("I32", [len(group)], group)})


class Model:
    """A distribution [V] for each (position, last token)."""

    def __init__(self, seed, vocabulary):
        rng = random.Random(seed)
        self.rows = {(i, last): as_f32(softmax([rng.gauss(0, 1) for _ in range(vocabulary)]))
                     for i in range(4) for last in range(vocabulary)}


def write_steps(path, rng, steps, recover_from_target):
    vocabulary, draft_len = 8, 3
    target, draft = Model(1, vocabulary), Model(2, vocabulary)
    tokens = range(vocabulary)
    p_rows, q_rows, drafts, output, num_accepted = array("f"), array("f"), array("i"), array("i"), array("i")
    for _ in range(steps):
        last, emitted, done = 0, [], False
        for i in range(draft_len + 1):
            p = target.rows[i, last]
            p_rows.extend(p)
            if i == draft_len:
                break
            q = draft.rows[i, last]
            q_rows.extend(q)
            last = rng.choices(tokens, q)[0]
            drafts.append(last)
            if done:
                continue
            if rng.random() * q[last] < p[last]:
                emitted.append(last)
                continue
            residual = p if recover_from_target else [max(a - b, 0.0) for a, b in zip(p, q)]
            emitted.append(rng.choices(tokens, residual)[0])
            done = True
        num_accepted.append(len(emitted) - done)
        if not done:
            emitted.append(rng.choices(tokens, p)[0])
        output.extend(emitted + [-1] * (draft_len + 1 - len(emitted)))
    write_safetensors(path, {
        "target_probs": ("F32", [steps, draft_len + 1, vocabulary], p_rows),
        "draft_probs": ("F32", [steps, draft_len, vocabulary], q_rows),
        "draft_tokens": ("I32", [steps, draft_len], drafts),
        "output_tokens": ("I32", [steps, draft_len + 1], output),
        "num_accepted": ("I32", [steps], num_accepted)})


def write_csv(folder, rng, draws):
    distribution = [0.4, 0.3, 0.2, 0.07, 0.03]
    groups = {7: distribution, 11: distribution[::-1]}
    with open(folder / "probs.csv", "w") as file:
        print("group,token,prob", file=file)
        for g, p in groups.items():
            for token, x in enumerate(p):
                print(g, token, x, sep=",", file=file)
    for name, drop in (("unbiased", False), ("biased", True)):
        with open(folder / f"counts_{name}.csv", "w") as file:
            print("group,token,count", file=file)
            for g, p in groups.items():
                drawn = rng.choices(range(5), [0.0 if drop and x == min(p) else x for x in p], k=draws // 2)
                for token in range(5):
                    print(g, token, drawn.count(token), sep=",", file=file)


def main():
    if len(sys.argv) not in (2, 3, 4):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    draws = int(sys.argv[2]) if len(sys.argv) > 2 else 200_000
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 20_000
    rng = random.Random(20240711)
    write_draws(folder / "draws_unbiased.safetensors", rng, draws, 0.0)
    write_draws(folder / "draws_biased.safetensors", rng, draws, 0.02)
    write_steps(folder / "steps_unbiased.safetensors", rng, steps, False)
    write_steps(folder / "steps_biased.safetensors", rng, steps, True)
    write_csv(folder, rng, draws)


if __name__ == "__main__":
    main()
