"""process_rows, sample and verify against plain numpy, and what they refuse."""

import dataclasses
import pathlib
import re

import hostile_calls
import numpy as np
import pytest
import reference_numpy

import draftproof


def rows(count=40, vocab_size=50, seed=1):
    return (2.0 * np.random.default_rng(seed).standard_normal((count, vocab_size))).astype(np.float32)


def test_distributions_are_those_of_numpy():
    logits = rows()
    size = len(logits)
    params = {"temperature": np.resize([1.0, 0.5, 2.0, 0.0], size), "top_k": np.resize([0, 5, 1], size),
              "top_p": np.resize([1.0, 0.9, 0.5, 0.99, 0.7], size)}
    found = draftproof.process_rows(logits, params, filter_order="top_k_first")
    for i, row in enumerate(logits):
        expected = reference_numpy.distribution(row, **reference_numpy.row_parameters(params, i))
        np.testing.assert_allclose(found.probabilities[i], expected, atol=2e-7)
        assert found.kept_count[i] == np.count_nonzero(expected)


def test_layouts_and_dtypes_give_the_same_tokens():
    logits = rows(16, 33)
    seeds = np.arange(16)
    tokens = draftproof.sample(logits, {"temperature": 0.8}, seeds)
    wide = np.zeros((16, 64), np.float32)
    wide[:, 5:38] = logits
    half = logits.astype(np.float16)
    for same in (wide[:, 5:38], np.asfortranarray(logits), logits.astype(np.float64), logits.tolist()):
        assert np.array_equal(draftproof.sample(same, {"temperature": 0.8}, seeds), tokens)
    assert np.array_equal(draftproof.sample(half, None, seeds), draftproof.sample(half.astype(np.float32), None, seeds))
    unaligned = lambda x: np.frombuffer(b"\0" + x.tobytes(), x.dtype, offset=1).reshape(x.shape)  # noqa: E731
    hot = np.full(16, 0.8, np.float32)
    assert np.array_equal(draftproof.sample(unaligned(logits), {"temperature": unaligned(hot)}, unaligned(seeds)),
                          tokens)
    frozen = logits.copy()
    frozen.flags.writeable = False
    assert np.array_equal(draftproof.sample(frozen, {"temperature": 0.8}, seeds), tokens)
    # Any batch, and one row that is repeated without a copy.
    assert draftproof.sample(logits[3:4], {"temperature": 0.8}, [3])[0] == tokens[3]
    repeated = np.broadcast_to(logits[0], (5, 33))
    assert np.array_equal(draftproof.sample(repeated, None, np.arange(5)),
                          draftproof.sample(repeated.copy(), None, np.arange(5)))


def test_arrays_of_another_library_are_taken_by_dlpack():
    class Foreign:
        """What PyTorch and JAX offer, and nothing of numpy."""

        def __init__(self, array):
            self.array, self.shape, self.dtype = array, array.shape, array.dtype

        def __dlpack__(self, **keywords):
            return self.array.__dlpack__(**keywords)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    logits = rows(4, 9)
    assert np.array_equal(draftproof.sample(Foreign(logits), None, [1, 2, 3, 4]),
                          draftproof.sample(logits, None, [1, 2, 3, 4]))


@pytest.mark.parametrize("verifier", [v.name for v in draftproof.verifiers() if v.draft == "chain"])
def test_greedy_targets_are_followed_by_every_chain_verifier(verifier):
    if verifier in ("synthetic", "ensemble"):
        pytest.skip("it accepts by a coin of its own")
    logits = rows(9, 12)
    drafts = [int(logits[0].argmax()), int(logits[1].argmax()), 3, 4]
    found = draftproof.verify(drafts, None if verifier == "sampler_match" else np.full((4, 12), 1 / 12, np.float32),
                              logits[:6], [3, 4], {"temperature": 0.0}, [1, 2], verifier=verifier)
    greedy = logits.argmax(axis=1)
    for b, first in enumerate((0, 4)):
        emitted = found.tokens[b][found.tokens[b] >= 0]
        assert np.array_equal(emitted, greedy[first:first + len(emitted)])
        assert found.num_accepted[b] == len(emitted) - 1


