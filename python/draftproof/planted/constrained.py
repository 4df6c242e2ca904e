"""Faults of constrained samplers, one each, in plain numpy, and the sound ones. FAULTS maps a fault to the callable that has it and to
the words that the audit should have for it."""

from __future__ import annotations

import copy

import numpy as np

from .faults import Sampler, Verifier, uniform


class Constrained(Verifier):
    """Chain verification of rows that are masked by the state along the drafts, then filtered. Methods are the steps, for a
    fault to replace one. Matchers move by each draft and are taken back."""

    gives_logprobs = True

    def __call__(self, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds, matchers):
        ends = np.asarray(cu_num_draft_tokens, np.int64)
        lens = np.diff(ends, prepend=0)
        out = np.full((len(ends), int(lens.max(initial=0)) + 1), -1, np.int32)
        logprobs = np.zeros(out.shape)
        for b, (end, count) in enumerate(zip(ends, lens)):
            begin = end - count
            x = np.asarray(draft_tokens[begin:end], np.int64)
            logits = np.asarray(target_logits[begin + b:end + b + 1], np.float64)
            masks = self.masks(x, matchers, b)
            of_row = {name: np.repeat(np.asarray(value)[b:b + 1], count + 1) for name, value in params.items()}
            p = self.probabilities(logits, masks, of_row)
            q = self.proposal(x, None if draft_probs is None else np.asarray(draft_probs[begin:end], np.float64), logits.shape[1])
            tokens = self.judged(x, p, self.told(q, masks), seeds[b], b, masks, logits, of_row)
            out[b, :len(tokens)] = tokens
            logprobs[b, :len(tokens)] = self.logprobs(logits, p, of_row, tokens)
            self.advance(matchers[b], x, tokens)
        return (out, logprobs) if self.gives_logprobs else out

    def masks(self, x, matchers, b):
        """[K + 1, V] bool; behind a forbidden draft all."""
        matcher, masks, moved, dead = matchers[b], [matchers[b].allowed()], 0, False
        for token in x:
            dead = dead or not matcher.accept(token)
            moved += not dead
            masks.append(np.ones(len(masks[0]), bool) if dead else matcher.allowed())
        self.take_back(matcher, moved)
        return np.stack(masks)

    def take_back(self, matcher, moved):
        matcher.rollback(moved)

    def probabilities(self, logits, masks, params):
        return self.rows.probabilities(np.where(masks, logits, -np.inf), params)

    def told(self, q, masks):
        return q

    def judged(self, x, p, q, seed, b, masks, logits, params):
        return self.verify(x, p, q, seed, b)

    def logprobs(self, logits, p, params, tokens):
        with np.errstate(divide="ignore"):
            return np.log([p[i][token] for i, token in enumerate(tokens)])

    def advance(self, matcher, x, tokens):
        for token in tokens:
            matcher.accept(token)


class Late(Constrained):
    def masks(self, x, matchers, b):
        masks = super().masks(x, matchers, b)
        return np.concatenate([masks[:1], masks[:-1]])


class NotRolledBack(Constrained):
    def take_back(self, matcher, moved):
        pass


class OfTheNextRequest(Constrained):
    def masks(self, x, matchers, b):
        return super().masks(x, matchers, (b + 1) % len(matchers))


class EndTooEarly(Constrained):
    def masks(self, x, matchers, b):
        masks = super().masks(x, matchers, b)
        masks[:, -1] = True
        return masks


class BonusBare(Constrained):
    def masks(self, x, matchers, b):
        masks = super().masks(x, matchers, b)
        if len(x):
            masks[-1] = True
        return masks


class OfText(Constrained):
    """A token is allowed where its first letter is."""

    def masks(self, x, matchers, b):
        masks, texts = super().masks(x, matchers, b), matchers[b].grammar.texts
        if texts:
            for mask in masks:
                first = {texts[token][:1] for token in np.flatnonzero(mask)}
                mask[:-1] |= np.array([text[:1] in first for text in texts[:-1]])
        return masks


class AfterFilters(Constrained):
    """Filters over the bare row; what the mask leaves of it, or the whole masked row where nothing is left."""

    gives_logprobs = False

    def probabilities(self, logits, masks, params):
        p = np.where(masks, self.rows.probabilities(logits, params), 0.0)
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0.0, p / np.where(total > 0.0, total, 1.0), super().probabilities(logits, masks, params))


class CheckedLater(Constrained):
    """llama.cpp: a token of the bare filtered row stands if it is legal; else another is drawn with the mask first."""

    gives_logprobs = False

    def probabilities(self, logits, masks, params):
        bare = self.rows.probabilities(logits, params)
        legal = np.where(masks, bare, 0.0)
        again = super().probabilities(logits, masks, params)
        return legal + (1.0 - legal.sum(axis=1, keepdims=True)) * again


