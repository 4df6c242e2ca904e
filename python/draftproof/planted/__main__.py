"""python -m draftproof.planted [--profile quick] [--kind all] [--processes N] [--json] [FAULT ...]: self_test, a line
an audit. Ends with status 1 where a sound callable is accused, or a fault missed that is meant to be found."""

import argparse
import sys

from . import FAULTS, self_test


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m draftproof.planted",
                                     description=str(self_test.__doc__).splitlines()[0])
    parser.add_argument("--profile", default="quick")
    parser.add_argument("--kind", default="all", help=f"all, {', '.join(FAULTS)}")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="audits side by side")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("faults", nargs="*", metavar="FAULT")
    given = parser.parse_args()
    try:
        found = self_test(given.profile, given.kind, given.faults, given.processes,
                          None if given.json else lambda one: print(one, flush=True))
    except ValueError as error:
        print(f"draftproof: error: {error}", file=sys.stderr)
        return 2
    print(found.dumps() if given.json else found.sentence)
    return int(found.is_finding)


if __name__ == "__main__":
    sys.exit(main())
