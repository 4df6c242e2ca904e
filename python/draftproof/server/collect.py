"""Requests of each question. All that is learnt is in the records: the judgement reads nothing else."""

import contextlib
import re
import time
from typing import Any

from . import seeds, speculation, unexpected
from .adapters import NEUTRAL, PROBED, Adapter
from .wire import Error, Record, Wire

QUESTIONS = ("draws", "seeds", "greedy", "parameters", "speculation")
PROFILES = {"quick": (120.0, 20000), "full": (1800.0, 200000)}  # seconds for requests, tokens drawn at most

PROMPTS = [
    "The quickest way to learn about a new city is", "Once upon a time, a small robot", "Ten uncommon words and names:",
    "def parse(line):\n    ", "My grandmother's recipe begins with", "In the year 2150, people will",
    "The opposite of a thing that", "Dear Sir or Madam,\n\nI am writing", "A list of animals: fox, heron,",
    "He opened the door and saw", "1, 7, 3, 9,", "The results of the experiment were",
]

# top_k stays below the list's length, so that the last kept token and the next one are both seen.
CASES = {
    "plain": {"temperature": 1.0, "top_k": -2},
    "min_p": {"temperature": 1.3, "top_k": -2, "min_p": 0.1},
    "top_p": {"temperature": 1.0, "top_k": -2, "top_p": 0.9},
    "top_k": {"temperature": 1.0, "top_k": 7, "top_p": 0.9},  # so short that top_p over all tokens often cuts nothing
    "temperature": {"temperature": 0.6, "top_k": -2},
    "whole": {"temperature": 0.3, "top_k": -1},  # so cold that what is beyond the list hardly ever comes
}
# Prompts of token ids, so that penalties over the prompt are known; the cut at min_p shows a wrong penalty at once.
# The temperature shows what is added behind it.
PENALTIES = {"temperature": 0.7, "top_k": 4, "min_p": 0.1, "presence_penalty": 0.7, "frequency_penalty": 1.2}
BIAS = -2.0  # of the commonest tokens, in the case of penalties


class Missing(Exception):
    """A list of logprobs is not there, as where the time is over; what needs it is left out."""


