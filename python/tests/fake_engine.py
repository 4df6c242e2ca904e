"""Exact small engine of the fake server: rows from two tables, every parameter of a request, chain speculation.

Each value passes `Engine.see(site, value, moment)`, where a planted fault may change it. Readings that differ between
sound engines are `traits`."""

import hashlib
import json
from dataclasses import dataclass, field

import numpy

SIZE, LISTED, EOS, DRAFTS = 64, 20, 63, 3
PIECES = ['"', "red", "green", "re", "d", "gr", "een", "}",
          *(f" {a}{b}{c}" for a in "bdfklmt" for b in "ao" for c in ("n", "rit", "l", "so"))][:EOS]
PIECES += [f" {n}" for n in range(EOS - len(PIECES))] + [""]
NEUTRAL = {"temperature": 1.0, "top_k": -1, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0,
           "presence_penalty": 0.0, "frequency_penalty": 0.0, "logit_bias": {}, "stop": [], "stop_token_ids": [],
           "min_tokens": 0, "max_tokens": 16, "ignore_eos": False, "seed": None, "n": 1, "response_format": None,
           "window": 0, "use_beam_search": False, "best_of": None}


@dataclass
class Request:
    """One choice while it is generated. `seen` and `mate`: a fault's last values here and in another request."""

    body: dict
    prompt: list[int]
    rng: numpy.random.Generator
    out: list[int] = field(default_factory=list)
    text: str = ""
    finish: str = "length"
    rows: list = field(default_factory=list)
    seen: dict = field(default_factory=dict)
    mate: dict = field(default_factory=dict)


@dataclass
class Moment:
    """Where a value is used: `kind` is plain, draft (verified), recovered or bonus; `target` the row's distribution."""

    request: Request
    kind: str = "plain"
    target: numpy.ndarray | None = None

    @property
    def position(self) -> int:
        return len(self.request.out)


def filtered(row: numpy.ndarray, t: float, k: int, p: float, m: float, traits: frozenset) -> numpy.ndarray:
    """Returns probabilities (size SIZE) of a row of logits under one request's filters."""
    order = numpy.argsort(-row, kind="stable")
    if t <= 0:
        probs = numpy.zeros(SIZE)
        probs[order[0]] = 1.0
        return probs
    value = row[order] - row[order[0]]
    cut = value if "filters first" in traits else value / t
    keep = numpy.ones(SIZE, bool)
    if k > 0:
        keep[k:] = False
    if m > 0:
        keep &= cut >= numpy.log(m)
    weight = numpy.exp(cut)
    mass = numpy.cumsum(weight if "top_p over all" in traits else weight * keep)
    if p < 1:
        keep &= (mass - weight) < p * mass[-1]
    keep[0] = True
    weight = numpy.exp(value / t) * keep
    probs = numpy.zeros(SIZE)
    probs[order] = weight / weight.sum()
    return probs


