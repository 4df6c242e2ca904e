"""What an adapter lists: the functions of an engine that are driven, each as a callable of draftproof.audit_callable."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable


@dataclasses.dataclass(frozen=True)
class Component:
    """name: what the function is for; file: where it is in the engine's package; function: its name there; kind, call:
    as of audit_callable; tv: the total variation distance that is looked for; options: more arguments of it; note: what
    the adapter does around the function, or what a stub replaced."""

    name: str
    file: str
    function: str
    kind: str
    call: Callable[..., Any]
    tv: float = 0.05
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    note: str = ""


def mixed(seed: int) -> int:
    """32 bits of all 64: PyTorch's CPU generator and llama.cpp take no more, and their callers see to the rest."""
    return ((int(seed) ^ (int(seed) >> 31)) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF) >> 32
