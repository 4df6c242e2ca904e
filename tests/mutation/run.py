#!/usr/bin/env python3
"""Plants faults that a careful developer could make, one at a time, and says which of them the tests miss. README.md."""

import argparse
import concurrent.futures
import dataclasses
import filecmp
import json
import os
import pathlib
import random
import re
import shutil
import signal
import sys
import time

import faults
from release import FLOORS, PROGRAMS, ROOT, UNDER_TEST, CompileError, Release, run_limited

# Meant to be wrong; inputs of the regression, which are tests themselves; what runs on a GPU alone.
LEFT_OUT = ("gpu/faults/", "exactness/bugs/", "gpu/regress/", "gpu/bench/", "gpu/cuda/", "gpu/standalone/")
CPU_SECONDS = 300  # that the tests of one folder may take, as long as without a fault the slowest takes a fraction of it
WALL_SECONDS = 1800  # of what waits for ever


@dataclasses.dataclass
class Verdict:
    kind: str  # killed, survived, same code, does not compile; near tests pass: the others have not run yet
    by: str = ""
    seconds: float = 0.0


def source_files(tree, only):
    files = [str(path.relative_to(tree)) for part in FLOORS for path in sorted((tree / part).rglob("*"))
             if path.suffix in (".cpp", ".hpp", ".cuh", ".h")]
    return [file for file in files if not file.startswith(LEFT_OUT) and file.startswith(tuple(only or [""]))]


def sequence_of_faults(tree, files, seed):
    """All faults of the files, in the order of the seed: the kind is drawn first, so that rare ones come up too."""
    by_kind = {}
    for file in files:
        for fault in faults.faults_of(file, (tree / file).read_text(encoding="utf-8")):
            by_kind.setdefault(fault.kind, []).append(fault)
    chance = random.Random(seed)
    for kind in faults.KINDS:
        chance.shuffle(by_kind.get(kind, []))
    while any(by_kind.values()):
        kind = chance.choice([kind for kind in faults.KINDS if by_kind.get(kind)])
        yield by_kind[kind].pop()


def failing_test(text):
    """The name of the test that Catch2 reports as failed first, which may be wrapped; None where it reports none."""
    names = re.findall(r"^-{70,}\n((?:.+\n)+?)-{70,}\n", text.split(": FAILED:")[0], re.MULTILINE)  # warnings have names, too
    return " ".join(names[-1].split()) if names else None


def as_argument(name):
    return re.sub(r'([,\["])', r"\\\1", name)


class Trial:
    def __init__(self, release, fault, number):
        self.release = release
        self.fault = fault
        self.overlay = release.folder / str(number)

    def verdict(self, with_far_tests):
        begin = time.monotonic()
        shutil.rmtree(self.overlay, ignore_errors=True)
        try:
            verdict = self._verdict(with_far_tests)
        except CompileError as error:
            verdict = Verdict("does not compile", str(error).strip().split("\n")[0][:200])
        shutil.rmtree(self.overlay, ignore_errors=True)
        verdict.seconds = round(time.monotonic() - begin, 1)
        return verdict

    def _verdict(self, with_far_tests):
        sound = (ROOT / self.fault.file).read_text(encoding="utf-8")
        faulty = self.overlay / self.fault.file
        faulty.parent.mkdir(parents=True)
        is_header = not self.fault.file.endswith(".cpp")
        made_of = self.release.dependents(self.fault.file) if is_header else [self.release.object_of[self.fault.file]]
        compiled, is_same = {}, True
        for number, made in enumerate(made_of):
            words = self.release.compile_of[made]
            source = words[words.index("-c") + 1] if is_header else faulty
            pair = []
            for name, text in (("faulty", self.fault.planted(sound)), ("sound", sound)):
                faulty.write_text(text, encoding="utf-8")
                pair.append(self.overlay / f"{name}-{number}.o")
                if name == "faulty" or is_same:  # one that differs is enough
                    self.release.compile(words, source, pair[-1], self.overlay)
            is_same = is_same and filecmp.cmp(*pair, shallow=False)
            compiled[made] = pair[0]
        if is_same:
            return Verdict("same code")
        in_tests = {made: file for made, file in compiled.items() if made in self.release.link_of["draftproof_tests"]}
        in_libraries = [made for made in compiled if made not in in_tests]
        first = [compiled[made] for made in in_libraries]
        programs = self.release.programs_of(in_libraries)
        linked = self.release.link_of["draftproof_tests"]
        known = any(word.endswith(library) for made in in_libraries for library in self.release._outputs(made) for word in linked)
        binary = self.overlay / "tests"
        self.release.link("draftproof_tests", [*(first if known else []), self.release.runner], in_tests, binary)
        (self.overlay / "verbs").mkdir()
        shutil.copy(self.release.build / "draftproof", self.overlay / "draftproof")
        for program in PROGRAMS:
            at = self.overlay / "verbs" / program
            if program in programs:
                self.release.link(f"verbs/{program}", first, {}, at)
            else:
                at.symlink_to(self.release.build / "verbs" / program)
        near, far = self.release.stages(self.fault.file)
        for folder in far if with_far_tests else near:
            by = self._failure(binary, folder)
            if by:
                return Verdict("killed", f"{folder}: {by}")
        return Verdict("survived" if with_far_tests else "near tests pass")

    def _run(self, binary, program, arguments, log):
        command = ["env", f"{UNDER_TEST}={program}", binary, *arguments, "--abort"]
        return run_limited(command, self.release.build, WALL_SECONDS, CPU_SECONDS, self.overlay / log)

    def _failure(self, binary, folder):
        """Which test of the folder fails with the fault, and passes without it."""
        code = self._run(binary, self.overlay / "draftproof", ["--folder", folder], "log")
        if code == 0:
            return None
        if code is None or code == -signal.SIGXCPU:
            return "does not end"
        text = (self.overlay / "log").read_text(errors="replace")
        name = failing_test(text)
        if not name:
            return f"exit code {code}"
        sound = (self.release.build / "draftproof_tests", self.release.build / "draftproof")
        if self._run(*sound, [as_argument(name)], "again") != 0:
            return f"{name} (which fails without the fault, too: look at it)"
        return name


