"""Which deviation gives what came, and predicts what comes.

A deviation (filter_deviations.py) is chosen by the draws of the failing case: the probability that it gives them,
against the sound rule's. It is named only if it holds in other cases too (fresh seeds, other rows, another batch, other
values of the parameters, regimes that pass): there it is put in the place of the sound rule, and an audit of the draws
against it, row by row, must find nothing, while it does find the sound rule wrong in some. A number is learned from the
failing case, or from that and one half of the others, and tried on those of which it was not learned. A deviation may
hold in a regime alone; the sound rule must hold beyond.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Callable, Iterable, Iterator, Sequence

import numpy as np

from ..._core import Error
from ..cases.filter_cases import FilterRun
from ..cases.verify_sweep import StepsRun
from ..evidence.sample_judge import Judgement, SampleRun
from .draw_deviations import observed_draws
from .emitted import emitted_wrongly
from .filter_deviations import FILTER_ORDER, Deviation, FilterOrder
from .kept_deviations import observed_sets, value_of_dropped, values_wrongly
from .observed import Observed, Rule
from .step_deviations import observed_steps

#: Nats by which a deviation must beat the sound rule in the failing case; what one that is rare or of a regime costs
#: beside a plain one; within how many of the best one others are tried elsewhere.
LEAST, COST, WINDOW = 10.0, 5.0, 60.0
#: Deviations that are tried elsewhere, regimes of each, and those that are judged there.
TRIED, REGIMES, JUDGED = 32, 6, 16
#: Steps of the search for a number; nats that one draw may count against one while it is sought, and within which a
#: power of two is as likely, as what a largest number of tokens is not far beyond those that came.
SEARCHED, DISBELIEF, AS_LIKELY = 8, -3.0, 5.0
#: Logits times deviations, in all other cases together.
ELEMENTS = 1 << 25
#: The level at which a deviation is refuted in a case, and at which the sound rule is.
REFUTED, SOUND_REFUTED = np.log(1e4), np.log(1e3)
#: Those that explain the draws alike, to the last digit, are named together, so many at most.
AS_WELL = 3
#: Tests of random numbers, not of a distribution; shared ones must explain so many times more than any deviation, whose
#: draws repeat too.
OF_NOISE, REPEATED, REPEATS = ("repeats", "low_bits"), "random numbers are those of", 1.1
#: Unseen cases that must fail, beside one that passes; and where none does.
FAILING, FAILING_ALONE = 2, 4
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
        return f"{self.words}; predicts {self.cases} other cases, {self.failing} of which fail" if self.words else ""


def observed_of(run: Any, group: int = 0) -> Observed | None:
    """group: of rows or requests, those around it, where all are too many."""
    if isinstance(run, SampleRun):
        is_open = run.case.readings or run.case.may_raise or run.driver.distribution is not None
        return None if is_open else observed_draws(run, group)
    return observed_sets(run, group) if isinstance(run, FilterRun) else observed_steps(run, group)


#: Runs of other cases, those most like the failing one first, drawn when they are asked for and once.
Others = Callable[[], "list[Any]"]


def explained(run: Any, judgement: Judgement, others: Others, filter_order: FilterOrder | None = None,
              left_out: Iterable[str] = ()) -> Explanation:
    """What a run that failed is explained by. filter_order: the callable's (readings.py); left_out: explanations that
    are not tried, whatever their numbers."""
    token = FILTER_ORDER.set(filter_order or "joint")
    try:
        return _explained(run, judgement, others, {_numberless(words) for words in left_out})
    finally:
        FILTER_ORDER.reset(token)


def _explained(run: Any, judgement: Judgement, others: Others, left_out: set[str]) -> Explanation:
    def tried(words: str, again: Callable[[str, Others], Explanation]) -> Explanation:
        return again(words, others) if words and _numberless(words) not in left_out else Explanation()

    if said := _said(run, judgement):
        return tried(said, _said_again)
    observed = observed_of(run, judgement.group)
    if observed is None:
        return Explanation()
    if is_of_noise(judgement) and (noise := tried(observed.lost(), _noise_again)).words:
        return noise
    found = sorted(_candidates(observed, left_out), key=lambda item: -item[1])
    best = max([LEAST, *(nats for _, nats in found)])
    repeats, of = observed.repeats()
    if repeats > best * REPEATS and (noise := tried(f"{REPEATED} {of}", _noise_again)).words:
        return noise
    most = max(4, min(TRIED, (1 << 22) // observed.size))
    rule = _predicting(observed, _few(found, most), others) if best > LEAST else Explanation()
    return rule if rule.words else tried(judgement.suspect, noted_again)


def is_of_noise(judgement: Judgement) -> bool:
    """Is it random numbers that failed, not a distribution?"""
    of_places = judgement.name.startswith("correlation") and judgement.name != "correlation_requests"
    return bool(judgement.suspect) or judgement.name in OF_NOISE or of_places


def _few(found: list[tuple[Candidate, float]], most: int) -> dict[Candidate, float]:
    """The likeliest deviations, each in its likeliest regimes."""
    near = [(candidate, nats) for candidate, nats in found if nats > found[0][1] - WINDOW]
    names = list(dict.fromkeys(candidate.name for candidate, _ in near))[:most]
    return dict(item for name in names for item in [item for item in near if item[0].name == name][:REGIMES])


def _candidates(observed: Observed, left_out: set[str]) -> Iterator[tuple[Candidate, float]]:
    """Deviations, each with the nats by which it beats the sound rule less its cost, that leave at most a quarter of
    what that cannot give."""
    sound, tiny = observed.sound, observed.tiny
    cannot, everything = np.count_nonzero(sound < tiny), np.ones(len(sound), bool)
    regimes = [(regime.words, regime.here, regime.is_outcome, regime.is_rare) for regime in observed.regimes]
    regimes += [(words, everything, False, False) for words in observed.always]
    for wrong in observed.rules():
        if _numberless(wrong.name) in left_out:
            continue
        number = () if not wrong.has_number else (_likeliest(
            [(wrong, observed)], SEARCHED if observed.size < 1 << 18 else SEARCHED // 2),)
        try:
            these = wrong.make(*number)()
        except Error:  # no distribution follows from it here
            continue
        gain, left = these - sound, these < tiny
        for words, here, is_outcome, is_rare in regimes:
            if is_outcome and not wrong.name.startswith(("residuals", "recovered tokens", "of the residual")):
                continue
            cost = COST * (bool(words) + wrong.is_rare + is_rare)
            nats = float(gain[here].sum()) - cost
            if nats > 0.0 and np.count_nonzero(np.where(here, left, sound < tiny)) <= 0.25 * cannot:
                yield Candidate(wrong.name, number, words, cost), nats


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

    def look(x: float) -> None:
        number = float(round(np.exp(x))) if wrong.is_whole else float(np.exp(x))
        if number not in seen:
            seen[number] = score(number)

    low, high = np.log(wrong.low), np.log(wrong.high)
    if low < 0.0 < high and not wrong.is_whole:  # about what changes nothing, finely
        begin: Sequence[float] = [sign * x for x in (0.01, 0.025, 0.06, 0.15, 0.4, 1.0, 2.0) for sign in (-1.0, 1.0)]
    else:
        begin = list(np.linspace(low, high, 5))
    for x in begin:
        look(float(np.clip(x, low, high)))
    for i in range(steps):
        if i == 3 and max(seen.values()) <= 0.0:  # no better than the sound rule anywhere
            break
        known = sorted(seen)
        i = known.index(max(known, key=lambda number: seen[number]))
        for beside in known[max(i - 1, 0):i] + known[i + 1:i + 2]:
            look(float(np.log(beside * known[i]) / 2.0))
    best = max(seen, key=lambda one: seen[one])
    plain = [(2.0 ** round(np.log2(best)), AS_LIKELY if wrong.is_whole else 1.0),
             *((float(f"{best:.{digits}g}"), 1.0) for digits in (1, 2, 3))]
    return next((one for one, nats in plain if wrong.low <= one <= wrong.high and score(one) > seen[best] - nats), best)


def _numberless(name: str) -> str:
    return re.sub(r"\d[\d.e+-]*", "{}", name)


class Place:
    """Another case, and what deviations say of it."""

    def __init__(self, observed: Observed, names: set[str]) -> None:
        self.observed = observed
        self.wrong: dict[str, Deviation] = {}
        for wrong in observed.rules():
            if wrong.name in names:
                self.wrong.setdefault(wrong.name, wrong)
        self.fails = observed.of_sound.refuted(np.ones(len(observed.sound), bool), observed.draws) > SOUND_REFUTED
        self._log_p: dict[str, np.ndarray] = {}
        self._refutes: dict[str, bool] = {}

    def _rule(self, candidate: Candidate) -> Rule | None:
        wrong = self.wrong.get(candidate.name)
        return None if wrong is None else wrong.make(*candidate.number)

    def gain(self, candidate: Candidate) -> float:
        observed = self.observed
        if candidate.rule not in self._log_p:
            these = observed.sound
            try:
                rule = self._rule(candidate)
                these = these if rule is None else np.where(rule.excused(), these, rule())
            except Error:
                pass
            self._log_p[candidate.rule] = these
        return float((self._log_p[candidate.rule] - observed.sound)[observed.here(candidate.regime)].sum())

    def refutes(self, candidate: Candidate) -> bool:
        if candidate.words not in self._refutes:
            observed, here, rule = self.observed, self.observed.here(candidate.regime), self._rule(candidate)
            self._refutes[candidate.words] = self.fails if rule is None or not here.any() else max(
                observed.of_sound.refuted(~here, observed.draws) if not here.all() else 0.0,
                rule.refuted(here, observed.draws)) > REFUTED
        return self._refutes[candidate.words]


def _predicting(observed: Observed, nats: dict[Candidate, float], others: Others) -> Explanation:
    """The likeliest deviation over all cases that none refutes, its number learned from none, then from one half of
    them."""
    names, places, spent = {candidate.name for candidate in nats}, [], 0
    for run in others():
        other = observed_of(run) if spent < ELEMENTS else None
        if other is not None:
            spent += other.size * len(names)
            places.append(Place(other, names))
    halves = [(places[::2], places[1::2]), (places[1::2], places[::2])] if any(each.number for each in nats) else []
    for teaching, unseen in [([], places), *halves]:
        if (found := _best(_learned(observed, nats, teaching) if teaching else nats, places, unseen)).words:
            return found
    return Explanation()


def _learned(observed: Observed, nats: dict[Candidate, float], teaching: list[Place]) -> dict[Candidate, float]:
    """Those with a number, with that which is likeliest in these cases too: the failing one may leave it open."""
    own = {wrong.name: wrong for wrong in observed.rules()}
    number = {name: (_likeliest([(own[name], observed), *((place.wrong[name], place.observed) for place in teaching
                                                          if name in place.wrong)]),)
              for name in {candidate.name for candidate in nats if candidate.number}}
    return {dataclasses.replace(candidate, number=number[candidate.name]): value for candidate, value in nats.items()
            if candidate.number}


def _best(nats: dict[Candidate, float], places: list[Place], unseen: list[Place]) -> Explanation:
    """unseen: by which it is tried whether a deviation predicts."""
    if not _is_enough([place.fails for place in unseen]):
        return Explanation()
    total = {candidate: value + sum(place.gain(candidate) for place in places) for candidate, value in nats.items()}
    ordered = sorted(total, key=lambda candidate: -total[candidate])
    failing = [place for place in unseen if place.fails]
    for candidate in ordered[:JUDGED]:
        if any(place.refutes(candidate) for place in (*failing, *places)):
            continue
        alike = [other for other in ordered if other.regime == candidate.regime and other.cost == candidate.cost
                 and abs(total[other] - total[candidate]) < 1e-9 * abs(total[candidate])]
        if len(alike) > AS_WELL:
            return Explanation()
        every = list(dict.fromkeys([candidate, *alike]))
        return Explanation(", or ".join(dict.fromkeys(other.words for other in every)), len(unseen), len(failing),
                           tuple(dict.fromkeys(other.rule for other in every)))
    return Explanation()


def _said(run: Any, judgement: Judgement) -> str:
    """What a run shows of itself, without a rule of probabilities."""
    if judgement.name == "wrong_values":
        return values_wrongly(run)
    if judgement.name in ("not_a_draft", "well_formed") and isinstance(run, StepsRun):
        return emitted_wrongly(run)
    if isinstance(run, FilterRun) and (value := value_of_dropped(run)):
        return f"dropped tokens are at {value:.6g}, not at -infinity"
    return ""


def _is_enough(fails: list[bool]) -> bool:
    """Unseen cases, each of which an explanation predicts: do enough fail, and does one pass?"""
    return sum(fails) >= (FAILING_ALONE if all(fails) else FAILING)


def _judged(run: Any) -> Judgement:
    return run.judge(np.exp(-SOUND_REFUTED))


def _again(words: str, runs: Iterable[Any], shows: Callable[[Any], tuple[bool, bool] | None],
           share: float = 0.5) -> Explanation:
    """words, if more than this share of the other cases that fail show the same. shows(run): does it fail, and does it
    show it? None: it cannot be asked."""
    told = [shown for run in runs if (shown := shows(run)) is not None]
    fails, same = [each for each, _ in told], sum(each for _, each in told)
    is_borne_out = same > share * sum(fails) and _is_enough(fails)
    return Explanation(words, len(told), same, (words,)) if is_borne_out else Explanation()


def _said_again(words: str, others: Others) -> Explanation:
    """words, if every other case that fails shows the same."""
    def shows(run: Any) -> tuple[bool, bool]:
        return (found := _judged(run)).biased, found.biased and _said(run, found) == words

    return _again(words, others(), shows, 0.999)


def _noise_again(words: str, others: Others) -> Explanation:
    """words, if they are what most other cases show that show a dependence of random numbers."""
    def shows(run: Any) -> tuple[bool, bool] | None:
        if (observed := observed_of(run)) is None:
            return None
        nats, of = observed.repeats()
        each = (observed.lost(), f"{REPEATED} {of}" if nats > LEAST else "")
        return any(each), words in each

    return _again(words, _drawn_possibly(others), shows)


def noted_again(words: str, others: Others) -> Explanation:
    """words, if the test of random numbers that said them says so of most other cases that fail."""
    def shows(run: Any) -> tuple[bool, bool]:
        return (found := _judged(run)).biased, _numberless(found.suspect) == _numberless(words)

    return _again(words, _drawn_possibly(others), shows)


def _drawn_possibly(others: Others) -> list[Any]:
    """The other cases; none where one has draws that cannot come: shared random numbers leave the distribution of each
    as it is."""
    return [] if any((each := _judged(run)).biased and each.name in OF_SUPPORT for run in others()) else others()
