"""Faults of verifiers that were written without knowledge of the cases, the rules and the earlier faults: the fourth set, and what is new in the fifth."""

from __future__ import annotations

import numpy as np

from .blind_verifiers import Stepped
from .faults import bfloat16, uniform


def pick(weights, u):
    total = np.cumsum(weights)
    return int(min((total <= u * total[-1]).sum(), len(weights) - 1))


def places_of(lens):
    """For every target row: its place in its request; and whether it is the bonus row."""
    ends = np.cumsum(lens + 1)
    place = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - lens - 1, lens + 1)
    return place, place == np.repeat(lens, lens + 1)


class Slotted(Stepped):
    """Helpers; sound."""

    def greedy(self, b):
        return bool(self.params["temperature"][b] == 0.0)

    def first_row(self, b):
        return int(self.ends[b] - self.lens[b] + b)


# Acceptance


class ZeroLeftInTarget(Slotted):
    def verify(self, x, p, q, seed, b):
        if self.ngram and len(x) and not self.greedy(b):
            zeroed = p.copy()
            zeroed[np.arange(len(x)), x] = 0.0
            lost = zeroed.sum(axis=1) == 0.0
            zeroed[lost] = p[lost]
            p = zeroed
        return super().verify(x, p, q, seed, b)


class RatioNotReset(Slotted):
    def verify(self, x, p, q, seed, b):
        if self.greedy(b):
            return super().verify(x, p, q, seed, b)
        reached = 0.0
        for i, token in enumerate(x):
            reached += p[i][token] / max(q[i][token], 1e-300)
            if not self.coin(seed, b, i) < reached:
                return [*map(int, x[:i]), *self.recovered(i, token, x, p, q, seed, b)]
        return [*map(int, x), *self.bonus(x, p, q, seed, b)]


class ConfidenceDropped(Slotted):
    def verify(self, x, p, q, seed, b):
        for i, token in enumerate(x):
            if q[i][token] < 0.4:
                return [*map(int, x[:i]), self.draw(p[i], seed, b, i)]
            if not self.accepted(i, token, p, q, self.coin(seed, b, i), b):
                return [*map(int, x[:i]), *self.recovered(i, token, x, p, q, seed, b)]
        return [*map(int, x), *self.bonus(x, p, q, seed, b)]


class DraftProbsIgnored(Slotted):
    def proposal_of(self, b, x, begin):
        return self.proposal(x, None, self.p.shape[1])


class DraftIdsInBfloat16(Slotted):
    def verify(self, x, p, q, seed, b):
        if not self.ngram and len(x):
            x = bfloat16(x.astype(np.float32)).astype(np.int64)
        return super().verify(x, p, q, seed, b)


# Residual and recovered token


class ResidualFloored(Slotted):
    def recovered(self, i, token, x, p, q, seed, b):
        if self.greedy(b):
            return super().recovered(i, token, x, p, q, seed, b)
        return [self.draw(np.maximum(p[i] - q[i], 1e-5), seed, b, i)]


class DraftProbsOfTenTokens(Slotted):
    def recovered(self, i, token, x, p, q, seed, b):
        row = q[i]
        if not self.ngram and len(row) > 10:
            top = np.argsort(-row, kind="stable")[:10]
            row = np.zeros_like(q[i])
            row[top] = q[i][top]
        return [self.draw(self.residual(p[i], row), seed, b, i)]


class GreedyRecoveredOfDifference(Slotted):
    def recovered(self, i, token, x, p, q, seed, b):
        if self.ngram or not self.greedy(b):
            return super().recovered(i, token, x, p, q, seed, b)
        row = self.logits[self.first_row(b) + i].astype(np.float64)
        soft = np.exp(row - row.max())
        left = np.maximum(soft / soft.sum() - q[i], 0.0)
        return [int((left if left.sum() > 0.0 else p[i]).argmax())]


class IdWithoutTile(Slotted):
    TILE = 8192

    def recovered(self, i, token, x, p, q, seed, b):
        tokens = super().recovered(i, token, x, p, q, seed, b)
        return tokens if self.greedy(b) else [t % self.TILE for t in tokens]


# Bonus token


