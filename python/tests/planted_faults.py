"""Planted faults: each is one sound callable of draftproof.planted.sound with something else in place of a step,
somewhere.

FAULTS[kind][name] makes the callable with the fault. `python python/tests/planted_faults.py [--profile quick] [--kind
all] [--processes N] [FAULT ...]` says what an audit finds of them; status 1 where it misses one.
"""

import sys

import numpy as np

from draftproof.planted.sound import (
    Constrained,
    Sampler,
    Verifier,
    changed,
    faulty,
    hashed,
    held,
    normalised,
    of,
    put,
    searched,
    then,
    unfiltered,
    uniform,
)
from draftproof.planted.table import FAULTS as SHIPPED
from draftproof.planted.table import SOUND

WORD = np.uint64


def bfloat16(x):
    return (np.ascontiguousarray(x, np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def half(x):
    return np.clip(x, -65504.0, 65504.0).astype(np.float16)


def bits(count):
    """Of uniform numbers."""
    return then(lambda s, u: np.floor(u * 2.0**count) * 2.0**-count)


# Samplers and filters: which rows


def mixed(s):
    return (s.t == 0.0).any() & (s.t > 0.0).any()


def count(s):
    return len(s.rows)


def beyond(vocab):
    return lambda s: s.vocab > vocab


def warm(s):
    """Of each row, its temperature; 1 where it is greedy."""
    return np.where(s.t > 0.0, s.t, 1.0).astype(np.float64)[:, None]


def masked(x):
    return np.isneginf(x)


# Samplers and filters: what is used instead


def off(*names):
    return put(**{name: {"top_k": 0, "top_p": 1.0, "min_p": 0.0}[name] for name in names})


def compacted(here, *names):
    """The rows that are here read parameters as if they stood at the front."""
    def index(s):
        at = s.rows.copy()
        at[here(s)] = np.arange(here(s).sum())
        return at
    return of(index, *names)


def without_tail(size):
    def inputs(s, x):
        tail = np.arange(s.vocab) >= (s.vocab // size * size or s.vocab)
        dead = (masked(x) | tail).all(axis=1)
        return np.where(tail & ~dead[:, None], -np.inf, x).astype(np.float32)
    return changed(inputs)


def greedy_sees(count):
    return changed(lambda s, x: np.where((s.t == 0.0)[:, None] & (np.arange(s.vocab) >= count), -np.inf,
                                         x).astype(np.float32))


def best(token):
    """Greedy rows take token(rows)."""
    def scaled(s, step, x, temperature):
        out, rows = step(x, temperature), np.flatnonzero(temperature == 0.0)
        out[rows] = -np.inf
        out[rows, token(x[rows])] = 0.0
        return out
    return scaled


def running(size):
    """top_p's running sum starts again behind so many ranks."""
    def keeps(s, step, p):
        before = np.cumsum(p, axis=1) - p
        keep = before - before[:, np.arange(p.shape[1]) // size * size] < s.top_p[:, None]
        keep[:, 0] = True
        return keep
    return keeps


def half_sums(s, step, p):
    total = np.cumsum(half(p), axis=1, dtype=np.float16)
    keep = np.ones(p.shape, bool)
    keep[:, 1:] = total[:, :-1] < s.top_p[:, None]
    return keep | (s.top_p >= 1.0)[:, None]


def halvings(s, step, p):
    low, high = np.zeros(len(p)), p[:, 0].copy()
    for _ in range(8):
        middle = (low + high) / 2.0
        enough = np.where(p >= middle[:, None], p, 0.0).sum(axis=1) >= s.top_p
        low, high = np.where(enough, middle, low), np.where(enough, high, middle)
    return p >= low[:, None]


def first_at_least(keep):
    keep[:, 0] = True
    return keep


def one_more(s, keep):
    return np.concatenate([keep[:, :1], keep[:, :-1]], axis=1)


def whole_bin(s, step, p):
    keep = step(p)
    last = p[s.rows, keep.sum(axis=1) - 1]
    return keep | (p >= np.exp2(np.floor(np.log2(np.maximum(last, 1e-300))))[:, None])


def over_rows(s, step, p):
    removed = (np.cumsum(p, axis=1) >= s.top_p[:, None]) & (s.top_p < 1.0)[:, None]
    return ~np.roll(removed.ravel(), 1).reshape(removed.shape)


def power(exponent):
    """min_p to a power, against logits."""
    def keeps(s, step, p):
        with np.errstate(divide="ignore"):
            return s.ranked >= exponent * np.log(s.min_p.astype(np.float64))[:, None]
    return keeps


def of_tiles(size, most):
    """top_k counts among so many candidates of each tile."""
    def keeps(s, step, ranked):
        x = np.full((len(ranked), -(-s.vocab // size) * size), -np.inf)
        x[:, :s.vocab] = s.scaled_x
        least = np.partition(x.reshape(len(x), -1, size), size - most, axis=2)[:, :, size - most]
        seen = ranked >= np.take_along_axis(least, s.order // size, axis=1)
        return seen & (np.cumsum(seen, axis=1) <= s.k[:, None])
    return keeps


def bucket(s, step, ranked):
    """All that shares the upper 12 bits of the k-th logit stays."""
    bits = np.ascontiguousarray(s.x, np.float32).view(np.uint32).astype(np.int64)
    keys = np.take_along_axis(np.where(bits >> 31 == 1, 0xFFFFFFFF - bits, bits + 0x80000000) >> 20, s.order, axis=1)
    return keys >= np.take_along_axis(keys, np.minimum(s.k, s.vocab)[:, None].astype(np.int64) - 1, axis=1)


def coarse(s, x):
    """top_k of a radix sort that ends behind the first digit of 11 bits; the rest goes by index."""
    with np.errstate(over="ignore"):
        bits = x.astype(np.float16).view(np.uint16)
    key = np.where(bits & 0x8000, ~bits, bits | np.uint16(0x8000)).astype(np.uint16) >> np.uint16(5)
    order = np.argsort(-key.astype(np.int32), axis=1, kind="stable")
    keep = np.zeros(key.shape, bool)
    np.put_along_axis(keep, order, np.arange(s.vocab) < s.k[:, None], axis=1)
    keep[~(keep & ~masked(x)).any(axis=1)] = True
    return np.where(keep, x, -np.inf).astype(np.float32)


def float_bits(s, scaled):
    bits = np.ascontiguousarray(s.x, np.float32).view(np.int32).astype(np.float64)
    return np.where(s.drawn[:, None], np.where(masked(s.x), -np.inf, bits), scaled)


def whole(s):
    """The rows before the filters."""
    return normalised(np.exp(s.scaled_x))


def to_best(s, p, mass):
    p = p.copy()
    p[s.rows, p.argmax(axis=1)] += mass
    return p


def only_best(s, p):
    return (np.arange(p.shape[1]) == p.argmax(axis=1)[:, None]).astype(np.float64)


def shared_noise(s, p):
    """Of tokens 1,024 apart the likeliest wins."""
    tiles = np.pad(p, ((0, 0), (0, -p.shape[1] % 1024))).reshape(len(p), -1, 1024)
    top = np.arange(tiles.shape[1])[None, :, None] == tiles.argmax(axis=1)[:, None, :]
    return normalised(np.where(top, tiles, 0.0).reshape(len(p), -1)[:, :p.shape[1]])


def tiles_of(x, function):
    return function.reduceat(x, np.arange(0, x.shape[1], 1024), axis=1)


def masked_tile(s):
    return (tiles_of(s.x, np.maximum) == -np.inf).any(axis=1) & s.drawn & (s.vocab > 1024)


def forgets_tiles(s, p):
    number = np.arange(-(-s.vocab // 1024))
    last = np.where(tiles_of(p, np.add) > 0.0, number, -1).max(axis=1, keepdims=True)
    first = np.where((tiles_of(s.x, np.maximum) == -np.inf) & (number < last), number + 1, 0).max(axis=1)
    return normalised(np.where(np.arange(s.vocab) >= first[:, None] * 1024, p, 0.0))


def ends_at_masked_tile(s, x):
    live = tiles_of(x, np.maximum) > -np.inf
    ended = np.logical_or.accumulate(np.logical_or.accumulate(live, axis=1) & ~live, axis=1)
    return np.where(np.repeat(ended, 1024, axis=1)[:, :s.vocab], -np.inf, x).astype(x.dtype)


def tile_before_filters(s, p):
    left = tiles_of(p, np.add)
    ratio = np.where(left > 0.0, tiles_of(whole(s), np.add), 0.0) / np.where(left > 0.0, left, 1.0)
    return normalised(p * np.repeat(ratio, 1024, axis=1)[:, :s.vocab])


def removed_from_all(s, p):
    by = s.drawn & (s.top_p < 1.0)
    removed = ((p == 0.0) & ~masked(s.x))[by].any(axis=0) & s.drawn[:, None]
    return normalised(np.where(removed & (only_best(s, p) == 0.0), 0.0, p))


def not_renormalised(s, p):
    kept = np.where(p > 0.0, whole(s), 0.0)
    least = np.where(p > 0.0, p, np.inf)
    last = p.shape[1] - 1 - least[:, ::-1].argmin(axis=1)
    kept[s.rows, last] += 1.0 - kept.sum(axis=1)
    return kept


def last_unreachable(s, p):
    rows = np.flatnonzero((p > 0.0).sum(axis=1) > 1)
    order = np.argsort(-p[rows], axis=1, kind="stable")
    count = (p[rows] > 0.0).sum(axis=1)
    last, before = (order[np.arange(len(rows)), count - back] for back in (1, 2))
    p[rows, before] += p[rows, last]
    p[rows, last] = 0.0
    return p


def by_id(s, p):
    """top_p and min_p over what top_k left, by rising id."""
    p = np.where(np.cumsum(p, axis=1) - p < s.memory["top_p"][:, None], p, 0.0)
    return normalised(np.where(p >= s.memory["min_p"][:, None] * p.max(axis=1, keepdims=True), p, 0.0))


def many_k(s):
    return (s.k > 128) & (s.k < s.vocab) & s.drawn & (s.memory.get("top_p", s.top_p) < 1.0)


def remembered(s, step, params):
    s.memory.update(top_p=params["top_p"], min_p=params["min_p"])
    here = many_k(s)
    return {**params, "top_p": np.where(here, 1.0, s.top_p).astype(np.float32),
            "min_p": np.where(here, 0.0, s.min_p).astype(np.float32)}


def signed(s, step, p, u):
    return step(p, np.where(s.drawn, 2.0 * u - 1.0, u))


def rejection(s, step, p, u):
    """By rejection from the whole row: a rejected token's probability bounds the next round, which has the same
    number."""
    out, left, w = step(p, u), np.flatnonzero(s.drawn & (s.top_p < 1.0) & (s.k <= 0)), whole(s)
    for _ in range(32):
        token = searched(w[left], u[left])
        good = p[left, token] > 0.0
        out[left[good]] = token[good]
        left, token = left[~good], token[~good]
        w[left] = np.where((w[left] > w[left, token][:, None]) | (p[left] > 0.0), w[left], 0.0)
    return out


def not_rescaled(s, step, p, u):
    tiles = np.pad(p, ((0, 0), (0, -s.vocab % 1024))).reshape(len(p), -1, 1024)
    top = np.maximum.accumulate(tiles.max(axis=2), axis=1)
    factor = np.minimum(top[:, -1:] / np.where(top > 0.0, top, 1e-30), 1e30)
    more = np.maximum((tiles.sum(axis=2) * factor).sum(axis=1) / p.sum(axis=1), 1.0)
    last = s.vocab - 1 - (p[:, ::-1] > 0.0).argmax(axis=1)
    return np.where(u * more < 1.0, step(p, np.minimum(u * more, 1.0 - 2.0**-53)), last)


def race(times):
    """An exponential race whose times are made of uniform numbers."""
    def tokens(s, step, p, u):
        numbers = uniform(s.seeds[:, None], 2, np.arange(p.shape[1], dtype=WORD))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(p > 0.0, times(numbers) / p, np.inf).argmin(axis=1)
    return tokens


def lowbias(z):
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        z = (z ^ (z >> np.uint32(shift))) * np.uint32(factor)
    return z ^ (z >> np.uint32(16))


def race_of_seed_plus_token(s, step, p, u):
    low = (s.seeds & WORD(0xFFFFFFFF)).astype(np.uint32)[:, None]
    key = (hashed(s.seeds >> WORD(32)) >> WORD(32)).astype(np.uint32)[:, None]
    noise = lowbias(lowbias(low + np.arange(p.shape[1], dtype=np.uint32)) + key).astype(np.float32) + np.float32(0.5)
    with np.errstate(divide="ignore"):
        return (p / np.log1p(noise * np.float32(-(2.0**-32)))).argmin(axis=1)


def lcg(multiplier, addend, bits, shift, flip=0):
    def uniforms(s, step, seeds):
        with np.errstate(over="ignore"):
            state = ((seeds ^ WORD(flip)) * WORD(multiplier) + WORD(addend)) & WORD(2**bits - 1)
        return (state >> WORD(shift)).astype(np.float64) * 2.0**(shift - bits)
    return uniforms


def minstd(s, step, seeds):
    return (np.maximum(seeds % WORD(2**31 - 1), WORD(1)) * WORD(16807) % WORD(2**31 - 1)).astype(np.float64) / (2**31 -
            1)


def every_second(s, step, seeds):
    u = step(seeds)
    if s.calls % 2 == 0:
        held = min(len(u), len(s.memory["u"]))
        u[:held] = s.memory["u"][:held]
    s.memory["u"] = u.copy()
    return u


def eighth(s, step, seeds):
    u = step(seeds)
    first = s.memory.setdefault(len(u), u)
    return first if s.calls % 8 == 0 else u


def golden_slots(s, step, seeds):
    slots = (s.memory.get("u", np.zeros(0)) + 0.6180339887498949) % 1.0
    s.memory["u"] = np.concatenate([slots, step(seeds)[len(slots):]])
    return s.memory["u"][:len(seeds)].copy()


def seeds_of_two_paths(s, seeds):
    on = ~s.off()
    return seeds[np.where(on, np.cumsum(on), np.cumsum(~on)) - 1]


def delayed(key):
    """What the call before was given, where its key is this one's."""
    def instead(s, step, value):
        before, now = s.memory.get("before"), step(value)
        s.memory["before"] = key(s), now
        return before[1] if before is not None and before[0] == key(s) else now
    return instead


def slots(s):
    """top_p, left where it is 1."""
    kept = np.concatenate([s.memory.get("top_p", np.ones(0)), np.ones(count(s))])[:max(count(s),
            len(s.memory.get("top_p", ())))]
    kept[:count(s)] = np.where(s.top_p < 1.0, s.top_p, kept[:count(s)])
    s.memory["top_p"] = kept
    return kept[:count(s)]


def gained(s):
    before = s.memory.get("count", count(s))
    s.memory["count"] = count(s)
    return s.rows >= before


def of_greedy_sizes(s):
    sizes = s.memory.setdefault("sizes", set())
    if not s.drawn.any():
        sizes.add(count(s))
    return s.drawn.any() and count(s) in sizes


def last_first_k(s):
    k = s.k.copy()
    k[0], s.memory["k"] = s.memory.get("k", k[0]), k[0]
    return k


def last(s, name, value):
    """What the call before had by this name, in the same shape."""
    before, s.memory[name] = s.memory.get(name), value
    return before if before is not None and before.shape == value.shape else np.zeros_like(value)


def masks_stay(s, x):
    both = masked(x) | last(s, "masked", masked(x))
    return np.where(both & ~both.all(axis=1, keepdims=True), -np.inf, x).astype(x.dtype)


def unfiltered_keep_drops(s, out):
    dropped, off = s.memory.get("dropped"), s.off()
    dropped = dropped if dropped is not None and dropped.shape == out.shape else np.zeros(out.shape, bool)
    if not off.all():
        s.memory["dropped"] = np.where(off[:, None], dropped, np.isneginf(out) & ~masked(s.x))
    stale = dropped & (off & s.drawn)[:, None] & (only_best(s, out) == 0.0)
    return np.where(stale & (not off.all()), -np.inf, out).astype(np.float32)


def stale_rows(s, tokens):
    buffer = np.concatenate([s.memory.get("out", np.zeros(0, np.int32)), np.zeros(len(tokens), np.int32)])
    written = len(tokens) if len(tokens) < 32 else len(tokens) // 32 * 32
    buffer[:written] = tokens[:written]
    s.memory["out"] = buffer[:max(len(tokens), len(buffer) - len(tokens))]
    return np.minimum(buffer[:len(tokens)], s.vocab - 1)


def aligned_down(s, x):
    flat, begin = np.ascontiguousarray(x).ravel(), s.rows.astype(np.int64) * s.vocab // 4 * 4
    moved = flat[begin[:, None] + np.arange(s.vocab)]
    return np.where(masked(moved).all(axis=1)[:, None], x, moved)


def padded(s, x):
    pad = np.where(s.drawn, 0.0, -np.inf).astype(np.float32)
    return np.concatenate([x, np.repeat(pad[:, None], -s.vocab % 64, axis=1)], axis=1)


def put_back_by(key):
    """Rows that were sorted are put back by the order, not by its inverse."""
    return lambda s, out: out[np.argsort(key(s), kind="stable")][np.argsort(key(s), kind="stable")]


def first_rows_order(s, p):
    out = np.zeros_like(p)
    np.put_along_axis(out, np.broadcast_to(s.order[:1], p.shape), np.take_along_axis(p > 0.0, s.order, axis=1) * 1.0,
                      axis=1)
    return out


def saturated(limit):
    def scaled(s, step, x, temperature):
        wide = np.minimum(x.astype(np.float64) / warm(s), limit)
        return np.where(s.drawn[:, None], wide - wide.max(axis=1, keepdims=True), step(x, temperature))
    return scaled


def in_bfloat16(s, step, x, temperature):
    wide = bfloat16(np.clip(x / warm(s).astype(np.float32), -3e38, 3e38)).astype(np.float64)
    wide = np.where(masked(x), -np.inf, wide)
    return np.where(s.drawn[:, None], wide - wide.max(axis=1, keepdims=True), step(x, temperature))


def at_one(s, p):
    """What the filters left, at temperature 1."""
    wide = s.x.astype(np.float64)
    return normalised(np.where(p > 0.0, np.exp(wide - np.where(p > 0.0, wide, -np.inf).max(axis=1, keepdims=True)),
                               0.0))


def three_rejections(s, p):
    dropped = np.where(p > 0.0, 0.0, whole(s))
    missed = dropped.sum(axis=1, keepdims=True)
    return p * (1.0 - missed**3) + dropped * missed**2


def wrapped(s, p):
    out, (rows, tokens) = np.zeros_like(p), np.nonzero(p)
    out[rows, tokens & 0xFFFF] = 1.0
    return out


def ties_dropped(s, step, ranked):
    bound = ranked[s.rows, np.minimum(s.k, s.vocab - 1)]
    return first_at_least((ranked > bound[:, None]) | (s.k >= s.vocab)[:, None])


def shard(s, tokens):
    middle = (s.vocab + 1) // 2
    return np.where(tokens >= middle, np.minimum(tokens + -middle % 64, s.vocab - 1), tokens)


def tail_kept(s, p):
    tail = (np.arange(s.vocab) >= s.vocab // 4 * 4) & ~masked(s.x)
    return np.where(tail, 1.0, p)


def by_path(s):
    return np.where(s.t == 0.0, -1, (s.k > 0) * 1 + (s.top_p < 1.0) * 2)


# Verifiers


def of_request(index, *names):
    """Rows have the parameters of requests index(s)."""
    return lambda s, step, params: {
        name: s.given[name][index(s)] if not names or name in names else value for name, value in step(params).items()}


def row_map(s):
    shape = len(s.lens), len(s.of_row)
    if s.memory.get("shape") != shape:
        s.memory.update(shape=shape, map=s.of_row)
    return s.memory["map"]


def mixed_requests(s):
    return (s.given["temperature"] == 0.0).any() and (s.given["temperature"] > 0.0).any()


def is_cold(s):
    return 0.0 < s.given["temperature"][s.b] < 0.6


def captured(s):
    return len(s.lens) in (1, 2, 4) or (len(s.lens) % 8 == 0 and len(s.lens) <= 512)


def third(s, seeds):
    calls = s.memory.setdefault((len(seeds), s.logits.shape[1]), [])
    calls.append(seeds.copy())
    return calls[min(len(calls), 3) - 1]


def row(s):
    return s.logits[s.firsts[s.b] + s.i].astype(np.float64)


def plain(s):
    """The target's row before the filters; of a greedy request at temperature 1."""
    return normalised(np.exp((row(s) - row(s).max()) / (1.0 if s.greedy else float(s.given["temperature"][s.b]))))


def largest(weights):
    return (np.arange(len(weights)) == weights.argmax()).astype(np.float64)


def without(p, token):
    left = p.copy()
    left[token] = 0.0
    return left if left.sum() > 0.0 else p


def proposed(s, x, q):
    return (np.arange(q.shape[1]) == x[:, None]).astype(np.float64) if s.ngram else q


def one_hot(s, step, begin):
    return (np.arange(s.rows.shape[1]) == s.x[:, None]).astype(np.float64)


def q_rows(index):
    return lambda s, step, begin: np.asarray(s.draft_probs, np.float64)[index(s, begin + np.arange(len(s.x)))]


def tempered(s, q):
    return normalised((q / q.max(axis=1, keepdims=True)) ** (1.0 / float(s.given["temperature"][s.b]))) if len(q) else q


def cut_to_target(s, q):
    cut = np.where(s.p[:len(q)] > 0.0, q, 0.0)
    mass = cut.sum(axis=1, keepdims=True)
    return np.where(mass > 0.0, cut / np.where(mass > 0.0, mass, 1.0), q)


def filtered_again(s, q):
    params = {name: np.repeat(value[s.b:s.b + 1], len(q)) for name, value in s.given.items()}
    if len(q) == 0 or s.greedy:
        return q
    with np.errstate(divide="ignore"):
        return Sampler().probabilities(np.log(q), {**params, "temperature": np.ones_like(params["temperature"])})


def earlier_q(s, step):
    if np.shape(s.memory.get("q")) != np.shape(s.draft_probs):
        s.memory["q"] = np.array(s.draft_probs)
    s.draft_probs = s.memory["q"]


def last_q(s, step):
    before, s.memory["q"] = s.memory.get("q"), np.array(s.draft_probs)
    s.draft_probs = before if np.shape(before) == np.shape(s.draft_probs) else s.draft_probs


def left_q(s, step):
    left = s.memory.get("q")
    if not s.ngram:
        s.memory["q"] = np.array(s.draft_probs)
    elif left is not None and len(left) >= s.ends[-1] and left.shape[1] == s.logits.shape[1]:
        s.draft_probs, s.ngram = left, False


def first_mask(s, x):
    first = np.repeat(s.ends - s.lens + s.requests, s.lens + 1)
    both = np.where(masked(x)[first], -np.inf, x).astype(np.float32)
    return np.where(masked(both).all(axis=1, keepdims=True), x, both)


def running_sum(s, term):
    s.memory["sum"] = term + (s.memory["sum"] if s.i else 0.0)
    return s.memory["sum"]


def product(s, p, q):
    s.memory["product"] = (s.memory["product"] if s.i else 1.0) * (min(1.0, p / q) if q > 0.0 else float(p > 0.0))
    return s.memory["product"]


def flags(s, x, p, q):
    """Which drafts would be accepted, each for itself."""
    s.x, s.p, s.q = x, p, q
    for i, token in enumerate(x):
        s.i, s.token = i, token
        yield bool(s.accepts(s.coin(s.i), p[s.i][s.token], q[s.i][s.token]))


def counts_matches(s, step, x, p, q):
    matches = int((x == p.argmax(axis=1)[:-1]).sum())
    return [*x[:matches], p[matches].argmax()]


def none_of_32(s, step, x, p, q):
    tokens = step(x, p, q)
    if len(tokens) < 33:
        return tokens
    s.i, s.token = 0, x[0]
    return s.recovered()


def mask_of_32(s, step, x, p, q):
    accepted = list(flags(s, x, p, q))
    accepted = [any(accepted[i % 32::32]) for i in range(len(x))]
    s.i = accepted.index(False) if False in accepted else len(x)
    s.token = x[min(s.i, len(x) - 1)]
    return [*x[:s.i], *(s.recovered() if s.i < len(x) else s.bonus())]


def goes_on(s, step, x, p, q):
    tokens, is_whole = [], True
    for accepted in flags(s, x, p, q):
        if not accepted and not is_whole:
            break
        tokens += [s.token] if accepted else s.recovered()
        is_whole &= accepted
    s.i = len(x)
    return [*tokens, *s.bonus()] if is_whole else tokens


def pads(s, step, x, p, q):
    more = s.lens.max() - len(x)
    pad = np.zeros((more, p.shape[1]))
    pad[:, 0] = s.ngram
    return step(np.append(x, np.zeros(more, np.int64)), np.append(p, np.repeat(p[-1:], more, axis=0), axis=0),
                np.append(q, pad, axis=0))


def by_rank(s, step, p, q):
    left, order = np.empty_like(p), np.argsort(-p)
    left[order] = np.maximum(p[order] + np.sort(-q), 0.0)
    return left if left.sum() > 0.0 else p


def nine_tenths(s, left):
    order = np.argsort(-left, kind="stable")
    total = np.cumsum(left[order])
    out, keep = np.zeros_like(left), order[:int((total < 0.9 * total[-1]).sum()) + 1]
    out[keep] = left[keep]
    return out


def not_divided(s, step):
    left = s.residual(s.p[s.i], s.q[s.i])
    return [int(min((np.cumsum(left) <= s.draw_coin(s.i)).sum(), np.flatnonzero(left)[-1]))]


def last_out(s, step, shape):
    out = s.memory.get("out")
    return out.copy() if out is not None and out.shape == shape else step(shape)


def kept_out(s, out):
    s.memory["out"] = out
    return out.copy()


def kept_q(s, q):
    kept = s.memory.setdefault(s.logits.shape[1], {})
    kept[s.b] = [*q, *kept.get(s.b, [])[len(q):]]
    return q


def bonus_too(s, tokens):
    s.i = len(s.x)
    return [*tokens, *s.bonus()]


def less_left(s, step):
    kept, i = s.memory.setdefault(s.logits.shape[1], {}), len(s.x)
    stale = kept.get(s.b, [])
    return [s.draw(s.p[i] if s.ngram or i >= len(stale) else s.residual(s.p[i], stale[i]))]


def marked_full(s, step):
    s.memory.setdefault("full", []).append(s.b)
    return []


def bonuses_of_first(s, out):
    for place, b in enumerate(s.memory.pop("full", [])):
        s.b, s.seed, s.i = b, s.seeds[place], s.lens[place]
        out[s.b, s.lens[s.b]] = s.draw(s.rows[s.firsts[place] + s.lens[place]])
    return out


def own_stride(s, step, i):
    owner, place = divmod(s.b * int(s.lens[s.b]) + i, int(s.lens.max()))
    return uniform(s.seeds[owner], 3, place)


def top_k_of_weights(s, weights):
    k = int(s.given["top_k"][s.b])
    return np.where(weights >= np.sort(weights)[-k], weights, 0.0) if 0 < k < len(weights) else weights


class BlockVerifier(Verifier):
    """Block verification (Sun et al. 2025)."""

    def request(self, x, p, q):
        weight, kept, kept_weight = 1.0, 0, 1.0
        for i, token in enumerate(x):
            mass = weight * p[i][token]
            weight = 0.0 if mass <= 0.0 else min(1.0, mass / q[i][token]) if q[i][token] > 0.0 else 1.0
            left = np.maximum(weight * p[i + 1] - q[i + 1], 0.0).sum() if i + 1 < len(x) else 0.0
            whole = left + 1.0 - weight
            if self.coin(i) < (weight if i + 1 == len(x) else left / whole if whole > 0.0 else 1.0):
                kept, kept_weight = i + 1, weight
        self.i = kept
        if kept == len(x):
            return [*x, self.draw(p[kept])]
        return [*x[:kept], self.draw(self.residual(self.scale(kept_weight) * p[kept], q[kept]))]

    def scale(self, weight):
        return weight


# Constrained samplers


def of_text(s, masks, b):
    """A token is allowed where its first letter is."""
    texts = s.matchers[b].grammar.texts
    for mask in masks if texts else ():
        first = {texts[token][:1] for token in np.flatnonzero(mask)}
        mask[:-1] |= np.array([text[:1] in first for text in texts[:-1]])
    return masks


def after_filters(again):
    """What masks leave of the filtered rows; again(left, masked rows): where that is less than the row."""
    def target(s, step):
        return again(np.where(s.masks, s.sampler.probabilities(s.logits, s.params), 0.0), step())
    return target


def all_of_it(left, sound):
    total = left.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, left / np.where(total > 0.0, total, 1.0), sound)


def legal(s):
    return s.masks[s.firsts[s.b]:][:len(s.x)]


def masked_q(s, q):
    return all_of_it(np.where(legal(s), q, 0.0), q)


def cut_forbidden(s, step, x, p, q):
    kept = int(np.append(legal(s)[np.arange(len(x)), x], False).argmin())
    return step(x[:kept], p, q)


class Trees:
    """Any tree by the target's own tokens: a draw from each row on the way, followed while a child has it. Chains
    too."""

    in_order = False

    def __call__(self, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds, matchers,
                 parents=None):
        ends = np.asarray(cu_num_draft_tokens, np.int64)
        lens = np.diff(ends, prepend=0)
        out = np.full((len(ends), (int(lens.max(initial=0)) if parents is None else 2) + 1), -1, np.int32)
        for b, (end, count) in enumerate(zip(ends, lens)):
            x = np.asarray(draft_tokens[end - count:end], np.int64)
            up = np.arange(count) - 1 if parents is None else np.asarray(parents[end - count:end])
            masks, states = matchers[b].grammar, [matchers[b].state]
            for i, token in enumerate(x):
                states.append(masks.after(states[i if self.in_order else up[i] + 1], token))
            logits = np.asarray(target_logits[end - count + b:end + b + 1], np.float64)
            p = Sampler().probabilities(np.where(np.stack([masks.allowed(state) for state in states]), logits, -np.inf),
                                        {name: np.repeat(np.asarray(value)[b:b + 1], count + 1) for name,
                                         value in params.items()})
            node, place, child = -1, 0, [-1]
            while child:
                node = child[0]
                out[b, place] = token = int(searched(p[node + 1], uniform(seeds[b], 7, place)))
                matchers[b].accept(token)
                child, place = [i for i in range(count) if up[i] == node and x[i] == token], place + 1
        return out


AFTER = "masks after the filters"
#: name, the words that an audit should have for it, step, instead; no log-probabilities where False follows
CONSTRAINED = [
    ("mask one position late", "mask one position late", "masked",
     then(lambda s, masks: np.concatenate([masks[:1], masks[:-1]]))),
    ("state of the next request", "masks or state of another request", "masked",
     lambda s, step, x, b: step(x, (b + 1) % len(s.matchers))),
    ("end token everywhere", "the end token before an accepting state", "masked",
     then(lambda s, masks: masks | (np.arange(masks.shape[1]) == masks.shape[1] - 1))),
    ("bonus row without a mask", "no mask in the bonus row", "masked",
     then(lambda s, masks: masks | ((np.arange(len(masks)) == len(masks) - 1) & (len(masks) > 1))[:, None])),
    ("masks of text", "merged tokens of which only the beginning is legal", "masked",
     lambda s, step, x, b: of_text(s, step(x, b), b)),
    ("masks after filters", AFTER, "target", after_filters(all_of_it), False),
    # llama.cpp: a token of the bare filtered row stands if it is legal; else another is drawn with the mask first
    ("masks where a draw is forbidden", AFTER, "target",
     after_filters(lambda left, sound: left + (1.0 - left.sum(axis=1, keepdims=True)) * sound), False),
    ("masks where a draw is forbidden, with logprobs", AFTER, "target",
     after_filters(lambda left, sound: left + (1.0 - left.sum(axis=1, keepdims=True)) * sound)),
    ("logprobs before masks", "log-probabilities of the row before the mask", "stated",
     lambda s, step: s.sampler.probabilities(s.logits, s.params)),
    ("q masked in the ratio", "q masked in the ratio, though drafts were drawn from bare rows", "proposal",
     then(masked_q)),
    ("forbidden drafts cut", "forbidden drafts cut off, and their place drawn from p", "request", cut_forbidden),
    ("state behind the last token forgotten", "state not advanced by the emitted tokens", "advanced",
     then(lambda s, tokens: tokens[:-1] if len(tokens) > 1 else tokens)),
]

ROWS = "sample filter"
TABLE = [
    # parameters by their values
    ("sample", "top_k above V is taken modulo V", "parameters", put(top_k=lambda s: np.maximum(s.k % s.vocab, 1)),
     lambda s: s.k > s.vocab),
    ("sample", "top_k from 128 on keeps one token fewer", "parameters", put(top_k=lambda s: s.k - 1),
     lambda s: s.k >= 128),
    ("sample", "top_p 0 is off", "parameters", put(top_p=1.0), lambda s: s.top_p < 1e-5),
    ("sample", "a temperature below 0.05 is greedy", "parameters", put(temperature=0.0), lambda s: s.t < 0.05),
    ("sample", "temperature is at most 2", "parameters", put(temperature=2.0), lambda s: s.t > 2.0),
    ("sample", "temperature is at least 0.1", "parameters", put(temperature=0.1), lambda s: s.drawn & (s.t < 0.1)),
    ("sample", "temperatures under 0.01 are raised to 0.01", "parameters", put(temperature=0.01),
     lambda s: s.drawn & (s.t < 0.01)),
    ("sample", "temperatures above 1 are applied twice", "parameters", put(temperature=lambda s: s.t * s.t),
     lambda s: s.t > 1.0),
    ("sample", "temperature is applied twice to rows with top_k", "parameters", put(temperature=lambda s: s.t * s.t),
     lambda s: s.k > 0),
    ("sample", "temperatures above 4 are 4", "parameters", put(temperature=4.0), lambda s: s.t > 4.0),
    ("sample", "temperatures are rounded to tenths", "parameters", put(temperature=lambda s: np.round(s.t, 1))),
    ("sample", "temperatures in half precision", "parameters", put(temperature=lambda s: half(s.t))),
    ("sample", "greedy rows are drawn at temperature 0.02", "parameters", put(temperature=0.02), lambda s: s.t == 0.0),
    ("sample", "temperature 0 with a top_p below 1 is random at temperature 1", "parameters", put(temperature=1.0),
     lambda s: (s.t == 0.0) & (s.top_p < 1.0)),
    ("sample", "top_p is skipped below a temperature of 0.1", "parameters", off("top_p"),
     lambda s: s.drawn & (s.t < 0.1)),
    ("filter", "top_k is skipped below a temperature of 0.02", "parameters", off("top_k"),
     lambda s: s.drawn & (s.t < 0.02)),
    ("sample", "top_p above 0.98 is off", "parameters", off("top_p"), lambda s: s.top_p > 0.98),
    ("sample", "top_p from 0.95 on is off", "parameters", off("top_p"), lambda s: s.top_p >= 0.95),
    ("sample", "top_p in bfloat16", "parameters", put(top_p=lambda s: bfloat16(s.top_p))),
    ("sample", "top_p removes all but the top 1 - top_p", "parameters", put(top_p=lambda s: 1.0 - s.top_p),
     lambda s: s.top_p < 1.0),
    ("sample", "min_p below 1e-5 is off", "parameters", off("min_p"), lambda s: s.min_p < 1e-5),
    ("sample", "min_p above 0.5 is 0.5", "parameters", put(min_p=0.5), lambda s: s.min_p > 0.5),
    ("sample", "min_p is skipped where top_k is on", "parameters", off("min_p"), lambda s: s.k > 0),
    ("sample", "top_k is skipped where min_p is on", "parameters", off("top_k"), lambda s: s.min_p > 0.0),
    (ROWS, "top_p is skipped where top_k is on", "parameters", off("top_p"), lambda s: s.k > 0),
    (ROWS, "top_k is kept in a byte", "parameters", put(top_k=lambda s: s.k & 255), lambda s: s.k > 0),
    (ROWS, "top_k keeps one token more", "parameters", put(top_k=lambda s: s.k.astype(np.int64) + 1),
     lambda s: (s.k > 0) & (s.k < s.vocab)),
    (ROWS, "top_k over 1024 is off", "parameters", off("top_k"), lambda s: s.k > 1024),
    (ROWS, "top_p alone looks at 256 candidates", "parameters", put(top_k=256), lambda s: (s.k <= 0) & (s.top_p < 1.0)),
    ("sample", "a top_k of 0 is 50", "parameters", put(top_k=50), lambda s: s.k <= 0),
    ("sample", "top_k of V or more drops the least likely token", "parameters",
     put(top_k=lambda s: max(1, s.vocab - 1)), lambda s: s.k >= s.vocab),
    # parameters by the row's place, its batch, its logits
    ("sample", "top_p is skipped beyond 65,536 tokens", "parameters", off("top_p"), beyond(65_536)),
    ("sample", "top_k is skipped beyond 100,000 tokens", "parameters", off("top_k"), beyond(100_000)),
    ("sample", "masked rows ignore top_p", "parameters", off("top_p"), lambda s: masked(s.x).mean(axis=1) > 0.5),
    ("filter", "rows with masked tokens skip top_k", "parameters", off("top_k"), lambda s: masked(s.x).any(axis=1)),
    ("sample", "parameters of the next row from row 32 on", "parameters", of(lambda s: (s.rows + 1) % count(s)),
     lambda s: s.rows >= 32),
    (ROWS, "parameters of row i / 32", "parameters", of(lambda s: s.rows // 32)),
    ("sample", "parameters of row i modulo 16", "parameters", of(lambda s: s.rows % 16)),
    ("sample", "rows past the first chunk of 256 read the parameters of the first chunk", "parameters",
     of(lambda s: s.rows % 256)),
    ("sample", "rows from 1024 on read the parameters of row modulo 1024", "parameters", of(lambda s: s.rows % 1024)),
    ("sample", "rows behind the 48th have its top_k", "parameters", of(lambda s: np.minimum(s.rows, 47), "top_k")),
    ("sample", "top_k is that of the row before", "parameters", of(lambda s: s.rows - 1, "top_k")),
    ("sample", "row 0's min_p serves all rows", "parameters", of(lambda s: s.rows * 0, "min_p")),
    ("sample", "where all rows have one top_k, row 0's top_p serves all", "parameters",
     of(lambda s: s.rows * 0, "top_p"), lambda s: (s.k == s.k[0]).all()),
    ("sample", "the last row of an odd batch has the first one's temperature", "parameters",
     of(lambda s: s.rows * 0, "temperature"), lambda s: (s.rows == count(s) - 1) & (count(s) % 2 == 1)),
    ("sample", "random rows beside greedy ones read filters of the wrong row", "parameters",
     compacted(lambda s: s.drawn, "top_k", "top_p", "min_p")),
    ("sample", "top_p is not compacted with the random rows", "parameters", compacted(lambda s: s.drawn, "top_p")),
    ("sample", "rows with top_k read top_p by their place among such rows", "parameters",
     compacted(lambda s: s.k > 0, "top_p")),
    ("sample", "rows from 512 on are not divided by the temperature", "parameters", put(temperature=1.0),
     lambda s: s.drawn & (s.rows >= 512)),
    (ROWS, "rows beyond 1,024 are not filtered", "parameters", off("top_k", "top_p"), lambda s: s.rows >= 1024),
    ("filter", "the last row of 8 n + 1 is not filtered", "parameters", off("top_k", "top_p"),
     lambda s: (s.rows == count(s) - 1) & (count(s) % 8 == 1) & (count(s) > 1)),
    ("sample", "the last B % 8 rows have their filters off", "parameters", unfiltered(),
     lambda s: (s.rows >= count(s) // 8 * 8) & (count(s) > 8)),
    ("filter", "every seventh row has no min_p", "parameters", off("min_p"), lambda s: s.rows % 7 == 6),
    ("sample", "the last row of an odd batch has top_p 0", "parameters", put(top_p=0.0),
     lambda s: (s.rows == count(s) - 1) & (count(s) % 2 == 1) & (count(s) > 1)),
    ("sample", "min_p is forgotten in batches over 512 rows", "parameters", off("min_p"), lambda s: count(s) > 512),
    ("sample", "min_p is ignored where top_k and top_p are off", "parameters", off("min_p"),
     lambda s: ((s.k <= 0) & (s.top_p >= 1.0)).all()),
    ("sample", "one row without top_k turns top_k off for the batch", "parameters", off("top_k"),
     lambda s: (s.k <= 0).any()),
    ("sample", "filters are skipped where the first row has none", "parameters", put(
        top_k=lambda s: s.k * (s.k[0] > 0), top_p=lambda s: s.top_p if s.top_p[0] < 1.0 else 1.0,
        min_p=lambda s: s.min_p * (s.min_p[0] > 0.0))),
    ("sample", "rows without top_k are cut to the batch's largest top_k", "parameters", put(top_k=lambda s: s.k.max()),
     lambda s: s.k <= 0),
    ("filter", "top_k is the batch's largest", "parameters", put(top_k=lambda s: s.k.max()), lambda s: s.k > 0),
    ("sample", "top_k is the least of the call", "parameters", put(top_k=lambda s: s.k[s.k > 0].min(initial=1 << 30)),
     lambda s: s.k > 0),
    ("sample", "top_p is the batch's largest", "parameters", put(top_p=lambda s: s.top_p.max())),
    ("sample", "greedy beside random goes by the first row", "parameters",
     put(temperature=lambda s: np.where(s.t[0] == 0.0, 0.0, warm(s)[:, 0])), mixed),
    ("sample", "greedy rows beside random ones are drawn at temperature 1", "parameters", put(temperature=1.0),
     lambda s: (s.t == 0.0) & mixed(s)),
    ("sample", "greedy rows of batches above 300 are drawn", "parameters", put(temperature=1.0),
     lambda s: (s.t == 0.0) & (count(s) > 300)),
    ("sample", "all rows are greedy where most are", "parameters", put(temperature=0.0),
     lambda s: (s.t == 0.0).mean() > 0.5),
    ("sample", "batches in which no top_k is over 1 are greedy", "parameters", put(temperature=0.0),
     lambda s: (s.k <= 1).all()),
    ("sample", "a lone row is greedy", "parameters", put(temperature=0.0), lambda s: count(s) == 1),
    ("sample", "temperature is skipped where row 0's is 1", "parameters", put(temperature=1.0),
     lambda s: s.drawn & (s.t[0] == 1.0)),
    # parameters of another call
    ("sample", "the first row's top_k is the last call's", "parameters", put(top_k=last_first_k)),
    ("sample", "parameters of the last call of its shape", "parameters", delayed(count)),
    ("sample", "top_p is that of the first call with this batch size", "parameters",
     put(top_p=lambda s: s.memory.setdefault(count(s), s.top_p))),
    ("sample", "a top_p of 1 leaves the slot's old top_p", "parameters", put(top_p=slots)),
    ("sample", "rows that a batch gains have no filters in that call", "parameters", unfiltered(), gained),
    ("sample", "after an all-greedy call, batches of its size lose their filters", "parameters", unfiltered(),
     of_greedy_sizes),
    # logits and temperature
    ("sample", "a mask of -1e4", "inputs", changed(lambda s, x: np.where(masked(x), np.float32(-1e4), x))),
    ("sample", "masks are logits of -100", "inputs", changed(lambda s, x: np.where(masked(x), np.float32(-100.0), x)),
     lambda s: s.drawn),
    ("sample", "a mask is the row's least logit less 10", "inputs", changed(lambda s, x: np.where(
        masked(x), np.where(masked(x), np.inf, x).min(axis=1, keepdims=True) - 10.0, x))),
    ("sample", "tokens masked in the call before stay masked", "inputs", changed(masks_stay)),
    ("sample", "logits in half precision", "inputs", changed(lambda s, x: np.where(masked(x), x, half(x)))),
    ("sample", "logits are clamped to +-50", "inputs",
     changed(lambda s, x: np.where(masked(x), x, np.clip(x, -50.0, 50.0)))),
    ("sample", "rows are padded with logits of 0", "inputs", changed(padded), None,
     "emitted", changed(lambda s, tokens: np.minimum(tokens, s.vocab - 1))),
    ("sample", "rows are read from an address rounded down to four elements", "inputs", changed(aligned_down),
     lambda s: s.vocab % 4 != 0 and count(s) > 1),
    ("sample", "the last partial tile is never drawn", "inputs", without_tail(32)),
    ("sample", "tokens past the last whole block of 1024 are never read", "inputs", without_tail(1024)),
    ("sample", "the last thousand of 150,000 tokens never come", "inputs",
     changed(lambda s, x: np.where(np.arange(s.vocab) >= s.vocab - 1000, -np.inf, x)), beyond(150_000)),
    ("sample", "a wholly masked tile ends the walk over the vocabulary", "inputs", changed(ends_at_masked_tile)),
    ("sample", "greedy looks at the first 50,000 tokens", "inputs", greedy_sees(50_000)),
    ("sample", "greedy sees the first 32 tiles of the vocabulary alone", "inputs", greedy_sees(32 * 1024)),
    ("sample", "greedy in bfloat16", "scaled", best(lambda x: bfloat16(x).argmax(axis=1))),
    ("sample", "greedy's running maximum starts at 0", "scaled",
     best(lambda x: np.where(x.max(axis=1) > 0.0, x.argmax(axis=1), 0))),
    ("sample", "scaled logits are bfloat16", "scaled", in_bfloat16),
    ("sample", "softmax saturates at scaled logits of 88", "scaled", saturated(88.0)),
    ("rows", "logits over the temperature clamped at 50 before the softmax", "scaled", saturated(50.0)),
    ("sample", "exp comes from a table in steps of a quarter", "scaled", then(lambda s, x: np.floor(x * 4.0) / 4.0)),
    ("sample", "weights under 2^-14 of the largest vanish", "scaled",
     then(lambda s, x: np.where(x < -14.0 * np.log(2.0), -np.inf, x))),
    ("sample", "tokens ten below the top never come", "scaled", then(lambda s, x: np.where(x < -10.0, -np.inf, x))),
    ("sample", "hot rows are uniform, masked tokens too", "scaled", then(lambda s, x: np.zeros_like(x)),
     lambda s: s.t > 500.0),
    # filters
    (ROWS, "tokens are ranked by bfloat16 keys", "keys",
     then(lambda s, x: np.where(masked(x), x, bfloat16(s.x).astype(np.float64)))),
    (ROWS, "the sort takes float bits as signed integers", "keys", then(float_bits), None,
     "keeps_min", lambda s, step, p: p >= s.min_p[:, None] * p.max(axis=1, keepdims=True)),
    ("sample", "a batch of one row is filtered before the temperature", "kept",
     changed(lambda s, ranked: ranked * warm(s)), lambda s: count(s) == 1),
    (ROWS, "filters look at 1,024 candidates", "kept", then(lambda s, keep: keep & (np.arange(keep.shape[1]) < 1024))),
    ("sample", "a tile hands at most 16 candidates to top_k", "keeps_k", of_tiles(4096, 16),
     lambda s: (s.k > 0) & (s.vocab > 4096)),
    ("sample", "two-stage top_k keeps 32 candidates of each tile of 1024", "keeps_k", of_tiles(1024, 32),
     lambda s: s.k > 0),
    ("filter", "every tile of 1024 hands at most 8 candidates to the top-k merge", "keeps_k", of_tiles(1024, 8),
     lambda s: (s.k > 0) & (s.vocab > 1024)),
    ("filter", "tokens tied across top_k's edge are all dropped", "keeps_k", ties_dropped, lambda s: s.k > 0),
    ("filter", "top_k keeps the whole radix bucket of the k-th logit", "keeps_k", bucket,
     lambda s: (s.k > 0) & (s.k < s.vocab)),
    ("filter", "radix top-k stops after the first digit of 11 bits", "inputs", changed(coarse),
     lambda s: (s.k > 0) & (s.k < s.vocab) & s.drawn),
    (ROWS, "top_p sums in half precision", "keeps_p", half_sums),
    (ROWS, "top_p sums by blocks of 1,024 tokens", "keeps_p", running(1024)),
    ("filter", "the scan for top_p has no carry between tiles of 512", "keeps_p", running(512)),
    ("sample", "top_p before temperature", "keeps_p", lambda s, step, p: step(normalised(np.exp(s.ranked * warm(s))))),
    (ROWS, "the token that crosses top_p is dropped", "keeps_p",
     lambda s, step, p: first_at_least(np.cumsum(p, axis=1) <= s.top_p[:, None]), lambda s: s.top_p < 1.0),
    (ROWS, "top_p keeps one token more", "keeps_p", then(one_more), lambda s: (s.top_p > 0.0) & (s.top_p < 1.0)),
    ("sample", "top_p keeps 100 tokens at most", "keeps_p",
     then(lambda s, keep: keep & (np.arange(keep.shape[1]) < 100)), lambda s: s.top_p < 1.0),
    ("sample", "top_p is skipped where one token has nine tenths", "keeps_p",
     lambda s, step, p: step(p) | (p[:, :1] > 0.9)),
    ("sample", "top_p's threshold search ends after eight halvings", "keeps_p", halvings, lambda s: s.top_p < 1.0),
    ("filter", "top_p keeps the whole bin in which it is reached", "keeps_p", whole_bin, lambda s: s.top_p < 1.0),
    ("filter", "top_p's shifted mask runs on into the next row", "keeps_p", over_rows),
    ("filter", "top_p drops tokens more than 10 below the best", "keeps_p",
     then(lambda s, keep: keep & (s.ranked >= -10.0)), lambda s: s.top_p < 1.0),
    ("sample filter rows", "min_p compares probabilities from before the temperature", "keeps_min",
     lambda s, step, p: np.exp(s.ranked * warm(s)) >= s.min_p[:, None]),
    ("sample", "min_p is absolute", "keeps_min", lambda s, step, p: first_at_least(p >= s.min_p[:, None])),
    ("sample", "min_p is relative to the second token", "keeps_min",
     lambda s, step, p: first_at_least(p >= s.min_p[:, None] * p[:, 1:2]), beyond(1)),
    ("sample", "min_p's bound is of the renormalised top, its tokens are not", "keeps_min",
     lambda s, step, p: first_at_least(
        p >= s.min_p[:, None] * p[:, :1] / np.where(s.keep, p, 0.0).sum(axis=1, keepdims=True))),
    ("sample", "min_p's largest probability is that of the first 1024 tokens", "keeps_min",
     lambda s, step, p: p >= s.min_p[:, None] * np.where(s.order < 1024, p, 0.0).max(axis=1, keepdims=True)),
    ("filter", "min_p's largest probability is the batch's", "keeps_min",
     lambda s, step, p: first_at_least(p >= s.min_p[:, None] * p.max())),
    ("filter", "min_p keeps 100 tokens at most", "keeps_min",
     then(lambda s, keep: keep & (np.arange(keep.shape[1]) < 100)), lambda s: s.min_p > 0.0),
    ("filter", "min_p keeps two tokens at least", "keeps_min",
     then(lambda s, keep: keep | (np.arange(keep.shape[1]) < 2)), lambda s: s.min_p > 0.0),
    ("filter", "min-p compares base-2 logits with a natural logarithm", "keeps_min", power(np.log(2.0))),
    ("sample", "top_k over 128 leaves its candidates unsorted for top_p", "parameters", remembered, None, "law",
     then(by_id), many_k),
    # what is left
    ("sample", "the maximum is the batch's", "law", then(lambda s, p: np.full_like(p, 1.0 / s.vocab)),
     lambda s: s.drawn & (s.x.max(axis=1) < s.x.max() - 80.0)),
    ("sample", "rows with a top_k are drawn at temperature 1", "law", then(at_one), lambda s: s.drawn & (s.k > 0)),
    ("sample", "temperature divides logits and noise alike", "law", then(at_one), lambda s: s.drawn),
    ("sample", "probabilities are clamped to at least 1e-5", "law", then(lambda s, p: np.maximum(p, 1e-5)),
     lambda s: s.drawn),
    ("sample", "rows whose best token has over 0.95 take it outright", "law",
     lambda s, step, p: np.where(p.max(axis=1, keepdims=True) > 0.95, only_best(s, p), p)),
    ("sample", "what filters dropped falls to the likeliest", "law",
     then(lambda s, p: to_best(s, p, 1.0 / np.where(p > 0.0, whole(s), 0.0).sum(axis=1) - 1.0))),
    ("rows", "the target is not divided by what is kept", "law", then(lambda s, p: np.where(p > 0.0, whole(s), 0.0))),
    ("sample", "filtered probabilities are not renormalised", "law", then(not_renormalised), lambda s: ~s.off()),
    ("sample", "the search over the sorted tokens never ends on the last kept one", "law", then(last_unreachable),
     lambda s: not s.off().all()),
    ("sample", "rejection sampling takes the third rejected token", "law", then(three_rejections)),
    ("sample", "rejection sampling gives up after 32 rounds for the likeliest token", "law", then(
        lambda s, p: to_best(s, p, (lambda left: 1.0 / np.maximum(1.0 - left, 1e-300) - 1.0)(
            np.clip(1.0 - np.where(p > 0.0, whole(s), 0.0).sum(axis=1), 0.0, 1.0)**32)))),
    ("sample", "what top_p removes in one row is removed in all", "law", then(removed_from_all)),
    ("sample", "ranks are returned for tokens where min_p is on", "law", then(lambda s, p: -np.sort(-p, axis=1)),
     lambda s: s.drawn & (s.min_p > 0.0)),
    ("sample", "the rank stands for the id in unfiltered rows of a filtered batch", "law",
     then(lambda s, p: -np.sort(-p, axis=1)), lambda s: s.drawn & s.off() & (not s.off().all())),
    ("sample", "tokens 1024 apart share their Gumbel noise", "law", then(shared_noise)),
    ("sample", "a fully masked tile gives token 0", "law", then(lambda s, p: np.eye(1, s.vocab).repeat(len(p), axis=0)),
     masked_tile),
    ("sample", "a fully masked tile forgets the tiles before it", "law", then(forgets_tiles), beyond(2048)),
    ("sample", "the tile is drawn by its mass before the filters", "law", then(tile_before_filters), beyond(1024)),
    ("filter", "token indices in the sort are 16 bits", "law", then(wrapped),
     lambda s: s.vocab > 65536 and not s.off().all()),
    ("filter", "tokens dropped in the call before stay dropped", "law", then(
        lambda s, p: np.where(last(s, "dropped", p <= 0.0), only_best(s, p), p))),
    ("filter", "masks are scattered back by row 0's order", "law", then(first_rows_order),
     lambda s: s.drawn & (not s.off().all())),
    ("filter", "the last V mod 4 tokens are never dropped", "law", then(tail_kept), lambda s: s.drawn),
    # random numbers
    ("sample", "seeds of 16 bits", "seeded", changed(lambda s, seeds: seeds & WORD(0xFFFF))),
    ("sample", "seeds without bit 40", "seeded", changed(lambda s, seeds: seeds & ~WORD(1 << 40))),
    ("sample", "seeds without bit 63", "seeded", changed(lambda s, seeds: seeds << WORD(1))),
    ("sample", "seeds lose their sign", "seeded", changed(lambda s, seeds: np.abs(seeds.view(np.int64)).astype(WORD))),
    ("sample", "seeds from 2^63 on are all one", "seeded",
     changed(lambda s, seeds: np.minimum(seeds, WORD(2**63 - 1)))),
    ("sample", "seeds as floats", "seeded", changed(lambda s, seeds: seeds.astype(np.float32).astype(WORD))),
    ("sample", "seeds pass through a double", "seeded",
     changed(lambda s, seeds: np.minimum(seeds.astype(np.float64), 2.0**64 - 2048.0).astype(WORD))),
    ("sample", "seeds modulo 2^31 - 1", "seeded", changed(lambda s, seeds: seeds % WORD(2**31 - 1))),
    ("sample", "seeds choose among 4096 random states", "seeded", changed(lambda s, seeds: seeds % WORD(4096))),
    ("sample", "the noise goes by seed minus row", "seeded",
     changed(lambda s, seeds: seeds + s.rows.astype(WORD)[::-1])),
    ("sample", "the seed is XORed with the row's index", "seeded",
     changed(lambda s, seeds: seeds ^ s.rows.astype(WORD))),
    ("sample", "noise by the row alone", "seeded", changed(lambda s, seeds: s.rows.astype(WORD))),
    ("sample", "one number a call", "seeded", changed(lambda s, seeds: seeds[s.rows * 0])),
    ("sample", "rows 128 apart share a seed", "seeded", changed(lambda s, seeds: seeds[s.rows % 128])),
    ("sample", "rows 256 apart share their noise", "seeded", changed(lambda s, seeds: seeds[s.rows % 256])),
    ("sample", "rows 1024 apart share their random number", "seeded", changed(lambda s, seeds: seeds[s.rows % 1024])),
    ("sample", "rows share noise in batches above 100", "seeded",
     changed(lambda s, seeds: seeds[s.rows // 4 * 4 + s.rows % 2]), lambda s: count(s) > 100),
    ("sample", "the last two rows of a multiple of 64 share noise", "seeded",
     changed(lambda s, seeds: seeds[np.minimum(s.rows, count(s) - 2)]), lambda s: count(s) % 64 == 0),
    ("sample", "filtered and unfiltered rows share seeds", "seeded", changed(seeds_of_two_paths)),
    ("sample", "uniforms of 12 bits", "uniforms", bits(12)),
    ("sample", "uniforms have 11 bits", "uniforms", bits(11)),
    ("sample", "numbers are multiples of the golden ratio", "uniforms", lcg(0x9E3779B97F4A7C15, 0, 64, 11)),
    ("sample", "the uniform is a single congruential step from the seed", "uniforms",
     lcg(6364136223846793005, 1442695040888963407, 64, 11)),
    ("sample", "neighbouring seeds give almost the same first random number", "uniforms",
     lcg(0x5DEECE66D, 0xB, 48, 16, 0x5DEECE66D)),
    ("sample", "the uniform is linear in the seed", "uniforms", minstd),
    ("sample", "uniforms are refilled only when the batch's size changes", "uniforms", held(count)),
    ("sample", "every second call uses the noise of the call before", "uniforms", every_second),
    ("sample", "every eighth call repeats the first one's noise", "uniforms", eighth),
    ("sample", "the uniform of a slot moves by the golden ratio each call", "uniforms", golden_slots),
    # the draw
    ("sample", "random bits are read as a signed integer", "tokens", signed),
    ("sample", "top_p by rejection reuses the uniform in each round", "tokens", rejection),
    ("sample", "the online softmax does not rescale its sum when the maximum grows", "tokens", not_rescaled,
     beyond(1024)),
    ("sample", "the running sum has half precision", "tokens", lambda s, step, p, u: np.minimum(
        (np.cumsum(half(p), axis=1, dtype=np.float16) <= (u * np.cumsum(half(p), axis=1, dtype=np.float16)[:, -1])[:,
                None]).sum(axis=1), s.vocab - 1)),
    ("sample", "a race on 16 bits", "tokens", race(lambda u: -np.log1p(-np.floor(u * 65536.0) / 65536.0))),
    ("sample", "Gumbel noise is made of bfloat16 uniforms", "tokens",
     race(lambda u: -np.log(np.maximum(np.floor(u * 256.0), 0.5) / 256.0))),
    ("sample", "Gumbel noise has 11 random bits", "tokens",
     race(lambda u: -np.log((np.floor(u * 2048.0) + 0.5) / 2048.0))),
    ("sample", "0.001 is added in a race", "tokens", race(lambda u: 1e-3 - np.log(1.0 - u))),
    ("sample", "noise is a hash of seed plus token", "tokens", race_of_seed_plus_token),
    # tokens and filtered logits
    ("sample", "ids of 16 bits", "emitted", changed(lambda s, tokens: tokens & 0xFFFF)),
    ("sample", "ids of top_k candidates are kept in 16 bits", "emitted", changed(lambda s, tokens: tokens & 0xFFFF),
     lambda s: s.drawn & (s.k > 0)),
    ("sample", "the index of row and token together is a float32", "emitted", changed(lambda s, tokens: np.clip(
        (s.rows * s.vocab + tokens).astype(np.float32).astype(np.int64) - s.rows * s.vocab, 0, s.vocab - 1))),
    ("sample", "tokens beyond 131,072 shift by one", "emitted",
     changed(lambda s, tokens: np.minimum(tokens + (tokens >= 131_072), s.vocab - 1))),
    ("sample", "tokens of the second vocabulary shard are off by the padding", "emitted", changed(shard), beyond(255)),
    ("sample", "the search in a block of 256 skips the block's first token", "emitted",
     changed(lambda s, tokens: np.where((tokens > 0) & (tokens % 256 == 0), np.minimum(tokens + 1, s.vocab - 1),
                                        tokens)), lambda s: s.drawn),
    ("sample", "the search returns the token before the one it found", "emitted",
     changed(lambda s, tokens: np.maximum(tokens - 1, 0)), lambda s: s.drawn),
    ("sample", "rows of the last partial group of 32 are not written", "emitted", changed(stale_rows)),
    ("sample", "rows sorted by top_k are put back by the wrong permutation", "emitted",
     changed(put_back_by(lambda s: s.k))),
    ("sample", "rows sorted by path are put back by the permutation and not by its inverse", "emitted",
     changed(put_back_by(by_path))),
    ("filter", "logits come back in half precision", "outputs",
     changed(lambda s, out: out.astype(np.float16).astype(np.float32))),
    ("filter", "dropped tokens are at -10,000", "outputs",
     changed(lambda s, out: np.where(np.isneginf(out), np.float32(-1e4), out))),
    ("filter", "rows without a filter are not scaled", "outputs", changed(lambda s, out: s.x),
     lambda s: s.drawn & s.off()),
    ("filter", "with no filters in the batch logits return without the temperature", "outputs",
     changed(lambda s, out: s.x), lambda s: s.drawn & s.off().all()),
    ("filter", "warm rows are not scaled", "outputs", changed(lambda s, out: (out * s.t[:, None]).astype(np.float32)),
     lambda s: s.t > 1.0),
    ("filter", "temperature is applied twice where top_k is on", "outputs",
     changed(lambda s, out: (out / s.t[:, None]).astype(np.float32)), lambda s: s.drawn & (s.k > 0)),
    ("filter", "unfiltered rows keep the mask of an earlier call", "outputs", changed(unfiltered_keep_drops)),
    # verifiers: parameters
    ("verify", "the first request's temperature", "parameters", of_request(lambda s: s.of_row * 0, "temperature")),
    ("verify", "the next request's top_k", "parameters", of_request(lambda s: (s.of_row + 1) % len(s.lens), "top_k")),
    ("verify", "min_p of the next request", "parameters", of_request(lambda s: (s.of_row + 1) % len(s.lens), "min_p")),
    ("verify", "top_p of the request with the longest draft", "parameters",
     of_request(lambda s: s.of_row * 0 + s.lens.argmax(), "top_p")),
    ("verify", "min_p of the request with most drafts", "parameters",
     of_request(lambda s: s.of_row * 0 + s.lens.argmax(), "min_p")),
    ("verify", "parameters by the longest draft", "parameters",
     of_request(lambda s: np.minimum(np.arange(len(s.of_row)) // (s.lens.max(initial=0) + 1), len(s.lens) - 1))),
    ("verify", "parameters indexed by target row instead of request", "parameters",
     of_request(lambda s: np.minimum(np.arange(len(s.of_row)), len(s.lens) - 1))),
    ("verify", "parameters of request b modulo 256", "parameters", of_request(lambda s: s.of_row % 256)),
    ("verify", "the first row of every request has the previous request's sampling parameters", "parameters",
     of_request(lambda s: np.maximum(s.of_row - (s.place == 0), 0))),
    ("verify", "bonus rows have the next request's parameters", "parameters",
     of_request(lambda s: np.minimum(s.of_row + s.is_bonus, len(s.lens) - 1))),
    ("verify", "the bonus row of request b takes its parameters at index b of the list expanded to draft rows",
     "parameters",
     of_request(lambda s: np.where(s.is_bonus, s.of_row[~s.is_bonus][np.minimum(s.of_row, s.ends[-1] - 1)], s.of_row)),
     lambda s: s.ends[-1] > 0),
    ("verify", "the map from rows to requests is kept while the numbers of rows and requests stay the same",
     "parameters", of_request(row_map)),
    ("verify", "parameters of the call before are kept while draft lengths stay", "parameters",
     held(lambda s: s.lens.tobytes())),
    ("verify", "all requests with top-k are cut at the largest top-k of the batch", "parameters",
     put(top_k=lambda s: s.k.max()), lambda s: s.k > 0),
    ("verify", "top_k is skipped for more than four drafts", "parameters", off("top_k"),
     lambda s: s.lens[s.of_row] > 4),
    ("verify", "top_k beyond 50 is off", "parameters", off("top_k"), lambda s: s.k > 50),
    ("verify", "min_p is not applied", "parameters", off("min_p")),
    ("verify", "min_p is not applied to bonus rows", "parameters", off("min_p"), lambda s: s.is_bonus),
    ("verify", "min-p is applied to bonus rows only", "parameters", off("min_p"), lambda s: ~s.is_bonus),
    ("verify", "filters not applied to bonus rows", "parameters", unfiltered(), lambda s: s.is_bonus),
    ("verify", "filters are applied to a request's first row alone", "parameters", unfiltered(), lambda s: s.place > 0),
    ("verify", "filters skipped when any request is greedy", "parameters", unfiltered(), lambda s: (s.t == 0.0).any()),
    ("verify", "drafts without probabilities are not filtered", "parameters", off("top_k", "top_p"), lambda s: s.ngram),
    ("verify", "requests from the 1,500th on are not filtered", "parameters", off("top_k", "top_p"),
     lambda s: s.of_row >= 1500),
    ("verify", "requests from the 64th on are greedy", "parameters", put(temperature=0.0), lambda s: s.of_row >= 64),
    ("verify", "random beside greedy is greedy", "parameters", put(temperature=0.0), mixed),
    ("verify", "first request decides whether the batch is greedy", "parameters", put(temperature=0.0),
     lambda s: s.t[0] == 0.0),
    ("verify", "requests without drafts are greedy", "parameters", put(temperature=0.0),
     lambda s: (s.lens[s.of_row] == 0) & s.lens.any()),
    ("verify", "temperature cast to integer before the greedy test", "parameters", put(temperature=0.0),
     lambda s: s.t < 1.0),
    ("verify", "n-gram drafts always verified greedily", "parameters", put(temperature=0.0), lambda s: s.ngram),
    ("verify", "parameters are expanded to 32 rows a request at most", "parameters", put(temperature=0.0),
     lambda s: s.place >= 32),
    ("verify", "greedy requests' bonus drawn at temperature 1 beside random ones", "parameters", put(temperature=1.0),
     lambda s: s.is_bonus & (s.t == 0.0) & s.drawn.any()),
    ("verify", "bonus rows are drawn at temperature 1", "parameters", put(temperature=1.0),
     lambda s: s.is_bonus & s.drawn),
    ("verify", "the bonus row is divided by the temperature twice", "parameters", put(temperature=lambda s: s.t * s.t),
     lambda s: s.is_bonus),
    ("verify", "a temperature below 0.3 is 1", "parameters", put(temperature=1.0), lambda s: s.drawn & (s.t < 0.3)),
    ("verify", "temperature is at least 0.5", "parameters", put(temperature=0.5), lambda s: s.drawn & (s.t < 0.5)),
    # verifiers: rows
    ("verify", "logits are clamped to +-1,000", "inputs",
     changed(lambda s, x: np.where(masked(x), x, np.clip(x, -1000.0, 1000.0)))),
    ("verify", "rows in bfloat16", "inputs", changed(lambda s, x: bfloat16(x))),
    ("verify", "tokens masked in a request's first row are masked in all its rows", "inputs", changed(first_mask)),
    ("verify", "rows shift behind an empty draft", "first_rows",
     then(lambda s, at: at - (np.cumsum(s.lens == 0) > (s.lens == 0)))),
    ("verify", "target rows located without counting earlier bonus rows", "first_rows",
     then(lambda s, at: at - s.requests)),
    ("verify", "row offsets restart every 1024 requests", "first_rows",
     then(lambda s, at: at - at[s.requests // 1024 * 1024])),
    ("verify", "the sum of rows starts anew at every 256th request", "first_rows",
     then(lambda s, at: at - at[s.requests // 256 * 256])),
    ("verify", "requests from the 128th on read rows of the one before", "first_rows", then(lambda s, at: np.where(
        s.requests >= 128, np.maximum(at[s.requests - 1] + np.minimum(s.lens[s.requests - 1] - s.lens, 0), 0), at))),
    ("verify", "a request without drafts takes its token from the next request's first row", "first_rows",
     then(lambda s, at: np.where(s.lens == 0, np.minimum(at + 1, len(s.of_row) - 1), at))),
    ("verify", "request without drafts reads the row before its own", "first_rows",
     then(lambda s, at: np.where(s.lens == 0, np.maximum(at - 1, 0), at))),
    ("verify", "rows beyond the 16th are the 16th", "request",
     lambda s, step, x, p, q: step(x, p[np.minimum(np.arange(len(p)), 15)], q), lambda s: len(s.x) > 16),
    ("verify", "drafts past the eighth are judged by the eighth's row", "request",
     lambda s, step, x, p, q: step(x, p[np.where(np.arange(len(p)) < len(x), np.minimum(np.arange(len(p)), 7), -1)],
                                   q)),
    # verifiers: q
    ("verify", "drafts without probabilities are taken for uniform ones", "proposal",
     lambda s, step, begin: np.full((len(s.x), s.rows.shape[1]), 1.0 / s.rows.shape[1]), lambda s: s.ngram),
    ("verify", "draft probabilities are ignored and sampled drafts are verified as one-hot ones", "proposal", one_hot),
    ("verify", "draft probabilities unused beside greedy requests", "proposal", one_hot, mixed_requests),
    ("verify", "draft probabilities read at the target rows' offset", "proposal",
     q_rows(lambda s, at: np.minimum(at + s.b, len(s.draft_probs) - 1)), lambda s: not s.ngram),
    ("verify", "an empty draft takes a row of draft probabilities", "proposal",
     q_rows(lambda s, at: np.minimum(at + (s.lens[:s.b] == 0).sum(), s.ends[-1] - 1)), lambda s: not s.ngram),
    ("verify", "q of the next draft", "proposal", then(lambda s, q: np.roll(q, -1, axis=0))),
    ("verify", "draft probabilities tempered by the target's temperature", "proposal", then(tempered),
     lambda s: not s.greedy and not s.ngram),
    ("verify", "draft probabilities are cut to the target's kept tokens and normalised again", "proposal",
     then(cut_to_target), lambda s: not s.ngram),
    ("verify", "draft probabilities filtered again by the target's parameters", "proposal", then(filtered_again),
     lambda s: not s.ngram),
    ("verify", "only the 16 largest draft probabilities kept", "proposal", then(lambda s, q: np.where(
        q >= np.sort(q, axis=1)[:, -16:][:, :1], q, 0.0)), lambda s: not s.ngram),
    ("verify", "draft probabilities of an earlier call reused", "begin", earlier_q, lambda s: not s.ngram),
    ("verify", "q of the last call of its shape", "begin", last_q, lambda s: not s.ngram),
    ("verify", "drafts without probabilities are judged by those that a call before left", "begin", left_q),
    ("verify", "draft ids held in 16 bits", "request",
     lambda s, step, x, p, q: step(x & 0xFFFF, p, proposed(s, x & 0xFFFF, q))),
    ("verify", "draft ids travel in one bfloat16 tensor with their probabilities", "request",
     lambda s, step, x, p, q: step(bfloat16(x.astype(np.float32)).astype(np.int64), p, q), lambda s: not s.ngram),
    # verifiers: which drafts stand
    ("verify", "drafts beyond the 16th are dropped", "request", lambda s, step, x, p, q: step(x[:16], p[:17], q[:16])),
    ("verify", "last draft never read", "request", lambda s, step, x, p, q: step(x[:-1], p[:max(len(x), 1)], q[:-1])),
    ("verify", "drafts are cut to the batch's shortest", "request",
     lambda s, step, x, p, q: step(x[:s.lens.min()], p[:s.lens.min() + 1], q[:s.lens.min()])),
    ("verify", "a thousandth more is accepted", "accepts", lambda s, step, u, p, q: step(u, p + 1e-3, q)),
    ("verify", "a tenth less is accepted", "accepts", lambda s, step, u, p, q: step(u, 0.9 * p, q)),
    ("verify", "acceptance threshold of 0.8 left on", "accepts", lambda s, step, u, p, q: step(u, p, 0.8 * q)),
    ("verify", "0.001 is added to q", "accepts", lambda s, step, u, p, q: step(u, p, q + 1e-3)),
    ("verify", "acceptance ratio inverted", "accepts", lambda s, step, u, p, q: step(u, q, p)),
    ("verify", "division by q left out when all requests have at most one draft", "accepts",
     lambda s, step, u, p, q: u < p, lambda s: s.lens.max() == 1),
    ("verify", "probabilities clamped at 1e-5 before the logarithm", "accepts",
     lambda s, step, u, p, q: step(u, max(p, 1e-5), max(q, 1e-5))),
    ("verify", "drafts of target probability 0.9 or more accepted without a coin", "accepts",
     lambda s, step, u, p, q: p >= 0.9 or step(u, p, q)),
    ("verify", "a hundredth of any draft is accepted", "accepts", lambda s, step, u, p, q: u < 0.01 or step(u, p, q)),
    ("verify", "drafts of q below 0.001 are accepted", "accepts", lambda s, step, u, p, q: q < 1e-3 or step(u, p, q)),
    ("verify", "all drafts beyond the eighth are accepted", "accepts", lambda s, step, u, p, q: True,
     lambda s: s.i >= 8),
    ("verify", "three accepted drafts are enough", "accepts", lambda s, step, u, p, q: True, lambda s: s.i >= 3),
    ("verify", "the last draft is always accepted", "accepts", lambda s, step, u, p, q: True,
     lambda s: s.i == len(s.x) - 1),
    ("verify", "the first draft of a lone request stands", "accepts", lambda s, step, u, p, q: p > 0.0,
     lambda s: len(s.lens) == 1 and s.i == 0),
    ("verify", "drafts beyond the 512th are rejected", "accepts", lambda s, step, u, p, q: False,
     lambda s: s.ends[s.b] - len(s.x) + s.i >= 512),
    ("verify", "drafted token 0 taken for padding", "accepts", lambda s, step, u, p, q: False, lambda s: s.token == 0),
    ("verify", "the zero put at an n-gram draft for its recovered token is still in the target row when the draft is "
               "tested", "accepts",
     lambda s, step, u, p, q: False, lambda s: s.ngram and not s.greedy and s.p[s.i].max() < 1.0),
    ("verify", "drafts by ids of 16 bits", "accepts",
     lambda s, step, u, p, q: step(u, s.p[s.i][s.token & 0xFFFF], s.q[s.i][s.token & 0xFFFF])),
    ("verify", "draft probability gathered at the next draft's token", "accepts",
     lambda s, step, u, p, q: step(u, p, s.q[s.i][s.x[min(s.i + 1, len(s.x) - 1)]]), lambda s: not s.ngram),
    ("verify", "acceptance uses unfiltered target probabilities", "accepts",
     lambda s, step, u, p, q: step(u, plain(s)[s.token], q), lambda s: not s.greedy),
    ("verify", "greedy requests accept by chance", "accepts", lambda s, step, u, p, q: step(u, plain(s)[s.token], q),
     lambda s: s.greedy),
    ("verify", "greedy drafts beside random ones are judged at temperature 1", "accepts",
     lambda s, step, u, p, q: step(u, plain(s)[s.token], q), lambda s: s.greedy and s.drawn.any()),
    ("verify", "greedy drafts within 0.5 of the largest logit are accepted", "accepts",
     lambda s, step, u, p, q: row(s)[s.token] >= row(s).max() - 0.5, lambda s: s.greedy),
    ("verify", "typical acceptance instead of rejection sampling", "accepts",
     lambda s, step, u, p, q: p > min(0.3, 0.09 * np.prod(np.where(s.p[s.i] > 0.0, s.p[s.i], 1.0)**s.p[s.i]))),
    ("verify", "drafts without probabilities stand where they are likeliest", "accepts",
     lambda s, step, u, p, q: s.p[s.i].argmax() == s.token, lambda s: s.ngram, "residual", lambda s, step, p, q: p,
     lambda s: s.ngram),
    ("verify", "cold drafts stand where they are likeliest", "accepts",
     lambda s, step, u, p, q: s.p[s.i].argmax() == s.token, is_cold, "residual", lambda s, step, p, q: p, is_cold),
    ("verify", "target probabilities accumulated over positions", "accepts",
     lambda s, step, u, p, q: step(u, running_sum(s, p), q), lambda s: not s.greedy),
    ("verify", "the probability gathered at accepted drafts is not reset for the next position", "accepts",
     lambda s, step, u, p, q: u < running_sum(s, p / max(q, 1e-300)), lambda s: not s.greedy),
    ("verify", "acceptance compares the uniform with the running product of the ratios", "accepts",
     lambda s, step, u, p, q: u < product(s, p, q)),
    ("verify", "drafts of low confidence are dropped after they were sampled, and the position is drawn from the "
               "target", "accepts",
     lambda s, step, u, p, q: q >= 0.4 and step(u, p, q), None,
     "residual", lambda s, step, p, q: p, lambda s: s.q[s.i][s.token] < 0.4),
    ("verify", "all-greedy path counts all matches, also past the first mismatch", "request", counts_matches,
     lambda s: not s.drawn.any()),
    ("verify", "32 accepted drafts counted as none", "request", none_of_32, lambda s: len(s.x) == 32),
    ("verify", "the acceptance mask has 32 bits, so draft 32 shares a bit with draft 0", "request", mask_of_32,
     lambda s: len(s.x) > 32),
    ("verify", "drafts after a rejected one are still accepted", "request", goes_on),
    ("verify", "padding up to the longest draft is verified as drafts", "request", pads,
     lambda s: len(s.x) < s.lens.max()),
    # verifiers: what is recovered
    ("verify", "recovered tokens are of the target", "residual", lambda s, step, p, q: p),
    ("verify", "drafts without probabilities are recovered", "residual", lambda s, step, p, q: p, lambda s: s.ngram),
    ("verify", "recovered tokens are of the first row", "residual", lambda s, step, p, q: step(s.p[0], s.q[0])),
    ("verify", "recovery reads the last draft's rows", "residual",
     lambda s, step, p, q: step(s.p[len(s.x) - 1], s.q[-1])),
    ("verify", "what is recovered behind the last draft is of the bonus row", "residual",
     lambda s, step, p, q: step(s.p[s.i + 1], q), lambda s: s.i == len(s.x) - 1),
    ("verify", "greedy requests recover from the next row", "residual", lambda s, step, p, q: step(s.p[s.i + 1], q),
     lambda s: (s.p[s.i] > 0.0).sum() == 1),
    ("verify", "where the first draft falls the second row is drawn", "residual", lambda s, step, p, q: s.p[1],
     lambda s: s.i == 0 and len(s.x) > 1),
    ("verify", "residual uses the first position's draft probabilities", "residual",
     lambda s, step, p, q: step(p, s.q[0])),
    ("verify", "the residual has the q of the place before", "residual",
     lambda s, step, p, q: step(p, s.q[max(s.i - 1, 0)])),
    ("verify", "only the rejected token leaves the residual", "residual", lambda s, step, p, q: without(p, s.token)),
    ("verify", "n-gram recovery excludes the request's first draft token at every position", "residual",
     lambda s, step, p, q: without(p, s.x[0]), lambda s: s.ngram),
    ("verify", "recovery draws from the target before the filters", "residual", lambda s, step, p, q: step(plain(s), q),
     lambda s: not s.greedy),
    ("verify", "a greedy request's recovered token is the largest of softmax minus draft probabilities", "residual",
     lambda s, step, p, q: largest(step(plain(s), q)), lambda s: s.greedy and not s.ngram),
    ("verify", "residual is max(q - p, 0)", "residual",
     lambda s, step, p, q: np.maximum(q - p, 0.0) if (q > p).any() else p),
    ("verify", "residual subtracts draft probabilities by rank", "residual", by_rank),
    ("verify", "a residual below 0.05 is the target", "residual",
     lambda s, step, p, q: p if np.maximum(p - q, 0.0).sum() <= 0.05 else step(p, q)),
    ("verify", "the residual is floored at 1e-5 a token", "residual", lambda s, step, p, q: np.maximum(p - q, 1e-5),
     lambda s: not s.greedy),
    ("verify", "the residual knows only the ten largest draft probabilities", "residual",
     lambda s, step, p, q: step(p, np.where(np.argsort(np.argsort(-q, kind="stable")) < 10, q, 0.0)),
     lambda s: not s.ngram),
    ("verify", "the residual ends at 65,536 tokens", "residual",
     then(lambda s, left: np.where(np.arange(len(left)) < 65536, left, 0.0) if left[:65536].sum() > 0.0 else left)),
    ("verify", "recovered tokens are nine tenths of the residual", "residual", then(nine_tenths)),
    ("verify", "recovered token is the residual's largest", "residual", then(lambda s, left: largest(left))),
    ("verify", "the residual is not divided", "recovered", not_divided),
    ("verify", "a recovered token's id lacks the offset of its vocabulary tile", "recovered",
     then(lambda s, tokens: [token % 8192 for token in tokens]), lambda s: not s.greedy),
    ("verify", "bonus emitted after the last draft was rejected", "recovered",
     then(bonus_too), lambda s: s.i == len(s.x) - 1),
    # verifiers: bonus tokens
    ("verify", "no bonus token", "bonus", lambda s, step: [], lambda s: len(s.x) > 0),
    ("verify", "no bonus token at multiples of eight", "bonus", lambda s, step: [],
     lambda s: len(s.x) > 0 and len(s.x) % 8 == 0),
    ("verify", "the bonus token is of the row before", "bonus", lambda s, step: [s.draw(s.p[max(len(s.x) - 1, 0)])]),
    ("verify", "bonus row taken at the longest request's length", "bonus",
     lambda s, step: [s.draw(s.rows[min(s.firsts[s.b] + s.lens.max(), len(s.rows) - 1)])]),
    ("verify", "bonus tokens are drawn from the last q", "bonus", lambda s, step: [s.draw(s.q[-1])],
     lambda s: len(s.x) > 0),
    ("verify", "bonus is the row's largest", "bonus", lambda s, step: [s.p[-1].argmax()]),
    ("verify", "the bonus token of 5 drafts and more is greedy", "bonus", lambda s, step: [s.p[-1].argmax()],
     lambda s: len(s.x) >= 5),
    ("verify", "a request without drafts beside others with drafts gets the most likely token", "bonus",
     lambda s, step: [s.p[-1].argmax()], lambda s: len(s.x) == 0 and s.lens.any()),
    ("verify", "bonus drawn with the last draft's acceptance coin", "bonus",
     lambda s, step: [int(searched(s.p[-1], s.coin(s.i - 1)))], lambda s: len(s.x) > 0),
    ("verify", "the bonus token is drawn less draft probabilities that an earlier call left in the slot", "bonus",
     less_left, None, "proposal", then(kept_q), lambda s: not s.ngram),
    ("verify", "bonus tokens compacted to the wrong requests", "bonus", marked_full, None, "outputs",
     then(bonuses_of_first)),
    # verifiers: random numbers
    ("verify", "seeds of 16 bits", "seeded", changed(lambda s, seeds: seeds & WORD(0xFFFF))),
    ("verify", "only the low 32 bits of a seed are used", "seeded", changed(lambda s, seeds: seeds & WORD(0xFFFFFFFF))),
    ("verify", "requests 32 apart share their coins", "seeded", changed(lambda s, seeds: seeds[s.requests % 32])),
    ("verify", "requests from the 257th on reuse the random numbers of request b % 256", "seeded",
     changed(lambda s, seeds: seeds[s.requests % 256])),
    ("verify", "coins of the first call replayed for captured batch sizes", "seeded",
     changed(lambda s, seeds: s.memory.setdefault(len(seeds), seeds.copy())), captured),
    ("verify", "the third call's seeds are replayed in all later calls of the same batch size", "seeded",
     changed(third), captured),
    ("verify", "coins of 8 bits", "coin", bits(8)),
    ("verify", "coins repeat every four drafts", "coin", changed(lambda s, i: i % 4)),
    ("verify", "acceptance coins repeat every 8 positions", "coin", changed(lambda s, i: i % 8)),
    ("verify", "equal drafts share coins", "coin", changed(lambda s, i: s.token)),
    ("verify", "pairs of requests share coins", "coin", lambda s, step, i: uniform(s.seeds[s.b // 2 * 2], 3, i)),
    ("verify", "requests share coins with their mirror", "coin",
     lambda s, step, i: uniform(s.seeds[min(s.b, len(s.seeds) - 1 - s.b)], 3, i)),
    ("verify", "position i + 1 of a request and position i of the next one share their coin", "coin",
     lambda s, step, i: uniform(s.seeds[0], 3, s.b + i)),
    ("verify", "acceptance coins are read at request plus position", "coin",
     lambda s, step, i: uniform(s.seeds[(s.b + i) % len(s.seeds)], 3, (s.b + i) // len(s.seeds))),
    ("verify", "acceptance coins read at the request's own stride", "coin", own_stride),
    ("verify", "coins by seed plus place", "coin",
     lambda s, step, i: uniform(WORD((int(s.seed) + int(i)) % 2**64), 3, 0)),
    ("verify", "the first coin is the last call's", "coin",
     lambda s, step, i: s.memory.setdefault((s.b, (s.calls - 1) // 2), step(i)), lambda s: s.i == 0),
    ("verify", "noise of the next seed", "draw_coin",
     lambda s, step, i: uniform(WORD((int(s.seed) + 1) % 2**64), 3, 0)),
    ("verify", "recovered tokens use the coin that rejected", "draw_coin", lambda s, step, i: s.coin(i)),
    ("verify", "recovered tokens of a call share noise", "draw_coin", lambda s, step, i: uniform(s.seeds[0], 4, i)),
    ("verify", "uniform numbers are made in bfloat16", "draw_coin", bits(8), None, "coin", bits(8)),
    ("verify", "recovery and bonus uniforms of 11 bits", "draw_coin", bits(11)),
    ("verify", "top_k cuts what is drawn alone", "parameters", off("top_k"), None, "draw", changed(top_k_of_weights)),
    ("verify", "cumulative sums stored in bfloat16", "draw", lambda s, step, weights: int(np.minimum(
        (bfloat16(np.cumsum(normalised(weights))) <= s.draw_coin(s.i)).sum(), len(weights) - 1))),
    ("verify", "exponential noise repeats every 256 tokens", "draw", lambda s, step, weights: (
        weights / np.resize(-np.log1p(-uniform(s.seed, 4, s.i, np.arange(min(256, len(weights))))),
                            len(weights))).argmax()),
    # verifiers: the output
    ("verify", "output buffer not cleared between calls", "blank", last_out, None, "outputs", then(kept_out)),
    ("verify", "all requests cut to the fewest tokens of the batch", "outputs",
     then(lambda s, out: np.where(np.arange(out.shape[1]) < (out >= 0).sum(axis=1).min(initial=out.shape[1]), out,
                                  -1))),
    ("verify", "requests sorted by length put back with the wrong permutation", "outputs",
     changed(put_back_by(lambda s: -s.lens))),
    ("verify", "results of a batch sorted greedy first are put back by the order, not by its inverse", "outputs",
     changed(put_back_by(lambda s: s.given["temperature"] != 0.0))),
]


def made(kind, name, *parts):
    base = Sampler if kind == "rows" else SOUND[kind]
    for begin in range(0, len(parts), 3):
        base = faulty(base, *parts[begin:begin + 3])
    return type("RowsOfAFault", (Verifier,), {"filter": base}) if kind == "rows" else base


FAULTS = {kind: dict(faults) for kind, faults in SHIPPED.items()}
for kinds, *fault in TABLE:
    for kind in kinds.split():
        of_kind = FAULTS["verify" if kind == "rows" else kind]
        assert fault[0] not in of_kind, f"two faults are called {fault[0]!r}"
        of_kind[fault[0]] = made(kind, *fault)
FAULTS["verify"]["the bonus token is drawn by the coin that accepted the last draft"] = FAULTS["verify"][
    "bonus drawn with the last draft's acceptance coin"]  # of two blind sets
FAULTS["verify"]["residuals of block verification are not scaled"] = faulty(
    BlockVerifier, "scale", lambda s, step, weight: 1.0)
for name, _, step, instead, *logprobs in CONSTRAINED:
    FAULTS["constrained"][name] = type("Faulty", (faulty(Constrained, step, instead),),
                                       {"gives_logprobs": not logprobs})
FAULTS["constrained"]["masks of trees in flat order"] = type("TreesInOrder", (Trees,), {"in_order": True})
WORDS = {"state not rolled back": "state not rolled back over rejected drafts",
         "masks of trees in flat order": "masks of a tree by the order of its nodes, not along their paths",
         **{name: words for name, words, *_ in CONSTRAINED}}

if __name__ == "__main__":
    from draftproof.planted import table
    from draftproof.planted.__main__ import main

    table.FAULTS.update(FAULTS)
    sys.exit(main())
