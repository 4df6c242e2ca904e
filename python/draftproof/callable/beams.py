"""audit_beams: are an engine's beams those of a beam search over these logits?"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, Callable, Iterator, Sequence, Union

import numpy as np

from .. import _forms
from .._core import Error

#: When a search stops once its pool is full: by `early_stopping`, words and name. The last is of searches that never
#: look.
STOPPING: dict[Any, tuple[str, str]] = {
    "never": ("exact", "stops when no continuation can enter the pool"),
    False: ("current", "stops when the best beam, at its length, is not better than the pool's worst "
                       "(early_stopping=False)"),
    True: ("first", "stops when the pool is full (early_stopping=True)"),
    "none": ("none", "goes on to max_tokens, and takes ends of any rank"),
}
Power = Callable[[int, bool], float]


@dataclasses.dataclass(frozen=True)
class BeamFailure:
    """name: 'order', 'duplicates', 'goes_on', 'too_long', 'unfinished', 'impossible', 'score' or 'search'."""

    name: str
    sentence: str


@dataclasses.dataclass(frozen=True)
class BeamAudit:
    """verdict: 'consistent', 'biased', or 'inconclusive' where sums are too close for rounding not to decide. readings:
    how scores are made and when the search stops, where the beams are those of a usual rule."""

    verdict: str
    sentence: str
    failures: tuple[BeamFailure, ...]
    readings: tuple[str, ...]

    @property
    def biased(self) -> bool:
        return self.verdict == "biased"


def _powers(penalty: float, prompt_len: int | None) -> dict[str, Power]:
    """Readings of a length penalty: what a sum of log-probabilities is divided by, of so many generated tokens;
    is_ended: the last ends."""
    out: dict[str, Power] = {}
    for what, before in (("generated tokens", 0),
                         *(() if prompt_len is None else (("prompt and generated tokens", prompt_len),))):
        for end, counts in (("the end included", True), ("without the end", False)):
            for name, power in (("length^a", lambda n: float(n) ** penalty),
                                ("((5 + length) / 6)^a", lambda n: ((5.0 + n) / 6.0) ** penalty)):
                out[f"sum / {name}, length of {what}, {end}"] = (
                    lambda n, is_ended, before=before, counts=counts, power=power:  # type: ignore[misc]
                    power(max(1, before + n - (is_ended and not counts))))
    return out


class _Rows:
    """Log-probabilities by what was generated, each row asked for once."""

    def __init__(self, logits_of: Callable[[list[int]], Any]) -> None:
        self.logits_of, self.known = logits_of, {}  # type: ignore[var-annotated]

    def __call__(self, tokens: tuple[int, ...]) -> np.ndarray:
        if tokens not in self.known:
            row = np.asarray(_forms.as_numpy(self.logits_of(list(tokens)), "logits_of"), np.float64).reshape(-1)
            if not row.size or np.isnan(row).any() or not np.isfinite(row.max()):
                raise Error(f"logits_of: gave {row.size} logits behind {list(tokens)}, of which "
                            f"{int(np.isnan(row).sum())} are NaN; expected "
                            f"logits [V] with a finite largest one")
            with np.errstate(divide="ignore"):
                self.known[tokens] = row - row.max() - np.log(np.exp(row - row.max()).sum())
        return self.known[tokens]


@dataclasses.dataclass
class _Search:
    """One beam search. gap: the least difference that decided something."""

    rows: _Rows
    width: int
    count: int
    eos: frozenset[int]
    max_tokens: int
    power: Power
    stopping: str
    gap: float = np.inf

    def run(self) -> list[tuple[int, ...]]:
        beams: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
        pool: list[tuple[float, tuple[int, ...]]] = []
        size = self.count if self.stopping != "none" else 1 << 30
        for length in range(1, self.max_tokens + 1):
            beams, ended = self._step(beams)
            pool = self._best(pool + [(total / self.power(length, True), tokens) for total, tokens in ended], size)
            if not beams or (len(pool) >= size and length < self.max_tokens
                             and self._stops(beams[0][0], pool[-1][0], length)):
                return [tokens for _, tokens in self._best(pool, self.count)]
        pool += [(total / self.power(self.max_tokens, False), tokens) for total, tokens in beams]
        return [tokens for _, tokens in self._best(pool, self.count)]

    def _best(self, of: list[tuple[float, tuple[int, ...]]], count: int) -> list[tuple[float, tuple[int, ...]]]:
        ranked = sorted(of, key=lambda one: (-one[0], one[1]))
        if len(ranked) > count:
            self.gap = min(self.gap, ranked[count - 1][0] - ranked[count][0])
        return ranked[:count]

    def _step(self, beams: list[tuple[float, tuple[int, ...]]]) -> tuple[list[Any], list[Any]]:
        candidates, is_likely = [], set()
        for total, tokens in beams:
            row = self.rows(tokens)
            every = [(total + float(row[token]), (*tokens, int(token))) for token in np.argsort(-row, kind="stable")
                     if row[token] > -np.inf]
            candidates += every
            is_likely |= {extended for _, extended in every[:2 * self.width]}
        candidates.sort(key=lambda one: (-one[0], one[1]))
        going, ended = [], []
        for rank, one in enumerate(candidates):
            if one[1][-1] not in self.eos:
                going.append(one)
            elif one[1] in is_likely if self.stopping == "none" else rank < self.width:
                ended.append(one)
        if len(going) > self.width:
            self.gap = min(self.gap, going[self.width - 1][0] - going[self.width][0])
        if self.stopping != "none" and len(candidates) > self.width:
            inside, outside = candidates[self.width - 1], candidates[self.width]
            if inside[1][-1] in self.eos or outside[1][-1] in self.eos:
                self.gap = min(self.gap, inside[0] - outside[0])
        return going[:self.width], ended

    def _stops(self, best: float, worst: float, length: int) -> bool:
        if self.stopping in ("first", "none"):
            return self.stopping == "first"
        lengths = range(length + 1, self.max_tokens + 1) if self.stopping == "exact" else (length,)
        bound = max(best / self.power(n, ends) for n in lengths
                    for ends in ((True, False) if self.stopping == "exact" else (False,)))
        self.gap = min(self.gap, abs(bound - worst))
        return bound < worst if self.stopping == "exact" else bound <= worst


def audit_beams(tokens: Sequence[Any], scores: Any, logits_of: Callable[[list[int]], Any], *,
                eos_ids: Union[int, Sequence[int]] = (),
                max_tokens: int | None = None, beam_width: int | None = None, length_penalty: float = 1.0,
                early_stopping: Union[bool, str, None] = None, prompt_len: int | None = None,
                tolerance: float = 1e-3) -> BeamAudit:
    """Are these hypotheses what a beam search over these logits finds?

    tokens: of each hypothesis the generated ids, best first as the engine gave them, an end included. scores: [n].
    logits_of: logits [V] behind the prompt and a list of generated ids; each list is asked for once.
    eos_ids: ids that end a hypothesis. max_tokens: of a hypothesis; absent: the search itself is not looked at, as it
    may have
        been cut anywhere. beam_width: absent: n. length_penalty: a in sum / length^a.
    early_stopping: True, False or 'never', as transformers has it; absent: any of these, or a search that goes on to
    max_tokens
        (vLLM's). prompt_len: where lengths may count the prompt.
    tolerance: what rounding may move a score by, relative above 1. Where decisions of the search are closer, it is
    'inconclusive'.
    Checked: scores descend; no hypothesis comes twice, goes on behind an end or is cut; scores are sums of
    log-probabilities over a length, under the usual readings of it; the hypotheses are those of the search, under the
    usual rules of stopping.
    """
    if not callable(logits_of):
        raise Error(f"logits_of: is {type(logits_of).__name__}; expected a function of a list of ids to logits [V]")
    if not hasattr(tokens, "__len__") or isinstance(tokens, str) or not len(tokens):
        raise Error(f"tokens: is {tokens!r}; expected a list of hypotheses, each a list of ids")
    beams = [tuple(int(token) for token in _forms.integers(one, f"tokens[{i}]", np.int64)) for i,
             one in enumerate(tokens)]
    given = _forms.as_numpy(scores, "scores")
    is_finite = given.dtype.kind in "fiu" and np.isfinite(given)
    if given.shape != (len(beams),) or not np.all(is_finite):
        raise Error(f"scores: has shape {list(given.shape)} beside {len(beams)} hypotheses, "
                    f"{int(np.sum(is_finite))} finite; expected a finite number for each")
    given, width = np.asarray(given, np.float64), len(beams) if beam_width is None else beam_width
    for name, value, is_whole, least, expected in (
            ("max_tokens", 1 if max_tokens is None else max_tokens, True, 1, "a whole number, 1 or more"),
            ("prompt_len", 0 if prompt_len is None else prompt_len, True, 0, "a whole number, 0 or more"),
            ("beam_width", width, True, len(beams), f"a whole number, {len(beams)} or more, one a hypothesis"),
            ("length_penalty", length_penalty, False, -np.inf, "a finite number"),
            ("tolerance", tolerance, False, 0, "a finite number, 0 or more")):
        kinds = (int, np.integer) if is_whole else (int, float, np.integer, np.floating)
        if not (isinstance(value, kinds) and np.isfinite(value) and value >= least):
            raise Error(f"{name}: is {value!r}; expected {expected}")
    if early_stopping not in (None, True, False, "never"):
        raise Error(f"early_stopping: is {early_stopping!r}; expected True, False, 'never' or None")
    rows, eos = _Rows(logits_of), frozenset(_forms.integers(np.ravel(eos_ids), "eos_ids", np.int64).tolist())
    failures = list(_shapes(beams, given, eos, max_tokens))
    sums, impossible = _sums(beams, rows)
    failures += impossible
    fitting: dict[str, Power] = {}
    if not impossible:
        fitting, wrong = _fitting(beams, given, sums, _powers(length_penalty, prompt_len), eos, tolerance)
        failures += wrong
    readings, is_close = [next(iter(fitting))] if fitting else [], False
    if max_tokens is not None and not failures:
        found, is_close = _searched(beams, fitting, early_stopping,
                                    _Search(rows, width, len(beams), eos, max_tokens, lambda n, e: 1.0, ""), tolerance)
        if isinstance(found, BeamFailure):
            failures.append(found)
        elif found:
            readings = found
    verdict = "biased" if failures else "inconclusive" if is_close else "consistent"
    sentence = "; ".join(one.sentence for one in failures) or (
        "sums of the search are closer than the tolerance, and its beams are others: rounding may have decided"
        if is_close else
        f"{len(beams)} hypotheses, {', '.join(readings)}" +
        ("; the search was not looked at, as max_tokens is not given" if max_tokens is None else ""))
    return BeamAudit(verdict, f"{verdict}: {sentence}", tuple(failures), tuple(readings))


def _shapes(beams: list[tuple[int, ...]], scores: np.ndarray, eos: frozenset[int],
            max_tokens: int | None) -> Iterator[BeamFailure]:
    rising = np.flatnonzero(scores[1:] > scores[:-1])
    if rising.size:
        i = int(rising[0])
        yield BeamFailure("order",
                          f"hypothesis {i + 1} has score {scores[i + 1]:.6g}, above {scores[i]:.6g} of the one before "
                          "it")
    for i, one in enumerate(beams):
        if one in beams[:i]:
            yield BeamFailure("duplicates", f"hypotheses {beams.index(one)} and {i} are the same tokens")
        end = next((place for place, token in enumerate(one) if token in eos), None)
        if end is not None and end + 1 < len(one):
            yield BeamFailure("goes_on", f"hypothesis {i} goes on behind the end {one[end]} at {end}")
        if max_tokens is not None and len(one) > max_tokens:
            yield BeamFailure("too_long", f"hypothesis {i} has {len(one)} tokens of at most {max_tokens}")
        if not one or (max_tokens is not None and len(one) < max_tokens and end is None):
            yield BeamFailure("unfinished", f"hypothesis {i} has {len(one)} tokens and no end")


def _sums(beams: list[tuple[int, ...]], rows: _Rows) -> tuple[list[float], list[BeamFailure]]:
    sums, failures = [], []
    for i, one in enumerate(beams):
        total = 0.0
        for place, token in enumerate(one):
            row = rows(one[:place])
            total += float(row[token]) if 0 <= token < len(row) else -np.inf
            if total == -np.inf:
                failures.append(BeamFailure("impossible",
                                            f"hypothesis {i} has token {token} at {place}, which has probability 0 "
                                            "there"))
                break
        sums.append(total)
    return sums, failures


def _fitting(beams: list[tuple[int, ...]], scores: np.ndarray, sums: list[float], powers: dict[str, Power],
             eos: frozenset[int], tolerance: float) -> tuple[dict[str, Power], list[BeamFailure]]:
    """The readings under which all scores are right."""
    due = {name: np.array([total / power(len(one), one[-1] in eos) if one else 0.0 for one, total in zip(beams, sums)])
           for name, power in powers.items()}
    wrong = {name: np.flatnonzero(np.abs(scores - of) > tolerance * np.maximum(1.0, np.abs(of))) for name,
             of in due.items()}
    fitting = {name: powers[name] for name, of in wrong.items() if not of.size}
    if fitting:
        return fitting, []
    name = min(wrong, key=lambda one: wrong[one].size)
    i = int(wrong[name][0])
    sentence = (f"{wrong[name].size} of {len(beams)} scores are not {name}: hypothesis {i} has {scores[i]:.6g} where "
                f"{due[name][i]:.6g} is due")
    long = [k for k, one in enumerate(beams) if len(one) > 1 and sums[k] < 0.0 and scores[k] < 0.0]
    fitted = np.array([np.log(sums[k] / scores[k]) / np.log(len(beams[k])) for k in long])
    lengths = np.array([max(1, len(one)) for one in beams], np.float64)
    if len(long) > 1 and np.allclose(sums / lengths ** fitted.mean(), scores, rtol=tolerance, atol=tolerance):
        sentence += f"; all of them would be with a length penalty of {fitted.mean():.3g}"
    return {}, [BeamFailure("score", sentence)]


def _searched(beams: list[tuple[int, ...]], fitting: dict[str, Power], early_stopping: Any, plan: _Search,
              tolerance: float) -> tuple[Union[list[str], BeamFailure], bool]:
    """The readings under which a search finds these; or what is wrong under all; is it so close that rounding may have
    decided?"""
    rules = list(STOPPING.values()) if early_stopping is None else [STOPPING[early_stopping]]
    nearest: tuple[int, list[tuple[int, ...]], str] | None = None
    is_close = False
    for (how, power), (stopping, words) in itertools.product(fitting.items(), rules):
        search = dataclasses.replace(plan, power=power, stopping=stopping, gap=np.inf)
        found = search.run()
        if set(found) == set(beams):
            return [how, words], False
        is_close = is_close or search.gap < tolerance
        common = len(set(found) & set(beams))
        if nearest is None or common > nearest[0]:
            nearest = common, found, words
    if is_close or nearest is None:
        return [], is_close
    missing = [one for one in nearest[1] if one not in beams]
    foreign = [one for one in beams if one not in nearest[1]]
    sentence = (f"a beam search of width {plan.width} that {nearest[2]} finds {nearest[0]} of the {len(beams)} "
                "hypotheses")
    sentence += f"; it has {list(missing[0])}, which is missing" if missing else ""
    sentence += f"; it has not {list(foreign[0])}, hypothesis {beams.index(foreign[0])}" if foreign else ""
    return BeamFailure("search", sentence), False
