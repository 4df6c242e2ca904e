"""Which wrong rule would give what came: faults that engines have had, each with the probability that it gives every
token. The likeliest, if it beats the sound rule by far, names the suspect.

A hypothesis that is off in one regime alone is given the draws of that regime, the sound rule the others. Each gives
every token a share of a thousandth, so that a draw that nothing explains counts against all. Hypotheses that explain the failing
case about as well are told apart by what came in other cases, of which most passed: there each must explain the draws too, or be
wrong in this case alone, which costs it some nats.

Here: rules of rows, which samplers, filters and verifiers share; those of verifiers alone are in step_hypotheses.py.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Iterable, Iterator

import numpy as np

from .. import _sampling
from .._core import Error
from . import evidence
from .filter_cases import FilterRun
from .sample_cases import OFF
from .sample_judge import Judgement, SampleRun
from .suspects import OF_NOISE

#: Share of a token that comes whatever the rule is; nats by which a hypothesis must beat the sound rule (the dependent draws of
#: shared random numbers feign some), a later hypothesis an earlier one, a regime all draws, a rule of this case alone one of all.
#: Others that explain the draws as well, to the last digit, are named too, so many in all.
STRAY, LEAST, LEAST_OF_NOISE, MORE, MORE_IN_REGIME, HERE_ALONE = 1e-3, 10.0, 60.0, 3.0, 5.0, 4.0
AS_WELL = 3
#: Rules that stand for rare faults cost as much as a regime.
ODD = ("place i", "by blocks of", "one token more", "in half precision", "bits", "clamped")
#: Hypotheses within so many nats of the best are tried on other cases, so many of them, on so many logits in all.
WINDOW, TRIED, ELSEWHERE = 40.0, 32, 1 << 25
#: Logits that a hypothesis is tried on, at most; of rules that sort them.
ELEMENTS, SORTED = 1 << 21, 1 << 18

#: What a parameter may be off by.
FACTORS = {"temperature": (0.25, 0.5, 0.7, 0.9, 1.1, 1.4, 2.0, 4.0), "top_p": (0.8, 0.9, 0.95, 0.97, 0.99, 1.01, 1.03, 1.05, 1.1, 1.25),
           "min_p": (0.25, 0.5, 0.7, 0.9, 1.1, 1.4, 2.0, 4.0), "top_k": ()}

Params = dict[str, np.ndarray]
#: Of what came [n]: log probabilities under a rule, by its name.
Rules = Iterator[tuple[str, Callable[[], np.ndarray]]]


@dataclasses.dataclass(frozen=True)
class Regime:
    """words: '' of all; here: [n]; is_outcome: it says what came of a draft, so only of what was drawn then it tells."""

    words: str
    here: np.ndarray
    is_outcome: bool = False


@dataclasses.dataclass(frozen=True)
class Account:
    """What came in a run, as rules see it. sound: [n] log probabilities under the sound one, of what cannot come below `tiny`; size:
    logits that a rule is tried on; repeats(): nats for draws that repeat others, and of which."""

    sound: np.ndarray
    tiny: float
    rules: Callable[[], Rules]
    regimes: list[Regime]
    size: int
    always: list[str] = dataclasses.field(default_factory=list)  # regimes that all of it is in
    repeats: Callable[[], tuple[float, str]] = lambda: (0.0, "")


@dataclasses.dataclass(frozen=True)
class Candidate:
    name: str
    regime: str
    nats: float

    @property
    def words(self) -> str:
        return f"{self.name} in {self.regime}" if self.regime else self.name


def suspected(run: Any, judgement: Judgement, elsewhere: Iterable[Any] = ()) -> str:
    """What a run that failed is explained by, in words; '' where nothing is. elsewhere: runs of other cases."""
    if judgement.name == "masked_token":  # it says it
        return ""
    if judgement.name == "wrong_values":
        return _of_values(run)
    if isinstance(run, FilterRun) and (value := _value_of_dropped(run)):
        return f"dropped tokens are at {value:.6g}, not at -infinity"
    of_noise = judgement.name in OF_NOISE or judgement.name.startswith("correlation")
    account = account_of(run, judgement.group)
    return "" if account is None else _named(account, LEAST_OF_NOISE if of_noise else LEAST, elsewhere)


def account_of(run: Any, group: int = 0) -> Account | None:
    """group: of rows or requests, those around it, where all are too many."""
    if isinstance(run, SampleRun):
        return None if run.case.readings or run.case.may_raise or run.driver.distribution is not None else _of_draws(run, group)
    if isinstance(run, FilterRun):
        return _of_filter(run, group)
    from .step_hypotheses import account_of_steps  # it imports the rules of rows

    return account_of_steps(run, group)


def _named(account: Account, least: float, elsewhere: Iterable[Any]) -> str:
    if (account.sound < account.tiny).any():  # something is wrong for certain
        least /= 2.0
    found = list(_candidates(account, least))
    repeats, of = account.repeats()
    if found:
        top = max(candidate.nats for candidate in found)
        found = [candidate for candidate in found if candidate.nats > top - WINDOW]
        most = sorted((candidate.nats for candidate in found), reverse=True)[:TRIED][-1]
        found = [candidate for candidate in found if candidate.nats >= most][:2 * TRIED]
    if repeats > max([least, *(candidate.nats for candidate in found)]) + (MORE if found else 0.0):
        return f"random numbers are those of {of}"
    gains = _gains(found, elsewhere) if len(found) > 1 else {}
    best, words = -np.inf, []
    for candidate in found:
        with_it, against = gains.get(candidate, (0.0, 0.0))
        nats = candidate.nats + with_it + max(against, -HERE_ALONE)
        if nats > best + MORE:
            best, words = nats, [candidate.words]
        elif len(words) < AS_WELL and not candidate.regime and candidate.name not in words and abs(nats - best) < 1e-9 * abs(best):
            words.append(candidate.name)
    return ", or ".join(words)


def _candidates(account: Account, least: float) -> Iterator[Candidate]:
    """Rules that beat the sound one by more than `least` nats, and leave at most a quarter of what it cannot give."""
    sound, tiny = account.sound, account.tiny
    impossible, everything = np.count_nonzero(sound < tiny), np.ones(len(sound), bool)
    for name, log_p in account.rules():
        try:
            these = log_p()
        except Error:  # no distribution follows from it here
            continue
        gain, left = these - sound, these < tiny
        odd = MORE_IN_REGIME if any(words in name for words in ODD) else 0.0
        for i, regime in enumerate([*account.regimes, *(Regime(words, everything) for words in account.always)]):
            if regime.is_outcome and not name.startswith(("residuals", "recovered tokens", "of the residual")):
                continue
            nats = float(gain[regime.here].sum()) - (MORE_IN_REGIME if i else 0.0) - odd
            if nats > least and np.count_nonzero(np.where(regime.here, left, sound < tiny)) <= 0.25 * impossible:
                yield Candidate(name, regime.words, nats)


def _gains(candidates: list[Candidate], elsewhere: Iterable[Any]) -> dict[Candidate, tuple[float, float]]:
    """Nats by which each beats the sound rule in those other runs in which it does, and by which the sound rule beats it."""
    gains = {candidate: (0.0, 0.0) for candidate in candidates}
    names, spent = {candidate.name for candidate in candidates}, 0
    for run in elsewhere:
        account = account_of(run)
        if account is None or account.size > ELEMENTS // 4:
            continue
        spent += account.size * len(names)
        if spent > ELSEWHERE:
            break
        here = {regime.words: regime.here for regime in account.regimes} | dict.fromkeys(account.always, np.ones(len(account.sound), bool))
        done = set()
        for name, log_p in account.rules():
            if name not in names or name in done:
                continue
            done.add(name)
            try:
                gain = log_p() - account.sound
            except Error:
                continue
            for candidate in candidates:
                if candidate.name == name and candidate.regime in here:
                    nats = float(gain[here[candidate.regime]].sum())
                    gains[candidate] = gains[candidate][0] + max(nats, 0.0), gains[candidate][1] + min(nats, 0.0)
    return gains


def tiny_of(size: int) -> float:
    return float(np.log(1.5 * STRAY / size))


def repeats_of(probabilities: np.ndarray, row: np.ndarray, token: np.ndarray, batch: int) -> tuple[float, str]:
    """Nats for it that draws [n], call after call, are those of their place some calls before, or of a row before them in the
    call; which. row: [n], of each draw."""
    best = (0.0, "")
    at = np.arange(len(row))
    by_chance = np.minimum((probabilities * probabilities).sum(axis=1), 1.0)
    # Of rows that were drawn often, what came: that it is another distribution is no repetition.
    pairs, count = np.unique(np.stack([row, token]), axis=1, return_counts=True)
    drawn = np.bincount(row, minlength=len(by_chance))
    often = np.bincount(pairs[0], weights=count * (count - 1.0), minlength=len(by_chance)) / np.maximum(drawn * (drawn - 1.0), 1.0)
    by_chance = np.where(drawn >= 32, np.maximum(by_chance, often), by_chance)
    within = [lag for lag in (1, 2, 16, 32, 64) if lag < batch]
    for lag, words in (*((batch * i, "the call before") for i in range(1, 13)), *((lag, "another row of the call") for lag in within)):
        same = (row[lag:] == row[:-lag]) & ((lag >= batch) | (at[lag:] // batch == at[:-lag] // batch))
        if len(row) > lag and same.mean() > 0.4:
            chance = by_chance[row[lag:][same]]
            equal, open_ = (token[lag:] == token[:-lag])[same], chance < 1.0
            if equal[open_].sum() > 1.5 * chance[open_].sum():
                best = max(best, (evidence.marked_log_e(equal[open_], chance[open_]), words))
    return best


def log_of(chance: np.ndarray, size: int) -> np.ndarray:
    return np.log((1.0 - STRAY) * np.nan_to_num(chance) + STRAY / size)


def always_of(params: Params) -> list[str]:
    """The regimes of parameters that are one value throughout."""
    return [f"rows with {name} {value[0]:.9g}" for name, value in params.items() if len(value) and (value == value[0]).all()]


def regimes_of(params: Params, place: np.ndarray, batch: int, impossible: np.ndarray | None = None,
               first: Iterable[tuple[str, np.ndarray]] = ()) -> list[Regime]:
    """impossible: [n], what cannot come: from its first place of the batch on is a regime too. first: regimes before all others."""
    out = [Regime("", np.ones(len(place), bool))]
    more: list[tuple[str, np.ndarray]] = []
    if impossible is not None and impossible.any() and (begin := int(place[impossible].min())) >= 16:
        more.append((f"places of the batch from {begin} on", place >= begin))
    if impossible is not None and len(of := np.unique(place[impossible])) >= 3:
        for step in (2, 3, 4, 5, 6, 7, 8, 16, 32):
            if (of % step == of[0] % step).all():
                more.append((f"places {of[0] % step} of every {step}", place % step == of[0] % step))
    for words, here in (*first, *evidence.classes(params, place, batch), *more):
        if here.any() and not here.all():
            out.append(Regime(words if words.startswith(("the ", "places", "requests")) else f"rows with {words}", here))
    return out


# --- Wrong parameters and wrong rows, which samplers, filters and verifiers share -----------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class Given:
    """A row's logits and parameters, as a hypothesis has them. draws(logits, params) -> probabilities [n, V]; None: as they should."""

    logits: np.ndarray
    params: Params
    draws: Callable[[np.ndarray, Params], np.ndarray] | None = None


