"""Tensors of PyTorch, JAX, CuPy and TensorFlow, by DLPack; skipped, and said to be, where those are not installed."""

import numpy as np
import pytest

import draftproof
from draftproof import _forms
from draftproof.callable.cases.sample_cases import sample_cases


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
        assert np.array_equal(draftproof.sample(same, {"temperature": torch.full((6,), 0.7)}, torch.arange(6)),
                              expected)
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


def step():
    """Arguments of verify in numpy: two requests, three drafts."""
    rng = np.random.default_rng(6)
    probs = rng.random((3, 40)).astype(np.float32)
    return {"draft_tokens": np.array([3, 4, 5], np.int32), "draft_probs": probs / probs.sum(axis=1, keepdims=True),
            "target_logits": rng.standard_normal((5, 40)).astype(np.float32),
            "cu_num_draft_tokens": np.array([1, 3], np.int32),
            "params": {"temperature": np.array([0.5, 1.0], np.float32),
                       "guidance_scale": np.array([1.5, 1.0], np.float32),
                       "uncond_logits": rng.standard_normal((5, 40)).astype(np.float32),
                       "bitmask": rng.integers(-2**31, 2**31, (5, 2)).astype(np.int32)},
            "seeds": np.array([1, 2], np.int32)}


def converted(value, convert):
    if isinstance(value, dict):
        return {name: converted(entry, convert) for name, entry in value.items()}
    return convert(value)


class OnGpu:
    """As CuPy's arrays are from outside: on a GPU, refused to numpy, moved by get()."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __dlpack_device__(self):
        return (2, 0)

    def __array__(self, dtype=None, copy=None):
        raise TypeError("implicit conversion is not allowed")

    def get(self):
        return self.array


FORMS = {
    "every second": lambda: lambda array: np.repeat(array, 2, axis=0)[::2],
    "backwards": lambda: lambda array: array[::-1].copy()[::-1],
    "on another device": lambda: OnGpu,
    "torch": lambda: pytest.importorskip("torch").from_numpy,
    "torch on a GPU": lambda: lambda array: pytest.importorskip("torch").from_numpy(array).to("cuda"),
    "jax": lambda: pytest.importorskip("jax").numpy.asarray,
    "tensorflow": lambda: pytest.importorskip("tensorflow").constant,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_argument_may_have_another_form(form):
    if form == "torch on a GPU" and not pytest.importorskip("torch").cuda.is_available():
        pytest.skip("no GPU")
    convert = FORMS[form]()
    given = converted(step(), convert)
    assert np.array_equal(draftproof.verify(**given).tokens, draftproof.verify(**step()).tokens)
    history = [convert(np.array(tokens, np.int32)) for tokens in ([1, 2], [3])]
    penalised = draftproof.process_rows(convert(rows()[:2]), output_tokens=history, presence_penalty=1.0)
    assert np.array_equal(penalised.probabilities,
                          draftproof.process_rows(rows()[:2], output_tokens=[[1, 2], [3]],
                                                  presence_penalty=1.0).probabilities)


def test_arrays_that_cannot_change_are_not_copied():
    jax = pytest.importorskip("jax")
    array = jax.numpy.asarray(rows())
    assert _forms.rows(array, "rows").ctypes.data == array.unsafe_buffer_pointer()


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_what_a_caller_changes_during_a_call_does_not_reach_it(library, monkeypatch):
    module = pytest.importorskip(library)
    given = converted(step(), module.asarray)
    half = module.asarray(rows()) if library == "numpy" else module.asarray(rows()).bfloat16()
    expected = draftproof.verify(**step()).tokens, draftproof.sample(half, None, np.arange(6))
    for name in ("verify", "sample"):
        real = getattr(draftproof._core, name)

        def overtaken(arguments, real=real):
            for array in (half, *given.values(), *given["params"].values()):
                if not isinstance(array, dict):
                    array[...] = 77
            return real(arguments)

        monkeypatch.setattr(draftproof._core, name, overtaken)
    assert np.array_equal(draftproof.sample(half, None, np.arange(6)), expected[1])
    given = converted(step(), module.asarray)
    assert np.array_equal(draftproof.verify(**given).tokens, expected[0])


def test_halves_of_tensorflow_give_the_same_bits():
    tensorflow = pytest.importorskip("tensorflow")
    for dtype in ("float16", "bfloat16"):
        half = tensorflow.cast(tensorflow.constant(rows()), dtype)
        assert np.array_equal(draftproof.sample(half, None, np.arange(6)),
                              draftproof.sample(tensorflow.cast(half, "float32"), None, np.arange(6)))


def test_a_sampler_of_torch_is_driven():
    torch = pytest.importorskip("torch")

    def sampler(logits, params, seeds):
        scaled = torch.from_numpy(logits) / torch.from_numpy(np.maximum(params["temperature"], 1e-5))[:, None]
        return torch.multinomial(scaled.softmax(-1), 1)[:, 0]

    cases = [case for case in sample_cases(False) if case.name in ("vocabulary of 33", "top_k")]
    found = draftproof.audit_callable(sampler, cases=cases, tv=0.1, failures_max=1)
    assert found.verdict == "biased" and found.failures[0].case.params["top_k"].any()  # which it does not read
