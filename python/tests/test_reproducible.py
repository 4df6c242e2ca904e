"""`reproducible=True`: a token by its row, parameters and seed alone, in any batch, call and process."""

import itertools

import numpy as np
import pytest

import draftproof
from draftproof.callable.cases.sample_sweep import sweep
from draftproof.callable.cases.verify_sweep import verify_sweep

CALLS = itertools.count()
#: One case is enough: what is asked for here has cases of its own.
FEW = {"cases": [sweep("top_k 3")], "n_max": 256}


def by_call(logits, params, seeds):
    return draftproof.sample(logits, dict(params), seeds + np.uint64(next(CALLS)))


def by_place(logits, params, seeds):
    return draftproof.sample(logits, dict(params), seeds ^ np.arange(len(seeds), dtype=np.uint64))


def by_batch(logits, params, seeds):
    return draftproof.sample(logits, dict(params), seeds + np.uint64(len(seeds) % 2))


def by_process(logits, params, seeds):
    return draftproof.sample(logits, dict(params), seeds ^ np.uint64(hash("a sampler") & 0xFFFF))


def of_low_bits(logits, params, seeds):
    return draftproof.sample(logits, dict(params), seeds & np.uint64(0xFFFFFFFF))


@pytest.mark.parametrize("sampler, kind", [(draftproof.sample, "sample"), (draftproof.verify, "verify")])
def test_what_is_reproducible_passes(sampler, kind):
    more = FEW if kind == "sample" else {"cases": [verify_sweep(False)[0].make()], "n_max": 256}
    found = draftproof.audit_callable(sampler, kind=kind, reproducible=True, **more)
    assert not found.failures and not any("another process" in note for note in found.notes), found


@pytest.mark.parametrize("sampler, words", [
    (by_call, "in an equal call"), (by_place, "in a batch of another order"), (by_batch, "alone"),
    (by_process, "in another process"),
    (of_low_bits, "seeds that differ in bit 32 alone draw the same tokens, and in 31 other bits")])
def test_what_is_not_reproducible_is_an_error_that_says_where(sampler, words):
    found = draftproof.audit_callable(sampler, reproducible=True, **FEW)
    failure = next(failure for failure in found.failures if failure.name == "not_reproducible")
    assert words in failure.sentence, found
    assert not any(failure.name == "not_reproducible" for failure in draftproof.audit_callable(sampler, **FEW).failures)


def test_a_callable_that_cannot_go_to_another_process_is_told_of():
    found = draftproof.audit_callable(lambda *arguments: draftproof.sample(*arguments), reproducible=True, **FEW)
    assert any("another process was not tried" in note for note in found.notes)
