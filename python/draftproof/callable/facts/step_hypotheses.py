"""Rules of verifiers that would give what came (hypotheses.py): chain verification (Leviathan et al. 2023, algorithm 1)
with one thing wrong."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Any, Callable, Iterator

import numpy as np

from ..cases.sample_cases import OFF
from ..cases.verify_sweep import Steps, StepsCase, StepsRun, steps_of
from ..evidence import evidence
from ..evidence.verify_judge import VerifyRun
from .accounts import ELEMENTS, Account, Draws, Regime, Rules, always_of, regimes_of, tiny_of, window
from .filter_hypotheses import RESTS, Family, InPart, Params, Rare, divided, rare_as, undivided, with_rest
from .noise_hypotheses import lost_of_seeds, repeats_of, shared_of, wrong_draws
from .row_hypotheses import Given, compacted, extreme_rows, mixed_rows, neighbours, probabilities, wrong_rows
from .step_likelihood import OfRow, OfSteps, Rule, Told, left_of, ratio_of


def account_of_steps(run: StepsRun | VerifyRun, around: int) -> Account | None:
    return _of_steps(run, around) if isinstance(run, StepsRun) else _of_strings(run)


def _first_steps(steps: Steps, most: int) -> Steps:
    return Steps(*(value[:most] for value in dataclasses.astuple(steps)))


def _is_readable(steps: Steps, vocab_size: int) -> bool:
    return bool(((steps.count > 0) & (steps.out < vocab_size).all(axis=1)).all())


def _of_steps(run: StepsRun, around: int) -> Account | None:
    case, steps = run.case, steps_of(run)
    steps = _first_steps(steps, max(case.batch, ELEMENTS // max(1, steps.out.shape[1]) // case.batch * case.batch))
    if not _is_readable(steps, case.vocab_size):
        return None
    fixed = case.fixed is not None or case.one_hot or case.drafts is None
    batch = case.batch
    if fixed and case.fixed is None and case.drafts is not None and len(case.drafts):
        case, steps = _unrolled(case, steps)
    # Keep, of many requests, those around one that failed.
    most = max(1, 2 * ELEMENTS // (case.vocab_size * (int(case.lens.max(initial=0)) + 1)))
    chosen, place = np.arange(case.batch), np.arange(len(steps.out)) % batch
    if case.target.size > 2 * ELEMENTS:
        chosen = window(around, case.batch, most)
        here = np.isin(place, chosen)
        first = int(np.flatnonzero(case.of_row == chosen[0])[0])
        case, batch = case.take(chosen), len(chosen)
        steps = Steps(*(value[here] for value in dataclasses.astuple(steps)))
        steps.row = steps.row - first
        place = place[here]
    told = Told(steps, case.vocab_size, batch)
    of_row, count = case.of_row, len(case.target)
    is_bonus = np.arange(count) == np.repeat(np.cumsum(case.lens + 1) - 1, case.lens + 1)
    q = np.zeros(case.target.shape)
    if fixed:
        q[steps.row[:case.batch][told.is_draft[:case.batch]], told.x[:case.batch][told.is_draft[:case.batch]]] = 1.0
    else:
        q[~is_bonus] = case.drafts
    params = {name: value[of_row] for name, value in case.params.items()}
    p = _table(Given(case.target, params))
    zone = evidence.Rows.of(case.target, params).zone
    of_sound = OfSteps(told, lambda: Rule(p, p, p, q), zone)
    sound = of_sound()
    shown = {name: value[place - chosen[0]] for name, value in case.params.items()}
    first_regimes = [("requests without drafts", steps.lens == 0),
                     *((f"requests of {bound} drafts or more", steps.lens >= bound)
                                                                   for bound in (1, 2, 3, 5, 9, 17))]
    fallen = [Regime("requests whose last draft falls", (steps.lens > 0) & (steps.count == steps.lens), True),
              Regime("requests whose first draft falls", (steps.lens > 0) & (steps.count == 1), True)]

    def rules() -> Rules:
        given = _Rows(case.target, params, p, q, is_bonus, int(case.lens.max(initial=0)))
        for name, rule in itertools.chain(_wrong_places(given, case, of_row), _wrong_rules(given),
                                          _wrong_parameters(given, case, of_row, batch)):
            yield name, rule.with_rule(lambda one: OfSteps(told, one, zone)) if isinstance(rule,
                    Family) else OfSteps(told, rule, zone)
        yield Rare("bonus tokens are given to the requests that accept all in the order of requests"), OfSteps(
                told.with_bonus_of(
            _in_order(steps, batch, np.cumsum(case.lens + 1) - 1)), lambda: Rule(p, p, p, q), zone)

    def lost() -> str:
        seeds = np.concatenate([run.seeds_of(call) for call in range(len(steps.out) // batch)])
        return lost_of_seeds(seeds, p, steps.row[:, 0], steps.out[:, 0])

    tiny = tiny_of(case.vocab_size)
    return Account(of_sound, sound, tiny, rules,
                   [*regimes_of(shown, place, run.case.batch, sound < tiny, first_regimes), *fallen], case.target.size,
                   Draws(shown, place, run.case.batch),
                   [*always_of(case.params), *(["calls of one request"] if run.case.batch == 1 else []),
                    *(["calls without draft probabilities"] if fixed and steps.lens.any() else [])],
                   lambda: max(repeats_of(p, steps.row[:, 0] % (len(p) * batch // case.batch), steps.out[:, 0], batch),
                               shared_of(*_coins(steps, told, p, q), batch)),
                   lambda: lost() if batch == run.case.batch else "")


def _coins(steps: Steps, told: Told, p: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the coin of each step's first draft lies, [n]: beginning and end."""
    row, x = steps.row[:, 0], told.x[:, 0]
    chance = ratio_of(p[row, x], q[row, x])
    begin, end = np.where(told.fell[:, 0], chance, 0.0), np.where(told.stood[:, 0], chance, 1.0)
    is_odd = (steps.lens == 0) | (end <= begin)  # no coin, or none that could
    return np.where(is_odd, 0.0, begin), np.where(is_odd, 1.0, end)


