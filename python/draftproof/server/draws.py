"""Drawn tokens beside the distributions that lists of logprobs state, a text of n tokens being n draws. The tests are
the core's (_core.audit_listed); each p-value is exact or a bound."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _core, _forms
from .._core import Error
from .._results import Audit, audit_of
from .adapters import Step, Text
from .visible import Reading, Visible, resolution, visible

if TYPE_CHECKING:
    from .._types import Array

# 1e-6 over all: cases, neighbouring seeds, draws under a schema, and unexpected tokens with and without one.
LEVEL = 1e-6 / 5
TESTS = 14  # of one case at most
EVENTS = {"shell": "tokens that a 3 % smaller cut drops were", "edge": "the last kept token was",
          "rest": "tokens beyond the list were"}


@dataclass
class Found:
    """One test: p-value, the sentence's words, and where (record, position) its first evidence stands."""

    name: str
    p: float
    words: str
    at: tuple[int, int] | None = None


class Row(NamedTuple):
    """A draw: distribution, rank of the drawn token (len(keys): beyond the list), its text and position there."""

    seen: Visible
    rank: int
    text: int
    position: int


@dataclass
class Drawn:
    """Draws of one case under one reading; `outside` holds (record, position, token) of probability 0, `beyond` those
    beyond a list whose tail has at most the probability `bound` in all."""

    tokens: int = 0
    skipped: int = 0
    rows: list[Row] = field(default_factory=list)
    outside: list[tuple[int, int, Any]] = field(default_factory=list)
    beyond: list[tuple[int, int, Any]] = field(default_factory=list)
    bound: float = 0.0

    @property
    def judged(self) -> int:
        return len(self.rows) + len(self.outside) + len(self.beyond)

    def as_one_text(self, length: int) -> Drawn:
        """Returns the draws of the first `length` tokens of each text as if all were of one text."""
        rows = [Row(row.seen, row.rank, 0, length * row.text + row.position) for row in self.rows
                if row.position < length]
        return Drawn(len(rows), 0, rows)


def together(cases: list[Drawn]) -> Drawn:
    """Returns the draws of all cases as one."""
    def every(name: str) -> list:
        return [one for case in cases for one in getattr(case, name)]
    return Drawn(sum(case.tokens for case in cases), sum(case.skipped for case in cases), every("rows"),
                 every("outside"), every("beyond"), sum(case.bound for case in cases))


def place(texts: list[tuple[int, Text]], settings: dict, reading: Reading, step: float | None = None) -> Drawn:
    """Places drawn tokens in their visible distributions. `texts` pairs a record's number with its text; `step` is the
    resolution of the logprobs, found from them if None."""
    drawn = Drawn()
    if step is None:
        step = resolution([value for _, text in texts for at in text.steps for _, value in at.top][:2000])
    known = {}
    for number, text in texts:
        for position, at in enumerate(text.steps):
            key = tuple(at.top)
            if key not in known:
                known[key] = visible(at.top, settings, reading, step)
            seen = known[key]
            if seen is None:
                drawn.skipped += 1
                continue
            drawn.tokens += 1
            drawn.bound += seen.beyond
            if at.token not in seen.keys and seen.beyond:
                drawn.beyond.append((number, position, at.token))
            elif at.token not in seen.generous and not seen.rest:
                drawn.outside.append((number, position, at.token))
            elif seen.ambiguous or len(set(seen.keys)) < len(seen.keys):
                drawn.skipped += 1
            else:
                rank = seen.keys.index(at.token) if at.token in seen.keys else len(seen.keys)
                drawn.rows.append(Row(seen, rank, number, position))
    return drawn


def beyond(honoured: Drawn, texts: list[tuple[int, Text]], settings: dict, reading: Reading, other: Reading) -> float:
    """Returns how many of the tokens placed under `reading` have probability 0 there and are expected under `other`."""
    mass, count = 0.0, 0
    for _, text in texts:
        for at in text.steps:
            one, two = (visible(at.top, settings, how, 0.0) for how in (reading, other))
            if one and two:
                count += 1
                mass += two.rest + sum(p for key, p in zip(two.keys, two.probs) if key not in one.generous)
    return mass / max(1, count) * honoured.tokens


def tested(drawn: Drawn, **options: float) -> Audit:
    """Returns the core's tests of the draws; options as of audit_draws."""
    count, rows = len(drawn.rows), drawn.rows
    width = max((len(row.seen.keys) for row in rows), default=0)
    probs, ids = np.zeros((count, width)), np.full((count, width), -1, np.int64)
    order = {key: number for number, key in enumerate(sorted({key for row in rows for key in row.seen.keys},
                                                             key=lambda key: str(key).zfill(9)))}
    ranks, shell = np.empty(count, np.int64), np.empty(count, np.int64)
    for i, (seen, rank, _, _) in enumerate(rows):
        size = len(seen.keys)
        probs[i, :size] = np.maximum(seen.probs, 1e-300)
        ids[i, :size] = [order[key] for key in seen.keys]
        ranks[i], shell[i] = rank if rank < size else width, size - len(seen.shell_keys)
    places = {"texts": np.array([row.text for row in rows], np.int64),
              "positions": np.array([row.position for row in rows], np.int64)}
    return audit_of(_core.audit_listed({
        "probabilities": probs.ravel(), "ids": ids.ravel(), "rest": np.array([row.seen.rest for row in rows], float),
        "ranks": ranks, "shell_from": shell, "outside": len(drawn.outside), **places, **options}))


