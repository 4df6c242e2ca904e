"""Calls of the module with hostile arguments: each is an answer or an exception with a name, and the interpreter lives.

python python/tests/hostile_calls.py [--calls 1000000] [--seconds S] [--seed 0]

The seed and the number of the last call are printed every 10,000 calls: --seed S --first N goes on there.
"""

import argparse
import collections
import time

import numpy as np

import draftproof

DTYPES = (np.float32, np.float16, np.float64, np.int32, np.uint8, np.int64, np.uint64, np.complex64, object, "S3", np.bool_, ">f4")
ODD = (None, "x", 3, -1, 1.5, float("nan"), [], {}, [[1.0], [2.0, 3.0]], (1, 2), b"\xff", 1 << 70)


def hostile(rng):
    if rng.random() < 0.1:
        return ODD[rng.integers(len(ODD))]
    shape = tuple(rng.integers(0, 6, rng.integers(0, 4)))
    array = np.asarray(10.0 * rng.standard_normal(shape))
    with np.errstate(all="ignore"):
        array = np.asarray(array.astype(DTYPES[rng.integers(len(DTYPES))]))
    if array.dtype.kind == "f" and rng.random() < 0.2:
        array = np.where(rng.random(array.shape) < 0.3, (np.nan, np.inf, -np.inf)[rng.integers(3)], array)
    how = rng.integers(6)
    if array.ndim and how == 0:
        array = array[::-1]
    elif array.ndim and how == 1:
        array = np.repeat(array, 2, axis=-1)[..., ::2]
    elif how == 2:
        array = np.broadcast_to(array, (3, *array.shape))
    elif how == 3:
        array = array.copy()
        array.flags.writeable = False
    return array


def sensible(rng):
    """Arguments that are nearly right, so that calls come past the first check."""
    count, vocab_size = int(rng.integers(1, 6)), int(rng.integers(1, 40))
    lens = rng.integers(0, 4, count)
    total = int(lens.sum())
    probs = rng.random((total, vocab_size)).astype(np.float32)
    if total and rng.random() < 0.9:
        probs /= probs.sum(axis=1, keepdims=True)
    spread = float(rng.choice([1.0, 30.0]))
    return {"draft_tokens": rng.integers(-1 if rng.random() < 0.1 else 0, vocab_size + (rng.random() < 0.1), total),
            "draft_probs": probs if rng.random() < 0.8 else None,
            "target_logits": (spread * rng.standard_normal((total + count, vocab_size))).astype(np.float32),
            "cu_num_draft_tokens": np.cumsum(lens), "seeds": rng.integers(0, 1 << 62, count)}


def parameters(rng, count):
    names = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "frequency_penalty", "presence_penalty")
    values = {"temperature": lambda: rng.choice([0.0, 1e-30, 0.5, 1e30], count), "top_k": lambda: rng.integers(-1, 50, count),
              "top_p": lambda: rng.choice([0.0, 1e-9, 0.5, 1.0], count), "min_p": lambda: rng.choice([0.0, 0.5, 1.0], count)}
    return {name: hostile(rng) if rng.random() < 0.3 else values.get(name, lambda: rng.choice([0.5, 1.0, 2.0], count))()
            for name in rng.choice(names, rng.integers(0, 4), replace=False)}


def call(rng, verifiers):
    given = sensible(rng)
    count = len(given["cu_num_draft_tokens"])
    for name in given:
        if rng.random() < 0.12:
            given[name] = hostile(rng)
    params = hostile(rng) if rng.random() < 0.03 else parameters(rng, count)
    logits = given["target_logits"]
    which = rng.integers(6)
    if which == 0:
        return draftproof.sample(logits, params, given["seeds"], steps=hostile(rng) if rng.random() < 0.2 else 0)
    if which == 1:
        return draftproof.verify(**given, params=params, verifier=verifiers[rng.integers(len(verifiers))])
    if which == 2:
        return draftproof.audit_draws(hostile(rng) if rng.random() < 0.3 else rng.integers(0, 5, 20), logits, params,
                                      group=hostile(rng) if rng.random() < 0.3 else rng.integers(0, 2, 20))
    if which == 3:
        return draftproof.check_filter(logits, hostile(rng) if rng.random() < 0.3 else logits, params)
    if which == 4:
        emitted = hostile(rng) if rng.random() < 0.3 else rng.integers(-1, 5, (count, 4))
        given.pop("seeds")
        return draftproof.audit_steps(emitted, params=params, **given)
    return draftproof.process_rows(logits, params, allowed=hostile(rng) if rng.random() < 0.3 else None,
                                   output_tokens=[hostile(rng)] if rng.random() < 0.3 else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    end = time.monotonic() + given.seconds
    verifiers = [v.name for v in draftproof.verifiers()]
    counts = collections.Counter()
    number = given.first
    while number < given.first + given.calls and time.monotonic() < end:
        try:
            with np.errstate(all="ignore"):
                call(np.random.default_rng([given.seed, number]), verifiers)
            counts["answered"] += 1
        except (draftproof.Error, TypeError) as error:
            counts[type(error).__name__] += 1
        except Exception as error:
            print(f"seed {given.seed}, call {number}: {type(error).__name__}: {error}")
            counts["other: " + type(error).__name__] += 1
        number += 1
        if number % 10_000 == 0:
            print(f"seed {given.seed}, call {number}: {dict(counts)}", flush=True)
    print(f"{number - given.first} calls, seed {given.seed}: {dict(counts)}")
    return 1 if any(name.startswith("other") for name in counts) else 0


if __name__ == "__main__":
    raise SystemExit(main())
