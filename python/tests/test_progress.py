"""Signs of life: an audit says how far it is, and an interrupt ends it with what was found."""

import re

import numpy as np
import pytest

import draftproof
from draftproof import _progress
from draftproof.callable.cases.sample_cases import sample_cases
from draftproof.callable.drive.drive import Driver
from draftproof.callable.outcome import CallableAudit, Failure
from draftproof.callable.page import page_of

SMALL = [case for case in sample_cases(False) if case.vocab_size <= 12 and not case.may_raise]


def test_an_audit_says_how_far_it_is(monkeypatch, capsys):
    monkeypatch.setattr(_progress, "INTERVAL", 0.0)
    lines = []
    audit = draftproof.audit_callable(draftproof.sample, tv=0.3, cases=SMALL, time_budget=20, progress=lines.append)
    assert audit.verdict == "consistent" and lines[-1].startswith("draftproof: audit, ")
    assert " of 20 s, " in lines[-1] and lines[-1].endswith(" 0 failures; an interrupt keeps the verdict so far")
    assert capsys.readouterr() == ("", "")
    draftproof.prove(lambda draft, p, q, chance: [chance.draw(p[0])], instances=1)
    assert capsys.readouterr().err == "draftproof: prove <lambda>, V = 3, K = 3: 1 of 1 pairs of models\n"


def test_a_report_draws_the_failing_row(tmp_path):
    params = {"temperature": np.ones(4, np.float32), "top_k": np.zeros(4, np.int32), "top_p": np.ones(4, np.float32)}
    coin = draftproof.SampleCase("coin", logits=np.zeros((4, 2), np.float32), source="", params=params, batch=4)
    dropped = draftproof.FilterCase("dropped", np.log(np.float32([[0.75, 0.25]])), "",
                                    {name: value[:1] for name, value in params.items()})

    def bars(sampler, case):
        audit = CallableAudit("sample", "biased", "", [Failure("name", case, "sentence < 1", "code", 256, None)], 256,
                              1e-6, 0.02, 0.0, [], [])
        text = page_of(audit, Driver(sampler, 60.0, None, None), 0)
        assert "<p>sentence &lt; 1</p>" in text and "<pre>code</pre>" in text
        return re.findall("<title>token (.*?)</title>", text)

    assert bars(lambda logits, params, seeds: np.zeros(len(logits), np.int64), coin) == ["0: expected 0.5", "0: came 1",
            "1: expected 0.5", "1: came 0"]
    assert bars(lambda logits, params: np.where(logits < -1.0, -np.inf, logits).astype(np.float32), dropped) == [
        "0: expected 0.75", "0: came 1", "1: expected 0.25", "1: came 0"]
    page = tmp_path / "x.html"
    draftproof.audit_callable(draftproof.sample, tv=0.3, cases=[coin], report=page)
    assert "kind sample: consistent</h1>" in page.read_text() and "<svg" not in page.read_text()
    with pytest.raises(draftproof.Error, match="report: .*a folder that is there"):
        draftproof.audit_callable(draftproof.sample, report=tmp_path / "no" / "x.html")


def test_quick_work_says_nothing(capsys):
    draftproof.audit_callable(draftproof.sample, tv=0.3, cases=SMALL[:1])
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("temperature, verdict", [(1.0, "inconclusive"), (2.0, "biased")])
def test_an_interrupt_ends_an_audit_with_what_was_found(monkeypatch, temperature, verdict):
    calls = []

    def interrupted(driver, *given):
        calls.append(given)
        if len(calls) > 400:
            raise KeyboardInterrupt
        return ordinary(driver, *given)

    from draftproof.callable.drive import drive
    ordinary = drive.Driver.__call__
    monkeypatch.setattr(drive.Driver, "__call__", interrupted)
    audit = draftproof.audit_callable(
        lambda logits, params, seeds: draftproof.sample(logits,
                                                        {**params, "temperature": params["temperature"] * temperature},
                                                        seeds),
        failures_max=1000)
    assert audit.verdict == verdict and audit.n > 0
    assert audit.sentence.endswith(" s, with what was found so far") and audit.sentence.count("interrupted after ") == 1
    assert any(case.sentence == "not reached" for case in audit.cases)


def test_an_interrupted_audit_ends_the_session_of_pytest(pytester):
    pytester.makepyfile("""
def test_long(draftproof_audit):
    import _thread, signal
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
    calls = []
    def sampler(logits, params, seeds):
        import draftproof
        calls.append(0)
        if len(calls) == 300:
            _thread.interrupt_main()
        return draftproof.sample(logits, params, seeds)
    draftproof_audit(sampler)

def test_next():
    pass
""")
    result = pytester.runpytest_subprocess("-q")
    assert result.ret == 2
    result.stdout.fnmatch_lines(["*test_long: inconclusive*interrupted after * s, with what was found so far",
                                 "*KeyboardInterrupt*"])