def probabilities(given: Given) -> np.ndarray:
    return (given.draws or _sound)(given.logits, given.params)


def _sound(logits: np.ndarray, params: Params) -> np.ndarray:
    return _sampling.process_rows(logits, params, ties="keep_all").probabilities


def _without_its_last(logits: np.ndarray, params: Params) -> np.ndarray:
    p = _sound(logits, params)
    crossed = (params["top_p"] < 1.0) & ((p > 0.0).sum(axis=1) > 1)
    p[crossed, np.where(p > 0.0, p, np.inf).argmin(axis=1)[crossed]] = 0.0
    return p / p.sum(axis=1, keepdims=True)


def _warm(name: str) -> Callable[[np.ndarray, Params], np.ndarray]:
    """A filter that sees the row at temperature 1."""

    def draws(logits: np.ndarray, params: Params) -> np.ndarray:
        greedy = params["temperature"] == 0.0
        rest = {**params, name: np.full_like(params[name], OFF[name])}
        alone = {other: value if other == name else np.full_like(value, OFF[other]) for other, value in params.items()}
        alone["temperature"] = np.where(greedy, 0.0, 1.0).astype(np.float32)
        return _divided(_sampling.process_rows(logits, rest).probabilities * (_sampling.process_rows(logits, alone).probabilities > 0.0))

    return draws


