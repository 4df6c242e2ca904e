"""The border of audits: what a callable is promised is in every call of every kind; what it gives back is a verdict,
whatever it is; rows that are no probabilities are the caller's fault, and nobody is accused for them."""

import itertools

import numpy as np
import pytest

import draftproof
from draftproof.callable.cases.constrained import constrained_cases
from draftproof.callable.cases.filter_cases import filter_case_of, filter_cases
from draftproof.callable.cases.sample_cases import params_of, sample_cases, step_case
from draftproof.callable.cases.sample_sweep import sample_sweep
from draftproof.callable.cases.verify_cases import endpoint_case, verify_cases
from draftproof.callable.cases.verify_sweep import verify_sweep
from draftproof.callable.drive import profiles
from draftproof.callable.drive.drive import Driver
from draftproof.callable.drive.schedule import run_of

SAMPLED = [*sample_cases(False), step_case(True), *(e.make() for e in sample_sweep(False)[::7] if e.size < 1 << 17)]
CASES = {"sample": SAMPLED, "filter": [*filter_cases(False), *filter(None, map(filter_case_of, SAMPLED[-20:]))],
         "verify": [*verify_cases(False), endpoint_case(),
                    *(e.make() for e in verify_sweep(False)[::9] if "V =" not in e.name)],
         "constrained": constrained_cases(True)}
DOCUMENTED = {"temperature": np.float32, "top_k": np.int32, "top_p": np.float32, "min_p": np.float32}


@pytest.fixture
def brief(monkeypatch):
    monkeypatch.setitem(profiles.PROFILES, "brief", profiles.Profile("brief", 1.0, True, 0.9, 1, False))
    return "brief"


def depth_of(arguments, keywords):
    """[B, K + 1] of a verifier's call; of trees K is their depth."""
    lens = np.diff(arguments[3], prepend=0)
    return len(lens), (2 if keywords.get("parents") is not None else lens.max(initial=0)) + 1


def answer(arguments, keywords):
    if len(arguments) == 2:
        return arguments[0]
    return np.zeros(len(arguments[0]) if len(arguments) == 3 else depth_of(arguments, keywords), np.int64)


@pytest.mark.parametrize("kind", CASES)
def test_every_documented_parameter_is_in_every_call_whatever_way_it_is_read(kind):
    def callable_(*arguments, parents=None, uniforms=None, steps=None):
        params = next(argument for argument in arguments if isinstance(argument, dict))
        size = len(arguments[3]) if len(arguments) > 3 else len(arguments[0])
        for name, dtype in DOCUMENTED.items():
            for value in (params[name], params.get(name), dict(params)[name], {**params}[name], params.copy()[name],
                          dict(params.items())[name]):
                assert value.shape == (size,) and value.dtype == dtype, name
        assert set(params) == set(DOCUMENTED) and len(params) == len(DOCUMENTED)
        return answer(arguments, {"parents": parents})

    driver = Driver(callable_, 60.0)
    for case in CASES[kind]:
        run_of(driver, case, 0).draw(1)
    assert driver.calls >= len(CASES[kind]) and driver.read == set(DOCUMENTED)


def sample_by_name(logits, params, seeds, steps):  # of which the documents say "in one case"
    return draftproof.sample(logits, seeds=seeds, steps=steps, temperature=params["temperature"], top_k=params["top_k"],
                             top_p=params["top_p"], min_p=params["min_p"])


def sample_by_keywords(logits, params, seeds):
    return draftproof.sample(logits, seeds=seeds, **params)


def filter_by_name(logits, params):
    kept = draftproof.process_rows(logits, temperature=params["temperature"], top_k=params["top_k"],
                                   top_p=params["top_p"], min_p=params["min_p"]).probabilities > 0.0
    return np.where(kept, logits / params["temperature"][:, None], -np.inf)


