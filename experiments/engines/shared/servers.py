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
START_S = 120.0


@contextlib.contextmanager
def serving(engine: environments.Engine, drafts: str) -> Iterator[str]:
    """Runs serve.py of an engine and yields its URL."""
    log = environments.BUILD / f"{engine.name}-serve-{drafts}.log"
    with log.open("w", encoding="utf-8") as errors:
        server = subprocess.Popen([engine.python, environments.ADAPTERS / engine.name / "serve.py", MODEL, drafts],
                                  stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, text=True)
        assert server.stdout is not None
        late = threading.Timer(START_S, server.kill)
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


def audit(engine: environments.Engine, seconds: float) -> int:
    """Prints the audits of an engine's servers, and keeps them in out/servers. Returns the worst exit code."""
    sys.path.insert(0, os.environ["DRAFTPROOF_MODULE"])
    import draftproof

    if not MODEL.is_file():
        raise environments.InstallError("its server needs the model; run ./draftproof fetch smollm2")
    kept = environments.ROOT / "out" / "servers"
    kept.mkdir(parents=True, exist_ok=True)
    codes = []
    with serving(engine, engine.serves[0]) as plain:
        for drafts in engine.serves:
            with serving(engine, drafts) if drafts != engine.serves[0] else contextlib.nullcontext(plain) as url:
                found = draftproof.audit_server(url, time_s=seconds, reference=plain if url != plain else None,
                                                save=str(kept / f"{engine.name}-{drafts}.jsonl"), progress=True)
            print(f"drafts: {drafts}\n{found}\n", flush=True)
            codes.append(found.exit_code)
    return max(codes)