class Collector:
    """Sends the requests of the questions in `only`, and says on `say` how far it is. reference: of another server."""

    def __init__(self, wire: Wire, adapter: Adapter, only: tuple[str, ...], tokens_max: int, length: int, say,
                 reference: "Collector | None" = None) -> None:
        self.reference, self.gives_ids, self.turn = reference, False, 0
        self.wire, self.adapter, self.only, self.say = wire, adapter, only, say
        self.tokens_max, self.length, self.order = tokens_max, length, 0
        self.dropped: frozenset[str] = frozenset()
        self.known_ids: list[int] | None = None

    def record(self, question: str, case: str, prompt: str | list[int], about: object = None,
               **settings: object) -> Record:
        """Returns a request that is not sent yet. `about` is kept for the judgement, not sent."""
        values = {**NEUTRAL, "max_tokens": self.length, **settings}
        if values["top_k"] == -2:
            values["top_k"] = self.adapter.logprobs - 1
        self.order += 1
        body = self.adapter.body(prompt, values, self.dropped)
        values.update({name: NEUTRAL.get(name) for name in self.dropped})  # judged as what the server then does
        kept = {**values, "prompt": prompt, "about": about, "dropped": sorted(self.dropped)}
        return Record(question, case, kept, self.adapter.path, body, order=self.order)

    def run(self) -> None:
        """Asks all questions. Ctrl-C ends the asking, not the judgement."""
        from . import greedy  # it takes its prompts from here
        try:
            self.probe()
            if self.reference:
                self.reference.probe()
            before = speculation.accepted(self) if "speculation" in self.only else None
            asks = [(ask, share) for question, ask, share in (
                ("seeds", lambda: seeds.ask(self), 0.2),
                ("greedy", lambda: greedy.ask(self), 0.5 if self.reference else 0.25),
                ("parameters", self.parameters, 0.4), ("speculation", lambda: speculation.ask(self), 0.4),
                ("draws", lambda: unexpected.ask(self), 0.25), ("draws", self.draws, 1.0))
                if question in self.only or question == "draws" and "speculation" in self.only]
            for ask, share in asks:
                self.wire.share(1.0 if ask is asks[-1][0] else share)
                if self.wire.left_s() <= 0:
                    break
                self.say(f"{len(self.wire.records)} requests so far, {self.wire.left_s():.0f} s for the next question")
                with contextlib.suppress(Missing):
                    ask()
            if "speculation" in self.only:
                speculation.counted(self, "metrics", before)
        except KeyboardInterrupt:
            self.wire.stopped = True
            self.say("interrupted: what there is is judged")

    def offers(self, name: str) -> bool:
        """Returns whether the server has a parameter and is not known to refuse it."""
        return name not in self.dropped and self.adapter.offers(name)

    def probe(self) -> None:
        """Sends one request; drops parameters that the server refuses, shortens lists that it refuses."""
        for _ in range(8):
            record = self.wire.post(self.plain())
            if record.status == 200:
                break
            text = str(record.answer)
            names = [key for key in (*NEUTRAL, "seed") if key not in self.dropped and self.adapter.offers(key)
                     and re.search(rf"\b{self.adapter.names.get(key, key)}\b", text)]
            if re.search("logprobs", text) and self.adapter.logprobs > 5:
                self.adapter.logprobs = 5
            elif names and record.status in (400, 422):
                self.dropped |= {names[0]}
            else:
                raise Error(f"the server answers {record.status}: {text[:200]}")
        else:
            raise Error(f"the server refuses every request: {str(record.answer)[:200]}")
        read = self.adapter.read(record.answer)
        self.gives_ids, longest = bool(read.ids), max((len(step.top) for step in read.steps), default=0)
        if 0 < longest < 3:
            raise Error(f"lists of logprobs hold {longest} tokens; this audit needs 3 or more")
        self.adapter.logprobs = min(self.adapter.logprobs, longest)
        if not longest:
            self.say("no lists of logprobs: draws are not judged")
        for name, value in PROBED.items():
            if self.offers(name):
                self.probe_one(name, value)

    def plain(self, case: str = "one", **settings: object) -> Record:
        return self.record("probe", case, PROMPTS[0], seed=1, max_tokens=4, **settings)

    def probe_one(self, name: str, value: float) -> None:
        """Sends one request with a parameter; drops it if it is refused or fails. Raises Error if the server ends."""
        asked = self.wire.post(self.plain(f"with {name}", **{name: value}))
        if asked.status != 200:
            self.dropped |= {name}
        if asked.status >= 500 and (again := self.wire.post(self.plain())).status != 200:
            raise Error(f"the server answers {again.status}: {str(again.answer)[:200]}")

    def parameters(self) -> None:
        """Each part's requests. A part that gets no answer in time is left out."""
        from .parameters import PARTS  # its parts import this module
        self.wire.post_all([self.record("parameters", "count", PROMPTS[0], seed=8, temperature=0.0, max_tokens=count)
                            for count in (1, 2, 7)])
        for part in PARTS:
            if self.wire.left_s() > 0:
                with contextlib.suppress(Missing):
                    part.ask(self)
                self.say(f"parameters, {part.__name__.rpartition('.')[2]}: {self.wire.left_s():.0f} s left")

    def ids(self) -> list[int]:
        """Returns 80 token ids of the server's own texts, none where it lists none or refuses prompts of ids."""
        if self.known_ids is None:
            asked = self.wire.post_all([self.record("probe", "ids", prompt, seed=30, max_tokens=20)
                                        for prompt in PROMPTS[:6]])
            texts = [self.adapter.read(record.answer) for record in asked if record.status == 200]
            ids = [step.token for text in texts
                   for step in (text.steps[:-1] if text.finish == "stop" else text.steps)][:80]
            whole = len(ids) >= 40 and all(isinstance(token, int) for token in ids)
            probe = self.record("probe", "prompt of ids", ids[:16], seed=1, max_tokens=1)
            self.known_ids = ids if whole and self.wire.post(probe).status == 200 else []
            for name, value in (("logit_bias", {str(ids[0]): 1.0}), ("n", 4)) if self.known_ids else ():
                trial = self.record("probe", name, ids[:16], seed=1, max_tokens=1, **{name: value})
                if self.offers(name) and self.wire.post(trial).status in (400, 422):
                    self.dropped |= {name}
        return self.known_ids

    def lists(self, prompts: list[list[int]]) -> list[list[tuple]]:
        """Returns the list of logprobs behind each prompt. Raises Missing where one is not answered."""
        asked = self.wire.post_all([self.record("parameters", "list behind", prompt, seed=1, max_tokens=1)
                                    for prompt in prompts])
        texts = [self.adapter.read(record.answer).steps if record.status == 200 else [] for record in asked]
        if len(texts) < len(prompts) or not all(steps and len(steps[0].top) > 2 for steps in texts):
            raise Missing
        return [steps[0].top for steps in texts]

    def draws(self) -> None:
        """Texts of all cases in turn, until time or tokens are spent; none without lists."""
        if not self.adapter.logprobs:
            return None
        cases: dict[str, dict[str, Any]] = {**CASES}
        ids = self.ids()
        if ids and not {"presence_penalty", "frequency_penalty"} & self.dropped:
            cases["penalties"] = dict(PENALTIES)
            if self.offers("logit_bias"):
                cases["penalties"]["logit_bias"] = {str(token): BIAS for token in sorted(set(ids), key=ids.count)[-6:]}
        turn = list(cases.items())
        texts = max(1, self.tokens_max // (self.length * len(turn)))
        batch, done, begin = max(2, self.wire.connections), 0, time.monotonic()
        while done < texts and self.wire.left_s() > 0:
            now = range(done, min(texts, done + batch))
            records = self.wire.post_all([
                self.record("draws", case, ids[number % 40:][:24] if case == "penalties" else
                            PROMPTS[number % len(PROMPTS)], **settings, seed=90000 + 7919 * number + 101 * place)
                for number in now for place, (case, settings) in enumerate(turn)])
            done += len(now)
            if self.gives_ids and any(not step.top for record in records if record.status == 200
                                      for step in self.adapter.read(record.answer).steps):
                self.say("draws: lists are missing; further texts are drawn without logprobs and scored")
                return speculation.ask(self, tuple(CASES))
            rate = done * len(turn) * self.length / max(1e-3, time.monotonic() - begin)
            self.say(f"draws: {done} of {texts} turns, {rate:.0f} tokens/s, {self.wire.left_s():.0f} s left")
