"""A sampler, a filter, a verifier and a constrained sampler in plain numpy, sound but for the step that a fault
replaces. They import nothing of draftproof, which audits them.

A step is a method; the call and what it has reached are attributes. `faulty(sound, step, instead, when)` is the class
in which `instead` stands for the step where `when` holds: instead(s, step, *given), s the callable, step the sound
step; when(s): of the call, or of each row. What outlives a call is in `memory`.
"""

from __future__ import annotations

import numpy as np


def hashed(*words):
    """uint64 of the shape that the words broadcast to (SplitMix64 over them)."""
    state = np.uint64(0x243F6A8885A308D3)
    with np.errstate(over="ignore"):
        for word in words:
            state = (state ^ np.asarray(word,
                                        np.uint64)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x632BE59BD9B4E019)
            state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            state = state ^ (state >> np.uint64(31))
    return state


def uniform(*words):
    """float64 in [0, 1) of 53 bits."""
    return (hashed(*words) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def normalised(p):
    return p / p.sum(axis=-1, keepdims=True)


def searched(weights, u):
    """The token of each row at which the running sum passes u."""
    total = np.cumsum(weights, axis=-1)
    at = (total <= np.asarray(u * total[..., -1])[..., None]).sum(axis=-1)
    return np.minimum(at, weights.shape[-1] - 1).astype(np.int32)


class Steps:
    def __init__(self):
        self.memory, self.calls = {}, 0

    t = property(lambda self: self.params["temperature"])
    k = property(lambda self: self.params["top_k"])
    top_p = property(lambda self: self.params["top_p"])
    min_p = property(lambda self: self.params["min_p"])
    drawn = property(lambda self: self.t > 0.0)

    def off(self):
        """Rows without a filter."""
        return (self.k <= 0) & (self.top_p >= 1.0) & (self.min_p <= 0.0)


class Sampler(Steps):
    """Temperature, then top-k, top-p over what it left, min-p of what both left; one uniform a row."""

    def __call__(self, logits, params, seeds):
        self.calls += 1
        p = self.probabilities(np.asarray(logits), params)
        self.seeds = self.seeded(np.asarray(seeds, np.uint64))
        return self.emitted(self.tokens(p, self.uniforms(self.seeds))).astype(np.int32)

    def probabilities(self, x, params):
        params = {"min_p": np.zeros(len(x), np.float32), **params}
        self.params = {name: np.array(value) for name, value in params.items()}
        self.x, self.rows, self.vocab = x, np.arange(len(x)), x.shape[1]
        self.params = self.parameters(self.params)
        self.x = self.inputs(x)
        self.scaled_x = scaled = self.scaled(self.x, self.t.astype(np.float64))
        if self.off().all():
            return self.law(normalised(np.exp(scaled)))
        self.order = np.argsort(-self.keys(scaled), axis=1, kind="stable")
        self.ranked = np.take_along_axis(scaled, self.order, axis=1)
        with np.errstate(invalid="ignore"):
            p = np.where(self.kept(self.ranked), np.exp(self.ranked), 0.0)
        lost = p.sum(axis=1) == 0.0
        p[lost, self.ranked[lost].argmax(axis=1)] = 1.0
        out = np.zeros_like(p)
        np.put_along_axis(out, self.order, normalised(p), axis=1)
        return self.law(out)

    def parameters(self, params):
        return params

    def inputs(self, x):
        return x

    def scaled(self, x, temperature):
        """Rows over the temperature, the largest at 0; greedy rows keep their first largest token alone."""
        wide = x.astype(np.float64)
        greedy = temperature == 0.0
        with np.errstate(invalid="ignore"):
            below = wide - wide.max(axis=1, keepdims=True)
            out = np.where(wide == -np.inf, -np.inf, below / np.where(greedy, 1.0, temperature)[:, None])
        out[greedy] = -np.inf
        out[greedy, wide[greedy].argmax(axis=1)] = 0.0
        return out

    def keys(self, scaled):
        return scaled

    def kept(self, ranked):
        """ranked [B, V]: scaled logits, falling. Which places stay."""
        self.keep = self.keeps_k(ranked)
        p = normalised(np.where(self.keep, np.exp(ranked), 0.0))
        self.keep = self.keep & self.keeps_p(p)
        return self.keep & self.keeps_min(p)

    def keeps_k(self, ranked):
        vocab = ranked.shape[1]
        return np.arange(vocab)[None, :] < np.where(self.k > 0, self.k, vocab)[:, None]

    def keeps_p(self, p):
        keep = np.cumsum(p, axis=1) - p < self.top_p[:, None]
        keep[:, 0] = True
        return keep

    def keeps_min(self, p):
        return p >= self.min_p[:, None] * p[:, :1]

    def law(self, p):
        return p

    def seeded(self, seeds):
        return seeds

    def uniforms(self, seeds):
        return uniform(seeds, 1)

    def tokens(self, p, u):
        return searched(p, u)

    def emitted(self, tokens):
        return tokens


class Filter(Sampler):
    """Filtered logits over the temperature."""

    def __call__(self, logits, params):
        self.calls += 1
        p = self.probabilities(np.asarray(logits), params)
        wide = np.asarray(logits).astype(np.float64) / np.maximum(params["temperature"], 1e-30)[:, None]
        return self.outputs(np.where(p > 0.0, wide, -np.inf).astype(np.float32))

    def outputs(self, out):
        return out


class Verifier(Steps):
    """Chain verification (Leviathan et al. 2023) of a batch: rows are filtered by a Sampler, then p and q compared. Of
    the request in
    hand: b, seed, x drafts, p target rows, q draft rows; i is the place in it, token the draft there."""

    filter = Sampler

    def __init__(self):
        super().__init__()
        self.sampler = self.filter()

    def __call__(self, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
        self.calls += 1
        self.ends = np.asarray(cu_num_draft_tokens, np.int64)
        self.lens = np.diff(self.ends, prepend=0)
        self.requests = np.arange(len(self.ends))
        self.ngram, self.draft_probs = draft_probs is None, draft_probs
        self.given = {"min_p": np.zeros(len(self.ends), np.float32),
                      **{name: np.asarray(value) for name, value in params.items()}}
        self.of_row = np.repeat(self.requests, self.lens + 1)
        self.place = np.arange(len(self.of_row)) - np.repeat(self.ends - self.lens + self.requests, self.lens + 1)
        self.is_bonus = self.place == self.lens[self.of_row]
        self.params = {name: value[self.of_row] for name, value in self.given.items()}
        self.params = self.parameters(self.params)
        self.logits = np.asarray(target_logits)
        self.logits = self.inputs(self.logits)
        self.rows = self.target()
        self.firsts = self.first_rows()
        self.seeds = self.seeded(np.asarray(seeds, np.uint64))
        self.begin()
        out = self.blank((len(self.ends), int(self.lens.max(initial=0)) + 1))
        for b, (end, count) in enumerate(zip(self.ends, self.lens)):
            self.b, self.seed = b, self.seeds[b]
            self.x = np.asarray(draft_tokens[end - count:end], np.int64)
            self.p = self.rows[self.firsts[self.b]:self.firsts[self.b] + count + 1]
            self.q = self.proposal(end - count)
            tokens = self.emitted(self.request(self.x, self.p, self.q))
            out[self.b, :len(tokens)] = tokens
        out = self.outputs(out)
        self.rows = self.logits = self.draft_probs = self.p = self.q = None
        return out

    def parameters(self, params):
        return params

    def inputs(self, x):
        return x

    def target(self):
        return self.sampler.probabilities(self.logits, self.params)

    def first_rows(self):
        """The first target row of every request."""
        return self.ends - self.lens + self.requests

    def seeded(self, seeds):
        return seeds

    def begin(self):
        """Before the requests are gone through."""

    def blank(self, shape):
        return np.full(shape, -1, np.int32)

    def proposal(self, begin):
        if not self.ngram:
            return np.asarray(self.draft_probs[begin:begin + len(self.x)], np.float64)
        return (np.arange(self.rows.shape[1]) == self.x[:, None]).astype(np.float64)

    def request(self, x, p, q):
        self.x, self.p, self.q = x, p, q
        for i, token in enumerate(x):
            self.i, self.token = i, token
            if not self.accepts(self.coin(self.i), p[self.i][self.token], q[self.i][self.token]):
                return [*x[:self.i], *self.recovered()]
        self.i = len(x)
        return [*x, *self.bonus()]

    greedy = property(lambda self: self.given["temperature"][self.b] == 0.0)

    def coin(self, i):
        return uniform(self.seed, 3, i)

    def accepts(self, u, p, q):
        return u * q < p

    def recovered(self):
        return [self.draw(self.residual(self.p[self.i], self.q[self.i]))]

    def residual(self, p, q):
        left = np.maximum(p - q, 0.0)
        return left if left.sum() > 0.0 else p

    def bonus(self):
        return [self.draw(self.p[len(self.x)])]

    def draw(self, weights):
        return int(searched(weights, self.draw_coin(self.i)))

    def draw_coin(self, i):
        return uniform(self.seed, 4, i)

    def emitted(self, tokens):
        return tokens

    def outputs(self, out):
        return out


class Constrained(Verifier):
    """Chain verification of rows that are masked by the state along the drafts, then filtered. Matchers move by each
    draft and are taken back."""

    gives_logprobs = True

    def __call__(self, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds, matchers):
        self.matchers = matchers
        self.masks = np.concatenate([self.masked(np.asarray(draft_tokens[end - count:end], np.int64), b) for b,
                                     (end, count) in enumerate(
            zip(np.asarray(cu_num_draft_tokens), np.diff(cu_num_draft_tokens, prepend=0)))])
        self.logprobs = np.zeros((len(seeds), int(np.diff(cu_num_draft_tokens, prepend=0).max(initial=0)) + 1))
        out = super().__call__(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds)
        return (out, self.logprobs) if self.gives_logprobs else out

    def masked(self, x, b):
        """[K + 1, V] bool; behind a forbidden draft all."""
        matcher, masks, moved, dead = self.matchers[b], [self.matchers[b].allowed()], 0, False
        for token in x:
            dead = dead or not matcher.accept(token)
            moved += not dead
            masks.append(np.ones(len(masks[0]), bool) if dead else matcher.allowed())
        self.take_back(matcher, moved)
        return np.stack(masks)

    def take_back(self, matcher, moved):
        matcher.rollback(moved)

    def target(self):
        return self.sampler.probabilities(np.where(self.masks, self.logits, -np.inf), self.params)

    def emitted(self, tokens):
        first = self.firsts[self.b]
        with np.errstate(divide="ignore"):
            self.logprobs[self.b,
                          :len(tokens)] = np.log([row[token] for row, token in zip(self.stated()[first:], tokens)])
        for token in self.advanced(tokens):
            self.matchers[self.b].accept(token)
        return tokens

    def stated(self):
        """The rows whose log-probabilities are returned."""
        return self.rows

    def advanced(self, tokens):
        """The tokens that move the state."""
        return tokens


def chosen(here, other, value):
    """other in the rows that are here, else value; of each of a dictionary."""
    if isinstance(value, dict):
        return {name: chosen(here, other[name], value[name]) for name in value}
    return np.where(here.reshape(-1, *[1] * (np.ndim(value) - 1)), other, value).astype(np.result_type(value, other))


def faulty(sound, step, instead, when=None):
    """The class `sound` with something else in place of a step."""

    def replaced(self, *given):
        right = getattr(super(Faulty, self), step)
        here = True if when is None else when(self)
        if np.ndim(here) and not np.all(here) and np.any(here):
            return chosen(here, instead(self, right, *given), right(*given))
        return instead(self, right, *given) if np.any(here) else right(*given)

    Faulty = type(f"Faulty{sound.__name__}", (sound,), {step: replaced})
    return Faulty


def put(**values):
    """For the step `parameters`: other values; a function has the callable."""

    def instead(s, step, params):
        params = dict(step(params))
        for name, value in values.items():
            value = np.asarray(value(s) if callable(value) else value)
            params[name] = np.broadcast_to(value, params[name].shape).astype(params[name].dtype)
        return params

    return instead


def unfiltered(**values):
    return put(**{"top_k": 0, "top_p": 1.0, "min_p": 0.0, **values})


def changed(change):
    """What is given to a step is changed first."""
    return lambda s, step, *given: step(change(s, *given))


def then(change):
    """What a step gives is changed."""
    return lambda s, step, *given: change(s, step(*given))


def of(index, *names):
    """For the step `parameters`: those, or the named ones, of the rows index(s)."""

    def instead(s, step, params):
        params, at = step(params), index(s)
        return {name: value[at] if not names or name in names else value for name, value in params.items()}

    return instead


def held(key):
    """What a step gives is made again only where its key changed."""

    def instead(s, step, *given):
        if s.memory.get("key") != key(s):
            s.memory.update(key=key(s), held=step(*given))
        return s.memory["held"].copy()

    return instead
