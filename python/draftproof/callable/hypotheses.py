"""Which wrong rule would give what came: faults that engines have had, each with the probability that it gives every
token. The likeliest, if it beats the sound rule by far, names the suspect.

A hypothesis that is off in one regime alone is given the draws of that regime, the sound rule the others. Each gives
every token a share of a thousandth, so that a draw that nothing explains counts against all. Hypotheses that explain the failing
case about as well are told apart by what came in other cases, of which most passed: there each must explain the draws too, or be
wrong in this case alone, which costs it some nats.

The rules: row_hypotheses.py and filter_hypotheses.py, which samplers, filters and verifiers share, noise_hypotheses.py, and
step_hypotheses.py of verifiers.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, Callable, Iterable, Iterator

import numpy as np

from .._core import Error
from . import evidence
from .filter_cases import FilterRun
from .filter_hypotheses import FILTER_ORDER, PRECISIONS, SORTED, FilterOrder, InPart, Params, Rare, as_bfloat16, as_half, rare_as
from .noise_hypotheses import lost_of_seeds, repeats_of, shared_sums, wrong_draws
from .row_hypotheses import (
    Given,
    beside_others,
    compacted,
    evenly,
    extreme_rows,
    folded,
    in_order_of,
    mixed_rows,
    moved_down,
    moved_from,
    neighbours,
    probabilities,
    wrong_rows,
)
from .sample_cases import OFF
from .sample_judge import Judgement, SampleRun
from .suspects import OF_NOISE
from .verify_sweep import StepsRun, drafts_of

#: Share of a token that comes whatever the rule is; nats by which a hypothesis must beat the sound rule (the dependent draws of
#: shared random numbers feign some), a later hypothesis an earlier one, a regime all draws, a rule of a rare fault (Rare) any other, a
#: rule of this case alone one of all.
#: Others that explain the draws as well, to the last digit, are named too, so many in all.
STRAY, LEAST, LEAST_OF_NOISE, MORE, MORE_IN_REGIME, MORE_IF_RARE, HERE_ALONE = 1e-3, 10.0, 60.0, 3.0, 5.0, 5.0, 4.0
#: Nats within which a rule of all draws comes before one of a regime.
ALIKE = 1e-3
#: What a nat of being wrong elsewhere costs beyond that.
WRONG_ELSEWHERE = 0.03
AS_WELL = 3
#: What one other case may add or take, what it may take from a hypothesis that explains it less than another does, and what all of
#: them may add.
OF_ONE_RUN, BEHIND, ELSEWHERE_MOST = 6.0, 3.0, 90.0
#: Nats of the chance that places of a batch are a stride apart, below which that is no regime.
BY_CHANCE = 3.4
#: Nats from which on other cases may make up what a hypothesis lacks: less than what it costs.
NEARLY = -4.9
#: Draws of a rule that is wrong repeat each other too: shared random numbers must explain so many times more than any rule.
REPEATS = 1.1
#: Standard deviations by which a rare rule may fall short of what it expects of itself; beyond how many a rule is only the nearest.
MISFIT, NEAREST = 8.0, 16.0
#: Hypotheses within so many nats of the best are tried on other cases, so many rules, on so many logits in all.
WINDOW, TRIED, ELSEWHERE = 40.0, 32, 1 << 25
#: (below, above) which a parameter may have a way of its own.
RANGES = {"temperature": ((1e-5, 1e-3, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0), (1.0, 2.0, 4.0)), "top_k": ((), (0, 1, 8, 32, 64, 128, 256, 1024)),
          "top_p": ((0.1, 0.5, 0.9, 1.0), (0.9, 0.95, 0.98)), "min_p": ((0.01,), (0.0, 0.5))}
#: Logits that a hypothesis is tried on, at most.
ELEMENTS = 1 << 21

#: Of what came [n]: log probabilities under a rule, by its name.
Rules = Iterator[tuple[str, Callable[[], np.ndarray]]]


@dataclasses.dataclass(frozen=True)
class Regime:
    """words: '' of all; here: [n]; is_outcome: it says what came of a draft, so only of what was drawn then it tells; is_rare: as Rare."""

    words: str
    here: np.ndarray
    is_outcome: bool = False
    is_rare: bool = False


@dataclasses.dataclass(frozen=True)
class Account:
    """What came in a run, as rules see it. sound: [n] log probabilities under the sound one, of what cannot come below `tiny`; size:
    logits that a rule is tried on; repeats(): nats for draws that repeat others, and of which; lost(): seeds that draw alike;
    misfit: of the sound rule, as OfRows.misfit."""

    sound: np.ndarray
    tiny: float
    rules: Callable[[], Rules]
    regimes: list[Regime]
    size: int
    always: list[str] = dataclasses.field(default_factory=list)  # regimes that all of it is in
    repeats: Callable[[], tuple[float, str]] = lambda: (0.0, "")
    lost: Callable[[], str] = lambda: ""
    misfit: Callable[[np.ndarray], float] = lambda here: 0.0


@dataclasses.dataclass(frozen=True, eq=False)
class OfRows:
    """Log probabilities of draws [n] of rows that a rule gives. row, token: [n]."""

    given: Given
    row: np.ndarray
    token: np.ndarray

    def __call__(self) -> np.ndarray:
        return log_of(probabilities(self.given)[self.row, self.token].astype(np.float64), self.given.logits.shape[1])

    def misfit(self, here: np.ndarray) -> float:
        """Standard deviations by which the log likelihood of the draws `here` is below what the rule expects."""
        short, variance = shortfall(probabilities(self.given), self.row[here], self.token[here])
        return short / float(np.sqrt(max(variance, 1.0)))


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
        return _of_values(run)
    if judgement.name in ("not_a_draft", "well_formed") and isinstance(run, StepsRun):
        return emitted_wrongly(run)
    if isinstance(run, FilterRun) and (value := _value_of_dropped(run)):
        return f"dropped tokens are at {value:.6g}, not at -infinity"
    of_noise = judgement.name in OF_NOISE or judgement.name.startswith("correlation")
    account = account_of(run, judgement.group)
    if account is None:
        return ""
    return (of_noise and account.lost()) or _named(account, LEAST_OF_NOISE if of_noise else LEAST, elsewhere)


def emitted_wrongly(run: StepsRun) -> str:
    """Of steps that emit more than an accepted prefix and one token."""
    out, drafts = np.concatenate(run.outputs), drafts_of(run)
    fell = np.cumsum(out != drafts, axis=1) > 0
    extra = (out != -1) & fell & np.roll(fell, 1, axis=1) & (np.arange(out.shape[1]) > 0)[None, :]  # behind the first that is no draft
    strange = (out != drafts) & (np.roll(out, -1, axis=1) != -1) & (np.arange(out.shape[1]) < out.shape[1] - 1)[None, :]
    for words, left in (("of 16 bits", drafts & 0xFFFF), *((words, rounded(drafts.astype(np.float32)).astype(np.int64)) for words, rounded in PRECISIONS)):
        if strange.any() and (out == left)[strange].all():
            return f"drafts are emitted by ids {words}"
    lens = np.tile(run.case.lens, run.calls)
    if words := _sorted_wrongly(run, out, drafts):
        return words
    if ((out != -1).sum(axis=1) > lens + 1).any():
        return "drafts are taken beyond a request's own"
    extra[:run.case.batch] = False  # of the first call
    before = np.concatenate([out[:run.case.batch], out[:-run.case.batch]])
    if extra.any() and (out == before)[extra].mean() > 0.95:
        return "the output keeps tokens of the call before"
    return "a token is emitted behind a recovered one"


def _sorted_wrongly(run: StepsRun, out: np.ndarray, drafts: np.ndarray) -> str:
    """Of outputs whose requests were sorted and not put back, or by the wrong permutation; '' if they are well formed under none."""
    case = run.case
    keys = {"draft length": case.lens.astype(np.float64), **{name: value.astype(np.float64) for name, value in case.params.items()},
            "greedy and random": (case.params["temperature"] > 0.0).astype(np.float64)}
    for name, key in keys.items():
        for words, sign in (("rising", 1.0), ("falling", -1.0)):
            order = np.argsort(sign * key, kind="stable")
            for how, whose in (("not put back", order), ("put back by the wrong permutation", order[order])):
                if (whose == np.arange(case.batch)).all():
                    continue
                back = (np.arange(run.calls)[:, None] * case.batch + np.argsort(whose, kind="stable")[None, :]).ravel()
                there = out[back]
                stood = np.cumprod((there == drafts) & (drafts != -1), axis=1)
                count = stood.sum(axis=1)
                rest = np.arange(out.shape[1])[None, :] > count[:, None]
                if (((there != -1).sum(axis=1) == count + 1) & (~rest | (there == -1)).all(axis=1)).all():
                    return f"requests are sorted by {words} {name} and {how}"
    return ""


def account_of(run: Any, group: int = 0) -> Account | None:
    """group: of rows or requests, those around it, where all are too many."""
    if isinstance(run, SampleRun):
        return None if run.case.readings or run.case.may_raise or run.driver.distribution is not None else _of_draws(run, group)
    if isinstance(run, FilterRun):
        return _of_filter(run, group)
    from .step_hypotheses import account_of_steps  # it imports what is above

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


def tiny_of(size: int) -> float:
    return float(np.log(1.5 * STRAY / size))


def log_of(chance: np.ndarray, size: int) -> np.ndarray:
    return np.log((1.0 - STRAY) * np.nan_to_num(chance) + STRAY / size)


def shortfall(table: np.ndarray, row: np.ndarray, token: np.ndarray) -> tuple[float, float]:
    """What the log likelihood of draws [n] of rows of `table` [R, V] lacks to what the rows expect, and its variance."""
    rows, row = np.unique(row, return_inverse=True)
    p = (1.0 - STRAY) * np.nan_to_num(table[rows].astype(np.float64)) + STRAY / table.shape[1]
    log_p = np.log(p)
    mean = (p * log_p).sum(axis=1)
    variance = np.maximum((p * log_p * log_p).sum(axis=1) - mean * mean, 0.0)
    return float((mean[row] - log_p[row, token]).sum()), float(variance[row].sum())


def always_of(params: Params) -> list[str]:
    """The regimes of parameters that are one value throughout."""
    return [*(f"rows with {name} {value[0]:.9g}" for name, value in params.items() if len(value) and (value == value[0]).all()),
            *(f"rows with {words}" for words, here in _ranges(params) if here.all())]


def _ranges(params: Params) -> Iterator[tuple[str, np.ndarray]]:
    """Where a branch may begin: draws whose parameter is on and below or above a bound."""
    for name, (below, above) in RANGES.items():
        value = params.get(name, np.zeros(0))
        is_on = value > 0.0 if name != "top_p" else value < 1.0
        yield from ((f"{name} below {bound:g}", is_on & (value < np.float32(bound))) for bound in below)
        yield from ((f"{name} above {bound:g}", is_on & (value > np.float32(bound))) for bound in above)


def regimes_of(params: Params, place: np.ndarray, batch: int, impossible: np.ndarray | None = None,
               first: Iterable[tuple[str, np.ndarray]] = ()) -> list[Regime]:
    """impossible: [n], what cannot come: from its first place of the batch on is a regime too. first: regimes before all others."""
    out = [Regime("", np.ones(len(place), bool))]
    more: list[tuple[str, np.ndarray]] = []
    rare: list[Regime] = []
    if impossible is not None and impossible.any() and 16 <= (begin := int(place[impossible].min())) < batch - 1:
        more.append((f"places of the batch from {begin} on", place >= begin))
    if impossible is not None and len(of := np.unique(place[impossible])) >= 3:
        begin, end = int(of[0]), int(of[-1]) + 1
        for words, here, share in (("from {} on", place >= begin, 1.0 - begin / batch), ("before {}", place < end, end / batch)):
            if 0.0 < share < 1.0 and -len(of) * np.log(share) > BY_CHANCE:
                rare.append(Regime(f"places of the batch {words.format(begin if 'from' in words else end)}", here, is_rare=True))
        for step in (2, 3, 4, 5, 6, 7, 8, 16, 32):
            if (of % step == of[0] % step).all() and (len(of) - 1) * np.log(step) > BY_CHANCE:
                rare.append(Regime(f"places {of[0] % step} of every {step}", place % step == of[0] % step, is_rare=True))
    off = np.logical_and.reduce([params[name] == np.asarray(OFF[name], params[name].dtype) for name in params if name != "temperature"])
    more += [("no filter", off), ("a filter", ~off)]
    for words, here in (*first, *evidence.classes(params, place, batch), *more, *_ranges(params)):
        if here.any() and not here.all():
            out.append(Regime(words if words.startswith(("the ", "places", "requests")) else f"rows with {words}", here))
    return out + [regime for regime in rare if not regime.here.all()]


def _of_draws(run: SampleRun, around: int) -> Account | None:
    case = run.case
    group, token = np.concatenate(run.groups), np.concatenate(run.samples)
    if not ((token >= 0) & (token < case.vocab_size)).all():
        return None
    calls = len(group) // case.batch
    all_groups = group.reshape(calls, case.batch)
    others = {words: all_groups[:, at].ravel() for words, at in neighbours(case.batch).items()}
    every, others["the last call's"] = _of_last_call(run, group)
    for words, rank in compacted({name: value[all_groups] for name, value in case.params.items()}):
        others[words] = np.take_along_axis(all_groups, rank, axis=1).ravel()
    here = np.flatnonzero(np.isin(group, window(around, case.groups, max(1, ELEMENTS // case.vocab_size))))
    place = np.tile(np.arange(case.batch), calls)[here]
    is_whole = len(here) == len(group)
    group, token = group[here], token[here]
    others = {words: at[here] for words, at in others.items()}
    permuted = {words: at[here] for words, at in _put_back(case.params, all_groups)}

    groups, own_row = np.unique(group, return_inverse=True)
    own = Given(case.logits[groups], {name: value[groups] for name, value in case.params.items()})
    of_sound = OfRows(own, own_row, token)
    sound = of_sound()

    def own_p() -> np.ndarray:
        return probabilities(own).astype(np.float64)

    def rules() -> Rules:
        # A row stands once for each that its parameters may be mixed with.
        for words, at in (("", group), *others.items()):
            pairs, row = np.unique(np.stack([group, at]), axis=1, return_inverse=True)
            row = row.ravel()
            if pairs.shape[1] * case.vocab_size > 4 * ELEMENTS:
                continue
            params = {name: value[pairs[0]] for name, value in case.params.items()}
            rows = case.logits[pairs[0]]
            for name, given in mixed_rows(rows, params, {words: pairs[1]}, every) if words else wrong_rows(rows, params, case.params):
                yield name, OfRows(given, row, token)
        for words, at in {**others, **permuted}.items():
            of_row = np.searchsorted(groups, np.clip(at, groups[0], groups[-1]))
            if len(groups) == case.groups and at.max() < case.groups:
                yield rare_as(words, f"rows are {words}"), OfRows(own, of_row, token)
        cold = case.params["temperature"][all_groups] == 0.0
        is_mixed = (cold.any(axis=1) & ~cold.all(axis=1)).repeat(case.batch)[here]
        keys, row = np.unique(np.stack([group, is_mixed]), axis=1, return_inverse=True)
        params_of = {name: value[keys[0]] for name, value in case.params.items()}
        for words, value in beside_others(params_of["temperature"], keys[1] > 0) if is_mixed.any() else ():
            yield words, OfRows(Given(case.logits[keys[0]], {**params_of, "temperature": value.astype(np.float32)}), row.ravel(), token)
        for words, which in (("largest", np.argmax), ("smallest", np.argmin)):
            for name, value in case.params.items():
                if len(np.unique(value)) > 1:
                    of_call = all_groups[np.arange(calls), which(value[all_groups], axis=1)].repeat(case.batch)[here]
                    pairs, row = np.unique(np.stack([group, of_call]), axis=1, return_inverse=True)
                    mixed = {**{other: values[pairs[0]] for other, values in case.params.items()}, name: value[pairs[1]]}
                    yield f"{name} is the {words} of the call", OfRows(Given(case.logits[pairs[0]], mixed), row.ravel(), token)
                    mixed = {**mixed, name: np.where(value[pairs[0]] != np.asarray(OFF[name], value.dtype), mixed[name], value[pairs[0]])}
                    yield Rare(f"{name} is the {words} of the call, where it is on"), OfRows(Given(case.logits[pairs[0]], mixed), row.ravel(), token)
        before = others.get("the one's before", group)
        for to in (4, 8, 16):
            if case.vocab_size > to and case.vocab_size % to and case.batch > 1:
                keys, row = np.unique(np.stack([group, before, place * case.vocab_size % to]), axis=1, return_inverse=True)
                if keys.shape[1] * case.vocab_size <= 4 * ELEMENTS:
                    yield Rare(f"rows are read from an address rounded down to {to} elements"), OfRows(Given(
                        moved_down(case.logits, *keys), {name: value[keys[0]] for name, value in case.params.items()}), row.ravel(), token)
        for name, draws in wrong_draws(case.vocab_size):
            yield name, OfRows(Given(own.logits, own.params, lambda *given, draws=draws: draws(probabilities(Given(*given)))), own_row, token)
        keys, row = np.unique(np.stack([group, others.get("the first one's", group)]), axis=1, return_inverse=True)
        if keys.shape[1] * case.vocab_size <= SORTED:
            yield Rare("what is kept goes back in the order of the first row"), OfRows(Given(
                case.logits[keys[0]], {name: value[keys[0]] for name, value in case.params.items()}, lambda *given: in_order_of(
                    probabilities(Given(*given)), given[0], case.logits[keys[1]])), row.ravel(), token)
        yield "the index of row and token together is a float32", lambda: log_of(
            _of_float_index(probabilities(own), own_row, token, place), case.vocab_size)
        if case.vocab_size > 1 << 16:
            yield Rare("ids have 16 bits"), lambda: log_of(folded(probabilities(own))[own_row, token], case.vocab_size)
        for bound in (1 << 15, 1 << 16, 1 << 17):
            if bound < case.vocab_size:
                yield f"tokens from {bound:,} on come as the next ones", lambda bound=bound: log_of(
                    moved_from(probabilities(own), bound)[own_row, token], case.vocab_size)
        if is_whole and len(token) * case.vocab_size <= ELEMENTS:
            filters = [name for name in case.params if name != "temperature"]
            for words, names in (("filters drop in one row they drop", filters), *((f"{name} drops in one row it drops", [name]) for name in filters)):
                yield Rare(f"what {words} in all rows of the call"), lambda names=names: log_of(
                    _dropped_by_any(own, names, own_row, token, case.batch), case.vocab_size)
        yield "all tokens have one chance, masked ones too", lambda: np.full(len(token), -np.log(case.vocab_size))
        yield "all tokens that are not masked have one chance", OfRows(Given(own.logits, own.params, evenly), own_row, token)
        far = (case.logits.max(axis=1) < case.logits.max() - 80.0) & (case.params["temperature"] > 0.0)
        if far.any():
            yield "the maximum that rows are taken against is the call's", lambda: np.where(
                far[group], -np.log(case.vocab_size), sound)

    params = {name: value[group] for name, value in case.params.items()}
    by_rows = [(words, here[own_row]) for words, here in _masked(case.logits[groups])]
    peaked = [(words, here) for words, here in _peaked(own, own_row) if here.any() and not here.all()]
    regimes = regimes_of(params, place, case.batch, sound < tiny_of(case.vocab_size), by_rows)
    regimes += [Regime(f"rows with {words}", here) for words, here in peaked]
    return Account(sound, tiny_of(case.vocab_size), rules, regimes, len(groups) * case.vocab_size,
                   [*always_of(params), *(["calls of one row"] if case.batch == 1 else []), *(f"rows with {words}" for words, here in by_rows if here.all())],
                   lambda: max(of(own_p(), own_row, token, case.batch) for of in (repeats_of, shared_sums)) if is_whole else (0.0, ""),
                   lambda: lost_of_seeds(np.concatenate(run.seeds), own_p(), own_row, token) if is_whole else "", of_sound.misfit)


def _dropped_by_any(given: Given, names: list[str], row: np.ndarray, token: np.ndarray, batch: int) -> np.ndarray:
    """[n]: of each draw, where a call's rows lose what filters of these names drop in any of them, but for their likeliest token."""
    def without(*others: str) -> np.ndarray:
        return probabilities(Given(given.logits, {name: np.full_like(value, OFF[name]) if name in others else value
                                                  for name, value in given.params.items()})).astype(np.float64)

    kept, whole = without(*({*OFF} - {"temperature", *names})) > 0.0, without(*names)
    calls = row.reshape(-1, batch)
    by_all = np.stack([kept[np.unique(call)].all(axis=0) for call in calls]).repeat(batch, axis=0)
    p = whole[row]
    p = np.where(by_all | (p == p.max(axis=1, keepdims=True)), p, 0.0)
    return p[np.arange(len(row)), token] / p.sum(axis=1)


