"""Faults of verifiers that were written without knowledge of the cases of audit_callable, from what engines have had. Stepped is a Verifier
with more steps to replace."""

from __future__ import annotations

import numpy as np

from .blind_samplers import without_filters
from .faults import Sampler, Verifier, bfloat16, copied, hashed, uniform


class Stepped(Verifier):
    """Sound: the base's verifier with more methods to replace."""

    def __call__(self, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
        self.ends = np.asarray(cu_num_draft_tokens, np.int64)
        self.lens = np.diff(self.ends, prepend=0)
        self.ngram = draft_probs is None
        self.params = {name: np.asarray(value) for name, value in params.items()}
        self.logits = np.asarray(target_logits)
        self.draft_probs = draft_probs
        of_row = np.repeat(np.arange(len(self.ends)), self.lens + 1)
        self.chosen = self.of_rows(params, of_row, self.lens)
        self.p = self.rows.probabilities(self.logits, dict(self.chosen))
        self.seeds = self.prepared_seeds(np.asarray(seeds, np.uint64))
        self.begin()
        firsts = self.first_rows()
        out = self.blank((len(self.ends), int(self.lens.max(initial=0)) + 1))
        for b, (end, count) in enumerate(zip(self.ends, self.lens)):
            x = np.asarray(draft_tokens[end - count:end], np.int64)
            q = self.proposal_of(b, x, end - count)
            first = firsts[b]
            tokens = self.verify(x, self.p[first:first + count + 1], q, self.seeds[b], b)
            out[b, :len(tokens)] = tokens
        self.finish(out)
        self.p = self.logits = self.draft_probs = self.chosen = None
        return out

    def prepared_seeds(self, seeds):
        return seeds

    def begin(self):
        """Before the requests are gone through."""

    def finish(self, out):
        """After them."""

    def blank(self, shape):
        return np.full(shape, -1, np.int32)

    def first_rows(self):
        """The first target row of every request."""
        return self.ends - self.lens + np.arange(len(self.ends))

    def proposal_of(self, b, x, begin):
        q = None if self.ngram else np.asarray(self.draft_probs[begin:begin + len(x)], np.float64)
        return self.proposal(x, q, self.p.shape[1])

    def verify(self, x, p, q, seed, b):
        for i, token in enumerate(x):
            if not self.accepted(i, token, p, q, self.coin(seed, b, i), b):
                return [*map(int, x[:i]), *self.recovered(i, token, x, p, q, seed, b)]
        return [*map(int, x), *self.bonus(x, p, q, seed, b)]

    def accepted(self, i, token, p, q, u, b):
        return self.accepts(u, p[i][token], q[i][token])

    def recovered(self, i, token, x, p, q, seed, b):
        return [self.draw(self.residual(p[i], q[i]), seed, b, i)]

    def bonus_rows(self):
        return self.ends + np.arange(len(self.ends))


def unfiltered(chosen, here):
    """The parameters with the filters off in rows `here`."""
    out = {name: np.array(value) for name, value in chosen.items()}
    for name, off in (("top_k", 0), ("top_p", 1.0), ("min_p", 0.0)):
        if name in out:
            out[name][here] = off
    return out


# Rows and offsets


class RowsWithoutBonuses(Stepped):
    def first_rows(self):
        return self.ends - self.lens


class NoDraftsRowBefore(Stepped):
    def bonus(self, x, p, q, seed, b):
        if len(x) == 0:
            row = max(int(self.ends[b]) + b - 1, 0)
            return [self.draw(self.p[row], seed, b, 0)]
        return super().bonus(x, p, q, seed, b)


class BonusAtLongest(Stepped):
    def bonus(self, x, p, q, seed, b):
        row = int(self.ends[b] - self.lens[b]) + b + int(self.lens.max())
        return [self.draw(self.p[min(row, len(self.p) - 1)], seed, b, len(x))]


class ProposalAtTargetOffset(Stepped):
    def proposal_of(self, b, x, begin):
        if self.ngram or len(x) == 0:
            return super().proposal_of(b, x, begin)
        at = np.minimum(np.arange(begin + b, begin + b + len(x)), len(self.draft_probs) - 1)
        return np.asarray(self.draft_probs[int(at[0]):int(at[-1]) + 1], np.float64)[at - at[0]]


class ScanRestarts(Stepped):
    def first_rows(self):
        first = super().first_rows()
        block = np.arange(len(first)) // 1024
        return first - first[block * 1024]


# Acceptance


class RatioInverted(Stepped):
    def accepts(self, u, p, q):
        return u * p < q


class TypicalAcceptance(Stepped):
    def accepted(self, i, token, p, q, u, b):
        row = p[i][p[i] > 0.0]
        entropy = -(row * np.log(row)).sum()
        return p[i][token] > min(0.3, 0.09 * np.exp(-entropy))


class LogsClamped(Stepped):
    def accepts(self, u, p, q):
        return np.log(max(u, 1e-300)) < np.log(max(p, 1e-5)) - np.log(max(q, 1e-5))


class ProposalFilteredAgain(Stepped):
    def begin(self):
        if self.ngram or len(self.draft_probs) == 0:
            return
        of_row = np.repeat(np.arange(len(self.ends)), self.lens)
        chosen = unfiltered({name: value[of_row] for name, value in self.params.items()},
                            self.params["temperature"][of_row] == 0.0)
        chosen["temperature"] = np.ones_like(chosen["temperature"])
        if Sampler.filters(chosen):
            with np.errstate(divide="ignore"):
                self.draft_probs = self.rows.probabilities(np.log(np.asarray(self.draft_probs, np.float64)), chosen)


class AcceptsUnfiltered(Stepped):
    def begin(self):
        self.plain = self.rows.probabilities(self.logits, unfiltered(self.chosen, slice(None)))
        self.firsts = self.first_rows()

    def accepted(self, i, token, p, q, u, b):
        return self.accepts(u, self.plain[self.firsts[b] + i][token], q[i][token])


class ConfidentWithoutCoin(Stepped):
    def accepts(self, u, p, q):
        return p >= 0.9 or u * q < p


class SingleDraftWithoutQ(Stepped):
    def accepts(self, u, p, q):
        return u < p if self.lens.max() == 1 else u * q < p


class ZeroIsPadding(Stepped):
    def accepted(self, i, token, p, q, u, b):
        return token != 0 and super().accepted(i, token, p, q, u, b)


class MatchesCounted(Stepped):
    def verify(self, x, p, q, seed, b):
        if (self.params["temperature"] == 0.0).all():
            best = p.argmax(axis=1)
            count = int((x == best[:-1]).sum())
            return [*map(int, x[:count]), int(best[count])]
        return super().verify(x, p, q, seed, b)


class SixteenAtMost(Stepped):
    def verify(self, x, p, q, seed, b):
        return super().verify(x[:16], p[:17], q[:16], seed, b)


# Recovery


class RecoversLargest(Stepped):
    def recovered(self, i, token, x, p, q, seed, b):
        return [int(self.residual(p[i], q[i]).argmax())]


class RecoversAllButDraft(Stepped):
    def recovered(self, i, token, x, p, q, seed, b):
        left = p[i].copy()
        left[token] = 0.0
        return [self.draw(left if left.sum() > 0.0 else p[i], seed, b, i)]


class RecoversFirstVocabularyBlock(Stepped):
    def recovered(self, i, token, x, p, q, seed, b):
        return [self.draw(self.residual(p[i], q[i])[:65536], seed, b, i)]


class ResidualNotNormalised(Stepped):
    def recovered(self, i, token, x, p, q, seed, b):
        total = np.cumsum(self.residual(p[i], q[i]))
        return [int(min((total <= self.draw_coin(seed, b, i)).sum(), len(total) - 1))]


class NgramDraftKept(Stepped):
    def recovered(self, i, token, x, p, q, seed, b):
        return [self.draw(p[i], seed, b, i)] if self.ngram else super().recovered(i, token, x, p, q, seed, b)


# Bonus


class NoBonus(Stepped):
    def bonus(self, x, p, q, seed, b):
        return [] if len(x) else super().bonus(x, p, q, seed, b)


class BonusUnfiltered(Stepped):
    def of_rows(self, params, of_row, lens):
        return unfiltered(super().of_rows(params, of_row, lens), self.bonus_rows())


class BonusAfterLastRejected(Stepped):
    def recovered(self, i, token, x, p, q, seed, b):
        tokens = super().recovered(i, token, x, p, q, seed, b)
        return [*tokens, *self.bonus(x, p, q, seed, b)] if i == len(x) - 1 else tokens


class GreedyBonusDrawn(Stepped):
    def of_rows(self, params, of_row, lens):
        chosen = {name: np.array(value) for name, value in super().of_rows(params, of_row, lens).items()}
        rows = self.bonus_rows()
        if (chosen["temperature"] > 0.0).any():
            chosen["temperature"][rows] = np.where(chosen["temperature"][rows] == 0.0, 1.0, chosen["temperature"][rows])
        return chosen


# Coins


class RecoveryCoinIsAcceptances(Stepped):
    def recovered(self, i, token, x, p, q, seed, b):
        total = np.cumsum(self.residual(p[i], q[i]))
        return [int(min((total <= self.coin(seed, b, i) * total[-1]).sum(), len(total) - 1))]


class OneCoinForAllPositions(Stepped):
    def coin(self, seed, b, i):
        return super().coin(seed, b, 0)


class CoinsCaptured(Stepped):
    def __init__(self):
        super().__init__()
        self.captured = {}

    def prepared_seeds(self, seeds):
        count = len(seeds)
        if count in (1, 2, 4) or (count % 8 == 0 and count <= 512):
            return self.captured.setdefault(count, seeds.copy())
        return seeds


class SeedsOf32Bits(Stepped):
    def prepared_seeds(self, seeds):
        return seeds & np.uint64(0xFFFFFFFF)


class CoinsEveryEight(Stepped):
    def coin(self, seed, b, i):
        return super().coin(seed, b, i & 7)


class SumsInBfloat16(Stepped):
    def draw(self, weights, seed, b, i):
        total = bfloat16(np.cumsum(weights / weights.sum()))
        return int(min((total <= self.draw_coin(seed, b, i) * total[-1]).sum(), len(weights) - 1))


class DrawCoinOfFirstRequest(Stepped):
    def draw_coin(self, seed, b, i):
        return uniform(self.seeds[0], 4, i)


# Parameters


class FiltersOffBesideGreedy(Stepped):
    def of_rows(self, params, of_row, lens):
        chosen = super().of_rows(params, of_row, lens)
        return unfiltered(chosen, slice(None)) if (self.params["temperature"] == 0.0).any() else chosen


class ParametersByRow(Stepped):
    def of_rows(self, params, of_row, lens):
        last = len(lens) - 1
        return super().of_rows(params, np.minimum(np.arange(len(of_row)), last), lens)


# State


class OutputNotCleared(Stepped):
    last = None

    def blank(self, shape):
        return self.last.copy() if self.last is not None and self.last.shape == shape else super().blank(shape)

    def finish(self, out):
        self.last = out.copy()


class Remembering(Stepped):
    """Sound: keeps the drafts of the request that is being verified."""

    def verify(self, x, p, q, seed, b):
        self.x = x
        return super().verify(x, p, q, seed, b)

    def random(self, b):
        return self.params["temperature"][b] > 0.0


# Acceptance


class ProposalAtNextToken(Remembering):
    def accepted(self, i, token, p, q, u, b):
        other = token if self.ngram else self.x[min(i + 1, len(self.x) - 1)]
        return self.accepts(u, p[i][token], q[i][other])


class TargetAccumulated(Remembering):
    def accepted(self, i, token, p, q, u, b):
        here = p[i][token]
        if not self.random(b):
            return self.accepts(u, here, q[i][token])
        self.total = here if i == 0 else self.total + here
        return self.accepts(u, self.total, q[i][token])


class ThresholdFourFifths(Stepped):
    def accepts(self, u, p, q):
        return 0.8 * u * q < p


class NgramGreedily(Stepped):
    def of_rows(self, params, of_row, lens):
        chosen = copied(super().of_rows(params, of_row, lens))
        if self.ngram:
            chosen["temperature"][:] = 0.0
        return chosen


class PaddingVerified(Stepped):
    def verify(self, x, p, q, seed, b):
        count = len(x)
        tokens = []
        for i in range(int(self.lens.max())):
            row = p[min(i, count)]
            token = int(x[i]) if i < count else 0
            proposed = q[i] if i < count else self.padding(len(row))
            if not self.accepts(self.coin(seed, b, i), row[token], proposed[token]):
                return [*tokens, self.draw(self.residual(row, proposed), seed, b, i)]
            tokens.append(token)
        return [*tokens, self.draw(p[count], seed, b, len(tokens))]

    def padding(self, vocab):
        row = np.zeros(vocab)
        row[0] = 1.0 if self.ngram else 0.0
        return row


class LastDraftUnread(Stepped):
    def verify(self, x, p, q, seed, b):
        last = max(len(x) - 1, 0)
        return super().verify(x[:last], p[:last + 1], q[:last], seed, b)


class AllOfThirtyTwo(Stepped):
    def verify(self, x, p, q, seed, b):
        tokens = super().verify(x, p, q, seed, b)
        if len(x) == 32 and len(tokens) == 33:
            return self.recovered(0, x[0], x, p, q, seed, b)
        return tokens


class IdsOfSixteenBits(Stepped):
    def proposal_of(self, b, x, begin):
        return super().proposal_of(b, x & 0xFFFF, begin)

    def verify(self, x, p, q, seed, b):
        return super().verify(x & 0xFFFF, p, q, seed, b)


class CutToFewest(Stepped):
    def finish(self, out):
        if len(out):
            out[:, int((out >= 0).sum(axis=1).min()):] = -1


# p and q


class NotNormalisedAfterFilters(Stepped):
    def begin(self):
        if Sampler.filters(self.chosen):
            whole = self.rows.probabilities(self.logits, unfiltered(self.chosen, slice(None)))
            self.p = np.where(self.p > 0.0, whole, 0.0)


class ProposalTempered(Stepped):
    def verify(self, x, p, q, seed, b):
        temperature = float(self.params["temperature"][b])
        if self.ngram or temperature in (0.0, 1.0):
            return super().verify(x, p, q, seed, b)
        for i, token in enumerate(x):
            again = (q[i] / q[i].max()) ** (1.0 / temperature)
            again /= again.sum()
            if not self.accepts(self.coin(seed, b, i), p[i][token], again[token]):
                return [*map(int, x[:i]), self.draw(self.residual(p[i], again), seed, b, i)]
        return [*map(int, x), *self.bonus(x, p, q, seed, b)]


class ProposalSixteenLargest(Stepped):
    def accepted(self, i, token, p, q, u, b):
        known = q[i][token]
        if not self.ngram and (q[i] > known).sum() >= 16:
            known = 0.0
        return self.accepts(u, p[i][token], known)

    def recovered(self, i, token, x, p, q, seed, b):
        row = q[i]
        if not self.ngram and len(row) > 16:
            row = np.where(row >= np.partition(row, -16)[-16], row, 0.0)
        return [self.draw(self.residual(p[i], row), seed, b, i)]


class PointMassesBesideGreedy(Stepped):
    def begin(self):
        greedy = self.params["temperature"] == 0.0
        if greedy.any() and not greedy.all():
            self.ngram = True


class AtMostFifty(Stepped):
    class filter(Sampler):
        def scaled(self, x, temperature):
            most = np.where(temperature > 0.0, 50.0 * temperature, np.inf)
            return super().scaled(np.minimum(x.astype(np.float64), most[:, None]), temperature)


# Recovery


class ResidualAbsolute(Stepped):
    def residual(self, p, q):
        left = np.abs(p - q)
        return left if left.sum() > 0.0 else p


class ResidualByRank(Stepped):
    def residual(self, p, q):
        order = np.argsort(-p)
        left = np.empty_like(p)
        left[order] = np.maximum(p[order] + np.sort(-q), 0.0)
        return left if left.sum() > 0.0 else p


class ResidualOfFirstProposal(Stepped):
    def recovered(self, i, token, x, p, q, seed, b):
        return [self.draw(self.residual(p[i], q[0]), seed, b, i)]


class ResidualClamped(Remembering):
    def recovered(self, i, token, x, p, q, seed, b):
        if not self.random(b):
            return super().recovered(i, token, x, p, q, seed, b)
        return [self.draw(np.maximum(p[i] - q[i], 1e-5), seed, b, i)]


class RaceNoiseRepeats(Stepped):
    """Draws by an exponential race, which is sound up to 256 tokens."""

    def draw(self, weights, seed, b, i):
        noise = -np.log1p(-uniform(seed, 4, i, np.arange(min(256, len(weights)))))
        return int((weights / np.maximum(np.resize(noise, len(weights)), 1e-300)).argmax())


# Bonus


class BonusOfLastDraftRow(Stepped):
    def bonus(self, x, p, q, seed, b):
        return [self.draw(p[max(len(x) - 1, 0)], seed, b, len(x))]


class BonusesOfFirstRequests(Stepped):
    def begin(self):
        self.full = []

    def bonus(self, x, p, q, seed, b):
        self.full.append(b)
        return []

    def finish(self, out):
        rows = self.bonus_rows()
        for j, b in enumerate(self.full):
            out[b, self.lens[b]] = self.draw(self.p[rows[j]], self.seeds[j], j, int(self.lens[j]))


class BonusWithLastCoin(Stepped):
    def bonus(self, x, p, q, seed, b):
        if len(x) == 0:
            return super().bonus(x, p, q, seed, b)
        total = np.cumsum(p[len(x)])
        return [int(min((total <= self.coin(seed, b, len(x) - 1) * total[-1]).sum(), len(total) - 1))]


# Coins


class SeedPlusPosition(Stepped):
    @staticmethod
    def word(seed, i):
        return np.uint64((int(seed) + i) & 0xFFFFFFFFFFFFFFFF)

    def coin(self, seed, b, i):
        return uniform(self.word(seed, i), 3)

    def draw_coin(self, seed, b, i):
        return uniform(self.word(seed, i), 4)


class CoinsAtOwnStride(Stepped):
    def coin(self, seed, b, i):
        owner, place = divmod(b * int(self.lens[b]) + i, int(self.lens.max()))
        return uniform(self.seeds[owner], 3, place)


class UniformsOfElevenBits(Stepped):
    def draw_coin(self, seed, b, i):
        return float(hashed(seed, 4, i) >> np.uint64(53)) / 2048.0


# Parameters


class TemperatureAsInteger(Stepped):
    def of_rows(self, params, of_row, lens):
        chosen = copied(super().of_rows(params, of_row, lens))
        chosen["temperature"][chosen["temperature"] < 1.0] = 0.0
        return chosen


class FirstDecidesGreedy(Stepped):
    def of_rows(self, params, of_row, lens):
        chosen = copied(super().of_rows(params, of_row, lens))
        if len(lens) and self.params["temperature"][0] == 0.0:
            chosen["temperature"][:] = 0.0
        return chosen


class LargestTopK(Stepped):
    def of_rows(self, params, of_row, lens):
        chosen = copied(super().of_rows(params, of_row, lens))
        chosen["top_k"][chosen["top_k"] > 0] = chosen["top_k"].max(initial=0)
        return chosen


# Order and state


class PermutedAgain(Stepped):
    def finish(self, out):
        order = np.argsort(-self.lens, kind="stable")
        out[:] = out[order][order]


class ProposalOfCallBefore(Stepped):
    held = None

    def begin(self):
        if self.ngram:
            return
        if self.held is None or self.held.shape != np.shape(self.draft_probs):
            self.held = np.array(self.draft_probs)
        self.draft_probs = self.held


class Located(Stepped):
    """Sound: knows the first rows, and the target's softmax without filters of a row."""

    def begin(self):
        self.firsts = self.first_rows()

    def random(self, b):
        return self.params["temperature"][b] > 0.0

    def plain(self, b, i, temperature):
        x = self.logits[self.firsts[b] + i].astype(np.float64) / float(temperature)
        p = np.exp(x - x.max())
        return p / p.sum()


class RecoversUnfiltered(Located):
    def recovered(self, i, token, x, p, q, seed, b):
        row = self.plain(b, i, self.params["temperature"][b]) if self.random(b) else p[i]
        return [self.draw(self.residual(row, q[i]), seed, b, i)]


class GreedyJudgedWarm(Located):
    def accepted(self, i, token, p, q, u, b):
        if self.random(b) or not (self.params["temperature"] > 0.0).any():
            return super().accepted(i, token, p, q, u, b)
        return self.accepts(u, self.plain(b, i, 1.0)[token], q[i][token])


class RelaxedGreedy(Located):
    def accepted(self, i, token, p, q, u, b):
        if self.random(b):
            return super().accepted(i, token, p, q, u, b)
        row = self.logits[self.firsts[b] + i]
        return row[token] >= row.max() - 0.5


class BonusOfNextParameters(Stepped):
    def of_rows(self, params, of_row, lens):
        of_row = of_row.copy()
        of_row[np.cumsum(lens + 1) - 1] = np.minimum(np.arange(len(lens)) + 1, len(lens) - 1)
        return super().of_rows(params, of_row, lens)


class FiltersOnFirstRow(Stepped):
    def of_rows(self, params, of_row, lens):
        later = np.ones(len(of_row), bool)
        later[np.cumsum(lens + 1) - lens - 1] = False
        return without_filters(super().of_rows(params, of_row, lens), later)


class ParametersOfSameLengths(Stepped):
    lengths = None

    def of_rows(self, params, of_row, lens):
        if self.lengths is None or not np.array_equal(lens, self.lengths):
            self.lengths = lens.copy()
            self.expanded = copied(super().of_rows(params, of_row, lens))
        return copied(self.expanded)


class EmptyCountsAsOne(Stepped):
    def proposal_of(self, b, x, begin):
        if self.ngram or not len(x):
            return super().proposal_of(b, x, begin)
        at = begin + int((self.lens[:b] == 0).sum()) + np.arange(len(x))
        return np.asarray(self.draft_probs[np.minimum(at, self.ends[-1] - 1)], np.float64)


class RowsToTheEighth(Stepped):
    def verify(self, x, p, q, seed, b):
        rows = [p[min(i, 7)] for i in range(len(x))] + [p[len(x)]]
        return super().verify(x, rows, q, seed, b)


class CutToShortest(Stepped):
    def verify(self, x, p, q, seed, b):
        count = int(self.lens.min())
        return super().verify(x[:count], p[:count + 1], q[:count], seed, b)


class RejectionGoesOn(Stepped):
    def verify(self, x, p, q, seed, b):
        tokens, whole = [], True
        for i, token in enumerate(x):
            if self.accepted(i, token, p, q, self.coin(seed, b, i), b):
                tokens.append(int(token))
            elif whole:
                tokens += self.recovered(i, token, x, p, q, seed, b)
                whole = False
            else:
                break
        return [*tokens, *self.bonus(x, p, q, seed, b)] if whole else tokens


class RecoversAtLastDraft(Stepped):
    def recovered(self, i, token, x, p, q, seed, b):
        return [self.draw(self.residual(p[len(x) - 1], q[len(x) - 1]), seed, b, i)]


class ResidualReversed(Stepped):
    def residual(self, p, q):
        left = np.maximum(q - p, 0.0)
        return left if left.sum() > 0.0 else p


class SmallResidualIsTarget(Stepped):
    def residual(self, p, q):
        left = np.maximum(p - q, 0.0)
        return left if left.sum() > 0.1 else p


class BonusLargest(Stepped):
    def bonus(self, x, p, q, seed, b):
        return [int(p[len(x)].argmax())]


class CoinsAtRequestPlusPosition(Stepped):
    def coin(self, seed, b, i):
        return uniform(self.seeds[(b + i) % len(self.seeds)], 3, (b + i) // len(self.seeds))


#: kind, name, callable, what a report would say
TABLE = (
    ("verify", "target rows located without counting earlier bonus rows", RowsWithoutBonuses,
     "The start of a request's target rows is the cumulative number of drafts alone, so every request after the first reads "
     "rows shifted by its batch index. Batches of two or more."),
    ("verify", "request without drafts reads the row before its own", NoDraftsRowBefore,
     "The row of a request with no drafts is computed as end - 1, the bonus row of the request before. Batches in which a "
     "request other than the first has 0 drafts."),
    ("verify", "bonus row taken at the longest request's length", BonusAtLongest,
     "The bonus row is indexed by the batch's maximum number of drafts instead of the request's own, so shorter requests "
     "draw their bonus from a later request's rows. Ragged batches, all drafts accepted."),
    ("verify", "draft probabilities read at the target rows' offset", ProposalAtTargetOffset,
     "The draft probabilities (no bonus rows) are indexed with the offset of the target rows (with bonus rows), so q is that "
     "of a later position or request. draft_probs given, requests after the first."),
    ("verify", "row offsets restart every 1024 requests", ScanRestarts,
     "The scan that gives each request its first target row is one thread block of 1024 without a carry, so request 1024 and "
     "those after it read the target rows of the first requests. Batches of more than 1024."),
    ("verify", "acceptance ratio inverted", RatioInverted,
     "A draft is accepted when u < q/p instead of u < p/q. Always."),
    ("verify", "typical acceptance instead of rejection sampling", TypicalAcceptance,
     "A draft is accepted when its target probability is above min(0.3, 0.09 exp(-entropy)), without a coin. Random "
     "requests."),
    ("verify", "probabilities clamped at 1e-5 before the logarithm", LogsClamped,
     "Acceptance compares log u with log p - log q after clamping both at 1e-5, so a draft that the target's filters (or "
     "greedy decoding) exclude is accepted with 1e-5/q. Flat proposals over large vocabularies, where q is about 1e-5 to "
     "1e-3."),
    ("verify", "draft probabilities filtered again by the target's parameters", ProposalFilteredAgain,
     "top-k, top-p and min-p are also applied to draft_probs, which are already what the drafts were sampled from, so q is "
     "renormalised over a subset. Random requests with a filter on and draft_probs given."),
    ("verify", "acceptance uses unfiltered target probabilities", AcceptsUnfiltered,
     "p in the acceptance test is the softmax after temperature, before top-k/top-p/min-p; only recovery and bonus are "
     "filtered. Random requests with a filter on."),
    ("verify", "drafts of target probability 0.9 or more accepted without a coin", ConfidentWithoutCoin,
     "A single-token threshold of 0.9 accepts a draft outright, so tokens with 0.9 <= p < q are emitted too often. Peaked "
     "target rows with a more peaked (or point-mass) proposal."),
    ("verify", "division by q left out when all requests have at most one draft", SingleDraftWithoutQ,
     "The fast path for a speculation length of 1 accepts when u < p, forgetting q. Batches whose longest request has one "
     "draft, draft_probs given."),
    ("verify", "drafted token 0 taken for padding", ZeroIsPadding,
     "Draft id 0 is masked as padding and counts as rejected without a coin, and the residual then takes it out as well. "
     "Drafts that contain token 0."),
    ("verify", "all-greedy path counts all matches, also past the first mismatch", MatchesCounted,
     "The number accepted is the sum of matches instead of the length of the matching prefix (cumprod left out). Batches in "
     "which all requests are greedy, two drafts or more, a match after a mismatch."),
    ("verify", "at most 16 drafts verified", SixteenAtMost,
     "The kernel's buffer has 16 draft slots and the rest of the drafts is silently dropped; the distribution stays exact, "
     "but long drafts yield at most 17 tokens. More than 16 drafts."),
    ("verify", "recovered token is the residual's largest", RecoversLargest,
     "After a rejection the argmax of the residual is emitted instead of a draw from it. Random requests."),
    ("verify", "recovery removes only the drafted token though q is given", RecoversAllButDraft,
     "The n-gram formula (p with the draft masked) is also used for recovery where draft_probs are given, instead of max(p - "
     "q, 0). Random requests with draft_probs."),
    ("verify", "recovery scans only the first 65536 tokens", RecoversFirstVocabularyBlock,
     "The recovery kernel's vocabulary block is capped at 65536, so larger ids are never recovered. Vocabularies over 65536."),
    ("verify", "residual not normalised before the draw", ResidualNotNormalised,
     "The recovery's uniform is compared with the cumulative sum of max(p - q, 0) without scaling by its total; draws past "
     "the end become the last token. Any rejection of a random request."),
    ("verify", "n-gram recovery keeps the drafted token", NgramDraftKept,
     "Without draft_probs the recovered token is drawn from p without masking the rejected draft, which thus gets a second "
     "chance. Random requests, draft_probs None."),
    ("verify", "no bonus token when all drafts are accepted", NoBonus,
     "The token after a fully accepted draft is not emitted; the distribution stays exact but each such step yields one "
     "token less. All drafts accepted."),
    ("verify", "filters not applied to bonus rows", BonusUnfiltered,
     "top-k, top-p and min-p are applied to the draft rows only; bonus rows get the temperature alone. Requests with a "
     "filter, all drafts accepted (or no drafts)."),
    ("verify", "bonus emitted after the last draft was rejected", BonusAfterLastRejected,
     "An off-by-one in the comparison of the number accepted with the number drafted: when only the last draft is rejected, "
     "the recovered token is followed by a bonus conditioned on the rejected draft."),
    ("verify", "greedy requests' bonus drawn at temperature 1 beside random ones", GreedyBonusDrawn,
     "Temperature 0 is replaced by 1 to avoid dividing by zero and the argmax is not put back for bonus rows. Greedy "
     "requests in a batch that also has random ones."),
    ("verify", "recovery uses the acceptance coin again", RecoveryCoinIsAcceptances,
     "The uniform that rejected the draft, which is thus known to be above p/q, also draws from the residual. Any rejection "
     "of a random request."),
    ("verify", "one acceptance coin for all positions", OneCoinForAllPositions,
     "One uniform a request instead of one a draft, so acceptance at later positions is conditioned on the earlier ones. Two "
     "drafts or more."),
    ("verify", "coins of the first call replayed for captured batch sizes", CoinsCaptured,
     "The seeds are baked into the CUDA graph, so each later call with a batch size that was captured (1, 2, 4, multiples of "
     "8 up to 512) uses the coins of the first. The second and later calls of such a size."),
    ("verify", "seeds cut to 32 bits", SeedsOf32Bits,
     "Seeds are cast to uint32, so seeds that differ only in the upper half give the same coins. Seeds over 2^32."),
    ("verify", "acceptance coins repeat every 8 positions", CoinsEveryEight,
     "The buffer of uniforms has 8 a request and is indexed modulo 8, so position 8 has the coin of position 0, and so on. "
     "More than 8 drafts."),
    ("verify", "cumulative sums stored in bfloat16", SumsInBfloat16,
     "The cumulative sum that recovery and bonus search is bfloat16, so above 0.5 steps under 1/256 vanish and tokens merge. "
     "Flat rows, vocabularies of about 100 or more."),
    ("verify", "recovery and bonus uniforms shared by all requests", DrawCoinOfFirstRequest,
     "One uniform a position is drawn and broadcast over the batch (the first request's generator), so requests that end at "
     "the same position draw with the same number; each alone is exact. Batches of two or more."),
    ("verify", "filters skipped when any request is greedy", FiltersOffBesideGreedy,
     "The filter kernels are only launched for all-random batches, so top-k, top-p and min-p of random requests are ignored "
     "beside a greedy one. Mixed batches."),
    ("verify", "parameters indexed by target row instead of request", ParametersByRow,
     "Temperature and filters are read at the row's index (clipped to the batch) instead of at its request's. Batches with "
     "different parameters and drafts."),
    ("verify", "output buffer not cleared between calls", OutputNotCleared,
     "The output is allocated once per shape and not refilled with -1, so tokens of the call before remain behind a shorter "
     "result. The second and later calls of the same shape."),
    ("verify", "draft probability gathered at the next draft's token", ProposalAtNextToken,
     "The ids for the gather of q are shifted by one (as the drafter's inputs are), so draft i is judged with q_i of token "
     "x_(i+1); the residual is right. draft_probs given, two drafts or more."),
    ("verify", "target probabilities accumulated over positions", TargetAccumulated,
     "The running sum prob_acc, meant for siblings in a tree, is not reset when a draft is accepted, so draft i is judged "
     "with p_0 + ... + p_i. Random requests with two drafts or more."),
    ("verify", "acceptance threshold of 0.8 left on", ThresholdFourFifths,
     "The lenient test u < p / (0.8 q) (threshold_acc below 1) is the default, so tokens with p < q are emitted up to 25 % "
     "too often. Random requests, rows where p < q on much of the mass."),
    ("verify", "n-gram drafts always verified greedily", NgramGreedily,
     "Without draft_probs the greedy kernel is launched whatever the temperature: drafts are compared with the argmax, and "
     "the argmax is emitted. Random requests, draft_probs None."),
    ("verify", "padding up to the longest draft is verified as drafts", PaddingVerified,
     "Drafts are padded with id 0 (q 0) to the batch's longest and the loop runs to that length, so shorter requests that "
     "accept all theirs go on with token 0 judged on their bonus row. Ragged batches."),
    ("verify", "last draft never read", LastDraftUnread,
     "The loop over drafts ends one early and the token at the last draft's place is drawn from the target; exact, but a "
     "request yields at most K tokens instead of K + 1, and one draft yields nothing. Always."),
    ("verify", "32 accepted drafts counted as none", AllOfThirtyTwo,
     "The accepted flags are a 32-bit mask and the first rejection is ffs(~mask), which is 0 when all 32 bits are set, so "
     "the request is treated as rejected at position 0. Requests with exactly 32 drafts, all accepted."),
    ("verify", "draft ids held in 16 bits", IdsOfSixteenBits,
     "Draft ids are stored as uint16, so ids from 65536 on wrap: another token is judged (with that token's p and q) and "
     "emitted. Vocabularies over 65536; without draft_probs it is exact, but hardly accepts."),
    ("verify", "all requests cut to the fewest tokens of the batch", CutToFewest,
     "The batch advances by the smallest number accepted in it, so the rest of every request's tokens is thrown away; exact, "
     "but large or ragged batches yield about one token a request. Batches of two or more."),
    ("verify", "target probabilities not renormalised after the filters", NotNormalisedAfterFilters,
     "The filters zero probabilities after the softmax and p is then compared with q and subtracted as it is, with a sum "
     "below 1. Random requests with a filter that takes mass away."),
    ("verify", "draft probabilities tempered by the target's temperature", ProposalTempered,
     "q is raised to 1/temperature and renormalised although draft_probs are what the drafts were sampled from. Random "
     "requests with a temperature other than 1, draft_probs given."),
    ("verify", "only the 16 largest draft probabilities kept", ProposalSixteenLargest,
     "The drafter's distribution is handed over as its 16 largest entries and the others read as 0, so a draft outside of "
     "them is always accepted and its q not subtracted. Flat proposals over more than 16 tokens, draft_probs given."),
    ("verify", "draft probabilities unused beside greedy requests", PointMassesBesideGreedy,
     "In a batch that is not all random draft_probs is set to None and every draft judged as a point mass (accepted with p); "
     "exact, but random requests accept much less. Mixed batches, draft_probs given."),
    ("verify", "logits over the temperature clamped at 50 before the softmax", AtMostFifty,
     "Instead of subtracting the largest, logits / temperature is clamped at 50 against overflow, so all tokens above it "
     "become equally likely. Low temperatures or large logits (logit / temperature over 50)."),
    ("verify", "residual is the absolute difference", ResidualAbsolute,
     "|p - q| in place of max(p - q, 0), so tokens the proposal favours (the rejected draft among them) are recovered. Any "
     "rejection."),
    ("verify", "residual subtracts draft probabilities by rank", ResidualByRank,
     "p and q are both sorted by probability when they are subtracted (the sort back by id is missing), so the largest q is "
     "taken from the largest p, and so on. Any rejection where p and q rank the tokens differently."),
    ("verify", "residual uses the first position's draft probabilities", ResidualOfFirstProposal,
     "The recovery kernel does not add the position to the pointer of q, so q_0 is subtracted from p_i. Rejections at the "
     "second draft or later."),
    ("verify", "residual clamped at 1e-5 from below", ResidualClamped,
     "max(p - q, 1e-5) against an empty residual, so every token (also those the filters exclude) gets 1e-5 before the "
     "normalisation. Random requests, vocabularies of thousands or small residuals."),
    ("verify", "exponential noise repeats every 256 tokens", RaceNoiseRepeats,
     "Recovery and bonus draw by argmax of weight / Exp(1) noise, but the noise depends on the token's place in its block of "
     "256, so of tokens 256 apart only the heaviest can win. Vocabularies over 256, flat rows."),
    ("verify", "bonus drawn from the last draft's row", BonusOfLastDraftRow,
     "The bonus row's index is off by one: the token after a full acceptance is drawn from the row that judged the last "
     "draft. All drafts accepted, one draft or more."),
    ("verify", "bonus tokens compacted to the wrong requests", BonusesOfFirstRequests,
     "out[full] = bonus[:full.sum()], with the mask left out on the right, so the j-th fully accepted request gets the bonus "
     "of request j. Batches in which a request that rejects comes before one that accepts all."),
    ("verify", "bonus drawn with the last draft's acceptance coin", BonusWithLastCoin,
     "The bonus takes the uniform that accepted the last draft, known to be below p/q, so early ids are favoured. All drafts "
     "accepted, where the last draft's p < q (or no draft_probs)."),
    ("verify", "coins seeded by seed plus position", SeedPlusPosition,
     "The generator's key is seed + i, so position i + 1 of a request has the coins of position i of the request with the "
     "next seed. Consecutive seeds; each request alone is exact."),
    ("verify", "acceptance coins read at the request's own stride", CoinsAtOwnStride,
     "Coins lie as [B, K_max] but are read at b * K_b + i, so shorter requests use coins of the requests before them; each "
     "alone is exact. Ragged batches."),
    ("verify", "recovery and bonus uniforms of 11 bits", UniformsOfElevenBits,
     "The uniforms are drawn in half precision (multiples of 1/2048), so of a flat row of many tokens most can never be "
     "drawn. Recovery and bonus of random requests, flat rows of about 1000 tokens or more."),
    ("verify", "temperature cast to integer before the greedy test", TemperatureAsInteger,
     "The temperature is kept with the integer parameters and truncated when it is compared with 0, so requests below 1 are "
     "greedy. Temperatures between 0 and 1."),
    ("verify", "first request decides whether the batch is greedy", FirstDecidesGreedy,
     "The greedy path is chosen by temperature[0] == 0 alone, so random requests behind a greedy first one get the argmax. "
     "Mixed batches whose first request is greedy."),
    ("verify", "largest top-k of the batch used for all", LargestTopK,
     "A scalar k = top_k.max() is handed to the top-k kernel, so requests with a smaller top-k keep too many tokens. Batches "
     "with different top_k above 0."),
    ("verify", "requests sorted by length put back with the wrong permutation", PermutedAgain,
     "Requests are sorted by number of drafts for balance, and the outputs are indexed by the permutation again instead of "
     "its inverse, so requests get each other's tokens. Ragged batches of three or more."),
    ("verify", "draft probabilities of an earlier call reused", ProposalOfCallBefore,
     "The persistent buffer for draft_probs is only filled when its shape changes, so later calls of the same shape compare "
     "and subtract the q of the first of them. The second and later calls of the same shape, draft_probs given."),
    ("verify", "recovery draws from the target before the filters", RecoversUnfiltered,
     "The residual is taken from the softmax before top-k, top-p and min-p, so recovered tokens may be filtered ones. Random "
     "requests with a filter, at a rejection."),
    ("verify", "greedy drafts beside random ones are judged at temperature 1", GreedyJudgedWarm,
     "In mixed batches temperature 0 is replaced by 1 for the acceptance test, so greedy requests accept drafts that are not "
     "the argmax; recovery and bonus are right. Greedy requests beside random ones."),
    ("verify", "greedy drafts within 0.5 of the largest logit are accepted", RelaxedGreedy,
     "Relaxed acceptance (logit >= max - delta) stays on for all greedy requests. Greedy requests whose draft is a close "
     "runner-up."),
    ("verify", "bonus rows have the next request's parameters", BonusOfNextParameters,
     "Parameters are expanded with the drafts' offsets so that each request's bonus row falls to the next request (the last "
     "to itself). Batches with different parameters, all drafts accepted or none drafted."),
    ("verify", "filters are applied to a request's first row alone", FiltersOnFirstRow,
     "top-k, top-p and min-p are scattered at the request's first target row and not expanded, so later positions and the "
     "bonus have the temperature alone. Requests with filters and drafts, from the second row on."),
    ("verify", "parameters of the call before are kept while draft lengths stay", ParametersOfSameLengths,
     "The parameters expanded to target rows are cached by the draft lengths, so a later call of the same lengths uses an "
     "earlier call's temperatures and filters. Successive calls with equal lengths and different parameters."),
    ("verify", "an empty draft takes a row of draft probabilities", EmptyCountsAsOne,
     "The offset into draft_probs counts at least one row a request, so requests after an empty one read their q a row too "
     "late. Ragged batches with empty drafts, draft_probs given."),
    ("verify", "drafts past the eighth are judged by the eighth's row", RowsToTheEighth,
     "The position is clamped to the configured 8 when the target row is read, so later drafts are verified and recovered "
     "with the target of the eighth. More than 8 drafts."),
    ("verify", "drafts are cut to the batch's shortest", CutToShortest,
     "The number of verified drafts is the minimum over the batch instead of each request's; exact, but the longer requests "
     "lose their further drafts, all of them beside an empty one. Ragged batches."),
    ("verify", "drafts after a rejected one are still accepted", RejectionGoesOn,
     "The first rejection doesn't end the loop: after the recovered token the later drafts, which followed the rejected one, "
     "are judged and emitted too, up to the next rejection. Any rejection before the last draft."),
    ("verify", "recovery reads the last draft's rows", RecoversAtLastDraft,
     "The recovered token is computed at the request's last draft position instead of the rejected one. Rejections before "
     "the last draft, two drafts or more."),
    ("verify", "residual is max(q - p, 0)", ResidualReversed,
     "Draft and target are swapped in the residual, so what the drafter favours is recovered (without draft_probs the "
     "rejected draft itself). Any rejection."),
    ("verify", "a residual of less than a tenth is replaced by the target", SmallResidualIsTarget,
     "The guard against an empty residual compares its sum with 0.1 in place of about 0, so where p and q are near each "
     "other the recovered token is drawn from p. Rejections with total variation of p and q under 0.1."),
    ("verify", "bonus is the row's largest", BonusLargest,
     "The token after a fully accepted draft is the target's argmax instead of a draw. Random requests, all drafts accepted "
     "or none drafted."),
    ("verify", "acceptance coins are read at request plus position", CoinsAtRequestPlusPosition,
     "Coins of shape [B, K] are indexed with b + i, the stride left out, so position i + 1 of a request has the coin of "
     "position i of the next request. Batches of two or more with two drafts or more; each request alone is exact."),
)