def verify_by_name(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
    return draftproof.verify(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, seeds=seeds,
                             temperature=params["temperature"],
                             top_k=params["top_k"], top_p=params["top_p"], min_p=params["min_p"])


def constrained_by_name(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds, matchers,
                        parents):
    """draftproof.verify with masks along the drafts; of trees the target's own tokens, which need no probabilities."""
    lens = np.diff(cu_num_draft_tokens, prepend=0)
    allowed = []
    for matcher, end, count in zip(matchers, cu_num_draft_tokens, lens):
        states = [matcher.state]
        for token, parent in zip(draft_tokens[end - count:end], parents[end - count:end]):
            states.append(matcher.grammar.after(states[parent + 1], int(token)))
        allowed += [matcher.grammar.allowed(state) for state in states]
    is_tree = bool((parents != np.concatenate([np.arange(count) - 1 for count in lens])).any())
    found = draftproof.verify(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, seeds=seeds,
                              allowed=np.array(allowed),
                              temperature=params["temperature"], top_k=params["top_k"], top_p=params["top_p"],
                              min_p=params["min_p"],
                              **({"draft_parents": parents, "verifier": "naive"} if is_tree else {}))
    for matcher, row in zip(matchers, found.tokens):
        for token in row[row >= 0]:
            matcher.accept(token)
    return found.tokens if is_tree else (found.tokens, np.where(found.tokens >= 0, found.logprobs, 0.0))


@pytest.mark.parametrize("kind, callable_",
                         [("sample", sample_by_name), ("sample", sample_by_keywords), ("sample", draftproof.sample),
                                             ("filter", filter_by_name), ("verify", verify_by_name),
                          ("verify", draftproof.verify),
                                             ("constrained", constrained_by_name)],
                         ids=["sample by name", "sample by keywords", "sample", "process_rows", "verify by name",
                              "verify", "constrained"])
def test_own_functions_are_not_accused(kind, callable_):
    cases = [case for case in CASES[kind] if getattr(case, "vocab_size", 0) < 5000
             and not getattr(case, "endpoints", False)][:40]
    found = draftproof.audit_callable(callable_, kind=kind, cases=cases, tv=0.5, n_max=128)
    assert found.verdict in ("consistent", "inconclusive") and all(case.n > 0 for case in found.cases), found
    if kind == "constrained":  # it says what it would have found
        assert all(case.detectable_share == pytest.approx(1.0 - 0.01 ** (1.0 / case.n)) for case in found.cases)
        assert f"each of {len(cases)} regimes was seen" in found.sentence
        assert "99 % power a distance of 0.5 is excluded in 10 of 10 cases" in found.sentence, found


def test_a_function_without_min_p_may_get_the_parameters_by_keyword(brief):
    def without(logits, temperature, top_k, top_p, seeds):
        return draftproof.sample(logits, seeds=seeds, temperature=temperature, top_k=top_k, top_p=top_p)

    found = draftproof.audit_callable(lambda logits, params, seeds: without(logits, seeds=seeds, **params),
                                      profile=brief)
    assert found.verdict in ("consistent", "inconclusive"), found
    assert any("min_p was left off" in note for note in found.notes)
    by_name = draftproof.SampleCase("min_p", np.zeros((1, 4), np.float32), "",
                                    params_of(1, temperature=1.0, top_k=0, top_p=1.0, min_p=0.5), batch=4)
    said = draftproof.run_case(lambda logits, params, seeds: without(logits, seeds=seeds, **params), by_name, 4)
    # it is on: it cannot be left out
    assert said.verdict == "error" and "unexpected keyword argument 'min_p'" in said.sentence


def test_arguments_without_a_default_are_given_in_every_case():
    got = []

    def constrained(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds, matchers, parents):
        got.append(parents)
        return np.zeros(depth_of((0, 0, 0, cu_num_draft_tokens), {"parents": parents if len(got) == 3 else None}), int)

    def verify(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds, uniforms):
        got.append(uniforms)
        return draftproof.verify(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds)

    for case in constrained_cases(True)[:3]:
        run_of(Driver(constrained, 60.0), case, 0).draw(1)
    assert [parents[:4].tolist() for parents in got] == [[], [-1, 0, 1, -1], [-1, 0, -1, 2]]
    got.clear()
    for case in (endpoint_case(), *itertools.islice(verify_cases(False), 1), verify_sweep(False)[0].make()):
        run_of(Driver(verify, 60.0), case, 0).draw(1)
    assert got[0].shape == (256, 3) and got[1:] == [None, None]


def test_verifiers_that_take_no_drafts_without_probabilities_are_not_given_such_whatever_the_kind():
    bare = {"verify": [case for case in CASES["verify"] if getattr(case, "drafter", 0) is None
                       or getattr(case, "one_hot", False)],
            "constrained": [case for case in CASES["constrained"] if case.drafter is None and max(case.lens) > 0]}
    for kind, cases in bare.items():
        found = draftproof.audit_callable(lambda *arguments, parents=None: 1 // 0, kind=kind, cases=cases,
                                          one_hot=False)
        assert cases and (found.verdict, found.n, found.failures) == ("inconclusive", 0, []), found


HOSTILE = [10 ** 9, 10 ** 18, -2, -10 ** 9, -10 ** 18, np.uint64(2 ** 64 - 1), np.uint64(2 ** 63), 10 ** 30, 0.0,
           float("nan"), True, None, "3",
           b"3", 1j, [], [1], {}, object(), (x for x in range(3)), np.datetime64("2026-01-01"), np.ma.masked, Ellipsis]


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: repr(value).split(" at 0x")[0])
@pytest.mark.parametrize("kind", ["sample", "filter", "verify", "constrained"])
def test_whatever_comes_back_is_a_verdict(kind, value, brief):
    def callable_(*arguments, parents=None):
        shape = np.shape(answer(arguments, {"parents": parents}))
        out = np.empty(shape, object)
        out.fill(value)
        return np.full(shape, value) if isinstance(value, (int, float, np.generic)) and abs(value) < 2 ** 64 else out

    for given in (callable_, lambda *arguments, parents=None: value):
        cases = CASES[kind][:2] if kind != "sample" else None  # of samplers min_p is probed for, too
        found = draftproof.audit_callable(given, kind=kind, cases=cases, profile=brief, failures_max=1)
        assert found.verdict in ("biased", "error"), found
        assert found.failures[0].sentence and found.dumps()


