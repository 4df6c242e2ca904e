"""Which wrong rule would give what came: faults that engines have had, each with the probability that it gives every
token. The likeliest, if it beats the sound rule by far, names the suspect.

A hypothesis that is off in one regime alone is given the draws of that regime, the sound rule the others. Each gives
every token a share of a thousandth, so that a draw that nothing explains counts against all. Hypotheses that explain the failing
case about as well are told apart by what came in other cases, of which most passed: there each must explain the draws too, or be
wrong in this case alone, which costs it some nats.

The rules: row_hypotheses.py and filter_hypotheses.py, which samplers, filters and verifiers share, noise_hypotheses.py, and
draw_hypotheses.py of samplers, kept_hypotheses.py of filters, step_hypotheses.py of verifiers.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Iterable, Iterator

import numpy as np

from .._core import Error
from .accounts import ELEMENTS, Account, Regime
from .draw_hypotheses import account_of_draws
from .emitted import emitted_wrongly
from .filter_cases import FilterRun
from .filter_hypotheses import FILTER_ORDER, FilterOrder, InPart, Rare
from .kept_hypotheses import account_of_kept, value_of_dropped, values_wrongly
from .sample_judge import Judgement, SampleRun
from .step_hypotheses import account_of_steps
from .suspects import OF_NOISE
from .verify_sweep import StepsRun

#: Nats by which a hypothesis must beat the sound rule (the dependent draws of
#: shared random numbers feign some), a later hypothesis an earlier one, a regime all draws, a rule of a rare fault (Rare) any other, a
#: rule of this case alone one of all.
#: Others that explain the draws as well, to the last digit, are named too, so many in all.
LEAST, LEAST_OF_NOISE, MORE, MORE_IN_REGIME, MORE_IF_RARE, HERE_ALONE = 10.0, 60.0, 3.0, 5.0, 5.0, 4.0
#: Nats within which a rule of all draws comes before one of a regime.
ALIKE = 1e-3
#: What a nat of being wrong elsewhere costs beyond that.
WRONG_ELSEWHERE = 0.03
AS_WELL = 3
#: What one other case may add or take, what it may take from a hypothesis that explains it less than another does, and what all of
#: them may add.
OF_ONE_RUN, BEHIND, ELSEWHERE_MOST = 6.0, 3.0, 90.0
#: Nats from which on other cases may make up what a hypothesis lacks: less than what it costs.
NEARLY = -4.9
#: Draws of a rule that is wrong repeat each other too: shared random numbers must explain so many times more than any rule.
REPEATS = 1.1
#: Standard deviations by which a rare rule may fall short of what it expects of itself; beyond how many a rule is only the nearest.
MISFIT, NEAREST = 8.0, 16.0
#: Hypotheses within so many nats of the best are tried on other cases, so many rules, on so many logits in all.
WINDOW, TRIED, ELSEWHERE = 40.0, 32, 1 << 25


@dataclasses.dataclass(frozen=True)
class Candidate:
    name: str
    regime: str
    nats: float
    is_rare_regime: bool = False
    is_rare: bool = False
    misfit: Callable[[], float] = dataclasses.field(default=lambda: 0.0, compare=False)  # of the rule in the regime, or the sound one beyond

    @property
    def words(self) -> str:
        return f"{self.name} in {self.regime}" if self.regime else self.name


def suspected(run: Any, judgement: Judgement, elsewhere: Iterable[Any] = (), filter_order: FilterOrder | None = None) -> str:
    """What a run that failed is explained by, in words; '' where nothing is. elsewhere: runs of other cases; filter_order: the
    callable's (readings.py)."""
    token = FILTER_ORDER.set(filter_order or "joint")
    try:
        return _suspected(run, judgement, elsewhere)
    finally:
        FILTER_ORDER.reset(token)


def _suspected(run: Any, judgement: Judgement, elsewhere: Iterable[Any]) -> str:
    if judgement.name == "masked_token":  # it says it
        return ""
    if judgement.name == "wrong_values":
        return values_wrongly(run)
    if judgement.name in ("not_a_draft", "well_formed") and isinstance(run, StepsRun):
        return emitted_wrongly(run)
    if isinstance(run, FilterRun) and (value := value_of_dropped(run)):
        return f"dropped tokens are at {value:.6g}, not at -infinity"
    of_noise = judgement.name in OF_NOISE or judgement.name.startswith("correlation")
    account = account_of(run, judgement.group)
    if account is None:
        return ""
    return (of_noise and account.lost()) or _named(account, LEAST_OF_NOISE if of_noise else LEAST, elsewhere)


def account_of(run: Any, group: int = 0) -> Account | None:
    """group: of rows or requests, those around it, where all are too many."""
    if isinstance(run, SampleRun):
        return None if run.case.readings or run.case.may_raise or run.driver.distribution is not None else account_of_draws(run, group)
    if isinstance(run, FilterRun):
        return account_of_kept(run, group)
    return account_of_steps(run, group)


