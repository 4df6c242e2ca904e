"""Audit of a running server from outside: does it draw from the distribution that its own logprobs state?"""

import sys
from pathlib import Path
from typing import Any

from .._core import Error
from .adapters import PROBED, sniff
from .collect import PROFILES, QUESTIONS, Collector
from .draws import audit_logprobs
from .saved import load
from .saved import save as keep
from .verdicts import Judge, Line, ServerAudit
from .wire import Wire

__all__ = ["Line", "ServerAudit", "audit_logprobs", "audit_server"]


def audit_server(url: str, *, model: str | None = None, only: tuple[str, ...] = QUESTIONS, profile: str = "quick",
                 time_s: float | None = None, tokens: int | None = None, length: int = 48, connections: int = 4,
                 key_env: str | None = None,
                 save: str | None = None, reference: str | None = None, without: tuple[str, ...] = (),
                 progress: bool = False) -> ServerAudit:
    """Audits a server of language models, or a file that `save` wrote.

    url: http://HOST:PORT, or the path of a saved run. only: questions of QUESTIONS. profile: of PROFILES, for
    time_s: seconds for requests, and tokens: tokens drawn at most, where they are not given. length: tokens a text.
    key_env: environment variable of the key, never saved.
    reference: URL of a server whose texts at temperature 0 are compared. without: parameters of PROBED that are not
    sent. Raises Error if the server is not reached or serves no language model.
    """
    if "://" not in url and Path(url).is_file():
        (origin, adapter), other, records, head = load(url)
        kept = {*only, "probe", *(("reference",) if "greedy" in only else ()),
                *(("draws", "scores") if "speculation" in only else ()),
                *(("unexpected",) if {"draws", "speculation"} & {*only} else ())}
        return Judge(origin, adapter, [record for record in records if record.question in kept], other,
                     tuple(head.get("without", ())), head.get("lost", ""),
                     tuple({*head.get("only", ())} & {*only})).run()
    unknown = sorted(set(only) - set(QUESTIONS))
    if unknown:
        raise Error(f"the question '{unknown[0]}' is unknown; expected {', '.join(QUESTIONS)}")
    if unknown := sorted(set(without) - set(PROBED)):
        raise Error(f"'{unknown[0]}' cannot be left out; expected {', '.join(PROBED)}")
    if profile not in PROFILES:
        raise Error(f"the profile is '{profile}'; expected {' or '.join(PROFILES)}")
    usual = PROFILES[profile]
    time_s, tokens = usual[0] if time_s is None else time_s, int(usual[1]) if tokens is None else tokens
    for name, value, least in (("time_s", time_s, 1), ("tokens", tokens, 1), ("length", length, 8),
                               ("connections", connections, 1)):
        if not value >= least:
            raise Error(f"{name} is {value}; expected {least} or more")
    if connections > 256:
        raise Error(f"connections is {connections}; expected at most 256")

    def say(words: str) -> None:
        if progress:
            print(words, file=sys.stderr, flush=True)

    bounds: dict[str, Any] = {"seconds_max": time_s, "requests_max": max(20000, tokens)}
    wire = Wire(url, key_env, connections=connections, **bounds)
    adapter = sniff(wire, model)
    say(f"{adapter.engine} {adapter.version}".strip())
    lost, beside, compared = "", None, None
    if reference:
        line = Wire(reference, key_env, connections=connections, **bounds)
        beside = Collector(line, sniff(line), (), tokens, length, say)
        compared = (line.origin, beside.adapter)
    collector = Collector(wire, adapter, tuple(only), tokens, length, say, beside)
    collector.dropped = frozenset(without)
    try:
        collector.run()
    except Error as wrong:
        if not any(record.status == 200 for record in wire.records):
            raise
        lost = str(wrong)
    if save:
        keep(save, (wire.origin, adapter), compared, wire.records, {"without": without, "lost": lost, "only": only})
    return Judge(wire.origin, adapter, list(wire.records), compared, without, lost, tuple(only)).run()
