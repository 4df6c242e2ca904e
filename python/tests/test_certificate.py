"""exactness/proof/check_certificate.py: a hand-made certificate holds; of files that are none, or say more than they
show, it says so, in bounded time and without what a terminal obeys."""

import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest

CHECKER = Path(__file__).resolve().parents[2] / "exactness" / "proof" / "check_certificate.py"
#: By hand: p is fair, the drafter always drafts 0, which stands with 1/2; else the residual has token 1 alone.
PAIR = {"models": "by hand", "difference": None,
        "rows": [{"prefix": [], "p": ["1/2", "1/2"], "q": ["1", "0"]},
                 {"prefix": [0], "p": ["1", "0"], "q": ["1", "0"]},
                 {"prefix": [1], "p": ["0", "1"], "q": ["0", "1"]}],
        "outcomes":
        [{"decisions": [["draft_sample", 0, 0, 0, "1"], ["accept", 0, 0, 0, "1/2"], ["target_sample", 1, 0, 0, "1"]],
                      "emitted": [0, 0]},
                     {"decisions": [["draft_sample", 0, 0, 0, "1"], ["accept", 0, 0, 1, "1/2"],
                                    ["residual", 0, 0, 1, "1"]],
                      "emitted": [1]}],
        "emitted": [{"string": [0, 0], "probability": "1/2"}, {"string": [1], "probability": "1/2"}]}
PROOF = {"verifier": "chain", "source": "by hand", "claim": "lossless", "vocab": 2, "draft": 1, "instances": [PAIR]}


def checked(tmp_path, text):
    file = tmp_path / "certificate.json"
    file.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    return subprocess.run([sys.executable, "-B", CHECKER, file], capture_output=True, text=True, check=False,
                          timeout=60)


def changed(change):
    proof = copy.deepcopy(PROOF)
    change(proof, proof["instances"][0])
    return {"proofs": [proof]}


def test_a_pair_of_models_counts_once(tmp_path):
    found = checked(tmp_path, {"proofs": [{**PROOF, "instances": [PAIR] * 50}]})
    assert found.returncode == 0, found.stderr
    assert found.stdout == ("chain: lossless, as stated, on 1 pair of models, every decision by the paper's rule; "
                            "49 that repeat others are not counted\n")
    twice = checked(tmp_path, {"proofs": [PROOF, PROOF]})
    assert (twice.returncode, twice.stdout) == (1, "") and "stands in a proof before" in twice.stderr


@pytest.mark.parametrize("change, said", [
    (lambda proof, pair: proof.update(instances=[]), "no pair of models"),
    (lambda proof, pair: pair.update(outcomes=[]), "outcomes is empty"),
    (lambda proof, pair: pair["rows"].append(pair["rows"][0]), "stand twice"),
    (lambda proof, pair: pair["emitted"].append(pair["emitted"][0]), "stands twice"),
    (lambda proof, pair: pair["rows"].pop(), "rows after [1] are missing"),
    (lambda proof, pair: (proof.update(verifier="mute"), pair.update(outcomes=[{"decisions": [], "emitted": []}],
                                                                     emitted=[{"string": [], "probability": "1"}])),
     "emits nothing")])
def test_what_shows_nothing_does_not_hold(tmp_path, change, said):
    found = checked(tmp_path, changed(change))
    assert (found.returncode, found.stdout) == (1, "") and said in found.stderr


@pytest.mark.parametrize("text", ["1e1000000000", "1/0", "NaN", "-1/2", " 1/2", "9" * 1001, "0x1", "٣/٧", 0.5, None])
def test_what_is_no_fraction_is_refused_at_once(tmp_path, text):
    found = checked(tmp_path, changed(lambda proof, pair: pair["rows"][0].update(p=[text, "1/2"])))
    assert (found.returncode, found.stdout) == (2, "") and "cannot be read as a certificate: " in found.stderr


def test_sums_that_would_grow_without_end_are_refused(tmp_path):
    row = [f"1/{(1000 + i) ** 200}" for i in range(4096)]
    found = checked(tmp_path,
                    changed(lambda proof, pair: (proof.update(vocab=4096), pair["rows"][0].update(p=row, q=row))))
    assert found.returncode == 1 and "bits" in found.stderr


@pytest.mark.parametrize("text", ["", "null", "{}", '{"proofs": {}}', '{"proofs": [3]}', '{"proofs": NaN}',
                                  '{"proofs": [1e400]}', "[" * 100_000,
                                  '{"proofs": ' + "9" * 10_000 + "}", '{"proofs": [], "proofs": [{}]}', "\x00",
                                  '"\\ud800"', json.dumps(changed(lambda proof, pair: proof.update(vocab=10 ** 15))),
                                  json.dumps(changed(lambda proof, pair: proof.update(draft=10 ** 9))),
                                  json.dumps(changed(lambda proof, pair: proof.update(claim="proved"))),
                                  json.dumps(changed(lambda proof, pair:
                                                     pair["outcomes"][0].update(emitted=[False, 0]))),
                                  json.dumps(changed(lambda proof, pair:
                                                     pair["outcomes"][0]["decisions"][0].__setitem__(3, -2)))])
def test_what_is_no_certificate_is_refused(tmp_path, text):
    found = checked(tmp_path, text)
    assert (found.returncode,
            found.stdout) == (2, "") and found.stderr.count("\n") == 1 and "Traceback" not in found.stderr


def test_names_are_printed_without_what_a_terminal_obeys(tmp_path):
    bad = "a\x1b[2Jb\n\u202ec" + "x" * 1000
    found = checked(tmp_path, changed(lambda proof, pair: proof.update(verifier=bad)))
    assert found.returncode == 0 and found.stdout.startswith("a\\x1b[2Jb\\n\\u202ec") and len(found.stdout) < 250
    found = checked(tmp_path, changed(lambda proof, pair: pair.update(models=bad, outcomes=[])))
    assert found.returncode == 1 and found.stderr.isascii() and found.stderr[:-1].isprintable()