def _divided(p: np.ndarray) -> np.ndarray:
    total = p.sum(axis=1, keepdims=True)
    return np.divide(p, total, out=np.zeros_like(p), where=total > 0.0)


def _with_own_filters(sums: Callable[[np.ndarray], np.ndarray] | None = None, by: Callable[[np.ndarray], np.ndarray] = lambda x: x,
                      min_p_of: Callable[[np.ndarray], np.ndarray] = lambda p: p[:, :1], more: int = 0,
                      least: int = 1, is_never_off: bool = False) -> Callable[[np.ndarray, Params], np.ndarray]:
    """top-k, then top-p, then min-p, over rows sorted by by(logits). sums(p): what top-p compares, the sum before each place;
    min_p_of(p): what min-p is a share of; more: tokens that top-p keeps behind its last; least: that any filter keeps; is_never_off:
    a top-p of 1 is compared with too."""

    def draws(logits: np.ndarray, params: Params) -> np.ndarray:
        wide = logits.astype(np.float64)
        t = np.where(params["temperature"] > 0.0, params["temperature"], 1.0).astype(np.float64)[:, None]
        order = np.argsort(-by(logits), axis=1, kind="stable")
        ranked = np.take_along_axis(wide, order, axis=1)
        at = np.arange(logits.shape[1])[None, :]
        k = params["top_k"][:, None]
        keep = (k <= 0) | (at < k)
        p = _divided(np.where(keep, np.exp((ranked - wide.max(axis=1, keepdims=True)) / t), 0.0))
        before = sums(p) if sums else np.cumsum(p, axis=1) - p
        top_p = params["top_p"][:, None]
        count = np.where((before < (top_p.astype(np.float16) if sums is _half_sums else top_p)) & (p > 0.0), at + 1, 0).max(axis=1, keepdims=True)
        keep &= ((top_p >= 1.0) & (not is_never_off)) | (at < np.maximum(count + more, least))
        if "min_p" in params:
            keep &= (params["min_p"][:, None] <= 0.0) | (p >= params["min_p"][:, None] * min_p_of(p)) | (at < least)
        out = np.zeros_like(p)
        np.put_along_axis(out, order, _divided(np.where(keep, p, 0.0)), axis=1)
        greedy = params["temperature"] == 0.0
        if greedy.any():
            out[greedy] = _sound(logits[greedy], {name: value[greedy] for name, value in params.items()})
        return out

    return draws


