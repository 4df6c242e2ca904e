"""The document of all runs here, as out/engines.json, and the page that is made from it, docs/engines.md."""

from __future__ import annotations

import json
import os
import platform
import re
from pathlib import Path
from typing import Any

from environments import TORCH, Engine

#: Cases of an inconclusive component that are named.
NAMED = 4
COUNTED = {"sample": "draws", "filter": "rows", "verify": "steps", "constrained": "steps"}


def document(root: Path, command: str, every: list[Engine], fresh: dict[str, list[dict[str, Any]]],
             is_part: bool = False) -> dict[str, Any]:
    """What was found now, and of the other engines what runs before left in out/engines.json; is_part: of other components too."""
    try:
        before = json.loads((root / "out" / "engines.json").read_text(encoding="utf-8"))["components"]
    except (OSError, ValueError, KeyError):
        before = []
    components: list[dict[str, Any]] = []
    for found in fresh.values():
        for component in found:
            component["command"] = command.strip()
    for engine in every:
        had, now = [c for c in before if c["engine"] == engine.name], fresh.get(engine.name, [])
        if engine.name in fresh and not is_part:
            had = []
        by_name = {c["component"]: c for c in (*had, *now)}
        components += by_name.values()
    version = re.search(r"project\(draftproof VERSION ([0-9.]+)", (root / "CMakeLists.txt").read_text(encoding="utf-8"))
    assert version is not None
    return {
        "version": version.group(1), "command": command.strip(),
        "machine": {"architecture": platform.machine(), "logical_cores": os.cpu_count(), "python": platform.python_version()},
        "engines": [{"engine": e.name, "title": e.title, "version": e.version or None,
                     "torch": TORCH[0].split("==")[1] if e.uses_torch else None,
                     "triton": TORCH[1].split("==")[1] if e.uses_torch else None, "not_run": e.not_run or None}
                    for e in every],
        "components": components,
    }


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"


def would_find(component: dict[str, Any]) -> str:
    """From the finest case to the coarsest, and which that is."""
    smallest, largest = component["would_find_smallest"], component["would_find"]
    if component["kind"] == "filter" or largest is None:
        return ""
    span = number(largest) if smallest == largest else f"{number(smallest)} to {number(largest)}"
    return f"{span} ({component['would_find_case']})"


def asked(component: dict[str, Any]) -> str:
    return "exact" if component["kind"] == "filter" else number(component["tv"])


def why_inconclusive(component: dict[str, Any]) -> str:
    """What one row cost, and which cases did not get those that they ask for."""
    unit = COUNTED[component["kind"]][:-1]
    cut = [case["case"] for case in component["each_case"] if case["verdict"] == "inconclusive"]
    each = 1000.0 * component["processes"] * component["seconds"] / max(1, component["n"])
    named = ", ".join(cut[:NAMED]) + (f" and {len(cut) - NAMED} more" if len(cut) > NAMED else "")
    return (f"{component['component']}: a {unit} took {each:.2g} ms on the average, and {component['seconds_at_most']:.0f} seconds "
            f"were over before {len(cut)} of {len(component['each_case'])} cases had theirs: {named}")


def rows_of(component: dict[str, Any]) -> list[str]:
    verdict = component["verdict"]
    distance = component["distance"] if verdict == "biased" else None
    return [component["component"], f"`{component['file']}`: {component['function']}", verdict,
            f"{component['n']} {COUNTED[component['kind']]}", number(distance), asked(component),
            would_find(component),
            f"{component['cases']}" + (f" of {component['cases'] + component['cases_not_run']}"
                                       if component["cases_not_run"] else ""), f"{component['seconds']:.0f}"]


