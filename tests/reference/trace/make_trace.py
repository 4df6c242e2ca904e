#!/usr/bin/env python3
"""Trace files by another hand: numpy and the `safetensors` package (docs/trace.md is the format).

    make_trace.py write FOLDER    writes traces whose results do not depend on chance, and what they must be
    make_trace.py check FOLDER    compares the results that `draftproof verify` made of them, NAME.result.safetensors
    make_trace.py big FILE REQUESTS DRAFTS VOCABULARY    writes a large one, to measure

What a verifier emits is deterministic where the row is greedy, where p(x) = 0 (rejected whatever the coin) and where
p(x) >= q(x) > 0 (accepted whatever the coin), if the distribution that the last token is drawn from has a single token.
The traces here are made of such rows only, and the expected tokens come from numpy, not from draftproof.
"""

import hashlib
import json
import pathlib
import sys

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

F32 = np.float32


def softmax_rows(rng, count, vocabulary):
    logits = rng.normal(0.0, 2.0, [count, vocabulary])
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return (p / p.sum(axis=1, keepdims=True)).astype(F32)


def greedy_with_every_edit(rng):
    """Temperature 0, ragged, half precision: bitmask, bias and penalties decide, with the history along the draft."""
    vocabulary, requests = 70, 40
    words = (vocabulary + 31) // 32
    draft_len = rng.integers(0, 6, requests)
    prompts = [rng.integers(0, vocabulary, rng.integers(0, 8)) for _ in range(requests)]
    outputs = [rng.integers(0, vocabulary, rng.integers(0, 5)) for _ in range(requests)]
    biases = [rng.choice(vocabulary, rng.integers(0, 4), replace=False) for _ in range(requests)]
    bias_values = [rng.normal(0, 3, len(b)).astype(F32) for b in biases]
    repetition = rng.choice([1.0, 1.3, 0.7], requests).astype(F32)
    frequency = rng.choice([0.0, 0.5], requests).astype(F32)
    presence = rng.choice([0.0, 0.25], requests).astype(F32)
    guidance = rng.choice([1.0, 1.5], requests).astype(F32)
    given = [rng.integers(0, vocabulary, rng.integers(0, 4)) for _ in range(requests)]
    rows, unconditional, masks, drafts, emitted, listed = [], [], [], [], [], []
    for b in range(requests):
        listed += [[] for _ in given[b]]
        history, written, tokens, alive = list(prompts[b]), list(outputs[b]), [], True
        for i in range(draft_len[b] + 1):
            row = rng.normal(0, 2, vocabulary).astype(np.float16)
            free = rng.normal(0, 2, vocabulary).astype(np.float16)
            mask = rng.random(vocabulary) < 0.8
            rows.append(row), unconditional.append(free), masks.append(mask)
            at = row.astype(F32)
            if guidance[b] != 1:
                at = free.astype(F32) + guidance[b] * (at - free.astype(F32))
            for ids, token in zip(listed[len(listed) - len(given[b]):], given[b]):
                if alive:
                    ids.append(float(at[token] - np.log(np.exp(at.astype(float)).sum())))
            at[~mask] = -np.inf
            at[biases[b]] += bias_values[b]
            for token in set(history + written):
                count = written.count(token)
                at[token] = at[token] / repetition[b] if at[token] > 0 else at[token] * repetition[b]
                if count > 0:
                    at[token] -= frequency[b] * F32(count)
                    at[token] -= presence[b]
            best = int(np.argmax(at))
            if alive:
                tokens.append(best)
            if i < draft_len[b]:
                draft = best if rng.random() < 0.7 else int(rng.integers(0, vocabulary))
                drafts.append(draft)
                alive = alive and draft == best
                written.append(draft)
        emitted.append(tokens)
    padded = np.zeros([len(masks), words * 32], np.uint8)
    padded[:, :vocabulary] = masks
    bitmask = np.packbits(padded, axis=1, bitorder="little").view(np.int32)
    return emitted, draft_len, {
        "logprob_token_ids": np.concatenate(given).astype(np.int32),
        "cu_logprob_token_ids": np.cumsum([len(ids) for ids in given]).astype(np.int32),
        "target_logits": np.array(rows), "uncond_logits": np.array(unconditional),
        "draft_tokens": np.array(drafts, np.int64), "cu_num_draft_tokens": np.cumsum(draft_len).astype(np.int32),
        "temperature": np.zeros(requests, F32), "repetition_penalty": repetition, "frequency_penalty": frequency,
        "presence_penalty": presence, "guidance_scale": guidance, "bitmask": bitmask,
        "prompt_tokens": np.concatenate(prompts).astype(np.int32),
        "cu_prompt_tokens": np.cumsum([len(p) for p in prompts]).astype(np.int64),
        "output_tokens": np.concatenate(outputs).astype(np.int64),
        "cu_output_tokens": np.cumsum([len(o) for o in outputs]).astype(np.int32),
        "logit_bias_tokens": np.concatenate(biases).astype(np.int32),
        "logit_bias_values": np.concatenate(bias_values),
        "cu_logit_bias": np.cumsum([len(b) for b in biases]).astype(np.int32),
    }, listed


