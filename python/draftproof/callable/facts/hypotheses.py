"""Which wrong rule gives what came, and predicts what comes.

A rule is chosen by the draws of the failing case: the probability that it gives them, against the sound rule's. It is
named only if it holds in other cases too (fresh seeds, other rows, another batch, other values of the parameters,
regimes that pass): there it is put in the place of the sound rule, and an audit of the draws against it, row by row,
must find nothing, while it does find the sound rule wrong in some. A rule may hold in a regime alone; the sound one
must hold beyond.

The rules: row_hypotheses.py and filter_hypotheses.py, which samplers, filters and verifiers share, noise_hypotheses.py,
and draw_hypotheses.py of samplers, kept_hypotheses.py of filters, step_hypotheses.py of verifiers.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Callable, Iterable, Iterator

import numpy as np

from ..._core import Error
from ..cases.filter_cases import FilterRun
from ..cases.verify_sweep import StepsRun
from ..evidence.sample_judge import Judgement, SampleRun
from .accounts import Account, Judged
from .draw_hypotheses import account_of_draws
from .emitted import emitted_wrongly
from .filter_hypotheses import FILTER_ORDER, Family, FilterOrder, InPart, Rare
from .kept_hypotheses import account_of_kept, value_of_dropped, values_wrongly
from .step_hypotheses import account_of_steps

#: Nats by which a rule must beat the sound one in the failing case; what one of a regime, of a part or of a rare fault
#: costs beside a
#: plain one; within how many of the best one rules are tried elsewhere.
LEAST, COST, WINDOW = 10.0, 5.0, 60.0
#: Rules that are tried elsewhere, regimes of each, and rules that are judged there.
TRIED, REGIMES, JUDGED = 32, 6, 16
#: Steps of the search for a rule's number; nats that one draw may count against one while it is sought, and within
#: which a
#: power of two is as likely, as what a largest number of tokens is not far beyond those that came.
SEARCHED, DISBELIEF, AS_LIKELY = 8, -3.0, 5.0
#: Logits times rules, in all other cases together.
ELEMENTS = 1 << 25
#: The level at which a rule is refuted in a case, and at which the sound one is.
REFUTED, SOUND_REFUTED = np.log(1e4), np.log(1e3)
#: Rules that explain the draws alike, to the last digit, are named together, so many at most.
AS_WELL = 3
#: Tests of random numbers, not of a distribution; shared ones must explain so many times more than any rule, whose
#: draws repeat too.
OF_NOISE, REPEATED, REPEATS = ("repeats", "low_bits"), "random numbers are those of", 1.1
#: Unseen cases that must fail, beside one that passes; and where none does.
FAILING, FAILING_ALONE = 2, 4
#: Tests that single draws fail: shared random numbers leave their distributions as they are.
OF_SUPPORT = ("support", "masked_token", "well_formed", "not_a_draft", "wrong_set")


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A rule by its name in a regime, and what it costs."""

    name: str
    regime: str
    cost: float

    @property
    def words(self) -> str:
        return f"{self.name} in {self.regime}" if self.regime else self.name


@dataclasses.dataclass(frozen=True)
class Explanation:
    """words: '' where nothing explains what came. cases: others that it predicts, `failing` of which fail; n: what was
    drawn there; is_fit: its number is learned from all of them."""

    words: str = ""
    cases: int = 0
    failing: int = 0
    n: int = 0
    is_fit: bool = False
    names: tuple[str, ...] = ()  # of the rules, without their regimes

    def __str__(self) -> str:
        return (f"{self.words}; {'fits' if self.is_fit else 'predicts'} {self.cases} other cases, {self.failing} of "
                f"which fail, {self.n:,} draws" if self.words else "")


def account_of(run: Any, group: int = 0) -> Account | None:
    """group: of rows or requests, those around it, where all are too many."""
    if isinstance(run, SampleRun):
        return (None if run.case.readings or run.case.may_raise or run.driver.distribution is not None
                else account_of_draws(run, group))
    if isinstance(run, FilterRun):
        return account_of_kept(run, group)
    return account_of_steps(run, group)


def explained(run: Any, judgement: Judgement, others: Iterable[Any], filter_order: FilterOrder | None = None,
              left_out: Iterable[str] = ()) -> Explanation:
    """What a run that failed is explained by. others: runs of other cases, drawn when they are asked for, those most
    like it first;
    filter_order: the callable's (readings.py); left_out: explanations that are not tried, whatever their numbers."""
    token = FILTER_ORDER.set(filter_order or "joint")
    try:
        return _explained(run, judgement, others, {_numberless(words) for words in left_out})
    finally:
        FILTER_ORDER.reset(token)