@pytest.mark.parametrize("logprobs", [None, "x", [[1.0], [2.0, 3.0]], np.zeros((2, 2)), np.full((32, 1), np.nan), {},
                                      np.zeros((32, 1), int)])
def test_whatever_comes_back_as_log_probabilities_is_a_verdict(logprobs):
    found = draftproof.audit_callable(lambda *a: (a[6].clear(), (np.zeros((32, 1), int), logprobs))[1],
                                      kind="constrained", cases=constrained_cases(False)[:1], failures_max=1)
    assert found.verdict in ("biased", "error"), found
    three = draftproof.audit_callable(lambda *a: (np.zeros((32, 1), int), logprobs, 3), kind="constrained",
                                      cases=constrained_cases(False)[:1])
    assert three.verdict == "error"


@pytest.mark.parametrize("given, said", [
    ({"seed": "x"}, "seed: is 'x'"), ({"seed": -1}, "seed: is -1"), ({"seed": 0.5}, "seed: is 0.5"),
    ({"tv": "x"}, "tv: is 'x'"), ({"tv": np.nan}, "tv: is nan"),
    ({"n_max": 0}, "n_max: is 0"), ({"failures_max": 0}, "failures_max: is 0"), ({"time_limit": 0}, "time_limit: is 0"),
    ({"time_budget": np.nan}, "time_budget: is nan"), ({"processes": None}, "processes: is None"),
    ({"ranges": {"top_p": 0.5}}, "ranges: top_p is 0.5"),
    ({"ranges": 3}, "ranges: is 3"), ({"cases": [3]}, "cases: has int; expected SampleCase"),
    ({"kind": "verify", "cases": [SAMPLED[0]]}, "cases: has SampleCase; expected VerifyCase or StepsCase")])
