"""What a verifier emitted (observed.py), and deviations of chain verification: a site of the step, and the row,
parameter, draft, coin or formula that is used there instead."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Any, Callable, Iterator

import numpy as np

from ..cases.verify_sweep import Steps, StepsCase, StepsRun, steps_of
from ..evidence import evidence
from ..evidence.verify_judge import VerifyRun
from . import grammar
from .chain import Chain, Emitted, left_of, of_steps, ratio_of
from .grammar import FILTERS, Deviation, Params, Rows, rare
from .numbers import lost_of_seeds, repeats_of, shared_of, wrong_draws
from .observed import ELEMENTS, Draws, Observed, regimes_of, window

#: Steps, each with rows of its own, that are looked at.
EACH = 1024


@dataclasses.dataclass(frozen=True, eq=False)
class StepRows:
    """Of steps: the target's rows [N], of drafts and of bonus tokens, p and q: their probabilities [N, V]; of case."""

    case: StepsCase
    q: np.ndarray

    @functools.cached_property
    def target(self) -> Rows:
        return Rows(self.case.target, {name: value[self.case.of_row] for name, value in self.case.params.items()})

    @functools.cached_property
    def p(self) -> np.ndarray:
        return _table(self.target)

    @functools.cached_property
    def first(self) -> np.ndarray:
        """[B]: the first row of each request; its bonus row is `lens` rows further."""
        return np.cumsum(self.case.lens + 1) - (self.case.lens + 1)

    @functools.cached_property
    def is_bonus(self) -> np.ndarray:
        return np.isin(np.arange(len(self.q)), self.first + self.case.lens)

    def chain(self, **changed: Any) -> Chain:
        return Chain(**{"accept": self.p, "recover": self.p, "bonus": self.p, "q": self.q, **changed})

    def unfiltered(self, **changed: Any) -> np.ndarray:
        bare = Rows(self.target.logits, grammar.switched_off(self.target.params, *FILTERS))
        return _table(bare.with_params(**changed))


def _table(rows: Rows) -> np.ndarray:
    return rows.probabilities.astype(np.float64)


def _first(steps: Steps, most: int) -> Steps:
    return Steps(*(value[:most] for value in dataclasses.astuple(steps)))