def _half_sums(p: np.ndarray) -> np.ndarray:
    total = np.cumsum(p.astype(np.float16), axis=1, dtype=np.float16)
    return np.concatenate([np.zeros((len(p), 1), np.float16), total[:, :-1]], axis=1)


def _sums_of_blocks(size: int) -> Callable[[np.ndarray], np.ndarray]:
    def sums(p: np.ndarray) -> np.ndarray:
        return np.concatenate([np.cumsum(block, axis=1) - block for block in np.split(p, range(size, p.shape[1], size), axis=1)], axis=1)

    return sums


def undivided(logits: np.ndarray, params: Params) -> np.ndarray:
    """Of what filters keep the shares of the unfiltered row."""
    bare = {name: value if name == "temperature" else np.full_like(value, OFF[name]) for name, value in params.items()}
    return np.where(_sound(logits, params) > 0.0, _sound(logits, bare), 0.0)


def _evenly(logits: np.ndarray, params: Params) -> np.ndarray:
    return _divided((logits > -np.inf).astype(np.float64))


def _rest_to_the_likeliest(logits: np.ndarray, params: Params) -> np.ndarray:
    p = undivided(logits, params)
    p[np.arange(len(p)), p.argmax(axis=1)] += 1.0 - p.sum(axis=1)
    return p


def _padded(to: int) -> Callable[[np.ndarray, Params], np.ndarray]:
    """With logits of 0, tokens beyond taken for the last one."""

    def draws(logits: np.ndarray, params: Params) -> np.ndarray:
        size = logits.shape[1]
        p = _sound(np.concatenate([logits, np.zeros((len(logits), -size % to), np.float32)], axis=1), params)
        out = p[:, :size].copy()
        out[:, -1] += p[:, size:].sum(axis=1)
        return out

    return draws


def _sums_in_half(logits: np.ndarray, params: Params) -> np.ndarray:
    """A number looked up in running sums of half precision."""
    p = _sound(logits, params)
    if p.shape[1] > 1 << 16:
        raise Error("too many tokens")
    return _divided(np.diff(np.cumsum(p.astype(np.float16), axis=1, dtype=np.float16).astype(np.float64), axis=1, prepend=0.0))


