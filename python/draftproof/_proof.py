"""Proof of a rule that is written in Python: every outcome of a step is taken in turn, over fractions, on the pairs of
models of `draftproof prove`, and the distribution of what comes out is compared with the target's
(docs/exactness.md)."""

from __future__ import annotations

import inspect
import itertools
import json
import operator
import os
import time
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Callable, Iterator, Sequence, Union

from ._core import Error
from ._documents import Proof
from ._progress import Progress

String = tuple[int, ...]  # tokens; as a path, those from the root of the draft to a node
Masses = tuple[Fraction, ...]  # [V]
Drafts = Union[list[int], dict[String, list[int]]]  # a chain, or the children of every path

DECISIONS, OUTCOMES = 400, 200_000  # of a path, of a certificate: at most
TWICE = 8  # outcomes of a step whose decisions the rule gets again: it must do the same
KINDS = ("dense", "zeros", "one-hot target", "one-hot draft", "p = q", "disjoint", "ties")
LIMITS = {"vocab": (2, 6), "num_speculative_tokens": (1, 6), "steps": (1, 4), "instances": (1, 100_000)}


def _philox(key: int, *counter: int) -> list[int]:
    """Philox4x32-10: the models are those of the program, bit for bit."""
    c0, c1, c2, c3 = counter
    for i in range(10):
        key0, key1 = (key + i * 0x9E3779B9) & 0xFFFFFFFF, ((key >> 32) + i * 0xBB67AE85) & 0xFFFFFFFF
        first, second = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = second >> 32 ^ c1 ^ key0, second & 0xFFFFFFFF, first >> 32 ^ c3 ^ key1, first & 0xFFFFFFFF
    return [c0, c1, c2, c3]


class _Models(dict[String, tuple[Masses, Masses]]):
    """(p, q) after every prefix: exactness/model_pair.hpp says how they are made."""

    def __init__(self, vocab: int, seed: int, index: int) -> None:
        high, low, *_ = _philox(seed, index, 0, 0, 7)
        self.vocab, self.seed, self.kind = vocab, high << 32 | low, KINDS[index % len(KINDS)]

    def __missing__(self, prefix: String) -> tuple[Masses, Masses]:
        context = 1
        for token in prefix:
            context = (context * (self.vocab + 1) + token + 1) & 0xFFFFFFFF
        blocks = [_philox(self.seed, i, context, 0, 9) for i in range(self.vocab)]
        extra = _philox(self.seed, 0, context, 1, 9)
        zeros = self.kind == "zeros"
        p = [0 if zeros and block[0] % 3 == 0 else 1 + block[1] % 5 for block in blocks]
        q = [0 if zeros and block[2] % 3 == 0 else 1 + block[3] % 5 for block in blocks]
        if self.kind == "one-hot target":
            p = [0] * self.vocab
        elif self.kind == "one-hot draft":
            q = [0] * self.vocab
        elif self.kind == "p = q":
            q = p
        elif self.kind == "disjoint":
            for i in range(self.vocab):
                (p if i % 2 == extra[2] % 2 else q)[i] = 0
        elif self.kind == "ties":
            p = [1 + (extra[2] >> i) % 2 for i in range(self.vocab)]
            q = p[1:] + p[:1]
        for masses, word in ((p, extra[0]), (q, extra[1])):
            if not any(masses):
                masses[word % self.vocab] = 1
        self[prefix] = found = (tuple(Fraction(x, sum(p)) for x in p), tuple(Fraction(x, sum(q)) for x in q))
        return found


