"""Tokens that no drafter expects: bias gives half of a row to one that is unlikely without it.

A drafter does not know of bias, nor of a grammar's mask. It proposes the other half, and each second of its drafts must
be rejected. A verifier that accepts too much, or forgets what was rejected when it draws again, gives the expected
tokens more than their half, whatever the drafter is. What comes too often is known before the draws, so that some
hundred show it.

Repetitions show the same of drafters by n-grams where a server refuses bias: a prompt breaks off within a repetition,
and top_k and the temperature are those at which the token that came the first time comes about every second time.
"""

from __future__ import annotations

import itertools
import math
import typing
from typing import Any, NamedTuple

import numpy as np

from ..callable.evidence import evidence
from . import draws
from .wire import Record

if typing.TYPE_CHECKING:
    from .collect import Collector
    from .verdicts import Judge

SHARE = 0.5  # of the unexpected token
FIRST = 2.0 / 3.0  # of the token before it: servers draw the first one of a text without a draft
ODDS = np.array([1.5, 2.5])  # times those of the expected tokens, of which one is bet on
TEXTS, CHOICES, PROMPTS = 1600, 4, 4
ONCE, CUTS = 40, (13, 18, 25)  # tokens that a prompt repeats, and how many of them: some drafters look for 12
WARM = [{"top_k": top_k, "temperature": temperature} for top_k in (2, 3, 5)
        for temperature in (0.4, 0.7, 1.0, 1.5, 2.0)]


class Lift(NamedTuple):
    """A bias on `token` under which others come with the chance `expected` at most behind the tokens `before`. left:
    the tokens that are judged there; none: all. is_draft: not others, but `token` itself comes so."""

    before: list[int]
    token: int
    bias: float
    expected: float = 1.0 - SHARE
    left: tuple[int, ...] = ()
    is_draft: bool = False


def lift(before: list[Any], top: list[tuple[Any, float]], chosen: tuple[Any, float], others: float = 0.0,
         left: tuple[Any, ...] = ()) -> Lift:
    """others: what tokens beside the list weigh, at most."""
    others += sum(math.exp(logprob) for token, logprob in top if token != chosen[0])
    return Lift(before, chosen[0], round(math.log(SHARE / (1.0 - SHARE) * others) - chosen[1], 4), left=left)


def can_lift(c: Collector) -> bool:
    return bool(c.adapter.logprobs and c.ids()) and c.offers("logit_bias")


