"""Rows across devices: the tokens of `sample`, whatever the split, in one process and in one for each part."""

import concurrent.futures
import importlib.util
import multiprocessing
import pathlib
import re

import numpy as np
import pytest

import draftproof
from draftproof.callable.cases.sample_cases import sample_cases

PARAMS = {"temperature": 0.8, "top_k": 7, "top_p": 0.9, "repetition_penalty": 1.2,
          "output_tokens": [[1, 2], [3], [], [4]]}


def split(logits, cuts):
    return [np.ascontiguousarray(part) for part in np.split(logits, cuts, axis=1)]


@pytest.mark.parametrize("sampler", ["inverse", "race"])
@pytest.mark.parametrize("params", [{}, {"temperature": 0.0}, PARAMS])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_parts_give_the_tokens_of_whole_rows(sampler, params, dtype):
    rng = np.random.default_rng(5)
    logits = rng.normal(size=(4, 9000)).astype(dtype)
    whole = draftproof.sample(logits, params, np.arange(4), steps=3, sampler=sampler)
    for cuts in ([], [4500], [10, 10, 4096], sorted(rng.integers(0, 9001, size=15))):
        parts = split(logits, cuts)
        np.testing.assert_array_equal(draftproof.sample_shards(parts, params, np.arange(4), steps=3, sampler=sampler),
                                      whole)


def test_the_example_of_the_page_runs():
    page = (pathlib.Path(__file__).parents[2] / "docs" / "shards.md").read_text()
    exec(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], {})


class Reduction:
    """all_reduce(array, op) of real processes, through the first of them; counts the bytes."""

    def __init__(self, pipes, is_first):
        self.pipes, self.is_first, self.bytes = pipes, is_first, 0

    def __call__(self, array, op):
        self.bytes += array.nbytes
        if self.is_first:
            for pipe in self.pipes:
                array[:] = {"sum": np.add, "max": np.maximum}[op](array, pipe.recv())
        for pipe in self.pipes:
            pipe.send(array)
        if not self.is_first:
            array[:] = self.pipes[0].recv()


def of_one_part(reduction, parts, rank, *given):
    try:
        return draftproof.sample_shards([parts[rank]], *given, rank=rank, sizes=[part.shape[1] for part in parts],
                                        all_reduce=reduction).tolist()
    except draftproof.Error as error:
        return str(error)


def by_processes(parts, *given):
    """What each process gets that holds one part, and the bytes of all vectors that they sum and maximise."""
    fork, here, others = multiprocessing.get_context("fork"), [], []
    for rank in range(1, len(parts)):
        pipe, end = fork.Pipe()
        others.append(fork.Process(target=lambda end=end, rank=rank:
                                   end.send(of_one_part(Reduction([end], False), parts, rank, *given))))
        others[-1].start()
        here.append(pipe)
    first = Reduction(here, True)
    found = [of_one_part(first, parts, 0, *given), *(pipe.recv() for pipe in here)]
    for process in others:
        process.join()
    return found, first.bytes


def of_process_group(group, parts, rank, *given):
    """One process of a group of torch.distributed, which meets the others at a file."""
    import torch
    from torch import distributed
    operations = {"sum": distributed.ReduceOp.SUM, "max": distributed.ReduceOp.MAX}
    distributed.init_process_group("gloo", init_method=f"file://{group}", rank=rank, world_size=len(parts))
    tokens = of_one_part(lambda array, op: distributed.all_reduce(torch.from_numpy(array), operations[op]), parts, rank,
                         *given)
    distributed.destroy_process_group()
    return tokens


def by_process_group(group, parts, *given):
    """What each process of a group gets. torch is imported in these alone."""
    with concurrent.futures.ProcessPoolExecutor(len(parts), multiprocessing.get_context("fork")) as pool:
        found = [pool.submit(of_process_group, group, parts, rank, *given) for rank in range(len(parts))]
        return [tokens.result() for tokens in found]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("carrier", ["pipes", "torch"])
def test_any_number_of_processes_gives_the_tokens_of_one(carrier, ranks, tmp_path):
    if carrier == "torch" and importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    logits = np.random.default_rng(7).normal(size=(4, 6001)).astype(np.float32)
    parts = [np.ascontiguousarray(part) for part in np.array_split(logits, ranks, axis=1)]
    for i, params in enumerate(({}, PARAMS)):
        found = by_processes(parts, params, 1)[0] if carrier == "pipes" else by_process_group(tmp_path / str(i), parts,
                params, 1)
        assert found == ranks * [draftproof.sample(logits, params, 1).tolist()]


