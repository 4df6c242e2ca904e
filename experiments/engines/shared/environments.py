"""Engines in environments of their own, under build/engines: nothing of them is needed by the program or by its
tests."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import tomllib

ROOT = Path(__file__).resolve().parents[3]
ADAPTERS = Path(__file__).resolve().parents[1]
CONSTRAINTS = Path(__file__).resolve().parent / "constraints.txt"
BUILD = ROOT / "build" / "engines"
#: One PyTorch serves all engines that need one: it is larger than all of them.
TORCH = ("torch==2.14.0", "triton==3.8.0", "numpy==2.4.6")


@dataclasses.dataclass(frozen=True)
class Engine:
    """engine.toml of an adapter. without_dependencies: packages of which only the wheel is wanted; packages: what the
    files that are imported need; seconds: of each component, at most, where the user says nothing; not_run: why there
    is nothing to run here; ranges: the parameters that its front end takes, as of audit_callable; serves: what its
    serve.py may draft with, none first; server: what its audits found, `with` what it was started, on which failing
    `line` (none: a line that does not fail), and the `curl` that shows it."""

    name: str
    title: str
    version: str
    uses_torch: bool = False
    without_dependencies: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    seconds: float = 90.0
    not_run: str = ""
    serves: tuple[str, ...] = ()
    server: tuple[dict[str, Any], ...] = ()
    ranges: dict[str, tuple[float, float]] = dataclasses.field(default_factory=dict)

    def known(self, drafts: str) -> set[str]:
        """Lines that are known to fail in the audit of its server."""
        return {row["line"] for row in self.server if drafts in row["with"] and row.get("line")}

    @property
    def python(self) -> Path:
        return BUILD / self.name / "bin" / "python"

    def pins(self) -> str:
        return "\n".join([*(TORCH if self.uses_torch else ()), *self.without_dependencies, *self.packages])


def engines() -> list[Engine]:
    found = []
    for path in sorted(ADAPTERS.glob("*/engine.toml")):
        fields = {key: tuple(value) if isinstance(value, list) else value
                  for key, value in tomllib.loads(path.read_text(encoding="utf-8")).items()}
        found.append(Engine(name=path.parent.name, **fields))
    return found


class InstallError(Exception):
    """What pip said, in its last lines."""


def _run(*command: str | Path) -> None:
    done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise InstallError("\n".join((done.stdout + done.stderr).strip().splitlines()[-5:]))


def _environment(folder: Path, pins: str, steps: list[tuple[str, ...]]) -> None:
    """Makes folder/ with what the steps install; a stamp says that it is whole."""
    stamp = folder / "pins"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == pins:
        return
    _run(sys.executable, "-I", "-m", "venv", "--clear", folder)
    for packages in steps:
        if packages:
            _run(folder / "bin" / "python", "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                 "--no-cache-dir", "--only-binary", ":all:", "--constraint", CONSTRAINTS, *packages)
    stamp.write_text(pins, encoding="utf-8")


def site_packages(folder: Path) -> Path:
    return folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"


def install(engine: Engine) -> None:
    """Makes sure of the environment of an engine. Raises InstallError."""
    BUILD.mkdir(parents=True, exist_ok=True)
    if engine.uses_torch:
        _environment(BUILD / "torch", "\n".join(TORCH), [TORCH])
    steps = []
    if engine.without_dependencies:
        steps.append(("--no-deps", *engine.without_dependencies))
    if engine.packages:
        steps.append(engine.packages)
    _environment(BUILD / engine.name, engine.pins(), steps)
    if engine.uses_torch:  # after the engine's own packages
        (site_packages(BUILD / engine.name) / "zz_torch.pth").write_text(f"{site_packages(BUILD / 'torch')}\n",
                                                                         encoding="utf-8")
