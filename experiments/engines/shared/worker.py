"""Runs in the environment of one engine: drives its components and prints one JSON object a line.

Usage: worker.py ENGINE MODULE SECONDS [COMPONENT...]; MODULE is the folder with the module draftproof.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import environments

HERE = Path(__file__).resolve().parent
#: That share the cases of a component.
PROCESSES = min(4, os.cpu_count() or 1)


def load_adapter(engine: str) -> Any:
    """By its path: the folder has the name of the engine's own package."""
    name = f"{engine}_adapter"
    sys.path.append(str(HERE.parent / engine))  # for the files beside it
    spec = importlib.util.spec_from_file_location(name, HERE.parent / engine / "adapter.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def runnable(snippet: str, engine: str, component: str) -> str:
    """The snippet of a failure, with the callable of the adapter."""
    lines = [line for line in snippet.splitlines() if "sampler:" not in line and "as sampler" not in line]
    at = next(i for i, line in enumerate(lines) if not line)
    more = ", distribution=component.options['distribution']" if "distribution=" in snippet else ""
    lines[at:at] = ["import worker", f"component = worker.component_of({engine!r}, {component!r})",
                    "sampler = component.call"]
    return "\n".join(lines).replace(", distribution=distribution", more) + "\n"


def component_of(engine: str, name: str) -> Any:
    return next(component for component in load_adapter(engine).components() if component.name == name)


def main() -> None:
    engine, module_folder, seconds, wanted = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4:]
    results = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what engines print to standard output goes to standard error
    sys.path.append(module_folder)  # after the engine's own packages
    import draftproof

    ranges = next((each.ranges for each in environments.engines() if each.name == engine), {})
    for component in load_adapter(engine).components():
        if wanted and component.name not in wanted:
            continue
        print(f"{engine}: {component.name}", file=sys.stderr, flush=True)
        begin = time.monotonic()
        audit = draftproof.audit_callable(component.call, kind=component.kind, tv=component.tv, time_budget=seconds,
                                          time_limit=max(seconds, 300.0), processes=PROCESSES,
                                          **{"ranges": ranges, **component.options})
        reached = [case for case in audit.cases if case.n > 0]
        found = [failure.distance for failure in audit.failures if failure.distance is not None]
        smallest, largest = audit.would_find or (None, None)
        results.write(json.dumps({
            "engine": engine, "component": component.name, "file": component.file, "function": component.function,
            "kind": component.kind, "tv": component.tv, "processes": PROCESSES, "verdict": audit.verdict, "n": audit.n,
            "distance": max(found) if found else None,
            "would_find_smallest": smallest and smallest.detectable_tv, "would_find": largest and largest.detectable_tv,
            "would_find_case": largest and largest.case, "cases": len(reached),
            "cases_not_run": len(audit.cases) - len(reached), "seconds": time.monotonic() - begin,
            "sentence": audit.sentence, "note": component.note,
            "each_case": [{"case": c.case, "verdict": c.verdict, "n": c.n, "would_find": c.detectable_tv}
                          for c in audit.cases],
            "failures": [{"name": f.name, "case": f.case.name, "sentence": f.explained, "n": f.n,
                          "distance": f.distance,
                          "snippet": runnable(f.snippet, engine, component.name)} for f in audit.failures]}) + "\n")
        results.flush()


if __name__ == "__main__":
    main()
