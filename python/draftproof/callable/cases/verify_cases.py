"""Cases for verifiers (`kind="verify"`): a small target and a small drafter, which depend on the last tokens, drafts of
several lengths, parameters."""

from __future__ import annotations

import dataclasses
from typing import Iterator

import numpy as np

from . import rows
from .sample_cases import BATCH, is_unambiguous, params_of


@dataclasses.dataclass(frozen=True, eq=False)
class VerifyCase:
    """target: logits by depth, [d] is [V^min(d, order), V], the row after each string of the last tokens; rows beyond
    the last depth given are those of the last. drafter: probabilities likewise; None: drafts are the drafter's argmax
    of the target at low temperature, without probabilities. draft_lens: of the requests of a batch in turn.
    endpoints: the callable gets uniforms, among them 0 and the last number below 1; what may not come is an impossible
    token."""

    name: str
    target: tuple[np.ndarray, ...]
    drafter: tuple[np.ndarray, ...] | None
    source: str
    draft_lens: tuple[int, ...]
    params: dict[str, np.ndarray]
    batch: int = BATCH
    seeds: str = "consecutive"
    tv: float | None = None
    n_max: int | None = None
    endpoints: bool = False

    @property
    def vocab_size(self) -> int:
        return self.target[0].shape[1]

    @property
    def order(self) -> int:
        return len(self.target) - 1

    def row_index(self, path: np.ndarray) -> np.ndarray:
        """path [B, d] -> [B], which row of its depth follows."""
        index = np.zeros(path.shape[0], np.int64)
        for i in range(max(0, path.shape[1] - self.order), path.shape[1]):
            index = index * self.vocab_size + path[:, i]
        return index

    def at_depth(self, tables: tuple[np.ndarray, ...], depth: int) -> np.ndarray:
        return tables[min(depth, self.order)]

    def draw_drafts(self, count: int, length: int, rng: np.random.Generator) -> np.ndarray:
        """[count, length], every token from the drafter's row."""
        path = np.zeros((count, 0), np.int64)
        for depth in range(length):
            index = self.row_index(path)
            if self.drafter is None:
                token = np.argmax(np.roll(self.at_depth(self.target, depth), 1, axis=1), axis=1)[index]
            else:
                table = self.at_depth(self.drafter, depth).astype(np.float64)
                cumulative = np.cumsum(table, axis=1)
                cumulative /= cumulative[:, -1:]
                u = rng.random(count)
                token = np.zeros(count, np.int64)
                for row in np.unique(index):
                    here = index == row
                    token[here] = np.searchsorted(cumulative[row], u[here], side="right")
            path = np.concatenate([path, token[:, None]], axis=1)
        return path


def dirichlet(vocab_size: int, order: int, spread: float, seed: int, zeros: float = 0.0) -> tuple[np.ndarray, ...]:
    """Probability rows by depth up to `order`, float32; of each row a share `zeros` of tokens at 0."""
    rng = np.random.default_rng(seed)
    tables = []
    for depth in range(order + 1):
        table = rng.gamma(spread, size=(vocab_size ** depth, vocab_size)) + 1e-3
        if zeros > 0.0:
            off = rng.random(table.shape) < zeros
            off[np.arange(table.shape[0]), rng.integers(vocab_size, size=table.shape[0])] = False
            table[off] = 0.0
        tables.append((table / table.sum(axis=1, keepdims=True)).astype(np.float32))
    return tuple(tables)


