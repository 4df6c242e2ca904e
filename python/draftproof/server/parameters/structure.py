"""Structured output: texts under a JSON schema are values of it, drawn in the proportions of their lists.

Which tokens a mask leaves is not said: those that the first half of the draws behind one prefix has. In the second half
they come in the proportions of the list, whether it was taken before the mask or after it."""

import json
import math
from typing import Iterable

from .. import draws, unexpected
from ..adapters import Step, Text
from ..collect import PROMPTS, Collector
from ..verdicts import Judge
from ..visible import Visible

VALUES = ["red", "green"]
DRAWS, LIFTED, PROMPT = 160, 480, 'Which colour is it, "red" or "green"? It is '


def ask(c: Collector) -> None:
    if not c.adapter.offers("schema"):
        return
    done = c.wire.post_all([c.record("parameters", "schema", PROMPTS[number], seed=40 + number, max_tokens=24,
                                     schema={"enum": VALUES}) for number in range(6)])
    if c.adapter.logprobs and all(record.status == 200 for record in done):
        done = c.wire.post_all([c.record("parameters", "masked", PROMPT, seed=400 + number, max_tokens=4,
                                         schema={"enum": VALUES}) for number in range(DRAWS)])
        texts = [c.adapter.read(record.answer) for record in done if record.status == 200]
        if texts and unexpected.can_lift(c):
            _ask_unexpected(c, behind(enumerate(texts)))


def behind(texts: Iterable[tuple[int, Text]]) -> dict[tuple, list[tuple[int, int, Step]]]:
    """Returns the steps behind each prefix: number and place of each."""
    out: dict[tuple, list[tuple[int, int, Step]]] = {}
    for number, text in texts:
        for place, step in enumerate(text.steps):
            out.setdefault(tuple(one.token for one in text.steps[:place]), []).append((number, place, step))
    return out


def _ask_unexpected(c: Collector, steps: dict[tuple, list[tuple[int, int, Step]]]) -> None:
    """Draws where the mask leaves a choice, of which bias gives half to the token that is least expected."""
    prefix = max(steps, key=lambda prefix: (len({step.token for *_, step in steps[prefix]}) > 1, len(steps[prefix])))
    left = {step.token for *_, step in steps[prefix]}
    top = [pair for pair in steps[prefix][0][2].top if pair[0] in left]
    if len(left) > 1 and len(top) == len(left) and all(isinstance(token, int) for token in (*left, *prefix)):
        plan = unexpected.lift([*prefix], top, top[-1], left=tuple(left))
        c.wire.post_all(unexpected.texts(c, "parameters", "masked, unexpected", PROMPT, plan, LIFTED,
                                         schema={"enum": VALUES}, logit_bias={str(plan.token): plan.bias}))


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
        _masked(j)


def _masked(j: Judge) -> None:
    drawn = draws.Drawn()
    for rows in behind(j.of("parameters", "masked")).values():
        half = len(rows) // 2
        left = {step.token for *_, step in rows[:half]}
        for number, place, step in rows[half:]:
            kept = [(key, value) for key, value in step.top if key in left]
            if len(kept) > 1 and step.token in dict(kept):
                whole = sum(math.exp(value) for _, value in kept)
                probs = [math.exp(value) / whole for _, value in kept]
                keys = [key for key, _ in kept]
                seen = Visible(keys, [value for _, value in kept], probs, left, False, 0.0, set())
                drawn.rows.append(draws.Row(seen, keys.index(step.token), number, place))
    if len(drawn.rows) < 20:
        return
    test = min(draws.judge(drawn), key=lambda test: test.p)
    bad = test.p < draws.LEVEL / draws.TESTS
    j.add("draws under a schema", "biased" if bad else "ok",
          f"{test.name}: p = {test.p:.2g}; {test.words}" if bad else f"consistent ({len(drawn.rows)} tokens)",
          drawn.rows[0].text)
    unexpected.judged(j, "draws under a schema, unexpected", j.asked("masked, unexpected"))
