"""Calls of the module with hostile arguments: each is an answer or an exception with a name, and the interpreter lives.

python python/tests/hostile_calls.py [--calls 1000000] [--first N] [--seconds S] [--seed 0] [--json FILE]

Made for a module that is built with sanitizers (./draftproof test-python --hostile); it runs with any. The number of
the last
call is printed every 10,000 calls, and when it is interrupted: --seed S --first N goes on there. Ends with status 1
where a call raised what it should not. --json appends what a run did to FILE.
"""

import argparse
import collections
import json
import signal
import time
from pathlib import Path

import numpy as np

import draftproof

DTYPES = ("f4", "f2", "f8", "i4", "u1", "i8", "u8", "c8", "O", "S3", "?", ">f4", ">i8", "g", "M8[s]", "i4,f4", "U2")
ODD = (None, "x", "", 3, -1, 0, 1.5, float("nan"), [], {}, [[1.0], [2.0, 3.0]], (1, 2), b"\xff", 1 << 70, True,
       object(), [None],
       {1: 2.0}, {"x": []}, [[[]]], [{}], np.float32(2.0), np.array(7), slice(None), range(3), iter([1]), Ellipsis, max)
NUMBERS = (0.0, 1.0, -1.0, 0.5, 1.5, 1e-45, 1e-30, 1e30, 3.4e38, np.inf, -np.inf, np.nan)
WHOLE = (0, 1, -1, 2, 31, 32, 33, 255, 1 << 20, (1 << 31) - 1, -(1 << 31), 1 << 40, (1 << 63) - 1, -(1 << 63))


SAMPLERS = tuple(draftproof._core.sampler_parameters())


class Provoked(Exception):
    """What a hostile object raises: it may come through."""


class Tensor:
    """Something with DLPack that fails at one of its steps, or gives another array than it says."""

    def __init__(self, array, how):
        self.array, self.how = array, how
        self.shape = ((1 << 40,) if how == 0 else array.shape)
        self.dtype = "bfloat16" if how in (1, 7) else array.dtype
        if how == 2:
            del self.shape, self.dtype

    def __dlpack_device__(self):
        if self.how == 3:
            raise Provoked("no device")
        return {4: (2, 0), 5: (99, -1), 6: "cpu"}.get(self.how, (1, 0))

    def __dlpack__(self, **keywords):
        if self.how in (7, 8):
            raise Provoked("no capsule")
        return None if self.how == 9 else self.array.__dlpack__(**keywords)


class Raising:
    """A sequence, a mapping and an array in name."""

    def __len__(self):
        raise Provoked("no length")

    __getitem__ = __iter__ = __array__ = __index__ = __float__ = __bool__ = __len__


def array_of(rng):
    kind = rng.integers(3)
    shape = tuple(rng.integers(0, 6, rng.integers(0, 4)))
    if kind == 0:
        array = rng.choice(NUMBERS, shape)
    elif kind == 1:
        array = rng.choice(np.array(WHOLE, np.int64), shape)
    else:
        array = 10.0 * rng.standard_normal(shape)
    return np.asarray(array).astype(DTYPES[rng.integers(len(DTYPES))] if rng.random() < 0.7 else "f4")


def laid_out(rng, array):
    """The same numbers in another layout, or in another class."""
    how = rng.integers(14)
    if array.ndim == 0 or array.dtype == object:
        return array
    if how == 0:
        return array[::-1]
    if how == 1:
        return np.repeat(array, 2, axis=-1)[..., ::2]
    if how == 2:
        return np.broadcast_to(array, (3, *array.shape))
    if how == 3:
        array = array.copy()
        array.flags.writeable = False
    elif how == 4:
        return np.asfortranarray(array)
    elif how == 5:
        return np.frombuffer(b"\0" + array.tobytes(), array.dtype, offset=1).reshape(array.shape)  # not aligned
    elif how == 6:
        return np.ma.masked_array(array)
    elif how == 7:
        return np.lib.stride_tricks.as_strided(array, array.shape, (0,) * array.ndim)
    elif how == 8:
        return Tensor(array, rng.integers(10))
    elif how == 9 and array.ndim == 2:
        return array.T
    elif how == 10:
        return array.tolist()
    elif how == 11:
        return array.reshape(-1)[:: -2]
    return array


def hostile(rng):
    draw = rng.random()
    if draw < 0.25:
        return ODD[rng.integers(len(ODD))]
    return Raising() if draw < 0.28 else laid_out(rng, array_of(rng))


def numbers(rng, count):
    return rng.choice(NUMBERS[:8] if rng.random() < 0.2 else (0.5, 1.0, 1.5), count if rng.random() < 0.8 else ())