def logits(tables: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Their logarithms, -infinity where they are 0."""
    with np.errstate(divide="ignore"):
        return tuple(np.log(table).astype(np.float32) for table in tables)


def _soft(name: str, vocab_size: int, lens: tuple[int, ...], order: int, seed: int, spread: float = 0.7,
          zeros: float = 0.0, tv: float | None = None, batch: int = BATCH, seeds: str = "consecutive",
          **given: float) -> VerifyCase:
    params = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, **given}
    for attempt in range(seed, seed + 2000, 2):
        target = logits(dirichlet(vocab_size, order, spread, attempt, zeros))
        every = np.concatenate(target)
        if is_unambiguous(every, params_of(every.shape[0], **params)):
            break
    source = (f"target=logits(dirichlet({vocab_size}, {order}, {spread}, {attempt}, {zeros})), "
              f"drafter=dirichlet({vocab_size}, {order}, {spread}, {attempt + 1}, {zeros})")
    return VerifyCase(name, target, dirichlet(vocab_size, order, spread, attempt + 1, zeros), source, lens,
                      params_of(1, **params), batch=batch, seeds=seeds, tv=tv)


def weighted() -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Target and drafter, three tokens and two drafts, where the weight of a path matters most: block verification that
    draws from the residual max(p - q, 0) without it is off by a total variation distance of 0.08."""
    p = ([[0.03, 0.6, 0.37]], [[0.53, 0.03, 0.44], [0.6, 0.39, 0.01], [0.48, 0.12, 0.4]])
    q = ([[0.05, 0.94, 0.01]], [[0.06, 0.65, 0.29], [0.38, 0.01, 0.61], [0.84, 0.12, 0.04]])
    last = [[1.0 / 3.0] * 3] * 9
    return tuple(np.array(t, np.float32) for t in (*p, last)), tuple(np.array(t, np.float32) for t in (*q, last))


def verify_cases(with_min_p: bool = False) -> Iterator[VerifyCase]:
    """The cases, those that find most first."""
    yield _soft("3 tokens, 3 drafts", 3, (3,), 3, 10)
    target, drafter = weighted()
    yield VerifyCase("3 tokens, 2 drafts whose weights matter", logits(target), drafter,
                     "target=logits(weighted()[0]), drafter=weighted()[1]", (2,),
                     params_of(1, temperature=1.0, top_k=0, top_p=1.0))
    yield _soft("top_k, drafts from unfiltered rows", 5, (2,), 2, 20, 0.9, top_k=2)
    yield _soft("top_p, drafts from unfiltered rows", 5, (2,), 2, 30, 0.9, top_p=0.7)
    if with_min_p:
        yield _soft("min_p, drafts from unfiltered rows", 5, (2,), 2, 36, 0.9, temperature=1.5, min_p=0.4)
    yield _soft("temperature 0.5", 3, (2,), 2, 40, temperature=0.5)
    yield _soft("zeros in target and drafter", 4, (2,), 2, 50, zeros=0.4)
    yield _soft("one draft, batch of 129", 3, (1,), 1, 60, tv=0.05, batch=129)
    yield _soft("ragged drafts, some empty", 3, (0, 2, 1, 3), 3, 70, tv=0.05, batch=65)
    disjoint_p = np.array([[0.5, 0.5, 0.0, 0.0]], np.float32)
    disjoint_q = np.array([[0.0, 0.0, 0.3, 0.7]], np.float32)
    yield VerifyCase("disjoint supports", logits((disjoint_p,)), (disjoint_q,),
                     "target=logits((np.array([[.5, .5, 0, 0]], np.float32),)), "
                     "drafter=(np.array([[0, 0, .3, .7]], np.float32),)", (2,),
                     params_of(1, temperature=1.0, top_k=0, top_p=1.0), tv=0.05)
    equal = dirichlet(4, 1, 0.8, 81)
    yield VerifyCase("drafter equal to target", logits(equal), equal,
                     "target=logits(dirichlet(4, 1, .8, 81)), drafter=dirichlet(4, 1, .8, 81)", (2,),
                     params_of(1, temperature=1.0, top_k=0, top_p=1.0), tv=0.05)
    yield VerifyCase("drafts without probabilities", logits(dirichlet(3, 2, 0.8, 90)), None,
                     "target=logits(dirichlet(3, 2, .8, 90)), drafter=None", (2,),
                     params_of(1, temperature=1.0, top_k=0, top_p=1.0), tv=0.05)
    yield dataclasses.replace(_soft("temperature 0", 4, (3,), 3, 100, temperature=0.0), n_max=1000)
    yield _soft("40 drafts", 3, (40,), 1, 110, 2.0, tv=0.1, batch=64)
    yield _soft("seeds that differ only above bit 32", 3, (1,), 1, 120, tv=0.05, batch=128, seeds="high_bits")
    narrow_p = rows.peaked(1000, 12, 3)
    narrow_q = np.exp(rows.masked(rows.normal(1, 1000, 1.0, 4), 500, 1000).astype(np.float64))
    narrow_q = (narrow_q / narrow_q.sum()).astype(np.float32)
    yield VerifyCase("a drafter with half the vocabulary", (narrow_p,), (narrow_q,),
                     "target=(rows.peaked(1000, 12, 3),), drafter=(softmax(rows.masked(rows.normal(1, 1000, 1.0, 4), "
                     "500, "
                     "1000)),)", (2,), params_of(1, temperature=1.0, top_k=0, top_p=1.0), tv=0.3, n_max=4000, batch=64)
    for vocab_size, top_k in ((50_257, 0), (128_256, 20)):
        large_p = rows.peaked(vocab_size, 20, 7)
        close = large_p.astype(np.float64) + 0.3 * np.sin(np.arange(vocab_size))
        large_q = np.exp(close - close.max())
        large_q = (large_q / large_q.sum()).astype(np.float32)
        yield VerifyCase(f"vocabulary of {vocab_size}" + (f" with top_k {top_k}" if top_k else ""), (large_p,),
                         (large_q,),
                         f"target=(rows.peaked({vocab_size}, 20, 7),), drafter=(softmax(rows.peaked({vocab_size}, 20, "
                         "7) "
                         f"+ .3 * np.sin(np.arange({vocab_size}))),)", (1,),
                         params_of(1, temperature=1.0, top_k=top_k, top_p=1.0), tv=0.5,
                         n_max=max(256, 40_000_000 // vocab_size), batch=32)


def endpoint_case() -> VerifyCase:
    """For callables with an argument `uniforms`: many rows with impossible tokens, also at the end of the
    vocabulary."""
    return dataclasses.replace(_soft("uniforms at their endpoints", 40, (2,), 1, 130, zeros=0.4), endpoints=True,
                               n_max=2048)


def softmax(values: np.ndarray) -> np.ndarray:
    """Rows of float32 probabilities, for cases that are written down."""
    wide = values.astype(np.float64)
    wide = np.exp(wide - wide.max(axis=1, keepdims=True))
    return (wide / wide.sum(axis=1, keepdims=True)).astype(np.float32)
