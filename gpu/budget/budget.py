#!/usr/bin/env python3
"""Counts the instructions of hot loops and predicts what they take; compares with the stored table.

  budget.py --code FOLDER --compiler VERSION --stored FILE [--loops FILE] [--update]

FOLDER holds what nvdisasm -c printed: <object>.<architecture>.sass. Exit codes: 0 as stored; 1 a loop got heavier, or
the table is another; 2 something cannot be counted.
"""

import argparse
import collections
import dataclasses
import pathlib
import re
import sys

import sass

ARCHITECTURES = ("sm_90",)

# Per multiprocessor and cycle: instructions for one thread that can be issued, and that a pipe takes (CUDA programming
# guide, throughput of native arithmetic instructions; for conversions the rate of those between 32 and 64 bits).
ISSUED = 128


@dataclasses.dataclass
class Gpu:
    name: str
    architecture: str
    multiprocessors: int
    gigahertz: float  # what it keeps up under load
    bytes_per_s: float  # what copies reach, 9 tenths of what is printed on the box
    rates: dict


GPUS = [
    Gpu("H200", "sm_90", 132, 1.755, 4.3e12, {"fma": 128, "alu": 64, "conversion": 16, "fp64": 64, "memory": 32}),
]

IGNORED = """\
The model takes a loop's issue slots, the busiest pipe and the bytes that must move, each at its full rate, and the
slowest of them. It ignores latency and how many warps hide it, bank conflicts and contended atomics, instruction
fetches, warps whose threads part, the start of kernels and their last wave, how often an inner loop on a path turns
(once, here), the kernels of a call that are not listed, and instructions that count twice on some pipes (64-bit
products, wide loads).
"""


class CannotCount(Exception):
    pass


@dataclasses.dataclass
class Loop:
    name: str
    kernel: str
    is_path: bool
    needs: dict
    avoids: list
    elements: int
    tokens: int
    bytes: int


def read_loops(path):
    loops = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) != 8 or cells[2] not in ("loop", "path"):
            raise CannotCount(f"{path}, line {number}: expected name | kernel | loop or path | needs | avoids | "
                              "elements | tokens | bytes")
        name, kernel, way, needs, avoids, elements, tokens, moved = cells
        needed = {}
        for need in needs.split():
            opcode, _, count = need.partition(">=")
            needed[_opcode_pattern(opcode)] = int(count)
        rows, columns = tokens.split("*")
        loops.append(Loop(name, kernel, way == "path", needed, [_opcode_pattern(o) for o in avoids.split()],
                          int(elements), int(rows) * int(columns), int(moved)))
    return loops


def _opcode_pattern(opcode):
    """LDG.E stands for what begins with these words, LDG.E$ for itself alone."""
    return re.escape(opcode[:-1]) + "$" if opcode.endswith("$") else re.escape(opcode) + r"(\.|$)"


def read_code(folder):
    """{architecture: {symbol: text of the kernel}} of every architecture of the table"""
    code = collections.defaultdict(dict)
    for path in sorted(folder.glob("*.sass")):
        code[path.suffixes[-2][1:]].update(sass.functions(path.read_text()))
    missing = [architecture for architecture in ARCHITECTURES if architecture not in code]
    if missing:
        raise CannotCount(f"no machine code is of {', '.join(missing)}: run gpu/check_standalone.sh")
    return code


def count(loop, kernels, architecture):
    """Opcodes of one way through a loop."""
    fitting = [symbol for symbol in kernels if re.search(loop.kernel, symbol)]
    if len(fitting) != 1:
        raise CannotCount(f"{loop.name}, {architecture}: '{loop.kernel}' fits {len(fitting)} kernels; expected one")
    function = sass.Function(fitting[0], kernels[fitting[0]].splitlines())
    way = function.cheapest_path if loop.is_path else function.cheapest_loop
    opcodes = way(loop.needs, loop.avoids)
    if opcodes is None:
        raise CannotCount(f"{loop.name}, {architecture}: no way through {fitting[0]} has what gpu/budget/hot_loops.txt "
                          "says")
    return opcodes


