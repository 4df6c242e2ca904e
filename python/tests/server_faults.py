"""How many planted faults does a server audit find, and how many sound servers does it accuse?

python python/tests/server_faults.py [--sound 200] [--first N] [--tokens 9600] [--only NAME] [--json FILE]

Audits a fake server with each fault of fake_faults.py, then --sound sound servers: two readings of fake_faults.SOUND
at a time, each run with another model and other connections. Prints a table; ends with status 1 where fewer than 95 %
of the faults are found or a sound server is accused. Run i is the same whatever ran before it. --json appends a line a
run to FILE.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy
from fake_faults import FAULTS, SOUND
from fake_server import Fake

import draftproof
from draftproof.server.wire import Wire


def audited(how: tuple[str, ...], tokens: int, connections: int, seed: int = 11,
            **more: tuple[str, ...]) -> draftproof.ServerAudit:
    """Audits one fake server, in this process. seed: of its model and of texts without a seed."""
    server, ask = Fake(*how, seed=seed), Wire.ask
    Wire.ask = lambda wire, method, path, body=None: server.reply(path, body)
    try:
        return draftproof.audit_server(server.url, tokens=tokens, connections=connections, time_s=1800, **more)
    finally:
        Wire.ask = ask
        server.close()


def accusation(audit: draftproof.ServerAudit) -> str:
    """Returns the first failure's line, '' of a server that is not accused."""
    return next((f"{line.question}: {line.words}" for line in audit.lines if line.verdict in ("biased", "failure")), "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sound", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="number of the first sound run")
    parser.add_argument("--tokens", type=int, default=9600)
    parser.add_argument("--only", default="", help="faults whose name holds this; - for none")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    faults = [(name,) for name in FAULTS if given.only in name and given.only != "-"]
    sound = []
    for run in range(given.first, given.first + given.sound):
        rng = numpy.random.default_rng([50, run])
        sound.append((tuple(sorted({SOUND[run % len(SOUND)], str(rng.choice(SOUND))})), int(rng.integers(1, 5)),
                      int(rng.integers(1 << 30))))
    missed, accused = [], []
    for how, connections, seed in [*((how, 2, 11) for how in faults), *sound]:
        begin = time.monotonic()
        said = accusation(audited(how, given.tokens, connections, seed))
        planted = how[0] in FAULTS
        if planted and not said:
            missed.append(how[0])
        if not planted and said:
            accused.append(how)
        print(f"{'fault' if planted else 'sound'} | {' and '.join(filter(None, how)) or 'plain'} | "
              f"{said[:160] or ('MISSED' if planted else 'not accused')}", flush=True)
        if given.json:
            with given.json.open("a", encoding="utf-8") as out:
                out.write(json.dumps({"how": how, "planted": planted, "accused": said, "seed": seed,
                                      "seconds": round(time.monotonic() - begin, 1)}) + "\n")
    print(f"{len(faults) - len(missed)} of {len(faults)} faults found; "
          f"{len(accused)} of {len(sound)} sound servers accused")
    return 1 if accused or len(missed) > 0.05 * len(faults) else 0


if __name__ == "__main__":
    sys.exit(main())