def observed_steps(run: StepsRun | VerifyRun, around: int) -> Observed | None:
    if isinstance(run, StepsRun):
        case, steps, seeds = run.case, steps_of(run), [run.seeds_of(call) for call in range(run.calls)]
    elif run.case.drafter is not None and not run.case.endpoints:
        (case, steps), seeds = _each_its_own(run, run.case.drafter), []
    else:
        return None
    if not ((steps.count > 0) & (steps.out < case.vocab_size).all(axis=1)).all():
        return None
    batch = run.case.batch
    steps = _first(steps, max(batch, ELEMENTS // max(1, steps.out.shape[1]) // batch * batch))
    fixed = case.fixed is not None or case.one_hot or case.drafts is None
    if fixed and case.fixed is None and case.drafts is not None and len(case.drafts):
        case, steps = _unrolled(case, steps)
    return _observed(case, steps, batch, fixed, around, seeds)


def _unrolled(case: StepsCase, steps: Steps) -> tuple[StepsCase, Steps]:
    """Calls as one with the requests of all: certain drafts that differ from call to call are rows of their own."""
    calls = max(1, min(len(steps.out) // case.batch, ELEMENTS // max(1, case.target.size)))
    steps = _first(steps, calls * case.batch)
    steps.row = steps.row + np.repeat(np.arange(calls) * len(case.target), case.batch)[:, None]
    return dataclasses.replace(case, target=np.tile(case.target, (calls, 1)), lens=np.tile(case.lens, calls),
                               params={name: np.tile(value, calls) for name, value in case.params.items()}), steps


def _each_its_own(run: VerifyRun, drafter: tuple[np.ndarray, ...]) -> tuple[StepsCase, Steps]:
    """Rows depend on the tokens before, so that each step has its own."""
    case = run.case
    calls = min(run.calls, max(1, min(EACH, ELEMENTS // (case.vocab_size * (max(case.draft_lens) + 1))) // case.batch))
    out, drafts = np.concatenate(run.outputs[:calls]), np.concatenate(run.drafts[:calls])
    lens = np.tile(run.lens(), calls)
    first = np.cumsum(lens + 1) - (lens + 1)
    whole = StepsCase(case.name, run._gather(case.target, drafts, lens, 1),
                      run._gather(drafter, drafts, lens, 0), lens,
                      {name: np.repeat(value, len(lens)) for name, value in case.params.items()}, "")
    return whole, Steps(out, np.pad(drafts, ((0, 0), (0, 1)), constant_values=-1), lens,
                        np.cumprod(out != -1, axis=1).sum(axis=1),
                        first[:, None] + np.minimum(np.arange(out.shape[1])[None, :], lens[:, None]))


def _observed(case: StepsCase, steps: Steps, batch: int, fixed: bool, around: int,
              seeds: list[np.ndarray]) -> Observed:
    """batch: requests of a call; case: those of one, or of all calls."""
    chosen, place, whole, size = np.arange(case.batch), np.arange(len(steps.out)) % batch, case, batch
    if case.target.size > 2 * ELEMENTS:  # of many requests those around one that failed
        chosen = window(around, case.batch,
                        max(1, 2 * ELEMENTS // (case.vocab_size * (int(case.lens.max(initial=0)) + 1))))
        here = np.isin(place, chosen)
        first = int(np.flatnonzero(case.of_row == chosen[0])[0])
        case, batch = case.take(chosen), len(chosen)
        steps = Steps(*(value[here] for value in dataclasses.astuple(steps)))
        steps.row, place = steps.row - first, place[here]
    emitted = Emitted(steps, case.vocab_size, batch)
    rows = StepRows(case, np.zeros(case.target.shape))
    if fixed:
        is_draft = emitted.is_draft[:case.batch]
        rows.q[steps.row[:case.batch][is_draft], emitted.x[:case.batch][is_draft]] = 1.0
    else:
        rows.q[~rows.is_bonus] = case.drafts
    zone = evidence.Rows.of(rows.target.logits, rows.target.params).zone
    of_sound = of_steps(emitted, rows.chain(), zone)
    sound = of_sound()

    def rules() -> Iterator[Deviation]:
        for wrong in itertools.chain(_wrong_places(rows), _wrong_steps(rows), _wrong_parameters(rows, batch)):
            yield wrong.then(lambda chain: of_steps(emitted, chain, zone))

    def shared_coins() -> tuple[float, str]:
        step, at = np.nonzero(emitted.stood | emitted.fell)
        coins, first = of_sound.parts[0], at == 0
        return shared_of(coins.table, coins.row[first], coins.token[first], step[first], len(sound), batch)

    draws = Draws({name: value[place] for name, value in whole.params.items()}, place, size)
    more = [("requests without drafts", steps.lens == 0),
            *((f"requests of {bound} drafts or more", steps.lens >= bound) for bound in (1, 2, 3, 5, 9, 17)),
            ("calls of one request", np.full(len(place), size == 1)),
            ("calls without draft probabilities", np.full(len(place), fixed and bool(steps.lens.any())))]
    return Observed(of_sound, sound, of_sound.tiny, rules, regimes_of(draws, sound < of_sound.tiny, more),
                    case.target.size, draws,
                    lambda: max(repeats_of(rows.p, steps.row[:, 0] % (len(rows.p) * batch // case.batch),
                                           steps.out[:, 0], batch), shared_coins()),
                    lambda: lost_of_seeds(np.concatenate(seeds)[:len(steps.out)], rows.p, steps.row[:, 0],
                                          steps.out[:, 0]) if seeds and case is whole else "")


# The formulas of a step


#: What a step computes instead, by the fields of Chain: `ratio`, the chance that a draft stands, `residual`, weights of
#: recovered tokens, `judged`, the chances of all drafts of a step.
FORMULAS: dict[str, dict[str, Any]] = {
    "no draft is accepted": {"ratio": lambda p, q: 0.0 * p},
    "every draft is accepted": {"ratio": lambda p, q: 0.0 * p + 1.0},
    "drafts are judged as if q were 1": {"ratio": lambda p, q: p},
    "p / q is inverted": {"ratio": lambda p, q: ratio_of(q, p)},
    "drafts are accepted with the product of p / q up to their place": {
        "judged": lambda of, chance: np.cumprod(np.where(of.is_draft, chance, 1.0), axis=1)},
    "all drafts of a request are judged with one coin": {
        "judged": lambda of, chance: _one_coin(np.where(of.is_draft, chance, 1.0))},
    "the last draft of a request is accepted": {
        "judged": lambda of, chance: np.where(of.place == of.steps.lens[:, None] - 1, 1.0, chance)},
    "recovered tokens are drawn from the target's row, not from the residual": {"residual": lambda p, q, x: p},
    "recovered tokens are drawn from |p - q|": {"residual": lambda p, q, x: np.abs(p - q)},
    "residuals are of q - p, not of p - q": {"residual": lambda p, q, x: left_of(q, p)},
    "recovered tokens are drawn from the draft's row": {"residual": lambda p, q, x: q},
    "recovered tokens are the likeliest of the residual": {"residual": lambda p, q, x: _likeliest(left_of(p, q))},
    "recovered tokens are the likeliest of the target": {"residual": lambda p, q, x: _likeliest(p)},
    **{f"the residual is not divided by its sum: the rest falls to its {words}": {
        "residual": lambda p, q, x, which=which: grammar.with_rest(left_of(p, q), which)}
       for words, which in grammar.RESTS.items()},
    "q is taken for 1": {"ratio": lambda p, q: p, "residual": lambda p, q, x: _without(p, x), "of_draft": True},
    "the bonus token is drawn with the coin of the last draft": {"has_last_coin": True}}
#: The same with a number, that is learned, between two.
FORMULAS_BY: dict[str, tuple[Callable[[float], dict[str, Any]], float, float]] = {
    "a draft is accepted with {} at least": (
        lambda x: {"ratio": lambda p, q: np.maximum(ratio_of(p, q), x)}, 1e-3, 0.9),
    "drafts of small probability are accepted too seldom, as with p / (q + {})": (
        lambda x: {"ratio": lambda p, q: ratio_of(p, q + x)}, 1e-5, 0.1),
    "drafts of small probability are accepted too often, as with p + {}": (
        lambda x: {"ratio": lambda p, q: ratio_of(p + x, q)}, 1e-6, 0.1),
    "drafts are accepted as with {} p / q": (lambda x: {"ratio": lambda p, q: ratio_of(x * p, q)}, 0.125, 8.0),
    "p and q are {} at least where drafts are judged": (
        lambda x: {"ratio": lambda p, q: ratio_of(np.maximum(p, x), np.maximum(q, x))}, 1e-8, 0.01),
    "residuals are {} at least": (lambda x: {"residual": lambda p, q, _: np.maximum(p - q, x)}, 1e-7, 0.1),
    "a residual whose sum is below {} is taken for empty": (
        lambda x: {"residual": lambda p, q, _: _unless_below(left_of(p, q), x, p)}, 1e-3, 0.5),
    "drafts of q below {} are dropped, and their place is drawn from p": (lambda bound: {
        "ratio": lambda p, q: np.where(q < bound, 0.0, ratio_of(p, q)), "of_draft": True, "residual": lambda p, q, x:
            np.where(np.take_along_axis(q, x[:, None], axis=1) < bound, p, left_of(p, q))}, 0.01, 0.9)}


def _one_coin(chance: np.ndarray) -> np.ndarray:
    least = np.minimum.accumulate(chance, axis=1)
    return least / np.maximum(np.concatenate([np.ones_like(least[:, :1]), least[:, :-1]], axis=1), 1e-30)


def _likeliest(rows: np.ndarray) -> np.ndarray:
    return (np.arange(rows.shape[1]) == rows.argmax(axis=1)[:, None]).astype(np.float64)


def _unless_below(left: np.ndarray, bound: float, otherwise: np.ndarray) -> np.ndarray:
    return np.where(left.sum(axis=1, keepdims=True) >= bound, left, otherwise)


def _without(rows: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.where(np.arange(rows.shape[1]) == x[:, None], 0.0, rows)


def _wrong_steps(rows: StepRows) -> Iterator[Deviation]:
    """Deviations that read each row where it should be read."""
    chain, p, q, is_bonus, case = rows.chain, rows.p, rows.q, rows.is_bonus, rows.case
    size, params, temperature = p.shape[1], rows.target.params, rows.target.params["temperature"]
    for name, fields in FORMULAS.items():
        yield Deviation(name, lambda fields=fields: chain(**fields))
    for name, (by, low, high) in FORMULAS_BY.items():
        yield Deviation(name, lambda x, by=by: chain(**by(x)), low, high)
    if case.lens.max(initial=0) > 1:
        yield Deviation("all drafts from place {} on are accepted", lambda place: chain(
            judged=lambda of, chance: np.where(of.place >= place, 1.0, chance)), 1, int(case.lens.max()) - 1, True)
    if case.lens.sum() > 1:
        yield rare("drafts from the {}th of a call on are rejected", lambda place: chain(
            judged=lambda of, chance: np.where(of.of_call >= place, 0.0, chance)), 1, int(case.lens.sum()) - 1, True)
    for which in ("p", "q"):
        yield rare(f"{which} of a draft is that of the next draft's token",
                   lambda which=which: chain(**{f"{which}_at": Emitted.next_x}))
    for bits in (15, 16):
        if 1 << bits < size:
            cut = {f"{which}_at": lambda of, bits=bits: of.x & ((1 << bits) - 1) for which in "pq"}
            yield rare(f"drafts are looked up by ids of {bits} bits", lambda cut=cut: chain(**cut))
    yield Deviation("residuals end at {} tokens", lambda bound: chain(residual=lambda p, q, _x: _unless_below(
        np.where(np.arange(size) < bound, left_of(p, q), 0.0), 1e-12, p)), 1, max(1, size - 1), True)
    yield rare("of the residual only the rejected draft is taken out",
               lambda: chain(residual=lambda p, _q, x: _without(p, x), of_draft=True))
    for name, draws in wrong_draws(size):
        def of_residual(p: np.ndarray, q: np.ndarray, _x: np.ndarray,
                        draws: Callable[..., np.ndarray] = draws) -> np.ndarray:
            left = left_of(p, q)
            total = left.sum(axis=1, keepdims=True)
            return draws(np.where(total > 1e-12, left / np.maximum(total, 1e-30), p))

        for part, sites in (("", ("bonus", "residual")), ("of recovered tokens: ", ("residual",)),
                            ("of bonus tokens: ", ("bonus",))):
            yield rare(part + name, lambda sites=sites, draws=draws, of_residual=of_residual: chain(
                **{site: draws(p) if site == "bonus" else of_residual for site in sites}))
    if (temperature != 1.0).any():
        yield Deviation("q is tempered as the target is", lambda: chain(q=_tempered(q, temperature)))
    if any(grammar.is_on(name, value).any() for name, value in params.items() if name in FILTERS):
        yield Deviation("q is filtered as the target is", lambda: chain(q=_filtered(q, params, is_bonus)))
        whole = functools.cache(lambda: grammar.undivided(rows.target.logits, params).astype(np.float64))
        yield Deviation("the target is not divided by what its filters keep",
                        lambda: chain(accept=whole(), recover=whole()))
    yield Deviation("q is cut to the target's tokens", lambda: chain(q=_cut(q, p > 0.0)))
    yield Deviation("q is taken for uniform", lambda: chain(
        q=np.where(is_bonus[:, None], 0.0, np.full_like(q, 1.0 / size))))
    if (temperature == 0.0).any():
        cold, drawn = (temperature == 0.0)[:, None], np.where(temperature == 0.0, 1.0, temperature)
        yield Deviation("recovered tokens of greedy requests are the likeliest of the residual at temperature 1",
                        lambda: chain(recover=np.where(cold, rows.unfiltered(temperature=drawn), p),
                                      residual=lambda p, q, _x: np.where(cold, _likeliest(left_of(p, q)),
                                                                         left_of(p, q))))
    yield Deviation("the bonus token is the likeliest one", lambda: chain(bonus=_likeliest(p)))
    yield Deviation("drafts stand where they are the likeliest token", lambda: chain(
        accept=_likeliest(p), ratio=lambda p, _: p, residual=lambda p, _q, _x: p))


def _tempered(q: np.ndarray, temperature: np.ndarray) -> np.ndarray:
    t = np.where(temperature > 0.0, temperature, 1.0).astype(np.float64)[:, None]
    top = np.maximum(q.max(axis=1, keepdims=True), 1e-300)
    with np.errstate(divide="ignore", under="ignore"):
        w = np.where(q > 0.0, np.exp(np.log(np.maximum(q, 1e-300) / top) / t), 0.0)
    return np.where(temperature[:, None] > 0.0, w / np.maximum(w.sum(axis=1, keepdims=True), 1e-30), q)


def _filtered(q: np.ndarray, params: Params, is_bonus: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        logits = np.where(is_bonus[:, None], 0.0, np.log(q)).astype(np.float32)
    return np.where(is_bonus[:, None], 0.0, _table(Rows(logits, params).with_params(
        temperature=np.where(params["temperature"] > 0.0, 1.0, 0.0))))


def _cut(q: np.ndarray, kept: np.ndarray) -> np.ndarray:
    cut = np.where(kept, q, 0.0)
    total = cut.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, cut / np.maximum(total, 1e-30), q)


# Where the rows of a step are read


#: Where the target's rows are read, all of it and parts of it.
ALL_PLACES = ("accept", "recover", "bonus")
PARTS = {"": ALL_PLACES, "of bonus tokens: ": ("bonus",), "of drafts and recovered tokens: ": ("accept", "recover"),
         "of recovered tokens: ": ("recover",), "of drafts: ": ("accept",)}
#: Where a row is read, and what is said of it where another is read there.
SITES = {"rows are of {}": ALL_PLACES, "drafts are judged by {}": ("accept",), "residuals are of p of {}": ("recover",),
         "the bonus token is of {}": ("bonus",), "q is of {}": ("q", "q_residual"),
         "residuals are of q of {}": ("q_residual",), "residuals are of {}": ("recover", "q_residual")}


def _wrong_places(rows: StepRows) -> Iterator[Deviation]:
    """Every row that might be read instead, at every site."""
    p, q, is_bonus, case, first = rows.p, rows.q, rows.is_bonus, rows.case, rows.first[rows.case.of_row]
    count = np.arange(len(q))
    of_q = count - is_bonus  # a bonus row has no q: the last draft's
    seen: set[tuple[str, bytes]] = set()
    for words, moved in _moves(rows):
        for site, names in SITES.items():
            read = (site, moved[is_bonus if names == ("bonus",) else slice(None)].tobytes())
            if read in seen or (words.startswith("the row of") and "bonus" not in names):
                continue
            seen.add(read)
            yield Deviation(site.replace("{}", words), lambda moved=moved, names=names: rows.chain(
                **{name: np.where(is_bonus[:, None], 0.0, q[of_q[moved]]) if name.startswith("q") else p[moved]
                   for name in names}), is_rare="q" in names)
    yield Deviation("filters are applied to the first row of a request alone", lambda: rows.chain(**dict.fromkeys(
        ALL_PLACES, np.where((count == first)[:, None], p, rows.unfiltered()))))
    logits = rows.target.logits
    both = np.where(np.isneginf(logits[first]), -np.inf, logits)
    both = np.where(np.isneginf(both).all(axis=1, keepdims=True), logits, both)
    if (both < logits).any():
        yield Deviation("tokens that the first row of a request masks are masked in all its rows", lambda: rows.chain(
            **dict.fromkeys(ALL_PLACES, _table(rows.target.with_logits(both)))))
    if is_bonus.all():
        return
    of_draft, at = np.flatnonzero(~is_bonus), np.arange(int((~is_bonus).sum()))
    empty = np.repeat(np.cumsum(case.lens == 0), case.lens)
    for words, reads in (("read at the rows of the target, bonus rows among them", of_draft),
                         ("that of the next draft", at + 1), ("that of the last draft", at - 1),
                         ("read one row too late behind a request without drafts", at + empty)):
        if (reads != at).any():
            moved_q = np.zeros_like(q)
            moved_q[of_draft] = q[of_draft[np.clip(reads, 0, len(at) - 1)]]
            yield Deviation(f"q is {words}", lambda moved_q=moved_q: rows.chain(q=moved_q, q_residual=moved_q))


def _moves(rows: StepRows) -> Iterator[tuple[str, np.ndarray]]:
    """Of each of the rows [N] another one, in words."""
    case, of_row, first_of, is_bonus = rows.case, rows.case.of_row, rows.first, rows.is_bonus
    at, longest, end = np.arange(len(of_row)), int(case.lens.max(initial=0)), len(of_row) - 1
    first, lens = first_of[of_row], case.lens[of_row]

    yield "the row before", np.maximum(at - 1, first)
    yield "the next row", np.where(is_bonus, at, at + 1)
    yield "the first row", first
    yield "the last draft's row", first + np.maximum(lens - 1, 0)
    if (case.lens != longest).any():
        yield "the row of the longest request", np.minimum(first + longest, end)
    if case.batch > 1:
        yield "the place without the bonus rows before", np.maximum(at - of_row, 0)
        yield "the next request's bonus", (first_of + case.lens)[(of_row + 1) % case.batch]
        yield "the bonus of the request before", (first_of + case.lens)[of_row - 1]
        yield "the row one too late", np.minimum(at + 1, end)
        yield "the row one too early", np.maximum(at - 1, 0)
        for words, other in (("the request before", np.maximum(of_row - 1, 0)),
                             ("the next request", np.minimum(of_row + 1, case.batch - 1)),
                             *((f"request i modulo {width}", of_row % width) for width in (128, 256, 512, 1024))):
            yield words, first_of[other] + np.minimum(at - first, case.lens[other])
    if (case.lens == 0).any():  # a request without drafts is taken to have no row, or one more
        empty = (np.cumsum(case.lens == 0) - (case.lens == 0))[of_row]
        for how, by in (("", empty), (", once", empty > 0), (", its own", lens == 0)):
            yield f"the row one too late behind a request without drafts{how}", np.minimum(at + by, end)
            yield f"the row one too early behind a request without drafts{how}", np.maximum(at - by, 0)
    for bound in (7, 8, 15, 16, 31, 32):
        if bound < longest:
            yield f"place {bound} beyond it", np.minimum(at, first + bound)


def _wrong_parameters(rows: StepRows, batch: int) -> Iterator[Deviation]:
    """batch: requests of a call."""
    case, of_row, count, whose = rows.case, rows.case.of_row, len(rows.q), []
    if batch > 1:
        at = np.arange(count) % (count * batch // case.batch)
        of_drafts = np.append(np.repeat(np.arange(batch), case.lens[:batch]), [0])
        indices: list[grammar.Whose] = [
            *grammar.neighbours(batch, "request"),
            *grammar.compacted({name: value[:batch] for name, value in case.params.items()}, "request"),
            ("that of the request of draft i for request i", of_drafts[np.minimum(np.arange(batch),
                                                                                  max(0, len(of_drafts) - 2))], False)]
        whose = [(words, index[of_row % batch], is_rare) for words, index, is_rare in indices]
        whose += [("read by row, not by request", np.minimum(at, batch - 1), False),
                  ("read as if all had as many drafts as the longest",
                   np.minimum(at // (int(case.lens.max()) + 1), batch - 1), False),
                  ("that of the request with most drafts", np.full(count, int(case.lens.argmax())), False)]

    @functools.lru_cache(maxsize=1)  # of the deviation that is tried
    def read(make: Callable[[], Rows]) -> Rows:
        return make()

    for wrong in grammar.every_wrong(rows.target, whose, case.params):
        if wrong.has_number:
            yield wrong.then(lambda one: rows.chain(given=one, **dict.fromkeys(ALL_PLACES, _table(one))))
            continue
        for part, places in PARTS.items() if not wrong.is_rare else [("", ALL_PLACES)]:
            yield Deviation(part + wrong.name, lambda make=wrong.make, places=places: rows.chain(
                given=read(make), **dict.fromkeys(places, _table(read(make)))), is_rare=wrong.is_rare or bool(part))