def _of_period(period: int) -> Callable[[np.ndarray, Params], np.ndarray]:
    """A race: of tokens with one random number the likeliest wins."""

    def draws(logits: np.ndarray, params: Params) -> np.ndarray:
        p = _sound(logits, params)
        folded = np.concatenate([p, np.zeros((len(p), -p.shape[1] % period), p.dtype)], axis=1).reshape(len(p), -1, period)
        wins = (folded == folded.max(axis=1, keepdims=True)).reshape(len(p), -1)[:, :p.shape[1]]
        return _divided(np.where(wins, p, 0.0))

    return draws


def _race_of_bits(bits: int) -> Callable[[np.ndarray, Params], np.ndarray]:
    """The first token whose number is 0 wins, if there is one."""

    def draws(logits: np.ndarray, params: Params) -> np.ndarray:
        p = _sound(logits, params)
        zero = 2.0 ** -bits
        first = np.where(p > 0.0, zero * (1.0 - zero) ** (np.cumsum(p > 0.0, axis=1) - 1.0), 0.0)
        return first + (1.0 - first.sum(axis=1, keepdims=True)) * p

    return draws


def _inverse_of_bits(bits: int) -> Callable[[np.ndarray, Params], np.ndarray]:
    def draws(logits: np.ndarray, params: Params) -> np.ndarray:
        ends = np.minimum(np.ceil(np.cumsum(_sound(logits, params), axis=1, dtype=np.float64) * 2.0 ** bits - 1e-6), 2.0 ** bits)
        ends[:, -1] = 2.0 ** bits
        return np.diff(ends, axis=1, prepend=0.0) * 2.0 ** -bits

    return draws


def wrong_rows(logits: np.ndarray, params: Params, others: dict[str, np.ndarray], every: Params) -> Iterator[tuple[str, Given]]:
    """logits [n, V], params [n]: of the rows judged. every: parameters [m] of all rows that a call may mix them with; others: by name
    the row [n] of it that is read instead."""
    names = [name for name in params if (params[name] != np.asarray(OFF[name], params[name].dtype)).any() or
             (every[name] != np.asarray(OFF[name], every[name].dtype)).any()]

    def changed(name: str, value: np.ndarray) -> Given:
        return Given(logits, {**params, name: np.asarray(value, params[name].dtype)})

    temperature, size = params["temperature"], logits.shape[1]
    random = temperature > 0.0
    for name in names:
        if name != "temperature" and (temperature != 1.0).any():
            yield f"{name} is applied before the temperature", Given(logits, params, _warm(name))
    for name in names:
        off = np.full_like(params[name], OFF[name])
        yield f"{name} is not applied", changed(name, off if name != "temperature" else np.where(random, 1.0, 0.0))
    if len(names) - ("temperature" in names) > 1:
        yield "no filter is applied", Given(logits, {name: value if name == "temperature" else np.full_like(value, OFF[name])
                                                     for name, value in params.items()})
    if (temperature == 0.0).any():
        yield "greedy rows are drawn", changed("temperature", np.where(random, temperature, 1.0))
    if random.any():
        yield "random rows are greedy", changed("temperature", np.zeros_like(temperature))
        yield "the temperature is applied twice", changed("temperature", temperature * temperature)
        for bound in (1e-5, 1e-4, 1e-3, 0.01, 0.02, 0.05, 0.1, 0.2):
            if (random & (temperature < bound)).any():
                yield f"the temperature is {bound:g} at least", changed("temperature", np.where(random, np.maximum(temperature, bound), 0.0))
                yield f"a temperature below {bound:g} is greedy", changed("temperature", np.where(temperature < bound, 0.0, temperature))
        for bound in (100.0, 10.0, 5.0, 4.0, 3.0, 2.0, 1.5, 1.0):
            if (temperature > bound).any():
                yield f"the temperature is {bound:g} at most", changed("temperature", np.minimum(temperature, bound))
        yield "the temperature is of half precision", changed("temperature", _float16(temperature))
    if "top_k" in names:
        k = params["top_k"]
        for most in (2048, 1024, 1023, 1000, 512, 256, 255, 128, 127, 100, 64, 63, 50, 40, 32, 20, 16, 10, 8, 1):
            if (k > most).any() and most < size:
                yield f"top_k is {most} at most", changed("top_k", np.minimum(k, most))
        yield "top_k keeps one token fewer", changed("top_k", np.where(k > 1, k - 1, k))
        yield "top_k keeps one token more", changed("top_k", np.where((k > 0) & (k < size), k + 1, k))
        yield "top_k above the vocabulary wraps around", changed("top_k", np.where(k > size, np.maximum(k % size, 1), k))
    if "top_p" in names:
        yield "top_p drops the token that crosses it", Given(logits, params, _without_its_last)
    for name in ("top_p", "min_p"):
        for most in (1024, 1000, 512, 256, 128, 100, 64, 50) if name in names else ():
            if most < size:
                yield f"{name} keeps {most} tokens at most", Given(logits, {**params, "top_k": _at_most(
                    params["top_k"], most, params[name] != np.asarray(OFF[name], params[name].dtype))})
    if logits.size <= SORTED:
        for name, draws in _wrong_filters(names, size):
            yield name, Given(logits, params, draws)
    for name, most in (("min_p", 0.5), ("top_p", 0.99), ("top_p", 0.95)):
        if name in names and ((params[name] > most) & (params[name] != OFF[name])).any():
            yield f"{name} is {most:g} at most", changed(name, np.where(params[name] == OFF[name], params[name], np.minimum(params[name], most)))
    yield from _wrong_logits(logits, params)
    for words, at in others.items():
        for name in names:
            yield f"{name} is {words}", changed(name, every[name][at])
        if len(names) > 1:
            yield f"parameters are {words}", Given(logits, {name: every[name][at] for name in params})
        if words.startswith("the first "):
            skipped = {name: np.where(every[name][at] == OFF[name], OFF[name], params[name]).astype(params[name].dtype)
                       for name in params if name != "temperature"}
            whose = words.removesuffix("'s")
            yield f"filters are skipped where {whose} has none", Given(logits, {**params, **skipped})
    for name in names:
        for words, value in (("largest", every[name].max()), ("smallest", every[name].min())):
            if every[name].min() < every[name].max():
                yield f"{name} is the {words} of the call", changed(name, np.full_like(params[name], value))
        if name in ("top_p", "min_p"):
            for words, rounded in PRECISIONS:
                yield f"{name} is {words}", changed(name, rounded(params[name]))
    for name in names:
        for factor in FACTORS[name]:
            value = params[name] * np.float32(factor)
            yield f"{name} acts as {factor:g} times itself", changed(name, value if name == "temperature" else np.minimum(value, 1.0))