def _of_float_index(p: np.ndarray, row: np.ndarray, token: np.ndarray, place: np.ndarray) -> np.ndarray:
    """[n]: of each draw, where place * V + token is rounded to float32."""
    size, begin = p.shape[1], place.astype(np.int64) * p.shape[1]
    if begin.max() + size < 1 << 24:
        return p[row, token]
    out = np.zeros(len(token))
    for d in range(-64, 65):
        from_here = np.clip(token + d, 0, size - 1)
        rounded = np.clip((begin + from_here).astype(np.float32).astype(np.int64) - begin, 0, size - 1)
        out += np.where((from_here == token + d) & (rounded == token), p[row, from_here], 0.0)
    return out


def _put_back(params: Params, groups: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Rows [calls, batch] sorted by a parameter and not put back, or by the wrong permutation: whose token a place has."""
    for name, value in params.items():
        if len(np.unique(value)) > 1:
            for words, sign in (("rising", 1.0), ("falling", -1.0)):
                order = np.argsort(sign * value[groups].astype(np.float64), axis=1, kind="stable")
                yield Rare(f"sorted by {words} {name} and not put back"), np.take_along_axis(groups, order, axis=1).ravel()
                yield (Rare(f"sorted by {words} {name} and put back by the wrong permutation"),
                       np.take_along_axis(groups, np.take_along_axis(order, order, axis=1), axis=1).ravel())


def _masked(logits: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """Regimes of rows by their masks."""
    share = np.isneginf(logits).mean(axis=1)
    return [("masked tokens", share > 0.0), ("most tokens masked", share > 0.5)]


def _peaked(given: Given, row: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Regimes of draws [n] by the mass of the likeliest token before filters."""
    bare = {name: value if name == "temperature" else np.full_like(value, OFF[name]) for name, value in given.params.items()}
    top = probabilities(Given(given.logits, bare)).max(axis=1)[row]
    for bound in (0.5, 0.9, 0.99):
        yield f"a token of {bound:g} or more", top >= bound


def _of_last_call(run: SampleRun, group: np.ndarray) -> tuple[Params, np.ndarray]:
    """(parameters of all groups and of the call before this case's first, whose of them each draw's place had a call before)."""
    case, before = run.case, run.params_before
    at = np.concatenate([group[:case.batch], group[:-case.batch]])
    if before is None:
        return case.params, at
    size = len(before["temperature"])
    both = min(size, case.batch)
    at[:both] = case.groups + np.arange(both)
    return {name: np.concatenate([value, before.get(name, np.full(size, OFF[name]))]).astype(value.dtype)
            for name, value in case.params.items()}, at


def _of_filter(run: FilterRun, around: int) -> Account | None:
    """By the sets that were kept."""
    case, left = run.case, run.left
    if left is None:
        return None
    rows = window(around, len(left), max(1, ELEMENTS // case.vocab_size))
    logits, kept = case.logits[rows], left[rows] > -np.inf
    params = {name: value[rows] for name, value in case.params.items()}

    def log_p(given: Given) -> np.ndarray:
        return np.where(((probabilities(given) > 0.0) == kept).all(axis=1), 0.0, -2.0 * LEAST)  # one row is enough

    def rules() -> Rules:
        others = {words: at[rows] for words, at in neighbours(len(left)).items()}
        others.update({words: rank[rows] for words, rank in compacted(case.params)})
        for name, given in itertools.chain(wrong_rows(logits, params, case.params), mixed_rows(logits, params, others, case.params),
                                           extreme_rows(logits, params, case.params)):
            yield name, lambda given=given: log_p(given)
        if run.earlier:
            was_kept = run.earlier[-1][rows] > -np.inf
            yield "tokens that an earlier call dropped stay dropped", lambda: log_p(Given(
                np.where(was_kept | (logits == logits.max(axis=1, keepdims=True)), logits, -np.inf), params, lambda left, params: np.where(
                    np.isneginf(left), 0.0, probabilities(Given(logits, params)))))
        yield Rare("what is kept goes back in the order of the first row"), lambda: log_p(Given(
            logits, params, lambda *given: in_order_of(probabilities(Given(*given)), logits, case.logits[:1])))
        for to in (4, 8, 16):
            if case.vocab_size > to and case.vocab_size % to:
                yield Rare(f"rows are read from an address rounded down to {to} elements"), lambda to=to: log_p(Given(
                    moved_down(case.logits, rows, rows - 1, rows * case.vocab_size % to), params))
        if case.vocab_size > 1 << 16:
            yield Rare("ids have 16 bits"), lambda: log_p(Given(logits, params, lambda *given: folded(probabilities(Given(*given)))))

    sound = log_p(Given(logits, params))
    by_rows = _masked(logits)
    return Account(sound, -LEAST, rules, regimes_of(params, rows, len(left), sound < -LEAST, by_rows), logits.size,
                   [*always_of(params), *(f"rows with {words}" for words, here in by_rows if here.all())])


def window(around: int, count: int, most: int) -> np.ndarray:
    """Of `count` rows at most so many, next to each other, with one of them."""
    begin = min(max(0, around - most // 2), max(0, count - most))
    return np.arange(begin, min(count, begin + most))


def _value_of_dropped(run: FilterRun) -> float:
    """The one finite number below all that are kept that tokens which should be dropped have; 0.0: none."""
    assert run.left is not None
    dropped = probabilities(Given(run.case.logits, run.case.params)) == 0.0
    values = np.unique(run.left[dropped & np.isfinite(run.case.logits)])
    is_one = values.size == 1 and np.isfinite(values[0]) and values[0] < run.left[~dropped].min()
    return float(values[0]) if is_one else 0.0


def _of_values(run: FilterRun) -> str:
    """By the logits that came back."""
    case, left = run.case, run.left
    if left is None:
        return ""
    t = case.params["temperature"][:, None]
    kept = np.isfinite(left)
    with np.errstate(over="ignore", invalid="ignore"):
        told = {"what comes back is of half precision": as_half(case.logits / t), "what comes back is of bfloat16": as_bfloat16(case.logits / t),
                "temperature is not applied": case.logits, "the temperature is applied twice": case.logits / t / t}

        def same(rows: np.ndarray, values: np.ndarray) -> np.ndarray:
            return (~kept[rows] | (np.abs(left[rows] - values[rows]) <= 2e-6 * np.abs(values[rows]) + 1e-30)).all(axis=1)

        wrong = ~same(np.arange(len(left)), case.logits / t)
        words = next((name for name, values in told.items() if wrong.any() and same(np.flatnonzero(wrong), values).all()), "")
    where = next((regime.words for regime in regimes_of(case.params, np.arange(len(left)), len(left)) if (regime.here == wrong).all()), "")
    return f"{words} in {where}" if words and where else words
