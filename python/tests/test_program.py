"""The program's verbs as functions give back what `draftproof VERB --json` prints, with a class for what is
documented."""

import json
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import draftproof
from draftproof._documents import Record

PREDICT = {"model": "Llama-3.1-8B", "gpu": "H100", "drafter": "EAGLE-3"}
SCENARIO = Path(__file__).parents[2] / "experiments/scenarios/chat.toml"
CORPUS = Path(__file__)
CALLS = {
    "predict": (lambda: draftproof.predict(**PREDICT),
                ["--model", "Llama-3.1-8B", "--gpu", "H100", "--drafter", "EAGLE-3"]),
    "acceptance": (lambda: draftproof.acceptance("constant:0.8", "drafter:EAGLE-3", draft_cost=0.1),
                   ["constant:0.8", "drafter:EAGLE-3", "--draft-cost", "0.1"]),
    "generate": (lambda: draftproof.generate("x = ", model=f"ngram:3:{CORPUS}", max_tokens=20, policy="fixed:4"),
                 ["--prompt", "x = ", "--model", f"ngram:3:{CORPUS}", "--max-tokens", "20", "--policy", "fixed:4"]),
    "tree": (lambda: draftproof.tree(seed=5), ["--seed", "5"]),
    "lab": (lambda: draftproof.lab([0.5, 0.3, 0.2], [0.2, 0.5, 0.3], samples=1000),
            ["--target", "0.5,0.3,0.2", "--draft", "0.2,0.5,0.3", "--samples", "1000"]),
    "sim": (lambda: draftproof.sim(SCENARIO, replications=1, set={"workload.requests": 150}),
            [str(SCENARIO), "--replications", "1", "--set", "workload.requests=150"]),
    "prove": (lambda: draftproof.prove("typical", instances=2, num_speculative_tokens=1),
              ["--verifier", "typical", "--instances", "2", "--num-speculative-tokens", "1"]),
}


def available() -> bool:
    try:
        return all(subprocess.run([draftproof.program(), verb, "--help"], capture_output=True).returncode == 0
                   for verb in ("predict", "tree"))
    except (draftproof.Error, OSError):
        return False


pytestmark = pytest.mark.skipif(not available(), reason="the program is not built: ./draftproof test builds it")


def plain(value):
    if isinstance(value, Record):
        return {key: plain(part) for key, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list) else value


TIMES = ("generation_ms", "tokens_per_second", "drafter_share", "target_share", "mask_share")


def without_clocks(value):
    if isinstance(value, dict):
        return {key: without_clocks(part) for key,
                part in value.items() if key not in ("wall_s", "command", "ms") and key not in TIMES}
    return [without_clocks(part) for part in value] if isinstance(value, list) else value


def unlike_its_class(record, where):
    """Keys that the class of a record does not name, or that it names and the document does not have."""
    form = type(record)
    found = []
    if form is not Record:
        differing = set(typing.get_type_hints(form)) ^ set(record)
        found += [f"{where}.{key}" for key in differing]
    for key, value in record.items():
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, Record):
                found += unlike_its_class(part, f"{where}.{key}")
    return found


@pytest.mark.parametrize("verb", CALLS)
def test_a_function_gives_back_the_document_that_the_program_prints(verb):
    call, arguments = CALLS[verb]
    printed = subprocess.run([draftproof.program(), verb, "--json", *arguments], capture_output=True, text=True)
    document = call()
    assert without_clocks(plain(document)) == without_clocks(json.loads(printed.stdout))
    # An error is a key of the dashboard's export alone.
    assert [key for key in unlike_its_class(document, verb) if not key.endswith("sources.error")] == []
    html = document._repr_html_()
    assert html.count("<tr>") > 1 and "None" not in html


