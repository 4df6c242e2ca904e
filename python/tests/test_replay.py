"""verify with an engine's own random numbers, and further samplers, against plain Python."""

from fractions import Fraction

import numpy as np
import pytest

import draftproof

V = 6


def vllm_step(seed, size=200, placeholders=0.0):
    """vLLM's rejection sampler over fractions: p / q >= u, argmax(max(p - q, 0) / noise), a row of noise a request.
    placeholders: the share of drafts of id -1, whose rows q are zeros, which it rejects since its pull request
    46533."""
    random = np.random.default_rng(seed)
    counts = random.integers(0, 4, size)
    drafts = int(counts.sum())
    target = random.multinomial(16, [1 / V] * V, drafts + size).astype(np.float32) / 16
    proposal = random.multinomial(16, [1 / V] * V, drafts).astype(np.float32) / 16
    noise = random.integers(1, 20, (size, V)).astype(np.float32) / 8
    uniforms = np.where(random.random(drafts) < 0.5, random.integers(0, 16, drafts) / 16, random.random(drafts))
    tokens, recovered, output = np.zeros(drafts, np.int32), np.zeros(drafts, np.int32), np.full((size, 4), -1, np.int32)
    bonus = random.integers(0, V, size).astype(np.int32)
    at = 0
    for b, count in enumerate(counts):
        row = at + b
        bonus[b] = target[row + count].argmax()
        emitted, rejected = [], False
        for i in range(count):
            p, q = target[row + i], proposal[at + i]
            token = tokens[at + i] = random.choice(np.flatnonzero(q))
            if is_placeholder := placeholders > 0.0 and random.random() < placeholders:
                tokens[at + i], q[:] = -1, 0.0
            scores = [Fraction(float(max(x - y, 0))) / Fraction(float(e)) for x, y, e in zip(p, q, noise[b])]
            recovered[at + i] = scores.index(max(scores))
            if rejected:
                continue
            rejected = is_placeholder or Fraction(float(p[token])) / Fraction(float(q[token])) < Fraction(
                    float(uniforms[at + i]))
            emitted.append(recovered[at + i] if rejected else token)
        if not rejected:
            emitted.append(bonus[b])
        output[b, :len(emitted)] = emitted
        at += count
    given = {"draft_tokens": tokens, "draft_probs": proposal, "target_logits": None, "target_probs": target,
             "cu_num_draft_tokens": np.concatenate([[0], counts.cumsum()])}
    return given, {"uniforms": uniforms, "recovered_tokens": recovered, "bonus_tokens": bonus}, noise, output


def test_a_step_of_vllm_is_replayed_bit_for_bit():
    given, recorded, noise, output = vllm_step(1)
    found = draftproof.verify(**given, **recorded, convention="vllm_v1")
    width = found.tokens.shape[1]
    np.testing.assert_array_equal(found.tokens, output[:, :width])
    by_noise = {name: recorded[name] for name in ("uniforms", "bonus_tokens")}
    again = draftproof.verify(**given, **by_noise, exponential_noise=noise, convention="vllm_v1")
    np.testing.assert_array_equal(again.tokens, found.tokens)
    strict = draftproof.verify(**given, **recorded, convention="sglang")  # ties fall otherwise
    assert (strict.tokens != found.tokens).any()


def test_placeholders_within_drafts_are_rejected_and_a_token_is_drawn_as_vllm_does():
    given, recorded, noise, output = vllm_step(7, placeholders=0.3)
    assert (given["draft_tokens"] == -1).sum() > 50
    found = draftproof.verify(**given, **recorded, convention="vllm_v1")
    np.testing.assert_array_equal(found.tokens, output)
    by_noise = {name: recorded[name] for name in ("uniforms", "bonus_tokens")}
    np.testing.assert_array_equal(draftproof.verify(**given, **by_noise, exponential_noise=noise,
                                                    convention="vllm_v1").tokens, output)
    # Drawn from the target: at a placeholder, every token as often as its probability says.
    row = np.array([[0.5, 0.3, 0.2]], np.float32)
    drawn = draftproof.verify(np.full(6000, -1), None, None, np.arange(1, 6001), seeds=np.arange(6000),
                              target_probs=np.repeat(row, 12000, axis=0))
    assert (drawn.tokens[:, 1] == -1).all() and (drawn.num_accepted == 0).all()
    np.testing.assert_allclose(np.bincount(drawn.tokens[:, 0]) / 6000, row[0], atol=0.03)
    with pytest.raises(draftproof.Error, match="-1"):
        draftproof.verify([-1, 1], None, None, [2], target_probs=np.repeat(row, 3, axis=0), draft_parents=[-1, -1],
                          verifier="rrs")


def test_words_stand_for_fractions_of_2_to_the_32():
    given, recorded, _, _ = vllm_step(2)
    words = (recorded["uniforms"] * 2.0**32).astype(np.uint32)
    found = draftproof.verify(**given, **{**recorded, "uniforms": words}, convention="vllm_v1")
    same = draftproof.verify(**given, **{**recorded, "uniforms": words * 2.0**-32}, convention="vllm_v1")
    np.testing.assert_array_equal(found.tokens, same.tokens)