def test_processes_that_hold_one_part_each_get_the_same_tokens_and_errors():
    logits = np.random.default_rng(6).normal(size=(4, 6000)).astype(np.float32)
    parts = split(logits, [1000, 4096])
    for params, most in (({}, 1 << 10), (PARAMS, 1 << 14)):
        found, size = by_processes(parts, params, 1)
        assert found == 3 * [draftproof.sample(logits, params, 1).tolist()]
        assert size <= 4 * most
    parts[1][2, 7] = np.nan
    with pytest.raises(draftproof.Error) as error:
        draftproof.sample_shards(parts, PARAMS, 1)
    assert by_processes(parts, PARAMS, 1)[0] == 3 * [str(error.value)]
    assert "column 1007" in str(error.value)


@pytest.mark.parametrize("parts, named, words", [
    ([], {}, "hold no tokens"),
    ([np.zeros((1, 4)), np.zeros((2, 4))], {}, r"part_1: has shape \[2, 4\]; expected \[1, 4\]"),
    ([np.zeros((1, 4))], {"uncond_logits": np.zeros((1, 4))}, "expected guided logits"),
    ([np.zeros((1, 4))], {"typical_p": 0.5}, "expected none across devices"),
    ([np.zeros((1, 4))], {"rank": 2, "sizes": [4, 4], "all_reduce": print}, "rank: is 2"),
    ([np.zeros((1, 4))], {"rank": 0, "sizes": [5, 4], "all_reduce": print}, r"expected \[1, 5\]"),
])
def test_parts_that_cannot_be_sampled_are_refused(parts, named, words):
    with pytest.raises(draftproof.Error, match=words):
        draftproof.sample_shards(parts, **named)


def own_maximum(parts, params, seeds):
    """Each rank's exp(x - maximum) with its own maximum."""
    return draftproof.sample(np.concatenate([part - part.max(1, keepdims=True) for part in parts], axis=1), params,
                             seeds)


def ties_by_rank(parts, params, seeds):
    """The last rank's tokens first: a cut among equal values keeps others of them."""
    order = np.concatenate([np.arange(part.shape[1]) + sum(p.shape[1] for p in parts[:i]) for i,
                            part in enumerate(parts)][::-1])
    return order[draftproof.sample(np.concatenate(parts[::-1], axis=1), params, seeds)].astype(np.int32)


def padded_vocabulary(parts, params, seeds):
    """Ranks of equal size: the last one's further tokens have logit 0."""
    size = max(part.shape[1] for part in parts)
    padded = [np.pad(part, ((0, 0), (0, size - part.shape[1]))) for part in parts]
    return draftproof.sample(np.concatenate(padded, axis=1), params, seeds)


def one_seed(parts, params, seeds):
    """Each rank's race draws its noise from the same seed."""
    kept = draftproof.process_rows(np.concatenate(parts, axis=1), params).probabilities
    noise = np.stack([np.random.default_rng(seed).gumbel(size=parts[0].shape[1]) for seed in seeds])
    noise = np.concatenate([noise[:, :part.shape[1]] for part in parts], axis=1)
    with np.errstate(divide="ignore"):
        return (np.log(kept) + noise).argmax(1).astype(np.int32)


def nucleus_of_rank(parts, params, seeds):
    """top_p of each rank's own mass."""
    kept = [np.where(draftproof.process_rows(part, {"temperature": 1.0, "top_p": params["top_p"]}).probabilities > 0,
                     part, -np.inf)
            for part in parts]
    return draftproof.sample(np.concatenate(kept, axis=1), {**params, "top_p": np.ones_like(params["top_p"])}, seeds)


def audited(sampler):
    names = ("vocabulary of 33", "top_p", "a tie at top_k")
    cases = [case for case in sample_cases(True) if case.name in names]
    return draftproof.audit_callable(sampler, shards=4, cases=cases, tv=0.1, n_max=20_000, time_budget=600.0)


@pytest.mark.parametrize("sampler", [own_maximum, padded_vocabulary, one_seed, nucleus_of_rank])
def test_known_bugs_of_sampling_across_devices_are_found(sampler):
    found = audited(sampler)
    assert found.verdict == "biased", found
    assert "shards=4" in found.failures[0].snippet


def test_a_sampler_of_parts_is_sound_and_its_ties_are_told_from_those_of_one_part():
    found = audited(draftproof.sample_shards)
    assert found.verdict == "consistent", found
    assert found.readings == ["parts: the same tokens from 1 and 4 parts"]
    (reading,) = audited(ties_by_rank).readings
    assert "of 64 tokens differ between 1 and 4 parts" in reading


@pytest.mark.parametrize("named", [{"shards": 1}, {"shards": 2, "kind": "filter"}, {"shards": "2"}])
def test_parts_of_audits_are_refused_by_name(named):
    with pytest.raises(draftproof.Error, match="shards: is"):
        draftproof.audit_callable(draftproof.sample, **named)
