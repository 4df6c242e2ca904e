"""audit_callable: sound callables pass, faulty ones are found, with what they did and a snippet that shows it again."""

import os
import time
import types

import numpy as np
import pytest
import reference_numpy
from planted_faults import FAULTS, BlockVerifier

import draftproof
from draftproof.callable.cases.filter_cases import filter_cases
from draftproof.callable.cases.sample_cases import sample_cases
from draftproof.callable.cases.verify_cases import endpoint_case, verify_cases
from draftproof.callable.drive import profiles
from draftproof.planted.sound import Sampler, Verifier

#: Enough for gross faults, quick for tests.
COARSE = {"tv": 0.15}
#: Without the sweep, which has tests of its own.
FINE = {"sample": list(sample_cases(True)), "filter": list(filter_cases(True)), "verify": list(verify_cases())}
#: Rows that plain Python reads in no time.
SMALL = {"sample": [case for case in sample_cases(False) if case.vocab_size < 2000],
         "verify": [case for case in verify_cases() if case.vocab_size < 2000]}


@pytest.mark.parametrize("sampler, cases",
                         [(draftproof.sample, FINE["sample"]), (Sampler(), SMALL["sample"])])
def test_sound_samplers_are_not_accused(sampler, cases):
    found = draftproof.audit_callable(sampler, cases=cases, **COARSE)
    assert found.verdict == "consistent", found


def test_a_sound_filter_is_not_accused():
    found = draftproof.audit_callable(reference_numpy.filter_rows, kind="filter", cases=FINE["filter"])
    assert found.verdict == "consistent", found


def test_whether_min_p_is_read_is_found_out(monkeypatch):
    monkeypatch.setitem(profiles.PROFILES, "brief", profiles.Profile("brief", 0.5, True, 0.5, 1, False))

    def copies(logits, params):  # what is offered does not show in a copy
        params = dict(params)
        return reference_numpy.filter_rows(logits, {"min_p": np.zeros(len(logits), np.float32), **params})

    def without(logits, params):
        return reference_numpy.filter_rows(logits,
                                           {**{name: params[name] for name in ("temperature", "top_k", "top_p")},
                                                    "min_p": np.zeros(len(logits), np.float32)})

    for filter_, reads in ((reference_numpy.filter_rows, True), (copies, True), (without, False)):
        notes = draftproof.audit_callable(filter_, kind="filter", profile="brief").notes
        assert any("min_p" in note for note in notes) != reads, notes


@pytest.mark.parametrize("verifier", ["chain", "block"])
def test_sound_verifiers_are_not_accused(verifier):
    found = draftproof.audit_callable(lambda *a: draftproof.verify(*a, verifier=verifier), kind="verify",
                                      cases=FINE["verify"], **COARSE)
    assert found.verdict == "consistent", found


@pytest.mark.parametrize("verifier", [Verifier, BlockVerifier])
def test_sound_verifiers_in_numpy_are_not_accused(verifier):
    found = draftproof.audit_callable(verifier(), kind="verify", cases=SMALL["verify"], **COARSE)
    assert found.verdict == "consistent", found


#: Of the sweep's tests one finds a residual that is cut alike, in less time.
IN_ALL = pytest.mark.skipif(os.environ.get("DRAFTPROOF_ALL_TESTS") != "ON",
                            reason="takes twenty seconds: ./draftproof test --all")


@pytest.mark.parametrize("fault",
                         [pytest.param("the residual is floored at 1e-5 a token", marks=IN_ALL),
                          "recovery draws from the target before the filters", "one coin a request",
                          "recovered tokens use the coin that rejected", "bonus tokens are drawn from the last q",
                          "drafts of low confidence are dropped after they were sampled, and the position is drawn "
                          "from the target", "draft probabilities filtered again by the target's parameters",
                          "residuals of block verification are not scaled"])
def test_every_known_fault_of_verifiers_is_found(fault):
    found = draftproof.audit_callable(FAULTS["verify"][fault](), kind="verify", cases=SMALL["verify"], tv=0.05,
                                      failures_max=1)
    assert found.verdict == "biased", found
    assert 0 < found.failures[0].n <= found.n <= 100_000


def wrong_temperature(logits, params, seeds):
    return draftproof.sample(logits, {**params, "temperature": params["temperature"] * 1.2}, seeds)


def large_batches(logits, params, seeds):
    if len(seeds) <= 64:
        return draftproof.sample(logits, dict(params), seeds)
    return draftproof.sample(logits, {**params, "top_p": np.ones_like(params["top_p"])}, seeds)


