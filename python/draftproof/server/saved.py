"""A run in a file: a line for the server, then one for each request with its answer."""

import json
from dataclasses import asdict
from pathlib import Path

from .._core import Error
from .adapters import Adapter
from .wire import Record

Server = tuple[str, Adapter]  # URL and adapter


def save(path: str, server: Server, other: Server | None, records: list[Record], more: dict) -> None:
    head = {"draftproof_server": server[0], "adapter": asdict(server[1]), **more}
    head |= {"reference": [other[0], asdict(other[1])]} if other else {}
    Path(path).write_text("\n".join([json.dumps(head), *(record.line() for record in records)]) + "\n")


def load(name: str) -> tuple[Server, Server | None, list[Record], dict]:
    """Returns what save wrote: server, reference, records, the head. Raises Error naming the line that cannot be
    read."""
    rows = []
    for number, line in enumerate(Path(name).read_text().splitlines(), 1):
        try:
            rows.append(json.loads(line))
        except ValueError:
            raise Error(f"{name}, line {number}: no JSON; expected a file that --save wrote") from None
    if not rows or not isinstance(rows[0], dict) or "draftproof_server" not in rows[0]:
        raise Error(f"{name}, line 1: no head; expected a file that --save wrote")
    head = rows[0]
    try:
        other = head.get("reference")
        return ((head["draftproof_server"], Adapter(**head["adapter"])),
                (other[0], Adapter(**other[1])) if other else None,
                [Record(**row) for row in rows[1:]], head)
    except (TypeError, KeyError) as wrong:
        raise Error(f"{name}: {wrong}; expected a file that --save wrote") from None