def by_pipe(opcodes):
    pipes = dict.fromkeys(sass.PIPE_NAMES, 0)
    for opcode, number in opcodes.items():
        pipes[sass.pipe_of(opcode)] += number
    return pipes


def prediction(loop, pipes, gpu):
    """(seconds, what they go to) of the call in README's table."""
    per_s = gpu.multiprocessors * gpu.gigahertz * 1e9
    times = {"bytes": loop.tokens * loop.bytes / gpu.bytes_per_s,
             "issue": loop.tokens * sum(pipes.values()) / loop.elements / (per_s * ISSUED)}
    for pipe, rate in gpu.rates.items():
        times[pipe] = loop.tokens * pipes[pipe] / loop.elements / (per_s * rate)
    limit = max(times, key=times.get)
    return times[limit], limit


def table(loops, code, compiler):
    """The stored text, and {(loop, architecture): slots an element}."""
    lines = [f"compiler {compiler}", "",
             "Instructions for one element, by the pipe that takes them",
             f"{'':32}{'':8}{'slots':>8}" + "".join(f"{pipe:>11}" for pipe in sass.PIPE_NAMES)]
    slots = {}
    pipes_of = {}
    for loop in loops:
        for architecture in ARCHITECTURES:
            pipes = pipes_of[loop.name, architecture] = by_pipe(count(loop, code[architecture], architecture))
            slots[loop.name, architecture] = sum(pipes.values()) / loop.elements
            lines.append(f"{loop.name:32}{architecture:8}{slots[loop.name, architecture]:8.2f}"
                         + "".join(f"{number / loop.elements:11.2f}" for number in pipes.values()))
    lines += ["", "Predicted microseconds, and what they go to; behind the bar the floor: bytes that must move over "
                  "bandwidth",
              f"{'':32}" + "".join(f"{gpu.name:>26}" for gpu in GPUS)]
    for loop in loops:
        cells = ""
        for gpu in GPUS:
            seconds, limit = prediction(loop, pipes_of[loop.name, gpu.architecture], gpu)
            cells += f"{f'{seconds * 1e6:.1f} {limit} | {loop.tokens * loop.bytes / gpu.bytes_per_s * 1e6:.1f}':>26}"
        lines.append(f"{loop.name:32}{cells}")
    return "\n".join(lines) + "\n\n" + IGNORED, slots


_STORED_SLOTS = re.compile(r"^(\S.*?)\s+(sm_\d+)\s+([\d.]+)")


def heavier(stored, slots):
    """Sentences about what is heavier than in the stored text."""
    before = {}
    for line in stored.splitlines():
        found = _STORED_SLOTS.match(line)
        if found:
            before[found.group(1), found.group(2)] = float(found.group(3))
    return [f"{name}, {architecture}: {now:.2f} issue slots for an element, {before[name, architecture]:.2f} before"
            for (name, architecture), now in slots.items()
            if (name, architecture) in before and now > before[name, architecture] + 0.006]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--code", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--stored", type=pathlib.Path, required=True)
    parser.add_argument("--loops", type=pathlib.Path, default=pathlib.Path(__file__).parent / "hot_loops.txt")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    try:
        text, slots = table(read_loops(options.loops), read_code(options.code), options.compiler)
    except CannotCount as problem:
        print(f"budget: error: {problem}", file=sys.stderr)
        return 2
    print(text)
    if options.update:
        options.stored.write_text(text)
        return 0
    stored = options.stored.read_text()
    if stored == text:
        return 0
    if stored.splitlines()[0] != text.splitlines()[0]:
        print(f"budget: the stored table is of another compiler ({stored.splitlines()[0]}); nothing is compared")
        return 0
    for sentence in heavier(stored, slots):
        print(f"budget: heavier: {sentence}", file=sys.stderr)
    print(f"budget: {options.stored} says otherwise; explain the change, or mend it, and run gpu/budget.sh --update",
          file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