def certain_coins(rng):
    """Probabilities, dense with -1 padding: each draft is certain to stand or certain to fall."""
    vocabulary, requests, drafts_max = 5000, 30, 4
    draft_len = rng.integers(0, drafts_max + 1, requests)
    p = np.full([requests, drafts_max + 1, vocabulary], np.nan, F32)  # what is padding may hold anything
    q = np.full([requests, drafts_max, vocabulary], np.nan, F32)
    tokens = np.full([requests, drafts_max], -1, np.int32)
    emitted = []
    for b in range(requests):
        row, alive = [], True
        for i in range(draft_len[b]):
            q[b, i] = softmax_rows(rng, 1, vocabulary)[0]
            draft, other = (int(t) for t in rng.choice(vocabulary, 2, replace=False))
            stands = rng.random() < 0.7
            gains, loses = (draft, other) if stands else (other, draft)
            # All that `loses` had goes to `gains`, so that max(p - q, 0) has the one token `gains`.
            p[b, i] = q[b, i]
            p[b, i, gains] += q[b, i, loses]
            p[b, i, loses] = 0
            tokens[b, i] = draft
            if alive:
                row.append(draft if stands else other)
            alive = alive and stands
        bonus = int(rng.integers(vocabulary))
        p[b, draft_len[b]] = np.eye(1, vocabulary, bonus, dtype=F32)[0]
        emitted.append(row + [bonus] if alive else row)
    return emitted, draft_len, {"target_probs": p, "draft_probs": q, "draft_tokens": tokens,
                                "seed": rng.integers(-(2**63), 2**63, requests, dtype=np.int64)}


def one_hot_drafts(rng):
    """No proposal: p(x) is 1 or 0, and where it is 0 a single other token is left."""
    vocabulary, requests = 9, 25
    draft_len = rng.integers(0, 4, requests)
    rows, drafts, emitted = [], [], []
    for b in range(requests):
        row, alive = [], True
        for i in range(draft_len[b] + 1):
            only = int(rng.integers(vocabulary))
            logits = np.full(vocabulary, -np.inf, F32)
            logits[only] = rng.normal()
            rows.append(logits)
            if alive:
                row.append(only)
            if i < draft_len[b]:
                drafts.append(only if rng.random() < 0.7 else int(rng.integers(vocabulary)))
                alive = alive and drafts[-1] == only
        emitted.append(row)
    return emitted, draft_len, {"target_logits": np.array(rows), "draft_tokens": np.array(drafts, np.int32),
                                "cu_num_draft_tokens": np.cumsum(draft_len), "top_k": np.full(requests, 3, np.int32),
                                "top_p": np.full(requests, 0.9, F32), "step": np.arange(requests)}


def no_requests(_rng):
    return [], np.zeros(0, np.int64), {"target_logits": np.zeros([0, 7], F32), "draft_tokens": np.zeros(0, np.int64),
                                       "cu_num_draft_tokens": np.zeros(0, np.int64)}


TRACES = [greedy_with_every_edit, certain_coins, one_hot_drafts, no_requests]


def write(folder):
    rng = np.random.default_rng(20240711)
    expected = {}
    for make in TRACES:
        emitted, draft_len, tensors, *listed = make(rng)
        save_file(tensors, folder / f"{make.__name__}.safetensors", metadata={"sampler": "inverse", "format": "np"})
        expected[make.__name__] = {"emitted": emitted, "draft_len": [int(k) for k in draft_len],
                                   "listed": listed[0] if listed else []}
    (folder / "expected.json").write_text(json.dumps(expected))