class Chance:
    """The decisions of a rule. Each is independent of the others; every outcome of each is taken in turn."""

    def __init__(self) -> None:
        self._choices: list[list[Any]] = []  # [purpose, what was asked, (outcome, share, probability so far)s, taken]
        self._depth = 0

    def accept(self, p: Fraction) -> bool:
        """True with probability p; above 1 always, below 0 never. A Fraction, or a whole number."""
        return self._decide("accept", _exact("accept", p)) == 0

    def draw(self, weights: Sequence[Fraction]) -> int:
        """Index i with probability weights[i] / sum(weights). Weights [n] >= 0, one of them above 0, or ValueError."""
        return self._decide("draw", weights if type(weights) is tuple else tuple(weights))

    def _decide(self, purpose: str, asked: Any) -> int:
        if self._depth == len(self._choices):
            if self._depth == DECISIONS:
                raise Error(f"the rule takes more than {DECISIONS} decisions in a step; does it end?")
            self._choices.append([purpose, asked, self._outcomes(purpose, asked), 0])
        choice = self._choices[self._depth]
        if choice[0] != purpose or choice[1] != asked:
            raise _by_chance_alone(f"asks for {purpose} {_text(asked)} where it asked for {choice[0]} "
                                   f"{_text(choice[1])}")
        self._depth += 1
        return int(choice[2][choice[3]][0])

    def _outcomes(self, purpose: str, asked: Any) -> list[tuple[int, Fraction, Fraction]]:
        if purpose == "accept":
            rate = min(max(Fraction(asked), Fraction(0)), Fraction(1))
            weights: Sequence[Fraction] = (rate, 1 - rate)
        else:
            weights = [_exact("draw", weight) for weight in asked]
            if any(weight < 0 for weight in weights):
                raise ValueError(f"chance.draw got the weights {_text(asked)}; expected none below 0")
        total = sum(weights)
        if not total:
            raise ValueError("a draw from masses that are all zero")
        before = self._probability()
        return [(i, share := Fraction(weight) / total, before * share) for i, weight in enumerate(weights) if weight]

    def _probability(self) -> Fraction:
        return self._choices[self._depth - 1][2][self._choices[self._depth - 1][3]][2] if self._depth else Fraction(1)

    def _next(self) -> bool:
        del self._choices[self._depth:]
        while self._choices and self._choices[-1][3] + 1 == len(self._choices[-1][2]):
            self._choices.pop()
        if self._choices:
            self._choices[-1][3] += 1
        self._depth = 0
        return bool(self._choices)


def _exact(decision: str, value: Any) -> Fraction:
    if not isinstance(value, (Fraction, int)):
        raise Error(f"chance.{decision} got {value!r}; expected a Fraction, as of p and q, or a whole number")
    return value  # type: ignore[return-value]


def _by_chance_alone(what: str) -> Error:
    return Error(f"the rule {what} after the same decisions; expected that it decides by chance.accept and chance.draw "
                 "alone "
                 "(no random, no clock), and keeps nothing from one call to the next")


def _require_arguments(what: str, function: Callable[..., Any], expected: str) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of built-in functions, which say nothing
        return
    try:
        signature.bind(*expected.split(", "))
    except TypeError as error:
        raise Error(f"{what}: {getattr(function, '__name__', type(function).__name__)}{signature} cannot be called "
                    "with "
                    f"({expected}): {error}") from None


def _text(value: Any) -> str:
    return f"({', '.join(map(str, value))})" if isinstance(value, (tuple, list)) else str(value)


class Draft:
    """A tree of drafts. A path is the tuple of its tokens, () the root's."""

    def __init__(self, draw: Callable[[String], list[int]]) -> None:
        self._draw = draw
        self._children: dict[String, list[int]] = {}

    def children(self, path: Sequence[int]) -> list[int]:
        """The tokens drafted after a path, in the order in which they were drawn; [] where there are none."""
        path = tuple(path)
        if path not in self._children:
            self._children[path] = list(self._draw(path))
        return list(self._children[path])


class _Rows:
    """One model's distributions along a draft: rows[path]."""

    def __init__(self, models: _Models, prefix: String, which: int) -> None:
        self._models, self._prefix, self._which = models, prefix, which

    def __getitem__(self, path: Sequence[int]) -> Masses:
        return self._models[self._prefix + tuple(path)][self._which]


def _without(masses: Sequence[Fraction], token: int) -> Masses:
    return tuple(Fraction(0) if x == token else mass for x, mass in enumerate(masses))


def _chain(q: _Rows, depth: int, branches: int, chance: Chance) -> list[int]:
    drafts: list[int] = []
    while len(drafts) < depth:
        drafts.append(chance.draw(q[drafts]))
    return drafts


def _paths(q: _Rows, depth: int, branches: int, chance: Chance) -> dict[String, list[int]]:
    children: dict[String, list[int]] = {}
    for _ in range(branches):
        path: String = ()
        while len(path) < depth:
            siblings = children.setdefault(path, [])
            token = chance.draw(q[path])
            if token not in siblings:
                siblings.append(token)
            path += (token,)
    return children


