"""Servers of engines on loopback under draftproof.audit_server: plain, then each kind of drafts against plain."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import environments

MODEL = environments.ROOT / "build" / "models" / "SmolLM2-135M-Instruct.gguf"
START_S = 1200.0


@contextlib.contextmanager
def serving(engine: environments.Engine, drafts: str, blocks: int) -> Iterator[str]:
    """Runs serve.py of an engine with the model's first blocks and yields its URL."""
    log = environments.BUILD / f"{engine.name}-serve-{drafts}.log"
    with log.open("w", encoding="utf-8") as errors:
        server = subprocess.Popen([engine.python, environments.ADAPTERS / engine.name / "serve.py", MODEL, drafts,
                                   str(blocks)],
                                  stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, text=True)
        assert server.stdout is not None
        late = threading.Timer(START_S, server.terminate)  # it ends its own
        late.start()
        try:
            url = next((line.strip() for line in server.stdout if line.startswith("http://")), "")
            late.cancel()
            if not url:
                raise environments.InstallError(f"its server did not start; see {log.relative_to(environments.ROOT)}")
            threading.Thread(target=server.stdout.read, daemon=True).start()
            yield url
        finally:
            late.cancel()
            server.terminate()
            server.wait()


def audit(engine: environments.Engine, kinds: list[str], seconds: float, blocks: int) -> int:
    """Prints the audits of an engine's servers, of these kinds of drafts, and keeps them in out/servers. Returns 1
    where one deviates in what engine.toml does not name, 4 where one could not be judged. A server that a parameter
    ends is started again without it."""
    sys.path.insert(0, os.environ["DRAFTPROOF_MODULE"])
    import draftproof

    if not MODEL.is_file():
        raise environments.InstallError("its server needs the model; run ./draftproof fetch smollm2")
    kept = environments.ROOT / "out" / "servers"
    kept.mkdir(parents=True, exist_ok=True)
    codes = []
    with serving(engine, engine.serves[0], blocks) as plain:
        for drafts in kinds:
            without: tuple[str, ...] = ()
            known, found = engine.known(drafts), set()
            ended = True
            while ended:
                with contextlib.ExitStack() as running:
                    url = plain if drafts == engine.serves[0] else running.enter_context(
                        serving(engine, drafts, blocks))
                    said = draftproof.audit_server(url, time_s=seconds, reference=plain if url != plain else None,
                                                   without=without,
                                                   save=str(kept / "-".join([engine.name, drafts, *without])) +
                                                   ".jsonl", progress=True)
                print(f"{engine.title} {engine.version}, drafts: {drafts}\n{said}\n", flush=True)
                found |= {line.question for line in said.lines if line.verdict in ("biased", "failure")}
                ended = url != plain and said.ended_at not in ("", *without)
                without = (*without, said.ended_at)
            fresh = {line for line in found if not any(line == name or line.startswith(f"{name}, ") for name in known)}
            absent = {name for name in known if not any(line == name or line.startswith(f"{name}, ") for line in found)}
            codes += [1] if fresh else [4] if said.verdict == "inconclusive" else [0]
            for words, names in (("not known before", fresh), ("not seen this time", absent)):
                if names:
                    print(f"{words}: {', '.join(sorted(names))}\n", flush=True)
    return max(codes)
