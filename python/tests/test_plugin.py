"""The pytest plugin: outcomes kept apart, one budget, a JSON."""

import json

SAMPLERS = """
import numpy as np, pytest, draftproof

def biased(logits, params, seeds):
    return draftproof.sample(logits, {**params, "temperature": params["temperature"] * 2}, seeds)

def broken(logits, params, seeds):
    raise RuntimeError("no kernel")
"""


def test_outcomes_are_kept_apart_and_written_down(pytester):
    pytester.makepyfile(SAMPLERS + """
@pytest.mark.draftproof(tv=0.2)
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
    result = pytester.runpytest_subprocess("-q", "--draftproof-json=found.json")
    result.assert_outcomes(passed=1, failed=3)
    result.stdout.fnmatch_lines(["*Biased*", "*CallableError*", "*Inconclusive*", "*4 audits; any sound callable*"])
    found = json.loads((pytester.path / "found.json").read_text())
    assert [audit["verdict"] for audit in found["audits"]] == ["consistent", "biased", "error", "inconclusive"]
    assert found["alpha_of_an_audit"] == 1e-8


def test_few_samples_skip_where_that_is_asked_for(pytester):
    pytester.makepyfile(SAMPLERS + """
def test_few(draftproof_audit):
    draftproof_audit(draftproof.sample, time_budget=0.0)
""")
    pytester.runpytest_subprocess("-q", "--draftproof-allow-inconclusive").assert_outcomes(skipped=1)


def test_more_audits_than_the_budget_allows_stop(pytester):
    pytester.makepyfile(SAMPLERS + """
def test_two(draftproof_audit):
    for _ in range(2):
        draftproof_audit(draftproof.sample, tv=0.3)
""")
    result = pytester.runpytest_subprocess("-q", "--draftproof-audits=1")
    result.stdout.fnmatch_lines(["*more than 1 audits in this session*"])
