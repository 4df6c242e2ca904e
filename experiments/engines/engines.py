"""What `./draftproof engines` runs: today's engines, by their own code, under draftproof.audit_callable.

Installs an engine where it is asked for (build/engines), drives its components in a process of its own, and writes what
was found to out/engines.json and, once every engine has results there, to docs/engines.md.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "shared"))

import environments  # noqa: E402
import report  # noqa: E402
import servers  # noqa: E402

ROOT = environments.ROOT
EXIT_BIASED, EXIT_USAGE = 1, 2


def arguments_of(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="draftproof engines",
        description="Drives the samplers, filters and verifiers of today's engines through the cases of "
                    "audit_callable. "
        "An engine is installed on the first run, into build/engines. Writes out/engines.json, and docs/engines.md "
        "once "
        "every engine has results there.")
    parser.add_argument("--engine", action="append", metavar="NAME", help="only this one; may be given again")
    parser.add_argument("--component", action="append", metavar="NAME", help="only this one of its components; may be "
                        "given again; nothing is written without --write")
    parser.add_argument("--write", action="store_true", help="what --component found takes its place in the documents")
    parser.add_argument("--seconds", type=float, help="of each component, at most (the engine's own, in its "
                        "engine.toml)")
    parser.add_argument("--servers", action="store_true", help="audit the engines' servers instead, plain and with "
                        "drafts, 120 seconds each; requests and answers stay in out/servers")
    parser.add_argument("--drafts", action="append", metavar="KIND", help="--servers: only those started with this; "
                        "may be given again")
    parser.add_argument("--blocks", type=int, default=30, help="--servers: of the model, its first ones (30: all); "
                        "fewer are faster")
    parser.add_argument("--json", action="store_true", help="print the document on standard output")
    parser.add_argument("--dry-run", action="store_true", help="say which engines would be driven, and stop")
    return parser.parse_args(argv)


def fail(text: str) -> None:
    print(f"draftproof: error: {text}", file=sys.stderr)
    sys.exit(EXIT_USAGE)


def drive(engine: environments.Engine, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    module = os.environ.get("DRAFTPROOF_MODULE") or fail("DRAFTPROOF_MODULE is not set; run ./draftproof engines")
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1",
                   "PYTHONPATH": str(Path(__file__).resolve().parent / "shared")}
    log = environments.BUILD / f"{engine.name}.log"
    with log.open("w", encoding="utf-8") as errors:
        worker = subprocess.Popen(
            [engine.python, str(environments.ADAPTERS / "shared" / "worker.py"), engine.name, module,
             str(arguments.seconds or engine.seconds), *(arguments.component or [])],
            stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, env=environment, text=True,
            cwd=environments.BUILD)
        found = []
        assert worker.stdout is not None
        for line in worker.stdout:
            result = {**json.loads(line), "version": engine.version,
                      "seconds_at_most": arguments.seconds or engine.seconds}
            found.append(result)
            print(f"draftproof: {engine.name}: {result['component']}: {result['verdict']}, {result['n']} "
                  f"{report.COUNTED[result['kind']]}, {result['seconds']:.0f} s", file=sys.stderr)
    if worker.wait() != 0:
        last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-3:]
        fail(f"{engine.name}: its process ended with {worker.returncode} after {len(found)} components: "
             f"{' | '.join(last)} ({log.relative_to(ROOT)})")
    return found


def serve(chosen: list[environments.Engine], arguments: argparse.Namespace) -> int:
    if not chosen:
        fail(f"--servers: {', '.join(arguments.engine)} has no serve.py; expected --engine llama_cpp")
    every = {kind for engine in chosen for kind in engine.serves}
    if unknown := sorted({*(arguments.drafts or ())} - every):
        fail(f"--drafts: '{unknown[0]}' is not one of {', '.join(sorted(every))}")
    codes: list[int] = []
    for engine in chosen:
        kinds = [kind for kind in engine.serves if kind in (arguments.drafts or engine.serves)]
        try:
            environments.install(engine)
            codes.append(servers.audit(engine, kinds, arguments.seconds or 120.0, arguments.blocks) if kinds else 0)
        except environments.InstallError as error:
            fail(f"{engine.name}: {error}")
    return max(codes)


def main(argv: list[str]) -> int:
    arguments = arguments_of(argv)
    every = environments.engines()
    names = [engine.name for engine in every]
    for name in arguments.engine or []:
        if name not in names:
            fail(f"--engine: '{name}' is not one of {', '.join(names)}")
    if arguments.seconds is not None and not arguments.seconds > 0:
        fail(f"--seconds: is {arguments.seconds:g}; expected a number above 0")
    chosen = [engine for engine in every if not arguments.engine or engine.name in arguments.engine]
    if arguments.dry_run:
        for engine in chosen:
            print(f"{engine.name}: {engine.not_run or f'{engine.title} {engine.version}'}")
        return 0
    if arguments.servers:
        return serve([engine for engine in chosen if engine.serves], arguments)
    command = f"engines {shlex.join(argument for argument in argv if argument not in ('--write', '--json'))}"
    fresh: dict[str, list[dict[str, Any]]] = {}
    document: dict[str, Any] = {}
    missing: list[str] = []
    for engine in chosen:
        try:
            if not engine.not_run:
                environments.install(engine)
        except environments.InstallError as error:
            fail(f"{engine.name} could not be installed: {error}")
        fresh[engine.name] = [] if engine.not_run else drive(engine, arguments)
        document = report.document(ROOT, command, every, fresh, bool(arguments.component))
        if arguments.write or not arguments.component:
            missing = report.write(ROOT, document)  # after each engine: a later one may fail
    if missing:
        print(f"draftproof: docs/engines.md is as it was: out/engines.json has no results of {', '.join(missing)}",
              file=sys.stderr)
    had = {component["component"] for found in fresh.values() for component in found}
    for name in arguments.component or []:
        if name not in had:
            fail(f"--component: '{name}' is none of {', '.join(fresh)}; docs/engines.md names what each has")
    if arguments.json:
        print(json.dumps(document, indent=2))
    else:
        print(report.table(document, [engine.name for engine in chosen]))
    driven = [component for component in document["components"] if component["engine"] in fresh]
    return EXIT_BIASED if any(component["verdict"] in ("biased", "error") for component in driven) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
