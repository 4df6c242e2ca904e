"""Cases for samplers (`kind="sample"`): rows and parameters, in which batches, with which seeds."""

from __future__ import annotations

import dataclasses
from typing import Any, Iterator

import numpy as np

from ... import _forms, _sampling
from . import rows

#: The parameters of a row, and the values that switch them off.
OFF: dict[str, float] = {name: _forms.PARAMETERS[name][1] for name in ("temperature", "top_k", "top_p", "min_p")}
#: Filters of peers that requests may have in place of these, each alone; what top_k, top_p and min_p leave at least.
PEERS = ("p_less", "top_h", "typical_p", "epsilon_cutoff", "eta_cutoff", "top_n_sigma", "adaptive_target",
         "adaptive_mean", "smoothing_factor", "smoothing_curve", "xtc_threshold", "xtc_probability", "mirostat",
         "mirostat_mu")
OF_PEERS = {name: _forms.PARAMETERS[name][1] for name in (*PEERS, "min_tokens_to_keep")}
DTYPES = {name: dtype for name, (dtype, _) in _forms.PARAMETERS.items()}


#: Where consecutive seeds begin: beyond what float32, float64 and int64 hold.
STARTS = {"large": np.uint64(1 << 40), "double": np.uint64(1 << 53), "signed": np.uint64(1 << 63)}

#: Rows of a call where any number will do: a slow callable gets fewer.
BATCH = 256


@dataclasses.dataclass(frozen=True, eq=False)
class SampleCase:
    """logits: [G, V], distinct rows with params [G] each. Every call holds `batch` rows, group after group in turn, or
    in random order. seeds: 'consecutive', 'random', 'high_bits' (equal in their low 32 bits), 'large' (consecutive
    beyond 2^24), 'double' (beyond 2^53), 'signed' (from 2^63 on), 'families' (sixteen seeds of each other's low or
    folded bits), or 'one' (one seed a place of the batch, step after step). tv: the distance to find; n_max: draws at
    most.
    is_fixed: group i is in place i of every call. is_sweep: judged by evidence.py; is_flat: all rows are one flat row.
    readings: where usual samplers differ (ties at a cut), the distributions [G, V] that are all accepted, with `merge`
    [V], the cell that a token belongs to. may_raise: a row with nothing to draw."""

    name: str
    logits: np.ndarray
    source: str
    params: dict[str, np.ndarray]
    batch: int = BATCH
    shuffled: bool = False
    seeds: str = "consecutive"
    tv: float | None = None
    n_max: int | None = None
    readings: tuple[np.ndarray, ...] = ()
    merge: np.ndarray | None = None
    may_raise: bool = False
    is_fixed: bool = False
    is_sweep: bool = False
    is_flat: bool = False

    @property
    def groups(self) -> int:
        return self.logits.shape[0]

    @property
    def vocab_size(self) -> int:
        return self.logits.shape[1]

    def slots(self, call: int, seed: int) -> np.ndarray:
        """[batch]: the group in each place of this call's batch."""
        at = (np.arange(self.batch) + (0 if self.is_fixed else call * self.batch)) % self.groups
        return np.random.default_rng([seed, call]).permutation(at) if self.shuffled else at

    def seeds_of(self, call: int, seed: int) -> np.ndarray:
        """uint64 [batch], no number twice in a case (but of 'one')."""
        index = np.arange(self.batch, dtype=np.uint64) + np.uint64(call * self.batch)
        start = np.uint64(seed & 0xFFFF) * np.uint64(1 << 20)
        if self.seeds == "one":
            return np.arange(self.batch, dtype=np.uint64) + start + np.uint64(1)
        if self.seeds == "high_bits":  # pairs, then the next low half
            return ((index % np.uint64(2)) << np.uint64(33)) + start + index // np.uint64(2)
        if self.seeds in STARTS:
            return index + STARTS[self.seeds] + start
        if self.seeds == "families":
            return family_seeds(index, start)
        if self.seeds == "random":
            mixed = np.random.default_rng([seed, call, 1]).integers(0, 1 << 62, self.batch, dtype=np.uint64)
            return mixed
        return index + start


def family_seeds(index: np.ndarray, start: np.uint64) -> np.ndarray:
    """Sixteen draws of each kind in turn: small seeds, the same with a high bit set, folded onto them by xor, sum and
    sign."""
    base = index // np.uint64(256) * np.uint64(16) + index % np.uint64(16)
    # two below one is no other
    base = np.uint64(4) * (base + (start >> np.uint64(20)) % np.uint64(1 << 12) + np.uint64(250))
    out, mark = base.copy(), np.uint64(0x9E37)
    kind = index // np.uint64(16) % np.uint64(16)
    with np.errstate(over="ignore"):
        for i, more in enumerate((1 << 16, 1 << 20, 1 << 24, 1 << 31, 1 << 32, (1 << 31) - 1, 1 << 40, 1 << 48, 1 << 53,
                                  (1 << 32) - 1, 1 << 63), 1):
            out[kind == i] += np.uint64(more)
        out[kind == 12] = (mark << np.uint64(32)) | (base[kind == 12] ^ mark)
        out[kind == 13] = (mark << np.uint64(32)) + base[kind == 13] - mark
        out[kind == 14] = np.uint64(0) - base[kind == 14]
        out[kind == 15] = base[kind == 15] << np.uint64(32)
    return out