def ids(rng, vocab_size, most=4, least=0):
    return rng.integers(-1 if rng.random() < 0.05 else 0, vocab_size + (rng.random() < 0.05),
                        rng.integers(least, most + 1))


def options(rng, count, rows, vocab_size):
    """Some RowOptions, most of them as they should be."""
    words = -(-vocab_size // 32)
    lists = lambda: [None if rng.random() < 0.1 else ids(rng, vocab_size, 4, rng.random() < 0.9) for _ in range(count)]  # noqa: E731
    biases = lambda: {int(token): float(rng.choice(NUMBERS[:6])) for token in ids(rng, vocab_size)}  # noqa: E731
    make = {"temperature": lambda: rng.choice([0.0, 1e-30, 0.5, 1.0, 1e30], count),
            "top_k": lambda: rng.integers(-1, 50, count),
            "top_p": lambda: rng.choice([0.0, 1e-9, 0.5, 1.0], count),
            "min_p": lambda: rng.choice([0.0, 0.5, 1.0], count),
            "repetition_penalty": lambda: numbers(rng, count), "frequency_penalty": lambda: numbers(rng, count),
            "presence_penalty": lambda: numbers(rng, count), "guidance_scale": lambda: numbers(rng, count),
            "min_tokens": lambda: rng.integers(-1 if rng.random() < 0.1 else 0, 3, count),
            "allowed": lambda: rng.random((rows, vocab_size)) < 0.8,
            "bitmask": lambda: rng.integers(0, 1 << 32, (rows, words)).astype(np.uint32).view(np.int32),
            "uncond_logits": lambda: rng.standard_normal((rows, vocab_size)).astype(np.float32), "allowed_ids": lists,
            "stop_ids": lists, "prompt_tokens": lists, "output_tokens": lists,
            "bad_words": lambda: [[ids(rng, vocab_size, 3, rng.random() < 0.95) for _ in range(rng.integers(0, 3))]
                                  for _ in range(count)],
            "logit_bias": lambda: biases() if rng.random() < 0.5 else [biases() for _ in range(count)],
            "filter_order": lambda: "top_k_first", "ties": lambda: "keep_all",
            "guidance_form": lambda: "probabilities", "nan_policy": lambda: "as_minus_inf"}
    make.update({name: lambda: numbers(rng, count) for name in SAMPLERS})
    chosen = set(rng.choice(list(make), rng.integers(0, 4), replace=False))
    if chosen & {"guidance_scale", "uncond_logits"} and rng.random() < 0.9:
        chosen |= {"guidance_scale", "uncond_logits"}
    return {name: hostile(rng) if rng.random() < 0.15 else make[name]() for name in sorted(chosen)}


def steps(rng):
    """Arguments of a step that are nearly right, so that calls come past the first check."""
    count, vocab_size = int(rng.integers(1, 5)), int(rng.integers(1, 40))
    lens = rng.integers(0, 4, count)
    total = int(lens.sum())
    rows = total + count
    probs = rng.random((total, vocab_size)).astype(np.float32)
    if total and rng.random() < 0.9:
        probs /= probs.sum(axis=1, keepdims=True)
    target = (rng.choice([1.0, 30.0]) * rng.standard_normal((rows, vocab_size))).astype(rng.choice(["f4", "f2", "f8"]))
    given = {"draft_tokens": rng.integers(-1 if rng.random() < 0.05 else 0, vocab_size + (rng.random() < 0.05), total),
             "draft_probs": probs, "target_logits": target, "cu_num_draft_tokens": np.cumsum(lens),
             "params": options(rng, count, rows, vocab_size)}
    kind = rng.integers(8)
    if kind == 0:
        given.update(draft_probs=None)
    elif kind == 1:
        given.update(draft_probs=None, draft_logits=probs, draft_processed=rng.random() < 0.5)
    elif kind == 2:
        given.update(target_logits=None, target_probs=draftproof.process_rows(target).probabilities
                     if rng.random() < 0.9 else np.exp(target))
    elif kind == 3:  # trees: rows of every node
        parents = [int(rng.integers(-1, i)) for length in lens for i in range(length)]
        given.update(draft_parents=np.array(parents, np.int32),
                     draft_probs=np.full((rows, vocab_size), 1 / vocab_size, np.float32))
    return given, count, vocab_size


def recorded(rng, drafts, count, vocab_size):
    """An engine's own random numbers."""
    rows = drafts + count
    draws = [{"draw_uniforms": rng.random(rows)},
             {"gumbel_noise": rng.standard_normal((rows, vocab_size)).astype("f4")},
             {"exponential_noise": rng.standard_exponential((count, vocab_size))},
             {"recovered_tokens": rng.integers(0, vocab_size, drafts),
              "bonus_tokens": rng.integers(-1, vocab_size, count)}]
    return {"uniforms": rng.choice(NUMBERS, drafts) if rng.random() < 0.1 else rng.random(drafts, np.float32),
            "convention": "vllm_v1" if rng.random() < 0.3 else "draftproof", **draws[rng.integers(4)]}


def spoil(rng, given):
    for name in given:
        if rng.random() < 0.07:
            given[name] = hostile(rng)
    return given


def call(rng, verifiers):
    which = rng.integers(8)
    threads = None if rng.random() < 0.98 else (1, 2, 0, -3, "x", 1.5, 1 << 70)[rng.integers(7)]
    if which < 3:
        given, count, vocab_size = steps(rng)
        if which < 2:
            given.update(seeds=rng.integers(0, 1 << 62, count), verifier=verifiers[rng.integers(len(verifiers))],
                         logprobs=True,
                         logprob_token_ids=[ids(rng, vocab_size) for _ in range(count)] if rng.random() < 0.3 else None,
                         sampler="race" if rng.random() < 0.3 else "inverse", steps=rng.integers(0, 9, count),
                         positions=None)
            if rng.random() < 0.2:
                given.update(recorded(rng, len(given["draft_tokens"]), count, vocab_size))
            return draftproof.verify(**spoil(rng, given), threads=threads)
        emitted = rng.integers(-1, vocab_size + (rng.random() < 0.1), (count, 4))
        given.update(output_tokens=emitted, group=rng.integers(0, 2, count), draw_seed=rng.integers(0, 9, count),
                     seed=1,
                     verifier="any" if rng.random() < 0.5 else verifiers[rng.integers(len(verifiers))], alpha=1e-6,
                     tv_wanted=0.5)
        return draftproof.audit_steps(**spoil(rng, given), threads=threads)
    count, vocab_size = int(rng.integers(1, 6)), int(rng.integers(1, 40))
    given = {"logits": rng.standard_normal((count, vocab_size)).astype("f4"),
             "params": options(rng, count, count, vocab_size)}
    if which == 3:
        given.update(seeds=rng.integers(0, 1 << 62, count), steps=0, sampler="inverse")
        return draftproof.sample(**spoil(rng, given), threads=threads)
    if which == 4:
        given.update(samples=rng.integers(-1 if rng.random() < 0.1 else 0, vocab_size, 20),
                     group=rng.integers(0, count, 20),
                     draw_row=rng.integers(0, 5, 20), draw_step=rng.integers(0, 5, 20), alpha=1e-6, tv_wanted=0.5,
                     seed=0)
        return draftproof.audit_draws(**spoil(rng, given), threads=threads)
    if which == 5:
        given.update(filtered_logits=np.where(rng.random((count, vocab_size)) < 0.5, given["logits"], -np.inf))
        if rng.random() < 0.5:
            given.update(filtered_logits=None, kept=np.isfinite(given["logits"]))
        return draftproof.check_filter(**spoil(rng, given), threads=threads)
    return draftproof.process_rows(**spoil(rng, given), threads=threads)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    begin = time.monotonic()
    verifiers = [*(v.name for v in draftproof.verifiers()), "synthetic:rate=0.5", "typical:epsilon=9", "x", "chain:y=1"]
    counts = collections.Counter()
    number = given.first
    stopped = []
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: stopped.append(True))
    with np.errstate(all="ignore"):
        while not stopped and number < given.first + given.calls and time.monotonic() < begin + given.seconds:
            rng = np.random.Generator(np.random.SFC64([given.seed, number]))
            try:
                call(rng, verifiers)
                counts["answered"] += 1
            except (draftproof.Error, TypeError, Provoked) as error:
                counts[type(error).__name__] += 1
            except Exception as error:
                print(f"seed {given.seed}, call {number}: {type(error).__name__}: {error}", flush=True)
                counts["other: " + type(error).__name__] += 1
            number += 1
            if number % 10_000 == 0:
                print(f"seed {given.seed}, call {number}: {dict(counts)}", flush=True)
    print(f"{number - given.first} calls, seed {given.seed}: {dict(counts)}")
    if given.json:
        with open(given.json, "a", encoding="utf-8") as out:
            out.write(json.dumps({"calls": number - given.first, "first": given.first, "seed": given.seed, **counts}) +
                      "\n")
    return 1 if any(name.startswith("other") for name in counts) else 0


if __name__ == "__main__":
    raise SystemExit(main())
