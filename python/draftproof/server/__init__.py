"""Audit of a running server from outside: does it draw from the distribution that its own logprobs state?"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from .._core import Error
from .adapters import sniff
from .collect import PROFILES, QUESTIONS, Collector
from .draws import audit_logprobs
from .verdicts import Judge, Line, ServerAudit, load
from .wire import Wire

__all__ = ["Line", "ServerAudit", "audit_logprobs", "audit_server"]


def audit_server(url: str, *, model: str | None = None, only: tuple[str, ...] = QUESTIONS, profile: str = "quick",
                 time_s: float | None = None, tokens: int | None = None, length: int = 48, connections: int = 4, key_env: str | None = None,
                 save: str | None = None, reference: str | None = None, progress: bool = False) -> ServerAudit:
    """Audits a server of language models, or a file that `save` wrote.

    url: http://HOST:PORT, or the path of a saved run. only: questions of QUESTIONS. profile: of PROFILES, for
    time_s: seconds for requests, and tokens: tokens drawn at most, where they are not given. length: tokens a text. key_env: environment variable of the key, never saved.
    reference: URL of a server whose texts at temperature 0 are compared.
    Raises Error if the server is not reached, serves no language model or gives no logprobs.
    """
    if "://" not in url and Path(url).is_file():
        origin, adapter, records, other = load(Path(url).read_text().splitlines(), url)
        kept = {*only, "probe", *(("reference",) if "greedy" in only else ()),
                *(("draws", "scores") if "speculation" in only else ())}
        return Judge(origin, adapter, [record for record in records if record.question in kept], other).run()
    unknown = sorted(set(only) - set(QUESTIONS))
    if unknown:
        raise Error(f"the question '{unknown[0]}' is unknown; expected {', '.join(QUESTIONS)}")
    if profile not in PROFILES:
        raise Error(f"the profile is '{profile}'; expected {' or '.join(PROFILES)}")
    given = zip((time_s, tokens), PROFILES[profile])
    time_s, tokens = (bound if value is None else value for value, bound in given)
    for name, value, least in (("time_s", time_s, 1), ("tokens", tokens, 1), ("length", length, 8),
                               ("connections", connections, 1)):
        if not value >= least:
            raise Error(f"{name} is {value}; expected {least} or more")
    if connections > 256:
        raise Error(f"connections is {connections}; expected at most 256")

    def say(words: str) -> None:
        if progress:
            print(words, file=sys.stderr, flush=True)

    wire = Wire(url, key_env, seconds_max=time_s, connections=connections)
    adapter = sniff(wire, model)
    say(f"{adapter.engine} {adapter.version}".strip())
    failure, other, compared = None, None, None
    if reference:
        line = Wire(reference, key_env, seconds_max=time_s, connections=connections)
        other = Collector(line, sniff(line), (), tokens, length, say)
        compared = (line.origin, other.adapter)
    try:
        Collector(wire, adapter, tuple(only), tokens, length, say, other).run()
    except Error as wrong:
        if len(wire.records) < 2:
            raise
        failure = str(wrong)
    if save:
        head = {"draftproof_server": wire.origin, "adapter": asdict(adapter)}
        head |= {"reference": [compared[0], asdict(compared[1])]} if compared else {}
        Path(save).write_text("\n".join([json.dumps(head), *(record.line() for record in wire.records)]) + "\n")
    audit = Judge(wire.origin, adapter, list(wire.records), compared).run()
    if failure:
        audit.lines.append(Line("server", "failure", failure))
        audit.verdict, audit.sentence = "failure", f"failure: the run ended early: {failure}"
    return audit
