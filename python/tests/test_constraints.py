"""What constrains rows (guidance, masks, bad words, min_tokens, bias, histories) against plain numpy; drafts by their
logits; what is refused."""

import typing

import numpy as np
import pytest
import reference_numpy

import draftproof
from draftproof import _forms, _requests, _types

V = 40
PROMPTS = [[1, 2, 3], [], [7, 7, 30]]
OUTPUTS = [[4, 4], [5, 9], []]


def rows(count=3, seed=2):
    return (2.0 * np.random.default_rng(seed).standard_normal((count, V))).astype(np.float32)


def banned(row, ids):
    out = row.astype(np.float64)
    out[list(ids)] = -np.inf
    return out


def close_to_numpy(found, edited, **filters):
    for i, row in enumerate(edited):
        expected = reference_numpy.distribution(np.asarray(row), 1.0, **filters)
        np.testing.assert_allclose(found.probabilities[i], expected, atol=2e-6)


def test_guidance_mixes_two_rows_before_everything_else():
    logits, unconditional = rows(), rows(seed=3)
    found = draftproof.process_rows(logits, uncond_logits=unconditional, guidance_scale=[1.0, 1.5, 3.0], top_k=5)
    scale = np.array([[1.0], [1.5], [3.0]])
    close_to_numpy(found, unconditional + scale * (logits.astype(np.float64) - unconditional), top_k=5)


def test_guidance_of_probabilities_mixes_logarithms_with_a_floor():
    logits, unconditional = 9 * rows(), 9 * rows(seed=3)
    logits[1, 5] = unconditional[1, 5] = -np.inf
    found = draftproof.process_rows(logits, uncond_logits=unconditional, guidance_scale=[1.0, 1.5, 3.0],
                                    guidance_form="probabilities")
    floored = [np.log(np.array([reference_numpy.distribution(row, 1.0) for row in part]) + 1e-10)
               for part in (logits, unconditional)]
    expected = floored[1] + np.array([[1.0], [1.5], [3.0]]) * (floored[0] - floored[1])
    expected[0] = logits[0]
    close_to_numpy(found, expected)
    exact = draftproof.process_rows(logits, uncond_logits=unconditional, guidance_scale=[1.0, 1.5, 3.0])
    assert exact.probabilities[1, 5] == 0 < found.probabilities[1, 5] < 1e-9
    assert (exact.probabilities[2] == 0).sum() > (found.probabilities[2] == 0).sum() + 10
    with pytest.raises(draftproof.Error, match="guidance_form: is 'p'; known: logits, probabilities"):
        draftproof.process_rows(logits, guidance_form="p")


