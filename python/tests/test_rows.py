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


@pytest.mark.parametrize("count", [1, 2, 3, 16])
def test_layouts_and_dtypes_give_the_same_tokens(count):
    logits = rows(count, 33)
    seeds = np.arange(count)
    tokens = draftproof.sample(logits, {"temperature": 0.8}, seeds)
    wide = np.zeros((2 * count, 64), np.float32)
    wide[::2, 5:38] = logits
    strided, half, frozen = wide[::2, 5:38], logits.astype(np.float16), logits.copy()
    frozen.flags.writeable = False
    unaligned = lambda x: np.frombuffer(b"\0" + x.tobytes(), x.dtype, offset=1).reshape(x.shape)  # noqa: E731
    for same in (strided, np.asfortranarray(logits), logits.astype(float), logits.tolist(), unaligned(logits), frozen):
        assert np.array_equal(draftproof.sample(same, {"temperature": 0.8}, seeds), tokens)
    hot = np.full(count, 0.8, np.float32)
    assert np.array_equal(draftproof.sample(logits, {"temperature": unaligned(hot)}, unaligned(seeds)), tokens)
    assert np.array_equal(draftproof.sample(half, None, seeds), draftproof.sample(half.astype(np.float32), None, seeds))
    # The library below reads at any distance, and a row that is repeated without a copy, which stays one.
    repeated = np.broadcast_to(logits[:1], logits.shape)
    assert draftproof._forms.rows(repeated, "rows").strides[0] == 0 or count == 1
    for same in (strided, repeated):
        assert np.array_equal(draftproof._core.process_rows({"target": same})["probabilities"],
                              draftproof.process_rows(same.copy()).probabilities)


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


COUNTS = np.array([2, 0, 3, 1, 2])  # drafts of requests


def batch(kind):
    """Arguments by draft, by row or by request over 70 tokens, and those of the call."""
    rng = np.random.default_rng(8)
    drafts, size, vocab = COUNTS.sum(), len(COUNTS), 70
    probabilities = lambda count: rng.dirichlet(np.ones(vocab), count).astype(np.float32)  # noqa: E731
    lists = lambda: [rng.integers(vocab, size=b) for b in range(size)]  # noqa: E731
    given = {"draft_tokens": ("draft", rng.integers(vocab, size=drafts)),
             "target_logits": ("row", rows(drafts + size, vocab)), "draft_probs": ("draft", probabilities(drafts))}
    if kind == "words of rows":
        words = {name: ("row", rng.random(drafts + size)) for name in ("uniforms", "draw_uniforms")}
        return given | words, {"verifier": "target_only"}
    if kind == "words of requests":
        return given | {"uniforms": ("draft", rng.random(drafts)),
                        "exponential_noise": ("request", rng.exponential(size=(size, vocab)))}, {}
    given |= {"seeds": ("request", np.arange(size)), "steps": ("request", 3 * np.arange(size))}
    if kind == "trees":
        return given | {"draft_parents": ("draft", np.array([-1, -1, -1, 0, 0, -1, -1, 0])),
                        "draft_probs": ("row", probabilities(drafts + size))}, {"verifier": "rrs"}
    return given | {
        "bitmask": ("row", rng.integers(-2**31, 2**31, (drafts + size, 3)).astype(np.int32)),
        "uncond_logits": ("row", rows(drafts + size, vocab, 2)), "guidance_scale": ("request", np.linspace(1, 2, size)),
        "temperature": ("request", np.linspace(0.5, 1.5, size)), "top_k": ("request", np.arange(20, 20 + size)),
        "presence_penalty": ("request", np.linspace(0, 1, size)), "min_tokens": ("request", 3 * np.arange(size)),
        "logprob_token_ids": ("request", lists()),
        "prompt_tokens": ("request", lists()), "output_tokens": ("request", lists()), "stop_ids": ("request", lists()),
        "bad_words": ("request", [[[int(token)] for token in tokens] for tokens in lists()]),
        "logit_bias": ("request", [{7 * b: 2.0} for b in range(size)])}, {}


@pytest.mark.parametrize("kind", ["constraints", "trees", "words of rows", "words of requests"])
def test_each_request_of_a_batch_is_the_request_alone(kind):
    given, others = batch(kind)
    together = draftproof.verify(**{name: value for name, (_, value) in given.items()}, **others,
                                 cu_num_draft_tokens=COUNTS.cumsum())
    for b, (end, count) in enumerate(zip(COUNTS.cumsum(), COUNTS)):
        begin = end - count
        places = {"draft": slice(begin, end), "row": slice(begin + b, end + b + 1), "request": slice(b, b + 1)}
        alone = draftproof.verify(**{name: value[places[by]] for name, (by, value) in given.items()}, **others,
                                  cu_num_draft_tokens=[count])
        width = alone.tokens.shape[1]
        for name, length in (("tokens", width), ("logprobs", width), ("path", width - 1)):
            np.testing.assert_array_equal(getattr(together, name)[b, :length], getattr(alone, name)[0])
        assert together.num_accepted[b] == alone.num_accepted[0]
        if "logprob_token_ids" in given:
            np.testing.assert_array_equal(together.token_id_logprobs[b][:, :width], alone.token_id_logprobs[0])
            assert np.isinf(together.token_id_logprobs[b][:, width:]).all()


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