@pytest.mark.parametrize("sampler, name", [
    (wrong_temperature, None), (large_batches, None),
    (lambda logits, params, seeds: draftproof.sample(logits, dict(params), seeds & np.uint64(0xFFFFFFFF)),
     "correlation_low_seed_bits"),
    (lambda logits, params, seeds: draftproof.sample(logits, dict(params), np.full_like(seeds, seeds[0])),
     "correlation_rows_1"),
    (lambda logits, params, seeds: draftproof.sample(logits, {k: np.roll(v, 1) for k, v in params.items()}, seeds),
     None)],
    ids=["wrong temperature", "large batches", "low bits", "one noise", "another row's parameters"])
def test_faulty_samplers_are_found(sampler, name):
    found = draftproof.audit_callable(sampler, cases=FINE["sample"], **COARSE, failures_max=1)
    assert found.verdict == "biased", found
    if name is not None:
        assert found.failures[0].name == name


def test_a_failing_case_is_shrunk_and_its_snippet_shows_the_failure_again():
    found = draftproof.audit_callable(wrong_temperature, cases=FINE["sample"], **COARSE, failures_max=1)
    failure = found.failures[0]
    assert failure.case.vocab_size <= 16 and failure.case.groups == 1
    printed = []
    exec(failure.snippet.replace("print(", "show("), {"show": printed.append})
    assert printed[0].startswith("biased"), printed


def top_p_off(logits, params):
    left = reference_numpy.filter_rows(logits, params)
    cold = params["temperature"] <= 0.1
    left[cold] = (logits / params["temperature"][:, None])[cold]
    return left


def test_a_filter_that_is_off_at_low_temperature_is_found_with_its_case():
    found = draftproof.audit_callable(top_p_off, kind="filter", cases=FINE["filter"], failures_max=1)
    assert found.verdict == "biased"
    assert found.failures[0].name == "wrong_set" and found.failures[0].case.logits.shape[0] == 1
    assert found.failures[0].case.params["temperature"][0] <= 0.1


def raises(logits, params, seeds):
    if len(seeds) > 64:
        raise MemoryError("no room")
    return draftproof.sample(logits, dict(params), seeds)


def hangs(logits, params, seeds):
    time.sleep(5)


def after(change):
    """A sound sampler that first does `change` to what it is given."""
    def sampler(logits, params, seeds):
        change(logits, params, seeds)
        return draftproof.sample(logits, {"temperature": 1.0}, seeds)
    return sampler


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def raise_(error):
    raise error


@pytest.mark.parametrize("sampler, name", [
    (raises, "raises"), (lambda logits, params, seeds: raise_(Unspeakable()), "raises"),
    (lambda logits, params, seeds: raise_(SystemExit(3)), "raises"), (hangs, "hangs"),
    (after(lambda logits, params, seeds: np.divide(logits, 2.0, out=logits)), "mutates_inputs"),
    (after(lambda logits, params, seeds: np.multiply(params["temperature"], 2, out=params["temperature"])),
     "mutates_inputs"),
    (after(lambda logits, params, seeds: np.add(seeds, np.uint64(1), out=seeds)), "mutates_inputs"),
    (after(lambda logits, params, seeds: params.pop("temperature")), "mutates_inputs"),
    (after(lambda logits, params, seeds: print("here")), "prints"),
    (lambda logits, params, seeds: np.zeros((len(seeds), 1), int), "wrong_shape"),
    (lambda logits, params, seeds: np.zeros(len(seeds) + 1, int), "wrong_shape"),
    (lambda logits, params, seeds: np.zeros(len(seeds)), "wrong_dtype"),
    (lambda logits, params, seeds: [[1], [2, 3]], "wrong_dtype"),
    (lambda logits, params, seeds: None, "wrong_dtype")])
def test_what_goes_wrong_in_a_call_has_a_name(sampler, name):
    found = draftproof.audit_callable(sampler, cases=SMALL["sample"], **COARSE, failures_max=1,
                                      time_limit=1.0 if sampler is hangs else 60.0)
    assert found.verdict == "error"
    assert found.failures[0].name == name and found.failures[0].snippet