def texts(c: Collector, question: str, case: str, prompt: str | list[int], plan: Lift, count: int,
          **settings: object) -> list[Record]:
    """Requests for so many texts: several a request where the server has choices."""
    n = CHOICES if c.offers("n") else 1
    more = {"n": n} if n > 1 else {}
    if c.gives_ids:
        settings["logprobs"] = None  # servers turn speculation off where they are asked for
    return [c.record(question, case, prompt, plan._asdict(), seed=200_000 + 31 * number,
                     max_tokens=len(plan.before) + 1, **more, **settings) for number in range(-(-count // n))]


def ask(c: Collector) -> None:
    """Texts of both kinds, in turn."""
    if not (c.adapter.logprobs and c.ids()):
        return
    count = min(TEXTS, c.tokens_max // 6) // PROMPTS
    lifted = _lifted(c, count) if c.offers("logit_bias") else []
    jobs = lifted + (_repeated(c, count // 2 if lifted else count) if c.offers("top_k") else [])
    c.wire.post_all([record for several in itertools.zip_longest(*jobs) for record in several if record])


def _chance(top: list[tuple[Any, float]], token: int, settings: dict) -> float:
    """Returns how probable a token is, 0 beyond top_k or the list."""
    weights = {key: math.exp((value - top[0][1]) / settings["temperature"]) for key, value in top[:settings["top_k"]]}
    return weights.get(token, 0.0) / sum(weights.values())


def _shown(first: float, draft: float) -> float:
    """Returns what a text says of a draft that is drawn again from p, in nats: chances of its first token, and of the
    draft behind that."""
    again = draft * (2.0 - draft)
    return first * (again * math.log(2.0 - draft) + (1.0 - again) * math.log(1.0 - draft)) if 0 < draft < 1 else 0.0


def _repeated(c: Collector, count: int) -> list[list[Record]]:
    tried = [(c.ids()[start:start + ONCE], cut) for start in range(0, 41, 10) for cut in CUTS]
    tried = [(once, cut) for once, cut in tried if len(once) > cut + 1]
    prompts = [[*once, *once[:cut]] for once, cut in tried]
    firsts = c.lists(prompts)
    seconds = c.lists([[*prompt, once[cut]] for prompt, (once, cut) in zip(prompts, tried)])
    best = []
    for number, ((once, cut), top, behind) in enumerate(zip(tried, firsts, seconds)):
        first, draft = once[cut], once[cut + 1]
        shown, place = max((_shown(_chance(top, first, how), _chance(behind, draft, how)), place)
                           for place, how in enumerate(WARM) if how["top_k"] <= len(top))
        chance = _chance(behind, draft, WARM[place])
        best.append((shown, number, WARM[place], Lift([first], draft, 0.0, chance, is_draft=True)))
    return [texts(c, "unexpected", "repetitions", prompts[number], plan, count, **how)
            for shown, number, how, plan in sorted(best, key=lambda one: -one[0])[:PROMPTS] if shown > 0.0]


def _lifted(c: Collector, count: int) -> list[list[Record]]:
    ids, plans = c.ids(), []
    once = [ids[start:start + 16] for start in range(0, 64, 8)]
    firsts = [top[0][0] for top in c.lists(once)]
    seconds = c.lists([[*prompt, first] for prompt, first in zip(once, firsts)])
    # twice, with the best second token in between, which drafters by n-grams then propose
    prompts = [[*prompt, first, top[0][0], *prompt] for prompt, first, top in zip(once, firsts, seconds)]
    lists = c.lists(prompts)
    seconds = c.lists([[*prompt, first] for prompt, first in zip(prompts, firsts)])
    for prompt, first, known, top in zip(prompts, firsts, lists, seconds):
        chance = math.exp(dict(known).get(first, known[-1][1]))
        raised = round(max(0.0, math.log(FIRST / (1.0 - FIRST) * (1.0 - chance) / chance)), 4)
        # what bias adds to it behind itself, at most
        again = math.exp(dict(top).get(first, top[-1][1])) * math.expm1(raised)
        tail = max(0.0, 1.0 - sum(math.exp(value) for _, value in top))
        plan = lift([first], top, [pair for pair in top if pair[0] != first][len(top) // 2], tail + again)
        # the draft's part of what is rejected; it is the more visible, the larger
        share = math.exp(top[0][1]) / (1.0 + again)
        plans.append((-share, prompt, plan, {str(first): raised, str(plan.token): plan.bias}))
    return [texts(c, "unexpected", "second tokens", prompt, plan, count, logit_bias=bias)
            for _, prompt, plan, bias in sorted(plans, key=lambda one: one[0])[:PROMPTS]]


def judged(j: Judge, name: str, numbers: list[int]) -> None:
    """Whether the tokens that drafters expect come more often than is stated."""
    hits, chances, is_draft = [], [], False
    for number in numbers:
        record, answer = j.records[number], typing.cast(Any, j.records[number].answer)
        about = record.settings["about"]
        is_draft = about.get("is_draft", False)
        if number not in j.texts:
            continue
        for place in range(min(record.settings.get("n") or 1, len(answer.get("choices") or [0]))):
            text = j.adapter.read(answer, place)
            tokens, at = list(text.ids or (step.token for step in text.steps)), len(about["before"])
            is_left = len(tokens) > at and (not about["left"] or tokens[at] in about["left"])
            if is_left and tokens[:at] == about["before"]:
                hits.append((tokens[at] == about["token"]) == is_draft)
                chances.append(about["expected"])
    if len(hits) < 100:
        return
    p = math.exp(-max(0.0, evidence.marked_log_e(np.array(hits), np.array(chances), ODDS)))
    which = "the ones that a repetition continues with" if is_draft else "others than one that bias gives half"
    words = (f"{sum(hits)} of {len(hits)} tokens are {which}; {sum(chances):.0f} expected"
             f"{'' if is_draft else ' at most'}")
    bad = p < draws.LEVEL
    j.add(name, "biased" if bad else "ok", f"p = {p:.2g}; {words}" if bad else f"consistent: {words}", numbers[0])


def judge(j: Judge) -> None:
    for name, case in (("draws, unexpected", "second tokens"), ("draws, repetitions", "repetitions")):
        judged(j, name, [at for at, record in enumerate(j.records)
                         if (record.question, record.case) == ("unexpected", case)])
