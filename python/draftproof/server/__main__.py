"""python -m draftproof.server URL."""

import argparse
import sys

from .._core import Error
from . import audit_server
from .collect import QUESTIONS


def main(arguments: list[str] | None = None) -> int:
    """Returns 0 consistent, 1 biased or failure, 2 usage or no server, 4 inconclusive."""
    parser = argparse.ArgumentParser("python -m draftproof.server", description="Audits a running server from outside.")
    parser.add_argument("url", help="http://HOST:PORT, or a file that --save wrote")
    parser.add_argument("--model", help="the server's name of a model (default: its first)")
    parser.add_argument("--reference", metavar="URL", help="a server whose texts at temperature 0 are compared")
    parser.add_argument("--only", default=",".join(QUESTIONS), help="questions, by commas (default: %(default)s)")
    parser.add_argument("--time", type=float, default=60.0, help="seconds for requests (default: 60)")
    parser.add_argument("--tokens", type=int, default=20000, help="tokens drawn at most (default: 20000)")
    parser.add_argument("--length", type=int, default=48, help="tokens a text (default: 48)")
    parser.add_argument("--connections", type=int, default=4, help="requests at a time (default: 4)")
    parser.add_argument("--key-env", help="environment variable that holds the key")
    parser.add_argument("--save", metavar="FILE", help="keeps requests and answers, to be judged again offline")
    parser.add_argument("--json", action="store_true", help="prints the result as JSON")
    given = parser.parse_args(arguments)
    try:
        audit = audit_server(given.url, model=given.model, only=tuple(given.only.split(",")), time_s=given.time,
                             tokens=given.tokens, length=given.length, connections=given.connections,
                             key_env=given.key_env, save=given.save, reference=given.reference,
                             progress=True)
    except (Error, OSError) as wrong:
        print(f"draftproof: {wrong}", file=sys.stderr)
        return 2
    print(audit.json() if given.json else audit)
    return audit.exit_code


if __name__ == "__main__":
    sys.exit(main())