def judge(drawn: Drawn) -> list[Found]:
    """Returns all tests of one case under one reading."""
    found = []
    for test in tested(drawn).tests:
        name, at = test.name, None
        if name in EVENTS:
            words = f"{EVENTS[name]} drawn {test.statistic:.0f} times; {test.worst_cells[0]['expected']:.1f} expected"
        elif name == "score":
            which = "more" if test.statistic > 0 else "less"
            words = f"drawn tokens are {which} probable than stated, z = {test.statistic:.1f}"
        elif name.startswith("pairs"):
            words = (f"tokens {name[-1]} apart within a text are correlated: r = {test.statistic:.2f} "
                     f"over {test.n} pairs")
        elif name == "outside" and drawn.outside:
            number, position, token = drawn.outside[0]
            where = ", all behind a text's first token" if all(place > 0 for _, place, _ in drawn.outside) else ""
            words = (f"{len(drawn.outside)} of {drawn.tokens} tokens have probability 0 by the server's own list "
                     f"(first: token {token!r} at position {position} of its text{where})")
            at = number, position
        else:
            words = "ranks of drawn tokens do not follow the stated probabilities"
        found.append(Found(name, test.p_value, words, at))
    count = len(drawn.beyond)
    if count > drawn.bound:  # Chernoff
        number, position, token = drawn.beyond[0]
        found.append(Found("beyond", math.exp(count - drawn.bound - count * math.log(count / drawn.bound)),
                           f"tokens beyond the list were drawn {count} times; at most {drawn.bound:.1f} are expected "
                           "(first: "
                           f"token {token!r} at position {position} of its text)", (number, position)))
    return found


def detectable(drawn: list[Drawn], level: float) -> tuple[float, float]:
    """Returns the smallest change of temperature (%) and of mass (%) found with 99 % power, a test having `level`."""
    whole = tested(together(drawn), alpha=min(0.5, level * TESTS))
    ranks = whole.test("transform_ks")
    if ranks is None:
        return math.inf, math.inf
    temperature = math.inf if whole.detectable_temperature is None else 100.0 * whole.detectable_temperature
    if max(sum(row.seen.shell for row in case.rows) for case in drawn) > math.log(1.0 / level):
        temperature = min(temperature, 3.0)
    return temperature, 100.0 * ranks.detectable_tv


def audit_logprobs(samples: Array, ids: Array, logprobs: Array, *, temperature: float = 1.0, top_k: int = -1,
                   top_p: float = 1.0, min_p: float = 0.0, text: Array | None = None, resolution: float | None = None,
                   temperature_first: bool = True, top_p_of_kept: bool = True, alpha: float = 1e-6,
                   tv_wanted: float = 0.05, seed: int = 0) -> Audit:
    """Do drawn tokens follow the lists of logprobs that an engine gave beside them?

    samples: [n] token ids. ids, logprobs: [n, k] the likeliest tokens before sampling parameters, natural logarithms;
    id -1 pads a short list. text: [n] number of the text that a token is of, in the order of drawing; None: of one.
    temperature, top_k (-1: off), top_p, min_p: what the engine was asked for; temperature_first and top_p_of_kept: in
    which reading. resolution: decimal step of printed logprobs, found from them if None; positions with a cut within it
    are left out, and so are lists too short to show the cut. Error: the array, and the shape that was expected.
    """
    drawn = _forms.integers(samples, "samples", np.int64)
    keys, values = _forms.as_numpy(ids, "ids"), _forms.as_numpy(logprobs, "logprobs")
    if keys.ndim != 2 or keys.dtype.kind not in "iu" or len(keys) != drawn.size:
        raise Error(f"ids: is {keys.dtype} {list(keys.shape)}; expected whole numbers [{drawn.size}, k]")
    if values.shape != keys.shape:
        raise Error(f"logprobs: has shape {list(values.shape)}; expected that of ids, {list(keys.shape)}")
    if not temperature > 0:
        raise Error(f"temperature: is {temperature}; expected a number above 0")
    numbers = np.zeros(drawn.size, np.int64) if text is None else _forms.integers(text, "text", np.int64, drawn.size)
    texts: dict[int, list[Step]] = {}
    for token, names, row, number in zip(drawn.tolist(), keys.tolist(), values.tolist(), numbers.tolist()):
        top = sorted(((key, value) for key, value in zip(names, row) if key >= 0), key=lambda pair: -pair[1])
        texts.setdefault(number, []).append(Step(token, dict(top).get(token, -math.inf), top))
    placed = place([(number, Text(steps, "", "", None)) for number, steps in texts.items()],
                   {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p},
                   Reading(temperature_first, top_p_of_kept), resolution)
    return tested(placed, alpha=alpha, tv_wanted=tv_wanted, seed=seed)