class Engine:
    """Generates. `fault` has site, when(moment), change(value, moment); None is sound."""

    def __init__(self, fault: object = None, traits: frozenset = frozenset(), seed: int = 7) -> None:
        self.fault, self.traits, self.mates = fault, traits, {}
        rng = numpy.random.default_rng(seed)
        self.last, self.before, self.drift = (rng.normal(0.0, scale, (SIZE, SIZE)) for scale in (1.3, 0.9, 0.6))
        self.last[:, :8] -= 2.0  # pieces of JSON
        self.last[:, 8:EOS] += 1.0
        self.last[:, EOS] -= 0.5
        self.last[0, [1, 2, 3, 5]] += 5.0  # behind a quote
        self.fresh = numpy.random.default_rng([seed, 1])
        self.known, self.lists, self.filtered = {}, {}, {}

    def see(self, site: str, value: object, moment: Moment) -> object:
        """Returns the value that is used at `site`."""
        if self.fault is None or self.fault.site != site:
            return value
        request, other = moment.request, self.mates.get(site)
        if other and other[0] is not request:
            request.mate[site] = other[1]
        self.mates[site] = (request, value)
        used = self.fault.change(value, moment) if self.fault.when(moment) else value
        request.seen[site] = value
        return used

    def param(self, name: str, moment: Moment) -> object:
        value = moment.request.body.get(name)
        return self.see(name, NEUTRAL[name] if value is None else value, moment)

    def noisy(self, row: numpy.ndarray) -> numpy.ndarray:
        return row + self.fresh.normal(0, 1e-3, SIZE) if "noise" in self.traits else row

    def raw(self, context: list[int]) -> numpy.ndarray:
        """Returns logits behind `context`."""
        key = tuple(context[-2:])
        if key not in self.known:
            self.known[key] = self.last[key[-1]] + self.before[key[0]]
            if "ties" in self.traits and key[-1] % 4 == 0:
                self.known[key][[8, 9]] = self.known[key].max() + 0.5
        return self.known[key]

    def row(self, moment: Moment) -> numpy.ndarray:
        """Returns logits after mask, bias and penalties."""
        request = moment.request
        row = self.see("row", self.raw(request.prompt + request.out), moment)
        row = self.noisy(row).copy()
        allowed = self.see("mask", self.mask(moment), moment)
        if allowed is not None:
            row[~allowed] = -numpy.inf
            row = self.see("masked", row, moment)
        for token, bias in self.param("logit_bias", moment).items():
            row[int(token)] += bias
        r, presence, frequency = (self.param(name + "_penalty", moment)
                                  for name in ("repetition", "presence", "frequency"))
        if r != 1:
            counts = self.counts(moment, True)
            row = numpy.where(counts > 0, numpy.where(row > 0, row / r, row * r), row)
        if presence or frequency:
            counts = self.counts(moment, False)
            behind = (self.param("temperature", moment) or 1.0) if "as TensorRT-LLM" in self.traits else 1.0
            row -= behind * (presence * (counts > 0) + frequency * counts)
        ends = [EOS, *self.param("stop_token_ids", moment)]
        if moment.position < self.param("min_tokens", moment):
            row[ends] = -numpy.inf
        if self.param("ignore_eos", moment) and "eos is passed over" not in self.traits:
            row[EOS] = -numpy.inf
        return row

    def counts(self, moment: Moment, repetition: bool) -> numpy.ndarray:
        """Returns how often penalties count each token: repetition the prompt's in most engines, the others in some."""
        request, traits = moment.request, self.traits
        whole = repetition or "penalties over the prompt" in traits or "window of 64" in traits
        ids = (request.prompt if whole else []) + request.out
        if "window of 64" in traits:
            ids = ids[-self.see("window", 64, moment):]
        return numpy.bincount(self.see("history", ids, moment), minlength=SIZE)

    def mask(self, moment: Moment) -> numpy.ndarray | None:
        """Returns which tokens continue one of a schema's strings, None without a schema."""
        shape = self.param("response_format", moment)
        if not shape:
            return None
        strings = [json.dumps(value) for value in shape["json_schema"]["schema"]["enum"]]
        text = moment.request.text
        allowed = [bool(piece) and any(whole.startswith(text + piece) for whole in strings) for piece in PIECES]
        allowed[EOS] = text in strings
        return numpy.array(allowed) if any(allowed) else numpy.arange(SIZE) == EOS

    def probs(self, moment: Moment) -> numpy.ndarray:
        row, traits = self.row(moment), self.see("order", self.traits, moment)
        t, k, p, m = (self.param(name, moment) for name in ("temperature", "top_k", "top_p", "min_p"))
        key = (row.tobytes(), t, k, p, m, traits)
        if key not in self.filtered:
            self.filtered[key] = filtered(row, t, k, p, m, traits)
        return self.filtered[key]

    def draw(self, probs: numpy.ndarray, moment: Moment) -> int:
        probs = self.see("probs", probs, moment)
        u = self.see("uniform", moment.request.rng.random(), moment)
        return int(min(SIZE - 1, numpy.searchsorted(numpy.cumsum(probs), u * probs.sum(), "right")))

    def step(self, request: Request) -> list[tuple[int, str]]:
        """Yields (token, kind) of one step: drafts while they are accepted, then a recovered or a bonus token."""
        if not {"speculation", "n-grams"} & self.traits:
            yield self.draw(self.probs(Moment(request)), Moment(request)), "plain"
            return
        for _ in range(DRAFTS):
            raw = self.raw(request.prompt + request.out)
            warm = max(0.1, request.body.get("temperature", 1.0))
            draft = filtered(0.7 * raw + self.drift[raw.argmax()], warm, -1, 1.0, 0.0, frozenset())
            if "n-grams" in self.traits:
                ids = request.prompt + request.out
                draft = numpy.eye(SIZE)[next((ids[at + 2] for at in range(len(ids) - 3, -1, -1)
                                              if request.out and ids[at:at + 2] == ids[-2:]), raw.argmin())]
            token = int(min(SIZE - 1, numpy.searchsorted(numpy.cumsum(draft), request.rng.random(), "right")))
            moment = Moment(request, "draft")
            target = self.probs(moment)
            if request.rng.random() < self.see("accept", target[token] / draft[token], moment):
                yield token, "draft"
                continue
            moment = Moment(request, "recovered", target)
            rest = self.see("residual", numpy.maximum(target - draft, 0.0), moment)
            yield self.draw(rest if rest.sum() > 0 else target, moment), "recovered"
            return
        yield self.draw(self.probs(Moment(request, "bonus")), Moment(request, "bonus")), "bonus"

    def listed(self, moment: Moment, token: int) -> tuple[str, float, dict]:
        """Returns name, logprob and list of the token that is drawn at `moment`."""
        request = moment.request
        row = self.noisy(self.see("listed", self.raw(request.prompt + request.out), moment)).copy()
        if "lists after temperature" in self.traits:
            row = row / (self.param("temperature", moment) or 1.0)
        row -= row.max() + numpy.log(numpy.exp(row - row.max()).sum())
        row = numpy.round(row, 3 if "rounded" in self.traits else 7)
        key = row.tobytes()
        if key not in self.lists:
            best = numpy.argsort(-row, kind="stable")[:LISTED]
            self.lists[key] = {f"token_id:{x}": value for x, value in zip(best.tolist(), row[best].tolist())}
        name, value = f"token_id:{token}", float(row[token])
        return self.see("logprob", (name, value, {**self.lists[key], name: value}), moment)

    def generate(self, body: dict, prompt: list[int], choice: int) -> Request:
        """Returns one finished choice."""
        request = Request(body, prompt, None)
        seed = self.param("seed", Moment(request))
        if seed is None:
            seed = int(self.see("entropy", int(self.fresh.integers(2 ** 40)), Moment(request)))
        seed = seed if "seeds of 64 bits" in self.traits else seed % 2 ** 32
        if "choices differ" in self.traits and body.get("n", 1) > 1:
            seed += 77
        request.rng = numpy.random.default_rng([seed, self.see("choice", choice, Moment(request))])
        most = self.param("max_tokens", Moment(request))
        if "none is one" in self.traits:
            most = max(1, most)
        while request.finish == "length" and len(request.out) < most:
            for token, kind in self.step(request):
                self.append(request, token, kind)
                if request.finish != "length" or len(request.out) >= most:
                    break
        request.finish = self.see("finish", request.finish, Moment(request))
        return request

    def choices(self, body: dict, prompt: list[int]) -> list[Request]:
        """Returns the choices of an answer: beams, the best of more, or draws."""
        whole = Moment(Request(body, prompt, None))
        count, best = self.param("n", whole), self.param("best_of", whole)
        if self.param("use_beam_search", whole):
            return self.beams(body, prompt, count)
        done = [self.generate(body, prompt, number) for number in range(best or count)]
        if best:
            done = self.see("best", sorted(done, key=lambda one: -sum(row[1] for row in one.rows)), whole)
        return done[:count]

    def beams(self, body: dict, prompt: list[int], width: int) -> list[Request]:
        """Returns the best texts by the sums of their logprobs, best first. A text that ended is not continued."""
        live: list = [(0.0, Request(body, prompt, None))]
        done: list = []  # of a server that ranks by the mean, ended texts make room for others
        for _ in range(body["max_tokens"]):
            grown = []
            for total, request in live:
                ended = request.finish != "length"
                grown += [(total, None, request)] if ended else [
                    (total + self.listed(Moment(request), token)[1], token, request) for token in range(SIZE)]
            grown = self.see("beams", sorted(grown, key=lambda one: -one[0]), Moment(live[0][1]))[:2 * width]
            live = []
            for total, token, request in grown:
                if token is not None:
                    request = Request(body, prompt, None, [*request.out], request.text, rows=[*request.rows])
                    self.append(request, token, "plain")
                by_mean = request.finish != "length" and "beams by length" in self.traits
                (done if by_mean else live).append((total, request))
            live = live[:width]
        if "beams by length" in self.traits:
            live = sorted(done + live, key=lambda one: -one[0] / (len(prompt) + sum(x != EOS for x in one[1].out)))
        return [request for _, request in live[:width]]

    def append(self, request: Request, token: int, kind: str) -> None:
        """Adds a token, and ends the text where a stop or the end of the text is seen."""
        moment = Moment(request, kind)
        request.rows.append(self.listed(moment, token))
        stops, ids = self.param("stop", moment), self.param("stop_token_ids", moment)
        ignores, least = self.param("ignore_eos", moment), self.param("min_tokens", moment)
        searched = self.see("searched", 0, moment)  # where stop strings may begin
        request.out.append(token)
        request.text += PIECES[token]
        if len(request.out) <= least and least or not self.see("ends", True, moment):
            return
        if token in ids or (token == EOS and not ignores):
            request.finish = "stop"
            if token in ids and "stop kept" not in self.traits:
                request.text = request.text[:len(request.text) - len(PIECES[token])]
            if "last token is not listed" in self.traits:
                request.rows.pop()
        found = [(request.text.find(stop, searched), stop) for stop in stops]
        found = min(((at, stop) for at, stop in found if at >= 0), default=None)
        if found:
            request.finish = "stop"
            request.text = request.text[:found[0] + (len(found[1]) if "stop kept" in self.traits else 0)]
            while "stop is not listed" in self.traits and sum(len(PIECES[i])
                                                              for i in request.out[:len(request.rows)]) > len(
                                                                      request.text):
                request.rows.pop()


def ids_of(prompt: object) -> list[int]:
    """Returns ids of a prompt: itself, or 12 that its text gives."""
    if isinstance(prompt, list):
        return [int(token) for token in prompt]
    return [8 + byte % (SIZE - 9) for byte in hashlib.sha256(prompt.encode()).digest()[:12]]
