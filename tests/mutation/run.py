#!/usr/bin/env python3
"""Plants faults that a careful developer could make, one at a time, and says which of them the tests miss. README.md."""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import random
import re
import shutil
import signal
import sys
import time
import zlib

import faults
from scratch import STARTS_DRAFTPROOF, CompileError, Scratch, run_limited

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Meant to be wrong; inputs of the regression, which are tests themselves; what runs on a GPU alone.
LEFT_OUT = ("gpu/faults/", "exactness/bugs/", "gpu/regress/", "gpu/bench/", "gpu/cuda/", "gpu/standalone/")

FLOORS = ("base", "reference", "exactness", "engine", "gpu", "sim", "studies", "cli")

# Folder of the fault -> folders of tests that are tried after those of the same name. The whole suite comes last, always.
CONCERNED = {
    "reference/numerics": ["tests/reference/row_kernels", "tests/reference/sampling", "tests/reference/logits"],
    "reference/row_kernels": ["tests/reference/sampling", "tests/reference/logits"],
    "reference/random": ["tests/reference/sampling", "tests/reference/verify"],
    "reference/sampling": ["tests/reference/logits"],
    "reference/logits": ["tests/reference/sampling"],
    "reference/verify": ["tests/exactness/proof"],
    "reference/step": ["tests/reference/verify"],
    "engine/draft": ["tests/reference/verify"],
    "exactness/statistics": ["tests/exactness/audit"],
    "engine": ["tests/engine/decode"],
    "sim": ["tests/sim/serving", "tests/sim/predict"],
    "gpu": ["tests/gpu"],
}
CPU_SECONDS = 300  # that the tests of one stage may take, as long as without a fault the slowest takes a fraction of it
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
    """One fault: compiled stage by stage, and run until a test fails."""

    def __init__(self, scratch, fault, number):
        self.scratch = scratch
        self.fault = fault
        self.overlay = scratch.folder / "faults" / str(number)
        self.compiled = {}  # object -> file
        self.regressed = False
        self.tried = set()  # objects of tests that have passed

    def verdict(self, with_far_tests):
        begin = time.monotonic()
        shutil.rmtree(self.overlay, ignore_errors=True)
        faulty = self.overlay / self.fault.file
        faulty.parent.mkdir(parents=True)
        text = (self.scratch.tree / self.fault.file).read_text(encoding="utf-8")
        faulty.write_text(self.fault.planted(text), encoding="utf-8")
        verdict = self._verdict(with_far_tests)
        verdict.seconds = round(time.monotonic() - begin, 1)
        shutil.rmtree(self.overlay, ignore_errors=True)
        return verdict

    def _verdict(self, with_far_tests):
        try:
            for run in self._stages():
                by = None if with_far_tests else run()  # the near ones have passed then
                if by:
                    return Verdict("killed", by)
            if with_far_tests:
                by = self._run_everything()
                return Verdict("killed", by) if by else Verdict("survived")
        except CompileError as error:
            return Verdict("does not compile", str(error).strip().split("\n")[0][:200])
        is_same = all(self.scratch.is_same_code(made, file, self.overlay) for made, file in self.compiled.items())
        return Verdict("same code" if is_same and self.compiled else "near tests pass")

    def _stages(self):
        file = self.fault.file
        stem = pathlib.PurePath(file).stem
        folder = str(pathlib.PurePath(file).parent)
        tests = self.scratch.tests()
        cases = {made: source for made, source in tests.items() if source.endswith("_test.cpp")}

        def of(name, sources):
            chosen = {made for made, source in cases.items() if sources(source)} - self.tried
            self.tried.update(chosen)
            if chosen:
                yield lambda: self._run_tests(name, chosen)

        yield from of(f"tests of {stem}", lambda source: pathlib.PurePath(source).name == f"{stem}_test.cpp")
        if file.startswith("gpu/"):
            yield from self._regressions()
        mirrored = "tests/" + folder
        folders = [mirrored, "/".join(mirrored.split("/")[:2])]
        for concerned, more in CONCERNED.items():
            if folder == concerned or folder.startswith(concerned + "/"):
                folders += more
        for one in folders:
            yield from of(one, lambda source, one=one: source.startswith(one + "/"))

    def _compile(self, objects):
        """Compiles those of the objects that the file is a part of; whether there are any."""
        concerned = sorted(objects & self.scratch.dependents[self.fault.file])
        for made in concerned:
            if made not in self.compiled:
                self.compiled[made] = self.scratch.compile_faulty(made, self.fault.file, self.overlay)
        return bool(concerned)

    def _rebuilt(self, objects):
        return {made: file for made, file in self.compiled.items() if made in objects}

    def _run_tests(self, name, chosen):
        helpers = {made for made, source in self.scratch.tests().items() if not source.endswith("_test.cpp")}
        objects = chosen | helpers
        members, baseline = self.scratch.pulled(name, "draftproof_tests", objects)
        if not self._compile(members):
            return None
        binary = self.overlay / "tests"
        self.scratch.link("draftproof_tests", objects, self._rebuilt(members), binary)
        return self._failure([binary, "--abort"], baseline, name)

    def _regressions(self):
        """The regression of the operations that the file is a part of: first of one of them, then of all."""
        names = {pathlib.PurePath(made).name.split(".")[0] for made in self.scratch.dependents[self.fault.file]
                 if "operations/" in made or "reference_executor/" in made}
        cases = set(re.findall(r"^\w+ (\w+)/", (self.scratch.tree / "gpu/golden/digests.txt").read_text(), re.MULTILINE))
        operations = sorted(names & cases or cases)  # what belongs to no operation belongs to all
        shared = {made for made in self.scratch.compile_of if re.search(r"operations/(distribution|pipeline)\.", made)}
        if operations:
            first = random.Random(str(self.fault)).choice(operations)
            yield lambda: self._run_regression(first, shared)
        for operation in operations if len(operations) > 1 else []:
            yield lambda operation=operation: self._run_regression(operation, shared)
        self.regressed = bool(operations)

    def _run_regression(self, operation, shared):
        members, baseline = self.scratch.pulled("verbs/regress", "verbs/regress", self._own("verbs/regress"))
        # Takes this operation's kernels only: no others run.
        kernels = {made for made in members if "operations/" in made}
        wanted = members - kernels | shared & kernels | {made for made in kernels if f"operations/{operation}." in made}
        if not self._compile(wanted):
            return None
        binary = self.overlay / "program"
        self.scratch.link("verbs/regress", self._own("verbs/regress"), self._rebuilt(wanted), binary)
        arguments = ["regress", "--threads", "1", "--filter", operation + "/"]
        return self._failure([binary, *arguments], baseline, f"regress --filter {operation}/")

    def _own(self, target):
        return {word for word in self.scratch.link_of[target] if word in self.scratch.compile_of}

    def _parts(self, target):
        return self.scratch.pulled(target, target, self._own(target))[0]

    def _concerned(self):
        """Of the tests that have not run, those whose code, or the program that they run, the file is a part of."""
        dependents = self.scratch.dependents[self.fault.file]
        verbs = set().union(*(self._parts(verb) for verb in self.scratch.verbs))
        library = self._parts("libdraftproof.so")
        tests = self.scratch.tests()
        helpers = {made for made, source in tests.items() if not source.endswith("_test.cpp")}
        chosen = set()
        for made in set(tests) - helpers - self.tried:
            text = (self.scratch.tree / tests[made]).read_text(encoding="utf-8")
            runs = set()
            if re.search(STARTS_DRAFTPROOF + "|DRAFTPROOF_C_EXAMPLE", text):
                runs |= verbs
            if "DRAFTPROOF_LIBRARY" in text:
                runs |= library
            own = self.scratch.pulled(tests[made], "draftproof_tests", helpers | {made})[0]
            if (runs | own) & dependents:
                chosen.add(made)
        # The regression of these kernels has run already.
        if self.regressed:
            chosen -= {made for made in chosen if tests[made].endswith("/regress_test.cpp")}
        return helpers, chosen

    def _run_everything(self):
        helpers, chosen = self._concerned()
        objects = helpers | chosen
        name = "whole-" + str(len(chosen)) + "-" + format(zlib.crc32(" ".join(sorted(chosen)).encode()), "x")
        members, baseline = self.scratch.pulled(name, "draftproof_tests", objects)
        made = [*self.scratch.verbs, "libdraftproof.so"]
        if not chosen or not self._compile(set().union(members, *(self._parts(target) for target in made))):
            return None
        # The program starts those of its verbs beside it.
        (self.overlay / "verbs").mkdir()
        shutil.copy(self.scratch.build / "draftproof", self.overlay / "draftproof")
        for target in made:
            self.scratch.link(target, self._own(target), self._rebuilt(self._parts(target)), self.overlay / target)
        # Tests that run the program or load the library find their paths in macros.
        defines = {"DRAFTPROOF_PROGRAM": self.overlay / "draftproof", "DRAFTPROOF_LIBRARY": self.overlay / "libdraftproof.so"}
        rebuilt = self._rebuilt(members)
        for made in objects:
            text = (self.scratch.tree / self.scratch.source_of[made]).read_text(encoding="utf-8")
            if any(macro in text for macro in defines):
                rebuilt[made] = self.scratch.compile_faulty(made, None, self.overlay, defines)
        binary = self.overlay / "all_tests"
        self.scratch.link("draftproof_tests", objects, rebuilt, binary)
        return self._failure([binary, "--abort"], baseline, "all other tests that it is a part of")

    def _failure(self, command, baseline, name):
        """Which test fails with the fault, and passes without it; None where all pass."""
        log = self.overlay / "log"
        code = run_limited(command, self.scratch.build, WALL_SECONDS, CPU_SECONDS, log)
        if code == 0:
            return None
        if code is None or code == -signal.SIGXCPU:
            return f"{name}: does not end"
        text = log.read_text(errors="replace")
        if "regress" in command:  # a case that differs, or all where the program ended without naming one
            different = re.search(r"^different: ([^:\s]+)", text, re.MULTILINE)
            case = different.group(1) if different else None
            again = [baseline, *command[1:-1], case or command[-1]]
        else:
            case = failing_test(text)
            again = [baseline, as_argument(case) if case else "--abort"]
        if run_limited(again, self.scratch.build, WALL_SECONDS, WALL_SECONDS, self.overlay / "again") != 0:
            raise SystemExit(f"{name} fails without a fault: {' '.join(map(str, again))}")
        return f"{name}: {case or 'exit code ' + str(code)}"


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

    def __init__(self, scratch, path, jobs, trial=Trial):
        self.scratch = scratch
        self.trial = trial
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
                    running[pool.submit(self.trial(self.scratch, fault, number).verdict, with_far_tests)] = (number, fault)
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
    parser.add_argument("--scratch", default=ROOT / "build" / "mutation", help="folder of the copy and its build")
    parser.add_argument("--build", help="a release build of this tree to start from (default: one of a copy, in the scratch "
                        "folder); nothing may be edited before the end")
    parser.add_argument("--lower-floors", metavar="BUILD", help="a build of this tree whose libraries are taken for the floors "
                        "below those of --only, to build less; these floors must not be edited meanwhile")
    parser.add_argument("--results", help="file that results are added to, and a run that was ended goes on from "
                        "(default: results-SEED.jsonl in the scratch folder)")
    parser.add_argument("--list", action="store_true", help="print the first faults of the seed, and try none")
    options = parser.parse_args()
    if options.count < 1 or options.jobs < 1:
        parser.error("--count and --jobs are 1 or more")

    if options.list:
        chosen = sequence_of_faults(ROOT, source_files(ROOT, options.only), options.seed)
        for fault, _ in zip(chosen, range(options.count)):
            print(fault)
        return 0

    scratch = Scratch(ROOT, options.scratch, options.jobs, options.only, options.build, options.lower_floors)
    scratch.folder.mkdir(parents=True, exist_ok=True)
    path = pathlib.Path(options.results or scratch.folder / f"results-{options.seed}.jsonl")
    if not path.is_file():  # results are of the copy as it was when they began
        scratch.copy_tree()
    scratch.make_build()
    run = Run(scratch, path, options.jobs)
    compiled = [file for file in source_files(scratch.tree, options.only) if scratch.dependents[file]]

    def untried():
        for number, fault in enumerate(sequence_of_faults(scratch.tree, compiled, options.seed)):
            if number not in run.results:
                yield number, fault
            elif run.results[number]["fault"] != str(fault):
                raise SystemExit(f"{path} is of another tree or seed; take it away to begin again")

    run.try_all(untried(), False, lambda: run.valid() >= options.count)
    # Faults that no near test has caught meet all other tests.
    run.try_all(((number, fault) for number, fault in enumerate(sequence_of_faults(scratch.tree, compiled, options.seed))
                 if run.results.get(number, {}).get("verdict") == "near tests pass"), True, lambda: False)
    return int(report(run.results, options.count))


if __name__ == "__main__":
    sys.exit(main())
