"""Planted faults of the fake server: a site of its engine, how the value there changes, and when."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy
from fake_engine import NEUTRAL, Moment

SPECULATION = frozenset({"speculation"})


@dataclass(frozen=True)
class Fault:
    """At `site` the value becomes change(value, moment) where when(moment). `traits`: readings of the engine."""

    site: str
    change: Callable[[object, Moment], object]
    when: Callable[[Moment], bool] = lambda moment: True
    traits: frozenset = frozenset()


def late(site: str) -> Callable:
    return lambda value, moment: moment.request.seen.get(site, value)


def of_the_mate(site: str) -> Callable:
    return lambda value, moment: moment.request.mate.get(site, value)


def becomes(other: object) -> Callable:
    return lambda value, moment: other


def times(factor: float) -> Callable:
    return lambda value, moment: ({key: v * factor for key, v in value.items()} if isinstance(value, dict)
                                  else value * factor)


def plus(number: int) -> Callable:
    return lambda value, moment: value + number if value > 1 else value


def without_best(row: numpy.ndarray, moment: Moment) -> numpy.ndarray:
    greedy = moment.request.body.get("temperature") == 0 and moment.position == 5
    return numpy.where(row == row.max(), -9.0, row) if greedy else row


def seeded_first(u: float, moment: Moment) -> float:
    return (moment.request.body.get("seed") or 0) % 4096 / 4096


# ---- When.
def later(moment: Moment) -> bool:
    return moment.position > 0


def odd(moment: Moment) -> bool:
    return moment.position % 2 == 1


def first(moment: Moment) -> bool:
    return moment.position == 0


def drafted(moment: Moment) -> bool:
    return moment.kind == "draft"


def bonus(moment: Moment) -> bool:
    return moment.kind == "bonus"


FILTERS = ("temperature", "top_k", "top_p", "min_p")
PENALTIES = ("repetition_penalty", "presence_penalty", "frequency_penalty")
ENDS = ("stop", "stop_token_ids", "min_tokens", "ignore_eos")

FAULTS = {
    **{f"{site} ignored": Fault(site, becomes(NEUTRAL[site]))
       for site in (*FILTERS, *PENALTIES, *ENDS, "logit_bias", "seed", "n", "response_format")},
    **{f"{site} lost from the second token on": Fault(site, becomes(NEUTRAL[site]), later)
       for site in (*FILTERS, *PENALTIES, "logit_bias")},
    **{f"{site} lost on bonus tokens": Fault(site, becomes(NEUTRAL[site]), bonus, SPECULATION)
       for site in ("top_k", "top_p", "min_p", "frequency_penalty", "logit_bias")},
    **{f"{site} of a batch mate": Fault(site, of_the_mate(site)) for site in ("temperature", "top_k", "history")},
    **{f"{site} times {factor}": Fault(site, times(factor)) for site, factor in (
        ("temperature", 1.03), ("temperature", 0.97), ("top_p", 1.03), ("logit_bias", 1.1), ("presence_penalty", 2),
        ("frequency_penalty", 2))},
    "logit_bias behind the temperature": Fault("logit_bias", lambda value, moment: {
        token: bias * (moment.request.body.get("temperature") or 1.0) for token, bias in value.items()}),
    "temperature at most 1": Fault("temperature", lambda value, moment: min(value, 1.0)),
    "repetition_penalty squared": Fault("repetition_penalty", lambda value, moment: value * value),
    **{f"{site} {number:+}": Fault(site, plus(number)) for site, number in (
        ("top_k", 1), ("top_k", -1), ("max_tokens", 1), ("usage", 1))},
    "prompt usage doubled": Fault("prompt usage", times(2)),
    **{f"window {number:+}": Fault("window", plus(number), traits=frozenset({"window of 64"})) for number in (1, -1)},
    "filters before the temperature on drafts": Fault("order", lambda value, moment: value | {"filters first"}, drafted,
                                                      SPECULATION),
    "accepts 1.5 p/q": Fault("accept", times(1.5), traits=SPECULATION),
    "n-gram draft drawn again": Fault("residual", lambda value, moment: moment.target,
                                      traits=SPECULATION | {"n-grams", "refuses logit_bias"}),
    "2 % of mass mixed in": Fault("probs", lambda value, moment: 0.98 * value + 0.02 / len(value)),
    "2 % of mass over the kept tokens": Fault("probs", lambda value, moment: 0.98 * value + 0.02 * (value > 0)
                                              / numpy.count_nonzero(value)),
    "random numbers of 8 bits": Fault("uniform", lambda u, moment: numpy.floor(256 * u) / 256),
    "repetition_penalty of a default": Fault("repetition_penalty", lambda value, moment: 1.1 if value == 1 else value),
    "temperature at least 0.5": Fault("temperature", lambda value, moment: max(value, 0.5) if value else value),
    "recovered token from p": Fault("residual", lambda value, moment: moment.target, traits=SPECULATION),
    "stale drafts": Fault("row", late("row"), drafted, SPECULATION),
    "penalties do not see the last token on drafts": Fault("history", lambda value, moment: value[:-1], drafted,
                                                           SPECULATION),
    "stop string across accepted drafts": Fault("searched", lambda value, moment: len(moment.request.text), drafted,
                                                SPECULATION),
    "tokens behind an accepted stop": Fault("ends", becomes(False), drafted, SPECULATION),
    "logprobs of drafts empty": Fault("logprob", lambda value, moment: (value[0], 0.0, {}), drafted, SPECULATION),
    "logprobs of the row before": Fault("listed", late("listed")),
    "one random number for two tokens": Fault("uniform", late("uniform"), odd),
    "neighbouring seeds alike": Fault("uniform", seeded_first, first),
    "seeds one token apart": Fault("uniform", lambda u, moment: float(numpy.random.default_rng(
        (moment.request.body.get("seed") or 0) + moment.position).random())),
    "last stop ignored": Fault("stop", lambda value, moment: value[:-1] if len(value) > 1 else value),
    "seed of the process": Fault("entropy", becomes(42)),
    "choices alike": Fault("choice", becomes(0)),
    "ties drawn": Fault("temperature", lambda value, moment: value or 1e-6, traits=frozenset({"ties"})),
    "second best": Fault("row", without_best),
    "finish reason": Fault("finish", becomes("length")),
    "stream without its last piece": Fault("pieces", lambda value, moment: value[:-1]),
    "stream drawn by another seed": Fault("stream seed", lambda value, moment: (value or 0) + 1),
    "mask without its logits": Fault("masked", lambda row, moment: numpy.where(numpy.isfinite(row), 0.0, row)),
    "recovered token from p under a mask": Fault("residual",
                                                 lambda value, moment: moment.target if moment.request.body.get(
        "response_format") else value, traits=SPECULATION),
    "beams in reverse": Fault("beams", lambda grown, moment: [*reversed(grown[:3]), *grown[3:]]),
    "a beam is lost": Fault("beams", lambda grown, moment: [grown[0], *grown[2:]]),
    "best_of takes the first": Fault("best", lambda done, moment: done[::-1], traits=frozenset({"as TensorRT-LLM"})),
    "grammar mask late by one": Fault("mask", late("mask"), later),
}

# Sound servers: noise, rounding, and what sound engines do differently.
SOUND = ("", "noise", "rounded", "filters first", "top_p over all", "penalties over the prompt", "window of 64",
         "stop kept", "stop is not listed", "last token is not listed", "seeds of 64 bits", "lists after temperature",
         "choices differ", "none is one", "eos is passed over", "accepts bad values", "speculation", "refuses min_p",
         "refuses logit_bias", "refuses token ids", "refuses seed", "refuses n", "gives ids", "n-grams",
         "beams by length")
