"""Structured output: texts under a JSON schema are values of it."""

import json

from ..collect import PROMPTS, Collector
from ..verdicts import Judge

VALUES = ["red", "green"]


def ask(c: Collector) -> None:
    if c.adapter.offers("schema"):
        c.wire.post_all([c.record("parameters", "schema", PROMPTS[number], seed=40 + number, max_tokens=24,
                                  schema={"enum": VALUES}) for number in range(6)])


def judge(j: Judge) -> None:
    rows, invalid = j.of("parameters", "schema"), []
    if j.asked("schema") and not rows:
        return j.parameter("schema", "refused", "", j.asked("schema")[0])
    for number, text in rows:
        try:
            valid = json.loads(text.text) in VALUES
        except ValueError:
            valid = text.finish == "length" and not text.text.strip()  # only spaces so far
        if not valid:
            invalid.append((number, text.text))
    if invalid:
        return j.parameter("schema", "ignored" if len(invalid) == len(rows) else "wrong", f"{len(invalid)} of "
                           f"{len(rows)} texts are no value of the schema (first: {invalid[0][1][:40]!r})",
                           invalid[0][0])
    if rows:
        j.parameter("schema", "honoured", f"{len(rows)} texts are values of an enum")
