"""python -m draftproof.server URL."""

import argparse
import sys
from typing import NoReturn

from .._core import Error
from . import audit_server
from .adapters import PROBED
from .collect import PROFILES, QUESTIONS


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"draftproof: error: {message} (see draftproof audit http:// --help)\n")


def main(arguments: list[str] | None = None) -> int:
    """Returns 0 consistent, 1 biased or failure, 2 usage or no server, 4 inconclusive."""
    parser = _Parser("draftproof audit", description="Audits a running server from outside.")
    parser.add_argument("url", help="http://HOST:PORT, or a file that --save wrote")
    parser.add_argument("--model", help="the server's name of a model (default: its first)")
    parser.add_argument("--reference", metavar="URL", help="a server whose texts at temperature 0 are compared")
    parser.add_argument("--only", default=",".join(QUESTIONS), help="questions, by commas (default: %(default)s)")
    parser.add_argument("--profile", choices=list(PROFILES), default="quick", help="bounds (default: %(default)s)")
    for number, name, kind, words in ((0, "--time", float, "seconds for requests"),
                                      (1, "--tokens", int, "tokens drawn at most")):
        bounds = ", ".join(f"{profile}: {row[number]:.0f}" for profile, row in PROFILES.items())
        parser.add_argument(name, type=kind, help=f"{words} ({bounds})")
    parser.add_argument("--length", type=int, default=48, help="tokens a text (default: 48)")
    parser.add_argument("--connections", type=int, default=4, help="requests at a time (default: 4)")
    parser.add_argument("--key-env", help="environment variable that holds the key")
    parser.add_argument("--without", metavar="NAMES", default="",
                        help=f"parameters that are not sent: {', '.join(PROBED)}")
    parser.add_argument("--save", metavar="FILE", help="keeps requests and answers, to be judged again offline")
    parser.add_argument("--json", action="store_true", help="prints the result as JSON")
    given = parser.parse_args(arguments)
    try:
        audit = audit_server(given.url, model=given.model, only=tuple(given.only.split(",")),
                             profile=given.profile, time_s=given.time,
                             tokens=given.tokens, length=given.length, connections=given.connections,
                             key_env=given.key_env, save=given.save, reference=given.reference,
                             without=tuple(filter(None, given.without.split(","))), progress=True)
    except (Error, OSError) as wrong:
        print(f"draftproof: error: {wrong}", file=sys.stderr)
        return 2
    print(audit.json() if given.json else audit)
    return audit.exit_code


if __name__ == "__main__":
    sys.exit(main())
