"""Faults of samplers and filters that were written without knowledge of the cases of audit_callable, from what engines have had. Ordered is a
Sampler with more steps to replace."""

from __future__ import annotations

import numpy as np

from .faults import Filter, Sampler, bfloat16, copied, hashed, set_where, uniform, with_parameters


class Ordered(Sampler):
    """Sampler with the sort's keys and the kept places as hooks that also see the logits and the order."""

    def keys(self, x, scaled, params):
        return scaled

    def places(self, ranked, order, x, params):
        return self.kept(ranked, params)

    def probabilities(self, x, params):
        params = self.parameters(params)
        scaled = self.scaled(x, params["temperature"].astype(np.float64))
        if not self.filters(params):
            p = np.exp(scaled)
            return p / p.sum(axis=1, keepdims=True)
        order = np.argsort(-self.keys(x, scaled, params), axis=1, kind="stable")
        ranked = np.take_along_axis(scaled, order, axis=1)
        with np.errstate(invalid="ignore"):
            p = np.where(self.places(ranked, order, x, params), np.exp(ranked), 0.0)
        lost = np.flatnonzero(p.sum(axis=1) == 0.0)
        if len(lost):
            one_hot(p, lost, ranked[lost].argmax(axis=1))
        out = np.zeros_like(p)
        np.put_along_axis(out, order, p / p.sum(axis=1, keepdims=True), axis=1)
        return out

    def after_k(self, keep, ranked, params):
        """top-p and min-p, as in the base, over the places that `keep` left."""
        p = np.where(keep, np.exp(ranked), 0.0)
        p /= p.sum(axis=1, keepdims=True)
        keep = keep & self.keeps_p(p, params["top_p"])
        return keep & (p >= params["min_p"][:, None] * p[:, :1]) if "min_p" in params else keep


def random_rows(params):
    return np.asarray(params["temperature"]) > 0.0


