"""Verdicts from records: a line a question, the sentence, the exit code."""

import json
from dataclasses import dataclass, field, replace

from .._core import Error
from . import draws, greedy, speculation
from .adapters import NEUTRAL, Adapter, Text
from .draws import Drawn
from .history import HISTORIES, penalised
from .visible import READINGS, Reading
from .wire import Record, curl


@dataclass
class Line:
    """One question's verdict: ok, biased, failure, inconclusive, or none where there is nothing to judge.

    `curl` repeats a failure's request."""

    question: str
    verdict: str
    words: str
    curl: str = ""


@dataclass
class ServerAudit:
    """Result of audit_server: `verdict` is consistent, biased, failure or inconclusive."""

    url: str
    engine: str
    lines: list[Line] = field(default_factory=list)
    tokens: int = 0
    skipped: int = 0
    verdict: str = "inconclusive"
    sentence: str = ""

    @property
    def exit_code(self) -> int:
        return {"consistent": 0, "inconclusive": 4}.get(self.verdict, 1)

    def __str__(self) -> str:
        rows = [f"{line.question:<24} {line.verdict:<12} {line.words}" for line in self.lines]
        repeats = [f"repeat: {line.curl}" for line in self.lines if line.curl]
        return "\n".join([f"{self.engine} at {self.url}", *rows, *repeats, self.sentence])

    def json(self) -> str:
        return json.dumps({**self.__dict__, "lines": [line.__dict__ for line in self.lines],
                           "exit_code": self.exit_code}, indent=1)