class LogprobsBeforeMasks(Constrained):
    def logprobs(self, logits, p, params, tokens):
        return super().logprobs(logits, self.rows.probabilities(logits, params), params, tokens)


class MaskedQ(Constrained):
    """The draft's rows are masked for the ratio, whatever drafts were drawn from."""

    def told(self, q, masks):
        left = np.where(masks[:len(q)], q, 0.0)
        total = left.sum(axis=1, keepdims=True)
        return np.where(total > 0.0, left / np.where(total > 0.0, total, 1.0), q)


class CutsForbidden(Constrained):
    """Drafts from the first forbidden one on are dropped before verification."""

    def judged(self, x, p, q, seed, b, masks, logits, params):
        kept = 0
        while kept < len(x) and masks[kept][x[kept]]:
            kept += 1
        return self.verify(x[:kept], p, q, seed, b)


class ForgetsTheLast(Constrained):
    """The token behind the accepted drafts does not move the state."""

    def advance(self, matcher, x, tokens):
        super().advance(matcher, x, tokens[:-1] if len(tokens) > 1 else tokens)


class CheckedLaterWithLogprobs(CheckedLater):
    gives_logprobs = True


class SoundCopies(Constrained):
    """Masks from a copy of the matcher."""

    def masks(self, x, matchers, b):
        copies = list(matchers)
        copies[b] = copy.copy(matchers[b])
        return super().masks(x, copies, b)


class Trees:
    """Any tree by the target's own tokens: a draw from each row on the way, followed while a child has it. Chains too."""

    def __call__(self, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds, matchers, parents=None):
        ends = np.asarray(cu_num_draft_tokens, np.int64)
        lens = np.diff(ends, prepend=0)
        is_tree = parents is not None
        depth = 2 if is_tree else int(lens.max(initial=0))
        out = np.full((len(ends), depth + 1), -1, np.int32)
        filters = Sampler()
        for b, (end, count) in enumerate(zip(ends, lens)):
            begin = end - count
            x = np.asarray(draft_tokens[begin:end], np.int64)
            up = np.asarray(parents[begin:end]) if is_tree else np.arange(count) - 1
            masks = self.masks(x, up, matchers[b])
            logits = np.where(masks, np.asarray(target_logits[begin + b:end + b + 1], np.float64), -np.inf)
            p = filters.probabilities(logits, {name: np.repeat(np.asarray(value)[b:b + 1], count + 1) for name, value in params.items()})
            node, place = -1, 0
            while True:
                total = np.cumsum(p[node + 1])
                token = int(min((total <= uniform(seeds[b], 7, place) * total[-1]).sum(), len(total) - 1))
                out[b, place] = token
                matchers[b].accept(token)
                child = [i for i in range(count) if up[i] == node and x[i] == token]
                if not child:
                    break
                node, place = child[0], place + 1
        return out

    def masks(self, x, up, matcher):
        states = [matcher.state]
        for i, token in enumerate(x):
            states.append(matcher.grammar.after(states[self.before(up, i)], token))
        return np.stack([matcher.grammar.allowed(state) for state in states])

    def before(self, up, i):
        return up[i] + 1


class TreesInOrder(Trees):
    def before(self, up, i):
        return i


SOUND = {"chain": Constrained, "chain, masks from copies": SoundCopies, "trees": Trees}
FAULTS = {
    "mask one position late": (Late, "mask one position late"),
    "state not rolled back": (NotRolledBack, "state not rolled back over rejected drafts"),
    "state of the next request": (OfTheNextRequest, "masks or state of another request"),
    "end token everywhere": (EndTooEarly, "the end token before an accepting state"),
    "bonus row without a mask": (BonusBare, "no mask in the bonus row"),
    "masks of trees in flat order": (TreesInOrder, "masks of a tree by the order of its nodes, not along their paths"),
    "masks of text": (OfText, "merged tokens of which only the beginning is legal"),
    "masks after filters": (AfterFilters, "masks after the filters"),
    "masks where a draw is forbidden": (CheckedLater, "masks after the filters"),
    "masks where a draw is forbidden, with logprobs": (CheckedLaterWithLogprobs, "masks after the filters"),
    "logprobs before masks": (LogprobsBeforeMasks, "log-probabilities of the row before the mask"),
    "q masked in the ratio": (MaskedQ, "q masked in the ratio, though drafts were drawn from bare rows"),
    "forbidden drafts cut": (CutsForbidden, "forbidden drafts cut off, and their place drawn from p"),
    "state behind the last token forgotten": (ForgetsTheLast, "state not advanced by the emitted tokens"),
}