def test_masks_as_booleans_words_and_ids_are_the_same():
    logits = rows()
    allowed = np.random.default_rng(1).random((3, V)) < 0.4
    words = np.zeros((3, 2), np.int64)
    for token in range(V):
        words[:, token // 32] |= allowed[:, token].astype(np.int64) << (token % 32)
    bitmask = words.astype(np.uint32).view(np.int32)
    ids = [np.flatnonzero(row) for row in allowed]
    by_booleans = draftproof.process_rows(logits, allowed=allowed)
    close_to_numpy(by_booleans, [banned(row, np.flatnonzero(~keep)) for row, keep in zip(logits, allowed)])
    for same in ({"bitmask": bitmask}, {"bitmask": bitmask.view(np.uint32)[:, ::-1][:, ::-1]}, {"allowed_ids": ids}):
        assert np.array_equal(draftproof.process_rows(logits, same).probabilities, by_booleans.probabilities)
    free = draftproof.process_rows(logits, allowed_ids=[None, [3], None])
    assert np.array_equal(free.kept_count, [V, 1, V])


def test_bad_words_look_at_the_prompt_and_at_the_output():
    logits = rows()
    words = [[[3, 4, 4, 6], [4, 8], [9, 8]], [[5, 9, 11], [12]], [[30, 2], [7, 30, 7, 1]]]
    found = draftproof.process_rows(logits, bad_words=words, prompt_tokens=PROMPTS, output_tokens=OUTPUTS)
    close_to_numpy(found, [banned(logits[0], [6, 8]), banned(logits[1], [11, 12]), banned(logits[2], [2])])
    assert np.array_equal(draftproof.process_rows(logits, bad_words=[None] * 3).kept_count, [V] * 3)


def test_stop_ids_wait_for_min_tokens():
    found = draftproof.process_rows(rows(), min_tokens=[2, 3, 1], stop_ids=[[0, 1], [0, 1], [39]],
                                    output_tokens=OUTPUTS)
    assert np.array_equal(found.kept_count, [V, V - 2, V - 1])
    assert found.probabilities[1, 0] == found.probabilities[2, 39] == 0.0


def test_bias_is_added_to_the_logits_named():
    logits = rows()
    found = draftproof.process_rows(logits, logit_bias=[{3: 2.5, 39: -1.0}, None, {}])
    biased = logits.astype(np.float64)
    biased[0, [3, 39]] += [2.5, -1.0]
    close_to_numpy(found, biased)
    of_all = draftproof.process_rows(logits, logit_bias={5: 1.0})
    biased = logits.astype(np.float64)
    biased[:, 5] += 1.0
    close_to_numpy(of_all, biased)


def test_penalties_count_prompt_and_output():
    logits = rows()
    found = draftproof.process_rows(logits,
                                    {"repetition_penalty": 1.3, "frequency_penalty": 0.5, "presence_penalty": 0.25},
                                    prompt_tokens=PROMPTS, output_tokens=OUTPUTS)
    edited = logits.astype(np.float64)
    for row, prompt, output in zip(edited, PROMPTS, OUTPUTS):
        for token in set(prompt) | set(output):
            row[token] = row[token] / 1.3 if row[token] > 0 else row[token] * 1.3
        for token in set(output):
            row[token] -= 0.5 * output.count(token) + 0.25
    close_to_numpy(found, edited)


def test_rows_of_a_draft_have_the_history_that_plain_decoding_has():
    target = np.zeros((3, V), np.float32)
    target[0, 5], target[1, 6], target[2, 2] = 4.0, 4.0, 4.0
    greedy = {"temperature": 0.0}
    emitted = lambda **given: draftproof.verify([5, 6], None, target, [2], greedy, [1], **given).tokens[0].tolist()  # noqa: E731
    assert emitted() == [5, 6, 2]
    assert emitted(bad_words=[[[5, 6]]])[:2] == [5, 0]  # the draft 6 follows the draft 5
    assert emitted(min_tokens=3, stop_ids=[[2]]) == [5, 6, 0]
    assert emitted(min_tokens=3, stop_ids=[[2]], output_tokens=[[1]]) == [5, 6, 2]
    assert emitted(presence_penalty=10.0, output_tokens=[[6]])[:2] == [5, 0]
    allowed = np.ones((3, V), bool)
    allowed[1, 6] = False
    assert emitted(allowed=allowed)[:2] == [5, 0]


def drafted(n, **params):
    """Steps of two drafts that were drawn after the request's parameters; the logits of drafter and target."""
    drafter, target = rows(1, 11), rows(1, 12)
    params = {"temperature": 0.7, "top_k": 6, **params}
    drafts = draftproof.sample(np.broadcast_to(drafter, (2 * n, V)), params, np.arange(2 * n) + 10**6)
    return drafts, np.broadcast_to(drafter, (2 * n, V)), np.broadcast_to(target,
            (3 * n, V)), np.cumsum(np.full(n, 2)), params


def test_drafts_by_their_logits_are_those_by_their_probabilities():
    drafts, logits, target, sums, params = drafted(2000)
    seeds = np.arange(2000)
    q = np.broadcast_to(draftproof.process_rows(logits[:1], params).probabilities, logits.shape)
    by_logits = draftproof.verify(drafts, None, target, sums, params, seeds, draft_logits=logits, draft_processed=False)
    assert np.array_equal(draftproof.verify(drafts, q, target, sums, params, seeds).tokens, by_logits.tokens)
    final = np.log(np.maximum(q[:1], np.float32(1e-38)))
    final[q[:1] == 0.0] = -np.inf
    again = draftproof.verify(drafts, None, target, sums, params, seeds, draft_logits=np.broadcast_to(final, q.shape))
    assert np.array_equal(again.tokens, by_logits.tokens)
    assert not np.array_equal(draftproof.verify(drafts, None, target, sums, params, seeds, draft_logits=logits).tokens,
                              by_logits.tokens)


def test_an_audit_reads_drafts_by_their_logits():
    drafts, logits, target, sums, params = drafted(20_000)
    seeds = np.arange(20_000)
    right = draftproof.verify(drafts, None, target, sums, params, seeds, draft_logits=logits, draft_processed=False)
    given = (drafts, None, target, sums, params)
    assert draftproof.audit_steps(right.tokens, *given, draft_logits=logits,
                                  draft_processed=False).verdict == "consistent"
    # q is another than it says
    wrong = draftproof.verify(drafts, None, target, sums, params, seeds, draft_logits=logits)
    assert draftproof.audit_steps(wrong.tokens, *given, draft_logits=logits, draft_processed=False).verdict == "biased"


def test_constrained_draws_are_judged_by_the_same_constraints():
    row, n = rows(1), 20_000
    options = {"logit_bias": {1: 2.0}, "bad_words": [[[4, 8]]], "output_tokens": [[4]], "min_tokens": 2,
               "stop_ids": [[9]]}
    each = {name: value * n if isinstance(value, list) else value for name, value in options.items()}
    tokens = draftproof.sample(np.broadcast_to(row, (n, V)), each, np.arange(n))
    assert draftproof.audit_draws(tokens, row, options).verdict == "consistent"
    found = draftproof.audit_draws(tokens, row, {**options, "logit_bias": None})
    assert found.verdict == "biased"


def test_the_types_name_every_option():
    options = {*_forms.PARAMETERS, *_forms.SETTINGS, *_requests.CONSTRAINTS}
    assert set(typing.get_type_hints(_types.RowOptions)) == options
    assert set(typing.get_type_hints(_types.StepOptions)) == options - {"output_tokens"}


@pytest.mark.parametrize("given, text", [
    ({"guidance_scale": 2.0}, "request 0: guidance_scale is 2.000000 and there are no unconditional logits"),
    ({"uncond_logits": np.zeros((3, V), np.float32)}, "uncond_logits: needs guidance_scale"),
    ({"uncond_logits": np.zeros((2, V), np.float32), "guidance_scale": 2.0}, r"uncond_logits: has shape \[2, 40\]"),
    ({"allowed": np.ones((3, V - 1), bool)}, r"allowed: is bool \[3, 39\]; expected booleans \[3, 40\]"),
    ({"allowed": np.zeros((3, V), bool)}, "request 0, .*row 0 of target_logits: no token is left"),
    ({"bitmask": np.zeros((3, 1), np.int32)}, r"bitmask: is int32 \[3, 1\]; expected int32 or uint32 \[3, 2\]"),
    ({"bitmask": np.zeros((3, 2), np.int32), "allowed": np.ones((3, V), bool)}, "bitmask: give allowed or bitmask"),
    ({"allowed_ids": [[1], [], [2]]}, r"allowed_ids\[1\]: is empty"),
    ({"allowed_ids": [[1], [40], [2]]}, r"request 1: allowed ids holds token 40; expected ids in \[0, 40\)"),
    ({"stop_ids": [[1]]}, "stop_ids: has 1 lists; expected 3, one a request"),
    ({"stop_ids": 3}, "stop_ids: is int; expected a list of lists of ids"),
    ({"stop_ids": [[1], [0.5], [1]]}, r"stop_ids\[1\]: has dtype float64"),
    ({"min_tokens": -1}, "request 0: min_tokens is -1; expected 0 or more"),
    ({"prompt_tokens": [[1], [2], [99]], "repetition_penalty": 2.0}, r"request 2: prompt_tokens\[0\] is 99"),
    ({"bad_words": [[[1], []], None, None]}, r"request 0: bad_words\[1\]: an empty sequence"),
    ({"bad_words": [None, [[2, 40]], None]}, r"request 1: bad_words\[0\]\[1\]: token id 40 is outside \[0, 40\)"),
    ({"bad_words": [[1], None, None]}, r"bad_words\[0\]\[0\]: has shape \[\]"),
    ({"logit_bias": [1, None, None]}, r"logit_bias\[0\]: is int; expected a dict"),
    ({"logit_bias": {40: 1.0}}, "request 0: logit_bias holds token 40"),
    ({"logit_bias": {3: float("inf")}}, "request 0: logit_bias of token 3 is not a finite number"),
    ({"filter_order": 3}, "filter_order: is int; expected text"),
    ({"ties": "some"}, "ties: is 'some'; known: exact_k, keep_all")])
def test_what_is_refused_is_named(given, text):
    with pytest.raises(draftproof.Error, match=text):
        draftproof.process_rows(rows(), given)
    with pytest.raises(draftproof.Error, match=text):
        draftproof.sample(rows(), None, 1, **given)


def test_drafts_are_given_once():
    with pytest.raises(draftproof.Error, match="draft_logits: give draft_probs or draft_logits or neither"):
        draftproof.verify([1], rows(1), rows(2), [1], draft_logits=rows(1))
    with pytest.raises(draftproof.Error, match="draft_logits: has 2 rows; expected 1"):
        draftproof.verify([1], None, rows(2), [1], draft_logits=rows(2))
    with pytest.raises(draftproof.Error, match="verifier: is int; expected text"):
        draftproof.verify([1], None, rows(2), [1], verifier=3)
