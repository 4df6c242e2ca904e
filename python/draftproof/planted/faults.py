"""Faults that engines' samplers, filters and verifiers could have, one each, at places where real code changes its path:
a batch of so many rows, a parameter's end, a vocabulary's size, the next call. Plain numpy, independent of the module under
test. `SOUND` are the same without a fault.

A fault is a hook in a sampler that is otherwise right. FAULTS[kind] maps the name of a fault to the callable that has it.
"""

from __future__ import annotations

import numpy as np

BITS = np.uint64(0xFFFFFFFFFFFFFFFF)


def hashed(*words):
    """uint64 of the shape that the words broadcast to (SplitMix64 over them)."""
    state = np.uint64(0x243F6A8885A308D3)
    with np.errstate(over="ignore"):
        for word in words:
            state = (state ^ np.asarray(word, np.uint64)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x632BE59BD9B4E019)
            state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            state = state ^ (state >> np.uint64(31))
    return state


def uniform(*words):
    """float64 in [0, 1) of 53 bits."""
    return (hashed(*words) >> np.uint64(11)).astype(np.float64) * 2.0 ** -53


def bfloat16(x):
    return (np.ascontiguousarray(x, np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


class Sampler:
    """temperature, then top-k, top-p over what it left, min-p of what both left; one uniform a row. Methods are the steps,
    for a fault to replace one."""

    def __call__(self, logits, params, seeds):
        x = np.asarray(logits)
        p = self.probabilities(x, dict(params))
        return self.tokens(p, self.uniforms(seeds, len(x)))

    def uniforms(self, seeds, count):
        return uniform(seeds, 1)

    def tokens(self, p, u):
        total = np.cumsum(p, axis=1)
        at = (total <= (u * total[:, -1])[:, None]).sum(axis=1)
        return np.minimum(at, p.shape[1] - 1).astype(np.int32)

    def parameters(self, params):
        return params

    def scaled(self, x, temperature):
        """Rows over the temperature, the largest at 0; greedy rows keep their first largest token alone."""
        wide = x.astype(np.float64)
        greedy = temperature == 0.0
        top = wide.max(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            out = np.where(wide == -np.inf, -np.inf, (wide - top) / np.where(greedy, 1.0, temperature)[:, None])
        rows = np.flatnonzero(greedy)
        best = wide[rows].argmax(axis=1)
        out[rows] = -np.inf
        out[rows, best] = 0.0
        return out

    def kept(self, ranked, params):
        """ranked [B, V]: scaled logits, falling. Which places stay."""
        keep = self.keeps_k(ranked, params["top_k"])
        p = np.where(keep, np.exp(ranked), 0.0)
        p /= p.sum(axis=1, keepdims=True)
        keep &= self.keeps_p(p, params["top_p"])
        return keep & (p >= params["min_p"][:, None] * p[:, :1]) if "min_p" in params else keep

    def keeps_k(self, ranked, top_k):
        k = np.where((top_k <= 0) | (top_k > ranked.shape[1]), ranked.shape[1], top_k)
        return np.arange(ranked.shape[1])[None, :] < k[:, None]

    def keeps_p(self, p, top_p):
        keep = np.cumsum(p, axis=1) - p < top_p[:, None]
        keep[:, 0] = True
        return keep

    def probabilities(self, x, params):
        params = self.parameters(params)
        scaled = self.scaled(x, params["temperature"].astype(np.float64))
        if not self.filters(params):
            p = np.exp(scaled)
            return p / p.sum(axis=1, keepdims=True)
        order = np.argsort(-scaled, axis=1, kind="stable")
        ranked = np.take_along_axis(scaled, order, axis=1)
        p = np.where(self.kept(ranked, params), np.exp(ranked), 0.0)
        out = np.zeros_like(p)
        np.put_along_axis(out, order, p / p.sum(axis=1, keepdims=True), axis=1)
        return out

    @staticmethod
    def filters(params):
        min_p = params.get("min_p", np.zeros(1))
        return bool((params["top_k"] > 0).any() or (params["top_p"] < 1.0).any() or (min_p > 0.0).any())


def with_parameters(change):
    """A sampler whose parameters are changed: change(params, rows) -> params."""

    class Changed(Sampler):
        def parameters(self, params):
            return change({name: np.array(value) for name, value in params.items()}, np.arange(len(params["temperature"])))

    return Changed


def shifted(params, rows, to):
    """Every parameter is that of row to[i]."""
    return {name: value[to] for name, value in params.items()}


def copied(params):
    return {name: np.array(value) for name, value in params.items()}


def set_where(params, name, here, value):
    params[name] = np.where(here, value, params[name]).astype(params[name].dtype)
    return params


class ManyTokens(Sampler):
    """Something goes wrong in large vocabularies."""

    beyond = 65536

    def __call__(self, logits, params, seeds):
        if logits.shape[1] <= self.beyond:
            return super().__call__(logits, params, seeds)
        return self.wrong(logits, params, seeds)


class SkipsTopP(ManyTokens):
    def wrong(self, logits, params, seeds):
        return Sampler.__call__(self, logits, {**params, "top_p": np.ones_like(params["top_p"])}, seeds)


class IdsOf16Bits(ManyTokens):
    def wrong(self, logits, params, seeds):
        return Sampler.__call__(self, logits, params, seeds) & 0xFFFF


class HalfPrecisionSums(Sampler):
    def keeps_p(self, p, top_p):
        total = np.zeros(len(p), np.float16)
        keep = np.empty(p.shape, bool)
        for i in range(p.shape[1]):
            keep[:, i] = total < top_p.astype(np.float16)
            total = (total + p[:, i].astype(np.float16)).astype(np.float16)
        keep[:, 0] = True
        return keep


class NucleusByBlocks(Sampler):
    """The sum starts again every 1024 tokens."""

    def keeps_p(self, p, top_p):
        keep = super().keeps_p(p, top_p)
        for begin in range(1024, p.shape[1], 1024):
            block = p[:, begin:begin + 1024]
            keep[:, begin:begin + 1024] = np.cumsum(block, axis=1) - block < top_p[:, None]
        return keep


class CapsK(Sampler):
    cap = 64

    def keeps_k(self, ranked, top_k):
        return super().keeps_k(ranked, np.where(top_k > self.cap, self.cap, top_k))


class CandidatesOf1024(Sampler):
    """Filters look at 1,024 candidates, whatever the parameters are."""

    def kept(self, ranked, params):
        return super().kept(ranked, params) & (np.arange(ranked.shape[1]) < 1024)[None, :]


class KBeyondV(Sampler):
    """top_k above the vocabulary is taken modulo it."""

    def keeps_k(self, ranked, top_k):
        v = ranked.shape[1]
        return super().keeps_k(ranked, np.where(top_k > v, np.maximum(top_k % v, 1), top_k))


class KFromABlockOn(Sampler):
    """From 128 on one token fewer is kept."""

    def keeps_k(self, ranked, top_k):
        return super().keeps_k(ranked, np.where(top_k >= 128, top_k - 1, top_k))


class PZeroIsOff(Sampler):
    def keeps_p(self, p, top_p):
        return super().keeps_p(p, np.where(top_p < 1e-5, 1.0, top_p))


class FiltersBeforeTemperature(Sampler):
    """name: the filter that sees the logits at temperature 1."""

    name = "min_p"

    def probabilities(self, x, params):
        warm = dict(params)
        one = {**params, "temperature": np.where(params["temperature"] == 0.0, 0.0, 1.0)}
        for name, off in (("top_k", 0), ("top_p", 1.0), ("min_p", 0.0)):
            if name in params:
                (warm if name == self.name else one)[name] = np.full_like(params[name], off)
        p = super().probabilities(x, warm) * (super().probabilities(x, one) > 0.0)
        return p / p.sum(axis=1, keepdims=True)


class TopPBeforeTemperature(FiltersBeforeTemperature):
    name = "top_p"


class MaskOfMinus1e4(Sampler):
    def scaled(self, x, temperature):
        return super().scaled(np.where(x == -np.inf, np.float32(-1e4), x), temperature)


class HalfPrecisionLogits(Sampler):
    def scaled(self, x, temperature):
        half = np.clip(x, -65504, 65504).astype(np.float16).astype(np.float32)
        return super().scaled(np.where(x == -np.inf, x, half), temperature)


class MaximumOfTheBatch(Sampler):
    """exp of float32 below the batch's maximum: a row far below has no mass left."""

    def probabilities(self, x, params):
        top = x.max()
        low = (x.max(axis=1) < top - 80.0) & (params["temperature"] > 0)
        p = super().probabilities(x, params)
        p[low] = 1.0 / x.shape[1]
        return p


class TemperatureTwice(Sampler):
    def scaled(self, x, temperature):
        return super().scaled(x, np.where(temperature > 1.0, temperature * temperature, temperature))


class FewBits(Sampler):
    bits = 12

    def uniforms(self, seeds, count):
        return np.floor(super().uniforms(seeds, count) * 2.0 ** self.bits) * 2.0 ** -self.bits


class CutSeeds(Sampler):
    bits = 32

    def uniforms(self, seeds, count):
        return super().uniforms(np.asarray(seeds) & np.uint64((1 << self.bits) - 1), count)


class CutSeeds16(CutSeeds):
    bits = 16


class FloatSeeds(Sampler):
    def uniforms(self, seeds, count):
        return super().uniforms(np.asarray(seeds).astype(np.float32).astype(np.uint64), count)


class RowsShareNoise(Sampler):
    """The noise of a row is that of the row 256 before it."""

    def uniforms(self, seeds, count):
        u = super().uniforms(seeds, count)
        return u[np.arange(count) % 256]


class NeighboursSumSeeds(Sampler):
    """The noise depends on seed + row: consecutive seeds of the same batch give each other's."""

    def uniforms(self, seeds, count):
        return super().uniforms(np.asarray(seeds) + np.arange(count, dtype=np.uint64)[::-1], count)


class KeepsLastNoise(Sampler):
    """A buffer of noise that is filled once for every two calls."""

    def __init__(self):
        self.calls = 0
        self.noise = np.zeros(0)

    def uniforms(self, seeds, count):
        self.calls += 1
        if self.calls % 2 == 1 or len(self.noise) != count:
            self.noise = super().uniforms(seeds, count)
        return self.noise


class LeaksParameters(Sampler):
    """The first row's top-k is that of the last call."""

    def __init__(self):
        self.last = None

    def parameters(self, params):
        params = {name: np.array(value) for name, value in params.items()}
        first, self.last = self.last, params["top_k"][0]
        if first is not None:
            params["top_k"][0] = first
        return params


class RaceWithAPeriod(Sampler):
    """An exponential race whose noise repeats every 1,024 tokens."""

    period = 1024

    def __call__(self, logits, params, seeds):
        p = self.probabilities(np.asarray(logits), dict(params))
        place = np.arange(p.shape[1], dtype=np.uint64) % np.uint64(self.period)
        noise = -np.log(1.0 - uniform(np.asarray(seeds, np.uint64)[:, None], 2, place[None, :]))
        with np.errstate(divide="ignore"):
            return np.where(p > 0.0, noise / p, np.inf).argmin(axis=1).astype(np.int32)


class LastTokenNever(Sampler):
    """A loop over tiles of 32 tokens leaves out the last, partial one."""

    def tokens(self, p, u):
        whole = p.shape[1] // 32 * 32
        q = p.copy()
        if 0 < whole < p.shape[1]:
            q[:, whole:] = 0.0
            empty = q.sum(axis=1) == 0.0
            q[empty] = p[empty]
        return super().tokens(q, u)


class GreedyByTheFirst(Sampler):
    def parameters(self, params):
        temperature = np.array(params["temperature"])
        if (temperature == 0.0).any() and not (temperature == 0.0).all():
            drawn = np.where(temperature == 0.0, 1.0, temperature)
            temperature = np.where(temperature[0] == 0.0, 0.0, drawn).astype(np.float32)
        return {**params, "temperature": temperature}


SAMPLER_FAULTS = {
    "top_k is at most 64": CapsK,
    "filters look at 1,024 candidates": CandidatesOf1024,
    "top_k above V is taken modulo V": KBeyondV,
    "top_k from 128 on keeps one token fewer": KFromABlockOn,
    "top_p 0 is off": PZeroIsOff,
    "top_p is skipped beyond 65,536 tokens": SkipsTopP,
    "top_p sums in half precision": HalfPrecisionSums,
    "top_p sums by blocks of 1,024 tokens": NucleusByBlocks,
    "min_p before temperature": FiltersBeforeTemperature,
    "top_p before temperature": TopPBeforeTemperature,
    "parameters of the next row from row 32 on": with_parameters(
        lambda params, rows: shifted(params, rows, np.where(rows >= 32, (rows + 1) % len(rows), rows))),
    "parameters of row i / 32": with_parameters(lambda params, rows: shifted(params, rows, rows // 32)),
    "temperature is 1 from row 256 on": with_parameters(
        lambda params, rows: set_where(params, "temperature", (rows >= 256) & (params["temperature"] > 0), 1.0)),
    "rows beyond 1,024 are not filtered": with_parameters(
        lambda params, rows: set_where(set_where(params, "top_k", rows >= 1024, 0), "top_p", rows >= 1024, 1.0)),
    "greedy beside random goes by the first row": GreedyByTheFirst,
    "all rows are greedy where most are": with_parameters(
        lambda params, rows: set_where(params, "temperature", (params["temperature"] == 0).mean() > 0.5, 0.0)),
    "a temperature below 0.05 is greedy": with_parameters(
        lambda params, rows: set_where(params, "temperature", params["temperature"] < 0.05, 0.0)),
    "temperature is at most 2": with_parameters(
        lambda params, rows: set_where(params, "temperature", params["temperature"] > 2.0, 2.0)),
    "temperature is at least 0.1": with_parameters(
        lambda params, rows: set_where(params, "temperature", np.abs(params["temperature"] - 0.05) < 0.05, 0.1)),
    "temperatures above 1 are applied twice": TemperatureTwice,
    "a mask of -1e4": MaskOfMinus1e4,
    "logits in half precision": HalfPrecisionLogits,
    "the maximum is the batch's": MaximumOfTheBatch,
    "uniforms of 12 bits": FewBits,
    "seeds of 32 bits": CutSeeds,
    "seeds of 16 bits": CutSeeds16,
    "seeds as floats": FloatSeeds,
    "rows 256 apart share their noise": RowsShareNoise,
    "the noise goes by seed minus row": NeighboursSumSeeds,
    "two calls share their noise": KeepsLastNoise,
    "the first row's top_k is the last call's": LeaksParameters,
    "a race whose noise repeats every 1,024 tokens": RaceWithAPeriod,
    "the last partial tile is never drawn": LastTokenNever,
    "ids of 16 bits": IdsOf16Bits,
}


class Filter(Sampler):
    """Filtered logits over the temperature."""

    def __call__(self, logits, params):
        x = np.asarray(logits)
        p = self.probabilities(x, dict(params))
        out = x.astype(np.float64) / np.maximum(params["temperature"], 1e-30)[:, None]
        return np.where(p > 0.0, out, -np.inf).astype(np.float32)


def filter_of(sampler):
    return type("Filter" + sampler.__name__, (Filter, sampler), {})


class TopPWithoutItsLast(Filter):
    """The token that crosses top_p is dropped, but where it is the first."""

    def keeps_p(self, p, top_p):
        keep = np.cumsum(p, axis=1) <= top_p[:, None]
        keep[:, 0] = True
        return keep | (top_p >= 1.0)[:, None]


class MinPOfLogits(Filter):
    def kept(self, ranked, params):
        keep = super().kept(ranked, {name: value for name, value in params.items() if name != "min_p"})
        return keep & (ranked >= np.log(np.maximum(params["min_p"], 1e-30))[:, None] * 1.5) if "min_p" in params else keep


FILTER_FAULTS = {
    "top_k is at most 64": filter_of(CapsK),
    "filters look at 1,024 candidates": filter_of(CandidatesOf1024),
    "top_p sums in half precision": filter_of(HalfPrecisionSums),
    "parameters of row i / 32": filter_of(SAMPLER_FAULTS["parameters of row i / 32"]),
    "min_p before temperature": filter_of(FiltersBeforeTemperature),
    "the token that crosses top_p is dropped": TopPWithoutItsLast,
    "min_p compares logits": MinPOfLogits,
    "rows beyond 1,024 are not filtered": filter_of(SAMPLER_FAULTS["rows beyond 1,024 are not filtered"]),
}


class Verifier:
    """Chain verification (Leviathan et al. 2023) of a batch: rows are filtered by a Sampler, then p and q compared. Methods
    are the steps, for a fault to replace one."""

    filter = Sampler

    def __init__(self):
        self.rows = self.filter()

    def __call__(self, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
        ends = np.asarray(cu_num_draft_tokens, np.int64)
        lens = np.diff(ends, prepend=0)
        of_row = np.repeat(np.arange(len(ends)), lens + 1)
        chosen = self.of_rows(params, of_row, lens)
        p = self.rows.probabilities(np.asarray(target_logits), chosen)
        out = np.full((len(ends), int(lens.max(initial=0)) + 1), -1, np.int32)
        for b, (end, count) in enumerate(zip(ends, lens)):
            begin = end - count
            x = np.asarray(draft_tokens[begin:end], np.int64)
            q = self.proposal(x, None if draft_probs is None else np.asarray(draft_probs[begin:end], np.float64), p.shape[1])
            tokens = self.verify(x, p[begin + b:end + b + 1], q, seeds[b], b)
            out[b, :len(tokens)] = tokens
        return out

    def of_rows(self, params, of_row, lens):
        return {name: np.asarray(value)[of_row] for name, value in params.items()}

    def proposal(self, x, q, vocab):
        if q is not None:
            return q
        rows = np.zeros((len(x), vocab))
        rows[np.arange(len(x)), x] = 1.0
        return rows

    def coin(self, seed, b, i):
        return uniform(seed, 3, i)

    def draw(self, weights, seed, b, i):
        u = self.draw_coin(seed, b, i)
        total = np.cumsum(weights)
        return int(min((total <= u * total[-1]).sum(), len(weights) - 1))

    def draw_coin(self, seed, b, i):
        return uniform(seed, 4, i)

    def accepts(self, u, p, q):
        return u * q < p

    def residual(self, p, q):
        left = np.maximum(p - q, 0.0)
        return left if left.sum() > 0.0 else p

    def verify(self, x, p, q, seed, b):
        for i, token in enumerate(x):
            if not self.accepts(self.coin(seed, b, i), p[i][token], q[i][token]):
                return [*map(int, x[:i]), self.draw(self.residual(p[i], q[i]), seed, b, i)]
        return [*map(int, x), *self.bonus(x, p, q, seed, b)]

    def bonus(self, x, p, q, seed, b):
        return [self.draw(p[len(x)], seed, b, len(x))]


class NoBonus(Verifier):
    """Exact and slow: nothing is emitted behind an accepted draft."""

    def bonus(self, x, p, q, seed, b):
        return super().bonus(x, p, q, seed, b) if len(x) == 0 else []


class BonusOfTheRowBefore(Verifier):
    def bonus(self, x, p, q, seed, b):
        return [self.draw(p[max(len(x) - 1, 0)], seed, b, len(x))]


class RecoversFromTheFirst(Verifier):
    def verify(self, x, p, q, seed, b):
        for i, token in enumerate(x):
            if not self.accepts(self.coin(seed, b, i), p[i][token], q[i][token]):
                return [*map(int, x[:i]), self.draw(self.residual(p[0], q[0]), seed, b, i)]
        return [*map(int, x), *self.bonus(x, p, q, seed, b)]


class AbsoluteResidual(Verifier):
    def residual(self, p, q):
        left = np.abs(p - q)
        return left if left.sum() > 0.0 else p


class RecoversFromTarget(Verifier):
    def residual(self, p, q):
        return p


class ResidualInHalf(Verifier):
    def residual(self, p, q):
        return super().residual(p.astype(np.float16).astype(np.float64), q.astype(np.float16).astype(np.float64))


class AcceptsALittleMore(Verifier):
    def accepts(self, u, p, q):
        return u * q < p + 1e-3


class AcceptsLess(Verifier):
    """Exact no longer: a tenth of what should be accepted is not."""

    def accepts(self, u, p, q):
        return u * q < 0.9 * p


class FirstTemperature(Verifier):
    def of_rows(self, params, of_row, lens):
        chosen = super().of_rows(params, of_row, lens)
        return {**chosen, "temperature": np.full_like(chosen["temperature"], params["temperature"][0])}


class NextTopK(Verifier):
    def of_rows(self, params, of_row, lens):
        chosen = super().of_rows(params, of_row, lens)
        return {**chosen, "top_k": np.roll(params["top_k"], -1)[of_row]}


class ParametersByRow(Verifier):
    """Parameters are read by row as if every request had as many drafts as the longest."""

    def of_rows(self, params, of_row, lens):
        width = int(lens.max(initial=0)) + 1
        read = np.minimum(np.arange(len(of_row)) // width, len(lens) - 1)
        return {name: np.asarray(value)[read] for name, value in params.items()}


class BonusUnfiltered(Verifier):
    def __call__(self, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
        self.logits, self.temperatures = np.asarray(target_logits), params["temperature"]
        self.ends = np.asarray(cu_num_draft_tokens)
        return super().__call__(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds)

    def bonus(self, x, p, q, seed, b):
        if self.temperatures[b] == 0.0:
            return super().bonus(x, p, q, seed, b)
        row = self.logits[self.ends[b] + b].astype(np.float64)
        row = np.exp((row - row.max()) / self.temperatures[b])
        return [self.draw(row / row.sum(), seed, b, len(x))]


class GreedyTakesCoins(Verifier):
    """A greedy request beside random ones is drawn at temperature 1."""

    def of_rows(self, params, of_row, lens):
        chosen = super().of_rows(params, of_row, lens)
        mixed = (params["temperature"] == 0.0).any() and (params["temperature"] > 0.0).any()
        return set_where(chosen, "temperature", mixed & (chosen["temperature"] == 0.0), 1.0)


class RandomIsGreedy(Verifier):
    """A random request beside greedy ones is greedy."""

    def of_rows(self, params, of_row, lens):
        chosen = super().of_rows(params, of_row, lens)
        mixed = (params["temperature"] == 0.0).any() and (params["temperature"] > 0.0).any()
        return set_where(chosen, "temperature", mixed, 0.0)


class AcceptsBeyondEight(Verifier):
    judged = 8

    def verify(self, x, p, q, seed, b):
        for i, token in enumerate(x[:self.judged]):
            if not self.accepts(self.coin(seed, b, i), p[i][token], q[i][token]):
                return [*map(int, x[:i]), self.draw(self.residual(p[i], q[i]), seed, b, i)]
        return [*map(int, x), *self.bonus(x, p, q, seed, b)]


class CoinsOfPeriodFour(Verifier):
    def coin(self, seed, b, i):
        return super().coin(seed, b, i % 4)


class RequestsShareCoins(Verifier):
    def __call__(self, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
        seeds = np.asarray(seeds)[np.arange(len(seeds)) % 32]
        return super().__call__(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds)


class SeedsOf16Bits(Verifier):
    def coin(self, seed, b, i):
        return super().coin(int(seed) & 0xFFFF, b, i)

    def draw_coin(self, seed, b, i):
        return super().draw_coin(int(seed) & 0xFFFF, b, i)


class CoinsOf8Bits(Verifier):
    def coin(self, seed, b, i):
        return np.floor(super().coin(seed, b, i) * 256.0) / 256.0


class CoinOfTheLastCall(Verifier):
    """The first draft's coin is the one of the last call's first draft in that place, every second call."""

    def __init__(self):
        super().__init__()
        self.coins, self.calls = {}, 0

    def __call__(self, *given):
        self.calls += 1
        return super().__call__(*given)

    def coin(self, seed, b, i):
        if i > 0:
            return super().coin(seed, b, i)
        if self.calls % 2 == 1 or b not in self.coins:
            self.coins[b] = super().coin(seed, b, 0)
        return self.coins[b]


class NextStepsNoise(Verifier):
    """What is drawn behind the drafts uses the first coin of the next seed."""

    def draw_coin(self, seed, b, i):
        with np.errstate(over="ignore"):
            return self.coin(np.uint64(seed) + np.uint64(1), b, 0)


class SameNoiseForRecovered(Verifier):
    def draw_coin(self, seed, b, i):
        return self.coin(seed, b, i)


class DraftIdsOf16Bits(Verifier):
    """Probabilities of a draft are looked up by the low 16 bits of its id."""

    def verify(self, x, p, q, seed, b):
        for i, token in enumerate(x):
            if not self.accepts(self.coin(seed, b, i), p[i][token & 0xFFFF], q[i][token & 0xFFFF]):
                return [*map(int, x[:i]), self.draw(self.residual(p[i], q[i]), seed, b, i)]
        return [*map(int, x), *self.bonus(x, p, q, seed, b)]


class UniformProposal(Verifier):
    def proposal(self, x, q, vocab):
        return q if q is not None else np.full((len(x), vocab), 1.0 / vocab)


class SkipsEmpty(Verifier):
    """Behind a request without drafts, rows are read one too early."""

    def __call__(self, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
        lens = np.diff(np.asarray(cu_num_draft_tokens), prepend=0)
        rows = np.arange(len(target_logits))
        late = np.cumsum(np.concatenate([[0], lens[:-1] == 0])) > 0
        rows = np.where(np.repeat(late, lens + 1), np.maximum(rows - 1, 0), rows)
        return super().__call__(draft_tokens, draft_probs, np.asarray(target_logits)[rows], cu_num_draft_tokens, params, seeds)


VERIFIER_FAULTS = {
    "no bonus token": NoBonus,
    "the bonus token is of the row before": BonusOfTheRowBefore,
    "the bonus token is of the unfiltered row": BonusUnfiltered,
    "recovered tokens are of the first row": RecoversFromTheFirst,
    "the residual is absolute": AbsoluteResidual,
    "recovered tokens are of the target": RecoversFromTarget,
    "the residual is of half precision": ResidualInHalf,
    "a thousandth more is accepted": AcceptsALittleMore,
    "a tenth less is accepted": AcceptsLess,
    "the first request's temperature": FirstTemperature,
    "the next request's top_k": NextTopK,
    "parameters by the longest draft": ParametersByRow,
    "greedy beside random is drawn": GreedyTakesCoins,
    "random beside greedy is greedy": RandomIsGreedy,
    "all drafts beyond the eighth are accepted": AcceptsBeyondEight,
    "coins repeat every four drafts": CoinsOfPeriodFour,
    "requests 32 apart share their coins": RequestsShareCoins,
    "seeds of 16 bits": SeedsOf16Bits,
    "coins of 8 bits": CoinsOf8Bits,
    "the first coin is the last call's": CoinOfTheLastCall,
    "noise of the next seed": NextStepsNoise,
    "recovered tokens use the coin that rejected": SameNoiseForRecovered,
    "drafts by ids of 16 bits": DraftIdsOf16Bits,
    "drafts without probabilities are taken for uniform ones": UniformProposal,
    "rows shift behind an empty draft": SkipsEmpty,
}

class NoTopKBeyond(ManyTokens):
    beyond = 100_000

    def wrong(self, logits, params, seeds):
        return Sampler.__call__(self, logits, {**params, "top_k": np.zeros_like(params["top_k"])}, seeds)


class MinPWithoutTopK(Sampler):
    def kept(self, ranked, params):
        if "min_p" in params:
            params = {**params, "min_p": np.where(params["top_k"] > 0, 0.0, params["min_p"])}
        return super().kept(ranked, params)


class SeedsWithoutBit40(Sampler):
    def uniforms(self, seeds, count):
        return super().uniforms(np.asarray(seeds) & ~np.uint64(1 << 40), count)


class NoiseOfTwoBefore(Sampler):
    """In batches of more than 100 rows, two of four rows take the noise of the two before them."""

    def uniforms(self, seeds, count):
        rows = np.arange(count)
        return super().uniforms(seeds, count)[np.where((rows % 4 >= 2) & (count > 100), rows - 2, rows)]


class GreedyOfTheFirst50000(Sampler):
    def scaled(self, x, temperature):
        greedy = temperature == 0.0
        cut = np.where(greedy[:, None] & (np.arange(x.shape[1]) >= 50_000)[None, :], -np.inf, x).astype(np.float32)
        return super().scaled(cut, temperature)


class EighthCallRepeats(Sampler):
    """Every eighth call takes the noise of the first one of its size."""

    def __init__(self):
        self.calls, self.first = 0, {}

    def uniforms(self, seeds, count):
        self.calls += 1
        u = super().uniforms(seeds, count)
        return self.first[count] if self.calls % 8 == 0 and count in self.first else self.first.setdefault(count, u) * 0.0 + u


class AbsoluteMinP(Sampler):
    def kept(self, ranked, params):
        rest = {name: value for name, value in params.items() if name != "min_p"}
        keep = super().kept(ranked, rest)
        if "min_p" not in params:
            return keep
        p = np.where(keep, np.exp(ranked), 0.0)
        p /= p.sum(axis=1, keepdims=True)
        enough = p >= params["min_p"][:, None]
        enough[:, 0] = True
        return keep & enough


class ClampedLogits(Sampler):
    def scaled(self, x, temperature):
        return super().scaled(np.where(x == -np.inf, x, np.clip(x, -50.0, 50.0)), temperature)


class MaskedRowsWithoutTopP(Sampler):
    """Rows of which more than half is masked ignore top_p."""

    def probabilities(self, x, params):
        masked = np.isneginf(x).mean(axis=1) > 0.5
        return super().probabilities(x, {**params, "top_p": np.where(masked, 1.0, params["top_p"]).astype(np.float32)})


class LastRowUnfiltered(Filter):
    """A batch of 8 n + 1 rows: its last row is not filtered."""

    def parameters(self, params):
        count = len(params["temperature"])
        if count % 8 != 1 or count == 1:
            return params
        last = np.arange(count) == count - 1
        return {**params, "top_k": np.where(last, 0, params["top_k"]), "top_p": np.where(last, 1.0, params["top_p"])}


class MinPOf100(Filter):
    """min-p keeps 100 tokens at most."""

    def kept(self, ranked, params):
        keep = super().kept(ranked, params)
        on = params["min_p"][:, None] > 0.0 if "min_p" in params else np.zeros((len(ranked), 1), bool)
        return keep & ~(on & (np.arange(ranked.shape[1]) >= 100)[None, :])


class DropsDraftsBeyond16(Verifier):
    def verify(self, x, p, q, seed, b):
        return super().verify(x[:16], p[:17], q[:16], seed, b)


class QOfTheNextDraft(Verifier):
    def verify(self, x, p, q, seed, b):
        return super().verify(x, p, np.roll(q, -1, axis=0) if len(x) else q, seed, b)


class GreedyBonusOfLongDrafts(Verifier):
    def bonus(self, x, p, q, seed, b):
        return [int(p[len(x)].argmax())] if len(x) >= 5 else super().bonus(x, p, q, seed, b)


class ResidualWithoutTheRejected(Verifier):
    """Only the rejected token is taken out of the target."""

    def verify(self, x, p, q, seed, b):
        for i, token in enumerate(x):
            if not self.accepts(self.coin(seed, b, i), p[i][token], q[i][token]):
                left = p[i].copy()
                left[token] = 0.0
                return [*map(int, x[:i]), self.draw(left if left.sum() > 0.0 else p[i], seed, b, i)]
        return [*map(int, x), *self.bonus(x, p, q, seed, b)]


class PairsShareCoins(Verifier):
    """Requests 2 n and 2 n + 1 of a call have one coin for their first drafts."""

    def __call__(self, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
        self.given = np.asarray(seeds)
        return super().__call__(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds)

    def coin(self, seed, b, i):
        return super().coin(self.given[b // 2 * 2], b, i)


class TopPOfTheLongest(Verifier):
    def of_rows(self, params, of_row, lens):
        chosen = super().of_rows(params, of_row, lens)
        return {**chosen, "top_p": np.full_like(chosen["top_p"], params["top_p"][int(np.argmax(lens))])}


class RequestsFrom64OnAreGreedy(Verifier):
    def of_rows(self, params, of_row, lens):
        return set_where(super().of_rows(params, of_row, lens), "temperature", of_row >= 64, 0.0)


class UnfilteredWithoutProbabilities(Verifier):
    def __call__(self, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
        self.filtered = draft_probs is not None
        return super().__call__(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds)

    def of_rows(self, params, of_row, lens):
        chosen = super().of_rows(params, of_row, lens)
        off = np.full(len(of_row), not self.filtered)
        return set_where(set_where(chosen, "top_k", off, 0), "top_p", off, 1.0)


class ClampsTheTarget(Verifier):
    def __call__(self, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
        logits = np.where(np.isfinite(target_logits), np.clip(target_logits, -1000.0, 1000.0), target_logits)
        return super().__call__(draft_tokens, draft_probs, logits, cu_num_draft_tokens, params, seeds)


class RequestsFrom1500OnAreUnfiltered(Verifier):
    def of_rows(self, params, of_row, lens):
        chosen = super().of_rows(params, of_row, lens)
        return set_where(set_where(chosen, "top_k", of_row >= 1500, 0), "top_p", of_row >= 1500, 1.0)


#: Written when the sweep was done and not looked at before: how many an audit finds at first try is in docs/audit.md.
SECOND = {"sample": {
    "top_k is skipped beyond 100,000 tokens": NoTopKBeyond,
    "min_p is skipped where top_k is on": MinPWithoutTopK,
    "top_p is skipped below a temperature of 0.1": with_parameters(
        lambda params, rows: set_where(params, "top_p", (params["temperature"] < 0.1) & (params["temperature"] > 0), 1.0)),
    "the last row of an odd batch has the first one's temperature": with_parameters(
        lambda params, rows: set_where(params, "temperature", (rows == len(rows) - 1) & (len(rows) % 2 == 1), params["temperature"][0])),
    "seeds without bit 40": SeedsWithoutBit40,
    "rows share noise in batches above 100": NoiseOfTwoBefore,
    "greedy looks at the first 50,000 tokens": GreedyOfTheFirst50000,
    "every eighth call repeats the first one's noise": EighthCallRepeats,
    "top_k of 8 bits": with_parameters(lambda params, rows: set_where(params, "top_k", rows >= 0, params["top_k"] & 0xFF)),
    "min_p is absolute": AbsoluteMinP,
    "temperatures are rounded to tenths": with_parameters(
        lambda params, rows: set_where(params, "temperature", rows >= 0, np.round(params["temperature"], 1))),
    "logits are clamped to +-50": ClampedLogits,
    "masked rows ignore top_p": MaskedRowsWithoutTopP}, "filter": {
    "the last row of 8 n + 1 is not filtered": LastRowUnfiltered,
    "min_p keeps 100 tokens at most": MinPOf100}, "verify": {
    "drafts beyond the 16th are dropped": DropsDraftsBeyond16,
    "q of the next draft": QOfTheNextDraft,
    "the bonus token of 5 drafts and more is greedy": GreedyBonusOfLongDrafts,
    "only the rejected token leaves the residual": ResidualWithoutTheRejected,
    "pairs of requests share coins": PairsShareCoins,
    "top_p of the request with the longest draft": TopPOfTheLongest,
    "requests from the 64th on are greedy": RequestsFrom64OnAreGreedy}}

#: Of holes that a reading of the sweep found; its rows for them were added with these.
THIRD = {"sample": {
    "greedy rows of batches above 300 are drawn": with_parameters(
        lambda params, rows: set_where(params, "temperature", (params["temperature"] == 0) & (len(rows) > 300), 1.0)),
    "min_p below 1e-5 is off": with_parameters(lambda params, rows: set_where(params, "min_p", params["min_p"] < 1e-5, 0.0))},
    "filter": {}, "verify": {
    "drafts without probabilities are not filtered": UnfilteredWithoutProbabilities,
    "logits are clamped to +-1,000": ClampsTheTarget,
    "requests from the 1,500th on are not filtered": RequestsFrom1500OnAreUnfiltered}}

class TopPOfAHundred(Sampler):
    """top-p keeps 100 tokens at most."""

    def keeps_p(self, p, top_p):
        return super().keeps_p(p, top_p) & ((np.arange(p.shape[1]) < 100)[None, :] | (top_p >= 1.0)[:, None])


class MinPOfTheSecond(Sampler):
    """min-p is relative to the second likeliest token."""

    def kept(self, ranked, params):
        keep = super().kept(ranked, {name: value for name, value in params.items() if name != "min_p"})
        if "min_p" not in params or ranked.shape[1] < 2:
            return keep
        enough = np.exp(ranked) >= params["min_p"][:, None] * np.exp(ranked[:, 1:2])
        enough[:, 0] = True
        return keep & enough


class SeedsWithoutBit63(Sampler):
    def uniforms(self, seeds, count):
        return super().uniforms(np.asarray(seeds, np.uint64) << np.uint64(1), count)


class NoiseByRow(Sampler):
    def uniforms(self, seeds, count):
        return super().uniforms(np.arange(count, dtype=np.uint64), count)


class GreedyInBfloat16(Sampler):
    def scaled(self, x, temperature):
        return super().scaled(np.where((temperature == 0.0)[:, None], bfloat16(x), x), temperature)


class LastRowRepeats(Sampler):
    """In batches of a multiple of 64 rows the last two draw with one number."""

    def uniforms(self, seeds, count):
        u = np.array(super().uniforms(seeds, count))
        if count % 64 == 0:
            u[-1] = u[-2]
        return u


class WithoutTheLastThousand(ManyTokens):
    beyond = 150_000

    def wrong(self, logits, params, seeds):
        return Sampler.__call__(self, np.asarray(logits)[:, :-1000], params, seeds)


class HotRowsForgetTheMask(Sampler):
    def scaled(self, x, temperature):
        out = super().scaled(x, temperature)
        return np.where((temperature > 500.0)[:, None], 0.0, out)


class TwoFiltersAreOne(Filter):
    """top_p is skipped where there is a top_k."""

    def parameters(self, params):
        return {**params, "top_p": np.where(params["top_k"] > 0, 1.0, params["top_p"]).astype(np.float32)}


class MinPKeepsTwo(Filter):
    def kept(self, ranked, params):
        keep = super().kept(ranked, params)
        if "min_p" in params:
            rest = super().kept(ranked, {name: value for name, value in params.items() if name != "min_p"})
            keep[:, :2] |= rest[:, :2] & (params["min_p"] > 0.0)[:, None]
        return keep


class ColdRowsUnfiltered(Filter):
    def parameters(self, params):
        cold = (params["temperature"] > 0.0) & (params["temperature"] < 0.02)
        return {**params, "top_k": np.where(cold, 0, params["top_k"])}


def with_requests(change):
    """A verifier whose rows have other parameters: change(those of each row, those of each request, of_row, lens)."""

    class Changed(Verifier):
        def of_rows(self, params, of_row, lens):
            chosen = {name: np.array(value) for name, value in super().of_rows(params, of_row, lens).items()}
            return change(chosen, params, of_row, lens)

    return Changed


def is_bonus(lens):
    return np.arange(lens.sum() + len(lens)) == np.repeat(np.cumsum(lens + 1) - 1, lens + 1)


class WarmMinP(Verifier):
    filter = FiltersBeforeTemperature


class BonusRowsResidual(Verifier):
    """What is recovered behind the last draft is of the bonus row."""

    def verify(self, x, p, q, seed, b):
        for i, token in enumerate(x):
            if not self.accepts(self.coin(seed, b, i), p[i][token], q[i][token]):
                row = p[i + 1] if i == len(x) - 1 else p[i]
                return [*map(int, x[:i]), self.draw(self.residual(row, q[i]), seed, b, i)]
        return [*map(int, x), *self.bonus(x, p, q, seed, b)]


class FilteredProposal(Verifier):
    """q is cut to the tokens that the target keeps, though drafts were drawn from all of it."""

    def verify(self, x, p, q, seed, b):
        kept = [np.where(row > 0.0, drafts, 0.0) for row, drafts in zip(p, q)]
        q = np.array([row / row.sum() if row.sum() > 0.0 else drafts for row, drafts in zip(kept, q)]).reshape(q.shape)
        return super().verify(x, p, q, seed, b)


class MatchesTheArgmax(Verifier):
    """A draft without probabilities stands where it is the likeliest token."""

    def __call__(self, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
        self.matches = draft_probs is None
        return super().__call__(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds)

    def verify(self, x, p, q, seed, b):
        if not self.matches:
            return super().verify(x, p, q, seed, b)
        for i, token in enumerate(x):
            if p[i].argmax() != token:
                return [*map(int, x[:i]), self.draw(p[i], seed, b, i)]
        return [*map(int, x), *self.bonus(x, p, q, seed, b)]


class LoneFirstDraftStands(Verifier):
    """The first draft of a batch of one request is not judged."""

    def __call__(self, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
        self.alone = len(cu_num_draft_tokens) == 1
        return super().__call__(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds)

    def coin(self, seed, b, i):
        return 0.0 if self.alone and i == 0 else super().coin(seed, b, i)


class MirroredCoins(Verifier):
    """Request B - 1 - b has the first coin of request b."""

    def __call__(self, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
        self.given = np.asarray(seeds)
        return super().__call__(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds)

    def coin(self, seed, b, i):
        return super().coin(self.given[min(b, len(self.given) - 1 - b)], b, i)


class TopKOfTheResidual(Verifier):
    """top_k cuts what is drawn, not what drafts are judged by."""

    def __call__(self, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
        self.k = params["top_k"]
        off = {**{name: params[name] for name in params}, "top_k": np.zeros_like(params["top_k"])}
        return super().__call__(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, off, seeds)

    def draw(self, weights, seed, b, i):
        k = int(self.k[b])
        if 0 < k < len(weights):
            weights = np.where(weights >= np.sort(weights)[-k], weights, 0.0)
        return super().draw(weights, seed, b, i)


class SumOfSeedAndPlace(Verifier):
    """The coin of place i is that of place 0 of the seed i further."""

    def coin(self, seed, b, i):
        with np.errstate(over="ignore"):
            return super().coin(np.uint64(seed) + np.uint64(i), b, 0)


class RowsOfTheSecondHalf(Verifier):
    """Of more than 16 drafts those from the 17th on are judged by the row of the 16th."""

    def verify(self, x, p, q, seed, b):
        if len(x) > 16:
            p = p[np.minimum(np.arange(len(p)), 15)]
        return super().verify(x, p, q, seed, b)


class Bfloat16Rows(Verifier):
    def __call__(self, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
        return super().__call__(draft_tokens, draft_probs, bfloat16(target_logits), cu_num_draft_tokens, params, seeds)


class GreedyRecoversFromTheNextRow(Verifier):
    def verify(self, x, p, q, seed, b):
        for i, token in enumerate(x):
            if not self.accepts(self.coin(seed, b, i), p[i][token], q[i][token]):
                greedy = (p[i] > 0.0).sum() == 1
                row = p[i + 1] if greedy else p[i]
                return [*map(int, x[:i]), self.draw(self.residual(row, q[i]), seed, b, i)]
        return [*map(int, x), *self.bonus(x, p, q, seed, b)]


#: Written before min-p reached verifiers and suspects were named by a rule, in regimes and in ways that the first sets have not;
#: run once, as they are.
FOURTH = {"sample": {
    "top_p keeps 100 tokens at most": TopPOfAHundred,
    "min_p is relative to the second token": MinPOfTheSecond,
    "seeds without bit 63": SeedsWithoutBit63,
    "noise by the row alone": NoiseByRow,
    "greedy in bfloat16": GreedyInBfloat16,
    "the last two rows of a multiple of 64 share noise": LastRowRepeats,
    "the last thousand of 150,000 tokens never come": WithoutTheLastThousand,
    "hot rows are uniform, masked tokens too": HotRowsForgetTheMask,
    "parameters of row i modulo 16": with_parameters(lambda params, rows: shifted(params, rows, rows % 16)),
    "top_p above 0.98 is off": with_parameters(lambda params, rows: set_where(params, "top_p", params["top_p"] > 0.98, 1.0)),
    "temperatures in half precision": with_parameters(
        lambda params, rows: set_where(params, "temperature", rows >= 0, np.minimum(params["temperature"], 65504).astype(np.float16)))},
    "filter": {
    "top_p is skipped where top_k is on": TwoFiltersAreOne,
    "min_p keeps two tokens at least": MinPKeepsTwo,
    "top_k is skipped below a temperature of 0.02": ColdRowsUnfiltered}, "verify": {
    "min_p is not applied": with_requests(lambda chosen, params, of_row, lens: {
        name: value for name, value in chosen.items() if name != "min_p" or (value >= 1.0).all()}),
    "min_p is not applied to bonus rows": with_requests(lambda chosen, params, of_row, lens: set_where(
        chosen, "min_p", is_bonus(lens) & (len(set(lens.tolist())) > 1), 0.0) if "min_p" in chosen else chosen),
    "min_p of the next request": with_requests(lambda chosen, params, of_row, lens: {
        **chosen, **({"min_p": np.roll(params["min_p"], -1)[of_row]} if "min_p" in params else {})}),
    "min_p before temperature": WarmMinP,
    "top_k is skipped for more than four drafts": with_requests(
        lambda chosen, params, of_row, lens: set_where(chosen, "top_k", lens[of_row] > 4, 0)),
    "a temperature below 0.3 is 1": with_requests(lambda chosen, params, of_row, lens: set_where(
        chosen, "temperature", (chosen["temperature"] > 0.0) & (chosen["temperature"] < 0.3), 1.0)),
    "parameters of request b modulo 256": with_requests(
        lambda chosen, params, of_row, lens: {name: np.asarray(params[name])[of_row % 256] for name in params}),
    "requests without drafts are greedy": with_requests(lambda chosen, params, of_row, lens: set_where(
        chosen, "temperature", (lens[of_row] == 0) & (lens.max(initial=0) > 0), 0.0)),
    "what is recovered behind the last draft is of the bonus row": BonusRowsResidual,
    "q is cut to the target's tokens": FilteredProposal,
    "drafts without probabilities stand where they are likeliest": MatchesTheArgmax,
    "the first draft of a lone request stands": LoneFirstDraftStands,
    "requests share coins with their mirror": MirroredCoins,
    "top_k cuts what is drawn alone": TopKOfTheResidual,
    "coins by seed plus place": SumOfSeedAndPlace,
    "rows beyond the 16th are the 16th": RowsOfTheSecondHalf,
    "rows in bfloat16": Bfloat16Rows,
    "greedy requests recover from the next row": GreedyRecoversFromTheNextRow}}


class Undivided(Sampler):
    """What filters dropped is not divided out."""

    def probabilities(self, x, params):
        p = super().probabilities(x, params)
        whole = np.exp(self.scaled(x, params["temperature"].astype(np.float64)))
        return np.where(p > 0.0, whole / whole.sum(axis=1, keepdims=True), 0.0)


class DroppedMassToTheLikeliest(Undivided):
    """Numbers beyond the kept mass give the likeliest token."""

    def probabilities(self, x, params):
        kept = super().probabilities(x, params)
        kept[np.arange(len(kept)), kept.argmax(axis=1)] += 1.0 - kept.sum(axis=1)
        return kept


class PaddedVocabulary(Sampler):
    """Rows are padded to a multiple of 64 tokens with logits of 0; ids beyond V are taken for the last token."""

    def __call__(self, logits, params, seeds):
        x = np.asarray(logits)
        vocab = x.shape[1]
        padded = np.zeros((len(x), -(-vocab // 64) * 64), np.float32)
        padded[:, :vocab] = x
        return np.minimum(super().__call__(padded, params, seeds), vocab - 1).astype(np.int32)


class SeedXorRow(Sampler):
    def uniforms(self, seeds, count):
        return super().uniforms(np.asarray(seeds, np.uint64) ^ np.arange(count, dtype=np.uint64), count)


class WeylSeeds(Sampler):
    """Numbers are multiples of the golden ratio by the seed."""

    def uniforms(self, seeds, count):
        with np.errstate(over="ignore"):
            return (np.asarray(seeds, np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(11)).astype(np.float64) * 2.0 ** -53


class RaceOf16Bits(Sampler):
    """An exponential race on numbers of 16 bits."""

    def __call__(self, logits, params, seeds):
        p = self.probabilities(np.asarray(logits), dict(params))
        place = np.arange(p.shape[1], dtype=np.uint64)
        u = np.floor(uniform(np.asarray(seeds, np.uint64)[:, None], 2, place[None, :]) * 65536.0) / 65536.0
        noise = -np.log(1.0 - u)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(p > 0.0, noise / p, np.inf).argmin(axis=1).astype(np.int32)


def off_by_the_first(params, rows):
    """Filters are skipped where the first row has none."""
    for name, off in (("top_k", 0), ("top_p", 1.0), ("min_p", 0.0)):
        if name in params and (params[name][0] <= 0 if name != "top_p" else params[name][0] >= 1.0):
            params[name][:] = off
    return params


class StaleParameters(Sampler):
    """A call of the last call's shape has the last call's parameters."""

    def __init__(self):
        self.last = None

    def parameters(self, params):
        params = {name: np.array(value) for name, value in params.items()}
        last, self.last = self.last, params
        same = last is not None and set(last) == set(params) and len(last["top_k"]) == len(params["top_k"])
        return last if same else params


class OrderInBfloat16(Sampler):
    """Filters sort by logits of bfloat16."""

    def probabilities(self, x, params):
        scaled = self.scaled(x, params["temperature"].astype(np.float64))
        if not self.filters(params):
            p = np.exp(scaled)
            return p / p.sum(axis=1, keepdims=True)
        order = np.argsort(-bfloat16(x), axis=1, kind="stable")
        greedy = params["temperature"] == 0.0
        order[greedy] = np.argsort(-scaled[greedy], axis=1, kind="stable")
        ranked = np.take_along_axis(scaled, order, axis=1)
        p = np.where(self.kept(ranked, params), np.exp(ranked), 0.0)
        out = np.zeros_like(p)
        np.put_along_axis(out, order, p / p.sum(axis=1, keepdims=True), axis=1)
        return out


class TopKWithoutMinP(Sampler):
    """top-k is skipped where min-p is on."""

    def parameters(self, params):
        if "min_p" not in params:
            return params
        return {**params, "top_k": np.where(params["min_p"] > 0.0, 0, params["top_k"])}


class KeptAtTemperatureOne(Sampler):
    """Rows with a top-k are drawn at temperature 1."""

    def probabilities(self, x, params):
        p = super().probabilities(x, params)
        one = np.where(params["temperature"] == 0.0, 0.0, 1.0)
        q = np.where(p > 0.0, np.exp(self.scaled(x, one)), 0.0)
        q /= q.sum(axis=1, keepdims=True)
        return np.where((params["top_k"] > 0)[:, None], q, p)


class SecondTileShifts(ManyTokens):
    beyond = 131_072

    def wrong(self, logits, params, seeds):
        at = Sampler.__call__(self, logits, params, seeds)
        return np.minimum(np.where(at >= 131_072, at + 1, at), logits.shape[1] - 1).astype(np.int32)


class AbsoluteSeeds(Sampler):
    def uniforms(self, seeds, count):
        return super().uniforms(np.abs(np.asarray(seeds, np.uint64).view(np.int64)).astype(np.uint64), count)


class TenBelowTheTop(Sampler):
    def scaled(self, x, temperature):
        out = super().scaled(x, temperature)
        return np.where(out < -10.0, -np.inf, out)


class OneMoreThanTopP(Filter):
    def keeps_p(self, p, top_p):
        keep = super().keeps_p(p, top_p)
        more = np.concatenate([keep[:, :1], keep[:, :-1]], axis=1)
        return keep | (more & (p > 0.0))


class HalfOutputs(Filter):
    def __call__(self, logits, params):
        with np.errstate(over="ignore"):
            return super().__call__(logits, params).astype(np.float16).astype(np.float32)


class UnfilteredUnscaled(Filter):
    """Rows without a filter are returned as they are."""

    def __call__(self, logits, params):
        out = super().__call__(logits, params)
        plain = (params["top_k"] <= 0) & (params["top_p"] >= 1.0) & (params["temperature"] > 0.0)
        if "min_p" in params:
            plain &= params["min_p"] <= 0.0
        return np.where(plain[:, None], np.asarray(logits), out).astype(np.float32)


class EpsilonInTheRatio(Verifier):
    def accepts(self, u, p, q):
        return u < p / (q + 1e-3)


class UndividedTarget(Verifier):
    filter = Undivided


class ProposalAtTheTargetsTemperature(Verifier):
    """q is taken for logits' softmax at temperature 1 and cooled like the target."""

    def __call__(self, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
        self.temperature = params["temperature"]
        return super().__call__(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds)

    def verify(self, x, p, q, seed, b):
        t = float(self.temperature[b])
        if len(q) and t > 0.0:
            with np.errstate(divide="ignore", over="ignore", under="ignore"):
                w = np.exp((np.log(q) - np.log(q.max(axis=1, keepdims=True))) / t)
            q = w / w.sum(axis=1, keepdims=True)
        return super().verify(x, p, q, seed, b)


class StaleProposal(Verifier):
    """A call of the last call's shape reads the last call's draft probabilities."""

    def __init__(self):
        super().__init__()
        self.last = None

    def __call__(self, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
        last, self.last = self.last, None if draft_probs is None else np.array(draft_probs)
        if last is not None and draft_probs is not None and last.shape == draft_probs.shape:
            draft_probs = last
        return super().__call__(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds)


class SmallResidualIsTheTarget(Verifier):
    def residual(self, p, q):
        left = np.maximum(p - q, 0.0)
        return left if left.sum() > 0.05 else p


class ResidualOf65536(Verifier):
    def residual(self, p, q):
        left = super().residual(p, q).copy()
        if left[:65536].sum() > 0.0:
            left[65536:] = 0.0
        return left


class RecoversTheDraft(Verifier):
    """Without probabilities the draft stays in what is recovered from."""

    def __call__(self, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
        self.bare = draft_probs is None
        return super().__call__(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds)

    def residual(self, p, q):
        return p if self.bare else super().residual(p, q)


class ThreeAcceptedAreEnough(AcceptsBeyondEight):
    judged = 3


class NoBonusAtMultiplesOfEight(Verifier):
    def bonus(self, x, p, q, seed, b):
        return [] if len(x) and len(x) % 8 == 0 else super().bonus(x, p, q, seed, b)


class GreedyAcceptsByChance(Verifier):
    """Greedy requests accept by the target's probability at temperature 1, and recover the argmax."""

    def __call__(self, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
        self.logits, self.ends = np.asarray(target_logits, np.float64), np.asarray(cu_num_draft_tokens)
        self.greedy = params["temperature"] == 0.0
        return super().__call__(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds)

    def verify(self, x, p, q, seed, b):
        if not self.greedy[b]:
            return super().verify(x, p, q, seed, b)
        begin = int(self.ends[b]) - len(x) + b
        for i, token in enumerate(x):
            row = np.exp(self.logits[begin + i] - self.logits[begin + i].max())
            if not self.accepts(self.coin(seed, b, i), row[token] / row.sum(), q[i][token]):
                return [*map(int, x[:i]), int(p[i].argmax())]
        return [*map(int, x), *self.bonus(x, p, q, seed, b)]


class RejectsBeyond512(Verifier):
    """Drafts beyond the 512th of a call are rejected."""

    def __call__(self, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
        self.begins = np.asarray(cu_num_draft_tokens, np.int64) - np.diff(np.asarray(cu_num_draft_tokens, np.int64), prepend=0)
        return super().__call__(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds)

    def coin(self, seed, b, i):
        return np.inf if self.begins[b] + i >= 512 else super().coin(seed, b, i)


class OneCoinARequest(Verifier):
    def coin(self, seed, b, i):
        return super().coin(seed, b, 0)


class RecoveredShareNoise(Verifier):
    """What is drawn behind the drafts uses the number of the call's first request."""

    def __call__(self, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
        self.first = seeds[0] if len(seeds) else 0
        return super().__call__(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds)

    def draw_coin(self, seed, b, i):
        return super().draw_coin(self.first, b, i)


class EqualDraftsShareCoins(Verifier):
    """The coin goes by the draft's id: a draft that comes twice has one coin."""

    def verify(self, x, p, q, seed, b):
        for i, token in enumerate(x):
            if not self.accepts(self.coin(seed, b, int(token)), p[i][token], q[i][token]):
                return [*map(int, x[:i]), self.draw(self.residual(p[i], q[i]), seed, b, i)]
        return [*map(int, x), *self.bonus(x, p, q, seed, b)]


#: Written from what engines' code has looked like before anything was run, and run as they are.
FIFTH = {"sample": {
    "what filters dropped falls to the likeliest": DroppedMassToTheLikeliest,
    "rows are padded with logits of 0": PaddedVocabulary,
    "noise by seed xor row": SeedXorRow,
    "numbers are multiples of the golden ratio": WeylSeeds,
    "a race on 16 bits": RaceOf16Bits,
    "filters are skipped where the first row has none": with_parameters(off_by_the_first),
    "parameters of the last call of its shape": StaleParameters,
    "top_p in bfloat16": with_parameters(
        lambda params, rows: set_where(params, "top_p", rows >= 0, bfloat16(params["top_p"]))),
    "filters sort in bfloat16": OrderInBfloat16,
    "top_k is skipped where min_p is on": TopKWithoutMinP,
    "rows with a top_k are drawn at temperature 1": KeptAtTemperatureOne,
    "tokens beyond 131,072 shift by one": SecondTileShifts,
    "seeds lose their sign": AbsoluteSeeds,
    "top_p is the batch's largest": with_parameters(
        lambda params, rows: set_where(params, "top_p", rows >= 0, params["top_p"].max())),
    "tokens ten below the top never come": TenBelowTheTop}, "filter": {
    "top_p keeps one token more": OneMoreThanTopP,
    "logits come back in half precision": HalfOutputs,
    "rows without a filter are not scaled": UnfilteredUnscaled}, "verify": {
    "0.001 is added to q": EpsilonInTheRatio,
    "the target is not divided by what is kept": UndividedTarget,
    "q is cooled like the target": ProposalAtTheTargetsTemperature,
    "q of the last call of its shape": StaleProposal,
    "a residual below 0.05 is the target": SmallResidualIsTheTarget,
    "the residual ends at 65,536 tokens": ResidualOf65536,
    "drafts without probabilities are recovered": RecoversTheDraft,
    "three accepted drafts are enough": ThreeAcceptedAreEnough,
    "no bonus token at multiples of eight": NoBonusAtMultiplesOfEight,
    "greedy requests accept by chance": GreedyAcceptsByChance,
    "drafts beyond the 512th are rejected": RejectsBeyond512,
    "one coin a request": OneCoinARequest,
    "recovered tokens of a call share noise": RecoveredShareNoise,
    "equal drafts share coins": EqualDraftsShareCoins,
    "temperature is at least 0.5": with_requests(lambda chosen, params, of_row, lens: set_where(
        chosen, "temperature", (chosen["temperature"] > 0.0) & (chosen["temperature"] < 0.5), 0.5)),
    "bonus rows are drawn at temperature 1": with_requests(lambda chosen, params, of_row, lens: set_where(
        chosen, "temperature", is_bonus(lens) & (chosen["temperature"] > 0.0), 1.0))}}

class FiltersOfTheFirstBlock(Sampler):
    """Rows behind the 48th of a call keep what the 48th's top-k keeps."""

    def parameters(self, params):
        rows = np.minimum(np.arange(len(params["top_k"])), 47)
        return {**params, "top_k": np.asarray(params["top_k"])[rows]}


class OneNumberACall(Sampler):
    """All rows of a call are drawn with the first row's number."""

    def uniforms(self, seeds, count):
        return np.broadcast_to(super().uniforms(seeds, count)[:1], (count,))


class InverseInHalf(Sampler):
    """The running sum that a number is looked up in has half precision."""

    def tokens(self, p, u):
        total = np.cumsum(p.astype(np.float16), axis=1, dtype=np.float16).astype(np.float64)
        at = (total <= (u * total[:, -1])[:, None]).sum(axis=1)
        return np.minimum(at, p.shape[1] - 1).astype(np.int32)


class RaceWithEpsilon(Sampler):
    """0.001 is added to the numbers of an exponential race."""

    def __call__(self, logits, params, seeds):
        p = self.probabilities(np.asarray(logits), dict(params))
        place = np.arange(p.shape[1], dtype=np.uint64)
        u = uniform(np.asarray(seeds, np.uint64)[:, None], 3, place[None, :])
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(p > 0.0, (1e-3 - np.log(1.0 - u)) / p, np.inf).argmin(axis=1).astype(np.int32)


class MaskIsTheSmallestLogit(Sampler):
    """-infinity becomes the row's smallest finite logit less 10."""

    def __call__(self, logits, params, seeds):
        x = np.array(logits)
        least = np.where(np.isfinite(x), x, np.inf).min(axis=1, keepdims=True) - 10.0
        return super().__call__(np.where(np.isneginf(x), least, x).astype(np.float32), params, seeds)


class LoneRowIsGreedy(Sampler):
    """A call of one row is greedy."""

    def parameters(self, params):
        return params if len(params["temperature"]) > 1 else {**params, "temperature": np.zeros_like(params["temperature"])}


class PeakedRowsUnfiltered(Sampler):
    """top-p is skipped where one token has more than nine tenths."""

    def keeps_p(self, p, top_p):
        return super().keeps_p(p, np.where(p[:, 0] > 0.9, 1.0, top_p))


class LastTokenOfTopP(Sampler):
    """A row whose top-p keeps all but few tokens keeps all: sums above 0.999 are taken for 1."""

    def keeps_p(self, p, top_p):
        return super().keeps_p(p, np.where(top_p >= 0.95, 1.0, top_p))


class ModularSeeds(Sampler):
    """Seeds are taken modulo 2^31 - 1."""

    def uniforms(self, seeds, count):
        return super().uniforms(np.asarray(seeds, np.uint64) % np.uint64(2 ** 31 - 1), count)


class DroppedAtMinusTenThousand(Filter):
    def __call__(self, logits, params):
        out = super().__call__(logits, params)
        return np.where(np.isneginf(out), np.float32(-1e4), out)


class SeventhRowsWithoutMinP(Filter):
    """Every seventh row has no min-p."""

    def parameters(self, params):
        return params if "min_p" not in params else set_where(dict(params), "min_p", np.arange(len(params["min_p"])) % 7 == 6, 0.0)


class TopKOfTheBatch(Filter):
    def parameters(self, params):
        return {**params, "top_k": np.where(params["top_k"] > 0, params["top_k"].max(), params["top_k"])}


class WarmRowsUnscaled(Filter):
    """Rows of a temperature above 1 are not divided by it."""

    def __call__(self, logits, params):
        out = super().__call__(logits, params)
        return np.where((params["temperature"] > 1.0)[:, None], out * params["temperature"][:, None], out).astype(np.float32)


class AcceptsAtLeast(Verifier):
    """No draft is accepted with less than a hundredth."""

    def accepts(self, u, p, q):
        return u < max(0.01, p / q if q > 0.0 else 1.0)


class AcceptsWithoutQ(Verifier):
    """A draft whose q is below 1e-3 is accepted."""

    def accepts(self, u, p, q):
        return q < 1e-3 or super().accepts(u, p, q)


class ResidualFallsToTheLast(Verifier):
    """The residual is not divided by its sum: numbers beyond it give its last token."""

    def draw(self, weights, seed, b, i):
        u = self.draw_coin(seed, b, i)
        at = np.flatnonzero(np.cumsum(weights) > u)
        return int(at[0]) if at.size else int(np.flatnonzero(weights > 0.0)[-1])


class BonusWithTheLastCoin(Verifier):
    """The bonus token is drawn with the coin that accepted the last draft."""

    def bonus(self, x, p, q, seed, b):
        if not len(x):
            return super().bonus(x, p, q, seed, b)
        total = np.cumsum(p[len(x)])
        return [int(min((total <= self.coin(seed, b, len(x) - 1) * total[-1]).sum(), len(total) - 1))]


class RejectedAtOnceIsTheBonus(Verifier):
    """Where the first of several drafts falls, what comes is drawn from the row behind it."""

    def verify(self, x, p, q, seed, b):
        for i, token in enumerate(x):
            if not self.accepts(self.coin(seed, b, i), p[i][token], q[i][token]):
                row = p[1] if i == 0 and len(x) > 1 else self.residual(p[i], q[i])
                return [*map(int, x[:i]), self.draw(row, seed, b, i)]
        return [*map(int, x), *self.bonus(x, p, q, seed, b)]


class ResidualOfTheQBefore(Verifier):
    """The residual takes the draft row of the place before."""

    def verify(self, x, p, q, seed, b):
        for i, token in enumerate(x):
            if not self.accepts(self.coin(seed, b, i), p[i][token], q[i][token]):
                return [*map(int, x[:i]), self.draw(self.residual(p[i], q[max(i - 1, 0)]), seed, b, i)]
        return [*map(int, x), *self.bonus(x, p, q, seed, b)]


class SecondBlockShifts(Verifier):
    """Requests from the 128th on read the rows of the request before."""

    def __call__(self, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
        lens = np.diff(np.asarray(cu_num_draft_tokens), prepend=0)
        first = np.cumsum(lens + 1) - (lens + 1)
        of = np.repeat(np.arange(len(lens)), lens + 1)
        rows = np.arange(len(of))
        rows = np.where(of >= 128, first[np.maximum(of - 1, 0)] + np.minimum(rows - first[of], lens[np.maximum(of - 1, 0)]), rows)
        return super().__call__(draft_tokens, draft_probs, np.asarray(target_logits)[rows], cu_num_draft_tokens, params, seeds)


class SkipsTheLastDraft(Verifier):
    """The last draft of every request is taken as accepted."""

    def verify(self, x, p, q, seed, b):
        for i, token in enumerate(x[:-1]):
            if not self.accepts(self.coin(seed, b, i), p[i][token], q[i][token]):
                return [*map(int, x[:i]), self.draw(self.residual(p[i], q[i]), seed, b, i)]
        return [*map(int, x), *self.bonus(x, p, q, seed, b)]


class TopPOfTheResidual(Verifier):
    """Recovered tokens are drawn from the likeliest nine tenths of the residual."""

    def residual(self, p, q):
        left = super().residual(p, q)
        order = np.argsort(-left, kind="stable")
        total = np.cumsum(left[order])
        out = np.zeros_like(left)
        keep = order[:int((total < 0.9 * total[-1]).sum()) + 1]
        out[keep] = left[keep]
        return out


class ColdDraftsByArgmax(MatchesTheArgmax):
    """Below a temperature of 0.6 a draft stands where it is the likeliest token, and falls elsewhere."""

    def __call__(self, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
        self.temperature = params["temperature"]
        return super().__call__(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds)

    def verify(self, x, p, q, seed, b):
        self.matches = 0.0 < self.temperature[b] < 0.6
        return super().verify(x, p, q, seed, b)


#: Written when suspects were told apart by other cases, before anything was run, and run as they are.
SIXTH = {"sample": {
    "rows behind the 48th have its top_k": FiltersOfTheFirstBlock,
    "one number a call": OneNumberACall,
    "the running sum has half precision": InverseInHalf,
    "0.001 is added in a race": RaceWithEpsilon,
    "a mask is the row's least logit less 10": MaskIsTheSmallestLogit,
    "a lone row is greedy": LoneRowIsGreedy,
    "top_p is skipped where one token has nine tenths": PeakedRowsUnfiltered,
    "top_p from 0.95 on is off": LastTokenOfTopP,
    "seeds modulo 2^31 - 1": ModularSeeds,
    "min_p above 0.5 is 0.5": with_parameters(
        lambda params, rows: set_where(params, "min_p", params["min_p"] > 0.5, 0.5) if "min_p" in params else params),
    "temperatures above 4 are 4": with_parameters(
        lambda params, rows: set_where(params, "temperature", params["temperature"] > 4.0, 4.0)),
    "top_k is the least of the call": with_parameters(lambda params, rows: set_where(
        params, "top_k", params["top_k"] > 0, np.where(params["top_k"] > 0, params["top_k"], 1 << 30).min()))}, "filter": {
    "dropped tokens are at -10,000": DroppedAtMinusTenThousand,
    "every seventh row has no min_p": SeventhRowsWithoutMinP,
    "top_k is the batch's largest": TopKOfTheBatch,
    "warm rows are not scaled": WarmRowsUnscaled}, "verify": {
    "a hundredth of any draft is accepted": AcceptsAtLeast,
    "drafts of q below 0.001 are accepted": AcceptsWithoutQ,
    "the residual is not divided": ResidualFallsToTheLast,
    "the bonus token is drawn with the last coin": BonusWithTheLastCoin,
    "where the first draft falls the second row is drawn": RejectedAtOnceIsTheBonus,
    "the residual has the q of the place before": ResidualOfTheQBefore,
    "requests from the 128th on read rows of the one before": SecondBlockShifts,
    "the last draft is always accepted": SkipsTheLastDraft,
    "recovered tokens are nine tenths of the residual": TopPOfTheResidual,
    "cold drafts stand where they are likeliest": ColdDraftsByArgmax,
    "top_k beyond 50 is off": with_requests(lambda chosen, params, of_row, lens: set_where(chosen, "top_k", chosen["top_k"] > 50, 0)),
    "min_p of the request with most drafts": with_requests(lambda chosen, params, of_row, lens: {
        **chosen, **({"min_p": np.full_like(chosen["min_p"], params["min_p"][int(lens.argmax())])} if "min_p" in params else {})})}}

FAULTS = {kind: {**first, **SECOND[kind], **THIRD[kind], **FOURTH[kind], **FIFTH[kind], **SIXTH[kind]} for kind, first in
          {"sample": SAMPLER_FAULTS, "filter": FILTER_FAULTS, "verify": VERIFIER_FAULTS}.items()}
SOUND = {"sample": Sampler, "filter": Filter, "verify": Verifier}
