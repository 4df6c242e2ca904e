"""The fourth set of faults of samplers and filters that were written without knowledge of the cases, the rules and the earlier faults."""

from __future__ import annotations

import numpy as np

from .blind_samplers import Ordered
from .faults import Filter, Sampler, hashed, set_where, uniform


def copied(params):
    return {name: np.array(value) for name, value in params.items()}


def unfiltered_rows(params):
    off = (params["top_k"] <= 0) & (params["top_p"] >= 1.0)
    return off & (params["min_p"] <= 0.0) if "min_p" in params else off


def without_min_p(params):
    return {name: value for name, value in params.items() if name != "min_p"}


def normalised(p):
    return p / p.sum(axis=1, keepdims=True)


# ---- parameters and rows

class GraphTopP(Sampler):
    def __init__(self):
        self.captured = {}

    def parameters(self, params):
        params = copied(params)
        params["top_p"] = self.captured.setdefault(len(params["top_p"]), params["top_p"])
        return params


class TopPNotCompacted(Sampler):
    def parameters(self, params):
        params = copied(params)
        rows = np.flatnonzero(params["temperature"] > 0.0)
        params["top_p"][rows] = params["top_p"][:len(rows)].copy()
        return params


class OneOffAllOff(Sampler):
    def parameters(self, params):
        params = copied(params)
        if (params["top_k"] <= 0).any():
            params["top_k"][:] = 0
        return params


class TailOfEight(Sampler):
    def parameters(self, params):
        params = copied(params)
        count = len(params["temperature"])
        if count > 8:
            tail = np.arange(count) >= count - count % 8
            for name, off in (("top_k", 0), ("top_p", 1.0), ("min_p", 0.0)):
                if name in params:
                    set_where(params, name, tail, off)
        return params


class TemperatureTwice(Sampler):
    def parameters(self, params):
        params = copied(params)
        return set_where(params, "temperature", params["top_k"] > 0, params["temperature"] ** 2)


class ZeroButTopP(Sampler):
    def parameters(self, params):
        params = copied(params)
        return set_where(params, "temperature", (params["temperature"] == 0.0) & (params["top_p"] < 1.0), 1.0)


class Candidates256(Sampler):
    def parameters(self, params):
        params = copied(params)
        return set_where(params, "top_k", (params["top_k"] <= 0) & (params["top_p"] < 1.0), 256)


# ---- random numbers, seeds, state

class NoiseOf256Rows(Sampler):
    def uniforms(self, seeds, count):
        return uniform(np.asarray(seeds, np.uint64)[np.arange(count) % 256], 1)


class Seed32(Sampler):
    def uniforms(self, seeds, count):
        return uniform(np.asarray(seeds, np.uint64) & np.uint64(0xFFFFFFFF), 1)


class Minstd(Sampler):
    def uniforms(self, seeds, count):
        modulus = np.uint64(2 ** 31 - 1)
        state = np.maximum(np.asarray(seeds, np.uint64) % modulus, np.uint64(1))
        return (state * np.uint64(16807) % modulus).astype(np.float64) / float(modulus)


class EverySecondCall(Sampler):
    def __init__(self):
        self.calls, self.noise = 0, np.zeros(0)

    def uniforms(self, seeds, count):
        u = uniform(seeds, 1)
        if self.calls % 2:
            held = min(count, len(self.noise))
            u[:held] = self.noise[:held]
        else:
            self.noise = u.copy()
        self.calls += 1
        return u


class WeylSlots(Sampler):
    def __init__(self):
        self.slots = np.zeros(0)

    def uniforms(self, seeds, count):
        held = min(count, len(self.slots))
        self.slots[:held] = (self.slots[:held] + 0.6180339887498949) % 1.0
        if count > held:
            self.slots = np.concatenate([self.slots, uniform(np.asarray(seeds)[held:], 1)])
        return self.slots[:count].copy()


# ---- drawing

class HalfRunningSum(Sampler):
    def tokens(self, p, u):
        total = np.cumsum(p.astype(np.float16), axis=1, dtype=np.float16).astype(np.float64)
        at = (total <= (u * total[:, -1])[:, None]).sum(axis=1)
        return np.minimum(at, p.shape[1] - 1).astype(np.int32)


