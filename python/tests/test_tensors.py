"""Tensors of PyTorch and JAX, by DLPack; skipped, and said to be, where those are not installed."""

import numpy as np
import pytest

import draftproof


def rows():
    return np.random.default_rng(5).standard_normal((6, 40)).astype(np.float32)


def test_tensors_of_torch_give_the_same_bits_in_any_layout():
    torch = pytest.importorskip("torch")
    logits = rows()
    expected = draftproof.sample(logits, {"temperature": 0.7}, np.arange(6))
    tensor = torch.from_numpy(logits)
    wide = torch.zeros(6, 80)
    wide[:, ::2] = tensor
    for same in (tensor, tensor.t().contiguous().t(), wide[:, ::2], tensor.double(), tensor.clone().requires_grad_()):
        assert np.array_equal(draftproof.sample(same, {"temperature": torch.full((6,), 0.7)}, torch.arange(6)), expected)
    for dtype in (torch.float16, torch.bfloat16):
        half = tensor.to(dtype)
        assert np.array_equal(draftproof.sample(half, None, np.arange(6)),
                              draftproof.sample(half.float(), None, np.arange(6)))


def test_arrays_of_jax_give_the_same_bits():
    jax = pytest.importorskip("jax")
    logits = rows()
    for dtype in ("float32", "bfloat16", "float16"):
        array = jax.numpy.asarray(logits, dtype)
        plain = np.asarray(array.astype("float32"))
        assert np.array_equal(draftproof.sample(array, {"temperature": 0.7}, np.arange(6)),
                              draftproof.sample(plain, {"temperature": 0.7}, np.arange(6)))
