"""./draftproof heads: trains draft heads for a target, in an environment of its own under build/engines.

    heads train HEAD [--target smollm2] [--minutes 20]   texts of the target's own, features, training, export
    heads evaluate HEAD                                  held-out acceptance of what was trained
    heads export HEAD                                    the files that engines read, of what was trained
    heads check                                          do the package speculators and the program open what was
    exported? heads install                                        the environment alone

HEAD is eagle1, eagle3, dflash, medusa or mtp. Texts, checkpoints and exported heads lie in build/heads; what is there
is gone on from.
"""

from __future__ import annotations

import argparse
import difflib
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "heads"
HEADS = ("eagle1", "eagle3", "dflash", "medusa", "mtp")
SMOLLM2 = ROOT / "build" / "models" / "SmolLM2-135M-Instruct.gguf"
#: Their own dependencies are those of frameworks of training and serving; a head needs these of PACKAGES. The last four
#: are
#: for make_golden.py alone, 0.6 MB together.
WITHOUT_DEPENDENCIES = ("speculators==0.9.0", "hs-connectors==0.9.0", "specforge==0.2.0", "dflash==0.1.0",
                        "eagle-llm==1.2.1", "medusa-llm==0.1")
PACKAGES = ("transformers==5.19.0", "gguf==0.19.0", "safetensors==0.8.0", "numpy==2.4.6", "pydantic==2.14.3",
            "pydantic-settings==2.16.3", "loguru==0.7.3", "httpx==0.28.1", "openai==3.54.0", "psutil==7.2.2",
            "tqdm==4.70.1", "tokenizers==0.23.3")


class UsageError(Exception):
    """One sentence for the user."""


class Parser(argparse.ArgumentParser):
    def error(self, message: str):
        raise UsageError(message.removeprefix("argument "))


def environment():
    """(environments, engine): the module that makes environments, and ours."""
    sys.path.insert(0, str(ROOT / "experiments" / "engines" / "shared"))
    import environments

    return environments, environments.Engine(name="heads", title="draft heads", version="", uses_torch=True,
                                             without_dependencies=WITHOUT_DEPENDENCIES, packages=PACKAGES)


def enter_environment() -> None:
    """Goes on in the environment's interpreter, which is made where it is not there yet."""
    environments, engine = environment()
    if Path(sys.prefix).resolve() == engine.python.parent.parent.resolve():
        return
    if not engine.python.exists():
        print("draftproof: installing PyTorch and what heads need into build/engines (3 GB of downloads with PyTorch's "
              "CUDA libraries, of which nothing is used)", file=sys.stderr)
    try:
        environments.install(engine)
    except environments.InstallError as error:
        raise UsageError(f"the environment of heads cannot be made: {error}") from None
    # on a machine that others use too, waiting threads only heat it
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("GOMP_SPINCOUNT", "0")
    os.execv(engine.python, [str(engine.python), "-E", "-s", str(Path(__file__).resolve()), *sys.argv[1:]])


def head_name(text: str) -> str:
    if text in HEADS:
        return text
    near = difflib.get_close_matches(text, HEADS, 1)
    meant = f"; did you mean {near[0]}?" if near else f"; expected {', '.join(HEADS[:-1])} or {HEADS[-1]}"
    raise UsageError(f"HEAD: there is no head '{text}'{meant}")


def target_path(text: str) -> Path:
    path = SMOLLM2 if text == "smollm2" else Path(text)
    if not path.is_file():
        expected = "./draftproof fetch smollm2 first" if text == "smollm2" else "smollm2 or a GGUF file"
        raise UsageError(f"--target: there is no file {path}; expected {expected}")
    return path


def positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"is '{text}'; expected a number above 0")
    return value


def count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 10**9:
        raise argparse.ArgumentTypeError(f"is '{text}'; expected a whole number above 0")
    return int(text)