def _wrong_filters(names: list[str], size: int) -> Iterator[tuple[str, Callable[[np.ndarray, Params], np.ndarray]]]:
    """Filters that compute otherwise, of rows that have the parameters `names`."""
    if "top_p" in names:
        yield "top_p sums in half precision", _with_own_filters(_half_sums)
        yield "top_p keeps one token more", _with_own_filters(more=1)
        for block in (256, 512, 1024, 2048, 4096):
            if block < size:
                yield f"top_p sums by blocks of {block:,} tokens", _with_own_filters(_sums_of_blocks(block))
    if "min_p" in names:
        yield "min_p is relative to the second token", _with_own_filters(min_p_of=lambda p: p[:, 1:2])
        yield "min_p is absolute", _with_own_filters(min_p_of=lambda p: np.ones((len(p), 1)))
    for name in ("top_p", "min_p"):
        if name in names and size > 1:
            yield f"{name} keeps two tokens at least", _with_own_filters(least=2)
    if set(names) - {"temperature"}:
        yield "top_p sums in half precision, also where it is off", _with_own_filters(_half_sums, is_never_off=True)
        for words, rounded in PRECISIONS:
            yield f"filters sort by logits {words}", _with_own_filters(by=rounded)
        yield "what filters drop falls to the likeliest token", _rest_to_the_likeliest
        for to in (8, 16, 32, 64, 128, 256, 1024):
            if size % to:
                yield f"rows are padded to a multiple of {to} with logits of 0", _padded(to)


def _wrong_noise(size: int) -> Iterator[tuple[str, Callable[[np.ndarray, Params], np.ndarray]]]:
    """Random numbers that are not what they should be."""
    for period in (256, 512, 1024, 2048, 4096, 8192, 1 << 15, 1 << 16):
        if period < size:
            yield f"random numbers repeat every {period:,} tokens", _of_period(period)
    yield "the running sum of the probabilities has half precision", _sums_in_half
    for bits in (8, 10, 11, 12, 16, 23, 24):
        yield f"random numbers of a race have {bits} bits", _race_of_bits(bits)
        yield f"random numbers have {bits} bits", _inverse_of_bits(bits)


