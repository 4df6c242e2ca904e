"""What explains a failure: a wrong rule that gives what came, and predicts what comes.

A deviation is chosen by the draws of the failing case: the probability that it gives them, against the sound rule's. It
is named only if it holds in other cases too (fresh seeds, other rows, another batch, other values, regimes that pass):
there an audit of the draws against it must find nothing, while it does find the sound rule wrong in some. A number is
learned from the failing case, or from that and one half of the others, and tried on those of which it was not learned.
Beyond the regime of a deviation the sound rule must hold. A note (of random numbers, of the form of an output) needs no
rule: most other cases that fail must show the same.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Callable, Iterable, Iterator, Sequence

import numpy as np

from ..._core import Error
from ..cases.filter_cases import FilterRun
from ..evidence.readings import FilterOrder
from ..evidence.sample_judge import Judgement, SampleRun
from .draws import observed_draws, observed_sets
from .grammar import FILTER_ORDER, Deviation
from .observed import Observed
from .outputs import said_of
from .steps import observed_steps

#: Nats by which a deviation must beat the sound rule in the failing case; what one that is rare or of a regime costs
#: beside a plain one; within how many of the best one others are tried elsewhere.
LEAST, COST, WINDOW = 10.0, 5.0, 60.0
#: Deviations that are tried elsewhere, regimes of each, those that are judged there, and those named as equals.
TRIED, REGIMES, JUDGED, AS_WELL = 32, 6, 16, 3
#: Steps of the search for a number; nats that one draw may count against one while it is sought, and within which a
#: power of two is as likely, as what a largest number of tokens is not far beyond those that came.
SEARCHED, DISBELIEF, AS_LIKELY = 8, -3.0, 5.0
#: Logits times deviations, in all other cases together.
ELEMENTS = 1 << 25
#: The level at which a deviation is refuted in a case, and at which the sound rule is.
REFUTED, SOUND_REFUTED = np.log(1e4), np.log(1e3)
#: Unseen cases that must fail, beside one that passes; and where none does.
FAILING, FAILING_ALONE = 2, 4
#: Shared random numbers must explain so many times more than any deviation, whose draws repeat too.
REPEATS = 1.1
#: Tests that single draws fail: shared random numbers leave their distributions as they are.
OF_SUPPORT = ("support", "masked_token", "well_formed", "not_a_draft", "wrong_set")


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A deviation by its name, its number (empty: none), in a regime, and what it costs."""

    name: str
    number: tuple[float, ...]
    regime: str
    cost: float

    @property
    def rule(self) -> str:
        return self.name.replace("{}", f"{self.number[0]:.6g}") if self.number else self.name

    @property
    def words(self) -> str:
        return f"{self.rule} in {self.regime}" if self.regime else self.rule


@dataclasses.dataclass(frozen=True)
class Explanation:
    """words: '' where nothing explains what came. cases: others that it predicts, `failing` of which fail; names: of
    the deviations, without their regimes."""

    words: str = ""
    cases: int = 0
    failing: int = 0
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.words}; predicts {self.cases} other cases, {self.failing} failing" if self.words else ""


#: Runs of other cases, those most like the failing one first, drawn when they are asked for and once.
Others = Callable[[], "list[Any]"]
#: What a run and its judgement show of themselves, in words; '': nothing.
Note = Callable[[Any, Judgement], str]


def observed_of(run: Any, group: int = 0) -> Observed | None:
    """group: of rows or requests, those around it, where all are too many."""
    if isinstance(run, SampleRun):
        is_open = run.case.readings or run.case.may_raise or run.driver.distribution is not None
        return None if is_open else observed_draws(run, group)
    return observed_sets(run, group) if isinstance(run, FilterRun) else observed_steps(run, group)


def explained(run: Any, judgement: Judgement, others: Others, filter_order: FilterOrder | None = None,
              left_out: Iterable[str] = ()) -> Explanation:
    """What a run that failed is explained by. filter_order: the callable's (readings.py); left_out: explanations that
    are not tried, whatever their numbers."""
    token, out = FILTER_ORDER.set(filter_order or "joint"), {_numberless(words) for words in left_out}

    def of(note: Note) -> Explanation:
        words = note(run, judgement)
        return noted(words, note, others) if words and _numberless(words) not in out else Explanation()

    try:
        if said_of(run, judgement):
            return of(said_of)
        observed = observed_of(run, judgement.group)
        if observed is None:
            return Explanation()
        if is_of_noise(judgement) and (note := of(_lost)).words:
            return note
        found = sorted(_candidates(observed, out), key=lambda item: -item[1])
        best = max([LEAST, *(nats for _, nats in found)])
        if observed.repeats()[0] > best * REPEATS and (note := of(_repeated)).words:
            return note
        rule = _predicting(observed, found, others) if best > LEAST else Explanation()
        return rule if rule.words else of(suspected)
    finally:
        FILTER_ORDER.reset(token)


