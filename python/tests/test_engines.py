"""`./draftproof engines`: what its documents say, and that the process which drives an engine finds what is planted."""

import contextlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import draftproof

ROOT = Path(__file__).resolve().parents[2]
ADAPTERS = ROOT / "experiments" / "engines"
sys.path.insert(0, str(ADAPTERS / "shared"))

import environments  # noqa: E402
import fake_server  # noqa: E402
import history  # noqa: E402
import reference_numpy  # noqa: E402
import report  # noqa: E402
import servers  # noqa: E402
import strings  # noqa: E402

KEYS = {"engine": str, "version": str, "component": str, "file": str, "verdict": str, "n": int, "failures": list}

ADAPTER = """
import draftproof
from component import Component
from draftproof.callable.cases.sample_cases import sample_cases

def sample(logits, params, seeds):
    return draftproof.sample(logits, {**params, "temperature": params["temperature"] * FACTOR}, seeds)

def components():
    return [Component("sampler", "adapter.py", "sample", "sample", sample, tv=0.2,
                      options={"cases": list(sample_cases(False))})]
"""


def require_keys(component):
    for key, kind in KEYS.items():
        assert isinstance(component[key], kind), key
    assert component["distance"] is None or component["distance"] > 0.0
    assert component["verdict"] in ("consistent", "biased", "inconclusive", "error")
    assert bool(component["failures"]) == (component["verdict"] in ("biased", "error"))


@pytest.mark.parametrize("factor, verdict", [(1.0, "consistent"), (1.6, "biased")])
def test_a_sound_sampler_of_an_engine_passes_and_a_hot_one_is_found_and_stands_on_the_page(tmp_path, factor, verdict):
    shutil.copytree(ADAPTERS / "shared", tmp_path / "shared")
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "adapter.py").write_text(ADAPTER.replace("FACTOR", str(factor)), encoding="utf-8")
    module = str(Path(draftproof.__file__).parents[1])
    done = subprocess.run([sys.executable, str(tmp_path / "shared" / "worker.py"), "tiny", module, "60"],
                          capture_output=True, text=True, check=True)
    component = {**json.loads(done.stdout), "version": "1"}
    require_keys(component)
    assert component["verdict"] == verdict, component["sentence"]
    component = {**component, "seconds_at_most": 60, "command": "engines"}
    found = {"engines": [{"engine": "tiny", "title": "Tiny", "version": "1", "torch": None, "not_run": None}],
             "components": [component]}
    (tmp_path / "docs").mkdir()
    assert report.write(tmp_path, found) == []
    page = (tmp_path / "docs" / "engines.md").read_text(encoding="utf-8")
    where = "`adapter.py`: sample" if component["failures"] else "`adapter.py`"
    assert f"| sampler | {where} | {verdict} |" in page and (component["failures"] == []) == ("### Tiny" not in page)
    assert json.loads((tmp_path / "out" / "engines.json").read_text(encoding="utf-8")) == found


def constrained(logits, params, dropped, bias):
    rows = history.before_constraints(logits)
    rows[:, dropped] = -np.inf
    rows[:, history.BIASED] += np.float32(bias)
    return reference_numpy.filter_rows(rows, {**params, "min_p": np.zeros(len(rows), np.float32)})


@pytest.mark.parametrize("dropped, bias, verdict", [
    (history.DROPPED, history.BIAS, "consistent"), (history.DROPPED[1:], history.BIAS, "biased"),
    (history.DROPPED, 0.0, "biased")])
def test_a_bias_or_a_minimum_length_that_is_forgotten_is_found(dropped, bias, verdict):
    found = draftproof.audit_callable(lambda logits, params: constrained(logits, params, dropped, bias), kind="filter",
                                      failures_max=1, **history.with_constraints())
    assert found.verdict == verdict, found


def drafting_step(is_argmax, tables, requests, known, params, seeds):
    """Two drafts of a head, drawn or its argmax, then the chain rule with the q of the draws."""
    emitted = []
    for request, string, seed in zip(requests, known, seeds):
        rng, tokens = np.random.default_rng([int(seed), len(string)]), []
        for _ in range(2):
            p, q = np.exp(tables.target(request, (*string, *tokens)).astype(float)), np.zeros(strings.TOKENS)
            q[strings.DRAFT_IDS] = np.exp(tables.head(request, (*string, *tokens), strings.DRAFT_IDS).astype(float))
            p, q = p / p.sum(), q / q.sum()
            draft = q.argmax() if is_argmax else rng.choice(len(q), p=q)
            if rng.random() * q[draft] >= p[draft]:
                residual = np.maximum(p - q, 0.0)
                tokens.append(rng.choice(len(p), p=residual / residual.sum()))
                break
            tokens.append(draft)
        emitted.append(tokens)
    return emitted


@pytest.mark.parametrize("is_argmax, verdict", [(False, "consistent"), (True, "biased")])
def test_strings_of_whole_steps_tell_an_argmax_that_is_judged_as_a_draw(is_argmax, verdict):
    case = next(case for case in strings.options()["cases"] if case.name == "strings")
    found = draftproof.audit_callable(strings.sampler_of(lambda *a: drafting_step(is_argmax, *a)), kind="sample",
                                      tv=0.2, failures_max=1, distribution=strings.distribution, cases=[case])
    assert found.verdict == verdict, found