@pytest.mark.parametrize("kind, callable, name", [
    ("filter", lambda logits, params: logits[:, :-1], "wrong_shape"),
    ("filter", lambda logits, params: logits > 0.0, "wrong_dtype"),
    ("filter", lambda logits, params: 1 // 0, "raises"),
    ("verify", lambda tokens, probs, target, sums, params, seeds: np.zeros((len(seeds), 1), int), "wrong_shape"),
    ("verify", lambda tokens, probs, target, sums, params, seeds: target, "wrong_dtype"),
    ("verify", lambda tokens, probs: 0, "raises"),
    ("verify", lambda tokens, probs, target, sums, params, seeds: target.fill(0.0), "mutates_inputs")])
def test_what_goes_wrong_in_a_filter_or_verifier_has_a_name(kind, callable, name):
    cases = SMALL["verify"][:2] if kind == "verify" else None
    found = draftproof.audit_callable(callable, kind=kind, cases=cases, failures_max=1)
    assert (found.verdict, found.failures[0].name) == ("error", name)


@pytest.mark.parametrize("kind", ["sample", "filter", "verify"])
def test_callables_get_what_is_promised(kind):
    given = []

    def callable(*arguments):
        given.append(arguments)
        raise RuntimeError("enough")

    found = draftproof.audit_callable(callable, kind=kind, tv=0.02, seed=0)
    assert found.verdict == "error" and found.n == 0
    for failure in found.failures:
        assert failure.case is not None and isinstance(failure.snippet, str)
    for arguments in given:
        *arrays, params, seeds = arguments if kind != "filter" else (*arguments, np.zeros(len(arguments[0]), np.uint64))
        size = len(seeds)
        assert isinstance(params, dict) and seeds.shape == (size,) and seeds.dtype == np.uint64
        assert {name: (value.shape, value.dtype.name) for name, value in params.items()} == {
            **{name: ((size,), "float32") for name in params}, "top_k": ((size,), "int32")}
        if kind != "verify":
            assert arrays[0].dtype == np.float32 and arrays[0].shape[0] == size
            continue
        tokens, probs, target, sums = arrays
        assert sums.shape == (size,) and sums[-1] == len(tokens) and target.shape[0] == len(tokens) + size
        assert target.dtype == np.float32 and (probs is None or probs.shape == (len(tokens), target.shape[1]))


def with_a_tenth_uniform(logits, params):
    left = draftproof.process_rows(logits, params).probabilities
    return 0.9 * left + 0.1 / logits.shape[1]


def tenth_uniform(logits, params, seeds):
    uniform = np.random.default_rng(int(seeds[0])).random(len(seeds)) < 0.1
    drawn = draftproof.sample(logits, dict(params), seeds)
    return np.where(uniform, np.random.default_rng(int(seeds[0]) + 1).integers(logits.shape[1], size=len(seeds)), drawn)


def no_such_row(logits, params):
    raise ValueError("no such row")


def test_a_distribution_of_the_callers_own_is_what_counts():
    cases = [case for case in sample_cases(False) if case.name in ("vocabulary of 33", "top_k")]
    found = draftproof.audit_callable(tenth_uniform, cases=cases, distribution=with_a_tenth_uniform, **COARSE)
    assert found.verdict == "consistent", found
    plain = draftproof.audit_callable(tenth_uniform, cases=cases, **COARSE)
    assert plain.verdict == "biased"
    with pytest.raises(draftproof.Error, match="distribution: gave float64"):
        draftproof.audit_callable(tenth_uniform, cases=cases, distribution=lambda logits, params: np.ones(3))
    with pytest.raises(draftproof.Error,
                       match=r"distribution: raised ValueError for logits \[.*\] of '.*': no such row"):
        draftproof.audit_callable(tenth_uniform, cases=cases, distribution=no_such_row)

    def of_whole_rows(logits, params):  # a smaller case is none that it knows
        return with_a_tenth_uniform(logits, params) if logits.shape == cases[0].logits.shape else no_such_row(logits,
                params)

    assert draftproof.audit_callable(lambda logits, params, seeds: tenth_uniform(logits, params, seeds) * 0,
                                     cases=cases[:1], distribution=of_whole_rows, **COARSE).verdict == "biased"
    with pytest.raises(draftproof.Error, match="distribution: is given; expected none with kind 'verify'"):
        draftproof.audit_callable(tenth_uniform, kind="verify", distribution=with_a_tenth_uniform)


@pytest.fixture
def clock(monkeypatch):
    """The audit's clock, which moves where a test moves it: clock.now += seconds."""
    clock = types.SimpleNamespace(now=0.0)
    monkeypatch.setattr(profiles, "time", types.SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def test_time_is_looked_at_after_every_call(clock):
    def slow(logits, params, seeds):
        clock.now += 0.2
        return draftproof.sample(logits, dict(params), seeds)

    assert draftproof.audit_callable(slow, time_budget=1.0).verdict == "inconclusive"
    assert clock.now < 2.0


def test_a_slow_sampler_is_seen_in_every_case_before_any_is_run_to_its_end(clock):
    def slow(logits, params, seeds):
        clock.now += 0.0005 * len(seeds)
        return draftproof.sample(logits, dict(params), seeds)

    small = [case for case in sample_cases(False) if case.vocab_size <= 33]
    found = draftproof.audit_callable(slow, cases=small, tv=0.01, time_budget=10.0)
    assert found.verdict == "inconclusive"
    assert all(case.n > 0 for case in found.cases), found.cases
    smallest, largest = found.would_find
    assert largest.detectable_tv == max(case.detectable_tv for case in found.cases if case.detectable_tv)
    assert smallest.detectable_tv < largest.detectable_tv and f"in the weakest, '{largest.case}'" in found.sentence


def test_processes_share_the_cases_and_find_what_one_finds():
    small = [case for case in sample_cases(False) if case.vocab_size <= 33][::3]
    one = draftproof.audit_callable(draftproof.sample, cases=small, tv=0.2)
    two = draftproof.audit_callable(draftproof.sample, cases=small, tv=0.2, processes=2)
    assert two.verdict == one.verdict == "consistent" and two.n == one.n
    assert {case.case: case.n for case in two.cases} == {case.case: case.n for case in one.cases}
    wrong = draftproof.audit_callable(wrong_temperature, cases=small, tv=0.2, processes=2)
    assert wrong.verdict == "biased" and wrong.failures[0].snippet
    with pytest.raises(draftproof.Error, match="processes: is 0; expected 1 or more"):
        draftproof.audit_callable(draftproof.sample, processes=0)


def test_a_process_that_dies_is_an_error():
    def dies(logits, params, seeds):
        os._exit(7)

    case = [case for case in sample_cases(False)][:1]
    with pytest.raises(draftproof.Error, match="processes: one ended with 7 and no result"):
        draftproof.audit_callable(dies, cases=case, processes=2)


def test_arguments_are_checked():
    with pytest.raises(draftproof.Error, match="kind: is 'draw'; expected one of sample, filter, verify"):
        draftproof.audit_callable(draftproof.sample, kind="draw")
    with pytest.raises(draftproof.Error, match=r"tv: is 0; expected a number in \(0, 1\)"):
        draftproof.audit_callable(draftproof.sample, tv=0)
    with pytest.raises(draftproof.Error, match="expected something that can be called"):
        draftproof.audit_callable(3)


def test_the_example_of_the_readme_finds_its_bug():
    from pathlib import Path

    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    code = text.split("```python\n")[1].split("```")[0]
    printed = []
    exec(code, {"print": printed.append, "__name__": "example"})
    assert printed[0].verdict == "biased" and "top_p" in printed[0].sentence
    assert printed[0].n < 60_000  # seconds


def with_uniforms(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds, uniforms=None):
    """Accepts drafts of positive probability; else the token at which the sums pass the uniform, or the last one of the
    vocabulary where they never do: impossible tokens come at an endpoint, and only there."""
    lens = np.diff(cu_num_draft_tokens, prepend=0)
    out = np.full((len(lens), lens.max() + 1), -1, np.int64)
    starts = np.cumsum(lens + 1) - (lens + 1)
    for b, start in enumerate(starts):
        p = np.exp(target_logits[start].astype(np.float32))
        below = np.cumsum(p, dtype=np.float32) / p.sum(dtype=np.float32)
        u = np.float32(0.5) if uniforms is None else uniforms[b, -1]
        out[b, 0] = np.searchsorted(below, u, side="right") if u < np.float32(0.9999) else target_logits.shape[1] - 1
    return out


def sound_with_uniforms(*arguments, uniforms=None):
    return draftproof.verify(*arguments)


def test_uniforms_at_their_endpoints_show_impossible_tokens():
    found = draftproof.audit_callable(with_uniforms, kind="verify", cases=[endpoint_case()])
    assert found.verdict == "biased" and found.failures[0].name == "support", found
    assert "endpoints=True" in found.failures[0].snippet
    found = draftproof.audit_callable(sound_with_uniforms, kind="verify", cases=[endpoint_case()])
    assert found.verdict == "consistent", found


def test_only_a_callable_with_uniforms_gets_them():
    cold = {"tv": 0.5, "n_max": 64, "kind": "verify", "time_budget": 0.5}
    names = [case.case for case in draftproof.audit_callable(sound_with_uniforms, **cold).cases]
    assert "uniforms at their endpoints" in names
    assert "uniforms at their endpoints" not in [case.case
                                                 for case in draftproof.audit_callable(draftproof.verify, **cold).cases]