def is_of_noise(judgement: Judgement) -> bool:
    """Is it random numbers that failed, not a distribution?"""
    of_places = judgement.name.startswith("correlation") and judgement.name != "correlation_requests"
    return bool(judgement.suspect) or judgement.name in ("repeats", "low_bits") or of_places


def _lost(run: Any, _: Judgement) -> str:
    return "" if (observed := observed_of(run)) is None else observed.lost()


def _repeated(run: Any, _: Judgement) -> str:
    nats, of = (0.0, "") if (observed := observed_of(run)) is None else observed.repeats()
    return f"random numbers are those of {of}" if nats > LEAST else ""


def suspected(_: Any, judgement: Judgement) -> str:
    return judgement.suspect


def noted(words: str, note: Note, others: Others) -> Explanation:
    """words, if the note is the same in most other cases that fail; of random numbers where no draw cannot come."""
    cases = failing = same = 0
    for run in others():
        found = run.judge(np.exp(-SOUND_REFUTED))
        if note is not said_of and found.biased and found.name in OF_SUPPORT:
            return Explanation()
        says = note(run, found)
        fails = found.biased if note in (said_of, suspected) else bool(says)
        cases, failing = cases + 1, failing + fails
        same += fails and _numberless(says) == _numberless(words)
    return Explanation(words, cases, same, (words,)) if 2 * same > failing and _is_enough(failing, cases) else (
        Explanation())


def _is_enough(failing: int, cases: int) -> bool:
    """Unseen cases, each of which an explanation predicts: do enough fail, and does one pass?"""
    return failing >= (FAILING if failing < cases else FAILING_ALONE)


def _numberless(name: str) -> str:
    return re.sub(r"\d[\d.e+-]*", "{}", name)


def _candidates(observed: Observed, left_out: set[str]) -> Iterator[tuple[Candidate, float]]:
    """Deviations, each with the nats by which it beats the sound rule less its cost, that leave at most a quarter of
    what that cannot give."""
    sound, tiny = observed.sound, observed.tiny
    cannot = np.count_nonzero(sound < tiny)
    for wrong in observed.rules():
        if _numberless(wrong.name) in left_out:
            continue
        steps = SEARCHED if observed.size < 1 << 18 else SEARCHED // 2
        number = (_likeliest([(wrong, observed)], steps),) if wrong.has_number else ()
        try:
            these = wrong.make(*number)()
        except Error:  # no distribution follows from it here
            continue
        gain, left = these - sound, these < tiny
        for regime in observed.regimes:
            cost = COST * (bool(regime.words) + wrong.is_rare + regime.is_rare)
            nats = float(gain[regime.here].sum()) - cost
            if nats > 0.0 and np.count_nonzero(np.where(regime.here, left, sound < tiny)) <= 0.25 * cannot:
                yield Candidate(wrong.name, number, regime.words, cost), nats


def _likeliest(of: Sequence[tuple[Deviation, Observed]], steps: int = SEARCHED) -> float:
    """A deviation's number, the likeliest in all these cases. The likelihood rises up to it and falls behind it:
    halves, of logarithms, on both sides of the best so far. Of numbers that are about as likely the one that people
    write: a power of two, then the shortest decimal."""
    wrong, seen = of[0][0], {}

    def score(number: float) -> float:
        try:
            return sum(float(np.maximum(each.make(number)() - at.sound, DISBELIEF).sum()) for each, at in of)
        except Error:
            return -np.inf

    def look(number: float) -> None:
        number = float(round(number)) if wrong.is_whole else float(number)
        if number not in seen:
            seen[number] = score(number)

    for number in np.geomspace(wrong.low, wrong.high, 5):
        look(number)
    if wrong.low < 1.0 < wrong.high and not wrong.is_whole:  # about what changes nothing, finely
        for x in (0.01, 0.025, 0.06, 0.15, 0.4, 1.0):
            look(min(np.exp(x), wrong.high))
            look(max(np.exp(-x), wrong.low))
    for i in range(steps):
        if i == 3 and max(seen.values()) <= 0.0:  # no better than the sound rule anywhere
            break
        known = sorted(seen)
        at = known.index(max(known, key=lambda number: seen[number]))
        for beside in known[max(at - 1, 0):at] + known[at + 1:at + 2]:
            look((beside * known[at]) ** 0.5)
    best = max(seen, key=lambda one: seen[one])
    plain = [(2.0 ** round(np.log2(best)), AS_LIKELY if wrong.is_whole else 1.0),
             *((float(f"{best:.{digits}g}"), 1.0) for digits in (1, 2, 3))]
    return next((one for one, nats in plain if wrong.low <= one <= wrong.high and score(one) > seen[best] - nats), best)