def _wrong_logits(logits: np.ndarray, params: Params) -> Iterator[tuple[str, Given]]:
    finite = np.isfinite(logits)
    for words, bounded in PRECISIONS:
        yield f"logits are {words}", Given(np.where(finite, bounded(logits), logits), params)
    size = logits.shape[1]
    ends = {size - n for n in (1, size % 32, size % 128, size % 1024, 100, 1000) if n}
    for bound in sorted({1 << 15, 50_000, 1 << 16, 100_000, 1 << 17, *ends}, reverse=True):
        if 0 < bound < size:
            left = np.where((np.arange(size) >= bound)[None, :] & finite[:, :bound].any(axis=1)[:, None], -np.inf, logits)
            yield f"tokens from {bound} on never come", Given(left.astype(np.float32), params)
    below = logits.max(axis=1, keepdims=True) - logits
    for depth in (10.0, 15.0, 20.0, 30.0):
        far = finite & (below > depth * np.maximum(params["temperature"], 1e-30)[:, None])
        if far.any():
            yield f"tokens {depth:g} below the top never come", Given(np.where(far, -np.inf, logits).astype(np.float32), params)
    largest = float(np.abs(logits[finite]).max(initial=0.0))
    for bound in (1e4, 1000.0, 100.0, 80.0, 50.0, 30.0):
        if largest > bound:
            yield f"logits are clamped to +-{bound:g}", Given(np.where(finite, np.clip(logits, -bound, bound), logits), params)


def _at_most(k: np.ndarray, bound: int, here: np.ndarray) -> np.ndarray:
    return np.where(here, np.where(k > 0, np.minimum(k, bound), bound), k).astype(k.dtype)


def _float16(x: np.ndarray) -> np.ndarray:
    return np.clip(x, -65504.0, 65504.0).astype(np.float16).astype(np.float32)


