"""The tables of planted faults, each by audits of its own.

python python/tests/fault_table.py [--write]
python python/tests/fault_table.py --planted [--processes N] [--write] [--json FILE]

Prints the table of python/README.md: each of reference_numpy.FAULTS under audit_callable, with its n. --planted: that of docs/audit.md,
what the profiles find of draftproof.planted: all by `quick`; what its sweep finds every profile finds, with the same draws; the others
by `full` too. With --write the table replaces the one that is there; --json keeps what was found. Ends with status 1 where a fault is not
found, or a sound callable accused.
"""

import argparse
import json
import sys
from pathlib import Path

import draftproof
import reference_numpy
from draftproof import planted

BEGIN, END = "| fault | case that found it | test |", "\n\n"
README = Path(__file__).parents[1] / "README.md"
AUDIT = Path(__file__).parents[2] / "docs" / "audit.md"
PLANTED = "| kind | fault | found by | case that finds it | test | suspect | rows drawn | seconds |"


def replace(path, begin, lines):
    """The table that starts with `begin` becomes these lines."""
    text = path.read_text(encoding="utf-8")
    at = text.index(begin)
    path.write_text(text[:at] + "\n".join(lines) + text[text.index(END, at):], encoding="utf-8")


def row(fault):
    """(line of the table, was it found)"""
    found = draftproof.audit_callable(reference_numpy.NumpyVerifier(fault), kind="verify", failures_max=1)
    if found.verdict != "biased":
        return f"| {fault} | | **not found** ({found.verdict}) | {found.n:,} | {found.n:,} | |", False
    failure = found.failures[0]
    case = failure.sentence.split(":")[0]
    distance = "impossible tokens" if failure.name == "support" else f"{failure.distance:.2g}"
    return f"| {fault} | {case} | `{failure.name}` | {failure.n:,} | {found.n:,} | {distance} |", True


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
    by = [*quick.profiles, *((full or quick).profiles if full is not None else ())]
    names = "all" if len(by) == 3 else ", ".join(by) or ("" if quick.fault == "sound" else "none")
    if shown.case:
        found = f"{shown.case} | `{shown.test}` | {shown.suspect}"
    else:
        found = f"{'consistent, but: ' + shown.but if shown.but else '**nothing**'} | |"
    return f"| {quick.kind} | {quick.fault} | {names} | {found} | {shown.n:,} | {shown.seconds:.1f} |"


def write_planted(given):
    found = by_profiles(given.processes)
    if given.json:
        given.json.write_text(json.dumps([[one and one.__dict__ for one in pair] for pair in found], indent=1), encoding="utf-8")
    every = planted.SelfTest("quick", [quick for quick, _ in found])
    print(every.sentence)
    if given.write:
        replace(AUDIT, PLANTED, [PLANTED, "|---|---|---|---|---|---|---|---|", *(line(*pair) for pair in found)])
    return not every.is_finding


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--planted", action="store_true")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="audits side by side, with --planted")
    parser.add_argument("--json", type=Path, metavar="FILE")
    given = parser.parse_args()
    if given.planted:
        return 0 if write_planted(given) else 1
    lines = [BEGIN + " steps of it (n) | steps of all cases | distance, estimated |", "|---|---|---|---|---|---|"]
    every = True
    for fault in reference_numpy.FAULTS:
        text, was_found = row(fault)
        print(text, flush=True)
        lines.append(text)
        every = every and was_found
    if given.write:
        replace(README, BEGIN, lines)
    return 0 if every else 1


if __name__ == "__main__":
    sys.exit(main())