class Place:
    """A case, and what deviations say of it. names: of those that are tried."""

    def __init__(self, observed: Observed, names: Iterable[str]) -> None:
        self.observed = observed
        self.wrong = {wrong.name: wrong for wrong in observed.rules() if wrong.name in names}
        self.fails = observed.of_sound.refuted(np.ones(len(observed.sound), bool), observed.draws) > SOUND_REFUTED
        self._gains: dict[str, np.ndarray] = {}
        self._refutes: dict[str, bool] = {}

    def gain(self, candidate: Candidate) -> float:
        gains = self._gains.get(candidate.rule)
        if gains is None:
            gains = np.zeros(len(self.observed.sound))
            if candidate.name in self.wrong:
                try:
                    rule = self.wrong[candidate.name].make(*candidate.number)
                    gains = np.where(rule.excused(), 0.0, rule() - self.observed.sound)
                except Error:
                    pass
            self._gains[candidate.rule] = gains
        return float(gains[self.observed.here(candidate.regime)].sum())

    def refutes(self, candidate: Candidate) -> bool:
        observed, here = self.observed, self.observed.here(candidate.regime)
        if candidate.name not in self.wrong or not here.any():
            return self.fails
        if candidate.words not in self._refutes:
            beyond = 0.0 if here.all() else observed.of_sound.refuted(~here, observed.draws)
            rule = self.wrong[candidate.name].make(*candidate.number)
            self._refutes[candidate.words] = max(beyond, rule.refuted(here, observed.draws)) > REFUTED
        return self._refutes[candidate.words]


def _predicting(observed: Observed, found: list[tuple[Candidate, float]], others: Others) -> Explanation:
    """Of the likeliest deviations, each in its likeliest regimes, the likeliest over all cases that none refutes; its
    number is learned from none of them, then from one half."""
    near = [(candidate, nats) for candidate, nats in found if nats > found[0][1] - WINDOW]
    names = list(dict.fromkeys(candidate.name for candidate, _ in near))[:max(4, min(TRIED, (1 << 22) //
                                                                                     observed.size))]
    nats = dict(item for name in names for item in [item for item in near if item[0].name == name][:REGIMES])
    own, places, spent = Place(observed, names), [], 0
    for run in others():
        other = observed_of(run) if spent < ELEMENTS else None
        if other is not None:
            spent += other.size * len(names)
            places.append(Place(other, names))
    best = _best(nats, places, places)
    for i in (0, 1) if any(each.number for each in nats) and not best.words else ():
        teaching = [own, *places[i::2]]  # the failing case may leave the number open
        number = {name: (_likeliest([(place.wrong[name], place.observed) for place in teaching
                                     if name in place.wrong]),) for name in {each.name for each in nats if each.number}}
        learned = {dataclasses.replace(each, number=number[each.name]): value for each, value in nats.items()
                   if each.number}
        best = best if best.words else _best(learned, places, places[1 - i::2])
    return best


def _best(nats: dict[Candidate, float], places: list[Place], unseen: list[Place]) -> Explanation:
    """unseen: by which it is tried whether a deviation predicts."""
    failing = [place for place in unseen if place.fails]
    if not _is_enough(len(failing), len(unseen)):
        return Explanation()
    total = {candidate: value + sum(place.gain(candidate) for place in places) for candidate, value in nats.items()}
    ordered = sorted(total, key=lambda candidate: -total[candidate])
    best = next((candidate for candidate in ordered[:JUDGED]
                 if not any(place.refutes(candidate) for place in (*failing, *places))), None)
    alike = [] if best is None else [best, *(  # to the last digit: none is better than the others
        other for other in ordered if other != best and (other.regime, other.cost) == (best.regime, best.cost)
        and abs(total[other] - total[best]) < 1e-9 * abs(total[best]))]
    if not 0 < len(alike) <= AS_WELL:
        return Explanation()
    return Explanation(", or ".join(dict.fromkeys(other.words for other in alike)), len(unseen), len(failing),
                       tuple(dict.fromkeys(other.rule for other in alike)))