def _truncated(x: np.ndarray, half: int = 0) -> np.ndarray:
    """To bfloat16, towards 0."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + half + (bits >> 16 & bool(half))) & np.uint32(0xFFFF0000)).view(np.float32)


def _bfloat16(x: np.ndarray) -> np.ndarray:
    return _truncated(x, 0x7FFF)


#: What numbers may be rounded to.
PRECISIONS = (("of half precision", _float16), ("of bfloat16", _bfloat16), ("cut to bfloat16", _truncated))


def neighbours(count: int) -> dict[str, np.ndarray]:
    """Of rows in order: whose parameters might be read."""
    at = np.arange(count)
    return {"the next one's": (at + 1) % count, "the one's before": at - 1, "the first one's": at * 0, "the last one's": at * 0 + count - 1,
            **{f"place i / {width}'s": at // width for width in (2, 4, 8, 32) if count > width},
            **{f"place i modulo {width}'s": at % width for width in (8, 16, 32, 64, 128, 256, 512, 1024) if count > width}} if count > 1 else {}


# --- Samplers and filters -------------------------------------------------------------------------------------------


def _of_draws(run: SampleRun, around: int) -> Account | None:
    case = run.case
    group, token = np.concatenate(run.groups), np.concatenate(run.samples)
    if not ((token >= 0) & (token < case.vocab_size)).all():
        return None
    calls = len(group) // case.batch
    others = {words: group.reshape(calls, case.batch)[:, at].ravel() for words, at in neighbours(case.batch).items()}
    every, others["the last call's"] = _of_last_call(run, group)
    here = np.flatnonzero(np.isin(group, window(around, case.groups, max(1, ELEMENTS // case.vocab_size))))
    place = np.tile(np.arange(case.batch), calls)[here]
    is_whole = len(here) == len(group)
    group, token = group[here], token[here]
    others = {words: at[here] for words, at in others.items()}

    def log_p(given: Given, row: np.ndarray) -> np.ndarray:
        return log_of(probabilities(given)[row, token].astype(np.float64), case.vocab_size)

    groups, own_row = np.unique(group, return_inverse=True)
    own = Given(case.logits[groups], {name: value[groups] for name, value in case.params.items()})
    sound = log_p(own, own_row)

    def rules() -> Rules:
        # A row stands once for each that its parameters may be mixed with.
        for words, at in (("", group), *others.items()):
            pairs, row = np.unique(np.stack([group, at]), axis=1, return_inverse=True)
            row = row.ravel()
            if pairs.shape[1] * case.vocab_size > 4 * ELEMENTS:
                continue
            params = {name: value[pairs[0]] for name, value in case.params.items()}
            for name, given in wrong_rows(case.logits[pairs[0]], params, {words: pairs[1]} if words else {}, every):
                if not words or words.removesuffix("'s") in name:
                    yield name, lambda given=given, row=row: log_p(given, row)
        for name, draws in _wrong_noise(case.vocab_size):
            yield name, lambda draws=draws: log_p(Given(own.logits, own.params, draws), own_row)
        if case.vocab_size > 1 << 16:
            yield "ids have 16 bits", lambda: log_of(_folded(probabilities(own))[own_row, token], case.vocab_size)
        for bound in (1 << 15, 1 << 16, 1 << 17):
            if bound < case.vocab_size:
                yield f"tokens from {bound:,} on come as the next ones", lambda bound=bound: log_of(
                    _moved_from(probabilities(own), bound)[own_row, token], case.vocab_size)
        yield "all tokens have one chance, masked ones too", lambda: np.full(len(token), -np.log(case.vocab_size))
        yield "all tokens that are not masked have one chance", lambda: log_p(Given(own.logits, own.params, _evenly), own_row)
        far = (case.logits.max(axis=1) < case.logits.max() - 80.0) & (case.params["temperature"] > 0.0)
        if far.any():
            yield "the maximum that rows are taken against is the call's", lambda: np.where(
                far[group], -np.log(case.vocab_size), sound)

    params = {name: value[group] for name, value in case.params.items()}
    masked = np.isneginf(case.logits[groups]).any(axis=1)[own_row]
    regimes = regimes_of(params, place, case.batch, sound < tiny_of(case.vocab_size), [("masked tokens", masked)])
    return Account(sound, tiny_of(case.vocab_size), rules, regimes, len(groups) * case.vocab_size,
                   [*always_of(params), *(["rows with masked tokens"] if masked.all() else [])],
                   lambda: repeats_of(probabilities(own).astype(np.float64), own_row, token, case.batch) if is_whole else (0.0, ""))


def _of_last_call(run: SampleRun, group: np.ndarray) -> tuple[Params, np.ndarray]:
    """(parameters of all groups and of those of the case before, whose of them each draw's place had a call before)."""
    case, before = run.case, run.before
    at = np.concatenate([group[:case.batch], group[:-case.batch]])
    if before is None or set(before.params) != set(case.params):
        return case.params, at
    both = min(before.batch, case.batch)
    at[:both] = case.groups + before.slots(run.calls_before - 1, run.seed)[:both]
    return {name: np.concatenate([value, before.params[name]]) for name, value in case.params.items()}, at


def _folded(p: np.ndarray) -> np.ndarray:
    """[n, V]: the mass of every id on its low 16 bits."""
    out = np.zeros(p.shape)
    for begin in range(0, p.shape[1], 1 << 16):
        part = p[:, begin:begin + (1 << 16)]
        out[:, :part.shape[1]] += part
    return out


def _moved_from(p: np.ndarray, bound: int) -> np.ndarray:
    out = p.copy()
    out[:, bound] = 0.0
    out[:, bound + 1:] = p[:, bound:-1]
    out[:, -1] += p[:, -1]
    return out


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
        for name, given in wrong_rows(logits, params, others, case.params):
            yield name, lambda given=given: log_p(given)

    sound = log_p(Given(logits, params))
    return Account(sound, -LEAST, rules, regimes_of(params, rows, len(left), sound < -LEAST), logits.size, always_of(params))


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
        told = {"what comes back is of half precision": _float16(case.logits / t), "what comes back is of bfloat16": _bfloat16(case.logits / t),
                "temperature is not applied": case.logits, "the temperature is applied twice": case.logits / t / t}

        def same(rows: np.ndarray, values: np.ndarray) -> np.ndarray:
            return (~kept[rows] | (np.abs(left[rows] - values[rows]) <= 2e-6 * np.abs(values[rows]) + 1e-30)).all(axis=1)

        wrong = ~same(np.arange(len(left)), case.logits / t)
        words = next((name for name, values in told.items() if wrong.any() and same(np.flatnonzero(wrong), values).all()), "")
    where = next((regime.words for regime in regimes_of(case.params, np.arange(len(left)), len(left)) if (regime.here == wrong).all()), "")
    return f"{words} in {where}" if words and where else words