class BonusLessStaleDraft(Slotted):
    def __init__(self):
        super().__init__()
        self.kept = {}
        self.width = 0

    def begin(self):
        if self.width != self.p.shape[1]:
            self.width = self.p.shape[1]
            self.kept = {}

    def proposal_of(self, b, x, begin):
        q = super().proposal_of(b, x, begin)
        if not self.ngram and len(x):
            rows = [np.array(row, np.float32) for row in q]
            self.kept[b] = rows + self.kept.get(b, [])[len(rows):]
        return q

    def bonus(self, x, p, q, seed, b):
        i = len(x)
        stale = self.kept.get(b, ())
        row = p[i] if self.ngram or i >= len(stale) else self.residual(p[i], stale[i].astype(np.float64))
        return [self.draw(row, seed, b, i)]


class BonusOfTheLastCoin(Slotted):
    def bonus(self, x, p, q, seed, b):
        if not len(x):
            return super().bonus(x, p, q, seed, b)
        return [pick(p[len(x)], self.coin(seed, b, len(x) - 1))]


class EmptyDraftTakesTheLargest(Slotted):
    def bonus(self, x, p, q, seed, b):
        if len(x) or not self.lens.any():
            return super().bonus(x, p, q, seed, b)
        return [int(p[0].argmax())]


class BonusTemperatureTwice(Slotted):
    def of_rows(self, params, of_row, lens):
        rows = super().of_rows(params, of_row, lens)
        last = places_of(lens)[1]
        t = rows["temperature"]
        rows["temperature"] = np.where(last, t * t, t).astype(t.dtype)
        return rows


# Parameters of rows


class BonusParametersOfExpandedList(Slotted):
    def of_rows(self, params, of_row, lens):
        expanded = np.repeat(np.arange(len(lens)), lens)
        of_row = of_row.copy()
        if len(expanded):
            of_row[places_of(lens)[1]] = expanded[np.minimum(np.arange(len(lens)), len(expanded) - 1)]
        return super().of_rows(params, of_row, lens)


class ParametersOfThirtyTwoRows(Slotted):
    def of_rows(self, params, of_row, lens):
        rows = super().of_rows(params, of_row, lens)
        past = places_of(lens)[0] >= 32
        if not past.any():
            return rows
        return {name: np.where(past, 0, value).astype(value.dtype) for name, value in rows.items()}


class RowMapKept(Slotted):
    def __init__(self):
        super().__init__()
        self.map = None

    def of_rows(self, params, of_row, lens):
        shape = (len(lens), len(of_row))
        if self.map is None or self.map[0] != shape:
            self.map = shape, of_row.copy()
        return super().of_rows(params, self.map[1], lens)


class MixedGreedyAtOne(Slotted):
    def of_rows(self, params, of_row, lens):
        params = dict(params)
        t = np.asarray(params["temperature"])
        if (t != 0.0).any():
            params["temperature"] = np.where(t == 0.0, 1.0, t).astype(t.dtype)
        return super().of_rows(params, of_row, lens)


class LargestTopK(Slotted):
    def of_rows(self, params, of_row, lens):
        params = dict(params)
        k = np.asarray(params["top_k"])
        params["top_k"] = np.where(k > 0, k.max(initial=0), k).astype(k.dtype)
        return super().of_rows(params, of_row, lens)


class MinPOnBonusRowsOnly(Slotted):
    def of_rows(self, params, of_row, lens):
        rows = super().of_rows(params, of_row, lens)
        if "min_p" in rows:
            rows["min_p"] = np.where(places_of(lens)[1], rows["min_p"], 0).astype(rows["min_p"].dtype)
        return rows


class DraftCutToTarget(Slotted):
    def proposal_of(self, b, x, begin):
        q = super().proposal_of(b, x, begin)
        if self.ngram or not len(x):
            return q
        first = self.first_row(b)
        cut = np.where(self.p[first:first + len(x)] > 0.0, q, 0.0)
        mass = cut.sum(axis=1, keepdims=True)
        return np.where(mass > 0.0, cut / np.where(mass > 0.0, mass, 1.0), q)


