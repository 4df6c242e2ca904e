"""What audit_callable gives back."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from .._results import html_of

#: Failures of the code, not of its distribution.
ERRORS = ("raises", "hangs", "wrong_shape", "wrong_dtype", "mutates_inputs", "prints")


@dataclasses.dataclass(frozen=True)
class Failure:
    """A case that fails, shrunk.

    name: the test that found it ('string_3', 'correlation_rows_1', 'wrong_set'), or how a call went wrong ('raises').
    case: the smallest case that still fails; snippet: Python that runs it again.
    n: draws, steps or rows after which it was found; distance: estimated, where there is one.
    """

    name: str
    case: Any
    sentence: str
    snippet: str
    n: int
    distance: float | None

    @property
    def is_error(self) -> bool:
        return self.name in ERRORS


@dataclasses.dataclass(frozen=True)
class CaseResult:
    """One case: its verdict, how often the callable was asked for a row, and what would have been found."""

    case: str
    verdict: str
    n: int
    detectable_tv: float | None
    sentence: str


@dataclasses.dataclass(frozen=True)
class CallableAudit:
    """verdict: 'consistent', 'biased', 'inconclusive' or 'error'; n: rows that were asked for in all."""

    kind: str
    verdict: str
    sentence: str
    failures: list[Failure]
    n: int
    alpha: float
    tv: float
    seconds: float
    cases: list[CaseResult]
    notes: list[str]

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "verdict": self.verdict, "sentence": self.sentence, "n": self.n, "alpha": self.alpha,
                "tv": self.tv, "seconds": self.seconds, "notes": self.notes,
                "failures": [{"name": f.name, "case": f.case.name, "sentence": f.sentence, "n": f.n,
                              "distance": f.distance, "snippet": f.snippet} for f in self.failures],
                "cases": [dataclasses.asdict(case) for case in self.cases]}

    def __str__(self) -> str:
        return "\n".join([self.sentence, *(f"\n# {f.sentence}\n{f.snippet}" for f in self.failures)])

    def dumps(self) -> str:
        return json.dumps(self.to_json(), indent=2)

    def _repr_html_(self) -> str:
        rows = [(c.case, c.verdict, c.n, "" if c.detectable_tv is None else c.detectable_tv) for c in self.cases]
        return html_of(self.verdict, self.sentence, ["case", "verdict", "n", "detectable"], rows)