def test_options_that_would_test_nothing_are_refused_by_name(given, said):
    with pytest.raises(draftproof.Error) as error:
        draftproof.audit_callable(draftproof.sample, **given)
    assert said in str(error.value)


def test_an_audit_without_a_call_is_not_consistent():
    bare = [case for case in CASES["verify"] if getattr(case, "drafter", 0) is None]
    assert bare
    for found in (draftproof.audit_callable(draftproof.sample, cases=[]),
                  draftproof.audit_callable(draftproof.verify, kind="verify", cases=bare, one_hot=False)):
        assert (found.verdict, found.n) == ("inconclusive", 0)


WRONG_ROWS = {"half": [0.25, 0.25], "logits": [-1.0, 2.0], "NaN": [np.nan, 1.0], "zero": [0.0, 0.0],
              "twice": [1.0, 1.0], "infinite": [np.inf, 0.0]}


@pytest.mark.parametrize("name", WRONG_ROWS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rows_that_are_no_probabilities_are_refused_and_the_sampler_is_not_accused(name, dtype):
    wrong, right = np.array([WRONG_ROWS[name]], dtype), np.array([[0.5, 0.5]], dtype)
    of_both = np.concatenate([right, wrong])
    calls = [(lambda: draftproof.audit_draws([0, 1] * 500, probs=of_both, group=[0, 1] * 500), "row 1 of probs", True),
             (lambda: draftproof.audit_steps([[0, 1]], [0], wrong, np.zeros((2, 2)), [1]), "row 0 of draft_probs",
              True),
             (lambda: draftproof.audit_steps([[0, 1]], [0], right, None, [1], target_probs=of_both),
              "row 1 of target_probs", True),
             (lambda: draftproof.verify([0], wrong, np.zeros((2, 2)), [1]), "row 0 of draft_probs", False),
             (lambda: draftproof.verify([0], right, None, [1], target_probs=of_both), "row 1 of target_probs", False)]
    for call, where, is_audit in calls:
        with pytest.raises(draftproof.Error, match=where) as error:
            call()
        assert ("the rows given are at fault, not what was drawn" in str(error.value)) == is_audit
    case = draftproof.SampleCase("two tokens", np.zeros((1, 2), np.float32), "", params_of(1, temperature=1.0))
    with pytest.raises(draftproof.Error, match="row 0 of 'two tokens'.*`distribution` is at fault, not the sampler"):
        draftproof.run_case(lambda logits, params, seeds: draftproof.sample(logits, params, seeds), case, 256,
                            distribution=lambda *a: wrong)
    readings = draftproof.SampleCase("readings", np.zeros((1, 2), np.float32), "", params_of(1, temperature=1.0),
                                     readings=(wrong,), merge=np.arange(2))
    with pytest.raises(draftproof.Error, match="row 0 of probs"):
        draftproof.run_case(lambda logits, params, seeds: draftproof.sample(logits, params, seeds), readings, 256)


def test_of_a_tree_the_rows_of_leaves_are_not_looked_at():
    probs = np.array([[0.5, 0.5], [9.0, np.nan]], np.float32)
    found = draftproof.verify([0], probs, np.zeros((2, 2), np.float32), [1], draft_parents=[-1], verifier="rrsw",
                              seeds=[1])
    assert found.num_accepted.tolist() in ([0], [1])
    with pytest.raises(draftproof.Error, match="row 0 of draft_probs"):
        draftproof.verify([0], probs[::-1].copy(), np.zeros((2, 2), np.float32), [1], draft_parents=[-1],
                          verifier="rrsw", seeds=[1])


def test_probabilities_that_were_rounded_are_taken():
    p = np.random.default_rng(1).dirichlet(np.ones(1000), size=3)
    for dtype in (np.float16, np.float32, np.float64):
        assert draftproof.verify([1, 2], p[:2].astype(dtype), None, [2],
                                 target_probs=p.astype(dtype)).tokens.shape == (1, 3)