def params_of(groups: int, **given: Any) -> dict[str, np.ndarray]:
    """[G] arrays of the parameters given, in their dtypes."""
    return {name: np.broadcast_to(np.asarray(value, DTYPES[name]), (groups,)).copy() for name, value in given.items()}


def shown(value: Any) -> str:
    """A number of a parameter's type as users write it: 0.95, 1e-07, 2."""
    return str(value).removesuffix(".0")


def is_unambiguous(logits: np.ndarray, params: dict[str, np.ndarray]) -> bool:
    """Do all usual readings of the parameters keep the same tokens of every row, also at slightly other cuts? Engines
    differ in the order of the filters, in ties, and in the last bits of sums."""
    kept = None
    for order in ("joint", "top_k_first"):
        for nudge in (-1, 0, 1):
            moved = dict(params)
            if "top_p" in params:
                below = params["top_p"] < 1.0
                moved["top_p"] = np.where(below, params["top_p"] * (1.0 + 2e-3 * nudge), params["top_p"])
            if "min_p" in params:
                moved["min_p"] = params["min_p"] * (1.0 + 2e-3 * nudge)
            now = _sampling.process_rows(logits, moved, filter_order=order, ties="keep_all").probabilities > 0.0
            if kept is None:
                kept = now
            elif not np.array_equal(kept, now):
                return False
    return True


def unambiguous(name: str, make: Any, params: dict[str, np.ndarray], **more: Any) -> SampleCase:
    """The case with the first seed whose rows all readings of the parameters agree on. make(seed) -> (logits,
    source)."""
    for seed in range(1000):
        logits, source = make(seed)
        if is_unambiguous(logits, params):
            return SampleCase(name, logits, source, params, **more)
    raise AssertionError(f"{name}: no rows without ambiguity")


def normal_case(name: str, groups: int, vocab_size: int, scale: float, params: dict[str, np.ndarray],
                **more: Any) -> SampleCase:
    def make(seed: int) -> tuple[np.ndarray, str]:
        return rows.normal(groups, vocab_size, scale, seed), f"rows.normal({groups}, {vocab_size}, {scale}, {seed})"

    return unambiguous(name, make, params, **more)


def tie_case(name: str, logits: list[float], boundary: list[int], kept: list[int], all_kept: list[int],
             **params: Any) -> SampleCase:
    """A cut through tokens of equal logits (`boundary`, one cell): a reading for each number of them that may stay."""
    row = np.asarray([logits], np.float32)
    merge = np.arange(row.shape[1])
    merge[boundary] = boundary[0]
    weights = np.exp(row[0].astype(np.float64))
    readings = []
    for count in all_kept:
        mass = np.zeros(row.shape[1])
        for token in kept:
            mass[token] += weights[token]
        mass[boundary[0]] += count * weights[boundary[0]]
        readings.append((mass / mass.sum())[None, :])
    return SampleCase(name, row, f"np.array({[logits]}, np.float32)", params_of(1, **params),
                      readings=tuple(readings), merge=merge)


