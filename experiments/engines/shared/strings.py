"""Drafters with heads: whole steps of an engine, judged by the strings that it emits.

A row of 64 logits is that of a target model over all strings of three tokens out of four; a "draw" is the string that
the steps emit, from nothing on. The head drafts three of the four tokens (its own ids, d2t), from rows that differ from
the target's.
Model and head know a context as what came since the prompt, as their hidden state has it: a step that reads the wrong
token, position, state or branch draws from the rows of another string.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, Callable

import numpy as np

TOKENS, LENGTH = 4, 3  # of a vocabulary; of a string
DRAFT_IDS = np.array([0, 2, 3])  # of the head's rows, in the target's vocabulary
PROMPT = 5  # tokens before a string, which nothing depends on
WIDTH = 2 + 16  # a hidden state: the request, how many tokens are known since the prompt, these tokens
DESCRIPTION = (f"a row of {TOKENS}^{LENGTH} logits is that of strings of {LENGTH} tokens; target and head are tables "
               "of them, the head's over the tokens "
               f"{', '.join(map(str, DRAFT_IDS))}")


class Tables:
    """Next-token logits of target and head for the requests of a call. levels[d]: [B, TOKENS^d, TOKENS], after strings
    of d tokens."""

    def __init__(self, logits: np.ndarray) -> None:
        self.size = len(logits)
        joint = logits.reshape((self.size,) + (TOKENS,) * LENGTH).astype(np.float64)
        self.levels = [np.logaddexp.reduce(joint.reshape(self.size, TOKENS ** d, TOKENS, -1),
                                           axis=-1).astype(np.float32)
                       for d in range(LENGTH)]

    def target(self, request: int, string: tuple[int, ...]) -> np.ndarray:
        """[TOKENS]; behind the end of the strings flat."""
        if len(string) >= LENGTH:
            return np.zeros(TOKENS, np.float32)
        return self.levels[len(string)][request, at(string)]

    def head(self, request: int, string: tuple[int, ...], ids: np.ndarray) -> np.ndarray:
        """[len(ids)]: of a head that drafts the tokens `ids`, near the target's and never it."""
        tilt = 1.5 * np.sin(3.0 + 7.0 * at(string) + 2.0 * np.arange(len(ids)) + len(string))
        return (0.7 * self.target(request, string)[ids] + tilt).astype(np.float32)

    def head_rows(self, hidden: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """[n, len(ids)], after each of these hidden states."""
        return np.stack([self.head(int(row[0]), tuple(row[2:2 + int(row[1])].astype(int)), ids) for row in hidden])


def states(requests: Any, known: list[tuple[int, ...] | None]) -> np.ndarray:
    """Hidden states [n, WIDTH] of these requests after these strings; None: before the last token of the prompt."""
    hidden = np.zeros((len(known), WIDTH), np.float32)
    for row, request, string in zip(hidden, requests, known):
        row[:2] = request, -1 if string is None else len(string)
        row[2:2 + len(string or ())] = string or ()
    return hidden


def read(hidden: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """The states after one more token each."""
    out = hidden.copy()
    for row, token in zip(out, tokens):
        if row[1] >= 0:
            row[2 + int(row[1])] = token
        row[1] += 1
    return out


def at(string: tuple[int, ...]) -> int:
    number = 0
    for token in string:
        number = number * TOKENS + int(token)
    return number


def distribution(logits: np.ndarray, params: dict[str, np.ndarray],
                 target: Callable[..., np.ndarray] | None = None) -> np.ndarray:
    """[G, TOKENS^LENGTH]: of the strings, each token drawn from its filtered row. target(row, string): the next token's
    logits, where they are not the tables'."""
    import draftproof

    size, out = len(logits), np.ones((len(logits), 1))
    for depth, level in enumerate(Tables(logits).levels):
        each = {name: np.repeat(value, TOKENS ** depth) for name, value in params.items()}
        if target is not None:
            level = np.stack([target(row, string) for row in logits
                              for string in itertools.product(range(TOKENS), repeat=depth)])
        rows = draftproof.process_rows(level.reshape(-1, TOKENS), each).probabilities.reshape(size, -1, TOKENS)
        out = (out[:, :, None] * rows).reshape(size, -1)
    return out.astype(np.float32)


def check_drafts(tables: Tables, requests: Any, known: list[tuple[int, ...]], drafts: Any, greedy: Any,
                 ids: np.ndarray) -> None:
    """Raises where a request drafts what the head does not have, or at temperature 0 what is not its most probable
    token: verification would hide that, and accept less."""
    for request, string, row, is_greedy in zip(requests, known, drafts, greedy):
        for token in map(int, row):
            logits = tables.head(request, string, ids)
            expected = ids[logits.argmax()][None] if is_greedy else ids
            assert token in expected, (
                f"request {request}: after {string} the draft is {token}; the head has {ids.tolist()} with the logits "
                f"{logits.tolist()}")
            string = (*string, token)


#: step(tables, requests, strings so far, params, seeds of these) -> the tokens that each emits, one or more.
Step = Callable[[Tables, np.ndarray, list[tuple[int, ...]], dict[str, np.ndarray], np.ndarray], list[Any]]


def sampler_of(step: Step) -> Callable[..., np.ndarray]:
    """The steps of an engine as a sampler of strings."""
    def sample(logits: np.ndarray, params: dict[str, np.ndarray], seeds: np.ndarray) -> np.ndarray:
        tables, strings = Tables(logits), [()] * len(logits)
        while (open_ := np.array([i for i, string in enumerate(strings) if len(string) < LENGTH])).size:
            given = {name: value[open_] for name, value in params.items()}
            emitted = step(tables, open_, [strings[i] for i in open_], given, seeds[open_])
            for i, tokens in zip(open_, emitted):
                assert len(tokens) > 0, f"request {i}: a step emitted nothing"
                strings[i] = (*strings[i], *(int(token) for token in tokens))
        return np.array([at(string[:LENGTH]) for string in strings])
    return sample


def options(filters: bool = True, greedy_alone: bool = False) -> dict[str, Any]:
    """Options of a component: cases of 1 to 70 requests, temperatures and filters of their own, greedy ones among
    them."""
    from draftproof.callable.cases.sample_cases import SampleCase, params_of

    rng = np.random.default_rng(64)

    def case(name: str, groups: int, scale: float = 1.5, batch: int = 64, **given: Any) -> SampleCase:
        rows = (scale * rng.standard_normal((groups, TOKENS ** LENGTH))).astype(np.float32)
        params = params_of(groups, **{"temperature": 1.0, "top_k": 0, "top_p": 1.0, **given})
        return SampleCase(name, logits=rows, source="", params=params, batch=batch, seeds="random", shuffled=groups > 1,
                          n_max=8 * groups if (params["temperature"] == 0.0).all() else None)

    greedy = [case("strings, greedy", 64, temperature=0.0),
              case("strings, greedy, near ties", 64, 0.1, temperature=0.0),
              case("strings, greedy, sharp rows", 64, 6.0, temperature=0.0),
              case("strings, greedy, batch of 1", 8, batch=1, temperature=0.0),
              case("strings, greedy, batch of 33", 33, batch=33, temperature=0.0)]
    if greedy_alone:
        return {"distribution": distribution, "cases": greedy}
    cases = [case("strings", 1), *greedy[:1], case("strings at temperature 0.5", 1, temperature=0.5),
             case("strings, batch of 1", 1, batch=1),
             case("strings, sharp rows", 1, 4.0), case("strings at temperature 2", 1, temperature=2.0),
             case("strings, greedy beside random", 4, temperature=np.array([0.0, 1.0, 0.0, 0.7])),
             case("strings of seven requests", 7, batch=70)]
    if filters:
        cases += [case("strings, top_k 2", 1, top_k=2), case("strings, top_p 0.8", 1, top_p=0.8),
                  case("strings, filters and temperatures of their own", 4, temperature=np.array([0.8, 1.0, 1.3, 0.0]),
                       top_k=np.array([3, 0, 2, 0]), top_p=np.array([1.0, 0.75, 1.0, 1.0]))]
    return {"distribution": distribution, "cases": cases}


def options_of_prompts(distribution: Callable[..., np.ndarray], prompts: int) -> dict[str, Any]:
    """The same cases for a model of its own: the first number of a row is the prompt's, one of so many."""
    cases = []
    for case in options()["cases"]:
        if case.name in ("strings, batch of 1", "strings, sharp rows", "strings of seven requests"):
            continue
        rows = np.zeros_like(case.logits)
        rows[:, 0] = np.arange(len(rows)) % prompts
        cases.append(dataclasses.replace(case, logits=rows, n_max=case.n_max and 2 * prompts))
    return {"distribution": distribution, "cases": cases}