@pytest.mark.parametrize("change, text", [
    ({"uniforms": None}, "has no uniforms; expected them, since verifier chain throws coins"),
    ({"bonus_tokens": None}, "has no recorded numbers for the last token of a step"),
    ({"uniforms": np.zeros(3)}, r"uniforms: has shape \[3\]; expected \["),
    ({"uniforms": lambda u: np.where(np.arange(u.size) == 0, np.nan, u)},
     r"uniforms\[0\] is nan; expected a number in"),
    ({"uniforms": lambda u: u + 1}, r"uniforms\[0\] is 1\.\d+; expected a number in \[0, 1\]"),
    ({"uniforms": lambda u: u.astype(np.float16)}, "uniforms: has dtype float16; expected float32, float64 or uint32"),
    ({"verifier": "rrs"}, "has recovered_tokens or bonus_tokens, and verifier rrs does not take them"),
    ({"verifier": "greedy_multipath"}, "takes no recorded randomness; expected one of chain, block"),
    ({"convention": "vllm"}, "convention: is 'vllm'; expected one of draftproof, vllm_v1"),
    ({"bonus_tokens": lambda t: t + V}, "bonus_tokens is "),
])
def test_recorded_numbers_that_do_not_fit_are_refused(change, text):
    given, recorded, _, _ = vllm_step(3)
    arguments = {**given, **recorded}
    for name, value in change.items():
        arguments[name] = value(arguments[name]) if callable(value) else value
    with pytest.raises(draftproof.Error, match=text):
        draftproof.verify(**arguments)


def test_further_samplers_keep_what_their_definitions_keep():
    logits = (2.0 * np.random.default_rng(4).standard_normal((30, 40))).astype(np.float32)
    p = np.exp(logits.astype(np.float64))
    p /= p.sum(axis=1, keepdims=True)
    entropy = -(p * np.log(p)).sum(axis=1, keepdims=True)
    order = np.argsort(np.abs(-np.log(p) - entropy), axis=1)
    before = np.take_along_axis(p, order, 1).cumsum(axis=1) - np.take_along_axis(p, order, 1)
    typical = np.zeros(p.shape, bool)
    np.put_along_axis(typical, order, before < 0.7, 1)
    limits = np.minimum(0.02, np.sqrt(0.02) * np.exp(-entropy))
    above = p >= 0.1
    top = above & ((above.sum(axis=1, keepdims=True) < 2) | (p == np.where(above, p, 2).min(axis=1, keepdims=True)))
    for params, kept in [
        ({"typical_p": 0.7}, typical),
        ({"epsilon_cutoff": 0.02}, p >= 0.02),
        ({"eta_cutoff": 0.02}, p >= limits),
        ({"top_n_sigma": 1.5}, logits >= (logits.max(axis=1) - 1.5 * logits.astype(np.float64).std(axis=1))[:, None]),
        ({"xtc_threshold": 0.1, "xtc_probability": 1.0}, ~above | top),
    ]:
        found = draftproof.process_rows(logits, params).probabilities > 0
        np.testing.assert_array_equal(found, kept, err_msg=str(params))
        tokens = draftproof.sample(logits, params, seeds=np.arange(30))
        assert kept[np.arange(30), tokens].all()


def test_given_ids_have_the_log_probabilities_of_the_rows_of_the_emitted_tokens():
    given, recorded, _, output = vllm_step(6)
    counts = np.diff(given["cu_num_draft_tokens"])
    ids = [list(range(b % 4)) for b in range(counts.size)]
    found = draftproof.verify(**given, **recorded, convention="vllm_v1", logprob_token_ids=ids)
    with np.errstate(divide="ignore"):
        rows = np.log(given["target_probs"].astype(np.float64))
    for b, first in enumerate(given["cu_num_draft_tokens"][:-1] + np.arange(counts.size)):
        emitted = found.num_accepted[b] + 1
        expected = np.full((len(ids[b]), found.tokens.shape[1]), -np.inf)
        expected[:, :emitted] = rows[first:first + emitted, ids[b]].T
        np.testing.assert_allclose(found.token_id_logprobs[b], expected, rtol=0, atol=1e-5)
    assert draftproof.verify(**given, **recorded, convention="vllm_v1").token_id_logprobs is None
    assert draftproof.verify([], None, np.zeros((0, 3), np.float32), [], logprob_token_ids=[]).token_id_logprobs == []
    for wrong, text in [([[V]] * counts.size, r"logprob_token_ids\[0\] is 6; expected an id in \[0, 6\)"),
                        ([[0] * 129] * counts.size, "request 0: logprob_token_ids has 129 ids; expected at most 128"),
                        ([[0]], "logprob_token_ids: has 1 lists; expected 200, one a request"),
                        ([[0.5]] * counts.size, r"logprob_token_ids\[0\]: has dtype float64; expected whole numbers")]:
        with pytest.raises(draftproof.Error, match=text):
            draftproof.verify(**given, **recorded, logprob_token_ids=wrong)
    with pytest.raises(draftproof.Error, match="logprob_token_ids: has no use without logprobs"):
        draftproof.verify(**given, **recorded, logprob_token_ids=ids, logprobs=False)


def test_samplers_with_a_state_are_refused_where_there_are_drafts():
    given, recorded, _, _ = vllm_step(5, size=20)
    given["target_logits"], given["target_probs"] = np.log(given["target_probs"] + 1e-9).astype(np.float32), None
    for params in ({"mirostat": 2, "mirostat_mu": 5.0}, {"adaptive_target": 0.5},
                   {"xtc_probability": 0.5, "xtc_uniform": 0.2}):
        with pytest.raises(draftproof.Error, match="has drafts, and XTC by chance, Mirostat or adaptive-p"):
            draftproof.verify(**given, **recorded, params=params)
    with pytest.raises(draftproof.Error, match="typical_p is 1.5"):
        draftproof.process_rows(np.zeros((1, 4), np.float32), typical_p=1.5)