def _siblings(which: str, q: Masses, count: int, chance: Chance) -> list[int]:
    if which == "iid":
        return [chance.draw(q) for _ in range(count)]
    siblings: list[int] = []
    while len(siblings) < count and any(q):
        greedy = which == "greedy" and len(siblings) < count - 1
        siblings.append(q.index(max(q)) if greedy else chance.draw(q))
        q = _without(q, siblings[-1])
    return siblings


class _Step:
    """One step of the rule after a prefix: how drafts are made, what the rule makes of them."""

    def __init__(self, rule: Callable[..., Any], draft: Any, branches: int) -> None:
        self.rule, self.draft, self.branches = rule, draft, branches

    def run(self, models: _Models, prefix: String, depth: int, chance: Chance) -> String:
        p, q = _Rows(models, prefix, 0), _Rows(models, prefix, 1)
        drafts: Any = []
        try:
            if self.draft in ("iid", "distinct", "greedy"):  # children are drawn where the rule looks
                drafts = Draft(lambda path: _siblings(self.draft, q[path], self.branches, chance) if len(path) < depth
                               else [])
            elif isinstance(made := self._made(q, depth, chance), Mapping):
                drafts = Draft(lambda path: made.get(path, []))
                for path in made:
                    drafts.children(path)
            else:
                drafts = list(made)
                p, q = ([rows[drafts[:i]] for i in range(len(drafts) + 1)] for rows in (p, q))  # type: ignore[assignment]
            emitted = self.rule(list(drafts) if isinstance(drafts, list) else drafts, p, q, chance)
            return _string(emitted, models.vocab, depth)
        except Error:
            raise
        except Exception as error:
            raise _Failure(f"{type(error).__name__}: {error}", prefix, drafts) from error

    def _made(self, q: _Rows, depth: int, chance: Chance) -> Any:
        if callable(self.draft):
            return self.draft(q, depth, chance)
        return (_chain if self.draft == "chain" else _paths)(q, depth, self.branches, chance)

    def outcomes(self, models: _Models, prefix: String, depth: int) -> Iterator[tuple[String, Fraction, Chance]]:
        chance, more, count = Chance(), True, 0
        while more:
            emitted = self._run_or_failure(models, prefix, depth, chance)
            if (count := count + 1) <= TWICE:
                decisions, chance._depth = chance._depth, 0
                again = self._run_or_failure(models, prefix, depth, chance)
                if str(again) != str(emitted) or chance._depth != decisions:
                    raise _by_chance_alone(f"{_does(again)}, and the first time it {_does(emitted)},")
            if isinstance(emitted, _Failure):
                raise emitted
            yield emitted, chance._probability(), chance
            more = chance._next()

    def _run_or_failure(self, models: _Models, prefix: String, depth: int, chance: Chance) -> String | _Failure:
        try:
            return self.run(models, prefix, depth, chance)
        except _Failure as failure:
            return failure


def _string(emitted: Any, vocab: int, depth: int) -> String:
    tokens = tuple(operator.index(token) for token in emitted)  # 1.5 is no token
    if not 1 <= len(tokens) <= depth + 1 or not all(0 <= token < vocab for token in tokens):
        raise ValueError(f"it emits {_text(tokens)}; expected 1 to {depth + 1} tokens in [0, {vocab})")
    return tokens


class _Failure(Exception):
    """A rule that raises: it has no distribution there."""

    def __init__(self, message: str, prefix: String, draft: Any) -> None:
        super().__init__(message)
        self.message, self.prefix = message, prefix
        if isinstance(draft, list):
            self.tokens, self.parents = draft, list(range(-1, len(draft) - 1))
            return
        self.tokens, self.parents, nodes = [], [], {(): -1}
        for path, siblings in sorted(draft._children.items(), key=lambda item: len(item[0])):
            for token in siblings:
                nodes.setdefault((*path, token), len(self.tokens))
                self.tokens.append(token)
                self.parents.append(nodes[path])


def _does(what: String | _Failure) -> str:
    return f"raises {what}" if isinstance(what, _Failure) else f"emits {_text(what)}"


