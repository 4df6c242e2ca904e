"""A release build of the tree as it is, and what is compiled and linked upon it with a fault.

What the fault is a part of is compiled again and linked before the libraries that hold its sound twins, of which the linker
then takes the first definition. So a function of another file that the compiler has copied into its callers stays sound there;
headers are compiled again in all that includes them. The shared library of the C interface stays sound.
"""

import json
import os
import pathlib
import re
import resource
import shlex
import signal
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
# No floor uses one that comes after it.
FLOORS = ("base", "reference", "exactness", "engine", "gpu", "sim", "studies", "cli")
PROGRAMS = ("audit", "engine", "exactness", "gpu", "sim", "studies")
UNDER_TEST = "DRAFTPROOF_PROGRAM_UNDER_TEST"  # environment variable: the program that tests start
# Folder of the fault -> folders of tests that concern it, too, some by starting a program that it is a part of.
CONCERNED = {
    "reference/numerics": ["reference/row_kernels", "reference/sampling", "reference/logits"],
    "reference/row_kernels": ["reference/sampling", "reference/logits"],
    "reference/random": ["reference/sampling", "reference/verify"],
    "reference/sampling": ["reference/logits"],
    "reference/logits": ["reference/sampling"],
    "reference/verify": ["exactness/proof"],
    "reference/step": ["reference/verify"],
    "engine/draft": ["reference/verify"],
    "exactness/statistics": ["exactness/audit"],
    "engine": ["engine/decode", "cli/generate", "studies/speculate"],
    "sim": ["sim/serving", "sim/predict", "cli/sim", "cli/predict", "cli/sweep", "cli/validate"],
    "studies": ["cli/experiments"],
    "cli/calibrate": ["cli/validate"],
}


class CompileError(Exception):
    pass


def run_limited(command, cwd, wall_seconds, cpu_seconds, log):
    """The exit code, or None past the limit on wall time, which ends all that the command has started."""

    def limit():
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))

    with open(log, "wb") as out:
        process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                   preexec_fn=limit)
        try:
            return process.wait(timeout=wall_seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None


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
            self.object_of.update({os.path.relpath(part, ROOT): made for part in parts})
        self.link_of = {target: self._link_command(target)
                        for target in ["draftproof_tests", *(f"verbs/{program}" for program in PROGRAMS)]}
        self.folders = sorted({str(path.parent.relative_to(ROOT / "tests")) for path in (ROOT / "tests").rglob("*_test.cpp")
                               if "tests/viz/" not in str(path)})
        models = folder / "models"  # programs look for them beside the folder that they lie in
        if not models.is_symlink():
            models.symlink_to(build.parent / "models")
        # The program that tests start is known to one of their helpers alone.
        self.runner = folder / "run_program.o"
        source = ROOT / "tests/support/run_program.cpp"
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
            elif made in self.compile_of and os.path.realpath(self.build / line.strip()) == str(ROOT / header):
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
        for concerned, more in CONCERNED.items():
            if folder == concerned or folder.startswith(concerned + "/"):
                near += more
        far = [test for test in self.folders if test.split("/")[0] in FLOORS[FLOORS.index(floor):]]
        near = [test for test in dict.fromkeys(near) if test in self.folders]
        return near, [test for test in far if test not in near]
