#!/usr/bin/env python3
"""Faults of run.py upon a release build as it is, without a build of their own: for few faults, or a machine with little time.

What the fault is a part of is compiled again and linked before the libraries that hold its sound twins, of which the linker
then takes the first definition. So a function of another file that the compiler has copied into its callers stays sound there;
headers are compiled again in all that includes them. The shared library of the C interface stays sound.
"""

import argparse
import concurrent.futures
import filecmp
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import time

import run as tool
from scratch import CompileError, ORDER, run_limited

PROGRAMS = ("engine", "exactness", "gpu", "sim", "studies")
UNDER_TEST = "DRAFTPROOF_PROGRAM_UNDER_TEST"  # environment variable: the program that tests start
# Folder of the fault -> folders of tests that start the programs that it is a part of.
COMMANDS = {"engine": ["cli/generate", "studies/speculate"], "sim": ["cli/sim", "cli/predict", "cli/sweep", "cli/validate"],
            "studies": ["cli/experiments"], "cli/calibrate": ["cli/validate"]}


class Release:
    """build: a release build of this tree that is up to date, and that nobody changes meanwhile."""

    def __init__(self, build, folder):
        self.build = build
        self.folder = folder
        self.compile_of = {}  # object -> command
        self.object_of = {}  # source, relative to the tree -> object, that of several sources where they are compiled together
        for entry in json.loads((build / "compile_commands.json").read_text()):
            words = shlex.split(entry["command"])
            made = words[words.index("-o") + 1]
            self.compile_of[made] = words
            file = entry["file"]
            parts = re.findall(r'#include "([^"]+)"', pathlib.Path(file).read_text()) if "/Unity/" in file else [file]
            self.object_of.update({os.path.relpath(part, tool.ROOT): made for part in parts})
        self.link_of = {target: self._link_command(target)
                        for target in ["draftproof_tests", *(f"verbs/{program}" for program in PROGRAMS)]}
        self.folders = sorted({str(path.parent.relative_to(tool.ROOT / "tests")) for path in (tool.ROOT / "tests").rglob("*_test.cpp")
                               if "tests/viz/" not in str(path)})
        models = folder / "models"  # programs look for them beside the folder that they lie in
        if not models.is_symlink():
            models.symlink_to(build.parent / "models")
        # The program that tests start is known to one of their helpers alone.
        self.runner = folder / "run_program.o"
        source = tool.ROOT / "tests/support/run_program.cpp"
        words = [word for word in self.compile_of[self.object_of["tests/support/run_program.cpp"]]
                 if not word.startswith("-DDRAFTPROOF_PROGRAM=")]
        self.compile([*words, f'-DDRAFTPROOF_PROGRAM=std::getenv("{UNDER_TEST}")'], source, self.runner, folder)

    def _ninja(self, *arguments):
        return subprocess.run(["ninja", "-C", self.build, "-t", *arguments], check=True, capture_output=True, text=True).stdout

    def _link_command(self, target):
        for part in self._ninja("commands", "-s", target).split("&&"):
            words = shlex.split(part)
            if "-o" in words and any(word.endswith(".o") for word in words):
                return words
        raise RuntimeError(f"no command that links {target}")

    def dependents(self, header):
        """Objects that a header is a part of."""
        found, made = set(), None
        for line in self._ninja("deps").splitlines():
            if line and not line.startswith(" "):
                made = line.split(":")[0]
            elif made in self.compile_of and os.path.realpath(self.build / line.strip()) == str(tool.ROOT / header):
                found.add(made)
        return sorted(found)

    def compile(self, words, source, out, overlay):
        command = [word for word in words if word != "-Werror"]
        command[command.index("-o") + 1] = str(out)
        command[command.index("-c") + 1] = str(source)
        if "-MF" in command:
            command[command.index("-MF") + 1] = f"{out}.d"
        done = subprocess.run([command[0], f"-I{overlay}", *command[1:], "-w"], cwd=self.build, capture_output=True, text=True)
        if done.returncode != 0:
            raise CompileError((done.stdout + done.stderr)[-2000:])

    def link(self, target, first, replaced, out):
        words = [str(replaced.get(word, word)) for word in self.link_of[target]]
        words[words.index("-o") + 1] = str(out)
        command = [words[0], *map(str, first), *words[1:], "-Wl,--allow-multiple-definition", "-w"]
        done = subprocess.run(command, cwd=self.build, capture_output=True, text=True)
        if done.returncode != 0:
            raise CompileError("link: " + (done.stdout + done.stderr)[-2000:])

    def programs_of(self, objects):
        """Programs that link a library with one of these objects; of a library, ninja knows the objects."""
        libraries = {library for made in objects for library in self._outputs(made)}
        return [program for program in PROGRAMS
                if any(word.endswith(library) for word in self.link_of[f"verbs/{program}"] for library in libraries)]

    def _outputs(self, made):
        return re.findall(r"^    (\S+\.a)$", self._ninja("query", made).split("outputs:")[1], re.MULTILINE)

    def stages(self, file):
        """Folders of tests, from near to far: the mirrored one, those above and beside it, and of floors above."""
        folder = str(pathlib.PurePath(file).parent)
        floor = folder.split("/")[0]
        near = [folder, str(pathlib.PurePath(folder).parent)]
        near += [test for test in self.folders if floor != "cli" and test.startswith(floor + "/")] or ["cli", "cli/shared"]
        for concerned, more in [*tool.CONCERNED.items(), *COMMANDS.items()]:
            if folder == concerned or folder.startswith(concerned + "/"):
                near += [test.removeprefix("tests/") for test in more]
        far = [test for test in self.folders if test.split("/")[0] in ORDER[ORDER.index(floor):]]
        near = [test for test in dict.fromkeys(near) if test in self.folders]
        return near, [test for test in far if test not in near]


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
            verdict = tool.Verdict("does not compile", str(error).strip().split("\n")[0][:200])
        shutil.rmtree(self.overlay, ignore_errors=True)
        verdict.seconds = round(time.monotonic() - begin, 1)
        return verdict

    def _verdict(self, with_far_tests):
        sound = (tool.ROOT / self.fault.file).read_text(encoding="utf-8")
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
            return tool.Verdict("same code")
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
                return tool.Verdict("killed", f"{folder}: {by}")
        return tool.Verdict("survived" if with_far_tests else "near tests pass")

    def _run(self, binary, program, arguments, log):
        command = ["env", f"{UNDER_TEST}={program}", binary, *arguments, "--abort"]
        return run_limited(command, self.release.build, tool.WALL_SECONDS, tool.CPU_SECONDS, self.overlay / log)

    def _failure(self, binary, folder):
        """Which test of the folder fails with the fault, and passes without it."""
        code = self._run(binary, self.overlay / "draftproof", ["--folder", folder], "log")
        if code == 0:
            return None
        if code is None or code == -signal.SIGXCPU:
            return "does not end"
        text = (self.overlay / "log").read_text(errors="replace")
        name = tool.failing_test(text)
        if not name:
            return f"exit code {code}"
        sound = (self.release.build / "draftproof_tests", self.release.build / "draftproof")
        if self._run(*sound, [tool.as_argument(name)], "again") != 0:
            return f"{name} (which fails without the fault, too: look at it)"
        return name


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, required=True, help="of the choice of faults, as of run.py")
    parser.add_argument("--count", type=int, default=60, help="faults that compile (default 60)")
    parser.add_argument("--jobs", type=int, default=2, help="faults at a time (default 2)")
    parser.add_argument("--only", action="append", metavar="PATH", help="only files whose path begins so; may be repeated")
    parser.add_argument("--build", default=tool.ROOT / "build" / "release", type=pathlib.Path, help="default: build/release")
    options = parser.parse_args()

    folder = tool.ROOT / "build" / "mutation" / "on_release"
    folder.mkdir(parents=True, exist_ok=True)
    release = Release(options.build.resolve(), folder)
    run = tool.Run(release, folder / f"results-{options.seed}.jsonl", options.jobs, Trial)
    files = [file for file in tool.source_files(tool.ROOT, options.only)
             if not file.endswith(".cpp") or file in release.object_of]
    faults = list(zip(range(100_000), tool.sequence_of_faults(tool.ROOT, files, options.seed)))
    run.try_all((entry for entry in faults if entry[0] not in run.results), False, lambda: run.valid() >= options.count)
    run.try_all((entry for entry in faults if run.results.get(entry[0], {}).get("verdict") == "near tests pass"), True,
                lambda: False)
    return int(tool.report(run.results, options.count))


if __name__ == "__main__":
    raise SystemExit(main())
