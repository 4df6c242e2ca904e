"""Verdicts from records: a line a question, the sentence, the exit code."""

import json
from dataclasses import dataclass, field

from . import counts, greedy, readings, seeds, speculation, unexpected
from .adapters import Adapter, Text
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
    """Result of audit_server: `verdict` is consistent, biased, failure or inconclusive. `ended_at`: the parameter whose
    first request the server did not survive."""

    url: str
    engine: str
    lines: list[Line] = field(default_factory=list)
    tokens: int = 0
    skipped: int = 0
    verdict: str = "inconclusive"
    sentence: str = ""
    ended_at: str = ""

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
    """Judges the records of one run. reference: URL and adapter of the server that was compared with; without:
    parameters that were left out; lost: why the run ended early; only: the questions that were to be asked."""

    def __init__(self, url: str, adapter: Adapter, records: list[Record], reference: tuple[str, Adapter] | None = None,
                 without: tuple[str, ...] = (), lost: str = "", only: tuple[str, ...] = ()) -> None:
        self.only = () if lost else only
        self.url, self.adapter, self.reference, self.without, self.lost = url, adapter, reference, without, lost
        self.records = sorted(records, key=lambda record: record.order)
        self.audit = ServerAudit(url, f"{adapter.engine} {adapter.version}".strip())
        self.texts: dict[int, Text] = {}
        self.reach = ""  # what would have been found
        self.silent: set[str] = set()  # penalties that do not count the prompt
        self.failed: set[str] = set()  # parameters whose first request failed
        for number, record in enumerate(self.records):
            reader = reference[1] if reference and record.question == "reference" else adapter
            if record.path == reader.path and record.status == 200:
                self.texts[number] = reader.read(record.answer)
                if isinstance(record.settings.get("prompt"), list):
                    self.texts[number].before = record.settings["prompt"]
                if (record.settings.get("n") or 1) > 1:
                    self.texts[number].counted = None  # of all choices
        speculation.fill(self.records, self.texts)

    def of(self, question: str, case: str) -> list[tuple[int, Text]]:
        return [(number, self.texts[number]) for number, record in enumerate(self.records)
                if record.question == question and record.case == case and number in self.texts]

    def dropped(self) -> list[str]:
        """Returns the parameters that were not sent in the end: refused, failed, or left out."""
        return next((record.settings["dropped"] for record in reversed(self.records) if "dropped" in record.settings),
                    [])

    def asked(self, case: str) -> list[int]:
        return [number for number, record in enumerate(self.records)
                if record.question == "parameters" and record.case == case]

    def parameter(self, name: str, how: str, words: str, at: int | None = None) -> None:
        """Adds the verdict on a parameter: ignored and wrong are failures."""
        self.add(name, "failure" if how in ("ignored", "wrong") else "ok", f"{how}: {words}" if words else how, at)

    def add(self, question: str, verdict: str, words: str, at: int | None = None) -> None:
        of_other = self.reference and at is not None and self.records[at].question == "reference"
        url = self.reference[0] if self.reference and of_other else self.url
        repeat = curl(url, self.records[at]) if at is not None and verdict not in ("ok", "none") else ""
        self.audit.lines.append(Line(question, verdict, words, repeat))

    def run(self) -> ServerAudit:
        from .parameters import PARTS  # its parts import this module
        parts = PARTS if any(record.question == "parameters" for record in self.records) else ()
        for part in (counts, readings, unexpected, seeds, greedy, *parts, speculation):
            part.judge(self)
        audit = self.audit
        answered = {self.records[number].question for number in self.texts}
        unlisted = () if self.adapter.logprobs else ("draws",)
        for question in sorted({*self.only} - {*answered, "speculation", *unlisted}):
            self.add(question, "inconclusive", "not answered before the time ended")
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
