"""Temperature 0: the best token of each list; alone against beside others (control); against another server.

margin: logprob of one token less that of another. noise: how much the margin of the two best tokens differs between
two runs at equal prefixes. need: the noise that would explain a first difference, the sum of both runs' margins
there."""

from __future__ import annotations

import typing
from dataclasses import dataclass, field
from typing import Any

import numpy

from . import speculation
from .collect import PROMPTS

if typing.TYPE_CHECKING:
    from .adapters import Step
    from .collect import Collector
    from .verdicts import Judge
    from .wire import Record

LENGTH = 32         # tokens a text, at most
SLACK = 0.01        # logits: noise between a list and the choice of its best
FLOOR = 1e-5        # logits: noise that the printed digits of a list hide
MANY, OTHER = 4.0, 10.0  # times the control's noise: a difference is a bug; the weights are others


@dataclass
class Compared:
    """Two runs of the same prompts. differences: record, position, need, steps of both; need None: no lists there."""

    texts: int = 0
    noises: list[float] = field(default_factory=list)
    differences: list[tuple[int, int, float | None, Step, Step]] = field(default_factory=list)
    unlike: int = 0  # texts whose tokens cannot be compared: ids here, words there

    @property
    def noise(self) -> float:
        """Returns the 99.9 % quantile of the noise, in logits."""
        return float(numpy.quantile(self.noises, 0.999)) if self.noises else 0.0


def margin(step: Step, better: Any, worse: Any) -> float | None:
    listed = dict(step.top)
    return listed[better] - listed[worse] if better in listed and worse in listed else None


def compare(pairs: list) -> Compared:
    """Compares texts: pairs of (record, steps), (record, steps), of the same prompt."""
    found = Compared(len(pairs))
    for (number, first), (_, second) in pairs:
        if first and second and type(first[0].token) is not type(second[0].token):
            found.unlike += 1
            continue
        for place, (one, two) in enumerate(zip(first, second)):
            best = [key for key, _ in one.top[:2]]
            margins = [gap for step in (one, two) if len(best) == 2 and (gap := margin(step, *best)) is not None]
            if len(margins) == 2:
                found.noises.append(abs(margins[0] - margins[1]))
            if one.token != two.token:
                here, there = margin(one, one.token, two.token), margin(two, two.token, one.token)
                need = None if here is None or there is None else here + there
                found.differences.append((number, place, need, one, two))
                break
    return found


def verdict(found: Compared, control: float) -> str:
    """Returns same, float noise, other weights or arithmetic, not noise, or unseen. control: the control's noise."""
    level = max(control, FLOOR)
    if not found.differences and found.noise <= OTHER * level:
        return "same"
    if found.noise > OTHER * level:
        return "other weights or arithmetic"
    needs = [need for *_, need, _, _ in found.differences]
    if any(need is not None and (need > MANY * level or one.top == two.top)
           for *_, need, one, two in found.differences):
        return "not noise"
    return "unseen" if None in needs else "float noise"


def ask(collector: Collector) -> None:
    """The same prompts alone, here and at the reference, then beside one another without the prefix cache."""
    wire, other = collector.wire, collector.reference

    def asked(side: Collector, number: int, question: str, turn: str) -> Record:
        seed = number + (50 if turn == "again" else 0)  # without effect at temperature 0
        return side.record(question, turn, PROMPTS[number], seed=seed, temperature=0.0,
                           max_tokens=min(LENGTH, collector.length))
    for number in range(len(PROMPTS)):
        if wire.left_s() > 0:
            wire.post(asked(collector, number, "greedy", "first"))
            if other:
                wire.records.append(other.wire.post(asked(other, number, "reference", "first")))
    beside = [asked(collector, number, "greedy", "again") for number in range(len(PROMPTS))]
    for record in beside:
        record.body.update(collector.adapter.fresh)
    wire.post_all(beside)
    if other:
        rescore(collector)


