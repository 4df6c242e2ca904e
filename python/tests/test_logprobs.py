"""Log-probabilities beside tokens: those of any one stage of the pipeline pass, in all cases the same, and wrong ones
are found."""

import numpy as np
import pytest

import draftproof
from draftproof.callable.cases.request_cases import RequestCase
from draftproof.callable.cases.sample_sweep import sweep as sample_case
from draftproof.callable.cases.verify_cases import verify_cases
from draftproof.callable.cases.verify_sweep import sweep as steps_case
from draftproof.callable.drive.drive import STAGES, Driver
from draftproof.callable.drive.schedule import run_of

OFF = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
EDITS = ("frequency_penalty", "output_tokens", "logit_bias")
BY_STAGE = {"of the model's row": (), "of the row before its temperature": EDITS,
            "of the row before its filters": (*EDITS, "temperature"), "of what is drawn from": (*EDITS, *OFF)}


def log_of(logits, params, tokens, names):
    """[B]: of each row's token, by the parameters of these names."""
    p = draftproof.process_rows(logits, {name: params[name] for name in names if name in params}).probabilities
    with np.errstate(divide="ignore"):
        return np.log(p[np.arange(len(tokens)), tokens])


def sampler(stage, wrong=lambda logprobs, params: logprobs):
    def sample(logits, params, seeds):
        params = dict(params)
        tokens = draftproof.sample(logits, params, seeds)
        return tokens, wrong(log_of(logits, params, tokens, BY_STAGE[stage]), params).astype(np.float32)
    return sample


def verifier(row_of=lambda place: place):
    """Log-probabilities of what is drawn from; those of place i by the row of place row_of(i)."""
    def verify(drafts, probs, target, ends, params, seeds):
        out = draftproof.verify(drafts, probs, target, ends, params, seeds).tokens
        begins = ends - np.diff(ends, prepend=0) + np.arange(len(ends))
        of_request = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0) + 1)
        p = draftproof.process_rows(target,
                                    {name: value[of_request] for name, value in dict(params).items()}).probabilities
        logprobs = np.zeros(out.shape, np.float32)
        for b, place in zip(*np.nonzero(out >= 0)):
            with np.errstate(divide="ignore"):
                logprobs[b, place] = np.log(p[begins[b] + row_of(place), out[b, place]])
        return out, logprobs
    return verify


CASES = [sample_case("filters over seven tokens"), sample_case("logits about 100"),
         RequestCase("whole requests", factors=("frequency_penalty", "logit_bias"), is_one_seed=True, n_max=96)]


def judgements(callable_, cases):
    driver = Driver(callable_, 60.0)
    found = []
    for case in cases:
        run = run_of(driver, case, 3)
        run.draw(96)
        found.append(run.judge(1e-7))
    return found, driver


@pytest.mark.parametrize("stage", STAGES)
def test_log_probabilities_of_one_stage_pass_and_the_stage_is_told(stage):
    found, driver = judgements(sampler(stage), CASES)
    assert not any(judgement.biased for judgement in found), found
    assert driver.stages == {stage}


@pytest.mark.parametrize("stage, wrong", [
    ("of what is drawn from", lambda logprobs, params: logprobs + 0.01),
    ("of what is drawn from", lambda logprobs, params: np.roll(logprobs, 1)),
    ("of what is drawn from", lambda logprobs, params: logprobs / np.log(2.0)),
    ("of what is drawn from", lambda logprobs, params: np.where(np.isfinite(logprobs), np.nan, 0.0)),
    ("of the model's row", lambda logprobs, params: np.exp(logprobs))])
def test_wrong_log_probabilities_are_found(stage, wrong):
    found, _ = judgements(sampler(stage, wrong), CASES)
    assert found[0].biased and found[0].name == "logprobs" and found[-1].biased, found


def test_log_probabilities_of_one_stage_here_and_another_there_are_found():
    drawn, raw = sampler("of what is drawn from"), sampler("of the model's row")
    found, _ = judgements(lambda logits, params, seeds: (raw if logits.shape[1] == 48 else drawn)(logits, params,
            seeds), CASES)
    assert not found[0].biased and found[-1].name == "logprobs" and "in other cases not" in found[-1].sentence, found


@pytest.mark.parametrize("row_of, is_sound",
                         [(lambda place: place, True), (lambda place: 0, False),
                          (lambda place: max(0, place - 1), False)],
                         ids=["along the drafts", "of the first row", "a row late"])
def test_log_probabilities_are_checked_along_drafts(row_of, is_sound):
    cases = [case for case in verify_cases() if case.name in ("3 tokens, 3 drafts",
                                                              "top_k, drafts from unfiltered rows")]
    found, _ = judgements(verifier(row_of), [steps_case("rows that differ from place to place"), *cases,
                                             RequestCase("whole", "verify", lens=(2, 0, 3, 1), n_max=96)])
    assert [judgement.biased for judgement in found] == [not is_sound] * 4, found
    assert is_sound or found[0].name == "logprobs"
