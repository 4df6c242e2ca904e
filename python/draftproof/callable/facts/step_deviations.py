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
from .filter_deviations import FILTERS, RESTS, Deviation, Params, divided, is_on, rare, undivided, with_rest
from .noise_deviations import lost_of_seeds, repeats_of, shared_of, wrong_draws
from .observed import ELEMENTS, Draws, Observed, Regime, always_of, regimes_of, tiny_of, window
from .row_deviations import Rows, Whose, compacted, extreme_rows, mixed_rows, neighbours, wrong_rows
from .step_likelihood import Chain, Emitted, OfSteps, left_of, ratio_of


def observed_steps(run: StepsRun | VerifyRun, around: int) -> Observed | None:
    return _of_requests(run, around) if isinstance(run, StepsRun) else _of_strings(run)


@dataclasses.dataclass(frozen=True, eq=False)
class StepRows:
    """Of steps: the target's rows [N], of drafts and of bonus tokens, p and q: their probabilities [N, V], drafts_max:
    of a request."""

    target: Rows
    q: np.ndarray
    is_bonus: np.ndarray
    drafts_max: int

    @functools.cached_property
    def p(self) -> np.ndarray:
        return _table(self.target)

    @functools.cached_property
    def zone(self) -> np.ndarray:
        return evidence.Rows.of(self.target.logits, self.target.params).zone

    def chain(self, **changed: Any) -> Chain:
        return Chain(**{"accept": self.p, "recover": self.p, "bonus": self.p, "q": self.q, **changed})

    @property
    def bare(self) -> dict[str, np.ndarray]:
        """Of parameters: no filter."""
        return {name: np.full_like(value, 1.0 if name == "top_p" else 0.0)
                for name, value in self.target.params.items() if name in FILTERS}


def _table(rows: Rows) -> np.ndarray:
    return rows.probabilities.astype(np.float64)


def _first_steps(steps: Steps, most: int) -> Steps:
    return Steps(*(value[:most] for value in dataclasses.astuple(steps)))


