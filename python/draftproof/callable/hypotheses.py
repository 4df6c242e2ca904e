"""Which wrong rule would give what came: faults that engines have had, each with the probability that it gives every
token. The likeliest, if it beats the sound rule by far, names the suspect.

A hypothesis that is off in one regime alone is given the draws of that regime, the sound rule the others. Each gives
every token a share of a thousandth, so that a draw that nothing explains counts against all.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Iterator

import numpy as np

from .. import _sampling
from .._core import Error
from . import evidence
from .filter_cases import FilterRun
from .sample_cases import OFF
from .sample_judge import SampleRun
from .suspects import OF_NOISE
from .verify_sweep import Steps, StepsRun, steps_of

#: Share of a token that comes whatever the rule is; nats by which a hypothesis must beat the sound rule (the dependent draws of
#: shared random numbers feign some), a later hypothesis an earlier one, a regime all draws. A second one that explains the draws
#: as well, to the last digit, is named too.
STRAY, LEAST, LEAST_OF_NOISE, MORE, MORE_IN_REGIME = 1e-3, 10.0, 60.0, 3.0, 5.0
#: Logits that a hypothesis is tried on, at most.
ELEMENTS = 1 << 21

#: What a parameter may be off by.
FACTORS = {"temperature": (0.25, 0.5, 0.7, 0.9, 1.1, 1.4, 2.0, 4.0), "top_p": (0.8, 0.9, 0.95, 0.97, 0.99, 1.01, 1.03, 1.05, 1.1, 1.25),
           "min_p": (0.25, 0.5, 0.7, 0.9, 1.1, 1.4, 2.0, 4.0), "top_k": ()}

Params = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Regime:
    """words: '' of all; here: [n]; is_outcome: it says what came of a draft, so only of what was drawn then it tells."""

    words: str
    here: np.ndarray
    is_outcome: bool = False


def suspected(run: Any, test: str) -> str:
    """What a run that failed a test is explained by, in words; '' where nothing is."""
    if test == "masked_token":  # it says it
        return ""
    least = LEAST_OF_NOISE if test in OF_NOISE or test.startswith("correlation") else LEAST
    if isinstance(run, StepsRun):
        return _of_steps(run, least)
    if isinstance(run, SampleRun) and not run.case.readings and not run.case.may_raise and run.driver.distribution is None:
        return _of_draws(run, least)
    return _of_filter(run) if isinstance(run, FilterRun) else ""


def _best(sound: np.ndarray, told: Iterator[tuple[str, Callable[[], np.ndarray]]], regimes: list[Regime], least: float, tiny: float,
          repeats: tuple[float, str] = (0.0, "")) -> str:
    """sound, told: log probabilities [n] of what came, of what cannot come below `tiny`; repeats: nats for draws that repeat others,
    and of which. A rule leaves at most a quarter of what the sound one cannot give."""
    best, words, as_well, impossible = least, "", "", np.count_nonzero(sound < tiny)
    for name, log_p in told:
        try:
            these = log_p()
        except Error:  # no distribution follows from it here
            continue
        gain, left = these - sound, these < tiny
        odd = MORE_IN_REGIME if "place i" in name else 0.0
        for i, regime in enumerate(regimes):
            if regime.is_outcome and not name.startswith(("residuals", "recovered tokens", "of the residual")):
                continue
            total = float(gain[regime.here].sum()) - (MORE_IN_REGIME if i else 0.0) - odd
            if total > best + (MORE if words else 0.0) and np.count_nonzero(np.where(regime.here, left, sound < tiny)) <= 0.25 * impossible:
                best, words, as_well = total, f"{name} in {regime.words}" if regime.words else name, ""
            elif words and not as_well and i == 0 and name != words and abs(total - best) < 1e-9 * abs(best):
                as_well = f", or {name}"
    return words + as_well if repeats[0] < best + MORE else f"random numbers are those of {repeats[1]}"


def _tiny(size: int) -> float:
    return float(np.log(1.5 * STRAY / size))


def _repeats(probabilities: np.ndarray, row: np.ndarray, token: np.ndarray, batch: int) -> tuple[float, str]:
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


def _log(chance: np.ndarray, size: int) -> np.ndarray:
    return np.log((1.0 - STRAY) * chance + STRAY / size)


def _regimes(params: Params, place: np.ndarray, batch: int, more: Iterator[tuple[str, np.ndarray]] = iter(())) -> list[Regime]:
    out = [Regime("", np.ones(len(place), bool))]
    for words, here in (*evidence.classes(params, place, batch), *more):
        if here.any() and not here.all():
            out.append(Regime(words if words.startswith(("the ", "places", "requests")) else f"rows with {words}", here))
    return out


# --- Wrong parameters and wrong rows, which samplers, filters and verifiers share -----------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class Given:
    """A row's logits and parameters, as a hypothesis has them. warm: a filter that sees the row at temperature 1; stops_short: top-p
    drops the token that crosses it."""

    logits: np.ndarray
    params: Params
    warm: str = ""
    stops_short: bool = False


def probabilities(given: Given) -> np.ndarray:
    if not given.warm:
        p = _sampling.process_rows(given.logits, given.params, ties="keep_all").probabilities
        if given.stops_short:
            crossed = (given.params["top_p"] < 1.0) & ((p > 0.0).sum(axis=1) > 1)
            p[crossed, np.where(p > 0.0, p, np.inf).argmin(axis=1)[crossed]] = 0.0
            p /= p.sum(axis=1, keepdims=True)
        return p
    greedy = given.params["temperature"] == 0.0
    rest = {**given.params, given.warm: np.full_like(given.params[given.warm], OFF[given.warm])}
    alone = {name: value if name == given.warm else np.full_like(value, OFF[name]) for name, value in given.params.items()}
    alone["temperature"] = np.where(greedy, 0.0, 1.0).astype(np.float32)
    p = _sampling.process_rows(given.logits, rest).probabilities * (_sampling.process_rows(given.logits, alone).probabilities > 0.0)
    total = p.sum(axis=1, keepdims=True)
    return np.divide(p, total, out=np.zeros_like(p), where=total > 0.0)


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
            yield f"{name} is applied before the temperature", Given(logits, params, warm=name)
    for name in names:
        off = np.full_like(params[name], OFF[name])
        yield f"{name} is not applied", changed(name, off if name != "temperature" else np.where(random, 1.0, 0.0))
    if (temperature == 0.0).any():
        yield "greedy rows are drawn", changed("temperature", np.where(random, temperature, 1.0))
    if random.any():
        yield "random rows are greedy", changed("temperature", np.zeros_like(temperature))
        yield "the temperature is applied twice", changed("temperature", temperature * temperature)
        for bound in (1e-5, 1e-4, 1e-3, 0.01, 0.02, 0.05, 0.1, 0.2):
            if (random & (temperature < bound)).any():
                yield f"the temperature is {bound:g} at least", changed("temperature", np.where(random, np.maximum(temperature, bound), 0.0))
                yield f"a temperature below {bound:g} is greedy", changed("temperature", np.where(temperature < bound, 0.0, temperature))
        for bound in (100.0, 10.0, 5.0, 2.0, 1.5, 1.0):
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
        yield "top_p drops the token that crosses it", Given(logits, params, stops_short=True)
    for name in ("top_p", "min_p"):
        for most in (1024, 1000, 512, 256, 128, 100, 64, 50) if name in names else ():
            if most < size:
                yield f"{name} keeps {most} tokens at most", Given(logits, {**params, "top_k": _at_most(
                    params["top_k"], most, params[name] != np.asarray(OFF[name], params[name].dtype))})
    yield from _wrong_logits(logits, params)
    for name in names:
        for words, at in others.items():
            yield f"{name} is {words}", changed(name, every[name][at])
    if len(names) > 1:
        for words, at in others.items():
            yield f"parameters are {words}", Given(logits, {name: every[name][at] for name in params})
    for name in names:
        for words, value in (("largest", every[name].max()), ("smallest", every[name].min())):
            if every[name].min() < every[name].max():
                yield f"{name} is the {words} of the call", changed(name, np.full_like(params[name], value))
        if name in ("top_p", "min_p"):
            for words, rounded in (("half precision", _float16), ("bfloat16", _bfloat16), ("bfloat16", _truncated)):
                yield f"{name} is of {words}", changed(name, rounded(params[name]))
    for name in names:
        for factor in FACTORS[name]:
            value = params[name] * np.float32(factor)
            yield f"{name} acts as {factor:g} times itself", changed(name, value if name == "temperature" else np.minimum(value, 1.0))


def _wrong_logits(logits: np.ndarray, params: Params) -> Iterator[tuple[str, Given]]:
    finite = np.isfinite(logits)
    for words, bounded in (("half precision", _float16), ("bfloat16", _bfloat16), ("bfloat16", _truncated)):
        yield f"logits are of {words}", Given(np.where(finite, bounded(logits), logits), params)
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


def neighbours(count: int) -> dict[str, np.ndarray]:
    """Of rows in order: whose parameters might be read."""
    at = np.arange(count)
    return {"the next one's": (at + 1) % count, "the one's before": at - 1, "the first one's": at * 0, "the last one's": at * 0 + count - 1,
            **{f"place i / {width}'s": at // width for width in (2, 4, 8, 32) if count > width},
            **{f"place i modulo {width}'s": at % width for width in (8, 16, 32, 64, 128, 256, 512, 1024) if count > width}} if count > 1 else {}


# --- Samplers and filters -------------------------------------------------------------------------------------------


def _of_draws(run: SampleRun, least: float) -> str:
    case = run.case
    group, token = np.concatenate(run.groups), np.concatenate(run.samples)
    inside = (token >= 0) & (token < case.vocab_size)
    if not inside.all():
        return ""
    calls = len(group) // case.batch
    of_call = neighbours(case.batch)
    others = {words: group.reshape(calls, case.batch)[:, at].ravel() for words, at in of_call.items()}
    here = np.arange(len(group))
    while len(here) > 64 and len(np.unique(group[here])) * case.vocab_size > ELEMENTS:
        here = here[:len(here) // 2]
    place = np.tile(np.arange(case.batch), calls)[here]
    group, token = group[here], token[here]
    others = {words: at[here] for words, at in others.items()}

    def log_p(given: Given, row: np.ndarray) -> np.ndarray:
        return _log(probabilities(given)[row, token].astype(np.float64), case.vocab_size)

    groups, own_row = np.unique(group, return_inverse=True)
    own = Given(case.logits[groups], {name: value[groups] for name, value in case.params.items()})
    sound = log_p(own, own_row)

    def told() -> Iterator[tuple[str, Callable[[], np.ndarray]]]:
        # A row stands once for each that its parameters may be mixed with.
        for words, at in (("", group), *others.items()):
            pairs, row = np.unique(np.stack([group, at]), axis=1, return_inverse=True)
            row = row.ravel()
            if pairs.shape[1] * case.vocab_size > 4 * ELEMENTS:
                continue
            params = {name: value[pairs[0]] for name, value in case.params.items()}
            for name, given in wrong_rows(case.logits[pairs[0]], params, {words: pairs[1]} if words else {}, case.params):
                if not words or words in name:
                    yield name, lambda given=given, row=row: log_p(given, row)
        if case.vocab_size > 1 << 16:
            yield "ids have 16 bits", lambda: _log(_folded(probabilities(own))[own_row, token], case.vocab_size)
        yield "all tokens have one chance, masked ones too", lambda: np.full(len(token), -np.log(case.vocab_size))

    params = {name: value[group] for name, value in case.params.items()}
    return _best(sound, told(), _regimes(params, place, case.batch), least, _tiny(case.vocab_size),
                 _repeats(probabilities(own).astype(np.float64), own_row, token, case.batch))


def _folded(p: np.ndarray) -> np.ndarray:
    """[n, V]: the mass of every id on its low 16 bits."""
    out = np.zeros(p.shape)
    for begin in range(0, p.shape[1], 1 << 16):
        part = p[:, begin:begin + (1 << 16)]
        out[:, :part.shape[1]] += part
    return out


def _of_filter(run: FilterRun) -> str:
    """By the sets that were kept."""
    case, left = run.case, run.left
    if left is None or case.logits.size > ELEMENTS:
        return ""
    kept = left > -np.inf

    def log_p(given: Given) -> np.ndarray:
        return np.where(((probabilities(given) > 0.0) == kept).all(axis=1), 0.0, -2.0 * LEAST)  # one row is enough

    everyone = neighbours(len(kept))
    told = ((name, lambda given=given: log_p(given)) for name, given in wrong_rows(case.logits, case.params, everyone, case.params))
    return _best(log_p(Given(case.logits, case.params)), told, _regimes(case.params, np.arange(len(kept)), len(kept)), LEAST, -LEAST)


# --- Verifiers: chain verification (Leviathan et al. 2023, algorithm 1) with one thing wrong ------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class Rule:
    """p: target's rows [N, V], of accepting, of residuals, of bonus tokens; q: drafts' [N, V] (rows of bonus tokens are 0)."""

    accept: np.ndarray
    recover: np.ndarray
    bonus: np.ndarray
    q: np.ndarray
    ratio: Callable[[np.ndarray, np.ndarray], np.ndarray] = lambda p, q: np.minimum(1.0, p / np.maximum(q, 1e-30))
    residual: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray] | None = None
    sure_from: int = 1 << 30
    one_coin: bool = False


class Told:
    """Log probabilities of the steps of a run under rules."""

    def __init__(self, steps: Steps, vocab_size: int) -> None:
        self.steps, self.size = steps, vocab_size
        n, width = steps.out.shape
        self.place = np.arange(width)[None, :]
        everything = np.arange(n)
        last = np.maximum(steps.count - 1, 0)
        self.token = np.clip(steps.out[everything, last], 0, vocab_size - 1)
        self.row = steps.row[everything, last]
        self.is_bonus = (steps.count > steps.lens)
        self.is_draft = self.place < steps.lens[:, None]
        self.stood = self.is_draft & (self.place < last[:, None])
        self.fell = self.is_draft & (self.place == last[:, None]) & ~self.is_bonus[:, None]
        self.x = np.where(self.is_draft, np.clip(steps.drafts, 0, vocab_size - 1), 0)

    def __call__(self, rule: Rule) -> np.ndarray:
        p, q = rule.accept[self.steps.row, self.x], rule.q[self.steps.row, self.x]
        chance = np.where(self.place >= rule.sure_from, 1.0, rule.ratio(p, q))
        if rule.one_coin:  # below the chance of every draft that stood, not below that of the one that fell
            stood = np.where(self.stood, chance, 1.0).min(axis=1)
            log_p = _log(np.maximum(stood - np.where(self.fell, chance, 0.0).sum(axis=1), 0.0), self.size)
        else:
            log_p = (np.where(self.stood, _log(chance, self.size), 0.0) +
                     np.where(self.fell, _log(1.0 - chance, self.size), 0.0)).sum(axis=1)
        left = np.maximum(rule.recover - rule.q, 0.0)
        if rule.residual is not None:
            x = np.full(len(left), -1)
            x[self.steps.row[self.is_draft]] = self.x[self.is_draft]
            left = rule.residual(rule.recover, rule.q, x)
        total = left.sum(axis=1, keepdims=True)
        left = np.where(total > 1e-12, left / np.maximum(total, 1e-30), rule.recover)
        drawn = np.where(self.is_bonus, rule.bonus[self.row, self.token], left[self.row, self.token])
        return log_p + _log(drawn, self.size)


def _of_steps(run: StepsRun, least: float) -> str:
    case, steps = run.case, steps_of(run)
    most = max(1, ELEMENTS // max(1, steps.out.shape[1]))
    if len(steps.out) > most:
        steps = Steps(*(value[:most] for value in dataclasses.astuple(steps)))
    if case.target.size > 2 * ELEMENTS or ((steps.count == 0) | (steps.out >= case.vocab_size).any(axis=1)).any():
        return ""
    fixed = case.fixed is not None or case.one_hot or case.drafts is None
    if fixed and len({tuple(row) for row in steps.drafts[:4 * case.batch:case.batch]}) > 1:
        return ""  # one-hot drafts that change from call to call
    log_p = Told(steps, case.vocab_size)
    of_row, count = case.of_row, len(case.target)
    is_bonus = np.arange(count) == np.repeat(np.cumsum(case.lens + 1) - 1, case.lens + 1)
    q = np.zeros(case.target.shape)
    if fixed:
        q[steps.row[:case.batch][log_p.is_draft[:case.batch]], log_p.x[:case.batch][log_p.is_draft[:case.batch]]] = 1.0
    else:
        q[~is_bonus] = case.drafts
    params = {name: value[of_row] for name, value in case.params.items()}

    def table(given: Given) -> np.ndarray:
        return probabilities(given).astype(np.float64)

    p = table(Given(case.target, params))
    sound = log_p(Rule(p, p, p, q))
    place = np.arange(len(steps.out)) % case.batch
    shown = {name: value[place] for name, value in case.params.items()}
    more = [("requests without drafts", steps.lens == 0), *((f"requests of {bound} drafts or more", steps.lens >= bound)
                                                            for bound in (1, 2, 3, 5, 9, 17))]
    fallen = [Regime("requests whose last draft falls", (steps.lens > 0) & (steps.count == steps.lens), True),
              Regime("requests whose first draft falls", (steps.lens > 0) & (steps.count == 1), True)]
    told = ((name, lambda rule=rule: log_p(rule)) for name, rule in _wrong_rules(case.target, params, case, p, q, of_row, is_bonus, table))
    return _best(sound, told, [*_regimes(shown, place, case.batch, iter(more)), *fallen], least, _tiny(case.vocab_size),
                 _repeats(p, steps.row[:, 0], steps.out[:, 0], case.batch))


def _wrong_rules(target: np.ndarray, params: Params, case: Any, p: np.ndarray, q: np.ndarray, of_row: np.ndarray, is_bonus: np.ndarray,
                 table: Callable[[Given], np.ndarray]) -> Iterator[tuple[str, Rule]]:
    at = np.arange(len(p))
    first = (np.cumsum(case.lens + 1) - (case.lens + 1))[of_row]
    before, after = np.maximum(at - 1, first), np.where(is_bonus, at, at + 1)
    unfiltered = table(Given(target, {name: value if name == "temperature" else np.full_like(value, OFF[name]) for name, value in params.items()}))

    def rule(**changed: Any) -> Rule:
        return Rule(**{"accept": p, "recover": p, "bonus": p, "q": q, **changed})

    def without_draft(rows: np.ndarray, _: np.ndarray, x: np.ndarray) -> np.ndarray:
        left = rows.copy()
        left[at[x >= 0], x[x >= 0]] = 0.0
        return left

    yield "recovered tokens are drawn from the target's row, not from the residual", rule(residual=lambda rows, _q, _x: rows)
    yield "recovered tokens are drawn from |p - q|", rule(residual=lambda rows, drafts, _x: np.abs(rows - drafts))
    yield "of the residual only the rejected draft is taken out", rule(residual=without_draft)
    yield "recovered tokens are drawn from the draft's row", rule(residual=lambda _rows, drafts, _x: drafts)
    yield "recovered tokens are drawn with the coin that rejected", rule(residual=_with_the_coin)
    yield "recovered tokens are the likeliest of the residual", rule(
        residual=lambda rows, drafts, _x: _likeliest(np.maximum(rows - drafts, 0.0)))
    yield "residuals are of p of the next row", rule(recover=p[after])
    yield "residuals are of p of the row before", rule(recover=p[before])
    yield "residuals are of the first row", rule(recover=p[first], residual=lambda rows, _q, _x: np.maximum(rows - q[first], 0.0))
    yield "residuals are of the row before", rule(recover=p[before], residual=lambda rows, _q, _x: np.maximum(rows - q[before], 0.0))
    yield "residuals are of the next row", rule(recover=p[after], residual=lambda rows, _q, _x: np.maximum(rows - q[after], 0.0))
    yield "residuals are of the unfiltered row", rule(recover=unfiltered)
    yield "the bonus token is of the row before", rule(bonus=p[before])
    yield "the bonus token is of the first row", rule(bonus=p[first])
    yield "the bonus token is of the unfiltered row", rule(bonus=unfiltered)
    yield "the bonus token is the likeliest one", rule(bonus=_likeliest(p))
    if case.batch > 1:
        bonus = np.flatnonzero(is_bonus)
        yield "the bonus token is of the next request", rule(bonus=p[np.roll(bonus, -1)][of_row])
        yield "the bonus token is of the request before", rule(bonus=p[np.roll(bonus, 1)][of_row])
        for words, shift in (("next", 1), ("last", -1)):
            moved = np.clip(at + shift, 0, len(at) - 1)
            yield f"rows are read one too {'late' if shift > 0 else 'early'}", rule(accept=p[moved], recover=p[moved], bonus=p[moved])
    yield "drafts are judged by the row before", rule(accept=p[before])
    yield "drafts are judged by the next row", rule(accept=p[after])
    yield "drafts are judged by the unfiltered row", rule(accept=unfiltered)
    for words, shift in (("next", -1), ("last", 1)):
        moved = q.copy()
        moved[~is_bonus] = np.roll(q[~is_bonus], shift, axis=0)
        yield f"q is that of the {words} draft", rule(q=moved)
    yield "q is taken for 1", rule(ratio=lambda rows, _: rows, residual=without_draft)
    yield "drafts stand where they are the likeliest token", rule(accept=_likeliest(p), ratio=lambda rows, _: rows,
                                                                 residual=lambda rows, _q, _x: rows)
    cut = np.where(p > 0.0, q, 0.0)
    total = cut.sum(axis=1, keepdims=True)
    yield "q is cut to the target's tokens", rule(q=np.where(total > 0.0, cut / np.maximum(total, 1e-30), q))
    yield "drafts are judged as if q were 1", rule(ratio=lambda rows, _: rows)
    yield "q is taken for uniform", rule(q=np.where(is_bonus[:, None], 0.0, np.full_like(q, 1.0 / p.shape[1])))
    for factor in (0.5, 0.8, 0.9, 0.95, 0.98, 1.02, 1.05, 1.1, 1.25, 2.0):
        words = "too often" if factor > 1.0 else "too seldom"
        yield f"drafts are accepted {words}, as with {factor:g} p / q", rule(
            ratio=lambda rows, drafts, factor=factor: np.minimum(1.0, factor * rows / np.maximum(drafts, 1e-30)))
    for more in (1e-3, 1e-2):
        yield f"drafts of small probability are accepted too seldom, as with p / (q + {more:g})", rule(
            ratio=lambda rows, drafts, more=more: np.minimum(1.0, rows / (drafts + more)))
    for bound in (0.01, 0.05, 0.1):
        yield f"a residual whose sum is below {bound:g} is taken for empty", rule(
            residual=lambda rows, drafts, _x, bound=bound: _unless_below(np.maximum(rows - drafts, 0.0), bound, rows))
    for bound in [bound for bound in (1 << 15, 1 << 16, 1 << 17) if bound < p.shape[1]]:
        yield f"residuals end at {bound:,} tokens", rule(
            residual=lambda rows, drafts, _x, bound=bound: np.where(np.arange(rows.shape[1]) < bound, np.maximum(rows - drafts, 0.0), 0.0))
    yield "no draft is accepted", rule(ratio=lambda rows, _: np.zeros_like(rows))
    yield "one coin judges all drafts of a request", rule(one_coin=True)
    yield "drafts are accepted where p / q is above 1 / 2", rule(ratio=lambda rows, drafts: (rows > 0.5 * drafts).astype(float))
    for more in (1e-4, 1e-3, 1e-2):
        yield f"drafts of small probability are accepted too often, as with p + {more:g}", rule(
            ratio=lambda rows, drafts, more=more: np.minimum(1.0, (rows + more) / np.maximum(drafts, 1e-30)))
    for bound in (0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32):
        if bound < case.lens.max(initial=0):
            yield f"all drafts from place {bound} on are accepted", rule(sure_from=bound)
    for bound in (7, 8, 15, 16, 31, 32):
        if bound < case.lens.max(initial=0):
            capped = np.minimum(at, first + bound)
            yield f"rows beyond place {bound} are that of place {bound}", rule(accept=p[capped], recover=p[capped], bonus=p[capped])
    others = neighbours(case.batch)
    width = int(case.lens.max(initial=0)) + 1
    by_row = {words.replace("one", "request"): where[of_row] for words, where in others.items()}
    by_row["read by row, not by request"] = np.minimum(at, case.batch - 1)
    by_row["read as if all had as many drafts as the longest"] = np.minimum(at // width, case.batch - 1)
    by_row["that of the request with most drafts"] = np.full(len(at), int(case.lens.argmax()))
    for name, given in wrong_rows(target, params, by_row if case.batch > 1 else {}, case.params):
        try:
            rows = table(given)
        except Error:
            continue
        yield name, rule(accept=rows, recover=rows, bonus=rows)


def _unless_below(left: np.ndarray, bound: float, otherwise: np.ndarray) -> np.ndarray:
    return np.where(left.sum(axis=1, keepdims=True) >= bound, left, otherwise)


def _likeliest(rows: np.ndarray) -> np.ndarray:
    out = np.zeros_like(rows)
    out[np.arange(len(rows)), rows.argmax(axis=1)] = 1.0
    return out


def _with_the_coin(p: np.ndarray, q: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A coin that rejected lies above p / q of the draft x: the residual's part above it, in the order of ids."""
    left = np.maximum(p - q, 0.0)
    total = left.sum(axis=1, keepdims=True)
    left = np.where(total > 0.0, left / np.maximum(total, 1e-30), p)
    at = np.arange(len(p))
    bound = np.where(x >= 0, np.minimum(1.0, p[at, x] / np.maximum(q[at, x], 1e-30)), 0.0)[:, None]
    until = np.minimum(np.cumsum(left, axis=1), 1.0)
    return np.maximum(until, bound) - np.maximum(until - left, bound)