def _explained(run: Any, judgement: Judgement, others: Iterable[Any], left_out: set[str]) -> Explanation:
    def tried(words: str, again: Callable[[str, Iterable[Any]], Explanation]) -> Explanation:
        return again(words, others) if words and _numberless(words) not in left_out else Explanation()

    said = _said(run, judgement)
    if said:
        return tried(said, _said_again)
    account = account_of(run, judgement.group)
    if account is None:
        return Explanation()
    if is_of_noise(judgement) and (noise := tried(account.lost(), _noise_again)).words:
        return noise
    found = sorted(_candidates(account, left_out), key=lambda item: -item[1])
    best = max([LEAST, *(nats for _, nats in found)])
    repeats, of = account.repeats()
    if repeats > best * REPEATS and (noise := tried(f"{REPEATED} {of}", _noise_again)).words:
        return noise
    rule = _predicting(account, _few(found, max(4, min(TRIED, (1 << 22) // account.size))),
                       others) if best > LEAST else Explanation()
    return rule if rule.words else tried(judgement.suspect, noted_again)


def is_of_noise(judgement: Judgement) -> bool:
    """Is it random numbers that failed, not a distribution?"""
    of_places = judgement.name.startswith("correlation") and judgement.name != "correlation_requests"
    return bool(judgement.suspect) or judgement.name in OF_NOISE or of_places


def _few(found: list[tuple[Candidate, float]], most: int) -> dict[Candidate, float]:
    """The likeliest rules, each in its likeliest regimes."""
    nats = [(candidate, nats) for candidate, nats in found if nats > found[0][1] - WINDOW]
    names = list(dict.fromkeys(candidate.name for candidate, _ in nats))[:most]
    return {candidate: value for name in names for candidate,
            value in [item for item in nats if item[0].name == name][:REGIMES]}


def _candidates(account: Account, left_out: set[str]) -> Iterator[tuple[Candidate, float]]:
    """Rules, each with the nats by which it beats the sound one less its cost, that leave at most a quarter of what
    that cannot give."""
    sound, tiny = account.sound, account.tiny
    cannot, everything = np.count_nonzero(sound < tiny), np.ones(len(sound), bool)
    regimes = [(regime.words, regime.here, regime.is_outcome, regime.is_rare) for regime in account.regimes]
    regimes += [(words, everything, False, False) for words in account.always]
    for name, rule in _numbered(account):
        if _numberless(name) in left_out:
            continue
        try:
            these = rule()
        except Error:  # no distribution follows from it here
            continue
        gain, left = these - sound, these < tiny
        is_rare, in_part = isinstance(name, Rare), isinstance(name, InPart)
        for words, here, is_outcome, is_rare_regime in regimes:
            if is_outcome and not name.startswith(("residuals", "recovered tokens", "of the residual")):
                continue
            cost = COST * (bool(words) + in_part + is_rare + is_rare_regime)
            nats = float(gain[here].sum()) - cost
            if nats > 0.0 and np.count_nonzero(np.where(here, left, sound < tiny)) <= 0.25 * cannot:
                yield Candidate(name, words, cost), nats


class Named(str):
    """A rule's name with its number; family: the name without it."""

    family: str = ""
    number: float = 0.0


class RareNamed(Rare, Named):
    pass


def _named(name: str, number: float) -> Named:
    words = name.replace("{}", f"{number:.6g}")
    out = RareNamed(words) if isinstance(name, Rare) else Named(words)
    out.family, out.number = name, number
    return out


def _numbered(account: Account) -> Iterator[tuple[str, Judged]]:
    """The rules, of a family that with the likeliest number."""
    for name, rule in account.rules():
        if isinstance(rule, Family):
            number = _likeliest(lambda number, rule=rule: _score(rule, number, account), rule,
                                SEARCHED if account.size < 1 << 18 else SEARCHED // 2)
            yield _named(name, number), rule.make(number)
        else:
            yield name, rule


def _score(family: Family, number: float, account: Account) -> float:
    try:
        return float(np.maximum(family.make(number)() - account.sound, DISBELIEF).sum())
    except Error:
        return -np.inf


def _likeliest(score: Callable[[float], float], family: Family, steps: int) -> float:
    """The likelihood rises up to the number and falls behind it: halves, of logarithms, on both sides of the best so
    far. Of numbers
    that are about as likely the one that people write: a power of two, then the shortest decimal."""
    seen: dict[float, float] = {}

    def at(x: float) -> None:
        number = float(round(np.exp(x))) if family.is_whole else float(np.exp(x))
        if number not in seen:
            seen[number] = score(number)

    if family.low < 1.0 < family.high and not family.is_whole:  # about what changes nothing, finely
        begin = [sign * x for x in (0.01, 0.025, 0.06, 0.15, 0.4, 1.0, 2.0) for sign in (-1.0, 1.0)]
    else:
        begin = list(np.linspace(np.log(family.low), np.log(family.high), 5))
    for x in begin:
        at(float(np.clip(x, np.log(family.low), np.log(family.high))))
    for i in range(steps):
        if i == 3 and max(seen.values()) <= 0.0:  # no better than the sound rule anywhere
            break
        known = sorted(seen)
        i = known.index(max(known, key=lambda number: seen[number]))
        for beside in known[max(i - 1, 0):i] + known[i + 1:i + 2]:
            at(float(np.log(beside * known[i]) / 2.0))
    best = max(seen, key=lambda one: seen[one])
    plain = [(2.0 ** round(np.log2(best)), AS_LIKELY if family.is_whole else 1.0),
             *((float(f"{best:.{digits}g}"), 1.0) for digits in (1, 2, 3))]
    return next((one for one, nats in plain if family.low <= one <= family.high and score(one) > seen[best] - nats),
                best)


def _numberless(name: str) -> str:
    return re.sub(r"\d[\d.e+-]*", "{}", name)


class Elsewhere:
    """Another case, and what rules say of it."""

    def __init__(self, run: Any, account: Account, names: set[str]) -> None:
        self.n, self.account = run.n, account
        self.rules: dict[str, Judged] = {}
        self.families: dict[str, Family] = {}
        families = {name.family for name in names if isinstance(name, Named)}
        for name, rule in account.rules():
            if isinstance(rule, Family):
                if name in families:
                    self.families[name] = rule
            elif name in names and name not in self.rules:
                self.rules[name] = rule
        everything = np.ones(len(account.sound), bool)
        self.fails = account.of_sound.refuted(everything, account.draws) > SOUND_REFUTED
        self._log_p: dict[str, np.ndarray | None] = {}

    def rule(self, name: str) -> Judged | None:
        if isinstance(name, Named) and name not in self.rules and name.family in self.families:
            self.rules[name] = self.families[name.family].make(name.number)
        return self.rules.get(name)

    def log_p(self, name: str) -> np.ndarray | None:
        if name not in self._log_p:
            try:
                rule = self.rule(name)
                self._log_p[name] = None if rule is None else np.where(rule.excused(), self.account.sound, rule())
            except Error:
                self._log_p[name] = None
        return self._log_p[name]

    def gain(self, candidate: Candidate) -> float:
        these = self.log_p(candidate.name)
        return 0.0 if these is None else float((these - self.account.sound)[self.account.here(candidate.regime)].sum())

    def refutes(self, candidate: Candidate) -> bool:
        account = self.account
        here = account.here(candidate.regime)
        rule = self.rule(candidate.name)
        if rule is None or not here.any():
            return self.fails
        against = account.of_sound.refuted(~here, account.draws) if not here.all() else 0.0
        return max(against, rule.refuted(here, account.draws)) > REFUTED


def _predicting(account: Account, nats: dict[Candidate, float], others: Iterable[Any]) -> Explanation:
    """The likeliest rule over all cases that none refutes."""
    names, places, spent = {candidate.name for candidate in nats}, [], 0
    for run in others:
        other = account_of(run) if spent < ELEMENTS else None
        if other is not None:
            spent += other.size * len(names)
            places.append(Elsewhere(run, other, names))
    found = _best(account, nats, places, places[::2], places[1::2])
    return found if found.words or not any(isinstance(name, Named) for name in names) else _best(account, nats, places,
            places, places)


def _best(account: Account, nats: dict[Candidate, float], places: list[Elsewhere], teaching: list[Elsewhere],
          kept: list[Elsewhere]) -> Explanation:
    """teaching: of which numbers are learned; kept: by which a rule with a number is tried."""
    learned = {candidate.name: _learned(candidate.name, account, teaching) for candidate in nats}
    nats = {dataclasses.replace(candidate, name=learned[candidate.name]): value for candidate, value in nats.items()}
    total = {candidate: value + sum(place.gain(candidate) for place in places) for candidate, value in nats.items()}
    ordered = sorted(total, key=lambda candidate: -total[candidate])
    for candidate in ordered[:JUDGED]:
        unseen = kept if isinstance(candidate.name, Named) else places
        failing = [place for place in unseen if place.fails]
        if not _is_enough([place.fails for place in unseen]) or any(place.refutes(candidate)
                for place in (*failing, *places)):
            continue
        alike = [other for other in ordered if other.regime == candidate.regime and other.cost == candidate.cost
                 and abs(total[other] - total[candidate]) < 1e-9 * abs(total[candidate])]
        words = ", or ".join(dict.fromkeys(other.words for other in [candidate, *alike]))
        is_fit = isinstance(candidate.name, Named) and teaching is kept
        return Explanation(words, len(unseen), len(failing), sum(place.n for place in unseen), is_fit,
                           tuple(dict.fromkeys(other.name for other in [candidate, *alike]))) if len(
                                   alike) <= AS_WELL else Explanation()
    return Explanation()


def _learned(name: str, account: Account, places: list[Elsewhere]) -> str:
    """A rule with the number that is likeliest in all these cases: the failing one may leave it open."""
    if not isinstance(name, Named):
        return name
    own: Any = next(rule for other, rule in account.rules() if other == name.family)
    of: list[Any] = [(own, account),
                     *((place.families[name.family], place.account) for place in places
                       if name.family in place.families)]
    return _named(name.family, _likeliest(lambda number: sum(_score(family, number, other) for family, other in of),
                                          own, SEARCHED))


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


def _again(words: str, others: Iterable[Any], shows: Callable[[Any], tuple[bool, bool] | None],
           share: float = 0.5) -> Explanation:
    """words, if more than this share of the other cases that fail show the same. shows(run): does it fail, and does it
    show it? None: it cannot be asked."""
    told = [(run.n, *shown) for run in others if (shown := shows(run)) is not None]
    fails, same = [each for _, each, _ in told], sum(each for _, _, each in told)
    is_borne_out = same > share * sum(fails) and _is_enough(fails)
    return Explanation(words, len(told), same, sum(n for n, _, _ in told),
                       names=(words,)) if is_borne_out else Explanation()


def _said_again(words: str, others: Iterable[Any]) -> Explanation:
    """words, if every other case that fails shows the same."""
    def shows(run: Any) -> tuple[bool, bool]:
        found = run.judge(np.exp(-SOUND_REFUTED))
        return found.biased, found.biased and _said(run, found) == words

    return _again(words, others, shows, 0.999)


def _noise_again(words: str, others: Iterable[Any]) -> Explanation:
    """words, if they are what most other cases show that show a dependence of random numbers."""
    def shows(run: Any) -> tuple[bool, bool] | None:
        if (account := account_of(run)) is None:
            return None
        nats, of = account.repeats()
        each = (account.lost(), f"{REPEATED} {of}" if nats > LEAST else "")
        return any(each), words in each

    return _again(words, _drawn_possibly(others), shows)


def noted_again(words: str, others: Iterable[Any]) -> Explanation:
    """words, if the test of random numbers that said them says so of most other cases that fail."""
    def shows(run: Any) -> tuple[bool, bool]:
        found = run.judge(np.exp(-SOUND_REFUTED))
        return found.biased, _numberless(found.suspect) == _numberless(words)

    return _again(words, _drawn_possibly(others), shows)


def _drawn_possibly(others: Iterable[Any]) -> list[Any]:
    """The other cases; none where one has draws that cannot come: shared random numbers leave the distribution of each
    as it is."""
    kept = list(others)
    found = (run.judge(np.exp(-SOUND_REFUTED)) for run in kept)
    return [] if any(each.biased and each.name in OF_SUPPORT for each in found) else kept


class Kept:
    """What an iterator gave, to be asked again."""

    def __init__(self, given: Iterable[Any]) -> None:
        self.given = iter(given)
        self.kept: list[Any] = []

    def __iter__(self) -> Iterator[Any]:
        yield from self.kept
        for one in self.given:
            self.kept.append(one)
            yield one
