"""What came in a run, as deviations see it: its log probability under the sound rule, the regimes that it falls into,
and rules, each of which gives it another."""

from __future__ import annotations

import dataclasses
import functools
from typing import Callable, Iterable, Iterator, Protocol

import numpy as np

from ..cases.sample_cases import shown
from ..evidence import evidence
from .filter_deviations import FILTERS, Deviation, Params, is_on
from .row_deviations import Rows

#: Share of a token that comes whatever the rule is.
STRAY = 1e-3
#: Nats of the chance that places of a batch are a stride apart, below which that is no regime.
BY_CHANCE = 3.4
#: (below, above) which a parameter may have a way of its own.
RANGES = {"temperature": ((1e-5, 1e-3, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0), (1.0, 2.0, 4.0)),
          "top_k": ((), (0, 1, 8, 32, 64, 128, 256, 1024)),
          "top_p": ((0.1, 0.5, 0.9, 1.0), (0.9, 0.95, 0.98)), "min_p": ((0.01,), (0.0, 0.5))}
#: Logits that a rule is tried on, at most.
ELEMENTS = 1 << 21


@dataclasses.dataclass(frozen=True)
class Regime:
    """words: '' of all; here: [n]; is_outcome: it says what came of a draft, so only of what was drawn then it tells;
    is_rare: it costs more."""

    words: str
    here: np.ndarray
    is_outcome: bool = False
    is_rare: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class Draws:
    """Where the draws [n] of a run were made: parameters of their rows, their place in the batch, of so many rows."""

    params: Params
    place: np.ndarray
    batch: int

    def at(self, chosen: np.ndarray) -> tuple[Params, np.ndarray, int]:
        return {name: value[chosen] for name, value in self.params.items()}, self.place[chosen], self.batch


class Rule(Protocol):
    """A rule over what came in a run."""

    def __call__(self) -> np.ndarray:
        """[n] log probabilities."""

    def excused(self) -> np.ndarray | bool:
        """[n]: what usual readings of the rule's parameters disagree on."""

    def refuted(self, here: np.ndarray, draws: Draws) -> float:
        """Nats against the rule, as an audit finds them against a sound callable: what came `here` [n] is judged with
        the rule in the place of the sound one. Infinite where it cannot come."""


@dataclasses.dataclass(frozen=True)
class Observed:
    """of_sound: the sound rule, sound: [n] its log probabilities, of what cannot come below `tiny`; rules(): deviations
    whose make() is a Rule; size: logits that one is tried on; always: regimes that all of it is in; repeats(): nats for
    draws that repeat others, and of which; lost(): seeds that draw alike."""

    of_sound: Rule
    sound: np.ndarray
    tiny: float
    rules: Callable[[], Iterator[Deviation]]
    regimes: list[Regime]
    size: int
    draws: Draws
    always: list[str] = dataclasses.field(default_factory=list)
    repeats: Callable[[], tuple[float, str]] = lambda: (0.0, "")
    lost: Callable[[], str] = lambda: ""

    def here(self, words: str) -> np.ndarray:
        """[n]: which of it is in the regime of this name."""
        everything = np.ones(len(self.sound), bool)
        return everything if words in self.always else next(
            (regime.here for regime in self.regimes if regime.words == words), ~everything)


@dataclasses.dataclass(frozen=True, eq=False)
class OfRows:
    """Log probabilities of draws [n] of rows that a rule gives. row, token: [n]."""

    given: Rows
    row: np.ndarray
    token: np.ndarray

    def __call__(self) -> np.ndarray:
        p = self.given.probabilities
        return log_of(p[self.row, self.token].astype(np.float64), p.shape[1])

    @functools.cached_property
    def rows(self) -> evidence.Rows:
        """As the rule has them: what lies in the zone of the usual readings is not judged."""
        rows = evidence.Rows.of(self.given.logits, self.given.params)
        if self.given.draws is None:
            return rows
        p = np.where(rows.zone, 0.0, np.nan_to_num(self.given.probabilities.astype(np.float64)))
        total = p.sum(axis=1, keepdims=True)
        return evidence.Rows(np.divide(p, total, out=np.zeros_like(p), where=total > 0.0), rows.zone, p)

    def excused(self) -> np.ndarray | bool:
        return self.rows.zone[self.row, self.token]

    def refuted(self, here: np.ndarray, draws: Draws) -> float:
        rows, row, token = self.rows, self.row, self.token
        zone = rows.zone[row, token]
        impossible = here & (rows.probabilities[row, token] <= 0.0) & ~zone
        if np.count_nonzero(impossible) > STRAY * np.count_nonzero(here):
            return float("inf")
        open_ = np.flatnonzero(here & ~impossible & ~zone)
        if not open_.size:
            return 0.0
        ranks = evidence.ranks(rows, row[open_], token[open_], np.random.default_rng(open_.size))
        bets = [*evidence.bets_on_ranks(ranks, *draws.at(open_), row[open_]),
                *evidence.bets_on_marks(rows, row[open_], token[open_])]
        return max(bet.log_e for bet in bets) - float(np.log(len(bets)))


