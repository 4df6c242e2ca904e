"""Audits of what was drawn, exact checks of filters, and proofs."""

import numpy as np

import draftproof
import reference_numpy


def test_draws_are_judged_and_a_wrong_temperature_is_found():
    row = np.array([[1.0, 0.5, 0.0, -1.0, 0.2]], np.float32)
    tokens = draftproof.sample(np.broadcast_to(row, (40_000, 5)), {"temperature": 0.9}, np.arange(40_000))
    right = draftproof.audit_draws(tokens, row, temperature=0.9)
    assert right.verdict == "consistent" and right.n == 40_000
    wrong = draftproof.audit_draws(tokens, row, temperature=1.1)
    assert wrong.verdict == "biased" and "tokens" in wrong.sentence
    assert "<table>" in wrong._repr_html_()
    assert draftproof.audit_draws(tokens[:50], row, temperature=0.9).verdict == "inconclusive"


def test_a_token_outside_of_the_vocabulary_is_a_bias():
    found = draftproof.audit_draws([0, 1, 5], np.zeros((1, 5), np.float32))
    assert found.verdict == "biased" and "draw 2 is token 5" in found.sentence


def test_rows_of_a_batch_that_share_their_noise_are_correlated():
    row = np.zeros((1, 4), np.float32)
    tokens = np.repeat(draftproof.sample(np.broadcast_to(row, (2000, 4)), None, np.arange(2000)), 8)
    places = {"draw_step": np.repeat(np.arange(2000), 8), "draw_row": np.tile(np.arange(8), 2000)}
    found = draftproof.audit_draws(tokens, row, **places)
    assert found.test("correlation_rows_1").rejects and found.test("correlation_rows_1").is_correlation
    assert found.test("correlation_rows_1").p_value < 1e-100


def steps(verifier, n=20_000):
    rng = np.random.default_rng(5)
    target = np.log(np.array([0.5, 0.3, 0.2], np.float32))
    drafter = np.array([0.2, 0.3, 0.5], np.float32)
    drafts = rng.choice(3, (n, 2), p=drafter.astype(np.float64) / drafter.sum(dtype=np.float64))
    arguments = (drafts.reshape(-1), np.broadcast_to(drafter, (2 * n, 3)), np.broadcast_to(target, (3 * n, 3)),
                 np.cumsum(np.full(n, 2)))
    return draftproof.verify(*arguments, None, np.arange(n), verifier=verifier).tokens, arguments


def test_steps_name_the_depth_that_was_tested():
    tokens, arguments = steps("block")
    found = draftproof.audit_steps(tokens, *arguments, verifier="any")
    assert found.verdict == "consistent"
    assert (found.string_tokens, found.string_tokens_max) == (3, 3)
    assert "completed strings of 3 tokens" in found.sentence
    assert draftproof.audit_steps(tokens, *arguments, verifier="chain").verdict == "biased"


def test_malformed_output_is_a_failure_of_the_verifier():
    tokens, arguments = steps("chain", 100)
    tokens = tokens.copy()
    tokens[7] = [0, -1, 1]
    found = draftproof.audit_steps(tokens, *arguments)
    assert found.verdict == "biased" and "request 7 has -1 (padding) at 1" in found.sentence


def test_a_filter_is_checked_exactly():
    logits = (2.0 * np.random.default_rng(0).standard_normal((200, 300))).astype(np.float32)
    size = len(logits)
    params = {"temperature": np.resize(np.float32([0.1, 1.0, 0.7]), size), "top_k": np.resize([0, 20], size),
              "top_p": np.resize(np.float32([0.9, 1.0, 0.5]), size), "min_p": np.resize(np.float32([0.0, 0.05]), size)}
    left = reference_numpy.filter_rows(logits, params)
    check = draftproof.check_filter(logits, left, params)
    assert check.holds, check.sentence
    assert draftproof.check_filter(logits, kept=np.isfinite(left), params=params).verdict == "holds"
    wrong = draftproof.check_filter(logits, left, {**params, "top_p": params["top_p"] * np.float32(0.9)})
    assert wrong.verdict == "fails" and wrong.failing[0].wrongly_kept_count > 0
    assert "wrongly kept" in wrong.sentence and "<table>" in wrong._repr_html_()