class HalfGumbel(Sampler):
    def uniforms(self, seeds, count):
        return hashed(seeds, 1)

    def tokens(self, p, u):
        count, vocab = p.shape
        out = np.zeros(count, np.int32)
        step = max(1, (1 << 20) // vocab)
        for begin in range(0, count, step):
            part = p[begin:begin + step]
            bits = hashed(u[begin:begin + step, None], np.arange(vocab, dtype=np.uint64)[None, :]) >> np.uint64(53)
            noise = -np.log(-np.log((bits.astype(np.float32) + np.float32(0.5)) / np.float32(2048.0)))
            with np.errstate(divide="ignore"):
                out[begin:begin + step] = (np.log(part).astype(np.float32) + noise).argmax(axis=1)
        return out


class TileNoiseRepeats(Sampler):
    """argmax of logit + Gumbel noise where the noise of id j is that of j % 1024: of ids that share noise only the
    likeliest can win, so the law is the softmax over the likeliest of every residue."""

    TILE = 1024

    def probabilities(self, x, params):
        p = super().probabilities(x, params)
        count, vocab = p.shape
        if vocab <= self.TILE:
            return p
        tiles = -(-vocab // self.TILE)
        wide = np.full((count, tiles * self.TILE), -1.0)
        wide[:, :vocab] = p
        wide = wide.reshape(count, tiles, self.TILE)
        best = wide.argmax(axis=1)[:, None, :]
        only = np.zeros_like(wide)
        np.put_along_axis(only, best, np.take_along_axis(wide, best, axis=1), axis=1)
        return normalised(np.maximum(only.reshape(count, -1)[:, :vocab], 0.0))


class GivesUp(Sampler):
    ROUNDS = 32

    def probabilities(self, x, params):
        p = super().probabilities(x, params)
        if not self.filters(params):
            return p
        full = normalised(np.exp(self.scaled(x, params["temperature"].astype(np.float64))))
        mass = np.where(p > 0.0, full, 0.0).sum(axis=1)
        failed = np.clip(1.0 - mass, 0.0, 1.0) ** self.ROUNDS
        out = p * (1.0 - failed)[:, None]
        out[np.arange(len(p)), p.argmax(axis=1)] += failed
        return out


class RankForId(Sampler):
    def probabilities(self, x, params):
        p = super().probabilities(x, params)
        if self.filters(params):
            rows = np.flatnonzero(unfiltered_rows(params) & (params["temperature"] > 0.0))
            p[rows] = -np.sort(-p[rows], axis=1)
        return p


class Ids16(Sampler):
    def __call__(self, logits, params, seeds):
        tokens = super().__call__(logits, params, seeds)
        here = (np.asarray(params["top_k"]) > 0) & (np.asarray(params["temperature"]) > 0.0)
        return np.where(here, tokens & 0xFFFF, tokens).astype(np.int32)


# ---- kernels over the vocabulary, filters

class TileCandidates(Ordered):
    TILE, KEPT = 1024, 32

    def places(self, ranked, order, x, params):
        count, vocab = ranked.shape
        tiles = -(-vocab // self.TILE)
        scaled = np.full((count, tiles * self.TILE), -np.inf)
        np.put_along_axis(scaled, order, ranked, axis=1)
        least = np.partition(scaled.reshape(count, tiles, self.TILE), self.TILE - self.KEPT, axis=2)[:, :, self.TILE - self.KEPT]
        seen = ranked >= np.take_along_axis(least, order // self.TILE, axis=1)
        # places are counted among the candidates that the first stage handed on
        place = np.cumsum(seen, axis=1) - 1
        k = params["top_k"][:, None]
        keep = np.where(k > 0, seen & (place < k), True)
        return self.after_k(keep, ranked, params)


class MinPBeforeTemperature(Ordered):
    def places(self, ranked, order, x, params):
        keep = self.kept(ranked, without_min_p(params))
        if "min_p" not in params:
            return keep
        wide = x.astype(np.float64)
        ratio = np.exp(wide - wide.max(axis=1, keepdims=True))
        return keep & (np.take_along_axis(ratio, order, axis=1) >= params["min_p"][:, None])


class SignedKeys(Ordered):
    def keys(self, x, scaled, params):
        bits = np.ascontiguousarray(x, np.float32).view(np.int32).astype(np.float64)
        bits = np.where(np.isneginf(x), -np.inf, bits)
        return np.where((params["temperature"] > 0.0)[:, None], bits, scaled)


class MaskedTileForgets(Sampler):
    TILE = 1024

    def probabilities(self, x, params):
        p = super().probabilities(x, params)
        count, vocab = p.shape
        starts = np.arange(0, vocab, self.TILE)
        if len(starts) < 3:
            return p
        number = np.arange(len(starts))[None, :]
        masked = np.logical_and.reduceat(np.isneginf(x), starts, axis=1)
        last = np.where(np.add.reduceat(p, starts, axis=1) > 0.0, number, -1).max(axis=1, keepdims=True)
        from_tile = np.where(masked & (number < last), number + 1, 0).max(axis=1)
        rows = np.flatnonzero(from_tile)
        if len(rows):
            p[rows] = normalised(np.where(np.arange(vocab)[None, :] >= from_tile[rows, None] * self.TILE, p[rows], 0.0))
        return p


class PaddedWithZeros(Sampler):
    def probabilities(self, x, params):
        p = super().probabilities(x, params)
        pad = -p.shape[1] % 64
        temperature = params["temperature"].astype(np.float64)
        rows = np.flatnonzero(unfiltered_rows(params) & (temperature > 0.0))
        if not pad or not len(rows):
            return p
        top = x[rows].max(axis=1).astype(np.float64)
        p[rows, -1] += pad * np.exp(np.clip(-top / temperature[rows], -700.0, 60.0)) * p[rows].max(axis=1)
        p[rows] = normalised(p[rows])
        return p


class Bisection8(Sampler):
    ROUNDS = 8

    def keeps_p(self, p, top_p):
        low, high = np.zeros(len(p)), p[:, 0].copy()
        for _ in range(self.ROUNDS):
            middle = (low + high) / 2.0
            enough = np.where(p >= middle[:, None], p, 0.0).sum(axis=1) >= top_p
            low, high = np.where(enough, middle, low), np.where(enough, high, middle)
        keep = p >= low[:, None]
        keep[:, 0] = True
        return keep | (top_p >= 1.0)[:, None]


# ---- filters

class FilterMinPLog2(Filter):
    def kept(self, ranked, params):
        keep = super().kept(ranked, without_min_p(params))
        if "min_p" not in params:
            return keep
        with np.errstate(divide="ignore"):
            return keep & (ranked >= np.log2(params["min_p"].astype(np.float64))[:, None])


class FilterTopKBucket(Filter, Ordered):
    def places(self, ranked, order, x, params):
        bits = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.int64)
        bucket = np.where(bits >> 31 == 1, 0xFFFFFFFF - bits, bits + 0x80000000) >> 20
        bucket = np.take_along_axis(bucket, order, axis=1)
        vocab = ranked.shape[1]
        k = np.where((params["top_k"] <= 0) | (params["top_k"] > vocab), vocab, params["top_k"]).astype(np.int64)
        keep = bucket >= np.take_along_axis(bucket, k[:, None] - 1, axis=1)
        keep |= (k == vocab)[:, None]
        return self.after_k(keep, ranked, params)


class FilterStaleMask(Filter):
    def __init__(self):
        self.dropped = None

    def __call__(self, logits, params):
        out = super().__call__(logits, params)
        if not self.filters(params):
            return out
        off = unfiltered_rows(params)
        if self.dropped is None or self.dropped.shape != out.shape:
            self.dropped = np.zeros(out.shape, bool)
        rows = np.flatnonzero(~off)
        self.dropped[rows] = np.isneginf(out[rows]) & ~np.isneginf(np.asarray(logits)[rows])
        rows = np.flatnonzero(off & (params["temperature"] > 0.0))
        if len(rows):
            best = out[rows].argmax(axis=1)
            stale = self.dropped[rows]
            stale[np.arange(len(rows)), best] = False
            out[rows] = np.where(stale, -np.inf, out[rows])
        return out


class FilterNoCarry(Filter):
    TILE = 512

    def keeps_p(self, p, top_p):
        vocab = p.shape[1]
        before = np.cumsum(p, axis=1) - p
        starts = np.arange(vocab) // self.TILE * self.TILE
        keep = (before - before[:, starts] < top_p[:, None]) & (p > 0.0)
        keep[:, 0] = True
        return keep


class FilterNothingToDo(Filter):
    def __call__(self, logits, params):
        out = super().__call__(logits, params)
        if self.filters(params):
            return out
        return np.where((params["temperature"] > 0.0)[:, None], np.asarray(logits, np.float32), out)


class FilterTopKByte(Filter):
    def parameters(self, params):
        params = copied(params)
        params["top_k"] = np.where(params["top_k"] > 0, params["top_k"] & 255, params["top_k"])
        return params


TABLE = (
    ("sample", "top_p is that of the first call with this batch size", GraphTopP,
     "A CUDA graph captured per batch size holds the address of the top_p tensor of its capture. Acts from the second call of "
     "one instance with a batch size already seen and another top_p (values or row order); any V."),
    ("sample", "top_p is not compacted with the random rows", TopPNotCompacted,
     "Random rows are compacted out of a mixed batch, but top_p is read by the compacted index. Acts in batches with a greedy "
     "row ahead of random rows whose top_p differs."),
    ("sample", "one row without top_k turns top_k off for the batch", OneOffAllOff,
     "The skip test asks whether any row (rather than all) has top_k off. Acts in batches that mix top_k 0 and top_k > 0."),
    ("sample", "the last B % 8 rows have their filters off", TailOfEight,
     "Parameters are loaded in vectors of 8 rows and the tail keeps the defaults of the registers (top_k 0, top_p 1, min_p 0). "
     "Acts for B > 8 that is no multiple of 8, in the tail rows that have filters."),
    ("sample", "temperature is applied twice to rows with top_k", TemperatureTwice,
     "The fused top-k kernel scales the logits that the temperature kernel has already scaled. Acts in rows with top_k > 0 and "
     "a temperature other than 0 and 1."),
    ("sample", "temperature 0 with a top_p below 1 is random at temperature 1", ZeroButTopP,
     "do_sample is inferred from any sampling parameter and temperature 0 then replaced by 1 against division by zero. Acts in "
     "rows with temperature 0 and top_p < 1."),
    ("sample", "top_p without top_k looks at the 256 best candidates only", Candidates256,
     "A partial sort of a fixed candidate count stands before top_p when no top_k is given. Acts in rows with top_k 0, "
     "top_p < 1 and a nucleus of more than 256 tokens (flat rows, high temperatures, large V)."),
    ("sample", "rows beyond 256 take the noise of row b % 256", NoiseOf256Rows,
     "The noise buffer has the rows of the largest captured batch and is indexed modulo that. Acts for B > 256: rows b and "
     "b + 256 draw with the same uniform although their seeds differ."),
    ("sample", "only the low 32 bits of a seed count", Seed32,
     "The seed is narrowed to the 32 bits that mt19937 or a Triton kernel argument takes. Acts between requests or calls whose "
     "seeds differ in the high word only, such as (request << 32) + position."),
    ("sample", "the uniform is linear in the seed", Minstd,
     "The first output of a minimal-standard LCG (std::minstd_rand) seeded per request and step is used with no warm-up. Acts for "
     "seeds that are consecutive or close, as seed + step or base + row: their uniforms differ by 8e-6."),
    ("sample", "every second call uses the noise of the call before", EverySecondCall,
     "Noise is filled ahead into a double buffer whose flip is off by one, so each fill is consumed twice. Acts between calls 1 "
     "and 2, 3 and 4, ... of one instance, in rows both have."),
    ("sample", "the uniform of a slot moves by the golden ratio each call", WeylSlots,
     "A Weyl state per batch slot is seeded once and used with no output hash (a quasi-random generator for a pseudo-random "
     "one). Acts between calls of one instance: each marginal is right, but a row's draw follows from that of the call before."),
    ("sample", "the running sum of the probabilities is in float16", HalfRunningSum,
     "The inverse-CDF scan accumulates in the dtype of half logits, so small addends vanish against the sum. Acts in rows with "
     "many small probabilities: V of a thousand or more without narrow filters."),
    ("sample", "Gumbel noise has 11 random bits", HalfGumbel,
     "Gumbel noise is made from half-precision uniforms: it never exceeds 8.3 and ties go to the first id. Acts with flat rows "
     "or long tails over a thousand or more tokens: the tail behind a likely token is never drawn."),
    ("sample", "Gumbel noise repeats in each tile of 1024 tokens", TileNoiseRepeats,
     "The Triton kernel's Philox offset is the index in the tile, without the tile's start. Acts for V > 1024: of ids that are "
     "equal modulo 1024 only the likeliest is ever drawn."),
    ("sample", "rejection sampling gives up after 32 rounds for the likeliest token", GivesUp,
     "A sort-free sampler draws from the unfiltered row until the token passes the filters, with a limit on rounds. Acts where the "
     "filters keep little mass (below about 0.1: small top_k or top_p on flat rows, large V)."),
    ("sample", "the rank stands for the id in unfiltered rows of a filtered batch", RankForId,
     "All rows are sorted once any has a filter, and the map from rank to id is applied on the filters' branch only. Acts in "
     "random rows without filters in a batch where another row has one."),
    ("sample", "ids of top_k candidates are kept in 16 bits", Ids16,
     "The candidate buffer packs ids as uint16. Acts for V > 65536 in random rows with top_k > 0: id modulo 65536 comes out."),
    ("sample", "two-stage top_k keeps 32 candidates of each tile of 1024", TileCandidates,
     "The first stage hands on a fixed number of candidates per tile, whatever k is. Acts for top_k > 32 where more than 32 of "
     "the top k are in one tile of 1024 ids: V up to about 2048, larger k, or likely tokens clustered in id."),
    ("sample", "min_p compares probabilities from before the temperature", MinPBeforeTemperature,
     "The min_p threshold is taken as max + log(min_p) on raw logits. Acts in rows with min_p > 0 and a temperature away from 1."),
    ("sample", "the sort takes float bits as signed integers", SignedKeys,
     "The radix sort's key lacks the flip for negative floats, so negative logits sort in reverse below the positive ones. Acts "
     "in filtered rows whose cut falls among negative logits (all logits negative, as with log-probabilities, or large k)."),
    ("sample", "a fully masked tile forgets the tiles before it", MaskedTileForgets,
     "Online softmax over tiles of 1024: with a tile all -inf the rescaling of the running sum is exp(-inf - -inf), NaN, taken as 0. "
     "Acts for V > 2048 with a tile wholly masked (grammar masks) between tiles that have allowed tokens."),
    ("sample", "the vocabulary is padded to a multiple of 64 by logits of 0", PaddedWithZeros,
     "Padding columns hold 0 instead of -inf and a draw in them is clamped to id V - 1. Acts in random rows without filters, V no "
     "multiple of 64, when the largest logit is not far above 0 (small V, negative logits, high temperature)."),
    ("sample", "top_p is found by 8 rounds of bisection on the probability", Bisection8,
     "A sort-free top_p bisects the threshold in [0, max p] and stops at a resolution of max p / 256. Acts with top_p < 1 where "
     "the cut lies below that: a likely token with a long tail, V of hundreds or more."),
    ("filter", "min_p's threshold takes the logarithm of base 2", FilterMinPLog2,
     "Kernels in base-2 exponentials compare natural logits with max + log2(min_p). Acts with 0 < min_p < 1: tokens down to "
     "min_p ** 1.44 of the largest stay."),
    ("filter", "top_k keeps the whole radix bucket of the k-th logit", FilterTopKBucket,
     "The radix select stops after one pass over the upper 12 bits of the float and keeps that bucket. Acts with top_k > 0: "
     "logits within about 1/8 of the k-th in size stay too."),
    ("filter", "unfiltered rows keep the mask of an earlier call", FilterStaleMask,
     "The mask buffer lives across calls and only rows with filters write to it, while all rows are masked by it. Acts in a call "
     "with mixed rows, for an unfiltered row whose slot had filters in an earlier call of the same shape."),
    ("filter", "the scan for top_p has no carry between tiles of 512", FilterNoCarry,
     "A block scan over the sorted probabilities restarts from 0 in each tile. Acts with top_p < 1 and more than 512 tokens left "
     "by top_k: later tiles stay up to their own sum of top_p."),
    ("filter", "with no filters in the batch logits return without the temperature", FilterNothingToDo,
     "An early exit for nothing to filter stands before the division by the temperature. Acts if no row of the batch has a "
     "filter, in rows with a temperature other than 1."),
    ("filter", "top_k is kept in a byte", FilterTopKByte,
     "The packed parameter block stores k as uint8: 256 is off, 300 is 44. Acts with top_k of 256 and more."),
)