def tiny_of(size: int) -> float:
    return float(np.log(1.5 * STRAY / size))


def log_of(chance: np.ndarray, size: int) -> np.ndarray:
    return np.log((1.0 - STRAY) * np.nan_to_num(chance) + STRAY / size)


def always_of(params: Params) -> list[str]:
    """The regimes of parameters that are one value throughout."""
    return [*(f"rows with {name} {shown(value[0])}" for name,
              value in params.items() if len(value) and (value == value[0]).all()),
            *(f"rows with {words}" for words, here in _ranges(params) if here.all())]


def _ranges(params: Params) -> Iterator[tuple[str, np.ndarray]]:
    """Where a branch may begin: draws whose parameter is on and below or above a bound."""
    for name, (below, above) in RANGES.items():
        value = params.get(name, np.zeros(0))
        on = value > 0.0 if name != "top_p" else value < 1.0
        yield from ((f"{name} below {bound:g}", on & (value < np.float32(bound))) for bound in below)
        yield from ((f"{name} above {bound:g}", on & (value > np.float32(bound))) for bound in above)


def regimes_of(params: Params, place: np.ndarray, batch: int, impossible: np.ndarray | None = None,
               first: Iterable[tuple[str, np.ndarray]] = ()) -> list[Regime]:
    """impossible: [n], what cannot come: from its first place of the batch on is a regime too. first: regimes before
    all others."""
    of = np.unique(place[impossible]) if impossible is not None else np.zeros(0, np.int64)
    begin, end = (int(of[0]), int(of[-1]) + 1) if of.size else (0, batch)
    filtered = np.logical_or.reduce([is_on(name, params[name]) for name in FILTERS if name in params])
    more = [("no filter", ~filtered), ("a filter", filtered)]
    if 16 <= begin < batch - 1:
        more.insert(0, (f"places of the batch from {begin} on", place >= begin))
    out = [Regime("", np.ones(len(place), bool))]
    for words, here in (*first, *evidence.classes(params, place, batch), *more, *_ranges(params)):
        out.append(Regime(words if words.startswith(("the ", "places", "requests")) else f"rows with {words}", here))
    if len(of) >= 3:
        for words, here, share in ((f"from {begin} on", place >= begin, 1.0 - begin / batch),
                                   (f"before {end}", place < end, end / batch)):
            if 0.0 < share < 1.0 and -len(of) * np.log(share) > BY_CHANCE:
                out.append(Regime(f"places of the batch {words}", here, is_rare=True))
        out += [Regime(f"places {of[0] % step} of every {step}", place % step == of[0] % step, is_rare=True)
                for step in (2, 3, 4, 5, 6, 7, 8, 16, 32)
                if (of % step == of[0] % step).all() and (len(of) - 1) * np.log(step) > BY_CHANCE]
    return out[:1] + [regime for regime in out[1:] if regime.here.any() and not regime.here.all()]


def masked(logits: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """Regimes of rows by their masks."""
    share = np.isneginf(logits).mean(axis=1)
    return [("masked tokens", share > 0.0), ("most tokens masked", share > 0.5)]


def window(around: int, count: int, most: int) -> np.ndarray:
    """Of `count` rows at most so many, next to each other, with one of them."""
    begin = min(max(0, around - most // 2), max(0, count - most))
    return np.arange(begin, min(count, begin + most))