class Judge:
    """Judges the records of one run. reference: URL and adapter of the server that was compared with."""

    def __init__(self, url: str, adapter: Adapter, records: list[Record],
                 reference: tuple[str, Adapter] | None = None) -> None:
        self.url, self.adapter, self.reference = url, adapter, reference
        self.records = sorted(records, key=lambda record: record.order)
        self.audit = ServerAudit(url, f"{adapter.engine} {adapter.version}".strip())
        self.texts: dict[int, Text] = {}
        self.silent: set[str] = set()  # penalties that do not count the prompt
        for number, record in enumerate(self.records):
            reader = reference[1] if reference and record.question == "reference" else adapter
            if record.path == reader.path and record.status == 200:
                self.texts[number] = reader.read(record.answer)
                if (record.settings.get("n") or 1) > 1:
                    self.texts[number].counted = None  # of all choices
        speculation.fill(self.records, self.texts)

    def of(self, question: str, case: str) -> list[tuple[int, Text]]:
        return [(number, self.texts[number]) for number, record in enumerate(self.records)
                if record.question == question and record.case == case and number in self.texts]

    def asked(self, case: str) -> list[int]:
        return [number for number, record in enumerate(self.records)
                if record.question == "parameters" and record.case == case]

    def parameter(self, name: str, how: str, words: str, at: int | None = None) -> None:
        """Adds the verdict on a parameter: ignored and wrong are failures."""
        self.add(name, "failure" if how in ("ignored", "wrong") else "ok", f"{how}: {words}" if words else how, at)

    def add(self, question: str, verdict: str, words: str, at: int | None = None) -> None:
        url = self.reference[0] if at is not None and self.records[at].question == "reference" else self.url
        repeat = curl(url, self.records[at]) if at is not None and verdict not in ("ok", "none") else ""
        self.audit.lines.append(Line(question, verdict, words, repeat))

    def run(self) -> ServerAudit:
        from .parameters import PARTS  # its parts import this module
        for ask in (self.answers, self.draws, self.seeds, lambda: greedy.judge(self), self.counts):
            ask()
        for part in PARTS if any(record.question == "parameters" for record in self.records) else ():
            part.judge(self)
        speculation.judge(self)
        audit = self.audit
        verdicts = {line.verdict for line in audit.lines}
        audit.verdict = next((v for v in ("biased", "failure") if v in verdicts),
                             "consistent" if "ok" in verdicts and "inconclusive" not in verdicts else "inconclusive")
        if audit.verdict == "consistent" and not audit.tokens:
            audit.sentence = "consistent: nothing found; draws were not judged"
        elif audit.verdict == "consistent":
            audit.sentence = f"consistent with its own logprobs; {self.reach}"
        else:
            first = next((line for line in audit.lines if line.verdict == audit.verdict), None)
            audit.sentence = f"{audit.verdict}: " + (f"{first.question}: {first.words}" if first else "no answers")
        return audit

    def answers(self) -> None:
        """Answers that failed, parameters that were refused, tokens without a list."""
        bad = [number for number, record in enumerate(self.records)
               if record.question not in ("probe", "parameters", "speculation") and record.status != 200]
        if bad:
            record = self.records[bad[0]]
            self.add("answers", "failure", f"{len(bad)} of {len(self.records)} requests failed; the first with "
                     f"{record.status}: {str(record.answer)[:120]}", bad[0])
        for name in next((record.settings["dropped"] for record in reversed(self.records)
                          if "dropped" in record.settings), []):
            self.add(name, "ok", "refused by the server; not sent")
        steps = [(number, step) for number, text in self.texts.items() for step in text.steps
                 if self.records[number].settings.get("logprobs", 0) is not None]
        empty = [(number, step) for number, step in steps if not step.top]
        if empty:
            drafted = sum(self.texts[number].accepted > 0 for number in {number for number, _ in empty})
            zero = sum(step.logprob == 0.0 for _, step in empty)
            self.add("logprobs", "failure", f"{len(empty)} of {len(steps)} tokens have no list of logprobs"
                     + (f"; {zero} of them state the logprob 0.0" if zero else "")
                     + (f"; drafts were accepted in {drafted} of their {len({number for number, _ in empty})} answers"
                        if drafted else ""), empty[0][0])

    def draws(self) -> None:
        """Draws under each reading. A reading is refuted at level 1e-6 over its tests; a server if all are."""
        cases = {}
        for number, record in enumerate(self.records):
            if record.question == "draws" and number in self.texts:
                cases.setdefault(record.case, []).append((number, self.texts[number]))
        if not cases:
            return
        settings = {case: self.records[texts[0][0]].settings for case, texts in cases.items()}
        level = draws.LEVEL / (draws.TESTS * (len(cases) + 1))
        results = {}
        scaled = self.scaled(cases, settings)
        histories = HISTORIES if "penalties" in cases else HISTORIES[:1]
        readings = [replace(reading, scaled=scaled, history=history) for reading in READINGS for history in histories]
        seen = {}  # cases in which readings do not differ are judged once
        for reading in readings:
            placed, refuted = {}, {}
            for case, texts in cases.items():
                told = (case, reading.temperature_first or settings[case]["temperature"] == 1.0,
                        reading.top_p_of_kept or settings[case]["top_p"] >= 1.0,
                        case == "penalties" and reading.history)
                if told not in seen:
                    drawn = self.place(texts, settings[case], reading)
                    seen[told] = (drawn, min(draws.judge(drawn), key=lambda test: test.p, default=None))
                placed[case], test = seen[told]
                if test and test.p < level:
                    refuted[case] = test
            results[reading] = (placed, refuted)
        standing = [reading for reading, (_, refuted) in results.items() if not refuted]
        best = standing[0] if standing else min(results, key=lambda r: len(results[r][1]))
        placed, refuted = results[best]
        joint = {reading: self.joint(list(results[reading][0].values()), level) for reading in standing}
        if standing:
            standing = [reading for reading in standing if not joint[reading]] or standing
            placed = results[best := standing[0]][0]
        self.audit.tokens = sum(len(drawn.rows) + len(drawn.outside) for drawn in placed.values())
        self.audit.skipped = sum(drawn.skipped for drawn in placed.values())
        temperature, mass = draws.detectable(list(placed.values()), level)
        self.reach = (f"a temperature off by {temperature:.2g} % or {mass:.2g} % of mass would have been found "
                      f"({self.audit.tokens} tokens; {self.audit.skipped} skipped: a cut within the noise or no list)")
        if self.audit.tokens < 200:
            self.add("draws", "inconclusive", f"{self.audit.tokens} tokens could be judged; 200 or more are needed")
        for case in placed:
            name = f"draws, {case}"
            if case not in refuted:
                drawn = placed[case]
                self.add(name, "ok", f"consistent ({len(drawn.rows)} tokens, {drawn.skipped} skipped)")
                continue
            test = refuted[case]
            ignored = self.ignored(case, cases[case], settings[case], best, level)
            words = f"{ignored} is ignored" if ignored else f"{test.name}: p = {test.p:.2g}; {test.words}"
            self.add(name, "failure" if ignored else "biased", words, (test.at or (cases[case][0][0],))[0])
        if standing and joint[best]:
            self.add("draws, all cases", "biased", joint[best], next(iter(cases.values()))[0][0])
        elif standing:
            parts = {part: sorted({reading.words()[part] for reading in standing}) for part in standing[0].words()}
            told = [" or ".join(words) for part, words in parts.items()
                    if len(words) < len({reading.words()[part] for reading in readings})]
            told += ["logprobs after the temperature"] if scaled else []
            self.add("reading", "ok", "; ".join(told) or "not visible: every order of temperature and filters fits")

    def joint(self, cases: list[Drawn], level: float) -> str:
        """Returns the words of a test over all cases together that fails, '' if none does."""
        test = min(draws.judge(draws.together(cases)), key=lambda test: test.p, default=None)
        return f"{test.name}: p = {test.p:.2g}; {test.words}" if test and test.p < level else ""

    def place(self, texts: list, settings: dict, reading: Reading) -> Drawn:
        """Places texts after their penalties; each text's own prompt is counted."""
        whole = [(number, penalised(text, self.records[number].settings, reading)) for number, text in texts]
        return draws.place(whole, settings, reading)

    def scaled(self, cases: dict, settings: dict) -> bool:
        """Returns whether lists are taken after the temperature: one prompt's first list at 1 and at another."""
        if "plain" not in cases or "temperature" not in cases:
            return False
        plain = {self.records[number].settings["prompt"]: text.steps[0].top for number, text in cases["plain"]
                 if text.steps}
        votes = 0
        for number, text in cases["temperature"]:
            one, two = plain.get(self.records[number].settings["prompt"]), text.steps and text.steps[0].top
            if one and two and len(one) > 2 and len(two) > 2:
                wide, now = one[0][1] - one[-1][1], two[0][1] - two[-1][1]
                votes += 1 if abs(now * settings["temperature"]["temperature"] - wide) < abs(now - wide) else -1
        return votes > 0

    def ignored(self, case: str, texts: list, settings: dict, best: Reading, level: float) -> str:
        """Returns the parameter without which the draws of a case fit, '' if there is none."""
        honoured = self.place(texts, settings, best)
        for name in ("temperature", "top_k", "top_p", "min_p", "presence_penalty", "frequency_penalty", "logit_bias"):
            if settings.get(name) in (NEUTRAL.get(name), None):
                continue
            if name == "top_k" and settings["temperature"] != 1.0:
                continue
            without = replace(best, ignored=name)
            if 2 * len(honoured.outside) < draws.beyond(honoured, texts, settings, best, without):
                continue  # another fault moves the cut a little
            drawn = self.place(texts, settings, without)
            if len(drawn.rows) >= 100 and all(test.p >= level for test in draws.judge(drawn)):
                return name
        return ""

    def seeds(self) -> None:
        first, again = self.of("seeds", "same first"), self.of("seeds", "same again")
        pairs = [(a, b) for a, b in zip(first, again)]
        drawn = [[step.token for step in text.steps] for _, text in self.of("seeds", "none")]
        if pairs:
            alike = sum(_tokens(a) == _tokens(b) for (_, a), (_, b) in pairs)
            early = sum(_tokens(a)[:3] == _tokens(b)[:3] for (_, a), (_, b) in pairs)
            words = f"the same seed gave the same text {alike} times of {len(pairs)}"
            if early <= len(pairs) // 3:
                self.add("seed", "failure", f"ignored: {words}", pairs[0][0][0])
            else:
                self.add("seed", "ok", f"honoured: {words}" + ("" if alike == len(pairs) else "; noise may do this"))
        neighbours = self.of("seeds", "neighbours")
        if len(neighbours) >= 30:
            wide = self.records[neighbours[0][0]].settings
            placed = draws.place(neighbours, wide, READINGS[0])
            first = placed.first_tokens()
            test = min(draws.judge(first), key=lambda test: test.p, default=None)
            bad = test is not None and test.p < draws.LEVEL / draws.TESTS
            self.add("neighbouring seeds", "biased" if bad else "ok",
                     f"first tokens of neighbouring seeds as one text, {test.name}: p = {test.p:.2g}; {test.words}" if bad
                     else f"independent ({first.tokens} seeds)", neighbours[0][0])
        if len(drawn) > 1:
            numbers = self.of("seeds", "none")
            chance = max(sum(step.logprob for step in text.steps) for _, text in numbers)
            alike = len(drawn) - len({tuple(tokens) for tokens in drawn})
            bad = alike > 0 and chance < -25
            self.add("no seed", "failure" if bad else "ok", f"{alike} of {len(drawn)} texts without a seed repeat "
                     "another" if bad else f"{len(drawn)} texts differ" if not alike else "texts too short to tell",
                     numbers[0][0])

    def unfinished(self, text: Text) -> bool:
        """Returns whether tokens may be missing: llama.cpp leaves those of unfinished characters out of its list."""
        missing = (text.counted or 0) - len(text.steps)
        return self.adapter.engine == "llama.cpp" and 1 <= missing <= 3

    def miscounts(self, number: int, text: Text) -> bool:
        """Returns whether usage is not that of the list, which may lack a text's last token or those of a stop string."""
        missing = 0 if text.counted is None else text.counted - len(text.steps)
        stops = self.records[number].settings.get("stop") or []
        cut = max([1, *(len(stop.encode()) for stop in stops)]) if text.finish == "stop" else 0
        return not -min(cut, 1) <= missing <= cut and not self.unfinished(text)

    def counts(self) -> None:
        """max_tokens, usage and stop strings."""
        wrong = [(number, len(text.steps), text.counted) for number, text in self.texts.items() if self.miscounts(number, text)]
        if wrong:
            number, seen, said = wrong[0]
            self.add("usage", "failure", f"counts are wrong in {len(wrong)} of {len(self.texts)} answers (first: "
                     f"{said} stated, {seen} listed)", wrong[0][0])
        long = [number for number, text in self.texts.items() if self.records[number].settings["max_tokens"]
                and (len(text.steps) > self.records[number].settings["max_tokens"]
                or (text.finish == "length" and len(text.steps) != self.records[number].settings["max_tokens"]
                    and not self.unfinished(text)))]
        if long:
            self.add("max_tokens", "failure", f"{len(long)} of {len(self.texts)} texts have another length than "
                     "max_tokens", long[0])
        elif self.texts:
            self.add("max_tokens, usage", "ok", f"kept in {len(self.texts)} answers")


def _tokens(text: Text) -> list:
    return [step.token for step in text.steps]


def load(lines: list[str], name: str) -> tuple[str, Adapter, list[Record], tuple[str, Adapter] | None]:
    """Returns what --save wrote: URL, adapter, records, the reference's URL and adapter. Raises Error naming the line that cannot be read."""
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(json.loads(line))
        except ValueError:
            raise Error(f"{name}, line {number}: no JSON; expected a file that --save wrote") from None
    if not rows or not isinstance(rows[0], dict) or "draftproof_server" not in rows[0]:
        raise Error(f"{name}, line 1: no head; expected a file that --save wrote")
    try:
        other = rows[0].get("reference")
        return (rows[0]["draftproof_server"], Adapter(**rows[0]["adapter"]), [Record(**row) for row in rows[1:]],
                (other[0], Adapter(**other[1])) if other else None)
    except (TypeError, KeyError) as wrong:
        raise Error(f"{name}: {wrong}; expected a file that --save wrote") from None