def test_drafts_that_the_head_does_not_have_are_told():
    tables = strings.Tables(np.random.default_rng(1).standard_normal((2,
            strings.TOKENS ** strings.LENGTH)).astype(np.float32))
    best = [strings.DRAFT_IDS[tables.head(request, (), strings.DRAFT_IDS).argmax()] for request in range(2)]
    strings.check_drafts(tables, [0, 1], [(), ()], [[token] for token in best], [True, True], strings.DRAFT_IDS)
    with pytest.raises(AssertionError, match="request 1: after \\(\\) the draft is 1; the head has"):
        strings.check_drafts(tables, [0, 1], [(), ()], [[best[0]], [1]], [True, False], strings.DRAFT_IDS)


def test_one_component_takes_its_place_among_the_others_and_an_engine_takes_all_of_them(tmp_path):
    shutil.copy(ROOT / "CMakeLists.txt", tmp_path)
    engine = SimpleNamespace(name="vllm", title="vLLM", version="1", uses_torch=False, not_run="", server=())
    other = SimpleNamespace(name="sglang", title="SGLang", version="1", uses_torch=False, not_run="", server=())
    before = [{"engine": "vllm", "component": name, "n": 1} for name in ("sampler", "rejection", "filter")]
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "engines.md").write_text("as it was", encoding="utf-8")
    whole = report.document(tmp_path, "", [engine, other], {"vllm": before})
    assert report.write(tmp_path, whole) == ["sglang"]  # of which there is nothing: the page is not made
    assert (tmp_path / "docs" / "engines.md").read_text(encoding="utf-8") == "as it was"
    found = {"engine": "vllm", "component": "rejection", "n": -1}
    part = report.document(tmp_path, "", [engine], {"vllm": [dict(found)]}, True)["components"]
    assert [(component["component"], component["n"]) for component in part] == [("sampler", 1), ("rejection", -1),
            ("filter", 1)]
    assert [component["n"] for component in report.document(tmp_path, "", [engine],
                                                            {"vllm": [dict(found)]})["components"]] == [-1]


def test_what_a_server_showed_stands_on_the_page_and_is_not_new_to_the_next_audit():
    rows = ({"with": ["ngram"], "line": "logprobs", "seen": "no lists", "curl": "curl -s URL"},
            {"with": ["ngram", "none"], "seen": "a token"})
    engine = environments.Engine("tiny", "Tiny", "1", not_run="it has no sampler", server=rows)
    assert engine.known("ngram") == {"logprobs"} and engine.known("none") == set()
    page = report.markdown({"engines": [{"engine": "tiny", "title": "Tiny", "version": "1", "torch": None,
                                         "not_run": "it has no sampler", "server": rows}], "components": []})
    assert "| ngram | logprobs | no lists | `curl -s URL` |" in page and "| ngram, none |  | a token |  |" in page
    for each in environments.engines():  # what an engine.toml says of a server is of one that is started
        assert {kind for row in each.server for kind in row["with"]} <= set(each.serves)


@pytest.mark.parametrize("known, code", [("top_k", 0), ("stop", 1)])
def test_servers_of_an_engine_fail_by_what_is_not_known_of_them_and_are_started_again_without_what_ends_them(
        tmp_path, monkeypatch, capsys, known, code):
    started = []

    @contextlib.contextmanager
    def serving(engine, drafts, blocks):
        server = fake_server.Fake(*(("ends at top_k",) if drafts == "ngram" else ()))
        started.append(drafts)
        yield server.url
        server.close()

    (tmp_path / "model").touch()
    monkeypatch.setattr(servers, "serving", serving)
    monkeypatch.setattr(servers, "MODEL", tmp_path / "model")
    monkeypatch.setattr(environments, "ROOT", tmp_path)
    monkeypatch.setenv("DRAFTPROOF_MODULE", str(Path(draftproof.__file__).parents[1]))
    engine = environments.Engine("tiny", "Tiny", "1", serves=("none", "ngram"), server=(
        {"with": ["ngram"], "line": known, "seen": ""},))
    found = servers.audit(engine, [*engine.serves], 3.0, 4)
    assert (found == 1) == bool(code)  # 4 where a busy machine judges too few draws
    assert started == ["none", "ngram", "ngram"]
    assert {path.name for path in (tmp_path / "out" / "servers").iterdir()} == {
        "tiny-none.jsonl", "tiny-ngram.jsonl", "tiny-ngram-top_k.jsonl"}
    said = capsys.readouterr().out
    assert ("not known before: top_k" in said) == (code == 1) == ("not seen this time: stop" in said)


def engines(*arguments):
    return subprocess.run([sys.executable, ADAPTERS / "engines.py", *arguments], capture_output=True, text=True,
                          env={"PYTHONDONTWRITEBYTECODE": "1"}, check=False)


def test_a_dry_run_says_what_would_be_driven_and_refuses_what_there_is_not():
    every = engines("--dry-run")
    assert every.returncode == 0
    assert [line.split(":")[0] for line in every.stdout.splitlines()] == sorted(
        path.parent.name for path in ADAPTERS.glob("*/engine.toml"))
    assert engines("--dry-run", "--engine", "vllm").stdout.startswith("vllm: vLLM ")
    for arguments, said in [(("--engine", "vlm"), "--engine: 'vlm' is not one of flashinfer, "),
                            (("--seconds", "0"), "--seconds: is 0; expected a number above 0")]:
        refused = engines("--dry-run", *arguments)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr.startswith(f"draftproof: error: {said}")
        assert len(refused.stderr.splitlines()) == 1
    refused = engines("--servers", "--engine", "llama_cpp", "--drafts", "warp")
    assert (refused.returncode, refused.stderr) == (
        2, "draftproof: error: --drafts: 'warp' is not one of draft, ngram, none\n")
