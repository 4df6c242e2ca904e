"""The program's verbs as functions: each gives back the document that `draftproof VERB --json` prints (docs/json.md).

    draftproof.predict(model="Llama-3.1-8B", gpu="H100", drafter="EAGLE-3").best[0].speedup

Options are keywords, with _ for -: `draft_cost=0.1` is --draft-cost 0.1, True is a flag, a list is its values with
commas
between them, a dict gives the option once for each key: `set={"run.seed": 2}` is --set run.seed=2. `draftproof VERB
--help` lists them. What the program refuses is an Error with its one line.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any, Callable, Sequence, TypeVar, Union, overload

from ._core import Error
from ._documents import Acceptance, Document, Generated, Lab, Parity, Prediction, Proof, Proofs, Simulation, Tree
from ._proof import prove_rule

Found = TypeVar("Found", bound=Document)
Path_ = Union[str, "os.PathLike[str]"]


def program() -> str:
    """The path of the program: DRAFTPROOF_PROGRAM, that of the installed wheel, or the one on PATH."""
    if named := os.environ.get("DRAFTPROOF_PROGRAM"):
        return named
    for file in metadata.files("draftproof") or ():
        if file.parts[-2:] == ("bin", "draftproof") and Path(file.locate()).exists():
            return str(file.locate())
    if found := shutil.which("draftproof"):
        return found
    raise Error("the program draftproof is not here; expected a wheel of ./draftproof wheel, the program on PATH, or "
                "its path in DRAFTPROOF_PROGRAM")


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(_text(part) for part in value)
    return repr(float(value)) if isinstance(value, float) else str(value)


def run(form: type[Found], verb: str, positional: Sequence[Any], options: dict[str, Any]) -> Found:
    """Runs a verb and reads its document. A bias or a mismatch (exit code 1) is a document too."""
    command = [program(), verb, "--json"]
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            command.append(option)
        elif isinstance(value, dict):
            command += [f"{option}={key}={_text(part)}" for key, part in value.items()]
        elif value is not None and value is not False:
            command.append(f"{option}={_text(value)}")
    command += [os.fspath(value) if isinstance(value, os.PathLike) else str(value) for value in positional]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", errors="replace")
    if done.returncode not in (0, 1, 4) or not done.stdout:
        lines = done.stderr.strip().splitlines()
        if done.returncode == 2 and done.stdout and not lines:  # the document says why a request was refused
            lines = [request["error"] for request in json.loads(done.stdout).get("requests", []) if "error" in request]
        line = (lines or [f"ended with {done.returncode}"])[-1]
        if done.returncode == 2:
            raise Error(line.removeprefix("draftproof: error: "))
        raise RuntimeError(line)
    return form(json.loads(done.stdout))


def predict(**options: Any) -> Prediction:
    """When does speculation pay, for a model, a GPU and a drafter? docs/predict.md."""
    return run(Prediction, "predict", (), options)


def acceptance(*sources: Path_, **options: Any) -> Acceptance:
    """How does acceptance fall along a draft, and which K is best? Logs, files, drafter:NAME, constant:0.8.
    docs/predict.md."""
    return run(Acceptance, "acceptance", sources, options)


def sim(scenario: Path_, **options: Any) -> Simulation:
    """Policies of speculation on the same requests in a server. A file, or the name of a shipped scenario ("chat").
    docs/simulator.md."""
    return run(Simulation, "sim", (scenario,), options)


def tree(**options: Any) -> Tree:
    """A draft tree and its verification, step by step. docs/trees.md."""
    return run(Tree, "tree", (), options)


def lab(target: Any, draft: Any, **options: Any) -> Lab:
    """One verification step over a p and a q given by hand: what do they share, do samples follow p?
    docs/exactness.md."""
    return run(Lab, "lab", (), {"target": _weights(target), "draft": _weights(draft), **options})


def generate(prompt: str, **options: Any) -> Generated:
    """Text from a language model, plain or with speculation, as `draftproof generate` has it: json_schema="FILE",
    regex="[0-9]+" or choice="yes,no" for structured output. docs/structured.md."""
    return run(Generated, "generate", (), {"prompt": prompt, **options})


def parity(a: Path_, b: Path_, **options: Any) -> Parity:
    """Logits of the same rows from two paths of an engine: do they differ as rounding does, or as a fault?
    temperature=[0, 0.7, 1]; files as record_logits writes them. docs/parity.md."""
    return run(Parity, "parity", (a, b), options)


@overload
def prove(verifier: str = "all", **options: Any) -> Proofs: ...
@overload
def prove(verifier: Callable[..., Any], **options: Any) -> Proof: ...
def prove(verifier: Union[str, Callable[..., Any]] = "all", **options: Any) -> Union[Proofs, Proof]:
    """Is the distribution of a verifier exactly the target's? By enumeration over fractions, case by case.
    docs/exactness.md.

    A name: what `draftproof prove --verifier NAME --json` prints. A callable rule(draft, p, q, chance): its proof,
    without the program, over the same pairs of models; it returns the emitted tokens, and takes every decision by
    chance.accept(p), True with probability p, and chance.draw(weights), an index. All numbers are Fractions.

    draft="chain" (K tokens from q): draft is a list [K]; p[i] and q[i], [V], the distributions after i of its tokens.
    draft="iid", "distinct" or "greedy" (`branches` children at every node: independent draws, draws without
    replacement, the most probable tokens and one draw of the rest), or "paths" (`branches` independent paths, merged):
    a path is a tuple of tokens, draft.children(path) are the tokens after it as drawn, p[path] and q[path], [V], the
    distributions there. A callable drafter(q, depth, chance), q[path] as above: a list is a chain, a dict has the
    children of every path.

    Options: vocab=3 (V), num_speculative_tokens (K; 3, of trees 2), steps=2, instances=20 (pairs of models), seed=0;
    certificate="FILE" writes one step for exactness/proof/check_certificate.py. What the rule raises refutes it and
    stands in the counterexample, which is that of the smallest K and V that refute it too. Error: an option outside its
    range, a decision by a float, a rule that decides by anything but chance or takes more than 400 decisions a step."""
    if callable(verifier):
        return prove_rule(verifier, **options)
    return run(Proofs, "prove", (), {"verifier": verifier, **options})


def _weights(value: Any) -> Any:
    return [float(weight) for weight in value] if hasattr(value, "__iter__") and not isinstance(value, str) else value
