"""Rows across devices: the tokens of `sample`, whatever the split, in one process and in one for each part."""

import threading

import numpy as np
import pytest

import draftproof

PARAMS = {"temperature": 0.8, "top_k": 7, "top_p": 0.9, "repetition_penalty": 1.2, "output_tokens": [[1, 2], [3], [], [4]]}


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
        np.testing.assert_array_equal(draftproof.sample_shards(parts, params, np.arange(4), steps=3, sampler=sampler), whole)


class Processes:
    """Threads in place of processes: all_reduce(array, op) as torch.distributed has it."""

    def __init__(self, count):
        self.barrier, self.lock, self.total = threading.Barrier(count), threading.Lock(), None

    def all_reduce(self, array, op):
        with self.lock:
            combine = np.add if op == "sum" else np.maximum
            self.total = array.copy() if self.total is None else combine(self.total, array)
        self.barrier.wait()
        array[:] = self.total
        if self.barrier.wait() == 0:
            self.total = None
        self.barrier.wait()


def by_processes(parts, *given, **named):
    processes, found = Processes(len(parts)), [None] * len(parts)
    sizes = [part.shape[1] for part in parts]

    def run(rank):
        try:
            found[rank] = draftproof.sample_shards([parts[rank]], *given, rank=rank, sizes=sizes,
                                                   all_reduce=processes.all_reduce, **named).tolist()
        except draftproof.Error as error:
            found[rank] = str(error)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(len(parts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_processes_that_hold_one_part_each_get_the_same_tokens_and_errors():
    logits = np.random.default_rng(6).normal(size=(4, 6000)).astype(np.float32)
    parts = split(logits, [1000, 4096])
    assert by_processes(parts, PARAMS, 1) == 3 * [draftproof.sample(logits, PARAMS, 1).tolist()]
    parts[1][2, 7] = np.nan
    with pytest.raises(draftproof.Error) as error:
        draftproof.sample_shards(parts, PARAMS, 1)
    assert by_processes(parts, PARAMS, 1) == 3 * [str(error.value)]
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