def _named(account: Account, least: float, elsewhere: Iterable[Any]) -> str:
    if (account.sound < account.tiny).any():  # something is wrong for certain
        least /= 2.0
    found = list(_candidates(account, min(least, NEARLY)))
    repeats, of = account.repeats()
    if found:
        top = max(candidate.nats for candidate in found)
        found = [candidate for candidate in found if candidate.nats > top - WINDOW]
        best_of: dict[str, float] = {}
        for candidate in found:
            best_of[candidate.name] = max(candidate.nats, best_of.get(candidate.name, 0.0))
        likeliest = sorted(best_of, key=lambda name: -best_of[name])[:TRIED]
        found = [candidate for candidate in found if candidate.name in likeliest]
    if repeats > max([least, *(REPEATS * candidate.nats for candidate in found)]) + (MORE if found else 0.0):
        return f"random numbers are those of {of}"
    gains = _gains(found, elsewhere) if len(found) > 1 or (found and found[0].nats <= least) else {}
    best, words, regime, chosen = -np.inf, [], "", found[0] if found else None
    for candidate in found:
        gain = gains.get(candidate, 0.0)
        if candidate.nats + max(gain, 0.0) <= least:
            continue
        wrong = max(0.0, -HERE_ALONE - gain)  # elsewhere, beyond what it costs to be wrong there
        nats = candidate.nats + min(max(gain, -HERE_ALONE), ELSEWHERE_MOST) - min(WRONG_ELSEWHERE * wrong, 3.0 * HERE_ALONE)
        is_simpler = bool(regime) and not candidate.regime and abs(nats - best) < ALIKE
        if nats > best + MORE and candidate.is_rare and candidate.misfit() > MISFIT:
            continue
        if nats > best + MORE or is_simpler:
            best, words = nats, [candidate.words]
            regime = candidate.regime
            chosen = candidate
        elif len(words) < AS_WELL and candidate.regime == regime and candidate.words not in words and abs(nats - best) < 1e-9 * abs(best):
            words.append(candidate.words)
    if words and chosen is not None and chosen.misfit() > NEAREST:
        words[0] = f"nearest known rule: {words[0]}"
    return ", or ".join(words)


def _candidates(account: Account, least: float) -> Iterator[Candidate]:
    """Rules that beat the sound one, by more than `least` nats less their cost, and leave at most a quarter of what it cannot give."""
    sound, tiny = account.sound, account.tiny
    impossible, everything = np.count_nonzero(sound < tiny), np.ones(len(sound), bool)
    for name, log_p in account.rules():
        try:
            these = log_p()
        except Error:  # no distribution follows from it here
            continue
        gain, left = these - sound, these < tiny
        is_rare, in_part = isinstance(name, Rare), isinstance(name, InPart)
        for i, regime in enumerate([*account.regimes, *(Regime(words, everything) for words in account.always)]):
            if (regime.is_outcome and not name.startswith(("residuals", "recovered tokens", "of the residual"))) or (in_part and i):
                continue
            explained = float(gain[regime.here].sum())
            nats = explained - (MORE_IN_REGIME if i or in_part else 0.0) - MORE_IF_RARE * (is_rare + regime.is_rare)
            if explained > 0.0 and nats > least and np.count_nonzero(np.where(regime.here, left, sound < tiny)) <= 0.25 * impossible:
                yield Candidate(name, regime.words, nats, regime.is_rare, is_rare, lambda rule=log_p, here=regime.here: max(
                    rule.misfit(here) if hasattr(rule, "misfit") else 0.0, account.misfit(~here)))


def _gains(candidates: list[Candidate], elsewhere: Iterable[Any]) -> dict[Candidate, float]:
    """Nats by which each beats the sound rule in those other runs, of each run a few at most: a rule should do so in many. A rare regime
    gains nothing."""
    gains = dict.fromkeys(candidates, 0.0)
    names, spent = {candidate.name for candidate in candidates}, 0
    for run in elsewhere:
        account = account_of(run)
        if account is None or account.size > ELEMENTS // 4:
            continue
        spent += account.size * len(names)
        if spent > ELSEWHERE:
            break
        here = {regime.words: regime.here for regime in account.regimes} | dict.fromkeys(account.always, np.ones(len(account.sound), bool))
        done, nats_of = set(), {candidate: 0.0 for candidate in candidates if candidate.regime in here}
        of_name: dict[str, list[Candidate]] = {}
        for candidate in nats_of:
            of_name.setdefault(candidate.name, []).append(candidate)
        for name, log_p in account.rules():
            if name not in names or name in done:
                continue
            done.add(name)
            try:
                gain = log_p() - account.sound
            except Error:
                continue
            for candidate in of_name.get(name, []):
                nats_of[candidate] = float(gain[here[candidate.regime]].sum())
        best = max([0.0, *nats_of.values()])
        for candidate, nats in nats_of.items():
            gains[candidate] += float(np.clip(nats, -OF_ONE_RUN, OF_ONE_RUN)) - min(best - nats, BEHIND)
    return {candidate: min(gain, 0.0) if candidate.is_rare_regime else gain for candidate, gain in gains.items()}