def test_verifiers_have_every_trait_of_the_registry():
    folder = pathlib.Path(__file__).resolve().parents[2] / "reference" / "step"
    info = re.search(r"struct VerifierInfo \{(.*?)\n\};", (folder / "verifiers.hpp").read_text(), re.DOTALL)[1]
    members = re.findall(r"^  [\w:<>]+ (\w+)(?: = [^;()]+)?;", info, re.MULTILINE)
    assert len(members) == 15
    here = {"drafts_drawn" if member == "proposal" else member for member in members if member != "verifier"}
    assert {field.name for field in dataclasses.fields(draftproof.Verifier)} == here | {"replayable"}

    standard = {"coins": "none", "noise": "none", "decisions": "unknown", "recovered": "undrafted", "joint": False,
                "keeps_support": True, "takes_first_of_equals": False}
    rows_of_table = re.split(r"\{\.verifier = ", (folder / "verifiers.cpp").read_text())[1:]
    assert len(rows_of_table) == len(draftproof.verifiers())
    for row, found in zip(rows_of_table, draftproof.verifiers()):
        said = {name: {"true": True, "false": False}.get(value, value)
                for name, value in re.findall(r"\.(\w+) = (?:\w+::)?(\w+)", row)}
        assert found.draft == said["draft"] and found.drafts_drawn == said["proposal"] and found.lossless == said[
                "lossless"]
        for trait, value in standard.items():
            assert getattr(found, trait) == said.get(trait, value), (found.name, trait)
        assert found.replayable == (found.coins != "of_selected_path" and found.noise != "row_per_path")


def test_a_tree_is_verified_with_its_path():
    probs = np.full((4, 5), 0.2, np.float32)
    found = draftproof.verify([0, 1, 2], probs, None, [3], target_probs=probs, draft_parents=[-1, -1, 0], seeds=[7],
                              verifier="rrs")
    assert found.tokens.shape == (1, 3) and found.path.shape == (1, 2)


@pytest.mark.parametrize("call, text", [
    (lambda x: draftproof.sample(x[0]), r"logits: has shape \[33\]; expected \[rows, V\]"),
    (lambda x: draftproof.sample(x, top_p=1.5), r"request 0: top_p is 1\.5.*expected a number in \(0, 1\]"),
    (lambda x: draftproof.sample(x, temperature=[1.0, 2.0]), r"temperature: has shape \[2\]; expected \[4\]"),
    (lambda x: draftproof.sample(x * np.nan), "the logit is NaN"),
    (lambda x: draftproof.sample(x.astype(object)), "logits: has dtype object"),
    (lambda x: draftproof.sample(x, seeds=[0.5] * 4), "seeds: has dtype float64; expected whole numbers"),
    (lambda x: draftproof.sample(x, top_k=1 << 40), "top_k: holds 1099511627776"),
    (lambda x: draftproof.sample(x, nothing=1), "nothing: is no sampling parameter"),
    (lambda x: draftproof.sample(x, x), "params: is ndarray; expected a dict"),
    (lambda x: draftproof.sample(np.zeros((2, 0), np.float32)), "expected a vocabulary of 1 token or more"),
    (lambda x: draftproof.verify([99], None, x[:2], [1]), r"draft_tokens\[0\] is 99; expected an id in \[0, 33\)"),
    (lambda x: draftproof.verify([1, 2], None, x, [1, 1]), "cu_num_draft_tokens"),
    (lambda x: draftproof.verify([1], None, x[:3], [1]), "target_logits: has 3 rows; expected 2"),
    (lambda x: draftproof.verify([1], None, x[:2], [1], verifier="best"), 'verifier: the verifier is "best"'),
    (lambda x: draftproof.verify([1], x[:1, :5], x[:2], [1]),
     r"draft_probs: has shape \[1, 5\]; expected \[rows, 33\]"),
    (lambda x: draftproof.audit_draws([1], x), "group: is missing"),
    (lambda x: draftproof.check_filter(x), "give either filtered_logits or kept"),
])
def test_what_is_refused_is_named(call, text):
    with pytest.raises(draftproof.Error, match=text):
        call(rows(4, 33))


class OnADevice:
    """A tensor of PyTorch's in name: numpy cannot read it, and `cpu` copies it."""

    requires_grad = False

    def __init__(self, array, device=(2, 0)):
        self.array, self.device, self.shape, self.dtype = array, device, array.shape, array.dtype

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **keywords):
        raise BufferError("the memory is on another device")

    def detach(self):
        return self

    def cpu(self):
        return self.array


def test_an_array_of_another_device_is_copied_or_refused_by_name():
    logits = rows(4, 9)
    assert np.array_equal(draftproof.sample(OnADevice(logits), None, 3), draftproof.sample(logits, None, 3))

    class WithoutCopies(OnADevice):
        def cpu(self):
            raise RuntimeError("no such device")

    with pytest.raises(draftproof.Error,
                       match="logits: cannot be brought into host memory: RuntimeError: no such device"):
        draftproof.sample(WithoutCopies(logits), None, 3)
    with pytest.raises(draftproof.Error, match="seeds: cannot be brought into host memory"):
        draftproof.sample(logits, None, OnADevice(logits, ("cpu", 0)))


def test_hostile_calls_are_answered_or_refused():
    verifiers = [v.name for v in draftproof.verifiers()]
    answered = refused = 0
    for number in range(3000):
        try:
            with np.errstate(all="ignore"):
                hostile_calls.call(np.random.Generator(np.random.SFC64([1, number])), verifiers)
            answered += 1
        except (draftproof.Error, TypeError, hostile_calls.Provoked):
            refused += 1
    assert answered > 900 and refused > 900