def _in_order(steps: Steps, batch: int, bonus: np.ndarray) -> np.ndarray:
    """[n]: of the j-th request of a call that accepts all its drafts the bonus row of request j. bonus: [B] rows."""
    whole = (steps.count > steps.lens).reshape(-1, batch)
    at = np.arange(len(steps.out)).reshape(-1, batch)
    request = np.where(whole, np.cumsum(whole, axis=1) - 1, at % batch)
    return bonus[(at - at % batch + request) % len(bonus)].ravel()


def _unrolled(case: StepsCase, steps: Steps) -> tuple[StepsCase, Steps]:
    """Calls as one with the requests of all: certain drafts that differ from call to call are rows of their own."""
    calls = max(1, min(len(steps.out) // case.batch, ELEMENTS // max(1, case.target.size)))
    steps = _first_steps(steps, calls * case.batch)
    steps.row = steps.row + np.repeat(np.arange(calls) * len(case.target), case.batch)[:, None]
    whole = dataclasses.replace(case, target=np.tile(case.target, (calls, 1)), lens=np.tile(case.lens, calls),
                                params={name: np.tile(value, calls) for name, value in case.params.items()})
    return whole, steps


def _of_strings(run: VerifyRun) -> Account | None:
    """Rows depend on the tokens before: each once, whatever request has it, so that rules of other requests' rows have
    no place."""
    case = run.case
    if case.drafter is None or case.endpoints:
        return None
    out, drafts = np.concatenate(run.outputs), np.concatenate(run.drafts)
    width = out.shape[1]
    drafts = np.concatenate([drafts, np.full((len(drafts), 1), -1, drafts.dtype)], axis=1)
    begin, tables = np.cumsum([0, *(len(table) for table in case.target)]), np.concatenate(case.target)
    row = np.stack([begin[min(d, case.order)] + case.row_index(np.maximum(drafts[:, :d], 0)) for d in range(width)],
                   axis=1)
    steps = Steps(out, drafts, np.tile(run.lens(), run.calls), np.cumprod(out != -1, axis=1).sum(axis=1), row)
    steps = _first_steps(steps, max(case.batch, ELEMENTS // width // case.batch * case.batch))
    if not _is_readable(steps, case.vocab_size):
        return None
    told = Told(steps, case.vocab_size, case.batch)
    q = np.concatenate([case.at_depth(case.drafter, d) for d in range(len(case.target))]).astype(np.float64)
    params = {name: np.repeat(value, len(tables)) for name, value in case.params.items()}
    p = _table(Given(tables, params))
    zone = evidence.Rows.of(tables, params).zone

    def rules() -> Rules:
        given = _Rows(tables, params, p, q, np.zeros(len(p), bool), width - 1)
        for name, rule in itertools.chain(_wrong_rules(given),
                                          _wrong_parameters(given, None, np.zeros(len(p), np.int64), 1)):
            yield name, rule.with_rule(lambda one: OfSteps(told, one, zone)) if isinstance(rule,
                    Family) else OfSteps(told, rule, zone)

    of_sound = OfSteps(told, lambda: Rule(p, p, p, q), zone)
    sound = of_sound()
    return Account(of_sound, sound, tiny_of(case.vocab_size), rules, [Regime("", np.ones(len(sound), bool))],
                   tables.size,
                   Draws({name: np.repeat(value, len(sound)) for name, value in case.params.items()},
                         np.arange(len(sound)) % case.batch, case.batch),
                   always_of(case.params))


def _table(given: Given) -> np.ndarray:
    return probabilities(given).astype(np.float64)


@dataclasses.dataclass(frozen=True, eq=False)
class _Rows:
    """target: logits [N, V], of drafts and of bonus tokens; params: [N]; p, q: their probabilities; drafts_max: of a
    request."""

    target: np.ndarray
    params: Params
    p: np.ndarray
    q: np.ndarray
    is_bonus: np.ndarray
    drafts_max: int

    def rule(self, **changed: Any) -> Rule:
        return Rule(**{"accept": self.p, "recover": self.p, "bonus": self.p, "q": self.q, **changed})

    def with_params(self, **changed: np.ndarray) -> np.ndarray:
        return _table(Given(self.target,
                            {**self.params,
                             **{name: np.asarray(value, self.params[name].dtype) for name, value in changed.items()}}))

    def off(self, *names: str) -> dict[str, np.ndarray]:
        return {name: np.full_like(value, OFF[name]) for name, value in self.params.items() if name in names}


#: Where the target's rows are read, all of it and parts of it.
ALL_PLACES = ("accept", "recover", "bonus")
PARTS = {"": ALL_PLACES, "bonus tokens": ("bonus",), "drafts and recovered tokens": ("accept", "recover"),
         "recovered tokens": ("recover",), "drafts": ("accept",)}
#: A rule is made when it is tried.
Rulings = Iterator[tuple[str, "Callable[[], Rule] | Family"]]


#: The chance that a draft stands, of its p and q (and a number that is learned, between two).
ACCEPTED: dict[str, Callable[..., np.ndarray]] = {
    "no draft is accepted": lambda p, q: 0.0 * p, "every draft is accepted": lambda p, q: 0.0 * p + 1.0,
    "drafts are judged as if q were 1": lambda p, q: p, "p / q is inverted": lambda p, q: ratio_of(q, p)}
ACCEPTED_BY: dict[str, tuple[Callable[..., np.ndarray], float, float]] = {
    "a draft is accepted with {} at least": (lambda p, q, x: np.maximum(ratio_of(p, q), x), 1e-3, 0.9),
    "drafts of small probability are accepted too seldom, as with p / (q + {})": (lambda p, q, x: ratio_of(p, q + x),
            1e-5, 0.1),
    "drafts of small probability are accepted too often, as with p + {}": (lambda p, q, x: ratio_of(p + x, q), 1e-6,
            0.1),
    "drafts are accepted as with {} p / q": (lambda p, q, x: ratio_of(x * p, q), 0.125, 8.0),
    "p and q are {} at least where drafts are judged": (lambda p, q, x: ratio_of(np.maximum(p, x), np.maximum(q, x)),
                                                        1e-8, 0.01)}
#: Weights of recovered tokens, of rows p and q.
RECOVERED: dict[str, Callable[..., np.ndarray]] = {
    "recovered tokens are drawn from the target's row, not from the residual": lambda p, q: p,
    "recovered tokens are drawn from |p - q|": lambda p, q: np.abs(p - q),
    "residuals are of q - p, not of p - q": lambda p, q: left_of(q, p),
    "recovered tokens are drawn from the draft's row": lambda p, q: q,
    "recovered tokens are the likeliest of the residual": lambda p, q: _likeliest(left_of(p, q)),
    "recovered tokens are the likeliest of the target": lambda p, q: _likeliest(p),
    **{f"the residual is not divided by its sum: the rest falls to its {words}": lambda p, q, which=which:
       with_rest(left_of(p, q), which)
       for words, which in RESTS.items()}}
RECOVERED_BY: dict[str, tuple[Callable[..., np.ndarray], float, float]] = {
    "residuals are {} at least": (lambda p, q, x: np.maximum(p - q, x), 1e-7, 0.1),
    "a residual whose sum is below {} is taken for empty": (lambda p, q, x: _unless_below(left_of(p, q), x, p), 1e-3,
                                                            0.5)}


def family(name: str, make: Callable[[float], Rule], low: float, high: float, is_whole: bool = False) -> tuple[str,
        Family]:
    return name, Family(lambda number: lambda: make(number), low, high, is_whole)


def _wrong_rules(given: _Rows) -> Rulings:
    """Rules that read each row where it should be read."""
    rule, p, q, size, temperature = given.rule, given.p, given.q, given.p.shape[1], given.params["temperature"]
    bare = given.off("top_k", "top_p", "min_p")
    is_filtered = any((given.params[name] != value).any() for name, value in bare.items())
    for name, chance in ACCEPTED.items():
        yield name, lambda chance=chance: rule(ratio=chance)
    for name, (by, low, high) in ACCEPTED_BY.items():
        yield family(name, lambda x, by=by: rule(ratio=lambda p, q: by(p, q, x)), low, high)
    for name, left in RECOVERED.items():
        yield name, lambda left=left: rule(residual=lambda p, q, _x: left(p, q))
    for name, (by, low, high) in RECOVERED_BY.items():
        yield family(name, lambda x, by=by: rule(residual=lambda p, q, _x: by(p, q, x)), low, high)
    yield family("residuals end at {} tokens", lambda bound: rule(residual=lambda p, q, _x: _unless_below(
        np.where(np.arange(size) < bound, left_of(p, q), 0.0), 1e-12, p)), 1, max(1, size - 1), True)
    yield Rare("of the residual only the rejected draft is taken out"), lambda: rule(residual=_without_draft,
            of_draft=True)
    yield "q is taken for 1", lambda: rule(ratio=lambda p, _: p, residual=_without_draft, of_draft=True)
    yield family("drafts of q below {} are dropped, and their place is drawn from p", lambda bound: rule(
        ratio=lambda p, q: np.where(q < bound, 0.0, ratio_of(p, q)), of_draft=True,
        residual=lambda p, q, x: np.where(np.take_along_axis(q, x[:, None], axis=1) < bound, p, left_of(p, q))), 0.01,
                 0.9)
    for name, draws in wrong_draws(size):
        def recovered(p: np.ndarray, q: np.ndarray, _x: np.ndarray,
                      draws: Callable[..., np.ndarray] = draws) -> np.ndarray:
            return draws(divided(left_of(p, q)))

        yield name, lambda draws=draws, recovered=recovered: rule(bonus=draws(p), residual=recovered)
        yield InPart(f"of recovered tokens: {name}"), lambda recovered=recovered: rule(residual=recovered)
        yield InPart(f"of bonus tokens: {name}"), lambda draws=draws: rule(bonus=draws(p))
    if (temperature != 1.0).any():
        yield "q is tempered as the target is", lambda: rule(q=_tempered(q, temperature))
    if is_filtered:
        yield "q is filtered as the target is", lambda: rule(q=_filtered(q, given.params, given.is_bonus))
        whole = functools.cache(lambda: undivided(given.target, given.params).astype(np.float64))
        yield "the target is not divided by what its filters keep", lambda: rule(accept=whole(), recover=whole())
    yield "q is cut to the target's tokens", lambda: rule(q=_cut(q, p > 0.0))
    yield "q is taken for uniform", lambda: rule(q=np.where(given.is_bonus[:, None], 0.0, np.full_like(q, 1.0 / size)))
    if (temperature == 0.0).any():
        cold, drawn = (temperature == 0.0)[:, None], np.where(temperature == 0.0, 1.0, temperature)
        yield "recovered tokens of greedy requests are the likeliest of the residual at temperature 1", lambda: rule(
            recover=np.where(cold, given.with_params(temperature=drawn, **bare), p),
            residual=lambda p, q, _x: np.where(cold, _likeliest(left_of(p, q)), left_of(p, q)))
    yield "the bonus token is the likeliest one", lambda: rule(bonus=_likeliest(p))
    yield "the bonus token is drawn with the coin of the last draft", lambda: rule(bonus_has_coin=True)
    yield "drafts stand where they are the likeliest token", lambda: rule(accept=_likeliest(p), ratio=lambda p, _: p,
            residual=lambda p, _q, _x: p)
    for which in ("p", "q"):
        yield Rare(f"{which} of a draft is that of the next draft's token"), lambda which=which: rule(next_token=which)
    yield "drafts are accepted with the product of p / q up to their place", lambda: rule(multiplies=True)
    yield "the last draft of a request is accepted", lambda: rule(sure_at_end=True)
    if given.drafts_max > 1:
        yield family("all drafts from place {} on are accepted", lambda place: rule(sure_from=int(place)), 1,
                     given.drafts_max - 1, True)
    for bits in (15, 16):
        if 1 << bits < size:
            yield Rare(f"drafts are looked up by ids of {bits} bits"), lambda bits=bits: rule(bits_of_ids=bits)


#: Where a row is read, and what is said of it where another is read there.
SITES = {"rows are of {}": ALL_PLACES, "drafts are judged by {}": ("accept",), "residuals are of p of {}": ("recover",),
         "the bonus token is of {}": ("bonus",),
         "q is of {}": ("q", "q_residual"), "residuals are of q of {}": ("q_residual",),
         "residuals are of {}": ("recover", "q_residual")}


def _wrong_places(given: _Rows, case: StepsCase, of_row: np.ndarray) -> Rulings:
    """Every row that might be read instead, at every site."""
    p, q = given.p, given.q
    of_q = np.arange(len(p)) - given.is_bonus  # a bonus row has no q: the last draft's
    seen: set[tuple[str, bytes]] = set()
    for words, moved in _moves(case, of_row, given.is_bonus):
        for site, names in SITES.items():
            read = (site, moved[given.is_bonus if names == ("bonus",) else slice(None)].tobytes())
            if read in seen or (words.startswith("the row of") and "bonus" not in names):
                continue
            seen.add(read)
            yield InPart(site.format(words)) if "q" in names else site.format(
                    words), lambda moved=moved, names=names: given.rule(
                **{name: np.where(given.is_bonus[:, None], 0.0, q[of_q[moved]]) if name.startswith("q") else p[moved]
                   for name in names})
    first = (np.cumsum(case.lens + 1) - (case.lens + 1))[of_row]
    bare = given.off("top_k", "top_p", "min_p")
    yield "filters are applied to the first row of a request alone", lambda: given.rule(**dict.fromkeys(
        ALL_PLACES, np.where((np.arange(len(p)) == first)[:, None], p, given.with_params(**bare))))
    both = np.where(np.isneginf(given.target[first]), -np.inf, given.target).astype(np.float32)
    both = np.where(np.isneginf(both).all(axis=1, keepdims=True), given.target, both)
    if (both < given.target).any():
        yield "tokens that the first row of a request masks are masked in all its rows", lambda: given.rule(
                **dict.fromkeys(ALL_PLACES, _table(
            Given(both, given.params))))
    if not given.is_bonus.all():
        of_draft, count = np.flatnonzero(~given.is_bonus), int((~given.is_bonus).sum())
        empty = np.repeat(np.cumsum(case.lens == 0) - (case.lens == 0), case.lens)
        for words, read in (("read at the rows of the target, bonus rows among them", of_draft),
                            ("that of the next draft", np.arange(count) + 1),
                            ("that of the last draft", np.arange(count) - 1),
                            ("read one row too late behind a request without drafts", np.arange(count) + empty)):
            if (read != np.arange(count)).any():
                moved_q = np.zeros_like(q)
                moved_q[of_draft] = q[of_draft[np.clip(read, 0, count - 1)]]
                yield f"q is {words}", lambda moved_q=moved_q: given.rule(q=moved_q, q_residual=moved_q)
    if case.lens.sum() > 1:
        yield family(Rare("drafts from the {}th of a call on are rejected"),
                     lambda place: given.rule(never_from=int(place)), 1, int(case.lens.sum()) - 1, True)


def _moves(case: StepsCase, of_row: np.ndarray, is_bonus: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Of each of the rows [N] another one, in words."""
    at, longest = np.arange(len(of_row)), int(case.lens.max(initial=0))
    first_of = np.cumsum(case.lens + 1) - (case.lens + 1)
    first, lens, end = first_of[of_row], case.lens[of_row], len(of_row) - 1

    def in_request(other: np.ndarray) -> np.ndarray:
        return first_of[other] + np.minimum(at - first, case.lens[other])

    yield "the row before", np.maximum(at - 1, first)
    yield "the next row", np.where(is_bonus, at, at + 1)
    yield "the first row", first
    yield "the last draft's row", first + np.maximum(lens - 1, 0)
    if (case.lens != longest).any():
        yield "the row of the longest request", np.minimum(first + longest, end)
    if case.batch > 1:
        yield "the place without the bonus rows before", np.maximum(at - of_row, 0)
        yield "the request before", in_request(np.maximum(of_row - 1, 0))
        yield "the next request", in_request(np.minimum(of_row + 1, case.batch - 1))
        yield "the next request's bonus", (first_of + case.lens)[(of_row + 1) % case.batch]
        yield "the bonus of the request before", (first_of + case.lens)[of_row - 1]
        yield "the row one too late", np.minimum(at + 1, end)
        yield "the row one too early", np.maximum(at - 1, 0)
        for width in (128, 256, 512, 1024):
            if width < case.batch:
                yield f"request i modulo {width}", in_request(of_row % width)
    if (case.lens == 0).any():  # a request without drafts is taken to have no row, or one more
        empty = (np.cumsum(case.lens == 0) - (case.lens == 0))[of_row]
        for words, by in (("late", empty), ("early", -empty), ("late, once", empty > 0),
                          ("early, once", -(empty > 0).astype(int)),
                          ("late, its own", (lens == 0).astype(int)), ("early, its own", -(lens == 0).astype(int))):
            yield (f"the row one too {words.partition(',')[0]} behind a request without "
                   f"drafts{words[len(words.partition(',')[0]):]}", np.clip(at + by, 0, end))
    for bound in (7, 8, 15, 16, 31, 32):
        if bound < longest:
            yield f"place {bound} beyond it", np.minimum(at, first + bound)


def _wrong_parameters(given: _Rows, case: StepsCase | None, of_row: np.ndarray, batch: int) -> Rulings:
    """case: whose requests' parameters may be mixed, so many of a call; None: there is one set."""
    by_row: dict[str, np.ndarray] = {}
    if case is not None and batch > 1:
        others = neighbours(batch)
        width, at = int(case.lens.max(initial=0)) + 1, np.arange(len(given.p)) % (len(given.p) * batch // case.batch)
        by_row = {rare_as(words, words.replace("one", "request")): where[of_row % batch] for words,
                  where in others.items()}
        by_row.update({rare_as(words, words.replace("row", "request")): rank[of_row % batch]
                       for words, rank in compacted({name: value[:batch] for name, value in case.params.items()})})
        by_row["read by row, not by request"] = np.minimum(at, batch - 1)
        by_row["read as if all had as many drafts as the longest"] = np.minimum(at // width, batch - 1)
        if case.lens[:batch].any():
            of_drafts = np.repeat(np.arange(batch), case.lens[:batch])
            by_row["that of the request of draft i for request i"] = of_drafts[np.minimum(of_row % batch,
                    len(of_drafts) - 1)]
        by_row["that of the request with most drafts"] = np.full(len(at), int(case.lens.argmax()))
    every = given.params if case is None else case.params
    table = functools.lru_cache(maxsize=1)(_table)  # of the rule that is tried

    def read(places: tuple[str, ...]) -> Callable[[Given], Rule]:
        return lambda wrong: given.rule(**dict.fromkeys(places, table(wrong)))

    for name, wrong in itertools.chain(wrong_rows(given.target, given.params, every),
                                       mixed_rows(given.target, given.params, by_row, every),
                                       extreme_rows(given.target, given.params, every)):
        if isinstance(wrong, Family):
            yield name, wrong.with_rule(lambda one: OfRow(one, read(ALL_PLACES)))
            continue
        for part, places in PARTS.items() if not isinstance(name, Rare) else [("", ALL_PLACES)]:
            yield InPart(f"of {part}: {name}") if part else name, OfRow(wrong, read(places))


def _without_draft(rows: np.ndarray, _: np.ndarray, x: np.ndarray) -> np.ndarray:
    left = rows.copy()
    left[np.arange(len(left)), x] = 0.0
    return left


def _tempered(q: np.ndarray, temperature: np.ndarray) -> np.ndarray:
    t = np.where(temperature > 0.0, temperature, 1.0).astype(np.float64)[:, None]
    with np.errstate(divide="ignore", under="ignore"):
        w = np.where(q > 0.0,
                     np.exp((np.log(np.maximum(q, 1e-300)) - np.log(np.maximum(q.max(axis=1, keepdims=True), 1e-300))) /
                            t), 0.0)
    total = w.sum(axis=1, keepdims=True)
    return np.where(temperature[:, None] > 0.0, np.divide(w, total, out=np.zeros_like(w), where=total > 0.0), q)


def _filtered(q: np.ndarray, params: Params, is_bonus: np.ndarray) -> np.ndarray:
    warm = np.where(params["temperature"] > 0.0, 1.0, 0.0).astype(np.float32)
    with np.errstate(divide="ignore"):
        logits = np.where(is_bonus[:, None], 0.0, np.log(q)).astype(np.float32)
    return np.where(is_bonus[:, None], 0.0, _table(Given(logits, {**params, "temperature": warm})))


def _cut(q: np.ndarray, kept: np.ndarray) -> np.ndarray:
    cut = np.where(kept, q, 0.0)
    total = cut.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, cut / np.maximum(total, 1e-30), q)


def _unless_below(left: np.ndarray, bound: float, otherwise: np.ndarray) -> np.ndarray:
    return np.where(left.sum(axis=1, keepdims=True) >= bound, left, otherwise)


def _likeliest(rows: np.ndarray) -> np.ndarray:
    out = np.zeros_like(rows)
    out[np.arange(len(rows)), rows.argmax(axis=1)] = 1.0
    return out


