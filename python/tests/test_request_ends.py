"""Ends of requests: callables that say where a request ends pass, those that go on behind an end, or say something
else, are found."""

import numpy as np
import pytest

import draftproof
from draftproof.callable.cases.request_cases import RequestCase
from draftproof.callable.drive.drive import Driver
from draftproof.callable.drive.request_heeded import heeded
from draftproof.callable.drive.request_run import RequestRun

ENDS = ("stop_ids", "stop_words", "max_tokens")


def verifier(cuts=True, words=True, late=0, most=0, whole=True, reason=lambda reason: reason, count_of_request=False,
             miscounts=0):
    """draftproof.verify, whose requests end as an engine's do; with places for faults."""
    def verify(drafts, probs, target, ends, params, seeds, steps):
        params = dict(params)
        stop_ids, stop_words, max_tokens = params["stop_ids"], params.pop("stop_words"), params.pop("max_tokens")
        out = draftproof.verify(drafts, probs, target, ends, params, seeds, steps=steps).tokens
        reasons, counts = [], []
        for b, row in enumerate(out):
            output, said, end = [int(t) for t in params["output_tokens"][b]], None, int((row >= 0).sum())
            first = len(output)
            for place in range(end):
                output.append(int(row[place]))
                is_word = words and any((whole or place + 1 == end) and output[-len(word):] == list(word)
                                        for word in stop_words[b])
                if output[-1] in stop_ids[b] or is_word:
                    said = "stop"
                elif len(output) >= max_tokens[b] + most:
                    said = "length"
                if said:
                    if cuts:
                        end = min(end, place + 1 + late)
                        row[end:] = -1
                    break
            reasons.append(reason(said))
            counts.append(end + miscounts * (said is not None) + (first if count_of_request else 0))
        return {"tokens": out, "finish_reasons": reasons, "num_tokens": np.array(counts)}
    return verify


def judged(callable_, *factors, seed=3):
    run = RequestRun(Driver(callable_, 60.0),
                     RequestCase("ends", "verify", factors, lens=(2, 0, 3, 1), is_one_seed=True, n_max=240), seed)
    run.draw(240)
    return run.judge(1e-7), run


@pytest.mark.parametrize("options", [{}, {"count_of_request": True}], ids=["counts of steps", "counts of requests"])
def test_requests_that_end_as_they_must_are_sound(options):
    for factors in ((*ENDS, "frequency_penalty", "min_tokens"), *((name,) for name in ENDS)):
        found, run = judged(verifier(**options), "presence_penalty", *factors)
        assert not found.biased, (factors, found.sentence)
        assert run.ends.ended > 8, run.ends


FAULTS = {
    "tokens behind an accepted stop id": ("stop_ids", {"cuts": False}, "behind the end"),
    "a token behind an end": ("stop_ids", {"late": 1}, "behind the end"),
    "stop words are not looked at": ("stop_words", {"words": False}, "behind the end"),
    "stop words at the step's last token alone": ("stop_words", {"whole": False}, "behind the end"),
    "a token more than max_tokens": ("max_tokens", {"most": 1}, "finish reason None where 'length' is due"),
    "length for a stop": ("stop_ids", {"reason": lambda one: one and "length"},
                          "finish reason 'length' where 'stop' is due"),
    "no reason for a stop": ("stop_ids", {"reason": lambda one: None}, "finish reason None where 'stop' is due"),
    "a reason where the request goes on": ("stop_words", {"reason": lambda one: one or "stop"},
                                           "finish reason 'stop' where None is due"),
    "counts of a token too many at an end": ("stop_ids", {"miscounts": 1}, "num_tokens"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_an_end_is_found(fault):
    factor, options, words = FAULTS[fault]
    found, run = judged(verifier(**options), factor, "presence_penalty")
    assert found.biased and found.name == "ends", (fault, found.sentence)
    assert any(words in one for one in run.ends.wrong), run.ends.wrong[:3]


def test_ends_are_asked_for_where_the_callable_says_them():
    said = Driver(verifier(), 60.0)
    RequestRun(said, RequestCase("probe", "verify", lens=(1,), batch=4, is_one_seed=True), 1).call()
    assert set(ENDS) <= set(heeded(said, "verify", 0, lambda: 2.0, 1.0)[0])

    def silent(logits, params, seeds):
        params = dict(params) | {name: params[name] for name in ("stop_ids",)}
        return draftproof.sample(logits, params, seeds)

    driver = Driver(silent, 60.0)
    RequestRun(driver, RequestCase("probe", batch=4), 1).call()
    factors, notes = heeded(driver, "sample", 0, lambda: 2.0, 1.0)
    assert "stop_ids" not in factors
    assert any("reads stop_ids, and it was left off" in note and "finish_reasons beside the tokens" in note
               for note in notes), notes


@pytest.mark.parametrize("value, text", [
    ({"finish_reasons": [None]}, "expected tokens among them"),
    ({"tokens": np.zeros(2, int), "finish_reasons": ["eos", None]}, "expected 2 of None, 'stop', 'length'"),
    ({"tokens": np.zeros(2, int), "num_tokens": [1, 1]}, "without finish_reasons"),
    ({"tokens": np.zeros(2, int), "finish_reasons": [None, None], "num_tokens": [1.0, 1.0]}, "expected whole numbers"),
])
def test_what_is_no_such_dict_is_refused(value, text):
    found = draftproof.run_case(lambda logits, params, seeds: value, RequestCase("probe", batch=2), 2)
    assert found.verdict == "error" and text in found.sentence, found
