"""What came in a run, as deviations see it: draws under a rule, and the regimes that they fall into."""

from __future__ import annotations

import dataclasses
import functools
from typing import Callable, Iterable, Iterator, Sequence

import numpy as np

from ..cases.sample_cases import shown
from ..evidence import evidence
from .grammar import FILTERS, Deviation, Params, Rows, is_on, switched_off

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
    """words: '' of all; here: [n]; is_rare: it costs more."""

    words: str
    here: np.ndarray
    is_rare: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class Draws:
    """Where the draws [n] of a run were made: parameters of their rows, their place in the batch, of so many rows."""

    params: Params
    place: np.ndarray
    batch: int

    def at(self, chosen: np.ndarray) -> tuple[Params, np.ndarray, int]:
        return {name: value[chosen] for name, value in self.params.items()}, self.place[chosen], self.batch


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """Draws [m] of one kind, `what`, from rows of a table [R, V] of probabilities. row, token: [m]; of: [m], which of
    the [n] that came each is of. look(): which [m] usual readings disagree on, and the table without what they disagree
    on. among: draws [m] that are looked at by themselves, in words."""

    what: str
    table: np.ndarray
    row: np.ndarray
    token: np.ndarray
    of: np.ndarray
    look: Callable[[], tuple[np.ndarray, np.ndarray]]
    among: Sequence[tuple[str, np.ndarray]] = ()

    @functools.cached_property
    def looked(self) -> tuple[np.ndarray, np.ndarray]:
        return self.look()

    def against(self, here: np.ndarray, draws: Draws) -> tuple[int, list[float]]:
        """Of those `here` [n]: how many cannot come, and nats against the others, as an audit bets on a sound
        callable's."""
        excused, table = self.looked
        asked, p = here[self.of] & ~excused, table[self.row, self.token]
        open_ = np.flatnonzero(asked & (p > 0.0))
        wrong = np.count_nonzero(asked) - len(open_)
        if len(open_) < 8:
            return wrong, []
        rows, row, token = evidence.Rows(table, np.zeros((0, 0), bool), table), self.row[open_], self.token[open_]
        found = evidence.ranks(rows, row, token, np.random.default_rng(len(open_)))
        bets = [bet.log_e for bet in (*evidence.bets_on_ranks(found, *draws.at(self.of[open_]), row),
                                      *evidence.bets_on_marks(rows, row, token))]
        among = [inside[open_] for _, inside in self.among]
        return wrong, bets + [evidence.uniform_log_e(found.by_rank[inside]) for inside in among if inside.sum() >= 8]


@dataclasses.dataclass(frozen=True, eq=False)
class Rule:
    """A rule over what came, [n], over a vocabulary of this size, as draws. given: rows that it draws from, or filters;
    kept: [n, V], what came of filters."""

    n: int
    size: int
    make: Callable[[], list[Part]]
    given: Rows | None = None
    kept: np.ndarray | None = None

    @functools.cached_property
    def parts(self) -> list[Part]:
        return self.make()

    def __call__(self) -> np.ndarray:
        """[n] log probabilities."""
        out = np.zeros(self.n)
        for part in self.parts:
            chance = np.nan_to_num(part.table[part.row, part.token].astype(np.float64))
            np.add.at(out, part.of, np.log((1.0 - STRAY) * chance + STRAY / self.size))
        return out

    @property
    def tiny(self) -> float:
        """What cannot come is below."""
        return float(np.log(1.5 * STRAY / self.size))

    def excused(self) -> np.ndarray:
        """[n]: what usual readings of the rule's parameters disagree on."""
        return np.any([np.bincount(part.of, part.looked[0], self.n) > 0.0 for part in self.parts], axis=0)

    def refuted(self, here: np.ndarray, draws: Draws) -> float:
        """Nats against the rule: what came `here` [n] is judged with the rule in the place of the sound one. Infinite
        where it cannot come."""
        found = [part.against(here, draws) for part in self.parts]
        bets = [bet for _, of_part in found for bet in of_part]
        if sum(wrong for wrong, _ in found) > STRAY * np.count_nonzero(here):
            return float("inf")
        return max(bets) - float(np.log(len(bets))) if bets else 0.0