class TailOfVocabulary(Sampler):
    def __call__(self, logits, params, seeds):
        x = np.array(logits)
        if x.shape[1] > 1024:
            x[:, x.shape[1] // 1024 * 1024:] = -np.inf
        with np.errstate(invalid="ignore"):
            return super().__call__(x, params, seeds)


class PaddedWithZeros(Sampler):
    def __call__(self, logits, params, seeds):
        x = np.asarray(logits, np.float32)
        extra = -x.shape[1] % 64
        if extra:
            pad = np.where(random_rows(params), 0.0, -np.inf).astype(np.float32)
            x = np.concatenate([x, np.repeat(pad[:, None], extra, axis=1)], axis=1)
        return np.minimum(super().__call__(x, params, seeds), np.shape(logits)[1] - 1).astype(np.int32)


class NoiseSharedByTiles(Sampler):
    """Gumbel noise is the same for tokens 1024 apart: of such tokens the likeliest alone can win, with its own weight."""

    def probabilities(self, x, params):
        p = super().probabilities(x, params)
        rows, vocab = p.shape
        if vocab <= 1024:
            return p
        tiles = np.pad(p, ((0, 0), (0, -vocab % 1024))).reshape(rows, -1, 1024)
        best = np.arange(tiles.shape[1])[None, :, None] == tiles.argmax(axis=1)[:, None, :]
        p = np.where(best, tiles, 0.0).reshape(rows, -1)[:, :vocab]
        return p / p.sum(axis=1, keepdims=True)


class CandidatesPerTile(Ordered):
    TILE, LIMIT = 4096, 16

    def places(self, ranked, order, x, params):
        rows, vocab = ranked.shape
        if vocab <= self.TILE:
            return self.kept(ranked, params)
        keep = self.keeps_k(ranked, params["top_k"])
        for row in np.flatnonzero(params["top_k"] > 0):
            tile = (order[row] // self.TILE).astype(np.uint8)
            by_tile = np.argsort(tile, kind="stable")
            place = np.empty(vocab, np.int64)
            place[by_tile] = np.arange(vocab) % self.TILE
            candidate = place < self.LIMIT
            keep[row] = candidate & (np.cumsum(candidate) <= params["top_k"][row])
        return self.after_k(keep, ranked, params)


Rows1024 = with_parameters(lambda params, rows: {name: value[rows % 1024] for name, value in params.items()})


def _no_min_p(params, rows):
    if "min_p" in params and len(rows) > 512:
        params["min_p"][:] = 0.0
    return params


MinPBigBatch = with_parameters(_no_min_p)


def _one_top_p(params, rows):
    if (params["top_k"] == params["top_k"][0]).all():
        params["top_p"][:] = params["top_p"][0]
    return params


SharedKSharesP = with_parameters(_one_top_p)


def _compacted(params, rows):
    chosen = np.flatnonzero(params["temperature"] > 0.0)
    for name in ("top_k", "top_p", "min_p"):
        if name in params:
            params[name][chosen] = params[name][:len(chosen)].copy()
    return params


CompactedRows = with_parameters(_compacted)


def _greedy_at_one(params, rows):
    greedy = params["temperature"] == 0.0
    return params if greedy.all() else set_where(params, "temperature", greedy, 1.0)


GreedyAmongRandom = with_parameters(_greedy_at_one)


def _previous_k(params, rows):
    params["top_k"] = np.roll(params["top_k"], 1)
    return params


PreviousRowsK = with_parameters(_previous_k)


class PartialWarpStale(Sampler):
    """Rows of the last, partial group of 32 are not written: the output buffer's old content comes back."""

    def __init__(self):
        self.buffer = np.zeros(0, np.int32)

    def __call__(self, logits, params, seeds):
        tokens = super().__call__(logits, params, seeds)
        rows, vocab = np.shape(logits)
        if len(self.buffer) < rows:
            self.buffer = np.concatenate([self.buffer, np.zeros(rows - len(self.buffer), np.int32)])
        written = rows if rows < 32 else rows // 32 * 32
        self.buffer[:written] = tokens[:written]
        return np.minimum(self.buffer[:rows], vocab - 1).astype(np.int32)


FloorTemperature = with_parameters(lambda params, rows: set_where(
    params, "temperature", (params["temperature"] > 0.0) & (params["temperature"] < 0.01), 0.01))

CapTemperature = with_parameters(lambda params, rows: set_where(params, "temperature", params["temperature"] > 2.0, 2.0))


class BfloatLogits(Sampler):
    def scaled(self, x, temperature):
        greedy = temperature == 0.0
        if greedy.all():
            return super().scaled(x, temperature)
        with np.errstate(over="ignore"):
            wide = x / np.where(greedy, 1.0, temperature).astype(np.float32)[:, None]
        wide = bfloat16(np.where(wide < np.float32(-3e38), -np.inf, np.minimum(wide, np.float32(3e38)))).astype(np.float64)
        out = wide - wide.max(axis=1, keepdims=True)
        if greedy.any():
            out[greedy] = super().scaled(x[greedy], temperature[greedy])
        return out


class HalfCumsum(Sampler):
    def keeps_p(self, p, top_p):
        total = np.cumsum(p.astype(np.float16), axis=1, dtype=np.float16)
        keep = np.ones(p.shape, bool)
        keep[:, 1:] = total[:, :-1] < top_p[:, None]
        keep[top_p >= 1.0] = True
        return keep


class ExpSaturates(Sampler):
    """exp of the scaled logit itself, not of its distance from the largest; saturates where float32 would overflow."""

    def scaled(self, x, temperature):
        out = super().scaled(x, temperature)
        rows = np.flatnonzero(temperature > 0.0)
        if len(rows):
            wide = np.minimum(x[rows].astype(np.float64) / temperature[rows, None], 88.0)
            out[rows] = wide - wide.max(axis=1, keepdims=True)
        return out


class ClampedProbabilities(Sampler):
    def probabilities(self, x, params):
        p = super().probabilities(x, params)
        rows = random_rows(params)
        p[rows] = np.maximum(p[rows], 1e-5)
        return p / p.sum(axis=1, keepdims=True)


class MaskIsMinus100(Sampler):
    def __call__(self, logits, params, seeds):
        x = np.asarray(logits)
        x = np.where((x == -np.inf) & random_rows(params)[:, None], np.float32(-100.0), x)
        return super().__call__(x, params, seeds)


class HalfUniform(Sampler):
    def uniforms(self, seeds, count):
        return np.floor(super().uniforms(seeds, count) * 2048.0) / 2048.0


class Seeds32(Sampler):
    def uniforms(self, seeds, count):
        return uniform(np.asarray(seeds, np.uint64) & np.uint64(0xFFFFFFFF), 1)


class SeedsSaturate(Sampler):
    def uniforms(self, seeds, count):
        return uniform(np.minimum(np.asarray(seeds, np.uint64), np.uint64(2 ** 63 - 1)), 1)


class SeedXorRow(Sampler):
    def uniforms(self, seeds, count):
        return uniform(np.asarray(seeds, np.uint64) ^ np.arange(count, dtype=np.uint64), 1)


class SeedsOfFirstChunk(Sampler):
    def uniforms(self, seeds, count):
        return uniform(np.asarray(seeds, np.uint64)[np.arange(count) % 128], 1)


class UniformsKept(Sampler):
    buffer = None

    def uniforms(self, seeds, count):
        if self.buffer is None or len(self.buffer) != count:
            self.buffer = super().uniforms(seeds, count)
        return self.buffer


class SecondOfBlock(Sampler):
    """Search within the picked block of 256 begins at the block's second token."""

    def __call__(self, logits, params, seeds):
        at = super().__call__(logits, params, seeds)
        vocab = np.shape(logits)[1]
        wrong = (at > 0) & (at % 256 == 0) & (at + 1 < vocab) & random_rows(params)
        return np.where(wrong, at + 1, at).astype(np.int32)


class RejectionReusesUniform(Sampler):
    """top-p by rejection from the whole softmax: a rejected token's probability is the pivot of the next round, which
    reuses the round's uniform."""

    def __call__(self, logits, params, seeds):
        x = np.asarray(logits)
        final = self.probabilities(x, dict(params))
        u = self.uniforms(seeds, len(x))
        out = self.tokens(final, u)
        rows = np.flatnonzero(random_rows(params) & (params["top_p"] < 1.0) & (params["top_k"] <= 0))
        if len(rows) == 0:
            return out
        whole = np.exp(self.scaled(x[rows], np.asarray(params["temperature"])[rows].astype(np.float64)))
        keep, w = final[rows] > 0.0, whole.copy()
        left = np.arange(len(rows))
        for _ in range(32):
            token = self.tokens(w[left], u[rows[left]])
            good = keep[left, token]
            out[rows[left[good]]] = token[good]
            left, token = left[~good], token[~good]
            if len(left) == 0:
                break
            pivot = whole[left, token]
            w[left] = np.where((whole[left] > pivot[:, None]) | keep[left], whole[left], 0.0)
        return out


class NotRenormalised(Sampler):
    def probabilities(self, x, params):
        params = self.parameters(params)
        scaled = self.scaled(x, params["temperature"].astype(np.float64))
        p = np.exp(scaled)
        p /= p.sum(axis=1, keepdims=True)
        if not self.filters(params):
            return p
        order = np.argsort(-scaled, axis=1, kind="stable")
        keep = self.kept(np.take_along_axis(scaled, order, axis=1), params)
        ranked = np.where(keep, np.take_along_axis(p, order, axis=1), 0.0)
        last = keep.shape[1] - 1 - (ranked > 0.0)[:, ::-1].argmax(axis=1)
        ranked[np.arange(len(p)), last] += 1.0 - ranked.sum(axis=1)
        out = np.zeros_like(p)
        np.put_along_axis(out, order, ranked, axis=1)
        return out


class CrossingDropped(Sampler):
    def keeps_p(self, p, top_p):
        keep = (np.cumsum(p, axis=1) <= top_p[:, None]) | (top_p >= 1.0)[:, None]
        keep[:, 0] = True
        return keep


def _largest_k(params, rows):
    return set_where(params, "top_k", params["top_k"] <= 0, max(0, int(params["top_k"].max())))


OffRowsCutToLargestK = with_parameters(_largest_k)


class KUnderVocabulary(Sampler):
    def keeps_k(self, ranked, top_k):
        return super().keeps_k(ranked, np.where(top_k > 0, np.minimum(top_k, max(1, ranked.shape[1] - 1)), top_k))


class MinPOfRenormalised(Sampler):
    def kept(self, ranked, params):
        keep = self.keeps_k(ranked, params["top_k"])
        p = np.where(keep, np.exp(ranked), 0.0)
        p /= p.sum(axis=1, keepdims=True)
        keep &= self.keeps_p(p, params["top_p"])
        if "min_p" in params:
            top = p[:, :1] / np.where(keep, p, 0.0).sum(axis=1, keepdims=True)
            keep &= p >= params["min_p"][:, None] * top
            keep[:, 0] = True
        return keep


class MinPAlone(Sampler):
    @staticmethod
    def filters(params):
        return bool((params["top_k"] > 0).any() or (params["top_p"] < 1.0).any())


class StaleParameters(Sampler):
    """top_k and top_p on the device are refreshed when the batch's size or the temperatures change."""

    last = None

    def parameters(self, params):
        key = np.array(params["temperature"])
        if self.last is None or not np.array_equal(self.last[0], key):
            self.last = key, np.array(params["top_k"]), np.array(params["top_p"])
        params["top_k"], params["top_p"] = self.last[1:]
        return params


class GreedyGraph(Sampler):
    """The way taken without filters is remembered for a batch size from the first all-greedy call of that size on."""

    def __init__(self):
        self.sizes = set()

    def parameters(self, params):
        rows = len(params["temperature"])
        if not random_rows(params).any():
            self.sizes.add(rows)
        elif rows in self.sizes:
            params["top_k"], params["top_p"] = np.zeros_like(params["top_k"]), np.ones_like(params["top_p"])
            if "min_p" in params:
                params["min_p"] = np.zeros_like(params["min_p"])
        return params


class FilterElseIf(Filter):
    def parameters(self, params):
        params["top_p"] = np.where(params["top_k"] > 0, 1.0, params["top_p"]).astype(np.float32)
        return params


class FilterCandidates256(Filter):
    def kept(self, ranked, params):
        keep = super().kept(ranked, params)
        keep[(params["top_k"] <= 0) & (params["top_p"] < 1.0), 256:] = False
        return keep


class FilterTiesDropped(Filter):
    def keeps_k(self, ranked, top_k):
        vocab = ranked.shape[1]
        on = (top_k > 0) & (top_k < vocab)
        bound = ranked[np.arange(len(ranked)), np.where(on, top_k, 0)]
        keep = (ranked > bound[:, None]) | ~on[:, None]
        keep[:, 0] = True
        return keep


class FilterIndex16(Filter):
    def probabilities(self, x, params):
        p = super().probabilities(x, params)
        if p.shape[1] <= 65536 or not self.filters(params):
            return p
        rows, tokens = np.nonzero(p)
        out = np.zeros_like(p)
        out[rows, tokens & 0xFFFF] = 1.0
        return out


class FilterStaleMask(Filter):
    """The mask of dropped tokens is cleared when its shape changes only."""

    dropped = None

    def probabilities(self, x, params):
        p = super().probabilities(x, params)
        dropped = p <= 0.0
        if self.dropped is not None and self.dropped.shape == dropped.shape:
            dropped |= self.dropped
        self.dropped = dropped
        best = p.argmax(axis=1)
        out = np.where(dropped, 0.0, p)
        out[np.arange(len(p)), best] = 1.0
        return out


class FilterMaskedSkipK(Filter):
    def probabilities(self, x, params):
        params["top_k"] = np.where((x == -np.inf).any(axis=1), 0, params["top_k"]).astype(np.int32)
        return super().probabilities(x, params)


class FilterBfloatKeys(Ordered, Filter):
    def keys(self, x, scaled, params):
        return np.where(scaled == -np.inf, -np.inf, bfloat16(x).astype(np.float64))


class FilterTwiceScaled(Filter):
    def __call__(self, logits, params):
        out = super().__call__(logits, params)
        again = random_rows(params) & (np.asarray(params["top_k"]) > 0)
        t = np.where(again, params["temperature"], 1.0).astype(np.float32)
        return (out / t[:, None]).astype(np.float32)


def one_hot(p, rows, tokens):
    p[rows] = 0.0
    p[rows, tokens] = 1.0


class RowsAlignedDown(Sampler):
    """16-byte loads: a row's address is rounded down to a multiple of four elements."""

    def probabilities(self, x, params):
        rows, vocab = x.shape
        if vocab % 4 and rows > 1:
            flat = np.ascontiguousarray(x).ravel()
            begin = np.arange(rows, dtype=np.int64) * vocab // 4 * 4
            moved = flat[begin[:, None] + np.arange(vocab)]
            dead = (moved == -np.inf).all(axis=1)
            x = np.where(dead[:, None], x, moved)
        return super().probabilities(x, params)


class FlatIndexFloat32(Sampler):
    def __call__(self, logits, params, seeds):
        at = super().__call__(logits, params, seeds)
        rows, vocab = np.shape(logits)
        base = np.arange(rows, dtype=np.int64) * vocab
        return np.clip((base + at).astype(np.float32).astype(np.int64) - base, 0, vocab - 1).astype(np.int32)


class GreedyFirst32Tiles(Sampler):
    def scaled(self, x, temperature):
        out = super().scaled(x, temperature)
        rows = np.flatnonzero(temperature == 0.0)
        if x.shape[1] > 32 * 1024 and len(rows):
            best = x[rows, :32 * 1024].argmax(axis=1)
            out[rows] = -np.inf
            out[rows, best] = 0.0
        return out


class GreedyMaximumFromZero(Sampler):
    def scaled(self, x, temperature):
        out = super().scaled(x, temperature)
        rows = np.flatnonzero(temperature == 0.0)
        rows = rows[x[rows].max(axis=1, initial=-np.inf) <= 0.0]
        out[rows] = -np.inf
        out[rows, 0] = 0.0
        return out


class MinPOfFirstTile(Ordered):
    def places(self, ranked, order, x, params):
        keep = self.keeps_k(ranked, params["top_k"])
        p = np.where(keep, np.exp(ranked), 0.0)
        p /= p.sum(axis=1, keepdims=True)
        keep &= self.keeps_p(p, params["top_p"])
        if "min_p" in params:
            keep &= p >= params["min_p"][:, None] * np.where(order < 1024, p, 0.0).max(axis=1, keepdims=True)
        return keep


class MaskedTileIsNaN(Sampler):
    TILE = 1024

    def probabilities(self, x, params):
        p = super().probabilities(x, params)
        if x.shape[1] > self.TILE:
            tops = np.maximum.reduceat(x, np.arange(0, x.shape[1], self.TILE), axis=1)
            rows = np.flatnonzero((tops == -np.inf).any(axis=1) & random_rows(params))
            one_hot(p, rows, 0)
        return p


class TileSumsBeforeFilters(Sampler):
    """The tile is drawn by its mass before the filters, the token within it by what they left."""

    TILE = 1024

    def probabilities(self, x, params):
        p = super().probabilities(x, params)
        if x.shape[1] <= self.TILE or not self.filters(params):
            return p
        starts = np.arange(0, x.shape[1], self.TILE)
        whole = np.add.reduceat(np.exp(self.scaled(x, np.asarray(params["temperature"], np.float64))), starts, axis=1)
        left = np.add.reduceat(p, starts, axis=1)
        ratio = np.where(left > 0.0, whole, 0.0) / np.where(left > 0.0, left, 1.0)
        p *= np.repeat(ratio, self.TILE, axis=1)[:, :x.shape[1]]
        return p / p.sum(axis=1, keepdims=True)


class ExpByTable(Sampler):
    def scaled(self, x, temperature):
        return np.floor(super().scaled(x, temperature) * 4.0) / 4.0


class ExpFlushed(Sampler):
    def scaled(self, x, temperature):
        out = super().scaled(x, temperature)
        out[out < -14.0 * np.log(2.0)] = -np.inf
        return out


class TemperatureAfterNoise(Sampler):
    """argmax of (logit + Gumbel noise) / temperature: the draw is at temperature 1, over what the filters left."""

    def probabilities(self, x, params):
        p = super().probabilities(x, params)
        rows = np.flatnonzero(random_rows(params))
        wide = x[rows].astype(np.float64)
        kept = np.where(p[rows] > 0.0, np.exp(wide - wide.max(axis=1, keepdims=True)), 0.0)
        p[rows] = kept / kept.sum(axis=1, keepdims=True)
        return p


def _skipped_by_first(params, rows):
    if params["temperature"][0] == 1.0:
        params["temperature"][params["temperature"] > 0.0] = 1.0
    return params


TemperatureSkippedByFirst = with_parameters(_skipped_by_first)


class SingleRowFiltersFirst(Sampler):
    def kept(self, ranked, params):
        t = np.asarray(params["temperature"], np.float64)
        if len(ranked) == 1 and t[0] > 0.0:
            ranked = ranked * t[0]
        return super().kept(ranked, params)


class TopPEightHalvings(Sampler):
    def keeps_p(self, p, top_p):
        keep = super().keeps_p(p, top_p)
        rows = np.flatnonzero(top_p < 1.0)
        if len(rows):
            q, want = p[rows], np.asarray(top_p, np.float64)[rows]
            total, low, high = np.cumsum(q, axis=1), np.zeros(len(rows)), q[:, 0].copy()
            for _ in range(8):
                mid = (low + high) / 2.0
                count = (q >= mid[:, None]).sum(axis=1)
                enough = total[np.arange(len(rows)), count - 1] >= want
                low, high = np.where(enough, mid, low), np.where(enough, high, mid)
            keep[rows] = q >= low[:, None]
        return keep


class TopPSumRestarts(Sampler):
    BLOCK = 1024

    def keeps_p(self, p, top_p):
        vocab = p.shape[1]
        if vocab <= self.BLOCK:
            return super().keeps_p(p, top_p)
        blocks = np.pad(p, ((0, 0), (0, -vocab % self.BLOCK))).reshape(len(p), -1, self.BLOCK)
        before = np.cumsum(blocks, axis=2) - blocks
        keep = before.reshape(len(p), -1)[:, :vocab] < top_p[:, None]
        keep[:, 0] = True
        return keep


class TopPOneMore(Sampler):
    def keeps_p(self, p, top_p):
        keep = super().keeps_p(p, top_p)
        more = keep.copy()
        more[:, 1:] |= keep[:, :-1] & (top_p > 0.0)[:, None]
        return more


class RemovedFromAllRows(Sampler):
    def probabilities(self, x, params):
        p = super().probabilities(x, params)
        rows = np.flatnonzero(random_rows(params))
        by = rows[np.asarray(params["top_p"])[rows] < 1.0]
        if len(by) == 0:
            return p
        removed = ((p[by] == 0.0) & (x[by] > -np.inf)).any(axis=0)
        best = p[rows].argmax(axis=1)
        top = p[rows, best]
        p[np.ix_(rows, np.flatnonzero(removed))] = 0.0
        p[rows, best] = top
        return p / p.sum(axis=1, keepdims=True)


class MinPAbsolute(Sampler):
    def kept(self, ranked, params):
        keep = self.keeps_k(ranked, params["top_k"])
        p = np.where(keep, np.exp(ranked), 0.0)
        p /= p.sum(axis=1, keepdims=True)
        keep &= self.keeps_p(p, params["top_p"])
        if "min_p" in params:
            keep &= p >= params["min_p"][:, None]
            keep[:, 0] = True
        return keep


class ConfidentTakesTop(Sampler):
    def probabilities(self, x, params):
        p = super().probabilities(x, params)
        best = p.argmax(axis=1)
        rows = np.flatnonzero(p[np.arange(len(p)), best] > 0.95)
        one_hot(p, rows, best[rows])
        return p


class PermutedTwice(Sampler):
    def __call__(self, logits, params, seeds):
        order = np.argsort(np.asarray(params["top_k"]), kind="stable")
        return super().__call__(logits, params, seeds)[order][order]


def _odd_last(params, rows):
    if len(rows) > 1 and len(rows) % 2:
        params["top_p"][-1] = 0.0
    return params


OddBatchLastTopP = with_parameters(_odd_last)


class SlotKeepsTopP(Sampler):
    """top_p's slots are written by requests that set top_p only."""

    def __init__(self):
        self.slots = np.ones(0, np.float32)

    def parameters(self, params):
        top_p = np.asarray(params["top_p"], np.float32)
        if len(self.slots) < len(top_p):
            self.slots = np.concatenate([self.slots, np.ones(len(top_p) - len(self.slots), np.float32)])
        here = np.flatnonzero(top_p < 1.0)
        self.slots[here] = top_p[here]
        params["top_p"] = self.slots[:len(top_p)].copy()
        return params


class ExponentialZeros(Sampler):
    """p / noise with exponential noise that is exactly 0 once in 2^16: the first such kept token wins."""

    def __call__(self, logits, params, seeds):
        x = np.asarray(logits)
        p = self.probabilities(x, dict(params))
        out = self.tokens(p, self.uniforms(seeds, len(x)))
        first = np.floor(np.log1p(-uniform(seeds, 7)) / np.log1p(-2.0 ** -16))
        for row in np.flatnonzero((first < (p > 0.0).sum(axis=1)) & random_rows(params)):
            out[row] = np.flatnonzero(p[row])[int(first[row])]
        return out


def mixed(z):
    """lowbias32, in place."""
    z ^= z >> np.uint32(16)
    z *= np.uint32(0x7FEB352D)
    z ^= z >> np.uint32(15)
    z *= np.uint32(0x846CA68B)
    z ^= z >> np.uint32(16)
    return z


class NoiseAtSeedPlusToken(Sampler):
    """Exponential race whose noise is a hash of seed + token."""

    def __call__(self, logits, params, seeds):
        x = np.asarray(logits)
        p = self.probabilities(x, dict(params))
        seeds = np.asarray(seeds, np.uint64)
        low = (seeds & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        key = (hashed(seeds >> np.uint64(32)) >> np.uint64(32)).astype(np.uint32)
        z = mixed(low[:, None] + np.arange(x.shape[1], dtype=np.uint32))
        z += key[:, None]
        noise = mixed(z).astype(np.float32)
        noise += np.float32(0.5)
        noise *= np.float32(-2.0 ** -32)
        with np.errstate(divide="ignore"):
            np.log1p(noise, out=noise)
        p /= noise
        return p.argmin(axis=1).astype(np.int32)


class PoolOfStates(Sampler):
    def uniforms(self, seeds, count):
        return uniform(np.asarray(seeds, np.uint64) % np.uint64(4096), 1)


class SeedsAsDoubles(Sampler):
    def uniforms(self, seeds, count):
        wide = np.minimum(np.asarray(seeds, np.uint64).astype(np.float64), 2.0 ** 64 - 2048.0)
        return uniform(wide.astype(np.uint64), 1)


class SignedUniform(Sampler):
    def __call__(self, logits, params, seeds):
        x = np.asarray(logits)
        u = self.uniforms(seeds, len(x))
        return self.tokens(self.probabilities(x, dict(params)), np.where(random_rows(params), 2.0 * u - 1.0, u))


class FilterOneMoreThanK(Filter):
    def keeps_k(self, ranked, top_k):
        return super().keeps_k(ranked, np.where(top_k > 0, top_k.astype(np.int64) + 1, 0))


class FilterWholeBin(Filter):
    def keeps_p(self, p, top_p):
        keep = super().keeps_p(p, top_p)
        last = p[np.arange(len(p)), keep.sum(axis=1) - 1]
        floor = np.where(last > 0.0, np.exp2(np.floor(np.log2(np.where(last > 0.0, last, 1.0)))), 0.0)
        return keep | ((p >= floor[:, None]) & (top_p < 1.0)[:, None])


class FilterLargeKOff(Filter):
    def parameters(self, params):
        params["top_k"] = np.where(params["top_k"] > 1024, 0, params["top_k"]).astype(np.int32)
        return params


class FilterMinPUnscaled(Filter):
    def kept(self, ranked, params):
        keep = super().kept(ranked, {name: value for name, value in params.items() if name != "min_p"})
        if "min_p" in params:
            t = np.where(params["temperature"] > 0.0, params["temperature"], 1.0).astype(np.float64)
            with np.errstate(divide="ignore"):
                keep &= ranked * t[:, None] >= np.log(params["min_p"].astype(np.float64))[:, None]
        return keep


class FilterTailKept(Filter):
    def probabilities(self, x, params):
        p = super().probabilities(x, params)
        begin = x.shape[1] // 4 * 4
        if begin < x.shape[1]:
            stays = (x[:, begin:] > -np.inf) & random_rows(params)[:, None]
            p[:, begin:] = np.where(stays, 1.0, p[:, begin:])
        return p


class FilterSignedKeys(Ordered, Filter):
    def keys(self, x, scaled, params):
        bits = np.ascontiguousarray(x, np.float32).view(np.int32).astype(np.float64)
        return np.where(random_rows(params)[:, None], np.where(x == -np.inf, -np.inf, bits), scaled)

    def places(self, ranked, order, x, params):
        keep = self.keeps_k(ranked, params["top_k"])
        p = np.where(keep, np.exp(ranked), 0.0)
        p /= p.sum(axis=1, keepdims=True)
        keep &= self.keeps_p(p, params["top_p"])
        return keep & (p >= params["min_p"][:, None] * p.max(axis=1, keepdims=True)) if "min_p" in params else keep


def without_filters(params, here):
    params = copied(params)
    set_where(params, "top_k", here, 0)
    set_where(params, "top_p", here, 1.0)
    return set_where(params, "min_p", here, 0.0) if "min_p" in params else params


# Samplers: greedy


def no_k_over_one(params, rows):
    if (params["top_k"] <= 1).all():
        params["temperature"][:] = 0.0
    return params


NoKOverOneIsGreedy = with_parameters(no_k_over_one)


class GreedyOfBfloat16(Sampler):
    def scaled(self, x, temperature):
        out = super().scaled(x, temperature)
        rows = np.flatnonzero(temperature == 0.0)
        if len(rows):
            best = bfloat16(x[rows]).argmax(axis=1)
            out[rows] = -np.inf
            out[rows, best] = 0.0
        return out


GreedyIsFiftieth = with_parameters(lambda params, rows: set_where(params, "temperature", params["temperature"] == 0.0, 0.02))


# Samplers: parameters


def top_p_by_rank_of_k(params, rows):
    on = np.flatnonzero(params["top_k"] > 0)
    old = params["top_p"].copy()
    params["top_p"][on] = old[:len(on)]
    return params


TopPCompacted = with_parameters(top_p_by_rank_of_k)


def min_p_of_first(params, rows):
    if "min_p" in params:
        params["min_p"][:] = params["min_p"][0]
    return params


MinPOfFirstRow = with_parameters(min_p_of_first)
TemperatureTo512 = with_parameters(
    lambda params, rows: set_where(params, "temperature", (rows >= 512) & (params["temperature"] > 0.0), 1.0))


class OffIsFifty(Sampler):
    def probabilities(self, x, params):
        if self.filters(params):
            return super().probabilities(x, set_where(copied(params), "top_k", params["top_k"] <= 0, 50))
        p = super().probabilities(x, params)
        if x.shape[1] > 50:
            np.put_along_axis(p, np.argpartition(-p, 49, axis=1)[:, 50:], 0.0, axis=1)
            p /= p.sum(axis=1, keepdims=True)
        return p


class GainedRowsUnfiltered(Sampler):
    before = None

    def parameters(self, params):
        count = len(params["temperature"])
        if self.before is not None and count > self.before:
            params = without_filters(params, np.arange(count) >= self.before)
        self.before = count
        return params


# Samplers: filters


class LargeKUnsorted(Sampler):
    def probabilities(self, x, params):
        vocab = x.shape[1]
        here = (params["top_k"] > 128) & (params["top_k"] < vocab) & (params["top_p"] < 1.0) & (params["temperature"] > 0.0)
        if not here.any():
            return super().probabilities(x, params)
        changed = set_where(copied(params), "top_p", here, 1.0)
        if "min_p" in changed:
            set_where(changed, "min_p", here, 0.0)
        out = super().probabilities(x, changed)
        p = out[here]
        p = np.where(np.cumsum(p, axis=1) - p < params["top_p"][here][:, None], p, 0.0)
        if "min_p" in params:
            p[p < params["min_p"][here][:, None] * p.max(axis=1, keepdims=True)] = 0.0
        out[here] = p / p.sum(axis=1, keepdims=True)
        return out


class TopPComplement(Sampler):
    def keeps_p(self, p, top_p):
        return super().keeps_p(p, np.where(top_p < 1.0, 1.0 - top_p, 1.0))


class ThreeRejections(Sampler):
    def probabilities(self, x, params):
        p = super().probabilities(x, params)
        if not self.filters(params):
            return p
        everything = super().probabilities(x, without_filters(params, np.ones(len(x), bool)))
        dropped = np.where(p > 0.0, 0.0, everything)
        missed = dropped.sum(axis=1, keepdims=True)
        return p * (1.0 - missed ** 3) + dropped * missed ** 2


class RanksReturned(Sampler):
    def probabilities(self, x, params):
        p = super().probabilities(x, params)
        if "min_p" in params:
            here = (params["min_p"] > 0.0) & (params["temperature"] > 0.0)
            p[here] = -np.sort(-p[here], axis=1)
        return p


# Samplers: draw and seeds


class SeedsOfTwoPaths(Sampler):
    def parameters(self, params):
        self.on = (params["top_k"] > 0) | (params["top_p"] < 1.0)
        if "min_p" in params:
            self.on = self.on | (params["min_p"] > 0.0)
        return params

    def uniforms(self, seeds, count):
        seeds = np.asarray(seeds, np.uint64)
        place = np.where(self.on, np.cumsum(self.on), np.cumsum(~self.on)) - 1
        return super().uniforms(seeds[place], count)


class NoiseOfBfloat16(Sampler):
    WEIGHTS = -1.0 / np.log(np.maximum(np.arange(256), 0.5) / 256.0)

    def tokens(self, p, u):
        key = (u * 2.0 ** 32).astype(np.uint32)[:, None]
        with np.errstate(over="ignore"):
            bits = key ^ (np.arange(p.shape[1], dtype=np.uint32) * np.uint32(0x9E3779B1))[None, :]
            bits ^= bits >> np.uint32(16)
            bits *= np.uint32(0x85EBCA6B)
            bits ^= bits >> np.uint32(13)
            bits *= np.uint32(0xC2B2AE35)
        return (p * self.WEIGHTS[bits >> np.uint32(24)]).argmax(axis=1).astype(np.int32)


class TokenBefore(Sampler):
    def tokens(self, p, u):
        at = super().tokens(p, u)
        return np.where(p.max(axis=1) == 1.0, at, np.maximum(at - 1, 0)).astype(np.int32)


class SecondShardPadded(Sampler):
    def tokens(self, p, u):
        at = super().tokens(p, u)
        vocab = p.shape[1]
        if vocab < 256:
            return at
        half = (vocab + 1) // 2
        pad = -half % 64
        return np.where(at >= half, np.minimum(at + pad, vocab - 1), at).astype(np.int32)


class CongruentialStep(Sampler):
    def uniforms(self, seeds, count):
        with np.errstate(over="ignore"):
            state = np.asarray(seeds, np.uint64) * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        return (state >> np.uint64(11)).astype(np.float64) * 2.0 ** -53


# Filters


class FilterFirstRowsOrder(Filter):
    def probabilities(self, x, params):
        scaled = self.scaled(x, params["temperature"].astype(np.float64))
        if not self.filters(params):
            return np.exp(scaled)
        order = np.argsort(-scaled, axis=1, kind="stable")
        ranked = np.take_along_axis(scaled, order, axis=1)
        keep = self.kept(ranked, params)
        greedy = params["temperature"] == 0.0
        back = np.where(greedy[:, None], order, order[:1])
        out = np.zeros(x.shape)
        np.put_along_axis(out, back, np.where(keep & ((ranked > -np.inf) | ~greedy[:, None]), 1.0, 0.0), axis=1)
        return out


class FilterMinPOfBatch(Filter):
    def kept(self, ranked, params):
        keep = super().kept(ranked, {name: value for name, value in params.items() if name != "min_p"})
        if "min_p" in params:
            p = np.where(self.keeps_k(ranked, params["top_k"]), np.exp(ranked), 0.0)
            p /= p.sum(axis=1, keepdims=True)
            keep &= p >= params["min_p"][:, None] * p.max()
            keep[:, 0] = True
        return keep


class FilterShiftOverRows(Filter):
    def keeps_p(self, p, top_p):
        removed = (np.cumsum(p, axis=1) >= top_p[:, None]) & (top_p < 1.0)[:, None]
        return ~np.roll(removed.ravel(), 1).reshape(removed.shape)

    def kept(self, ranked, params):
        keep = super().kept(ranked, params)
        keep[~(keep & (ranked > -np.inf)).any(axis=1), 0] = True
        return keep


class FilterWithinTen(Filter):
    def keeps_p(self, p, top_p):
        return super().keeps_p(p, top_p) & ((p >= np.exp(-10.0) * p[:, :1]) | (top_p >= 1.0)[:, None])


# Verifiers


#: kind, name, callable, what a report would say
TABLE = (
    ("sample", "tokens past the last whole block of 1024 are never read", TailOfVocabulary,
     "The grid is V // 1024 blocks (no ceil), so tokens of the last partial block cannot be drawn. V > 1024 and not a "
     "multiple of 1024 (32000, 128256...), greedy and random rows."),
    ("sample", "vocabulary padded to 64 with zero logits", PaddedWithZeros,
     "Logits are padded to a multiple of 64 with 0 instead of -inf; the pads take mass and are clamped to the last token. V "
     "not a multiple of 64, random rows, most where V is small or logits are not far above 0."),
    ("sample", "tokens 1024 apart share their Gumbel noise", NoiseSharedByTiles,
     "The noise counter is the index within the tile, not the token's index, so each tile of 1024 gets the same Gumbel noise "
     "and only the likeliest of tokens 1024 apart can win. V > 1024, random rows."),
    ("sample", "a tile hands at most 16 candidates to top_k", CandidatesPerTile,
     "Split top-k keeps 16 candidates for each tile of 4096 tokens before merging; when more of the true top k lie in one "
     "tile they are lost to weaker tokens elsewhere. top_k > 16, V > 4096, the best tokens close together."),
    ("sample", "rows from 1024 on read the parameters of row modulo 1024", Rows1024,
     "The parameter index is threadIdx (row mod 1024) instead of the row. Batches over 1024 rows whose parameters differ."),
    ("sample", "min_p is forgotten in batches over 512 rows", MinPBigBatch,
     "Batches over the largest captured size of 512 take the eager path, which does not pass min_p. B > 512 with min_p > 0."),
    ("sample", "where all rows have one top_k, row 0's top_p serves all", SharedKSharesP,
     "The scalar fast path is chosen by looking at top_k alone and then takes top_p[0] for the batch. All top_k equal (also "
     "all off), top_p differing."),
    ("sample", "random rows beside greedy ones read filters of the wrong row", CompactedRows,
     "Random rows are compacted out of a mixed batch but top_k, top_p and min_p are not gathered: the i-th random row uses "
     "those of row i. Batches with a greedy row before random ones, parameters differing."),
    ("sample", "greedy rows beside random ones are drawn at temperature 1", GreedyAmongRandom,
     "Temperature 0 is replaced by 1 to avoid a division by zero and the argmax is taken only when all rows are greedy. "
     "Greedy rows in a mixed batch."),
    ("sample", "top_k is that of the row before", PreviousRowsK,
     "Off-by-one in the row index of the top_k array (roll by one). Batches of 2 or more whose top_k differ."),
    ("sample", "rows of the last partial group of 32 are not written", PartialWarpStale,
     "The launch covers B // 32 groups; rows past them keep the output buffer's content, zeros or tokens of earlier calls. B "
     "> 32 and not a multiple of 32."),
    ("sample", "temperatures under 0.01 are raised to 0.01", FloorTemperature,
     "Temperature is clamped to a minimum of 1e-2 to avoid overflow. 0 < temperature < 0.01 with logits that differ by some "
     "hundredths."),
    ("sample", "temperatures over 2 are cut to 2", CapTemperature,
     "Temperature is clamped to 2 (an API's limit) in the kernel. temperature > 2."),
    ("sample", "scaled logits are bfloat16", BfloatLogits,
     "logits / temperature is stored in bfloat16 before softmax, so values from 32 on are off by up to 0.25, from 64 on by "
     "up to 0.5. Random rows, scaled logits of 16 and more, clearest over 32."),
    ("sample", "top_p's running sum is float16", HalfCumsum,
     "The cumulative sum for top-p is accumulated in half precision: small probabilities round or vanish and the sum stalls, "
     "so too many tokens stay. Flat rows, V of 1000 and more, top_p < 1."),
    ("sample", "softmax saturates at scaled logits of 88", ExpSaturates,
     "exp is taken without subtracting the row's maximum and clamped at float32's overflow, so all tokens with logit / "
     "temperature over 88 are equally likely. Large logits or low temperatures."),
    ("sample", "probabilities are clamped to at least 1e-5", ClampedProbabilities,
     "probs.clamp(min=1e-5) after the filters gives masked, dropped and unlikely tokens 1e-5 each. Random rows; material "
     "from V of some thousands on (V * 1e-5)."),
    ("sample", "masks are logits of -100", MaskIsMinus100,
     "-inf is replaced by -100 (as a logit bias) before the temperature, so masked tokens get mass at high temperature (10 "
     "and more) or where the unmasked logits are near or under -100. Rows with masks."),
    ("sample", "uniforms have 11 bits", HalfUniform,
     "The uniform is drawn in float16 (multiples of 2^-11), so tokens whose probability is under or about 1/2048 are skipped "
     "or favoured. Flat rows of 1000 tokens and more."),
    ("sample", "seeds are cut to 32 bits", Seeds32,
     "The seed is passed as uint32: the high 32 bits are lost and seeds that differ there alone give equal draws. Any random "
     "row."),
    ("sample", "seeds from 2^63 on are all one", SeedsSaturate,
     "Seeds are converted to int64 with saturation, so all seeds of 2^63 and more become 2^63 - 1 and share a draw. Seeds in "
     "the upper half."),
    ("sample", "the seed is XORed with the row's index", SeedXorRow,
     "The row index is XORed into the seed: consecutive seeds cancel with consecutive rows into the same stream, and a "
     "request's draw depends on its place in the batch. B >= 2."),
    ("sample", "rows 128 apart share a seed", SeedsOfFirstChunk,
     "The batch is processed in chunks of 128 and the chunk's offset is not added to the seeds pointer. B > 128: row i draws "
     "with the seed of row i mod 128."),
    ("sample", "uniforms are refilled only when the batch's size changes", UniformsKept,
     "The buffer of uniforms is filled when it is (re)allocated only, so successive calls of one batch size reuse the same "
     "uniforms whatever the seeds. From the second call of a size on."),
    ("sample", "the search in a block of 256 skips the block's first token", SecondOfBlock,
     "Two-level inverse-CDF search begins at index 1 within the picked block (off by one), so tokens 256, 512, ... are never "
     "drawn and the next token is drawn instead. Random rows with mass on such tokens, V > 257."),
    ("sample", "top_p by rejection reuses the uniform in each round", RejectionReusesUniform,
     "Rejection rounds do not advance the random state; after a rejection the same uniform picks among the rest, so kept "
     "tokens near the dropped ones in index order are favoured. top_p < 1 without top_k."),
    ("sample", "filtered probabilities are not renormalised", NotRenormalised,
     "The uniform is compared with the running sum of unnormalised kept probabilities; what exceeds it falls to the least "
     "likely kept token. Any filter that drops mass."),
    ("sample", "top_p drops the token that crosses it", CrossingDropped,
     "The nucleus keeps tokens whose inclusive running sum is <= top_p, so the crossing token is lost (only the first is "
     "forced). top_p < 1."),
    ("sample", "rows without top_k are cut to the batch's largest top_k", OffRowsCutToLargestK,
     "topk(max(top_k)) runs once for the batch; rows with top_k 0 get those candidates only. Batches that mix rows with and "
     "without top_k."),
    ("sample", "top_k of V or more drops the least likely token", KUnderVocabulary,
     "top_k is clamped to V - 1 instead of V, so top_k >= V still drops a token. Small or flat vocabularies with top_k >= V."),
    ("sample", "min_p's bound is of the renormalised top, its tokens are not", MinPOfRenormalised,
     "After top_p the largest probability is renormalised but the others are compared unnormalised, so min_p's threshold is "
     "too high by 1 / (mass that top_p kept). top_p < 1 with min_p > 0."),
    ("sample", "min_p is ignored where top_k and top_p are off", MinPAlone,
     "The no-filter fast path checks top_k and top_p only. No row in the batch has top_k or top_p on, min_p > 0."),
    ("sample", "top_k and top_p of the call before are used while temperatures stay", StaleParameters,
     "The cached sampling tensors are refreshed only if batch size or temperatures change, so a later call with the same "
     "temperatures uses the earlier call's top_k and top_p."),
    ("sample", "after an all-greedy call, batches of its size lose their filters", GreedyGraph,
     "The captured graph is keyed by batch size alone; one captured for an all-greedy batch has no filter step and is "
     "replayed for random batches of that size. Calls after an all-greedy call of equal B."),
    ("filter", "top_p is ignored in rows with top_k", FilterElseIf,
     "top_p sits in the else branch of top_k, so rows with top_k > 0 never get top_p. Both on."),
    ("filter", "top_p alone looks at 256 candidates", FilterCandidates256,
     "Without top_k, top_p sorts only the 256 largest candidates and drops all others. top_k off, top_p < 1, nucleus over "
     "256 tokens (flat rows, V > 256)."),
    ("filter", "tokens tied across top_k's edge are all dropped", FilterTiesDropped,
     "top_k keeps logits strictly above the (k+1)-th largest, so when the k-th equals it all the tied tokens are lost and "
     "fewer than k stay. Ties at the edge (16-bit logits)."),
    ("filter", "token indices in the sort are 16 bits", FilterIndex16,
     "Sort payloads are uint16: kept tokens from 65536 on wrap to token - 65536. V > 65536 with any filter on."),
    ("filter", "tokens dropped in the call before stay dropped", FilterStaleMask,
     "The drop mask is cleared only on reallocation, so tokens that an earlier call of the same shape dropped are dropped "
     "again. From the second call of one shape on."),
    ("filter", "rows with masked tokens skip top_k", FilterMaskedSkipK,
     "The pivot search between the smallest and the largest logit does not converge with -inf as the smallest, and leaves "
     "the row without top_k. Rows with at least one -inf, top_k > 0."),
    ("filter", "tokens are ranked by bfloat16 keys", FilterBfloatKeys,
     "The sort's keys are truncated to bfloat16, so close logits rank by index and top_k, top_p and min_p keep the wrong "
     "ones. Filters on, logits that differ by under a bfloat16 step (1/8 from 16 on) at the edge of what is kept."),
    ("filter", "temperature is applied twice where top_k is on", FilterTwiceScaled,
     "The top_k kernel divides by temperature and so does the caller: kept logits come back over temperature squared. top_k "
     "> 0, temperature other than 1."),
    ("sample", "rows are read from an address rounded down to four elements", RowsAlignedDown,
     "float4 loads round row * V down to a multiple of 4, so a row is read up to 3 elements early, its first tokens being "
     "the end of the row before. V not a multiple of 4 (50257...), all rows but those whose offset happens to be aligned; "
     "greedy and random."),
    ("sample", "the index of row and token together is a float32", FlatIndexFloat32,
     "The reduction carries row * V + token as float32, which holds no odd integers over 2^24, so tokens are rounded to "
     "neighbours. Rows with row * V over 16.7 million: e.g. from row 131 at V = 128256, or from row 64 at V = 262144."),
    ("sample", "greedy sees the first 32 tiles of the vocabulary alone", GreedyFirst32Tiles,
     "The second stage of the argmax reduces one warp's worth of partial results: tiles of 1024 past the 32nd are lost. "
     "Greedy rows whose best token is at 32768 or later."),
    ("sample", "greedy's running maximum starts at 0", GreedyMaximumFromZero,
     "The argmax's shared maximum is initialised with 0 and index 0 rather than -inf, so a row without a positive logit "
     "gives token 0. Greedy rows whose logits are all negative (log-probabilities)."),
    ("sample", "min_p's largest probability is that of the first 1024 tokens", MinPOfFirstTile,
     "The block maximum for min_p is not reduced over the tiles: the first tile's is used, and the threshold is too low (or "
     "0). min_p > 0, V > 1024, the likeliest token at 1024 or later."),
    ("sample", "a fully masked tile gives token 0", MaskedTileIsNaN,
     "Online softmax subtracts a tile's maximum of -inf from -inf; the NaN spreads to the row's sum and every comparison "
     "fails, so token 0 is emitted even if masked. Random rows with V > 1024 in which some tile of 1024 is all -inf "
     "(grammars, padded vocabularies)."),
    ("sample", "the tile is drawn by its mass before the filters", TileSumsBeforeFilters,
     "The two-level draw picks the tile of 1024 by partial sums that were computed before top_k / top_p / min_p, then a "
     "token by the filtered weights. Filters on, V > 1024, kept tokens in several tiles."),
    ("sample", "exp comes from a table in steps of a quarter", ExpByTable,
     "exp(logit - max) is looked up at the difference floored to a multiple of 1/4, without interpolation: weights are too "
     "low by up to 22 %, close tokens are made equal. All random rows; total variation to about 0.06."),
    ("sample", "weights under 2^-14 of the largest vanish", ExpFlushed,
     "exp is computed in half precision with subnormals flushed to zero, so tokens 9.7 or more under the maximum get no "
     "mass. Long tails: V of 10000 and more with a dominant token, no filter."),
    ("sample", "temperature divides logits and noise alike", TemperatureAfterNoise,
     "Gumbel noise is added before the division by temperature, so temperature scales both and the draw among kept tokens is "
     "at temperature 1. Random rows with temperature other than 1."),
    ("sample", "temperature is skipped where row 0's is 1", TemperatureSkippedByFirst,
     "The fast path that skips scaling tests temperature[0] == 1 rather than all rows. Batches whose first row has "
     "temperature 1 and others another (greedy rows still are greedy)."),
    ("sample", "a batch of one row is filtered before the temperature", SingleRowFiltersFirst,
     "The B = 1 split-vocabulary kernel computes top_p and min_p on the softmax without temperature, then draws at the "
     "temperature. B = 1, top_p or min_p on, temperature other than 1."),
    ("sample", "top_p's threshold search ends after eight halvings", TopPEightHalvings,
     "The bisection for the probability threshold runs 8 steps over [0, max p], so thresholds are multiples of max p / 256 "
     "and it keeps all that lies over the last lower bound, everything if the true threshold is under max p / 256. top_p < 1 "
     "with long tails."),
    ("sample", "top_p's running sum restarts every 1024 ranks", TopPSumRestarts,
     "The block scan of the sorted probabilities does not add the carry of earlier blocks, so ranks from 1024 on are kept "
     "anew (always the whole tail when it is light). top_p < 1, V > 1024 with mass past rank 1024."),
    ("sample", "top_p keeps one token after the one that crosses it", TopPOneMore,
     "The mask is shifted right once although the sum is already exclusive, so one token too many stays. top_p < 1; most "
     "where few tokens are kept."),
    ("sample", "what top_p removes in one row is removed in all", RemovedFromAllRows,
     "The sorted indices to remove are flattened over the batch and logits[:, indices] is set to -inf, so each row loses "
     "what any row loses (its best token aside). B >= 2, top_p < 1 in some row."),
    ("sample", "min_p is an absolute probability", MinPAbsolute,
     "The threshold is min_p and not min_p times the largest probability, so too many tokens are dropped. min_p > 0 with the "
     "largest probability well under 1."),
    ("sample", "rows whose best token has over 0.95 take it outright", ConfidentTakesTop,
     "A fast path emits the argmax without a draw if its probability is over 0.95. Random rows with the largest (filtered) "
     "probability between 0.95 and about 0.98 are off by 0.02 to 0.05."),
    ("sample", "rows sorted by top_k are put back by the wrong permutation", PermutedTwice,
     "Rows are sorted by top_k to group them, and the tokens are put back with the permutation itself rather than its "
     "inverse, so tokens go to other rows. Batches of 2 and more whose top_k are not in rising order."),
    ("sample", "the last row of an odd batch has top_p 0", OddBatchLastTopP,
     "top_p is loaded in pairs and the second half of the last pair is swapped with the zero fill: the last row of an odd "
     "batch keeps only its likeliest token. B odd and over 1, random last row."),
    ("sample", "a top_p of 1 leaves the slot's old top_p", SlotKeepsTopP,
     "The persistent top_p buffer is written only for requests with top_p < 1, so a request without top_p takes that of the "
     "last request in its slot. From the second call on, rows with top_p 1 where an earlier call had less."),
    ("sample", "exponential noise is exactly 0 once in 65536", ExponentialZeros,
     "Noise from 16-bit uniforms is 0 with probability 2^-16 and p / 0 = inf wins whatever p is (the first in index order). "
     "Random rows with thousands of kept tokens: 1.5 % of draws at 1000 tokens, 40 % at 32768."),
    ("sample", "noise is a hash of seed plus token", NoiseAtSeedPlusToken,
     "The counter is seed + token index, so seed s + 1 has seed s's noise one token further: rows of close seeds draw "
     "shifted copies. Random rows whose seeds differ by less than V (consecutive seeds)."),
    ("sample", "seeds choose among 4096 random states", PoolOfStates,
     "The generator states are a pool of 4096, taken at seed % 4096, so seeds that agree modulo 4096 give the same draw and "
     "a flat large vocabulary has at most 4096 outcomes. Random rows, all regimes; collisions in batches of about 100 and "
     "more."),
    ("sample", "seeds pass through a double", SeedsAsDoubles,
     "Seeds are converted to float64 on their way (JSON, Lua), which drops up to 11 low bits, so close seeds over 2^53 give "
     "equal draws. Seeds of 2^53 and more that differ by less than some thousand."),
    ("sample", "random bits are read as a signed integer", SignedUniform,
     "The random word is scaled as int32, so the uniform lies in [-1, 1) and every negative one gives token 0, even if it is "
     "masked or dropped. All random rows: token 0 gets an extra half."),
    ("filter", "top_k keeps one token more", FilterOneMoreThanK,
     "The threshold is the (k + 1)-th largest logit (0-based index k) and tokens at or over it stay. top_k > 0 and under V."),
    ("filter", "top_p keeps the whole bin in which it is reached", FilterWholeBin,
     "The top_p threshold is found in a histogram by the probabilities' binary exponents and not refined within the bin, so "
     "all tokens within the crossing bin (a factor of 2) stay. top_p < 1."),
    ("filter", "top_k over 1024 is off", FilterLargeKOff,
     "The kernel has room for 1024 candidates and skips rows that ask for more, leaving them without top_k. top_k > 1024 and "
     "V over top_k."),
    ("filter", "min_p compares logits before the temperature", FilterMinPUnscaled,
     "The bound max + log(min_p) is applied to the logits before the division by temperature. min_p > 0, temperature other "
     "than 1: too many stay at low temperature, too few at high."),
    ("filter", "the last V mod 4 tokens are never dropped", FilterTailKept,
     "The vectorised masking loop handles V // 4 groups and has no scalar tail, so the last V mod 4 tokens pass unfiltered. "
     "V not a multiple of 4, filters on."),
    ("filter", "negative logits rank in reverse", FilterSignedKeys,
     "Radix keys are the floats' bits compared as signed integers without flipping those of negative numbers, so among "
     "negative logits the smallest rank first. Filters on, rows whose kept set reaches negative logits (all-negative rows "
     "worst)."),
    ("sample", "batches in which no top_k is over 1 are greedy", NoKOverOneIsGreedy,
     "is_all_greedy is computed as all(top_k <= 1), but 0 means off, so random batches without top_k go to argmax. Every "
     "batch whose rows all have top_k 0 or 1."),
    ("sample", "greedy compares bfloat16 logits", GreedyOfBfloat16,
     "float32 logits are cast to bfloat16 before argmax, so tokens that differ by less than one step (0.125 at 16) tie and "
     "the first id wins. Greedy rows whose best two are close."),
    ("sample", "greedy rows are drawn at temperature 0.02", GreedyIsFiftieth,
     "Temperature 0 is replaced by 0.02 and the row is sampled like any other, so runners-up within some hundredths of the "
     "best logit are drawn. Greedy rows with close best tokens."),
    ("sample", "rows with top_k read top_p by their place among such rows", TopPCompacted,
     "Rows with top_k are gathered into a sub-batch, but top_p isn't gathered with them: the j-th of them uses top_p[j]. "
     "Batches that mix rows with and without top_k and have different top_p."),
    ("sample", "row 0's min_p serves all rows", MinPOfFirstRow,
     "min_p is passed to the kernel as a scalar, that of the first request. Batches with different min_p."),
    ("sample", "rows from 512 on are not divided by the temperature", TemperatureTo512,
     "The temperature kernel's grid is capped at 512 rows, so later random rows are sampled at temperature 1. B > 512."),
    ("sample", "a top_k of 0 is 50", OffIsFifty,
     "top_k 0 is falsy and replaced by the generation config's default of 50, so rows that switched top_k off are cut to 50 "
     "tokens. top_k 0, V over 50."),
    ("sample", "rows that a batch gains have no filters in that call", GainedRowsUnfiltered,
     "Persistent top_k/top_p/min_p buffers are updated for the row count of the previous step, so rows added since have the "
     "defaults (off) for one call. Calls with a larger batch than the call before."),
    ("sample", "top_k over 128 leaves its candidates unsorted for top_p", LargeKUnsorted,
     "Over 128 candidates top_k is a partial selection whose result is in id order, yet top_p takes it for sorted and keeps "
     "the lowest ids up to its mass. 128 < top_k < V with top_p < 1."),
    ("sample", "top_p removes all but the top 1 - top_p", TopPComplement,
     "With the sort ascending the tail to remove has mass 1 - top_p, but top_p was left in the comparison, so the nucleus "
     "has mass 1 - top_p. Any row with top_p < 1."),
    ("sample", "rejection sampling takes the third rejected token", ThreeRejections,
     "Sampling by rejection has three rounds and returns the last proposal even if the filters reject it. Filters that leave "
     "little mass (left-out mass cubed is the chance of a forbidden token)."),
    ("sample", "ranks are returned for tokens where min_p is on", RanksReturned,
     "The min_p path samples on sorted probabilities and the gather back to token ids is missing. Random rows with min_p > "
     "0."),
    ("sample", "filtered and unfiltered rows share seeds", SeedsOfTwoPaths,
     "The batch is split in rows with and without filters and both halves read seeds from index 0, so the j-th row of each "
     "draw with the same random number. Batches that mix filtered and unfiltered rows."),
    ("sample", "Gumbel noise is made of bfloat16 uniforms", NoiseOfBfloat16,
     "The uniforms of the exponential race have the logits' bfloat16, so the largest noises are 8 bits and tie, the first id "
     "wins, and unlikely tokens never do. Flat random rows of a hundred tokens or more."),
    ("sample", "the search returns the token before the one it found", TokenBefore,
     "searchsorted's result is decremented (exclusive against inclusive sum), so each token gets the next one's probability. "
     "All random rows."),
    ("sample", "tokens of the second vocabulary shard are off by the padding", SecondShardPadded,
     "The second tensor-parallel shard's ids are offset by the padded size of the first shard (multiple of 64) rather than "
     "its real size. Vocabularies of 256 and more whose half is no multiple of 64; tokens in the upper half."),
    ("sample", "the uniform is a single congruential step from the seed", CongruentialStep,
     "The generator is an LCG whose first output is used without scrambling the seed, so consecutive seeds give uniforms at "
     "a constant distance. Rows or calls with consecutive seeds; each alone is exact."),
    ("filter", "masks are scattered back by row 0's order", FilterFirstRowsOrder,
     "The keep mask of the sorted logits is put back with the sort indices of the first row. Batches of two or more, filters "
     "on, random rows."),
    ("filter", "min_p's largest probability is the batch's", FilterMinPOfBatch,
     "probs.max() lacks the axis, so the bound of every row is min_p times the largest probability in the batch and flat "
     "rows beside peaked (or greedy) ones lose tokens. min_p > 0, B >= 2."),
    ("filter", "top_p's shifted mask runs on into the next row", FilterShiftOverRows,
     "The removal mask is shifted by one place over the flattened batch and the first place isn't cleared, so where a row's "
     "tail is removed the next row (or the only one itself) loses its best token. A row with top_p < 1 before it."),
    ("filter", "top_p drops tokens more than 10 below the best", FilterWithinTen,
     "Candidates are pruned to those within 10 of the largest scaled logit before top_p sorts them, though a long tail can "
     "have mass that top_p should keep. top_p < 1, rows with a peak over a broad tail."),
)