def check(folder):
    kinds = set()
    for name, expected in json.loads((folder / "expected.json").read_text()).items():
        emitted, draft_len = expected["emitted"], expected["draft_len"]
        requests, width = len(emitted), max(draft_len, default=0) + 1
        path = folder / f"{name}.result.safetensors"
        result = load_file(path)
        tokens = np.full([requests, width], -1, np.int32)
        for b, row in enumerate(emitted):
            tokens[b, : len(row)] = row
            kinds.add((name, len(row) == draft_len[b] + 1))
        stood = [[1] * (len(row) - 1) + [0] * (k + 1 - len(row)) for row, k in zip(emitted, draft_len)]
        rows = sum(draft_len) + requests
        assert_same(name, "output_tokens", result["output_tokens"], tokens)
        assert_same(name, "num_accepted", result["num_accepted"], np.array([len(r) - 1 for r in emitted], np.int32))
        assert_same(name, "accepted", result["accepted"], np.array(sum(stood, []), np.uint8))
        for key, dtype, shape in [("logprob", F32, tokens.shape), ("raw_logprob", F32, tokens.shape),
                                  ("kept_mass", F32, (rows,)), ("kept_count", np.int32, (rows,))]:
            if result[key].dtype != dtype or result[key].shape != shape:
                sys.exit(f"{name}: {key} is {result[key].dtype}{result[key].shape}, not {dtype}{shape}")
        if np.any(result["logprob"][tokens < 0] != 0) or not np.all(np.isfinite(result["logprob"])):
            sys.exit(f"{name}: logprob is not 0 in the padding and finite elsewhere")
        for j, values in enumerate(expected["listed"]):  # of given ids, before any mask or penalty
            if not np.allclose(result["raw_token_id_logprob"][j], values + [0] * (width - len(values)), 0, 1e-5):
                sys.exit(f"{name}: raw_token_id_logprob[{j}] is {result['raw_token_id_logprob'][j]}, not {values}")
        order = ["output_tokens", "num_accepted", "accepted", "logprob", "raw_logprob", "kept_mass", "kept_count"]
        order += ["token_id_logprob", "raw_token_id_logprob"] if expected["listed"] else []
        digest = hashlib.sha256(b"".join(result[key].tobytes() for key in order)).hexdigest()
        with safe_open(path, "np") as file:
            metadata = file.metadata()
        trace = (folder / f"{name}.safetensors").read_bytes()
        if metadata["digest"] != digest or metadata["input_sha256"] != hashlib.sha256(trace).hexdigest():
            sys.exit(f"{name}: the metadata's digests are not those of the file: {metadata}")
    if len(kinds) != 6:
        sys.exit(f"the traces must hold requests with and without a rejection, but hold only {kinds}")


def assert_same(trace, tensor, got, right):
    if got.dtype != right.dtype or got.shape != right.shape:
        sys.exit(f"{trace}: {tensor} is {got.dtype}{got.shape}, not {right.dtype}{right.shape}")
    for index in np.argwhere(got != right)[:1]:
        sys.exit(f"{trace}: {tensor}{index.tolist()} is {got[tuple(index)]}, not {right[tuple(index)]}")


def big(path, requests, drafts, vocabulary):
    rng = np.random.default_rng(1)
    count = requests * drafts
    target = rng.standard_normal([count + requests, vocabulary], F32)
    target *= F32(2)
    rows = (np.arange(count) // drafts) * (drafts + 1) + np.arange(count) % drafts
    draft = target[rows] + F32(0.5) * rng.standard_normal([count, vocabulary], F32)
    noisy = draft + rng.gumbel(size=[count, vocabulary]).astype(F32) if vocabulary < 1000 else draft
    save_file({"target_logits": target, "draft_logits": draft, "draft_tokens": noisy.argmax(axis=1).astype(np.int32),
               "cu_num_draft_tokens": (np.arange(requests) + 1) * drafts}, path)


if __name__ == "__main__":
    if sys.argv[1:2] == ["big"]:
        big(pathlib.Path(sys.argv[2]), *(int(text) for text in sys.argv[3:6]))
    elif len(sys.argv) == 3 and sys.argv[1] in ("write", "check"):
        {"write": write, "check": check}[sys.argv[1]](pathlib.Path(sys.argv[2]))
    else:
        sys.exit(__doc__)