def _readable(steps: Steps, batch: int, vocab_size: int) -> Steps | None:
    """Whole calls, as many as are looked at."""
    most = max(batch, ELEMENTS // max(1, steps.out.shape[1]) // batch * batch)
    first = _first_steps(steps, most)
    return first if ((first.count > 0) & (first.out < vocab_size).all(axis=1)).all() else None


def _of_requests(run: StepsRun, around: int) -> Observed | None:
    case, batch = run.case, run.case.batch
    steps = _readable(steps_of(run), batch, case.vocab_size)
    if steps is None:
        return None
    fixed = case.fixed is not None or case.one_hot or case.drafts is None
    if fixed and case.fixed is None and case.drafts is not None and len(case.drafts):
        case, steps = _unrolled(case, steps)
    chosen, place = np.arange(case.batch), np.arange(len(steps.out)) % batch
    if case.target.size > 2 * ELEMENTS:  # of many requests those around one that failed
        most = max(1, 2 * ELEMENTS // (case.vocab_size * (int(case.lens.max(initial=0)) + 1)))
        chosen = window(around, case.batch, most)
        here = np.isin(place, chosen)
        first = int(np.flatnonzero(case.of_row == chosen[0])[0])
        case, batch = case.take(chosen), len(chosen)
        steps = Steps(*(value[here] for value in dataclasses.astuple(steps)))
        steps.row, place = steps.row - first, place[here]
    emitted = Emitted(steps, case.vocab_size, batch)
    of_row, count = case.of_row, len(case.target)
    is_bonus = np.arange(count) == np.repeat(np.cumsum(case.lens + 1) - 1, case.lens + 1)
    q = np.zeros(case.target.shape)
    if fixed:
        is_draft = emitted.is_draft[:case.batch]
        q[steps.row[:case.batch][is_draft], emitted.x[:case.batch][is_draft]] = 1.0
    else:
        q[~is_bonus] = case.drafts
    rows = StepRows(Rows(case.target, {name: value[of_row] for name, value in case.params.items()}), q, is_bonus,
                    int(case.lens.max(initial=0)))
    p = rows.p
    shown = {name: value[place - chosen[0]] for name, value in case.params.items()}
    first_regimes = [("requests without drafts", steps.lens == 0),
                     *((f"requests of {bound} drafts or more", steps.lens >= bound) for bound in (1, 2, 3, 5, 9, 17))]
    fallen = [Regime("requests whose last draft falls", (steps.lens > 0) & (steps.count == steps.lens), True),
              Regime("requests whose first draft falls", (steps.lens > 0) & (steps.count == 1), True)]

    def rules() -> Iterator[Deviation]:
        for wrong in itertools.chain(_wrong_places(rows, case, of_row), _wrong_steps(rows),
                                     _wrong_parameters(rows, case, of_row, batch)):
            yield wrong.then(lambda chain: OfSteps(emitted, chain, rows.zone))
        in_order = emitted.with_bonus_of(_in_order(steps, batch, np.cumsum(case.lens + 1) - 1))
        yield rare("bonus tokens are given to the requests that accept all in the order of requests",
                   lambda: OfSteps(in_order, rows.chain(), rows.zone))

    def lost() -> str:
        seeds = np.concatenate([run.seeds_of(call) for call in range(len(steps.out) // batch)])
        return lost_of_seeds(seeds, p, steps.row[:, 0], steps.out[:, 0])

    of_sound, tiny = OfSteps(emitted, rows.chain(), rows.zone), tiny_of(case.vocab_size)
    sound = of_sound()
    return Observed(of_sound, sound, tiny, rules,
                    [*regimes_of(shown, place, run.case.batch, sound < tiny, first_regimes), *fallen], case.target.size,
                    Draws(shown, place, run.case.batch),
                    [*always_of(case.params), *(["calls of one request"] if run.case.batch == 1 else []),
                     *(["calls without draft probabilities"] if fixed and steps.lens.any() else [])],
                    lambda: max(repeats_of(p, steps.row[:, 0] % (len(p) * batch // case.batch), steps.out[:, 0], batch),
                                shared_of(*_coins(steps, emitted, p, q), batch)),
                    lambda: lost() if batch == run.case.batch else "")


def _coins(steps: Steps, emitted: Emitted, p: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the coin of each step's first draft lies, [n]: beginning and end."""
    row, x = steps.row[:, 0], emitted.x[:, 0]
    chance = ratio_of(p[row, x], q[row, x])
    begin, end = np.where(emitted.fell[:, 0], chance, 0.0), np.where(emitted.stood[:, 0], chance, 1.0)
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


def _of_strings(run: VerifyRun) -> Observed | None:
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
    steps = _readable(Steps(out, drafts, np.tile(run.lens(), run.calls), np.cumprod(out != -1, axis=1).sum(axis=1),
                            row), case.batch, case.vocab_size)
    if steps is None:
        return None
    emitted = Emitted(steps, case.vocab_size, case.batch)
    q = np.concatenate([case.at_depth(case.drafter, d) for d in range(len(case.target))]).astype(np.float64)
    rows = StepRows(Rows(tables, {name: np.repeat(value, len(tables)) for name, value in case.params.items()}), q,
                    np.zeros(len(q), bool), width - 1)

    def rules() -> Iterator[Deviation]:
        for wrong in itertools.chain(_wrong_steps(rows), _wrong_parameters(rows, None, np.zeros(len(q), np.int64), 1)):
            yield wrong.then(lambda chain: OfSteps(emitted, chain, rows.zone))

    of_sound = OfSteps(emitted, rows.chain(), rows.zone)
    sound = of_sound()
    return Observed(of_sound, sound, tiny_of(case.vocab_size), rules, [Regime("", np.ones(len(sound), bool))],
                    tables.size,
                    Draws({name: np.repeat(value, len(sound)) for name, value in case.params.items()},
                          np.arange(len(sound)) % case.batch, case.batch), always_of(case.params))


#: Where the target's rows are read, all of it and parts of it.
ALL_PLACES = ("accept", "recover", "bonus")
PARTS = {"": ALL_PLACES, "bonus tokens": ("bonus",), "drafts and recovered tokens": ("accept", "recover"),
         "recovered tokens": ("recover",), "drafts": ("accept",)}


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


def _wrong_steps(rows: StepRows) -> Iterator[Deviation]:
    """Deviations that read each row where it should be read."""
    chain, p, q, is_bonus = rows.chain, rows.p, rows.q, rows.is_bonus
    size, params, temperature = p.shape[1], rows.target.params, rows.target.params["temperature"]
    for name, chance in ACCEPTED.items():
        yield Deviation(name, lambda chance=chance: chain(ratio=chance))
    for name, (by, low, high) in ACCEPTED_BY.items():
        yield Deviation(name, lambda x, by=by: chain(ratio=lambda p, q: by(p, q, x)), low, high)
    for name, left in RECOVERED.items():
        yield Deviation(name, lambda left=left: chain(residual=lambda p, q, _x: left(p, q)))
    for name, (by, low, high) in RECOVERED_BY.items():
        yield Deviation(name, lambda x, by=by: chain(residual=lambda p, q, _x: by(p, q, x)), low, high)
    yield Deviation("residuals end at {} tokens", lambda bound: chain(residual=lambda p, q, _x: _unless_below(
        np.where(np.arange(size) < bound, left_of(p, q), 0.0), 1e-12, p)), 1, max(1, size - 1), True)
    yield rare("of the residual only the rejected draft is taken out",
               lambda: chain(residual=_without_draft, of_draft=True))
    yield Deviation("q is taken for 1", lambda: chain(ratio=lambda p, _: p, residual=_without_draft, of_draft=True))
    yield Deviation("drafts of q below {} are dropped, and their place is drawn from p", lambda bound: chain(
        ratio=lambda p, q: np.where(q < bound, 0.0, ratio_of(p, q)), of_draft=True,
        residual=lambda p, q, x: np.where(np.take_along_axis(q, x[:, None], axis=1) < bound, p, left_of(p, q))),
                    0.01, 0.9)
    for name, draws in wrong_draws(size):
        def recovered(p: np.ndarray, q: np.ndarray, _x: np.ndarray,
                      draws: Callable[..., np.ndarray] = draws) -> np.ndarray:
            return draws(divided(left_of(p, q)))

        yield rare(name, lambda draws=draws, recovered=recovered: chain(bonus=draws(p), residual=recovered))
        yield rare(f"of recovered tokens: {name}", lambda recovered=recovered: chain(residual=recovered))
        yield rare(f"of bonus tokens: {name}", lambda draws=draws: chain(bonus=draws(p)))
    if (temperature != 1.0).any():
        yield Deviation("q is tempered as the target is", lambda: chain(q=_tempered(q, temperature)))
    if any(is_on(name, value).any() for name, value in params.items() if name in FILTERS):
        yield Deviation("q is filtered as the target is", lambda: chain(q=_filtered(q, params, is_bonus)))
        whole = functools.cache(lambda: undivided(rows.target.logits, params).astype(np.float64))
        yield Deviation("the target is not divided by what its filters keep",
                        lambda: chain(accept=whole(), recover=whole()))
    yield Deviation("q is cut to the target's tokens", lambda: chain(q=_cut(q, p > 0.0)))
    yield Deviation("q is taken for uniform", lambda: chain(q=np.where(
        is_bonus[:, None], 0.0, np.full_like(q, 1.0 / size))))
    if (temperature == 0.0).any():
        cold, drawn = (temperature == 0.0)[:, None], np.where(temperature == 0.0, 1.0, temperature)
        yield Deviation("recovered tokens of greedy requests are the likeliest of the residual at temperature 1",
                        lambda: chain(recover=np.where(cold, _table(rows.target.with_params(
                            temperature=drawn, **rows.bare)), p), residual=lambda p, q, _x: np.where(
                                cold, _likeliest(left_of(p, q)), left_of(p, q))))
    yield Deviation("the bonus token is the likeliest one", lambda: chain(bonus=_likeliest(p)))
    yield Deviation("the bonus token is drawn with the coin of the last draft", lambda: chain(coins="last"))
    yield Deviation("drafts are accepted with the product of p / q up to their place", lambda: chain(coins="product"))
    if rows.drafts_max > 1:
        yield Deviation("all drafts of a request are judged with one coin", lambda: chain(coins="first"))
        yield Deviation("all drafts from place {} on are accepted", lambda place: chain(sure_from=int(place)), 1,
                        rows.drafts_max - 1, True)
    yield Deviation("drafts stand where they are the likeliest token", lambda: chain(
        accept=_likeliest(p), ratio=lambda p, _: p, residual=lambda p, _q, _x: p))
    for which in ("p", "q"):
        yield rare(f"{which} of a draft is that of the next draft's token",
                   lambda which=which: chain(next_token=which))
    yield Deviation("the last draft of a request is accepted", lambda: chain(sure_at_end=True))
    for bits in (15, 16):
        if 1 << bits < size:
            yield rare(f"drafts are looked up by ids of {bits} bits", lambda bits=bits: chain(bits_of_ids=bits))


#: Where a row is read, and what is said of it where another is read there.
SITES = {"rows are of {}": ALL_PLACES, "drafts are judged by {}": ("accept",), "residuals are of p of {}": ("recover",),
         "the bonus token is of {}": ("bonus",),
         "q is of {}": ("q", "q_residual"), "residuals are of q of {}": ("q_residual",),
         "residuals are of {}": ("recover", "q_residual")}


def _wrong_places(rows: StepRows, case: StepsCase, of_row: np.ndarray) -> Iterator[Deviation]:
    """Every row that might be read instead, at every site."""
    p, q, is_bonus, count = rows.p, rows.q, rows.is_bonus, len(rows.q)
    of_q = np.arange(count) - is_bonus  # a bonus row has no q: the last draft's
    seen: set[tuple[str, bytes]] = set()
    for words, moved in _moves(case, of_row, is_bonus):
        for site, names in SITES.items():
            read = (site, moved[is_bonus if names == ("bonus",) else slice(None)].tobytes())
            if read in seen or (words.startswith("the row of") and "bonus" not in names):
                continue
            seen.add(read)
            yield Deviation(site.replace("{}", words), lambda moved=moved, names=names: rows.chain(
                **{name: np.where(is_bonus[:, None], 0.0, q[of_q[moved]]) if name.startswith("q") else p[moved]
                   for name in names}), is_rare="q" in names)
    first = (np.cumsum(case.lens + 1) - (case.lens + 1))[of_row]
    yield Deviation("filters are applied to the first row of a request alone", lambda: rows.chain(**dict.fromkeys(
        ALL_PLACES, np.where((np.arange(count) == first)[:, None], p, _table(rows.target.with_params(**rows.bare))))))
    logits = rows.target.logits
    both = np.where(np.isneginf(logits[first]), -np.inf, logits)
    both = np.where(np.isneginf(both).all(axis=1, keepdims=True), logits, both)
    if (both < logits).any():
        yield Deviation("tokens that the first row of a request masks are masked in all its rows", lambda: rows.chain(
            **dict.fromkeys(ALL_PLACES, _table(rows.target.with_logits(both)))))
    if not is_bonus.all():
        of_draft, at = np.flatnonzero(~is_bonus), np.arange(int((~is_bonus).sum()))
        empty = np.repeat(np.cumsum(case.lens == 0) - (case.lens == 0), case.lens)
        for words, read in (("read at the rows of the target, bonus rows among them", of_draft),
                            ("that of the next draft", at + 1), ("that of the last draft", at - 1),
                            ("read one row too late behind a request without drafts", at + empty)):
            if (read != at).any():
                moved_q = np.zeros_like(q)
                moved_q[of_draft] = q[of_draft[np.clip(read, 0, len(at) - 1)]]
                yield Deviation(f"q is {words}", lambda moved_q=moved_q: rows.chain(q=moved_q, q_residual=moved_q))
    if case.lens.sum() > 1:
        yield rare("drafts from the {}th of a call on are rejected", lambda place: rows.chain(never_from=int(place)), 1,
                   int(case.lens.sum()) - 1, True)


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


def _wrong_parameters(rows: StepRows, case: StepsCase | None, of_row: np.ndarray,
                      batch: int) -> Iterator[Deviation]:
    """case: whose requests' parameters may be mixed, so many of a call; None: there is one set."""
    whose: list[Whose] = []
    if case is not None and batch > 1:
        width, at = rows.drafts_max + 1, np.arange(len(rows.q)) % (len(rows.q) * batch // case.batch)
        whose = [(words, index[of_row % batch], is_rare) for words, index, is_rare in (
            *neighbours(batch, "request"),
            *compacted({name: value[:batch] for name, value in case.params.items()}, "request"))]
        whose += [("read by row, not by request", np.minimum(at, batch - 1), False),
                  ("read as if all had as many drafts as the longest", np.minimum(at // width, batch - 1), False),
                  ("that of the request with most drafts", np.full(len(at), int(case.lens.argmax())), False)]
        if case.lens[:batch].any():
            of_drafts = np.repeat(np.arange(batch), case.lens[:batch])
            whose.append(("that of the request of draft i for request i",
                          of_drafts[np.minimum(of_row % batch, len(of_drafts) - 1)], False))
    every = rows.target.params if case is None else case.params

    @functools.lru_cache(maxsize=1)  # of the deviation that is tried
    def table(make: Callable[[], Rows]) -> tuple[Rows, np.ndarray]:
        wrong = make()
        return wrong, _table(wrong)

    def read(places: tuple[str, ...], found: tuple[Rows, np.ndarray]) -> Chain:
        return rows.chain(given=found[0], **dict.fromkeys(places, found[1]))

    for wrong in itertools.chain(wrong_rows(rows.target, every), mixed_rows(rows.target, whose, every),
                                 extreme_rows(rows.target, every)):
        if wrong.has_number:
            yield wrong.then(lambda one: read(ALL_PLACES, (one, _table(one))))
            continue
        for part, places in PARTS.items() if not wrong.is_rare else [("", ALL_PLACES)]:
            yield Deviation(f"of {part}: {wrong.name}" if part else wrong.name,
                            lambda wrong=wrong, places=places: read(places, table(wrong.make)),
                            is_rare=wrong.is_rare or bool(part))


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
    with np.errstate(divide="ignore"):
        logits = np.where(is_bonus[:, None], 0.0, np.log(q)).astype(np.float32)
    return np.where(is_bonus[:, None], 0.0, _table(Rows(logits, params).with_params(
        temperature=np.where(params["temperature"] > 0.0, 1.0, 0.0))))


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
