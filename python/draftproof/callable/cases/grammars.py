"""Toy grammars for the audit of constrained samplers: automata over token ids, and the state of one request.

A real grammar engine differs in size alone: a mask of the next token, a state that tokens move and that is taken back.
"""

from __future__ import annotations

import dataclasses

import numpy as np

#: Behind a token that is not allowed.
DEAD = -1


@dataclasses.dataclass(frozen=True, eq=False)
class Grammar:
    """next: [S, V], the state after a token, or -1; accepting: [S]; state 0 is the first. The end token is the last of
    the vocabulary, legal in accepting states; after it nothing is but itself. texts: of the tokens, where a token is
    more than one character of what the grammar describes."""

    next: np.ndarray
    accepting: np.ndarray
    texts: tuple[str, ...] = ()

    @property
    def vocab_size(self) -> int:
        return self.next.shape[1]

    @property
    def end(self) -> int:
        return self.vocab_size - 1

    @property
    def ended(self) -> int:
        return len(self.next)

    def after(self, state: int, token: int) -> int:
        if state == DEAD or not 0 <= token <= self.end:
            return DEAD
        if state == self.ended:
            return state if token == self.end else DEAD
        if token == self.end:
            return self.ended if self.accepting[state] else DEAD
        return int(self.next[state, token])

    def allowed(self, state: int) -> np.ndarray:
        """[V] bool; of a dead state all."""
        if state == DEAD:
            return np.ones(self.vocab_size, bool)
        return np.array([self.after(state, token) != DEAD for token in range(self.vocab_size)])


class Matcher:
    """The state of one request: that behind the tokens it has accepted."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.tokens: list[int] = []
        self._states = [0]

    @property
    def state(self) -> int:
        return self._states[-1]

    def is_terminated(self) -> bool:
        """The end token was accepted."""
        return self.state == self.grammar.ended

    def allowed(self) -> np.ndarray:
        """[V] bool: what may come next."""
        return self.grammar.allowed(self.state)

    def bitmask(self) -> np.ndarray:
        """The same packed, [ceil(V / 32)] int32: bit i % 32 of word i / 32 for token i."""
        words = np.zeros((self.grammar.vocab_size + 31) // 32, np.uint32)
        for token in np.flatnonzero(self.allowed()):
            words[token // 32] |= np.uint32(1 << (int(token) % 32))
        return words.view(np.int32)

    def accept(self, token: int) -> bool:
        """Moves on by a token; False, and no move, where it is not allowed."""
        state = self.grammar.after(self.state, int(token))
        if state == DEAD:
            return False
        self.tokens.append(int(token))
        self._states.append(state)
        return True

    def rollback(self, count: int = 1) -> None:
        """Takes back the last tokens that were accepted."""
        if count > len(self.tokens):
            raise ValueError(f"rollback: is {count}; {len(self.tokens)} tokens were accepted")
        for _ in range(count):
            self.tokens.pop()
            self._states.pop()

    def __copy__(self) -> Matcher:
        other = Matcher(self.grammar)
        other.tokens, other._states = list(self.tokens), list(self._states)
        return other


def loop(vocab_size: int, start: int = 0) -> Grammar:
    """Tokens of three classes (id % 3), each followed by one other class, by `start` in turn; the end after class 2."""
    table = np.full((3, vocab_size), DEAD)
    for state in range(3):
        for token in range(vocab_size - 1):
            if token % 3 == (state + start) % 3:
                table[state, token] = (state + 1) % 3
    return Grammar(table, np.array([True, False, False]))


def choices(vocab_size: int) -> Grammar:
    """Any token but odd ones first, then a pair that the first one forces, then the start again."""
    table = np.full((4, vocab_size), DEAD)
    table[0, 0:vocab_size - 1:2] = 1
    table[1, 0:vocab_size - 1] = 0
    table[1, 0] = 2
    table[2, 1] = 3
    table[3, 0] = 0
    return Grammar(table, np.array([True, False, False, False]))


def evens(vocab_size: int) -> Grammar:
    """Even tokens; the end nowhere."""
    table = np.full((1, vocab_size), DEAD)
    table[0, 0:vocab_size - 1:2] = 0
    return Grammar(table, np.array([False]))


def letters() -> Grammar:
    """'a' and 'b' in turn, in tokens of one, two or three letters; the end behind a 'b'."""
    texts = ("a", "b", "ab", "ba", "aa", "bb", "abb", "baa", "aba", "bab", "")
    table = np.full((3, len(texts)), DEAD)  # nothing yet, behind an a, behind a b
    for state in range(3):
        for token, text in enumerate(texts[:-1]):
            before, legal = ("", "a", "b")[state], True
            for letter in text:
                legal, before = legal and letter != before, letter
            if legal:
                table[state, token] = 1 if before == "a" else 2
    return Grammar(table, np.array([False, False, True]), texts)