def rescore(collector: Collector) -> None:
    """Asks both servers for the lists at first differences that have none, as under drafts."""
    runs: dict[Any, dict] = {}
    assert collector.reference
    for record in collector.wire.records:
        if (record.question, record.case) in (("greedy", "first"), ("reference", "first")) and record.status == 200:
            reader = collector.adapter if record.question == "greedy" else collector.reference.adapter
            runs.setdefault(record.settings["prompt"], {})[record.question] = (record, reader.read(record.answer))
    for prompt, both in runs.items():
        if len(both) < 2:
            continue
        (_, here), (_, there) = both["greedy"], both["reference"]
        place = next((i for i, (a, b) in enumerate(zip(here.steps, there.steps)) if a.token != b.token), None)
        if place is None or not isinstance(here.steps[place].token, int):
            continue
        for name, side in (("greedy", collector), ("reference", collector.reference)):
            record, text = both[name]
            ids = speculation.tokenized(side, prompt) if not text.steps[place].top else []
            if ids:
                record.settings["prompt ids"] = ids
                asked = side.record(name, "score", [*ids, *(step.token for step in text.steps[:place])], max_tokens=1,
                                    seed=1, temperature=0.0)
                asked.settings.update(of=record.order, place=place)
                side.wire.post(asked)
                if side is not collector:
                    collector.wire.records.append(asked)


def pairs(first: list, second: list, records: list) -> list:
    """Returns pairs of texts of one prompt, in their steps."""
    known = {records[number].settings["prompt"]: (number, text.steps) for number, text in second}
    return [((number, text.steps), known[records[number].settings["prompt"]]) for number, text in first
            if records[number].settings["prompt"] in known]


def judge(audit: Judge) -> None:
    first, again = audit.of("greedy", "first"), audit.of("greedy", "again")
    scored = {(name, audit.records[number].settings["of"], audit.records[number].settings["place"]): text.steps[0].top
              for name in ("greedy", "reference") for number, text in audit.of(name, "score") if text.steps}
    for number, text in (*first, *audit.of("reference", "first")):
        record = audit.records[number]
        for place, step in enumerate(text.steps):
            step.top = step.top or scored.get((record.question, record.order, place), [])
    below = [(number, place, step) for number, text in first + again for place, step in enumerate(text.steps)
             if step.top and step.token != step.top[0][0]
             and dict(step.top).get(step.token, float("-inf")) < step.top[0][1] - SLACK]
    count = sum(bool(step.top) for _, text in first + again for step in text.steps)
    if below:
        number, place, step = below[0]
        audit.add("temperature 0", "failure", f"{len(below)} of {count} tokens are below the best of their list "
                  f"(position {place}: {step.token!r} at {step.logprob:.4g}, best {step.top[0][0]!r} at "
                  f"{step.top[0][1]:.4g})", number)
    elif count:
        audit.add("temperature 0", "ok", f"best of its list at all {count} tokens")
    control = compare(pairs(first, again, audit.records))
    if control.texts:
        tell(audit, "temperature 0 twice", control, control.noise, "alone against beside others")
    other = audit.of("reference", "first")
    if other and first and audit.reference:
        found = compare(pairs(first, other, audit.records))
        tell(audit, "reference", found, control.noise, f"against {audit.reference[0]}")


def tell(audit: Judge, question: str, found: Compared, control: float, words: str) -> None:
    """Adds the line of a comparison."""
    if found.unlike:
        audit.add(question, "inconclusive", f"{found.unlike} of {found.texts} texts cannot be compared: ids here, "
                  "words there")
        return
    how = verdict(found, control)
    noises = f"noise {found.noise:.2g} of {len(found.noises)} margins"
    noises += f", control {control:.2g}" if question == "reference" else ""
    if not found.differences:
        audit.add(question, "ok" if how == "same" else "failure",
                  f"{how}: {found.texts} texts {words} are the same; {noises}", audit.of("greedy", "first")[0][0])
        return
    number, place, need, one, two = max(found.differences, key=lambda row: -1.0 if row[2] is None else row[2])
    where = f"{audit.records[number].settings['prompt'][:32]!r}, position {place}: {_best(one)} against {_best(two)}"
    words = (f"{how}: {len(found.differences)} of {found.texts} texts {words} differ; need "
             f"{'unknown' if need is None else format(need, '.2g')}, {noises}; {where}")
    audit.add(question, {"float noise": "ok", "unseen": "inconclusive"}.get(how, "failure"), words, number)


def _best(step: Step) -> str:
    return f"{step.token!r} of [" + ", ".join(f"{key!r}: {value:.4f}" for key, value in step.top[:3]) + "]"
