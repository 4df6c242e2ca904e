"""What a failed audit says: which cases fail and which pass, an explanation once, cases as a user would write them; and
two regimes that real models are often in."""

import dataclasses

import numpy as np
import pytest

import draftproof
from draftproof.callable.cases.constrained import constrained_case
from draftproof.callable.cases.sample_cases import params_of, shown
from draftproof.callable.cases.sample_sweep import sweep as sample_sweep
from draftproof.callable.cases.verify_sweep import StepsCase
from draftproof.callable.cases.verify_sweep import sweep as verify_sweep
from draftproof.callable.drive.snippet import expression_of
from draftproof.callable.outcome import CallableAudit, CaseResult, Failure, sentence_of, where_it_fails
from draftproof.planted.sound import Constrained, Verifier

PEAKED = "rows whose likeliest token has 0.96"


def results(**verdicts):
    return [CaseResult(name, verdict, 1 if verdict != "inconclusive" else 0, None, "") for verdict,
            names in verdicts.items() for name in names]


def test_a_sentence_names_what_fails_and_the_kinds_that_pass_those_akin_first():
    cases = results(biased=["top_k 128", "top_k 129"], inconclusive=["top_k 255"],
                    consistent=["top_p 0.5", "top_p 0.9", "top_p 0.95", "top_k 1", "top_k 127",
                                "V = 128: edges of tiles", "33 drafts", "17 drafts, each accepted",
                                "batch of 8, greedy first", "batch of 9, greedy first", "a range of 200"])
    assert where_it_fails(cases) == ("fails in 'top_k 128', 'top_k 129', passes 2 of top_k (last 'top_k 127'), 3 of "
                                     "top_p and 6 others")
    assert where_it_fails(cases, "top_k 128") == ("fails also in 'top_k 129', passes 2 of top_k (last 'top_k 127'), 3 "
                                                  "of top_p and 6 others")
    assert where_it_fails(results(error=list("abcde"))) == "fails in 'a', 'b', 'c' and 2 more, passes nowhere"


def test_an_explanation_is_stated_once_over_all_failures():
    failures = [Failure("support", None, f"case {i}: refuted", f"code {i}\n", 1, None, f"{rule} (top_k {i})", rule)
                for i, rule in enumerate(["top_k is 64 at most", "top_k is 64 at most", "min_p is absolute", ""])]
    audit = CallableAudit("sample", "biased", "", failures, 4, 1e-6, 0.02, 0.0, results(biased=["case 0"]), [])
    text = str(dataclasses.replace(audit, sentence=sentence_of(audit)))
    assert text.count("top_k is 64 at most") == text.count("min_p is absolute") == 1 and all(f"code {i}" in text
            for i in range(4))


@pytest.mark.parametrize("value, text",
                         [(np.float32(0.95), "0.95"), (np.float32(1e-7), "1e-07"), (np.float32(2.0), "2"),
                          (np.int32(128), "128"),
                                         (np.float32(1.0 - 2.0 ** -24), "0.99999994")])
def test_numbers_are_as_users_write_them(value, text):
    assert shown(value) == text and type(value)(float(text)) == value


def test_a_case_of_a_case_is_one_list_or_its_arrays_and_is_what_it_says():
    case = verify_sweep("each request its own parameters, ragged drafts",
                        True).take([3, 9, 4, 7]).take(np.array([1, 3]))
    text = expression_of(case)
    assert ".take([9, 7])" in text and text.count("take") == 1
    small = verify_sweep("a residual of one token", True).take([5, 6]).take([0])
    assert expression_of(small).startswith("draftproof.StepsCase('a residual of one token', target=np.array([[")
    for made in (case, small, verify_sweep("a residual of 0.005", True).take([1])):
        again = eval(expression_of(made),
                     {"np": np, "draftproof": draftproof, "dataclasses": dataclasses, "sweep": verify_sweep})
        assert isinstance(again, StepsCase)
        for name in ("target", "drafts", "lens", "fixed"):
            assert np.array_equal(getattr(again, name), getattr(made, name)), name


def unfiltered_where_sure(logits, params, seeds):
    """No top_p where one token has 0.95 or more."""
    rows = draftproof.process_rows(logits, temperature=params["temperature"])
    sure = rows.probabilities.max(axis=1) > 0.955
    return draftproof.sample(logits, {**params, "top_p": np.where(sure, np.float32(1.0), params["top_p"])}, seeds)


class SureDrafts(Verifier):
    """Drafts of p of 0.955 or more stand."""

    def accepts(self, coin, p, q):
        return p > 0.955 or super().accepts(coin, p, q)


@pytest.mark.parametrize("kind, sound, wrong, case", [
    ("sample", draftproof.sample, unfiltered_where_sure, sample_sweep(f"{PEAKED} to 0.999")),
    ("verify", draftproof.verify, SureDrafts(), verify_sweep(f"{PEAKED}, and 0.999 in drafts", True))])
def test_rows_with_a_sure_token_are_looked_at(kind, sound, wrong, case):
    top = draftproof.process_rows(case.logits if kind == "sample" else case.target, temperature=np.repeat(
        case.params["temperature"], 1 if kind == "sample" else case.lens + 1)).probabilities.max(axis=1)
    assert 0.959 < top.min() and top.max() < 0.9991
    assert draftproof.run_case(sound, case, case.n_max).verdict == "consistent"
    assert draftproof.run_case(wrong, case, case.n_max, alpha=1e-8).verdict == "biased"


class GreedyTakesTheBare(Constrained):
    """A greedy request takes a draft that is the likeliest token of the bare row."""

    def request(self, x, p, q):
        for i, token in enumerate(x if self.greedy else ()):
            if self.logits[self.firsts[self.b] + i].argmax() == token:
                p[i] = np.arange(len(p[i])) == token
        return super().request(x, p, q)


def test_greedy_rows_of_grammars_meet_drafts_that_are_not_masked():
    masked, bare = constrained_case("temperature 0"), constrained_case("temperature 0, drafts from bare rows")
    for wrong, case, verdict in ((Constrained, bare, "consistent"), (GreedyTakesTheBare, masked, "consistent"),
                                 (GreedyTakesTheBare, bare, "biased")):
        found = draftproof.audit_callable(wrong(), kind="constrained", cases=[case], failures_max=1)
        assert found.verdict == verdict, found
    assert isinstance(bare, draftproof.ConstrainedCase) and bare.params.keys() == params_of(1, temperature=0.0, top_k=0,
            top_p=1.0).keys()
