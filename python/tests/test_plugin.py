"""The pytest plugin: outcomes kept apart, one budget, a JSON."""

import json

SAMPLERS = """
import numpy as np, pytest, draftproof
from draftproof.callable.cases.sample_cases import sample_cases

SMALL = [case for case in sample_cases(False) if case.vocab_size <= 12 and not case.may_raise]

def biased(logits, params, seeds):
    return draftproof.sample(logits, {**params, "temperature": params["temperature"] * 2}, seeds)

def broken(logits, params, seeds):
    raise RuntimeError("no kernel")
"""


def test_outcomes_are_kept_apart_and_written_down(pytester):
    pytester.makepyfile(SAMPLERS + """
@pytest.mark.draftproof(tv=0.2, cases=SMALL)
def test_sound(draftproof_audit):
    assert draftproof_audit(draftproof.sample).verdict == "consistent"

@pytest.mark.draftproof(tv=0.2, failures_max=1)
def test_biased(draftproof_audit):
    draftproof_audit(biased)

def test_broken(draftproof_audit):
    draftproof_audit(broken, failures_max=1)

def test_few(draftproof_audit):
    draftproof_audit(draftproof.sample, time_budget=0.0)
""")
    result = pytester.runpytest_subprocess("-q", "--draftproof-fail-inconclusive", "--draftproof-json=found.json")
    result.assert_outcomes(passed=1, failed=3)
    result.stdout.fnmatch_lines(["*Biased*", "*CallableError*", "*Inconclusive*", "*4 audits; any sound callable*"])
    found = json.loads((pytester.path / "found.json").read_text())
    assert [audit["verdict"] for audit in found["audits"]] == ["consistent", "biased", "error", "inconclusive"]
    assert found["alpha_of_an_audit"] == 1e-8
    assert "RuntimeError: no kernel" in found["audits"][2]["failures"][0]["traceback"]
    result.stdout.fnmatch_lines(["*in broken*", "*raise RuntimeError*"])  # where the callable raised


def test_what_time_did_not_reach_skips_a_test(pytester):
    pytester.makepyfile(SAMPLERS + """
def test_few(draftproof_audit):
    draftproof_audit(draftproof.sample, time_budget=0.0)
""")
    pytester.runpytest_subprocess("-q").assert_outcomes(skipped=1)


def test_more_audits_than_the_budget_allows_stop(pytester):
    pytester.makepyfile(SAMPLERS + """
def test_two(draftproof_audit):
    for _ in range(2):
        draftproof_audit(draftproof.sample, tv=0.3, cases=SMALL)
""")
    result = pytester.runpytest_subprocess("-q", "--draftproof-audits=1")
    result.stdout.fnmatch_lines(["*more than 1 audits in this session*"])


def test_a_profile_that_does_not_exist_is_refused(pytester):
    pytester.makepyfile("def test_nothing():\n    pass\n")
    result = pytester.runpytest_subprocess("-q", "--draftproof-profile=fast")
    assert result.ret != 0
    result.stderr.fnmatch_lines(["*--draftproof-profile is fast; expected quick, full or soak*"])
