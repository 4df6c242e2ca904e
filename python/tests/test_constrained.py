"""audit_callable(kind="constrained"): sound callables pass, faulty ones are found in `quick`, with a suspect that names
the fault."""

import copy

import numpy as np
import pytest
from planted_faults import FAULTS, WORDS, Trees

import draftproof
from draftproof.callable.cases import grammars
from draftproof.planted.sound import Constrained

NotRolledBack = FAULTS["constrained"]["state not rolled back"]


class HalvesUnmasked(Constrained):
    """Rows of 16 bits: the mask is lost."""

    def target(self):
        self.masks = self.masks | (self.logits.dtype == np.float16)
        return super().target()


class NanSpreads(Constrained):
    """A NaN anywhere makes the whole batch greedy."""

    def target(self):
        bad = np.isnan(self.logits.astype(np.float32)).any(axis=1)
        self.logits = np.where(bad.any() & (self.logits < self.logits.max(axis=1, keepdims=True, where=~np.isnan(
            self.logits), initial=-np.inf)), -50.0, self.logits)
        return super().target()


class OfCopies(Constrained):
    def masked(self, x, b):
        given, self.matchers = self.matchers, list(map(copy.copy, self.matchers))
        masks, self.matchers = super().masked(x, b), given
        return masks


SOUND = {"chain": Constrained, "chain, masks from copies": OfCopies, "trees": Trees}


@pytest.mark.parametrize("name", SOUND)
def test_sound_constrained_samplers_are_not_accused(name):
    found = draftproof.audit_callable(SOUND[name](), kind="constrained", profile="quick")
    assert found.verdict == "consistent", found
    assert any("trees" in note for note in found.notes) == (name != "trees")


@pytest.mark.parametrize("name", WORDS)
def test_every_fault_of_constrained_samplers_is_found_and_named(name):
    found = draftproof.audit_callable(FAULTS["constrained"][name](), kind="constrained", profile="quick",
                                      failures_max=1)
    assert found.verdict == "biased", found
    assert found.failures[0].suspect == WORDS[name], found


@pytest.mark.parametrize("faulty, words", [(HalvesUnmasked, "rows of 16 bits: "),
                                           (NanSpreads, "rows beside one with a NaN logit: ")])
def test_rows_of_other_forms_are_given_to_constrained_samplers(faulty, words):
    found = draftproof.audit_callable(faulty(), kind="constrained", profile="quick")
    assert found.verdict == "biased" and [failure.name for failure in found.failures] == ["row_form"], found
    assert words in found.sentence


def test_the_code_of_a_failure_shows_it_again():
    found = draftproof.audit_callable(NotRolledBack(), kind="constrained", profile="quick", failures_max=1)
    code = found.failures[0].snippet.replace("# sampler: the callable under audit, FaultyConstrained",
                                             "sampler = NotRolledBack()")
    said = []
    exec(code.replace("print(", "said.append("), {"said": said, "NotRolledBack": NotRolledBack})
    assert "leave a matcher in another state" in said[0]


def test_a_callable_that_returns_another_shape_is_an_error():
    def short(*arguments):
        tokens, logprobs = Constrained()(*arguments)
        return tokens, logprobs[:, :0]
    found = draftproof.audit_callable(short, kind="constrained", profile="quick", failures_max=1)
    assert found.verdict == "error" and "log-probabilities of output tokens [B, K + 1]" in found.sentence


def test_matchers_allow_what_the_grammar_says_and_go_back():
    matcher = draftproof.Matcher(grammars.loop(70))
    assert matcher.allowed().nonzero()[0].tolist() == [*range(0, 69, 3), 69]
    words = matcher.bitmask().view(np.uint32)
    assert words.shape == (3,) and [t for t in range(70) if words[t // 32] >> (t % 32) &
                                    1] == matcher.allowed().nonzero()[0].tolist()
    assert matcher.accept(3) and not matcher.accept(3) and matcher.accept(1) and matcher.tokens == [3, 1]
    matcher.rollback(2)
    assert matcher.accept(69) and matcher.is_terminated() and not matcher.accept(0) and matcher.accept(69)
    with pytest.raises(ValueError, match="3; 2 tokens"):
        matcher.rollback(3)