def test_keys_are_attributes_of_typed_records():
    document = draftproof.predict(**PREDICT)
    best = document.best[0]
    assert best.speedup == document["best"][0]["speedup"] > 1
    assert type(best).__name__ == "PredictedBest" and type(best.best_k.verify_pass).__name__ == "Pass"
    assert "speedup" in dir(best) and len(document) == len(list(document))
    with pytest.raises(AttributeError, match="there is no speed; expected one of batch"):
        _ = best.speed


def test_what_the_program_refuses_is_an_error_with_its_line():
    with pytest.raises(draftproof.Error, match="^'--gpus' is not an option of predict; did you mean '--gpu'"):
        draftproof.predict(**PREDICT, gpus="H100")
    with pytest.raises(ValueError, match="--top-p is '1.5'; expected a number in"):
        draftproof.lab([1, 1], [1, 2], top_p=1.5)


def test_logprobs_of_given_tokens_are_listed_and_more_than_128_are_refused():
    model = f"ngram:3:{CORPUS}"
    found = draftproof.generate("x = ", model=model, max_tokens=3, logprobs=0, logprob_token_ids=[120, 122])
    for listed in found.requests[0].logprobs:
        assert {entry.token for entry in listed} >= {120, 122}
    with pytest.raises(draftproof.Error, match="logprob_token_ids: has 129 ids; expected at most 128"):
        draftproof.generate("x = ", model=model, max_tokens=3, logprobs=0, logprob_token_ids=list(range(129)))


def test_a_verifier_is_proved_and_a_lossy_one_refuted():
    proofs = draftproof.prove("chain", instances=2).proofs
    assert all(proof.as_claimed for proof in proofs) and any(proof.lossless for proof in proofs)
    refuted = draftproof.prove("typical", instances=2)
    assert refuted.as_claimed and not any(proof.exact for proof in refuted.proofs)
    assert "the target has " in refuted.proofs[0].sentence and "the target has " in refuted._repr_html_()
    with pytest.raises(draftproof.Error, match="'nobody' is not a verifier"):
        draftproof.prove("nobody")


def test_a_bias_is_a_document_and_no_error():
    found = draftproof.lab([0.5, 0.3, 0.2], [0.2, 0.5, 0.3], bug="B01", samples=20000)
    assert found.bug.id == "B01" and found.verdict in ("biased", "consistent")


def test_a_shipped_scenario_has_a_name():
    assert draftproof.sim("chat", replications=1,
                          set={"workload.requests": 150}).scenario.endswith("scenarios/chat.toml")


def test_without_a_program_the_error_says_where_one_comes_from(monkeypatch, tmp_path):
    monkeypatch.delenv("DRAFTPROOF_PROGRAM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("draftproof._program.metadata.files", lambda name: None)
    with pytest.raises(draftproof.Error, match="DRAFTPROOF_PROGRAM"):
        draftproof.program()


def test_the_self_test_of_the_audit_runs_the_planted_faults_of_this_module(monkeypatch):
    monkeypatch.setenv("DRAFTPROOF_PYTHON", sys.executable)
    verb = [draftproof.program(), "audit", "--self-test", "--profile", "quick", "--kind", "filter", "--fault"]
    said = subprocess.run([*verb, "top_k is at most 64"], capture_output=True, text=True)
    assert said.returncode == 0 and said.stdout.startswith("filter, top_k is at most 64: top_k 65 | wrong_set | a row "
                                                           "with top_k 65: 1 missing with p ")
    assert said.stdout.splitlines()[-1].startswith("quick finds 1 of 1 planted faults")
    document = json.loads(subprocess.run([*verb, "top_k is at most 64", "--json"], capture_output=True,
                                         text=True).stdout)
    assert document["version"] == draftproof.__version__ and document["faults"][0]["profiles"] == ["quick", "full",
            "soak"]
    refused = subprocess.run([*verb, "nothing"], capture_output=True, text=True)
    assert refused.returncode == 2 and refused.stdout == "" and refused.stderr.count(
            "\n") == 1 and "'nothing'" in refused.stderr
