"""Seeds: the same twice, 192 neighbours (400 where many tokens are drawn), and none."""

from __future__ import annotations

import typing

from . import draws
from .visible import READINGS

if typing.TYPE_CHECKING:
    from .adapters import Text
    from .collect import Collector
    from .verdicts import Judge

PAIR = 2  # tokens a text of a neighbouring seed


def ask(c: Collector) -> None:
    from .collect import PROMPTS
    wide, short = {"temperature": 1.0, "top_k": -2}, min(16, c.length)
    # the second time in another order, beside other requests
    for turn in ("first", "again") if c.offers("seed") else ():
        c.wire.post_all([c.record("seeds", f"same {turn}", PROMPTS[number], seed=1000 + number, max_tokens=short,
                                  **wide)
                         for number in (range(6) if turn == "first" else reversed(range(6)))])
    if c.adapter.logprobs and c.offers("seed"):  # of all prompts, since one's cut may be within the noise
        c.wire.post_all([c.record("seeds", "neighbours", PROMPTS[number % len(PROMPTS)], seed=5000 + number,
                                  max_tokens=PAIR, **wide)
                         for number in range(192 if c.tokens_max <= 20000 else 400)])
    c.wire.post_all([c.record("seeds", "none", PROMPTS[1], seed=None, max_tokens=short, **wide) for _ in range(6)])


def judge(j: Judge) -> None:
    _same(j)
    _neighbours(j)
    _none(j)


def _tokens(text: Text) -> tuple:
    return tuple(step.token for step in text.steps)


def _same(j: Judge) -> None:
    again = {j.records[number].settings["seed"]: (number, text) for number, text in j.of("seeds", "same again")}
    pairs = [(row, again[seed]) for row in j.of("seeds", "same first")
             if (seed := j.records[row[0]].settings["seed"]) in again]
    if not pairs:
        return
    alike = sum(_tokens(a) == _tokens(b) for (_, a), (_, b) in pairs)
    early = sum(_tokens(a)[:3] == _tokens(b)[:3] for (_, a), (_, b) in pairs)
    words = f"the same seed gave the same text {alike} times of {len(pairs)}"
    if early <= len(pairs) // 3 or (not j.adapter.logprobs and alike <= len(pairs) // 3):
        j.add("seed", "failure", f"ignored: {words}", pairs[0][0][0])
    else:
        j.add("seed", "ok", f"honoured: {words}" + ("" if alike == len(pairs) else "; noise may do this"))


def _neighbours(j: Judge) -> None:
    """The same random numbers at neighbouring seeds, or one token later."""
    rows = j.of("seeds", "neighbours")
    drawn = draws.place(rows, j.records[rows[0][0]].settings, READINGS[0]) if rows else draws.Drawn()
    if len(drawn.rows) < 30:
        return
    test = min((test for length in range(1, PAIR + 1) for test in draws.judge(drawn.as_one_text(length))),
               key=lambda test: test.p, default=None)
    bad = test if test is not None and test.p < draws.LEVEL / (PAIR * draws.TESTS) else None
    j.add("neighbouring seeds", "biased" if bad else "ok",
          f"tokens of neighbouring seeds as one text, {bad.name}: p = {bad.p:.2g}; {bad.words}" if bad
          else f"independent ({len(rows)} seeds)", rows[0][0])


def _none(j: Judge) -> None:
    rows = j.of("seeds", "none")
    if len(rows) < 2:
        return
    chance = max(sum(step.logprob for step in text.steps) for _, text in rows)
    alike = len(rows) - len({_tokens(text) for _, text in rows})
    bad = alike > 0 and chance < -25
    j.add("no seed", "failure" if bad else "ok", f"{alike} of {len(rows)} texts without a seed repeat another" if bad
          else f"{len(rows)} texts differ" if not alike else "texts too short to tell", rows[0][0])
