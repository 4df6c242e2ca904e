"""Speculation: texts drawn without logprobs, since servers may turn it off where they are asked for, scored afterwards.

A text's ids are asked for instead of its lists. Each position's list is then that of a request of its own: prompt ids
and ids so far, one token. The draws are judged with all others, by draws.py."""

from __future__ import annotations

import re
import typing

from .adapters import Step
from .wire import Error, Record

if typing.TYPE_CHECKING:
    from .adapters import Text
    from .collect import Collector
    from .verdicts import Judge

# Drafts by n-grams need texts that repeat.
PROMPTS = ["red, blue, red, blue, red, blue, red,", "1 2 3 4 1 2 3 4 1 2 3 4 1 2",
           "She said yes. He said no. She said yes. He said no. She said", "for i in range(3):\n    print(i)\nfor i in"]
CASES = ("min_p", "temperature", "top_k")
LENGTH = 24  # tokens a text


def accepted(collector: Collector) -> float | None:
    """Returns the server's own count of accepted drafts so far, None where /metrics has none."""
    try:
        text = str(collector.wire.get("/metrics") or "")
    except Error:
        return None
    found = re.findall(rf"^(?:{collector.adapter.counters})(?:\{{[^}}]*\}})? ([0-9.e+-]+)$", text, re.M)
    values = [float(value[-1] if isinstance(value, tuple) else value) for value in found]
    return sum(values) if values else None


def counted(collector: Collector, case: str, before: float | None) -> None:
    """Keeps what /metrics counted since `before`."""
    settings = {"asked": "draws" not in collector.only}
    collector.wire.records.append(Record("speculation", case, settings, "/metrics", {}, 200,
                                         [before, accepted(collector)]))


def tokenized(collector: Collector, text: str) -> list[int]:
    """Returns the server's ids of a text, none where it does not say them."""
    if not collector.adapter.tokenize:
        return []
    path, field, ids = collector.adapter.tokenize
    body = {field: text, **({"model": collector.adapter.extra["model"]} if "model" in collector.adapter.extra else {})}
    if path == "/tokenize" and field == "content":
        body["add_special"] = True
    done = collector.wire.post(Record("probe", "ids of a text", {}, path, body))
    found = done.answer.get(ids) if done.status == 200 and isinstance(done.answer, dict) else None
    return list(found or [])


def ask(collector: Collector, cases: tuple[str, ...] = CASES) -> None:
    """Draws texts of the cases without logprobs, and scores each position, in turn."""
    from .collect import CASES as ALL
    wire, adapter = collector.wire, collector.adapter
    known = [tokenized(collector, prompt) for prompt in PROMPTS] if collector.gives_ids else []
    prompts = [ids for ids in known if ids]
    if not prompts:
        return
    before, begin = accepted(collector), collector.turn
    # a request a token: half of them, so that the others have theirs
    while wire.left_s() > 0 and 2 * (collector.turn - begin) * LENGTH * len(cases) < collector.tokens_max:
        turn = collector.turn
        texts = wire.post_all([
            collector.record("draws", f"{case} without logprobs", prompts[turn % len(prompts)], **ALL[case],
                             logprobs=None, max_tokens=LENGTH, seed=70000 + 7919 * turn + place)
            for place, case in enumerate(cases)])
        for text in texts:
            ids = adapter.read(text.answer).ids if text.status == 200 else []
            wire.post_all([score(collector, text, ids, place) for place in range(len(ids))])
        collector.turn += 1
        collector.say(f"speculation: {(collector.turn - begin) * len(cases)} texts drawn without logprobs and scored, "
                      f"{wire.left_s():.0f} s left")
    counted(collector, "without logprobs", before)


def score(collector: Collector, text: Record, ids: list[int], place: int) -> Record:
    """Returns the request for the list at a position of a text."""
    asked = collector.record("scores", "score", [*text.settings["prompt"], *ids[:place]], max_tokens=1, seed=1,
                             temperature=text.settings["temperature"] or 1.0)
    asked.settings.update(of=text.order, place=place)
    return asked


def fill(records: list[Record], texts: dict[int, Text]) -> None:
    """Gives texts that were drawn without logprobs their tokens, with the lists of their scores. Positions without one
    are not judged."""
    at = {}
    for number, text in texts.items():
        if records[number].settings.get("logprobs", 0) is None:
            text.steps = [Step(token, float("-inf"), []) for token in text.ids]
            at[records[number].order] = number
    for number, record in enumerate(records):
        if record.question == "scores" and number in texts and texts[number].steps and record.settings["of"] in at:
            steps, place = texts[at[record.settings["of"]]].steps, record.settings["place"]
            if place < len(steps):
                top = texts[number].steps[0].top
                steps[place] = Step(steps[place].token, dict(top).get(steps[place].token, float("-inf")), top)


def judge(audit: Judge) -> None:
    """Whether drafts were accepted while tokens were drawn, and what the judgement of these draws then covers."""
    said = [record for record in audit.records if record.question == "speculation"]
    if not said:
        return
    drawn = {number: text for number, text in audit.texts.items() if audit.records[number].question == "draws"}
    silent = [number for number in drawn if audit.records[number].settings.get("logprobs", 0) is None]

    def drafts(case: str, numbers: list[int]) -> float | None:
        grown = [record.answer[1] - (record.answer[0] or 0.0) for record in said
                 if record.case == case and record.answer[1] is not None]
        own = sum(drawn[number].accepted for number in numbers)
        says = audit.adapter.accepted or audit.adapter.per_step
        return max(own, sum(grown)) if grown or (says and numbers) else None
    count = drafts("without logprobs", silent)
    whole = drafts("metrics", list(drawn))
    judged = sum(bool(step.top) for number in silent for step in audit.texts[number].steps)
    if count:
        audit.add("speculation", "ok", f"seen at work: {count:.0f} drafts accepted in the texts drawn without logprobs"
                  f"; {judged} of their tokens were scored afterwards, for the draws above")
    elif whole:
        audit.add("speculation", "ok", f"seen at work: {whole:.0f} drafts accepted"
                  + ("; none in texts drawn without logprobs" if silent else ""))
    else:
        asked = said[0].settings["asked"]
        audit.add("speculation", "inconclusive" if asked else "none", "not seen at work"
                  + (": the server does not count accepted drafts" if whole is None and count is None else ""))
