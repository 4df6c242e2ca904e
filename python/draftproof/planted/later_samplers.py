"""Faults of samplers and filters that were written without knowledge of the cases, the rules and the earlier faults: the fourth set, and what is new in the fifth."""

from __future__ import annotations

import numpy as np

from .blind_samplers import Ordered
from .faults import Filter, Sampler, copied, hashed, set_where, shifted, uniform


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


# Faults of the fifth set that no earlier one has.

def tiled(x, size, fill):
    """[B, V] -> [B, tiles, size], the tail filled."""
    rows, vocab = x.shape
    tiles = -(-vocab // size)
    out = np.full((rows, tiles * size), fill, x.dtype)
    out[:, :vocab] = x
    return out.reshape(rows, tiles, size)


class ChunkParameters(Sampler):
    def parameters(self, params):
        rows = np.arange(len(params["temperature"]))
        return shifted(copied(params), rows, rows % 256)


class StaleParameters(Sampler):
    uploaded = None

    def parameters(self, params):
        key = np.asarray(params["temperature"]).tobytes()
        if self.uploaded is None or self.uploaded[0] != key or set(self.uploaded[1]) != set(params):
            self.uploaded = (key, copied(params))
        return copied(self.uploaded[1])


class WrongUnpermute(Sampler):
    def __call__(self, logits, params, seeds):
        params = copied(params)
        kind = (params["top_k"] > 0) * 1 + (params["top_p"] < 1.0) * 2
        kind[params["temperature"] == 0.0] = -1
        order = np.argsort(kind, kind="stable")
        sampled = super().__call__(np.asarray(logits)[order], shifted(params, None, order), np.asarray(seeds)[order])
        return sampled[order]


class MasksStay(Sampler):
    masked = None

    def __call__(self, logits, params, seeds):
        rows = np.array(logits)
        before, self.masked = self.masked, np.isneginf(rows)
        if before is not None and before.shape == rows.shape:
            both = before | self.masked
            rows[both & ~both.all(axis=1, keepdims=True)] = -np.inf
        return super().__call__(rows, params, seeds)


class WrappedUniforms(Sampler):
    def uniforms(self, seeds, count):
        return uniform(np.asarray(seeds)[np.arange(count) % 1024], 1)


class UnmixedLcg(Sampler):
    def uniforms(self, seeds, count):
        low = np.uint64(2 ** 48 - 1)
        with np.errstate(over="ignore"):
            state = ((np.asarray(seeds, np.uint64) ^ np.uint64(0x5DEECE66D)) * np.uint64(0x5DEECE66D) + np.uint64(0xB)) & low
        return (state >> np.uint64(16)).astype(np.float64) * 2.0 ** -32


class OnlineSumNotRescaled(Sampler):
    def tokens(self, p, u):
        tiles = tiled(p, 1024, 0.0)
        running = np.maximum.accumulate(tiles.max(axis=2), axis=1)
        factor = running[:, -1:] / np.where(running > 0.0, running, 1.0)
        with np.errstate(over="ignore"):
            wrong = np.minimum((tiles.sum(axis=2) * factor).sum(axis=1), 1e30)
        total = np.cumsum(p, axis=1)
        at = (total <= (u * np.maximum(wrong, total[:, -1]))[:, None]).sum(axis=1)
        same = wrong <= total[:, -1] * (1.0 + 1e-9)
        exact = super().tokens(p, u) if same.any() else at
        last = p.shape[1] - 1 - (p[:, ::-1] > 0.0).argmax(axis=1)
        return np.where(same, exact, np.minimum(at, last)).astype(np.int32)


class LastKeptUnreachable(Sampler):
    def probabilities(self, x, params):
        p = super().probabilities(x, params)
        if not self.filters(params):
            return p
        order = np.argsort(-p, axis=1, kind="stable")
        count = (p > 0.0).sum(axis=1)
        rows = np.flatnonzero(count > 1)
        last, before = order[rows, count[rows] - 1], order[rows, count[rows] - 2]
        p[rows, before] += p[rows, last]
        p[rows, last] = 0.0
        return p


class MaskedTileEnds(Sampler):
    def probabilities(self, x, params):
        live = tiled(x, 1024, -np.inf).max(axis=2) > -np.inf
        begun = np.logical_or.accumulate(live, axis=1)
        ended = np.logical_or.accumulate(begun & ~live, axis=1)
        if ended.any():
            x = np.where(np.repeat(ended, 1024, axis=1)[:, :x.shape[1]], -np.inf, x).astype(x.dtype)
        return super().probabilities(x, params)


class CoarseRadixTopK(Filter):
    def probabilities(self, x, params):
        k = np.asarray(params["top_k"])
        rows = np.flatnonzero((k > 0) & (k < x.shape[1]) & (np.asarray(params["temperature"]) > 0.0))
        if len(rows):
            with np.errstate(over="ignore"):
                bits = x[rows].astype(np.float16).view(np.uint16)
            key = np.where(bits & 0x8000, ~bits, bits | np.uint16(0x8000)).astype(np.uint16) >> np.uint16(5)
            order = np.argsort(-key.astype(np.int32), axis=1, kind="stable")
            keep = np.zeros(key.shape, bool)
            np.put_along_axis(keep, order, np.arange(x.shape[1])[None, :] < k[rows, None], axis=1)
            lost = ~(keep & (x[rows] > -np.inf)).any(axis=1)
            keep[lost] = True
            x = x.copy()
            x[rows] = np.where(keep, x[rows], -np.inf)
        return super().probabilities(x, params)


class EightOfTile(Filter):
    def probabilities(self, x, params):
        k = np.asarray(params["top_k"])
        rows = np.flatnonzero((k > 0) & (k < x.shape[1]))
        if len(rows) and x.shape[1] > 1024:
            tiles = tiled(x[rows], 1024, -np.inf)
            least = np.partition(tiles, 1024 - 8, axis=2)[:, :, 1024 - 8]
            best = np.where(tiles >= least[:, :, None], tiles, -np.inf).reshape(len(rows), -1)
            x = x.copy()
            x[rows] = best[:, :x.shape[1]]
        return super().probabilities(x, params)


class MinPLogBase(Filter):
    def kept(self, ranked, params):
        rest = {name: value for name, value in params.items() if name != "min_p"}
        keep = super().kept(ranked, rest)
        if "min_p" not in params:
            return keep
        with np.errstate(divide="ignore"):
            least = np.log(np.asarray(params["min_p"], np.float64))
        return keep & (ranked * np.log2(np.e) >= least[:, None])


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
    ("sample", "rows past the first chunk of 256 read the parameters of the first chunk", ChunkParameters,
     "To save memory the batch is sampled in chunks of 256 rows; the logits are sliced and the parameter tensors are not. "
     "Acts when B > 256 and parameters differ between rows 256 apart."),
    ("sample", "filter parameters are uploaded again only when a temperature changed", StaleParameters,
     "The cache of device parameters is keyed on the temperatures alone, so that a new batch with equal temperatures runs "
     "with the last batch's top_k, top_p and min_p. Acts from the second call of one sampler."),
    ("sample", "rows sorted by path are put back by the permutation and not by its inverse", WrongUnpermute,
     "Rows are grouped (greedy, plain, top-k, top-p) for specialised kernels, and the tokens are put back with order instead of "
     "argsort(order). Acts in batches that mix the groups so that the permutation is not its own inverse."),
    ("sample", "rows 1024 apart share their random number", WrappedUniforms,
     "The buffer of random numbers has 1024 places, indexed by row % 1024. Acts for B > 1024: rows b and b + 1024 are dependent."),
    ("sample", "neighbouring seeds give almost the same first random number", UnmixedLcg,
     "The generator is a 48-bit LCG whose first output is used without mixing the seed; seeds one apart give numbers 9e-5 apart. "
     "Acts where requests or steps are seeded base + i."),
    ("sample", "the online softmax does not rescale its sum when the maximum grows", OnlineSumNotRescaled,
     "Tile sums are added under the maximum known then, the later pass uses the final one; the total is too large and the draws past the end "
     "fall on the last token. Acts for V > 1024 when the largest logit is not in the first tile."),
    ("sample", "the search over the sorted tokens never ends on the last kept one", LastKeptUnreachable,
     "The binary search of the prefix sums has its upper bound one too low, so the least of the kept tokens gives its mass to the one before. "
     "Acts in filtered batches with few tokens kept (top_k = 2 to 20)."),
    ("sample", "a wholly masked tile ends the walk over the vocabulary", MaskedTileEnds,
     "A tile of 1024 with maximum -inf is taken for the padding at the end once something was found, and the loop leaves. Acts for V > 1024 under masks "
     "of a grammar or of allowed tokens that empty a tile in the middle."),
    ("filter", "radix top-k stops after the first digit of 11 bits", CoarseRadixTopK,
     "The places left in the bucket at the cut are filled by index, not by value, as the later digits are skipped. Acts when more tokens share the bucket "
     "(about 3 percent of the logit wide) than places are left."),
    ("filter", "every tile of 1024 hands at most 8 candidates to the top-k merge", EightOfTile,
     "The first stage of a two-stage top-k has a fixed list of 8 per block whatever k is. Acts for V > 1024 and top_k > 8 when more than 8 of the best tokens "
     "lie in a tile."),
    ("filter", "min-p compares base-2 logits with a natural logarithm", MinPLogBase,
     "Logits were multiplied by log2(e) for exp2, the threshold is ln(min_p): min_p acts as min_p ** 0.69. Acts for min_p between 0 and 1."),
    ("sample", "tokens masked in the call before stay masked", MasksStay,
     "The mask's buffer is or-ed with the next step's and not cleared. Acts on the second of two calls of one shape whose masks differ."),
)