VALID = ("killed", "survived", "near tests pass")


def report(results, count):
    tried = sorted(results.values(), key=lambda result: result["number"])
    valid = [result for result in tried if result["verdict"] in VALID][:count]
    redrawn = {kind: sum(result["verdict"] == kind for result in tried) for kind in ("does not compile", "same code")}
    killed = sum(result["verdict"] == "killed" for result in valid)
    print(f"{killed} of {len(valid)} killed ({killed / max(1, len(valid)):.1%}); redrawn: {redrawn['does not compile']} that "
          f"do not compile, {redrawn['same code']} that compile to the same code")
    for result in valid:
        if result["verdict"] != "killed":
            print(result["verdict"] + ":", result["fault"])
    return killed < len(valid)


class Run:
    """Tries faults at the same time, and keeps what came of them."""

    def __init__(self, release, path, jobs):
        self.release = release
        self.path = path
        self.jobs = jobs
        self.results = {}  # number -> the latest result
        if path.is_file():
            for line in path.read_text().splitlines():
                result = json.loads(line)
                self.results[result["number"]] = result

    def valid(self):
        return sum(result["verdict"] in VALID for result in self.results.values())

    def try_all(self, faults_in_order, with_far_tests, is_enough):
        with open(self.path, "a", encoding="utf-8") as out, concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            running = {}
            while True:
                while len(running) < self.jobs and not is_enough():
                    number, fault = next(faults_in_order, (None, None))
                    if fault is None:
                        break
                    running[pool.submit(Trial(self.release, fault, number).verdict, with_far_tests)] = (number, fault)
                if not running:
                    return
                done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
                for future in done:
                    number, fault = running.pop(future)
                    verdict = future.result()
                    self.results[number] = {"number": number, "fault": str(fault), "verdict": verdict.kind,
                                            "by": verdict.by, "seconds": verdict.seconds}
                    out.write(json.dumps(self.results[number]) + "\n")
                    out.flush()
                    print(f"{self.valid():3} {verdict.kind:16} {fault}  {verdict.by} ({verdict.seconds} s)", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True, help="of the choice of faults")
    parser.add_argument("--count", type=int, default=60, help="faults that compile (default 60)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="faults at a time (default: all cores)")
    parser.add_argument("--only", action="append", metavar="PATH", help="only files whose path begins so; may be repeated")
    parser.add_argument("--build", default=ROOT / "build" / "release", type=pathlib.Path,
                        help="a release build of this tree that is up to date (default: build/release); nothing may be edited "
                        "before the end")
    parser.add_argument("--results", type=pathlib.Path, help="file that results are added to, and a run that was ended goes on "
                        "from (default: build/mutation/results-SEED.jsonl)")
    parser.add_argument("--list", action="store_true", help="print the first faults of the seed, and try none")
    options = parser.parse_args()
    if options.count < 1 or options.jobs < 1:
        parser.error("--count and --jobs are 1 or more")

    files = source_files(ROOT, options.only)
    if options.list:
        for fault, _ in zip(sequence_of_faults(ROOT, files, options.seed), range(options.count)):
            print(fault)
        return 0

    folder = ROOT / "build" / "mutation"
    folder.mkdir(parents=True, exist_ok=True)
    release = Release(options.build.resolve(), folder)
    path = options.results or folder / f"results-{options.seed}.jsonl"
    run = Run(release, path, options.jobs)
    compiled = [file for file in files if not file.endswith(".cpp") or file in release.object_of]

    def untried():
        for number, fault in enumerate(sequence_of_faults(ROOT, compiled, options.seed)):
            if number not in run.results:
                yield number, fault
            elif run.results[number]["fault"] != str(fault):
                raise SystemExit(f"{path} is of another tree or seed; take it away to begin again")

    run.try_all(untried(), False, lambda: run.valid() >= options.count)
    # Faults that no near test has caught meet all other tests.
    run.try_all(((number, fault) for number, fault in enumerate(sequence_of_faults(ROOT, compiled, options.seed))
                 if run.results.get(number, {}).get("verdict") == "near tests pass"), True, lambda: False)
    return int(report(run.results, options.count))


if __name__ == "__main__":
    sys.exit(main())