def _first_difference(emitted: dict[String, Fraction], models: _Models) -> tuple[Any, Fraction]:
    """(The shortest string, of those the first, whose completed probability is not the target's, with both; or None),
    and the total-variation distance at the length of the longest string."""
    # string: completed so far from shorter ones, product of p
    level: dict[String, tuple[Fraction, Fraction]] = {(): (Fraction(0), Fraction(1))}
    found, distance = None, Fraction(0)
    for length in range(1, max(map(len, emitted)) + 1):
        passing: dict[String, Fraction] = {}
        for string, probability in emitted.items():
            if len(string) >= length:
                passing[string[:length]] = passing.get(string[:length], Fraction(0)) + probability
        following: dict[String, tuple[Fraction, Fraction]] = {}
        distance = Fraction(0)
        for prefix, (completed, product) in level.items():
            completed += emitted.get(prefix, 0)
            for token, share in enumerate(models[prefix][0]):
                string, carried, expected = (*prefix, token), completed * share, product * share
                through = passing.get(string, 0) + carried
                if through or expected:
                    following[string] = carried, expected
                if through != expected:
                    distance += abs(through - expected)
                    found = found or (string, through, expected)
        level = following
    return found, distance / 2


class _Pair:
    """What the rule does on one pair of models."""

    def __init__(self, step: _Step, models: _Models, depth: int, steps: int) -> None:
        self.paths, self.accepted, self.distance = 0, Fraction(0), Fraction(0)
        self.counterexample: dict[str, Any] | None = None
        self._step, self._models, self._depth = step, models, depth
        try:
            emitted = self._distribution(())
            self.accepted = sum((mass * (len(string) - 1) for string, mass in emitted.items()), Fraction(0))
            for _ in range(steps - 1):
                composed: dict[String, Fraction] = {}
                for prefix, mass in emitted.items():
                    for string, conditional in self._distribution(prefix).items():
                        composed[prefix + string] = composed.get(prefix + string, Fraction(0)) + mass * conditional
                emitted = composed
            found, self.distance = _first_difference(emitted, models)
            if found:
                string, through, expected = found
                self._counter(string[:-1], token=string[-1], probability_emitted=str(through),
                              probability_expected=str(expected))
        except _Failure as failure:
            self._counter(failure.prefix, failure=failure.message, in_floats=False, draft=failure.tokens,
                          draft_parents=failure.parents)

    def _distribution(self, prefix: String) -> dict[String, Fraction]:
        emitted: dict[String, Fraction] = {}
        for string, probability, _ in self._step.outcomes(self._models, prefix, self._depth):
            emitted[string] = emitted.get(string, Fraction(0)) + probability
            self.paths += 1
        return emitted

    def _counter(self, prefix: String, **found: Any) -> None:
        p, q = self._models[prefix]
        self.counterexample = {"models": self._models.kind, "models_seed": self._models.seed, "prefix": list(prefix),
                               "p": [str(x) for x in p], "q": [str(x) for x in q], **found,
                               "num_speculative_tokens": self._depth}


def _worst(pairs: Iterator[_Pair]) -> tuple[list[_Pair], dict[str, Any] | None]:
    """All pairs, and the counterexample to report: a rule that raises first, then the shorter prefix."""
    every = list(pairs)
    found = [pair.counterexample for pair in every if pair.counterexample]
    return every, min(found, key=lambda one: ("failure" not in one, len(one["prefix"])), default=None)