class FirstMaskForAllRows(Slotted):
    def __call__(self, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
        x = np.asarray(target_logits)
        ends = np.asarray(cu_num_draft_tokens, np.int64)
        lens = np.diff(ends, prepend=0)
        dropped = x == -np.inf
        if dropped.any():
            first = np.repeat(ends - lens + np.arange(len(ends)), lens + 1)
            masked = np.where(dropped[first], np.float32(-np.inf), x)
            lost = (masked == -np.inf).all(axis=1)
            masked[lost] = x[lost]
            x = masked
        return super().__call__(draft_tokens, draft_probs, x, cu_num_draft_tokens, params, seeds)


# Rows and requests


class ScanWithoutCarry(Slotted):
    BLOCK = 256

    def first_rows(self):
        rows = super().first_rows()
        return rows - np.repeat(rows[::self.BLOCK], self.BLOCK)[:len(rows)]


class PutBackByTheOrder(Slotted):
    def finish(self, out):
        order = np.argsort(self.params["temperature"] != 0.0, kind="stable")
        grouped = out[order]
        out[:] = grouped[order]


class CutToTheShortest(Slotted):
    def finish(self, out):
        if len(out):
            out[:, int((out >= 0).sum(axis=1).min()):] = -1


# Random numbers


class CoinsOfNeighbours(Slotted):
    def coin(self, seed, b, i):
        return uniform(self.seeds[0], 3, b + i)


class ProposalLeft(Stepped):
    left = None

    def begin(self):
        if not self.ngram:
            self.left = np.array(self.draft_probs)
        elif self.left is not None and len(self.left) >= self.ends[-1] and self.left.shape[1] == self.logits.shape[1]:
            self.draft_probs, self.ngram = self.left, False


class CapturedSeeds(Slotted):
    def __init__(self):
        super().__init__()
        self.calls = {}
        self.captured = {}

    def prepared_seeds(self, seeds):
        count = len(seeds)
        if count not in (1, 2, 4) and (count % 8 or count > 512):
            return seeds
        shape = count, self.logits.shape[1]
        self.calls[shape] = self.calls.get(shape, 0) + 1
        if self.calls[shape] <= 2:
            return seeds
        return self.captured.setdefault(shape, seeds.copy())


class SeedsOfThirtyTwoBits(Slotted):
    def prepared_seeds(self, seeds):
        return seeds & np.uint64(0xFFFFFFFF)


class UniformsInBfloat16(Slotted):
    def coin(self, seed, b, i):
        return np.floor(super().coin(seed, b, i) * 256.0) / 256.0

    def draw_coin(self, seed, b, i):
        return np.floor(super().draw_coin(seed, b, i) * 256.0) / 256.0


# Faults of the fifth set that no earlier one has.

class ParametersLeftSearch(Stepped):
    def of_rows(self, params, of_row, lens):
        of_row = np.searchsorted(np.cumsum(lens + 1), np.arange(len(of_row)), side="left")
        return super().of_rows(params, of_row, lens)


class NgramExcludesFirst(Stepped):
    def recovered(self, i, token, x, p, q, seed, b):
        if not self.ngram:
            return super().recovered(i, token, x, p, q, seed, b)
        left = p[i].copy()
        left[x[0]] = 0.0
        return [self.draw(left if left.sum() > 0.0 else p[i], seed, b, i)]


class MaskOf32Bits(Stepped):
    def verify(self, x, p, q, seed, b):
        mask = 0
        for i, token in enumerate(x):
            mask |= int(bool(self.accepted(i, token, p, q, self.coin(seed, b, i), b))) << (i & 31)
        for i, token in enumerate(x):
            if not mask >> (i & 31) & 1:
                return [*map(int, x[:i]), *self.recovered(i, token, x, p, q, seed, b)]
        return [*map(int, x), *self.bonus(x, p, q, seed, b)]


class NoiseOf256Rows(Stepped):
    def prepared_seeds(self, seeds):
        return seeds[np.arange(len(seeds)) % 256]


class EmptyReadsNextRow(Stepped):
    def first_rows(self):
        firsts = super().first_rows()
        return np.where(self.lens == 0, np.minimum(firsts + 1, len(self.p) - 1), firsts)


class ProductOfRatios(Stepped):
    def verify(self, x, p, q, seed, b):
        self.product = 1.0
        return super().verify(x, p, q, seed, b)

    def accepted(self, i, token, p, q, u, b):
        mine = q[i][token]
        self.product *= min(1.0, p[i][token] / mine) if mine > 0.0 else float(p[i][token] > 0.0)
        return u < self.product


TABLE = (
    ("verify", "the zero put at an n-gram draft for its recovered token is still in the target row when the draft is tested", ZeroLeftInTarget,
     "vLLM's recovered-token kernel zeroes the draft's target probability and restores it; here it is not restored. Acts on one-hot drafts of random requests: no draft is ever accepted."),
    ("verify", "the probability gathered at accepted drafts is not reset for the next position", RatioNotReset,
     "SGLang's tree kernel sums prob_acc over siblings and must zero it on acceptance; here it runs on along the chain. Acts from the second draft on, random requests."),
    ("verify", "drafts of low confidence are dropped after they were sampled, and the position is drawn from the target", ConfidenceDropped,
     "assistant_confidence_threshold / p_min of 0.4 is applied to the sampled token's q at verification, so the stop depends on the token. Acts with draft_probs where q of the draft is under 0.4: too few tokens, and biased where q is mixed."),
    ("verify", "draft probabilities are ignored and sampled drafts are verified as one-hot ones", DraftProbsIgnored,
     "SGLang-style target-only verification: accepted with p(x) rather than min(1, p/q). The distribution holds, but fewer tokens are accepted whenever draft_probs is given."),
    ("verify", "draft ids travel in one bfloat16 tensor with their probabilities", DraftIdsInBfloat16,
     "Ids packed beside the probabilities in the model's dtype lose all but 8 bits. Acts with draft_probs and V over 256: another token is tested and emitted."),
    ("verify", "the residual is floored at 1e-5 a token", ResidualFloored,
     "A clamp(min=1e-5) against an all-zero residual gives V * 1e-5 of mass to all tokens, dropped ones too. Acts at rejections in large vocabularies (V of some thousands and more)."),
    ("verify", "the residual knows only the ten largest draft probabilities", DraftProbsOfTenTokens,
     "EAGLE-like drafters keep the top 10 of q for the verifier; the rest counts as 0 in the residual. Acts at rejections where q has mass past its ten largest."),
    ("verify", "a greedy request's recovered token is the largest of softmax minus draft probabilities", GreedyRecoveredOfDifference,
     "The greedy path takes the argmax of the residual of the unsharpened softmax instead of the target's argmax. Acts at temperature 0 with draft_probs, at a rejection."),
    ("verify", "a recovered token's id lacks the offset of its vocabulary tile", IdWithoutTile,
     "A kernel that goes over the vocabulary in tiles of 8192 keeps the place within the tile. Acts on recovered tokens of random requests with V over 8192."),
    ("verify", "the bonus token is drawn less draft probabilities that an earlier call left in the slot", BonusLessStaleDraft,
     "A kernel draws recovered and bonus token from relu(p - q) and counts on q of 0 in the bonus row; the persistent [B, K+1, V] buffer is not cleared. Acts with draft_probs when the slot had a longer draft in an earlier call."),
    ("verify", "the bonus token is drawn by the coin that accepted the last draft", BonusOfTheLastCoin,
     "The kernel's register still holds the last acceptance coin, known to lie under p/q, and reuses it for the final draw. Acts on bonus tokens after one draft or more."),
    ("verify", "a request without drafts beside others with drafts gets the most likely token", EmptyDraftTakesTheLargest,
     "The speculative path fills requests that have nothing to verify by argmax; only batches without any drafts go to the sampler. Acts on random requests with empty drafts in a batch that has drafts."),
    ("verify", "the bonus row is divided by the temperature twice", BonusTemperatureTwice,
     "target_logits.div_(temperature) works in place on rows that include the bonus row, and the bonus sampler divides again. Acts on bonus tokens at temperatures other than 0 and 1."),
    ("verify", "the bonus row of request b takes its parameters at index b of the list expanded to draft rows", BonusParametersOfExpandedList,
     "The sampling metadata's tensors were replaced by those expanded to draft tokens before the bonus sampler read their first B entries. Acts where requests of a batch have different parameters."),
    ("verify", "parameters are expanded to 32 rows a request at most", ParametersOfThirtyTwoRows,
     "vLLM's expand kernel writes MAX_SPEC_LEN = 32 rows; later rows keep zeros (temperature 0). Acts on row 32 and later of a request, so with 32 or 33 drafts, once 32 were accepted."),
    ("verify", "the map from rows to requests is kept while the numbers of rows and requests stay the same", RowMapKept,
     "Cached metadata is rebuilt only when B or M + B change, not when the lengths within do. Acts across calls of the same B and M with other lengths and mixed parameters."),
    ("verify", "greedy requests beside random ones are sampled at temperature 1", MixedGreedyAtOne,
     "Temperature 0 is replaced by 1 against division by zero, and only all-greedy batches take the argmax path. Acts in mixed batches."),
    ("verify", "all requests with top-k are cut at the largest top-k of the batch", LargestTopK,
     "One topk(logits, k.max()) serves the batch and the rows are not cut further. Acts where requests have different top_k."),
    ("verify", "min-p is applied to bonus rows only", MinPOnBonusRowsOnly,
     "min_p is a logits processor of the ordinary sampler, which sees bonus rows alone; draft rows are verified without it. Acts with min_p over 0 and drafts."),
    ("verify", "draft probabilities are cut to the target's kept tokens and normalised again", DraftCutToTarget,
     "The target's top-k/top-p mask is laid over q although the drafts were sampled from the whole q. Acts with draft_probs and filters (or masked logits) that cut into q."),
    ("verify", "tokens masked in a request's first row are masked in all its rows", FirstMaskForAllRows,
     "The grammar bitmask is filled for the first position and applied to every draft and bonus row. Acts where logits have -inf that differ between the rows of a request."),
    ("verify", "the sum of rows starts anew at every 256th request", ScanWithoutCarry,
     "A block-wide prefix sum over 256 threads gives the first target rows, and the carry of earlier blocks is lost. Acts on requests from 256 on, which read the rows of the first ones."),
    ("verify", "results of a batch sorted greedy first are put back by the order, not by its inverse", PutBackByTheOrder,
     "The batch is split in a greedy and a random part; the outputs are gathered by order instead of scattered. Acts in mixed batches of 3 requests or more whose order is not its own inverse."),
    ("verify", "all requests are cut to the fewest tokens that any request of the batch emitted", CutToTheShortest,
     "Batched assisted generation with one common length of cache keeps the minimum over the batch. Acts in batches of two and more: accepted tokens are thrown away."),
    ("verify", "position i + 1 of a request and position i of the next one share their coin", CoinsOfNeighbours,
     "One generator for the batch with the offset b + i instead of b * K + i. Acts between neighbouring requests: acceptances are dependent, though each alone is right."),
    ("verify", "the third call's seeds are replayed in all later calls of the same batch size", CapturedSeeds,
     "A CUDA graph is captured after two eager calls, with the seeds baked in as constants, for batch sizes 1, 2, 4 and multiples of 8 to 512. Acts from the fourth call of such a size and vocabulary on: calls are dependent."),
    ("verify", "only the low 32 bits of a seed are used", SeedsOfThirtyTwoBits,
     "Seeds pass through a 32-bit integer on their way to the kernel. Acts where seeds differ only above bit 32, as when call or request number is put in the high half: identical random numbers."),
    ("verify", "uniform numbers are made in bfloat16", UniformsInBfloat16,
     "rand_like(probs) in the model's dtype has 256 levels. Acts on recovered and bonus draws: at most 256 tokens can be drawn from a row, so flat rows and V of a hundred and more are far off."),
    ("verify", "the first row of every request has the previous request's sampling parameters", ParametersLeftSearch,
     "The expansion of parameters to rows bisects the row offsets with side='left', so that a row at a boundary belongs to the "
     "request before. Acts from the second request on when neighbours differ in parameters."),
    ("verify", "n-gram recovery excludes the request's first draft token at every position", NgramExcludesFirst,
     "The one-hot recovery kernel indexes the token to exclude by request and not by row. Acts with draft_probs None when a "
     "position after the first is rejected and its draft token is not the first one."),
    ("verify", "the acceptance mask has 32 bits, so draft 32 shares a bit with draft 0", MaskOf32Bits,
     "A warp's ballot word (1 << (i & 31)) holds the accepted positions; the results of position 32 and 0 are or-ed. Acts on drafts "
     "of 33 tokens."),
    ("verify", "requests from the 257th on reuse the random numbers of request b % 256", NoiseOf256Rows,
     "A static noise buffer sized for 256 sequences is indexed modulo its rows. Acts in batches of more than 256 requests, on the "
     "independence between them."),
    ("verify", "a request without drafts takes its token from the next request's first row", EmptyReadsNextRow,
     "The bonus row is found as first + max(count, 1), as if every request had a draft. Acts on empty drafts that aren't last in "
     "the batch."),
    ("verify", "acceptance compares the uniform with the running product of the ratios", ProductOfRatios,
     "cumprod is taken over min(1, p/q) and not over the accepted flags, with a fresh uniform a position. Acts from the second "
     "draft on after a ratio below 1: too few acceptances, then the ordinary residual."),
    ("verify", "drafts without probabilities are judged by those that a call before left", ProposalLeft,
     "The buffer of draft probabilities is read whether the drafter wrote it or not. Acts on n-gram drafts behind a call with as many drafts, or more, that had them."),
)
