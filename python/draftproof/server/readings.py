"""Draws under each reading of a request. A reading is refuted at level LEVEL over its tests; a server if all are."""

from __future__ import annotations

import typing
from dataclasses import replace

from . import draws
from .adapters import NEUTRAL
from .history import HISTORIES, penalised
from .visible import READINGS, Reading

if typing.TYPE_CHECKING:
    from .draws import Drawn
    from .verdicts import Judge


def judge(j: Judge) -> None:
    cases: dict[str, list] = {}
    for number, record in enumerate(j.records):
        if record.question == "draws" and number in j.texts:
            cases.setdefault(record.case, []).append((number, j.texts[number]))
    if not cases:
        return
    settings = {case: j.records[texts[0][0]].settings for case, texts in cases.items()}
    level = draws.LEVEL / (draws.TESTS * (len(cases) + 1))
    results = {}
    scaled = _scaled(j, cases, settings)
    penalties = [(history, last) for last in (False, True) for history in HISTORIES]
    readings = [replace(reading, scaled=scaled, history=history, penalties_last=last) for reading in READINGS
                for history, last in (penalties if "penalties" in cases else penalties[:1])]
    seen = {}  # cases in which readings do not differ are judged once
    for reading in readings:
        placed, refuted = {}, {}
        for case, texts in cases.items():
            key = (case, reading.temperature_first or settings[case]["temperature"] == 1.0,
                   reading.top_p_of_kept or settings[case]["top_p"] >= 1.0,
                   case == "penalties" and (reading.history, reading.penalties_last))
            if key not in seen:
                drawn = place(j, texts, settings[case], reading)
                seen[key] = (drawn, min(draws.judge(drawn), key=lambda test: test.p, default=None))
            placed[case], test = seen[key]
            if test and test.p < level:
                refuted[case] = test
        results[reading] = (placed, refuted)
    standing = [reading for reading, (_, refuted) in results.items() if not refuted]
    best = standing[0] if standing else min(results, key=lambda r: len(results[r][1]))
    placed, refuted = results[best]
    joint = {reading: _joint(list(results[reading][0].values()), level) for reading in standing}
    if standing:
        standing = [reading for reading in standing if not joint[reading]] or standing
        placed = results[best := standing[0]][0]
    j.audit.tokens = sum(drawn.judged for drawn in placed.values())
    j.audit.skipped = sum(drawn.skipped for drawn in placed.values())
    temperature, mass = draws.detectable(list(placed.values()), level)
    j.reach = (f"a temperature off by {temperature:.2g} % or {mass:.2g} % of mass would have been found "
               f"({j.audit.tokens} tokens; {j.audit.skipped} skipped: a cut within the noise or no list)")
    if j.audit.tokens < 200:
        j.add("draws", "inconclusive", f"{j.audit.tokens} tokens could be judged; 200 or more are needed")
    for case in placed:
        name = f"draws, {case}"
        if case not in refuted:
            drawn = placed[case]
            j.add(name, "ok", f"consistent ({drawn.judged} tokens, {drawn.skipped} skipped)")
            continue
        test = refuted[case]
        ignored = _ignored(j, cases[case], settings[case], best, level)
        at = f" at {settings[case][ignored]:g}" if ignored and ignored != "logit_bias" else ""
        words = f"{ignored} is ignored{at}" if ignored else f"{test.name}: p = {test.p:.2g}; {test.words}"
        j.add(name, "failure" if ignored else "biased", words, (test.at or (cases[case][0][0],))[0])
    if standing and joint[best]:
        j.add("draws, all cases", "biased", joint[best], next(iter(cases.values()))[0][0])
    elif standing:
        parts = {part: sorted({reading.words()[part] for reading in standing}) for part in standing[0].words()}
        told = [" or ".join(words) for part, words in parts.items()
                if len(words) < len({reading.words()[part] for reading in readings})]
        told += ["logprobs after the temperature"] if scaled else []
        j.add("reading", "ok", "; ".join(told) or "not visible: every order of temperature and filters fits")


def _joint(cases: list[Drawn], level: float) -> str:
    """Returns the words of a test over all cases together that fails, '' if none does."""
    test = min(draws.judge(draws.together(cases)), key=lambda test: test.p, default=None)
    return f"{test.name}: p = {test.p:.2g}; {test.words}" if test and test.p < level else ""


def place(j: Judge, texts: list, settings: dict, reading: Reading) -> Drawn:
    """Places texts after their penalties; each text's own prompt is counted."""
    whole = [(number, penalised(text, j.records[number].settings, reading)) for number, text in texts]
    return draws.place(whole, settings, reading)


def _scaled(j: Judge, cases: dict, settings: dict) -> bool:
    """Returns whether lists are taken after the temperature: one prompt's first list at 1 and at another."""
    if "plain" not in cases or "temperature" not in cases:
        return False
    plain = {j.records[number].settings["prompt"]: text.steps[0].top for number, text in cases["plain"] if text.steps}
    votes = 0
    for number, text in cases["temperature"]:
        one, two = plain.get(j.records[number].settings["prompt"]), text.steps and text.steps[0].top
        if one and two and len(one) > 2 and len(two) > 2:
            wide, now = one[0][1] - one[-1][1], two[0][1] - two[-1][1]
            votes += 1 if abs(now * settings["temperature"]["temperature"] - wide) < abs(now - wide) else -1
    return votes > 0


def _ignored(j: Judge, texts: list, settings: dict, best: Reading, level: float) -> str:
    """Returns the parameter without which the draws of a case fit, '' if there is none."""
    honoured = place(j, texts, settings, best)
    for name, neutral in NEUTRAL.items():
        if settings.get(name) in (neutral, None):
            continue
        if name == "top_k" and settings["temperature"] != 1.0:
            continue
        without = replace(best, ignored=name)
        if 2 * len(honoured.outside) < draws.beyond(honoured, texts, settings, best, without):
            continue  # another fault moves the cut a little
        drawn = place(j, texts, settings, without)
        if len(drawn.rows) >= 100 and all(test.p >= level for test in draws.judge(drawn)):
            return name
    return ""
