"""The document of all runs here, as out/engines.json, and the page that is made from it, docs/engines.md."""

from __future__ import annotations

import json
import os
import platform
import re
from pathlib import Path
from typing import Any

from environments import TORCH, Engine

COUNTED = {"sample": "draws", "filter": "rows", "verify": "steps", "constrained": "steps"}


def document(root: Path, command: str, every: list[Engine], fresh: dict[str, list[dict[str, Any]]],
             is_part: bool = False) -> dict[str, Any]:
    """What was found now, and of the other engines what runs before left in out/engines.json; is_part: of other
    components too."""
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
        "machine": {"architecture": platform.machine(), "logical_cores": os.cpu_count(),
                    "python": platform.python_version()},
        "engines": [{"engine": e.name, "title": e.title, "version": e.version or None,
                     "torch": TORCH[0].split("==")[1] if e.uses_torch else None,
                     "triton": TORCH[1].split("==")[1] if e.uses_torch else None, "not_run": e.not_run or None,
                     "server": e.server}
                    for e in every],
        "components": components,
    }


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"


def would_find(component: dict[str, Any]) -> str:
    """From the finest case to the coarsest."""
    smallest, largest = component["would_find_smallest"], component["would_find"]
    if component["kind"] == "filter" or largest is None:
        return ""
    return number(largest) if smallest == largest else f"{number(smallest)} to {number(largest)}"


def rows_of(component: dict[str, Any]) -> list[str]:
    verdict = component["verdict"]
    distance = component["distance"] if verdict == "biased" else None
    where = f"`{component['file']}`" + (f": {component['function']}" if component["failures"] else "")
    return [component["component"], where, verdict,
            f"{component['n']} {COUNTED[component['kind']]}", number(distance), would_find(component),
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
            name, _, verdict, n, distance, _, _, seconds = rows_of(c)
            lines.append(f"  {name:32} {verdict:13} {n:>14}  {'distance ' + distance if distance else '':14} "
                         f"{seconds:>5} s")
            lines += [f"    {failure['name']}: {failure['sentence']}" for failure in c["failures"]]
    return "\n".join(lines)


#: Parts of a sentence that the page leaves to out/engines.json: levels, corrections, explanations.
LEFT_OUT = re.compile(r"biased \(\d+ tests at level [^)]*\): \w+: |refuted: | \(Holm over [^)]*\)|: "
                      r"(?:refuted|correlated) at level [\d.e-]+"
                      r"|, whatever the distribution of each| \((?:explanation|measured): .*", re.DOTALL)


def failures_of(component: dict[str, Any]) -> list[str]:
    """One line for each kind of failure: its first case, and how many others there are."""
    kinds: dict[str, list[str]] = {}
    for failure in component["failures"]:
        kinds.setdefault(failure["name"], []).append(LEFT_OUT.sub("", failure["sentence"]))
    lines = []
    for name, (first, *others) in kinds.items():
        more = f"; {len(others)} more case{'s' if len(others) > 1 else ''}" if others else ""
        lines.append(f"* `{name}`: {first}{more}.")
    return lines


HEADER = """# Engines under test

Today's engines, their own unedited code, driven by `draftproof.audit_callable` through its generic cases; no case was
written for a known fault. `./draftproof engines` writes this page;
[experiments/engines](../experiments/engines/README.md) holds the adapters and says how they run without a GPU.
Failures were shown again [without this project](../experiments/engines/remarks.md), which also says what is not
covered.

* `consistent`: every case got the draws that the distance asked for needs; no failure. `inconclusive`: no failure,
  but the time ended first.
* `biased`: a distribution, independence or a kept set is wrong. `error`: a call raises, hangs, changes its inputs or
  returns no tokens. The function stands behind the file.
* *Distance*: estimated total variation distance of the failure (filters, which are compared exactly: mass wrongly
  kept or dropped). *Would find*: the distance that a case without a failure would have shown with 99 % probability,
  finest case to coarsest; coarse where kernels are interpreted.

`out/engines.json` of a run has each case, each adapter's note, and Python
that runs the smallest failing case again. `./draftproof engines --engine NAME --component NAME` drives one component.
"""


def server_of(engine: dict[str, Any]) -> list[str]:
    """What audits of its server found, as engine.toml has it."""
    if not engine.get("server"):
        return []
    rows = [["drafts", "line", "seen", "shown by"], ["---"] * 4]
    rows += [[", ".join(row["with"]), row.get("line", ""), row["seen"], f"`{row['curl']}`" if "curl" in row else ""]
             for row in engine["server"]]
    return [f"Its server, by `./draftproof engines --servers --engine {engine['engine']}` "
            "([docs/server.md](server.md)):", "", *("| " + " | ".join(row) + " |" for row in rows), ""]


def markdown(found: dict[str, Any]) -> str:
    out = [HEADER]
    for engine in found["engines"]:
        out.append(f"## {engine['title']} {engine['version'] or ''}".rstrip() + "\n")
        if engine["not_run"]:
            out += [f"Not run: {engine['not_run']}.", "", *server_of(engine)]
            continue
        components = [c for c in found["components"] if c["engine"] == engine["engine"]]
        torch = f" with PyTorch {engine['torch']} and Triton {engine['triton']} on the CPU" if engine["torch"] else ""
        commands = " and ".join(sorted({f"`./draftproof {c['command']}`" for c in components}))
        out.append(f"{commands}{torch}:\n")
        out.append("| component | file | verdict | n | distance | would find | cases |\n|---|---|---|---|---|---|---|")
        out += ["| " + " | ".join(rows_of(c)[:-1]) + " |" for c in components]
        out.append("")
        for c in components:
            if c["failures"]:
                out += [f"### {engine['title']}, {c['component']}", "", *failures_of(c), ""]
        out += server_of(engine)
    return "\n".join(out).rstrip() + "\n"


def write(root: Path, found: dict[str, Any]) -> list[str]:
    """Writes out/engines.json, and docs/engines.md where every engine that runs has results here; else returns those
    that have none."""
    missing = [e["engine"] for e in found["engines"] if not e["not_run"]
               and all(c["engine"] != e["engine"] for c in found["components"])]
    texts = {root / "out" / "engines.json": json.dumps(found, indent=1) + "\n"}
    if not missing:
        texts[root / "docs" / "engines.md"] = markdown(found)
    for path, text in texts.items():
        path.parent.mkdir(exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    return missing