def table(found: dict[str, Any], names: list[str]) -> str:
    """For a terminal."""
    lines = []
    for engine in found["engines"]:
        if engine["engine"] not in names:
            continue
        lines.append(f"{engine['title']} {engine['version'] or ''}".strip())
        if engine["not_run"]:
            lines.append(f"  not run: {engine['not_run']}")
        for c in found["components"]:
            if c["engine"] != engine["engine"]:
                continue
            name, _, verdict, n, distance, _, _, _, seconds = rows_of(c)
            lines.append(f"  {name:32} {verdict:13} {n:>14}  {'distance ' + distance if distance else '':14} {seconds:>5} s")
            lines += [f"    {failure['name']}: {failure['sentence']}" for failure in c["failures"]]
    return "\n".join(lines)


HEADER = """# Engines under test

Made by `./draftproof engines`. Today's engines, their own unedited code, driven by `draftproof.audit_callable` through its
[generic cases](../python/README.md): nothing here was written to find a known fault. The adapters are
[experiments/engines](../experiments/engines/README.md), which says how they run without a GPU.

| verdict | meaning |
|---|---|
| consistent | every case got the draws that finding the distance asked for takes, and nothing was found |
| inconclusive | nothing was found in the cases and counts below, but the time was over before all of them |
| biased | a distribution, independence or a kept set is wrong: each failure is below, with its smallest case |
| error | a call raises, hangs, changes its inputs or gives something else than tokens |

*Distance*: total variation distance of the failure, estimated (of a filter: the mass of tokens wrongly kept or dropped). *Asked*: the
distance that is looked for, coarse where kernels are interpreted; cases with large vocabularies look for coarser ones. *Would find*: the
distance that a case without a finding would have shown with 99 % probability at its last look, in the finest case to the coarsest, which is
named; out/engines.json of a run has it of every case. *Cases*: those that were reached.
"""


def markdown(found: dict[str, Any], remarks: str) -> str:
    out = [HEADER]
    for engine in found["engines"]:
        torch = f", PyTorch {engine['torch']}, Triton {engine['triton']} on the CPU" if engine["torch"] else ""
        out.append(f"## {engine['title']} {engine['version'] or ''}".rstrip() + "\n")
        if engine["not_run"]:
            out.append(f"Not run: {engine['not_run']}.\n")
            continue
        components = [c for c in found["components"] if c["engine"] == engine["engine"]]
        commands = " and ".join(sorted({f"`./draftproof {c['command']}`" for c in components}))
        out.append(f"Version {engine['version']}{torch}. Made by {commands}.\n")
        out.append("| component | file and function | verdict | n | distance | asked | would find | cases | seconds |\n"
                   "|---|---|---|---|---|---|---|---|---|")
        out += ["| " + " | ".join(rows_of(c)) + " |" for c in components]
        out.append("")
        notes = [f"* {c['component']}: {c['note']}." for c in components if c["note"]]
        if notes:
            out += ["Around the engine's functions:", "", *notes, ""]
        cut = [f"* {why_inconclusive(c)}." for c in components if c["verdict"] == "inconclusive"]
        if cut:
            out += ["Why inconclusive:", "", *cut, ""]
        for c in components:
            for failure in c["failures"]:
                out += [f"### {engine['title']}, {c['component']}: {failure['name']}", "", failure["sentence"] + ".", "",
                        "```python", failure["snippet"].rstrip(), "```", ""]
    return "\n".join(out).rstrip() + "\n" + remarks


def write(root: Path, found: dict[str, Any]) -> list[str]:
    """Writes out/engines.json, and docs/engines.md where every engine that runs has results here; else returns those that have none."""
    missing = [e["engine"] for e in found["engines"] if not e["not_run"] and all(c["engine"] != e["engine"] for c in found["components"])]
    remarks_file = root / "experiments" / "engines" / "remarks.md"
    remarks = "\n" + remarks_file.read_text(encoding="utf-8") if remarks_file.is_file() else ""
    texts = {root / "out" / "engines.json": json.dumps(found, indent=1) + "\n"}
    if not missing:
        texts[root / "docs" / "engines.md"] = markdown(found, remarks)
    for path, text in texts.items():
        path.parent.mkdir(exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    return missing
