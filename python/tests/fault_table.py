"""The table of planted faults in docs/audit.md: what the profiles find of draftproof.planted, each by an audit of its own.

python python/tests/fault_table.py [--processes N] [--write] [--json FILE]

All by `quick`; what its sweep finds every profile finds, with the same draws; the others by `full` too. With --write the table replaces the
one that is there; --json keeps what was found. Ends with status 1 where a fault that is meant to be found is not, or a sound callable
accused.
"""

import argparse
import json
import sys
from pathlib import Path

from draftproof import planted

AUDIT = Path(__file__).parents[2] / "docs" / "audit.md"
PLANTED = "| kind | fault | found by | case that finds it | test | suspect | rows drawn | seconds |"


def replace(lines):
    """The table of docs/audit.md has these lines."""
    text = AUDIT.read_text(encoding="utf-8")
    at = text.index(PLANTED)
    AUDIT.write_text(text[:at] + "\n".join([PLANTED, "|---|---|---|---|---|---|---|---|", *lines]) + text[text.index("\n\n", at):], encoding="utf-8")


def by_profiles(processes):
    """[(what `quick` says, what `full` does of those that not every profile finds with the same draws, else None)]"""
    def show(one):
        print(one, flush=True)

    by_quick = planted.self_test("quick", processes=processes, each=show).faults
    return [(one, None if len(one.profiles) != 1 and one.is_right else
             planted.self_test("full", one.kind, [one.fault], each=show).faults[0]) for one in by_quick]


def line(quick, full):
    """Of docs/audit.md: which profiles find it, and what the shortest of them says."""
    shown = quick if quick.found or full is None else full
    by = [profile for profile, one in (("quick", quick), ("full", full)) if one is not None and one.found]
    names = "all" if len(quick.profiles) == 3 else ", ".join(by) or ("" if quick.fault == "sound" else "none")
    if shown.case:
        found = f"{shown.case} | `{shown.test}` | {shown.suspect}"
    else:
        found = f"{'consistent, but: ' + shown.but if shown.but else '**nothing**'} | |"
    return f"| {quick.kind} | {quick.fault} | {names} | {found} | {shown.n:,} | {shown.seconds:.1f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="audits side by side")
    parser.add_argument("--json", type=Path, metavar="FILE")
    given = parser.parse_args()
    found = by_profiles(given.processes)
    if given.json:
        given.json.write_text(json.dumps([[one and one.__dict__ for one in pair] for pair in found], indent=1), encoding="utf-8")
    every = planted.SelfTest("quick", [quick for quick, _ in found])
    print(every.sentence)
    if given.write:
        replace([line(*pair) for pair in found])
    return int(every.is_finding)


if __name__ == "__main__":
    sys.exit(main())
