"""Rows of 16 bits and rows beside a NaN: sound samplers pass under every reading, planted faults are found."""

import numpy as np
import pytest

import draftproof
from draftproof.callable import auditor
from draftproof.callable.cases import sample_sweep
from draftproof.callable.drive import callee
from draftproof.callable.drive.row_forms import half_rows, nan_rows, placeholder_rows
from draftproof.planted.sound import Filter

LEVEL = 1e-7


def masked(logits, params, seeds):
    return draftproof.sample(logits, params, seeds, nan_policy="as_minus_inf")


def upcast(logits, params, seeds):
    return draftproof.sample(np.nan_to_num(logits.astype(np.float32), nan=-np.inf), params, seeds)


def rounded(logits, params, seeds):
    """Rows of 16 bits are rounded to halves."""
    if logits.dtype == np.float16:
        logits = (np.round(logits.astype(np.float32) * 2.0) / 2.0).astype(np.float32)
    return draftproof.sample(logits, params, seeds)


def token_0(logits, params, seeds):
    """Token 0 of a row with a NaN."""
    tokens = masked(logits, params, seeds)
    return np.where(np.isnan(logits.astype(np.float32)).any(axis=1), 0, tokens)


def spreads(logits, params, seeds):
    """A NaN anywhere makes the whole batch greedy."""
    bad = np.isnan(logits.astype(np.float32)).any()
    return masked(logits, {**params, "temperature": np.where(bad, 0.0, params["temperature"]).astype(np.float32)},
                  seeds)


def beyond(logits, params, seeds):
    tokens = masked(logits, params, seeds)
    return np.where(np.isnan(logits.astype(np.float32)).any(axis=1), logits.shape[1], tokens)


def test_rows_of_16_bits_are_drawn_as_what_they_hold():
    for sound in (masked, upcast):
        form = half_rows(sound, LEVEL)
        assert not form.fault and form.n == 2048, form
    assert "draws" in half_rows(rounded, LEVEL).fault
    assert half_rows(lambda *given: None, LEVEL).reading == "rows of 16 bits are not taken"


@pytest.mark.parametrize("sampler, reading",
                         [(masked, "it counts as masked"), (token_0, "the row draws something else"),
                                              (lambda *given: None, "the call raises")])
def test_each_answer_to_a_nan_is_a_reading(sampler, reading):
    form = nan_rows(sampler, LEVEL)
    assert not form.fault and form.reading == f"a NaN logit: {reading}", form


@pytest.mark.parametrize("sampler, words", [(spreads, "draws"), (beyond, "outside of the vocabulary of 32, first 32")])
def test_a_nan_that_reaches_other_rows_or_leaves_the_vocabulary_is_found(sampler, words):
    assert words in nan_rows(sampler, LEVEL).fault


def left(logits, params, seeds):
    return Filter()(np.nan_to_num(logits.astype(np.float32), nan=-np.inf), params)


def test_what_a_filter_leaves_of_rows_of_other_forms_is_checked():
    def over_rounded(logits, params, seeds):
        return left(np.round(logits.astype(np.float32)) if logits.dtype == np.float16 else logits, params, seeds)

    def poisoned(logits, params, seeds):
        top_k = np.where(np.isnan(logits).any(), 1, params["top_k"]).astype(np.int32)
        return left(logits, {**params, "top_k": top_k}, seeds)

    assert not half_rows(left, LEVEL).fault and "rows" in half_rows(over_rounded, LEVEL).fault
    assert nan_rows(left, LEVEL).reading == "a NaN logit: it counts as masked"
    assert "rows" in nan_rows(poisoned, LEVEL).fault


def stepped(change=lambda drafts: drafts, keep=lambda drafts, out: out):
    def step(logits, params, seeds, drafts):
        size, count = drafts.shape
        q = np.full((size * count, logits.shape[1]), 1.0 / logits.shape[1], logits.dtype)
        rows, ends = np.repeat(logits, count + 1, axis=0), count * np.arange(1, size + 1)
        return keep(drafts, draftproof.verify(change(drafts).ravel(), q, rows, ends, params, seeds).tokens)
    return step


def test_placeholders_within_drafts_have_a_reading_and_must_not_reach_other_requests():
    as_vllm = placeholder_rows(stepped(), LEVEL)
    assert as_vllm.reading == "placeholders (-1) within drafts: rejected, and a token is drawn"
    as_token_0 = placeholder_rows(stepped(lambda drafts: np.maximum(drafts, 0)), LEVEL)
    assert as_token_0.reading == "placeholders (-1) within drafts: something else is emitted" and not as_token_0.fault
    assert placeholder_rows(lambda *given: None, LEVEL).reading == "placeholders (-1) within drafts: the call raises"
    shifted = stepped(keep=lambda drafts, out: np.where((drafts < 0).any(), np.roll(out, 1, axis=0), out))
    assert "draws" in placeholder_rows(shifted, LEVEL).fault


def test_an_audit_tells_readings_and_faults_of_forms(monkeypatch):
    few = sample_sweep.sample_sweep(False)[:2]
    monkeypatch.setattr(callee, "sample_sweep", lambda with_min_p, profile: few)
    monkeypatch.setattr(auditor, "request_cases", lambda *given, **more: [])
    monkeypatch.setattr(auditor, "heeded", lambda *given: ((), []))
    monkeypatch.setattr(callee, "sample_cases", lambda with_min_p: [])
    monkeypatch.setattr(callee.Callee, "grows", lambda self: False)
    found = draftproof.audit_callable(draftproof.sample, profile="quick", failures_max=1)
    assert "a NaN logit: the call raises" in found.readings, found
    found = draftproof.audit_callable(spreads, profile="quick", failures_max=1)
    assert found.verdict == "biased" and found.failures[0].name == "row_form" and "NaN" in found.sentence, found
