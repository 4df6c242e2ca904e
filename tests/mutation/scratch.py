"""A build of its own of a copy of the tree, and of single faults upon it.

A fault never touches that copy: the faulty file lies in a folder that comes first among the include paths, and only what
is made from the file is compiled again, beside the objects that stay. Faults can thus be tried at the same time.
"""

import collections
import filecmp
import json
import os
import pathlib
import re
import resource
import shlex
import shutil
import signal
import subprocess
import threading

# No floor uses one that comes after it.
ORDER = ("base", "reference", "exactness", "gpu", "engine", "sim", "studies", "cli")
STARTS_DRAFTPROOF = "run_draftproof|DRAFTPROOF_PROGRAM"


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


class Scratch:
    """folder: where faults are compiled. Without `build`, the tree is copied there and built as the launcher builds it; else
    `build` is a build of the tree itself, and neither may be edited meanwhile. `lower_floors`: a build of the same tree, from
    which the libraries of floors below those of `only` are taken."""

    def __init__(self, root, folder, jobs, only=None, build=None, lower_floors=None):
        self.root = pathlib.Path(root)
        self.folder = pathlib.Path(folder).resolve()
        self.is_copy = build is None
        self.tree = self.folder / "tree" if self.is_copy else self.root
        self.build = self.folder / "build" if self.is_copy else pathlib.Path(build).resolve()
        self.jobs = jobs
        self.only = only or []  # faults lie in these folders alone
        self.lower_floors = lower_floors and pathlib.Path(lower_floors).resolve()
        self._pulled = {}
        self._lock = threading.RLock()

    def copy_tree(self):
        """What git knows and what it does not ignore; a file that is the same keeps its time."""
        if not self.is_copy:
            return
        listed = subprocess.run(["git", "-C", self.root, "ls-files", "-z", "-co", "--exclude-standard"], check=True,
                                capture_output=True).stdout.decode().split("\0")
        wanted = {name for name in listed if name and (self.root / name).is_file()}
        for name in wanted:
            source, copy = self.root / name, self.tree / name
            if copy.is_file() and filecmp.cmp(source, copy, shallow=False):
                continue
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)
        for copy in [path for path in self.tree.rglob("*") if path.is_file()]:
            if str(copy.relative_to(self.tree)) not in wanted:
                copy.unlink()

    def make_build(self):
        if self.is_copy:
            subprocess.run(["cmake", "-S", self.tree, "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                            "-DDRAFTPROOF_CUDA=OFF", "-DDRAFTPROOF_UNITY=OFF", "-DDRAFTPROOF_ALL_TESTS=ON",
                            # Faults are compiled with -O1, too. g++ 12 has false warnings of its own where files stand alone.
                            "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG", "-DDRAFTPROOF_STRANGER=ON"], check=True,
                           stdout=subprocess.DEVNULL)
        listed = subprocess.run(["ninja", "-C", self.build, "-t", "targets", "all"], check=True, capture_output=True,
                                text=True).stdout
        self.verbs = sorted(set(re.findall(r"^(verbs/\w+):", listed, re.MULTILINE)))
        self.link_of = {target: self._link_command(target) for target in ["draftproof_tests", "libdraftproof.so", *self.verbs]}
        if self.lower_floors:
            # Objects and libraries wait for the libraries of floors that they use, and for programs; none of it makes code.
            rules = (self.build / "build.ninja").read_text()
            (self.build / "build.ninja").write_text(re.sub(r"(?m)^(build .*?) \|\| .*$", r"\1", rules))
            self.link_of = {target: [self._lower_floor(word) for word in words] for target, words in self.link_of.items()}
        # Builds only what they are linked from: the tests wait for programs that no fault concerns.
        parts = {word for words in self.link_of.values() for word in words if re.fullmatch(r"[^-/].*\.(o|a|so)", word)}
        self._read_commands()
        parts -= set(self.link_of)
        parts -= {made for made in parts if made in self.compile_of and self._is_unconcerned(self.source_of[made])}
        with open(self.folder / "build.log", "wb") as log:  # warnings of g++, and an error that ends the build
            subprocess.run(["ninja", "-C", self.build, "-j", str(self.jobs), "draftproof", *sorted(parts)], check=True,
                           stdout=log)
        if self.lower_floors:
            self._link_programs()
        self._read_build()

    def _read_commands(self):
        self.compile_of = {}  # object -> command
        self.source_of = {}  # object -> source, relative to the tree or absolute
        for entry in json.loads((self.build / "compile_commands.json").read_text()):
            command = self._quick(shlex.split(entry["command"]))
            made = command[command.index("-o") + 1]
            self.compile_of[made] = command
            self.source_of[made] = os.path.relpath(entry["file"], self.tree)
            if "/Unity/" in entry["file"]:  # such a file names its parts by their whole paths, past the faulty ones
                raise SystemExit(f"{self.build}: it compiles files together; configure it with -DDRAFTPROOF_UNITY=OFF")

    def _read_build(self):
        self.dependents = collections.defaultdict(set)  # file of the tree -> objects
        made = None
        lines = subprocess.run(["ninja", "-C", self.build, "-t", "deps"], check=True, capture_output=True,
                               text=True).stdout.splitlines()
        for line in lines:
            if line.startswith("ninja:") or not line.strip():
                continue
            if not line.startswith(" "):
                made = line.split(":")[0]
            elif made in self.compile_of:
                # Floors are seen through links of the build's tree.
                path = os.path.relpath(os.path.realpath(os.path.join(self.build, line.strip())), os.path.realpath(self.tree))
                if not path.startswith(".."):
                    self.dependents[path].add(made)

    @staticmethod
    def _quick(command):
        """Faults are compiled more often than they are run, and a faulty line may well give warnings."""
        if os.path.basename(command[0]) == "ccache":
            command = command[1:]
        quick = ["-O1" if word in ("-O2", "-O3") else word for word in command if word != "-Werror"]
        return quick + ["-w"]

    def _link_command(self, target):
        commands = subprocess.run(["ninja", "-C", self.build, "-t", "commands", "-s", target], check=True,
                                  capture_output=True, text=True).stdout
        for part in commands.split("&&"):
            words = shlex.split(part)
            if "-o" in words and any(word.endswith(".o") for word in words):
                return words
        raise RuntimeError(f"no command that links {target}")

    def tests(self):
        """Object -> source, of everything that is linked into the tests themselves."""
        objects = [word for word in self.link_of["draftproof_tests"] if word.endswith(".o")]
        # The programs with faulty kernels are not built here.
        return {made: self.source_of[made] for made in objects if self.source_of[made] != "tests/gpu/faults_test.cpp"
                and not self._is_unconcerned(self.source_of[made])}

    def _floors_below(self):
        """Floors that come before all faults, and the others."""
        first = min((ORDER.index(path.split("/")[0]) for path in self.only), default=0)
        return ORDER[:first], ORDER[first:]

    def _lower_floor(self, word):
        library = word.removeprefix(f"{self.build}/")
        is_lower = library.endswith(".a") and library.split("/")[0] in self._floors_below()[0]
        return str(self.lower_floors / library) if is_lower else word

    def _link_programs(self):
        """What tests start; without the libraries of lower floors ninja does not link it."""
        (self.build / "verbs").mkdir(exist_ok=True)
        for target in ["libdraftproof.so", *self.verbs]:
            self.link(target, {word for word in self.link_of[target] if word in self.compile_of}, {}, self.build / target)

    def _is_unconcerned(self, source):
        """Is it a test of a floor below all faults, which neither includes one above nor starts a program?"""
        below, others = self._floors_below()
        if not source.endswith("_test.cpp") or source.split("/")[1] not in below:
            return False
        text = (self.tree / source).read_text(encoding="utf-8")
        return not (re.search(STARTS_DRAFTPROOF, text) or
                    re.search(rf'#include "(?:{"|".join(others)})/', self._text_with_helpers(source)))

    def _text_with_helpers(self, source, seen=None):
        """A test's text and that of the headers of tests/ that it includes."""
        seen = seen if seen is not None else set()
        seen.add(source)
        text = (self.tree / source).read_text(encoding="utf-8")
        helpers = [helper for helper in re.findall(r'#include "(tests/[^"]+)"', text) if helper not in seen]
        return text + "".join(self._text_with_helpers(helper, seen) for helper in helpers if helper not in seen)

    def link(self, target, objects, rebuilt, out, more=()):
        """Links the target from some of its objects, with those in `rebuilt` (object -> file) in place of their twins."""
        words, own = [], []
        for word in self.link_of[target]:
            if word.endswith(".o"):
                if word in objects:
                    own.append(str(rebuilt.get(word, word)))
                if word in self.compile_of:
                    continue
            words.append(word)
        # Rebuilt library members come before their library, whose own member is then not taken.
        own += [str(file) for made, file in rebuilt.items() if made not in objects]
        at = words.index("-o")
        words[at : at + 2] = own + ["-o", str(out)]
        linker = ["-fuse-ld=mold"] if shutil.which("mold") else []
        done = subprocess.run(words + linker + list(more), cwd=self.build, capture_output=True, text=True)
        if done.returncode != 0:
            raise CompileError("link: " + (done.stderr + done.stdout)[-2000:])
        return done.stdout + done.stderr

    def pulled(self, name, target, objects):
        """Objects that a link of these objects consists of, members of libraries included; and the program."""
        with self._lock:
            if name not in self._pulled:
                out = self.folder / "baseline" / name.replace("/", "-")
                out.parent.mkdir(parents=True, exist_ok=True)
                trace = self.link(target, objects, {}, out, ["-fuse-ld=bfd", "-Wl,--trace,--trace"])
                members = {member for line in trace.splitlines() if ".a" in line
                           for member in re.findall(r"[\w.+-]+\.o\b", line)}
                libraries = [re.fullmatch(r"(?:.*/)?lib(\w+)\.(?:a|so)", word) for word in self.link_of[target]]
                # A floor's library is made of the objects of its levels: draftproof_engine_hot_alone.dir, say.
                names = "|".join(re.escape(library.group(1)) for library in libraries if library)
                inside = re.compile(f"/(?:{names})(?:_hot|_warm|_cold)?(?:_alone)?[.]dir/")
                by_name = {made for made in self.compile_of if os.path.basename(made) in members
                           and inside.search("/" + made)}
                self._pulled[name] = (by_name | set(objects), out)
            return self._pulled[name]

    def compile_faulty(self, made, file, overlay, defines=None):
        """Compiles an object with the faulty file in its place; the object's path."""
        command = list(self.compile_of[made])
        out = overlay / "objects" / made
        out.parent.mkdir(parents=True, exist_ok=True)
        command[command.index("-o") + 1] = str(out)
        if "-MF" in command:
            command[command.index("-MF") + 1] = str(out) + ".d"
        if file and self.source_of[made] == file:
            command[command.index("-c") + 1] = str(overlay / file)
        for name, value in (defines or {}).items():
            command = [f'-D{name}="{value}"' if word.startswith(f"-D{name}=") else word for word in command]
        command.insert(1, f"-I{overlay}")
        done = subprocess.run(command, cwd=self.build, capture_output=True, text=True)
        if done.returncode != 0:
            raise CompileError((done.stdout + done.stderr)[-2000:])
        return out

    def is_same_code(self, made, compiled, overlay):
        """Is an object with the fault byte by byte the object without it?"""
        sound = overlay / "sound.o"
        command = list(self.compile_of[made])
        command[command.index("-o") + 1] = str(sound)
        if "-MF" in command:
            command[command.index("-MF") + 1] = str(sound) + ".d"
        subprocess.run(command, cwd=self.build, check=True, capture_output=True)
        return filecmp.cmp(sound, compiled, shallow=False)
