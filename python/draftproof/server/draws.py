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
from . import bets
from .adapters import Step, Text
from .visible import Reading, Visible, resolution, visible

if TYPE_CHECKING:
    from .._types import Array

# 1e-6 over all: cases, neighbouring seeds, draws under a schema, unexpected tokens with and without one, repetitions.
LEVEL = 1e-6 / 6
TESTS = 15  # of one case at most
GRAMS = (0, 1, 2, 3)  # tokens that a drafter by n-grams looks for; none: whatever came, as penalties see it
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
    """A draw: distribution, rank of the drawn token (len(keys): beyond the list), its text and position there. again:
    for each of GRAMS how probable the tokens of the list are that came before behind the same tokens."""

    seen: Visible
    rank: int
    text: int
    position: int
    again: tuple[float, ...] = (0.0,) * len(GRAMS)
    is_again: tuple[bool, ...] = (False,) * len(GRAMS)


@dataclass
class Drawn:
    """Draws of one case under one reading; `outside` holds (record, position, token) of probability 0, `beyond` those
    beyond a list, with the most that its tail has; `inside` counts the others of such lists, `bound` sums all tails."""

    tokens: int = 0
    skipped: int = 0
    rows: list[Row] = field(default_factory=list)
    outside: list[tuple[int, int, Any]] = field(default_factory=list)
    beyond: list[tuple[int, int, Any, float]] = field(default_factory=list)
    inside: int = 0
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
                 every("outside"), every("beyond"), sum(case.inside for case in cases),
                 sum(case.bound for case in cases))


def place(texts: list[tuple[int, Text]], settings: dict, reading: Reading, step: float | None = None) -> Drawn:
    """Places drawn tokens in their visible distributions. `texts` pairs a record's number with its text; `step` is the
    resolution of the logprobs, found from them if None."""
    drawn = Drawn()
    if step is None:
        step = resolution([value for _, text in texts for at in text.steps for _, value in at.top][:2000])
    known = {}
    for number, text in texts:
        came = _Repetitions(text.before)
        for position, at in enumerate(text.steps):
            sets = came.add(at.token)
            key = tuple(at.top)
            if key not in known:
                known[key] = visible(at.top, settings, reading, step)
            seen = known[key]
            if seen is None:
                drawn.skipped += 1
                continue
            drawn.tokens += 1
            if 0.0 < seen.beyond < 1.0:
                drawn.bound += seen.beyond
                drawn.inside += at.token in seen.keys
            if at.token not in seen.keys and seen.beyond:
                drawn.beyond.append((number, position, at.token, seen.beyond))
            elif at.token not in seen.generous and not seen.rest:
                drawn.outside.append((number, position, at.token))
            elif seen.ambiguous or len(set(seen.keys)) < len(seen.keys):
                drawn.skipped += 1
            else:
                rank = seen.keys.index(at.token) if at.token in seen.keys else len(seen.keys)
                listed = max(1e-300, 1.0 - seen.rest)
                again = tuple(sum(p for key, p in zip(seen.keys, seen.probs) if key in tokens) / listed
                              for tokens in sets)
                drawn.rows.append(Row(seen, rank, number, position, again,
                                      tuple(at.token in tokens for tokens in sets)))
    return drawn


class _Repetitions:
    """A text token by token, and what came behind its last tokens before."""

    def __init__(self, before: list[int]) -> None:
        self.tokens: list[Any] = []
        self.behind: dict[tuple, set] = {}
        for token in before:
            self.add(token)

    def add(self, token: Any) -> list[set]:
        """Adds the next token. Returns, for each of GRAMS, which ones came behind so many last tokens before."""
        last = [tuple(self.tokens[max(0, len(self.tokens) - size):]) for size in GRAMS]
        again = [set(self.behind.get(one, ())) for one in last]
        for one in last:
            self.behind.setdefault(one, set()).add(token)
        self.tokens.append(token)
        return again


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


def arrays(drawn: Drawn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns probabilities and ids of the kept tokens [n, width], and ranks [n] of the drawn ones, width if beyond."""
    count, rows = len(drawn.rows), drawn.rows
    width = max((len(row.seen.keys) for row in rows), default=0)
    probs, ids = np.zeros((count, width)), np.full((count, width), -1, np.int64)
    order = {key: number for number, key in enumerate(sorted({key for row in rows for key in row.seen.keys},
                                                             key=lambda key: str(key).zfill(9)))}
    ranks = np.empty(count, np.int64)
    for i, row in enumerate(rows):
        size = len(row.seen.keys)
        probs[i, :size] = np.maximum(row.seen.probs, 1e-300)
        ids[i, :size] = [order[key] for key in row.seen.keys]
        ranks[i] = row.rank if row.rank < size else width
    return probs, ids, ranks


def tested(drawn: Drawn, **options: float) -> Audit:
    """Returns the core's tests of the draws; options as of audit_draws."""
    probs, ids, ranks = arrays(drawn)
    rows = drawn.rows
    shell = np.array([len(row.seen.keys) - len(row.seen.shell_keys) for row in rows], np.int64)
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
    found += [Found(name, math.exp(-max(0.0, log_e)), words, at) for name, log_e, words, at in bets.of(drawn)]
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