def prove_rule(rule: Callable[..., Any], *, draft: Any = "chain", branches: int = 2, vocab: int = 3,
               num_speculative_tokens: int | None = None, steps: int = 2, instances: int = 20, seed: int = 0,
               certificate: Union[str, os.PathLike[str], None] = None) -> Proof:
    """Is what `rule` emits distributed exactly as the target? draftproof.prove says what a rule is."""
    if not callable(draft) and draft not in ("chain", "iid", "distinct", "greedy", "paths"):
        raise Error(f"draft: is {draft!r}; expected 'chain', 'iid', 'distinct', 'greedy', 'paths' or a callable")
    depth = num_speculative_tokens if num_speculative_tokens is not None else 3 if draft == "chain" else 2
    given = {"vocab": vocab, "num_speculative_tokens": depth, "steps": steps, "instances": instances,
             "branches": branches}
    for name, value in given.items():
        least, most = LIMITS.get(name, (1, 6))
        if type(value) is not int or not least <= value <= most:
            raise Error(f"{name}: is {value!r}; expected a whole number in [{least}, {most}]")
    _require_arguments("rule", rule, "draft, p, q, chance")
    if callable(draft):
        _require_arguments("draft", draft, "q, num_speculative_tokens, chance")
    start = time.perf_counter()
    step = _Step(rule, draft, branches)
    name = getattr(rule, "__name__", type(rule).__name__)

    progress = Progress()

    def on_models(vocab: int, depth: int) -> Iterator[_Pair]:
        for i in range(instances):
            try:
                pair = _Pair(step, _Models(vocab, seed, i), depth, steps)
            except KeyboardInterrupt:
                raise KeyboardInterrupt(f"prove {name}: interrupted after {i} of {instances} pairs of models, and none "
                                        "of it is kept; fewer instances, or a smaller vocab or num_speculative_tokens, "
                                        "end sooner") from None
            yield pair
            progress(lambda: f"prove {name}, V = {vocab}, K = {depth}: {i + 1} of {instances} pairs of models")

    pairs, worst = _worst(on_models(vocab, depth))
    exact = worst is None
    if not exact:  # of the smallest size that refutes the rule too
        for smaller in itertools.product(range(1, depth + 1), range(2, vocab + 1)):
            if found := _worst(on_models(smaller[1], smaller[0]))[1]:
                worst = found
                break
    if certificate is not None:
        _write_certificate(certificate, step, name, vocab, depth, [_Models(vocab, seed, i) for i in range(instances)])
    return Proof({"verifier": name, "lossless": True, "receives_drawn_q": True, "exact": exact, "as_claimed": exact,
                  "instances": instances, "vocab": vocab, "draft": depth,
                  "outcomes_enumerated": sum(pair.paths for pair in pairs), "acceptance_oracles": 0,
                  "acceptance_equal": True,
                  "mean_accepted": float(sum((pair.accepted for pair in pairs), Fraction(0)) / instances),
                  "total_variation_max": float(max(pair.distance for pair in pairs)), "float_distance_max": None,
                  "counterexample": worst, "source": "a rule in Python", "ms": 1000 * (time.perf_counter() - start)})


def _write_certificate(path: Union[str, os.PathLike[str]], step: _Step, name: str, vocab: int, depth: int,
                       every: list[_Models]) -> None:
    """One step on every pair of models, as exactness/proof/check_certificate.py checks it on its own."""
    instances, count, refuted = [], 0, False
    for models in every:
        emitted: dict[String, Fraction] = {}
        outcomes = []
        for string, probability, chance in step.outcomes(models, (), depth):
            if (count := count + 1) > OUTCOMES:
                raise Error(f"certificate: would hold more than {OUTCOMES} outcomes; expected fewer instances, or a "
                            "smaller vocab "
                            "or num_speculative_tokens")
            emitted[string] = emitted.get(string, Fraction(0)) + probability
            outcomes.append({"emitted": string, "decisions": [
                [purpose, i, 0, parts[taken][0], str(parts[taken][1])]
                for i, (purpose, _, parts, taken) in enumerate(chance._choices[:chance._depth])]})
        found = _first_difference(emitted, models)[0]
        refuted = refuted or found is not None
        prefixes = [prefix for length in range(depth + 1) for prefix in itertools.product(range(vocab), repeat=length)]
        instances.append({
            "models": models.kind,
            "rows": [{"prefix": prefix, "p": [str(x) for x in models[prefix][0]],
                      "q": [str(x) for x in models[prefix][1]]}
                     for prefix in prefixes],
            "outcomes": outcomes,
            "emitted": [{"string": string, "probability": str(emitted[string])} for string in sorted(emitted)],
            "difference": found and {"string": found[0], "emitted": str(found[1]), "expected": str(found[2])}})
    proof = {"verifier": f"python:{name}", "source": "a rule in Python", "claim": "lossy" if refuted else "lossless",
             "vocab": vocab, "draft": depth, "instances": instances}
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"proofs": [proof]}, file)
        file.write("\n")
