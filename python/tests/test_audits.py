"""Audits of what was drawn, exact checks of filters, and proofs."""

from statistics import NormalDist

import numpy as np
import pytest
import reference_numpy

import draftproof


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


def lists(random, n, **used):
    """[n, 8] ids and printed logprobs of 40 tokens, and what a server with the parameters `used` draws from them."""
    logits = random.normal(size=(n, 40)) * 1.2
    raw = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    order = np.argsort(-raw, axis=1)[:, :8]
    values = np.take_along_axis(raw, order, 1)
    scaled = values / used.get("temperature", 1.0)
    kept = (np.arange(8) < used.get("top_k", 7)) & (scaled >= scaled[:, :1] + np.log(used.get("min_p", 1e-9)))
    weights = np.where(kept, np.exp(scaled - scaled[:, :1]), 0.0)
    ranks = (np.cumsum(weights, 1) < random.random((n, 1)) * weights.sum(1, keepdims=True)).sum(1)
    probs = weights / weights.sum(1, keepdims=True)
    scores = np.log(np.where(kept, probs, 1.0))
    variance = (probs * scores**2).sum(1) - (probs * scores).sum(1)**2
    return order[np.arange(n), ranks], order, values.round(3), variance.mean()


@pytest.mark.parametrize("asked, used, test", [
    ({"top_k": 7, "min_p": 0.1}, {}, None), ({"top_k": 7, "min_p": 0.1}, {"temperature": 1.2}, "outside"),
    ({"top_k": 7, "min_p": 0.1}, {"min_p": 1e-9}, "outside"), ({"top_k": 7}, {"top_k": 6}, "shell")])
def test_tokens_beside_printed_lists_of_logprobs_are_judged_by_them(asked, used, test):
    samples, ids, logprobs, variance = lists(np.random.default_rng(5), 1500, **{**asked, **used})
    found = draftproof.audit_logprobs(samples, ids, logprobs, **asked, text=np.arange(1500) // 30)
    assert (found.verdict == "biased") == found.test(test or "outside").rejects == (test is not None), found.sentence
    assert 1300 < found.n <= 1500  # cuts within the resolution are left out
    if test is None:
        normal = NormalDist()
        need = normal.inv_cdf(1.0 - 1e-6 / (2 * len(found.tests))) + normal.inv_cdf(0.99)
        assert found.detectable_temperature == pytest.approx(need / (found.n * variance)**0.5, rel=0.03)
        assert found.test("pairs_id_1").n > 1000


def test_a_list_s_reading_is_the_caller_s_and_what_is_no_list_is_refused():
    samples, ids, logprobs, _ = lists(np.random.default_rng(6), 1500, temperature=1.5, min_p=0.1)
    given = {"top_k": 7, "min_p": 0.1, "temperature": 1.5}
    assert draftproof.audit_logprobs(samples, ids, logprobs, **given).verdict != "biased"
    assert draftproof.audit_logprobs(samples, ids, logprobs, **given, temperature_first=False).verdict == "biased"
    with pytest.raises(draftproof.Error, match=r"ids: is float64 \[1500, 8\]; expected whole numbers \[1500, k\]"):
        draftproof.audit_logprobs(samples, ids.astype(float), logprobs)
    with pytest.raises(draftproof.Error, match=r"logprobs: has shape \[1500, 7\]; expected that of ids, \[1500, 8\]"):
        draftproof.audit_logprobs(samples, ids, logprobs[:, :7])
