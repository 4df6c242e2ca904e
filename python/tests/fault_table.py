"""The table of planted faults in python/README.md: each of reference_numpy.FAULTS under audit_callable, with the n that it took.

python python/tests/fault_table.py [--write]

Prints the table; with --write it replaces the one in python/README.md. Ends with status 1 where a fault is not found.
"""

import argparse
import sys
from pathlib import Path

import draftproof
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
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