def write_texts(target: Path, folder: Path, tokens: int, threads: int) -> None:
    """The target's answers with features: held-out texts greedily, then training texts. Shards that are there are
    kept."""
    import prompts
    from target import open_target

    held_out = prompts.held_out_prompts()
    prompts.write_prompts(folder / "held_out.jsonl", held_out)
    words = prompts.words_of(open_target(target).tokens)
    prompts.write_prompts(folder / "training.jsonl", prompts.training_prompts(words, max(3072, tokens // 125)))
    program = ROOT / "build" / "release" / "draftproof"
    common = [str(program), "features", "--model", str(target), "--threads", str(threads)]
    for command in (
            [*common, "--prompts", str(folder / "held_out.jsonl"), "--out", str(folder / "held_out"), "--temperature",
             "0", "--top-p", "1", "--max-tokens", "128"],
            [*common, "--prompts", str(folder / "training.jsonl"), "--out", str(folder / "training"), "--max-tokens",
             "160", "--prompts-per-shard", "96", "--tokens", str(tokens)]):
        if subprocess.run(command, check=False).returncode != 0:
            raise UsageError("the target's texts could not be written")


def open_head(name: str, arguments: argparse.Namespace):
    """(head as it begins, training texts, held-out texts, kinds of work of the held-out texts)."""
    import importlib

    import prompts
    import torch
    from target import describe, draft_vocabulary, open_target, read_corpus

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    target = open_target(target_path(arguments.target))
    folder = BUILD / target.name
    corpus, held_out = read_corpus(folder / "training"), read_corpus(folder / "held_out")
    vocabulary = draft_vocabulary(corpus, target.vocab, arguments.draft_vocabulary)
    print(f"texts and draft vocabulary: {describe(corpus, vocabulary, held_out)}", flush=True)
    kind = {"eagle1": "Eagle1", "eagle3": "Eagle3", "dflash": "DFlash", "medusa": "Medusa", "mtp": "Mtp"}[name]
    head = getattr(importlib.import_module(name), kind)(target, vocabulary, corpus)
    return head, corpus, held_out, [line["work"] for line in prompts.held_out_prompts()]


def restore(head, folder: Path) -> None:
    import torch

    checkpoint = folder / "checkpoint.pt"
    if not checkpoint.is_file():
        raise UsageError(f"{folder} has no checkpoint; expected ./draftproof heads train first")
    head.load_state_dict(torch.load(checkpoint, weights_only=True)["head"])


def train(name: str, arguments: argparse.Namespace) -> None:
    import importlib

    from export import export
    from training import train as run

    target = target_path(arguments.target)
    folder = BUILD / target.stem
    write_texts(target, folder, arguments.tokens, arguments.threads)
    head, corpus, held_out, works = open_head(name, arguments)
    steps = importlib.import_module(name).STEPS
    # Training-time test by and by: the first draft is learnt at a third of the cost.
    grown = (lambda progress: 1 if progress < 0.5 else 2 if progress < 0.7 else steps) if name in (
        "eagle1", "eagle3", "mtp") else (lambda progress: steps)
    run(head, corpus, held_out, works, folder / name, arguments.minutes, arguments.rate, grown,
        arguments.tokens_per_batch, arguments.seed)
    for path in export(head, folder / name):
        print(f"wrote {path}")


def evaluate(name: str, arguments: argparse.Namespace) -> None:
    from training import acceptance

    head, _, held_out, works = open_head(name, arguments)
    restore(head, BUILD / target_path(arguments.target).stem / name)
    print(acceptance(head, held_out, works,
                     min(arguments.depth, 7 if name == "dflash" else 3 if name == "medusa" else 16)))


def export_head(name: str, arguments: argparse.Namespace) -> None:
    from export import export

    head, *_ = open_head(name, arguments)
    folder = BUILD / target_path(arguments.target).stem / name
    restore(head, folder)
    for path in export(head, folder):
        print(f"wrote {path}")


def main() -> int:
    parser = Parser(prog="draftproof heads", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry-run", action="store_true", help="look at the arguments and do nothing")
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("train", "evaluate", "export"):
        command = verbs.add_parser(verb)
        command.add_argument("head", help=", ".join(HEADS))
        command.add_argument("--target", default="smollm2", help="smollm2, or a GGUF file of the Llama family")
        command.add_argument("--threads", type=count, default=os.cpu_count() or 1)
        command.add_argument("--seed", type=count, default=1)
        command.add_argument("--draft-vocabulary", type=count, default=4096, help="tokens that the head can draft")
        if verb == "train":
            command.add_argument("--minutes", type=positive, default=20.0, help="of training; texts are written before")
            command.add_argument("--tokens", type=count, default=380_000,
                                 help="of the target's own text, prompts included")
            command.add_argument("--rate", type=positive, default=1e-3, help="AdamW's highest learning rate")
            command.add_argument("--tokens-per-batch", type=count, default=1024)
        if verb == "evaluate":
            command.add_argument("--depth", type=count, default=3, help="drafts, K")
    check = verbs.add_parser("check")
    check.add_argument("--target", default="smollm2")
    verbs.add_parser("install")
    try:
        arguments = parser.parse_args()
        name = head_name(arguments.head) if hasattr(arguments, "head") else ""
        if arguments.verb != "install" and (arguments.target != "smollm2" or not arguments.dry_run):
            target_path(arguments.target)  # before a build that may fetch smollm2 all else is looked at
        if arguments.dry_run:
            return 0
        enter_environment()
        if arguments.verb == "train":
            train(name, arguments)
        elif arguments.verb == "evaluate":
            evaluate(name, arguments)
        elif arguments.verb == "export":
            export_head(name, arguments)
        elif arguments.verb == "check":
            from check_speculators import check as check_exported

            return check_exported(target_path(arguments.target), BUILD)
    except UsageError as error:
        print(f"draftproof: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("draftproof: interrupted; the same command goes on from the last minute", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
