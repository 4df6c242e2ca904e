"""The table of planted faults in python/README.md: each of reference_numpy.FAULTS under audit_callable, with its n.

python python/tests/fault_table.py [--write]
python python/tests/fault_table.py --kind all|sample|filter|verify|constrained [--profile quick] [--processes N] [--write] [NAME ...]

Prints the table; with --write it replaces the one in python/README.md. With --kind it audits the faults of faults.py,
blind_samplers.py, blind_verifiers.py and constrained_faults.py instead, and their sound callables, and writes into docs/audit.md. Ends with status 1 where a fault is not found, or a
sound callable accused.
"""

import argparse
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import blind_samplers
import blind_verifiers
import constrained_faults
import draftproof
import faults
import reference_numpy

BEGIN, END = "| fault | case that found it | test |", "\n\n"
README = Path(__file__).parents[1] / "README.md"
AUDIT = Path(__file__).parents[2] / "docs" / "audit.md"
FAULTS = {**{kind: dict(every) for kind, every in faults.FAULTS.items()},
          "constrained": {name: fault for name, (fault, _) in constrained_faults.FAULTS.items()}}
for kind, name, fault, _ in (*blind_samplers.TABLE, *blind_verifiers.TABLE):
    assert name not in FAULTS[kind], f"two faults are called {name!r}"
    FAULTS[kind][name] = fault
SOUND = {**faults.SOUND, "constrained": constrained_faults.Constrained}
PLANTED = "| kind | fault | case that finds it | test | suspect | rows drawn | seconds |"


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


def what_is_found(kind, name, profile):
    """(was a fault found, the audit)"""
    callable_ = SOUND[kind]() if name == "sound" else FAULTS[kind][name]()
    audit = draftproof.audit_callable(callable_, kind=kind, failures_max=1, profile=profile)
    return audit.verdict in ("biased", "error") or bool(audit.but), audit


def row_of(planted):
    """planted: (kind, fault, profile). (is it as it should be, what to print, line of the table)"""
    kind, name, profile = planted
    is_found, audit = what_is_found(kind, name, profile)
    is_right = is_found == (name != "sound")
    failure = audit.failures[0] if audit.failures else None
    case = failure.sentence.split(": ")[0] if failure else audit.but and "consistent, but: " + audit.but
    suspect = failure.suspect if failure else ""
    said = (f"{'' if is_right else 'WRONG '}{kind}, {name}: {audit.n:,} rows, {audit.seconds:.1f} s: {case or audit.verdict} | "
            f"{failure.name if failure else ''} | {suspect}")
    found = f"{case} | `{failure.name}` | {suspect}" if failure else f"{case or '**nothing**'} | | "
    return is_right, said, f"| {kind} | {name} | {found} | {audit.n:,} | {audit.seconds:.1f} |"


def look_for(kinds, names, profile, processes):
    """Prints what an audit of this profile says of each fault; the lines of the table, and were all found and no sound callable
    accused?"""
    planted = []
    for kind in kinds:
        callables = [*FAULTS[kind], "sound"]
        if unknown := [name for name in names if name not in callables]:
            sys.exit(f"fault_table.py: {unknown[0]!r} is no fault of kind {kind}; expected one of {', '.join(callables)}")
        planted += [(kind, name, profile) for name in names or callables]
    lines, right = [], 0
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        for is_right, said, line in pool.map(row_of, planted):
            print(said, flush=True)
            lines.append(line)
            right += is_right
    print(f"{right} of {len(planted)} right")
    return lines, right == len(planted)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--kind", choices=["all", *sorted(FAULTS)])
    parser.add_argument("--profile", default="quick", choices=["quick", "full", "soak"])
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="audits side by side, with --kind")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    if given.kind:
        lines, every = look_for(list(FAULTS) if given.kind == "all" else [given.kind], given.names, given.profile, given.processes)
        if given.write:
            replace(AUDIT, PLANTED, [PLANTED, "|---|---|---|---|---|---|---|", *lines])
        return 0 if every else 1
    lines = [BEGIN + " steps of it (n) | steps of all cases | distance, estimated |", "|---|---|---|---|---|---|"]
    every = True
    for fault in reference_numpy.FAULTS:
        line, was_found = row(fault)
        print(line, flush=True)
        lines.append(line)
        every = every and was_found
    if given.write:
        replace(README, BEGIN, lines)
    return 0 if every else 1


if __name__ == "__main__":
    sys.exit(main())