def sample_cases(with_min_p: bool) -> Iterator[SampleCase]:
    """The cases, those that find most first. Every parameter of a sampler is in the dict; most are off in most
    cases."""
    full = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, **({"min_p": 0.0} if with_min_p else {})}

    def params(groups: int, **given: Any) -> dict[str, np.ndarray]:
        return params_of(groups, **{**full, **given})

    yield normal_case("vocabulary of 33", 1, 33, 1.5, params(1))
    yield normal_case("temperatures 0.7 and 1.5", 2, 16, 1.5, params(2, temperature=[0.7, 1.5]))
    yield normal_case("low temperatures with top_p, batch of 129", 3, 1000, 3.0,
                      params(3, temperature=[0.1, 0.2, 0.3], top_p=[0.9, 0.95, 0.9]), batch=129, n_max=20_000, tv=0.1)
    yield normal_case("top_k", 3, 12, 1.2, params(3, top_k=[1, 2, 5]))
    yield normal_case("top_p", 3, 12, 1.2, params(3, top_p=[0.5, 0.8, 0.95]))
    if with_min_p:
        yield normal_case("min_p", 3, 12, 1.2, params(3, min_p=[0.05, 0.2, 0.5]))
    yield normal_case("top_k and top_p at temperature 0.8", 2, 12, 1.2,
                      params(2, temperature=0.8, top_k=[4, 8], top_p=[0.9, 0.8]))
    yield SampleCase("temperature 0", rows.normal(16, 33, 2.0, 5), "rows.normal(16, 33, 2.0, 5)",
                     params(16, temperature=0.0), batch=64, n_max=512)
    yield SampleCase("temperature 0 beside 1 in a batch", rows.normal(2, 9, 1.0, 6), "rows.normal(2, 9, 1.0, 6)",
                     params(2, temperature=[0.0, 1.0]), batch=65, tv=0.05)
    yield SampleCase("tiny temperature", rows.normal(16, 33, 2.0, 8), "rows.normal(16, 33, 2.0, 8)",
                     params(16, temperature=1e-4), batch=64, n_max=512)
    yield normal_case("huge temperature", 1, 33, 2.0, params(1, temperature=1e4), tv=0.05)
    for vocab_size in (1, 2, 31, 32):
        yield normal_case(f"vocabulary of {vocab_size}", 1, vocab_size, 1.0, params(1), tv=0.05)
    yield normal_case("vocabulary of 1000", 1, 1000, 1.5, params(1), tv=0.1)
    yield SampleCase("masked tokens", rows.masked(rows.normal(1, 9, 1.0, 3), 2, 6),
                     "rows.masked(rows.normal(1, 9, 1.0, 3), 2, 6)", params(1), tv=0.05)
    first = rows.masked(rows.normal(1, 9000, 2.0, 4), 0, 8192)
    yield SampleCase("first 8192 tokens masked, batch of 65", first,
                     "rows.masked(rows.normal(1, 9000, 2.0, 4), 0, 8192)", params(1), batch=65, n_max=4000, tv=0.2)
    yield unambiguous("first 8192 tokens masked, with top_p, batch of 65",
                      lambda s: (rows.masked(rows.normal(1, 9000, 3.0, s), 0, 8192),
                                 f"rows.masked(rows.normal(1, 9000, 3.0, {s}), 0, 8192)"),
                      params(1, top_p=0.5), batch=65, n_max=4000, tv=0.2)
    yield SampleCase("all tokens masked but one", rows.only(1000, 777), "rows.only(1000, 777)", params(1), batch=64,
                     n_max=256)
    yield tie_case("a tie at top_k", [1.0, 0.5, 0.5, 0.5, 0.0], [1, 2, 3], [0], [1, 3], **{**full, "top_k": 2})
    yield tie_case("a tie at top_p", [1.0, 0.0, 0.0, 0.0], [1, 2, 3], [0], [1, 2, 3], **{**full, "top_p": 0.6})
    ln2 = float(np.log(2.0))
    yield tie_case("top_p equal to a cumulative mass", [ln2, 0.0, 0.0], [1, 2], [0], [0, 1, 2],
                   **{**full, "top_p": 0.5})
    yield normal_case("equal rows in a batch of 64", 1, 8, 1.0, params(1), batch=64, seeds="random")
    mixed = params(6, temperature=[0.6, 1.0, 1.4, 1.0, 0.9, 0.0], top_k=[0, 3, 0, 0, 5, 0],
                   top_p=[1.0, 1.0, 0.8, 0.9, 1.0, 1.0])
    for batch in (1, 2, 63, 64, 65, 129):
        yield normal_case(f"mixed parameters in random order, batches of {batch}", 6, 33, 1.2, mixed, batch=batch,
                          shuffled=True, tv=0.1 if batch > 2 else 0.2)
    yield normal_case("seeds that differ only above bit 32", 1, 8, 1.0, params(1), seeds="high_bits", batch=128,
                      tv=0.05)
    yield normal_case("consecutive seeds beyond 2^40", 1, 8, 1.0, params(1), seeds="large", batch=128, tv=0.05)
    for vocab_size in (32_000, 50_257, 128_256):
        peaked = rows.peaked(vocab_size, 20, 7)
        yield SampleCase(f"vocabulary of {vocab_size}", peaked, f"rows.peaked({vocab_size}, 20, 7)", params(1),
                         batch=64, n_max=max(256, 30_000_000 // vocab_size), tv=0.3)
    yield SampleCase("vocabulary of 128256 with top_k", rows.normal(1, 128_256, 2.0, 9),
                     "rows.normal(1, 128256, 2.0, 9)", params(1, top_k=20), batch=64, n_max=256, tv=0.6)
    yield SampleCase("all tokens masked", np.full((1, 8), -np.inf, np.float32), "np.full((1, 8), -np.inf, np.float32)",
                     params(1), batch=4, n_max=4, may_raise=True)


def step_case(with_min_p: bool) -> SampleCase:
    """Steps of few seeds: what one step draws must say nothing of another."""
    full = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, **({"min_p": 0.0} if with_min_p else {})}
    return SampleCase("consecutive steps with one seed", rows.normal(1, 8, 1.0, 11), "rows.normal(1, 8, 1.0, 11)",
                      params_of(1, **full), batch=16, seeds="one", tv=0.05)
