"""Logits that a model puts out are kept row by row, and draftproof parity finds what lies between two recordings."""

import json
import struct
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest

import draftproof

VOCAB = 64


class Tensor:
    """What the recorder asks of a torch tensor."""

    def __init__(self, array, dtype="torch.float32"):
        self.array, self.dtype, self.shape, self.ndim = np.asarray(array), dtype, np.shape(array), np.ndim(array)

    def detach(self):
        return self

    float = cpu = detach

    def numpy(self):
        return self.array

    def __array__(self, dtype=None, copy=None):
        return self.array

    def __getitem__(self, key):
        return self.array[key]


class Model:
    """Logits that depend on request and position alone, with errors of a size, in calls of any form."""

    def __init__(self, error=0.0, dtype="torch.float32"):
        self.error, self.dtype, self.hook = error, dtype, None

    def register_forward_hook(self, hook, with_kwargs):
        assert with_kwargs
        self.hook = hook
        return SimpleNamespace(remove=lambda: setattr(self, "hook", None))

    def __call__(self, ids, first=0, last=None, **kwargs):
        rows = [[np.random.default_rng([b, first + s]).normal(0, 3, VOCAB)
                 + self.error * np.random.default_rng([b, first + s, 9]).normal(0, 3, VOCAB)
                 for s in range(len(ids[b]))] for b in range(len(ids))]
        logits = np.array(rows, np.float32)[:, -(last or len(ids[0])):]
        if self.hook:
            self.hook(self, (Tensor(ids),), kwargs, SimpleNamespace(logits=Tensor(logits, self.dtype)))


def tensors_of(path):
    data = path.read_bytes()
    size, = struct.unpack("<Q", data[:8])
    form = {"F32": "<f4", "BF16": "<u2", "F16": "<f2", "I64": "<i8"}
    return {name: np.frombuffer(data[8 + size:][slice(*entry["data_offsets"])],
                                form[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in json.loads(data[8:8 + size]).items()}


def test_a_prompt_and_steps_behind_it_are_kept_by_request_and_position(tmp_path):
    model, whole = Model(), tmp_path / "whole"
    with draftproof.record_logits(model, whole):
        model(np.zeros((2, 6), int))
    assert model.hook is None
    stepwise = tmp_path / "stepwise"
    with draftproof.record_logits(model, stepwise, draft_positions=True):
        model(np.zeros((2, 3), int), past_key_values=None)
        for position in (3, 4, 5):
            model(np.zeros((2, 1), int), first=position, past_key_values=object())
    a, b = tensors_of(whole), tensors_of(stepwise)
    assert a["requests"].tolist() == [0] * 6 + [1] * 6 and a["positions"].tolist() == [*range(6)] * 2
    assert all(np.array_equal(a[name], b[name]) for name in a)
    assert b["draft_positions"].tolist() == [0, 1, 2, 0, 0, 0] * 2


def test_positions_that_are_given_the_last_rows_of_a_prompt_and_padding_are_understood(tmp_path):
    model, path = Model(dtype="torch.bfloat16"), tmp_path / "rows"
    with draftproof.record_logits(model, path, requests=[7, 3]) as recorder:
        model(np.zeros((2, 4), int), last=1, attention_mask=Tensor([[0, 1, 1, 1], [1, 1, 1, 0]]))
        recorder.requests = [5]
        model(np.zeros((1, 2), int), position_ids=Tensor([[10, 12]]))
    kept = tensors_of(path)
    assert list(zip(kept["requests"].tolist(), kept["positions"].tolist())) == [(5, 10), (5, 12), (7, 3)]
    assert kept["logits"].dtype == np.uint16 and kept["logits"].shape == (3, VOCAB)


@pytest.mark.parametrize("call, said", [
    (lambda model: None, "nothing was recorded"),
    (lambda model: model.hook(model, (), {}, Tensor(np.zeros((2, 3)))), r"shape \(2, 3\); expected \[B, S, V\]"),
    (lambda model: model(np.zeros((2, 3), int)), "names 1 sequences; expected 2")])
def test_what_cannot_be_recorded_is_refused(tmp_path, call, said):
    model = Model()
    with pytest.raises(draftproof.Error, match=said):
        with draftproof.record_logits(model, tmp_path / "x", requests=[0]):
            call(model)
    assert not (tmp_path / "x").exists()


def available():
    try:
        return subprocess.run([draftproof.program(), "parity", "--help"], capture_output=True).returncode == 0
    except (draftproof.Error, OSError):
        return False


@pytest.mark.skipif(not available(), reason="the program is not built: ./draftproof test builds it")
def test_two_recordings_are_compared_and_a_fault_is_named(tmp_path):
    paths = []
    for name, error in (("plain", 0.0), ("rounded", 1e-3), ("broken", 0.9)):
        paths.append(tmp_path / name)
        model = Model(error)
        with draftproof.record_logits(model, paths[-1]):
            model(np.zeros((4, 16), int))
    rounded = draftproof.parity(paths[0], paths[1], temperature=[0, 1], precision="bf16")
    assert (rounded.verdict, rounded.rows, rounded.temperatures[0].temperature) == ("rounding", 64, 0)
    assert 0 < rounded.temperatures[1].total_variation_max < 0.02
    broken = draftproof.parity(paths[0], paths[2], precision="bf16")
    assert (broken.verdict, broken.findings[0].fault) == ("fault", "size")
    assert repr(broken) == f"<Parity: {broken.sentence}>"
