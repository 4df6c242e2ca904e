"""The table of planted faults in python/README.md: each of reference_numpy.FAULTS under audit_callable, with its n.

python python/tests/fault_table.py [--write]
python python/tests/fault_table.py --kind sample|filter|verify [--seconds 60] [NAME ...]

Prints the table; with --write it replaces the one in python/README.md. With --kind it audits the faults of faults.py
instead, and its sound callable first, each for so many seconds. Ends with status 1 where a fault is not found, or a sound
callable accused.
"""

import argparse
import sys
from pathlib import Path

import draftproof
import faults
import reference_numpy

BEGIN, END = "| fault | case that found it | test |", "\n\n"
README = Path(__file__).parents[1] / "README.md"


def row(fault):
    """(line of the table, was it found)"""
    found = draftproof.audit_callable(reference_numpy.NumpyVerifier(fault), kind="verify", failures_max=1)
    if found.verdict != "biased":
        return f"| {fault} | | **not found** ({found.verdict}) | {found.n:,} | {found.n:,} | |", False
    failure = found.failures[0]
    case = failure.sentence.split(":")[0]
    distance = "impossible tokens" if failure.name == "support" else f"{failure.distance:.2g}"
    return f"| {fault} | {case} | `{failure.name}` | {failure.n:,} | {found.n:,} | {distance} |", True


def look_for(kind, names, seconds):
    """Prints what an audit of so many seconds says of each fault; were all found, and the sound callable not accused?"""
    callables = {"sound": faults.SOUND[kind], **faults.FAULTS[kind]}
    unknown = [name for name in names if name not in callables]
    if unknown:
        sys.exit(f"fault_table.py: {unknown[0]!r} is no fault of kind {kind}; expected one of {', '.join(callables)}")
    right, chosen = 0, names or list(callables)
    for name in chosen:
        audit = draftproof.audit_callable(callables[name](), kind=kind, failures_max=1, time_budget=seconds)
        is_right = (audit.verdict in ("biased", "error")) == (name != "sound")
        right += is_right
        case = audit.failures[0].sentence if audit.failures else audit.verdict
        print(f"{'' if is_right else 'WRONG '}{name}: {audit.n:,} draws, {audit.seconds:.0f} s: {case}", flush=True)
    print(f"{right} of {len(chosen)} right")
    return right == len(chosen)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--kind", choices=sorted(faults.FAULTS))
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    if given.kind:
        return 0 if look_for(given.kind, given.names, given.seconds) else 1
    lines = [BEGIN + " steps of it (n) | steps of all cases | distance, estimated |", "|---|---|---|---|---|---|"]
    every = True
    for fault in reference_numpy.FAULTS:
        line, was_found = row(fault)
        print(line, flush=True)
        lines.append(line)
        every = every and was_found
    if given.write:
        text = README.read_text(encoding="utf-8")
        begin = text.index(BEGIN)
        README.write_text(text[:begin] + "\n".join(lines) + text[text.index(END, begin):], encoding="utf-8")
    return 0 if every else 1


if __name__ == "__main__":
    sys.exit(main())