def of_rows(given: Rows, row: np.ndarray, token: np.ndarray) -> Rule:
    """Draws [n] of rows that a deviation gives."""
    def look() -> tuple[np.ndarray, np.ndarray]:
        rows = evidence.Rows.of(given.logits, given.params)
        p = rows.probabilities
        if given.draws is not None:
            p = np.where(rows.zone, 0.0, np.nan_to_num(given.probabilities.astype(np.float64)))
            p = np.divide(p, p.sum(axis=1, keepdims=True), out=np.zeros_like(p), where=p.any(axis=1, keepdims=True))
        return rows.zone[row, token], p

    return Rule(len(row), given.logits.shape[1], lambda: [
        Part("draws", given.probabilities, row, token, np.arange(len(row)), look,
             [(f" of {given.about(r)}", row == r) for r in range(min(64, len(given.logits)))])], given)


@dataclasses.dataclass(frozen=True)
class Observed:
    """of_sound: the sound rule, sound: [n] its log probabilities, of what cannot come below `tiny`; rules(): deviations
    whose make() is another; size: logits that one is tried on; repeats(): nats for draws that repeat others, and of
    which; lost(): what is lost of seeds that draw alike."""

    of_sound: Rule
    sound: np.ndarray
    tiny: float
    rules: Callable[[], Iterator[Deviation]]
    regimes: list[Regime]
    size: int
    draws: Draws
    repeats: Callable[[], tuple[float, str]] = lambda: (0.0, "")
    lost: Callable[[], str] = lambda: ""

    def here(self, words: str) -> np.ndarray:
        """[n]: which of it is in the regime of this name."""
        return next((regime.here for regime in self.regimes if regime.words == words), np.zeros(len(self.sound), bool))


def regimes_of(draws: Draws, impossible: np.ndarray, more: Iterable[tuple[str, np.ndarray]] = ()) -> list[Regime]:
    """impossible: [n], what cannot come: from its first place of the batch on is a regime too. A regime of everything
    tells the failing case from others: of ranges and values of parameters, and of `more`."""
    params, place, batch = draws.params, draws.place, draws.batch
    of, everything = np.unique(place[impossible]), np.ones(len(place), bool)
    begin, end = (int(of[0]), int(of[-1]) + 1) if of.size else (0, batch)
    filtered = np.logical_or.reduce([is_on(name, params[name]) for name in FILTERS if name in params])
    named = [*more, *_ranges(params)]
    within = [*evidence.classes(params, place, batch), ("no filter", ~filtered), ("a filter", filtered),
              (f"places of the batch from {begin} on", (place >= begin) & (16 <= begin < batch - 1)), *named]
    within = [(words, here) for words, here in within if here.any() and not here.all()]
    within += [(f"{name} {shown(value[0])}", everything) for name, value in params.items()
               if len(value) and (value == value[0]).all()]
    within += [(words, here) for words, here in named if here.all()]
    out = [Regime("", everything), *(
        Regime(words if words.startswith(("the ", "places", "requests", "calls")) else f"rows with {words}", here)
        for words, here in within)]
    if len(of) >= 3:
        strides = [(f"{of[0] % step} of every {step}", place % step == of[0] % step,
                    (len(of) - 1) * np.log(step) * (of % step == of[0] % step).all())
                   for step in (2, 3, 4, 5, 6, 7, 8, 16, 32)]
        out += [Regime(f"places {words}", here, True) for words, here, nats in (
            (f"of the batch from {begin} on", place >= begin, -len(of) * np.log(max(1.0 - begin / batch, 1e-9))),
            (f"of the batch before {end}", place < end, -len(of) * np.log(end / batch)), *strides)
                if nats > BY_CHANCE and here.any() and not here.all()]
    return out


def _ranges(params: Params) -> Iterator[tuple[str, np.ndarray]]:
    """Where a branch may begin: draws whose parameter is on and below or above a bound."""
    for name, (below, above) in RANGES.items():
        if name in params:
            value = params[name]
            on = value > 0.0 if name != "top_p" else value < 1.0
            yield from ((f"{name} below {bound:g}", on & (value < np.float32(bound))) for bound in below)
            yield from ((f"{name} above {bound:g}", on & (value > np.float32(bound))) for bound in above)


def of_logits(rows: Rows) -> Iterator[tuple[str, np.ndarray]]:
    """Regimes of rows [n] by their masks, and by their likeliest token before filters."""
    share = np.isneginf(rows.logits).mean(axis=1)
    top = Rows(rows.logits, switched_off(rows.params, *FILTERS)).probabilities.max(axis=1)
    yield from (("masked tokens", share > 0.0), ("most tokens masked", share > 0.5))
    yield from ((f"a token of {bound:g} or more", top >= bound) for bound in (0.5, 0.9, 0.99))


def window(around: int, count: int, most: int) -> np.ndarray:
    """Of `count` rows at most so many, next to each other, with one of them."""
    begin = min(max(0, around - most // 2), max(0, count - most))
    return np.arange(begin, min(count, begin + most))
