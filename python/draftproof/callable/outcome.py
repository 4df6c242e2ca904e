"""What audit_callable gives back."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

from .._results import html_of, number

#: Failures of the code, not of its distribution.
ERRORS = ("raises", "hangs", "wrong_shape", "wrong_dtype", "mutates_inputs", "prints", "emits_fewer",
          "not_reproducible")
#: Failing cases, and kinds of passing ones, that a sentence names.
NAMED_FAILING, NAMED_PASSING = 3, 2


@dataclasses.dataclass(frozen=True)
class Failure:
    """A case that fails, shrunk.

    name: the test that found it ('string_3', 'correlation_rows_1', 'wrong_set'), or how a call went wrong ('raises').
    case: the smallest case that still fails; snippet: Python that runs it again.
    n: draws, steps or rows after which it was found; distance: estimated, where there is one.
    rule: the wrong rule that explains what came and predicts other cases (predict.py), or ''; suspect: it with how
    many it predicts, or
        without one what was measured: expected beside observed, and what the case needs to fail (needs.py).
    before: a case without a call of which it does not fail.
    traceback: of an exception, as text. by_every_profile: found by draws of the first sweep, which all profiles make.
    """

    name: str
    case: Any
    sentence: str
    snippet: str
    n: int
    distance: float | None
    suspect: str = ""
    rule: str = ""
    before: Any = None
    traceback: str = ""
    by_every_profile: bool = False

    @property
    def is_error(self) -> bool:
        return self.name in ERRORS

    @property
    def conditions(self) -> str:
        """What of the suspect says when it fails."""
        found = re.search(r"(needs: |not on ).*", self.suspect)
        return found[0] if found else ""

    @property
    def explained(self) -> str:
        return self.sentence + (f" ({'explanation' if self.rule else 'measured'}: {self.suspect})" if self.suspect
                                else "")

    @property
    def brief(self) -> str:
        """As explained, without what does not matter, and without needs where there is an explanation."""
        text = re.sub(r"(; )?(needs: |not on ).*" if self.rule else r"(; )?not on .*", "", self.suspect)
        return dataclasses.replace(self, suspect=text).explained


@dataclasses.dataclass(frozen=True)
class CaseResult:
    """One case: its verdict, how often the callable was asked for a row, and what would have been found with 99 %
    probability: a total variation distance, or, of a regime of the sweep, a wrong branch that shows (as an impossible
    token) in a share of its draws."""

    case: str
    verdict: str
    n: int
    detectable_tv: float | None
    sentence: str
    detectable_share: float | None = None


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
    profile: str = "full"
    but: str = ""  # of a verifier that is exact and slow: what it loses
    readings: list[str] = dataclasses.field(default_factory=list)  # where correct engines differ: what this one does

    @property
    def would_find(self) -> tuple[CaseResult, CaseResult] | None:
        """Of the cases without a finding, that with the smallest distance that it would have shown with 99 %
        probability, and that with the largest. Cases that leave no choice are not among them."""
        open_to_doubt = [case for case in self.cases if case.verdict in ("consistent", "inconclusive")
                         and case.detectable_tv]
        if not open_to_doubt:
            return None
        ordered = sorted(open_to_doubt, key=lambda case: case.detectable_tv or 0.0)
        return ordered[0], ordered[-1]

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "verdict": self.verdict, "sentence": self.sentence, "n": self.n, "alpha": self.alpha,
                "tv": self.tv, "profile": self.profile, "but": self.but, "readings": self.readings,
                "seconds": self.seconds, "notes": self.notes,
                "failures": [{"name": f.name, "case": f.case.name if f.case is not None else "", "sentence": f.sentence,
                              "n": f.n, "distance": f.distance, "suspect": f.suspect, "rule": f.rule,
                              "before": f.before.name if f.before is not None else None, "snippet": f.snippet,
                              "traceback": f.traceback, "by_every_profile": f.by_every_profile} for f in self.failures],
                "cases": [dataclasses.asdict(case) for case in self.cases]}

    def __str__(self) -> str:
        lines, said = [self.sentence], {first_of(self).rule if self.failures else ""}
        for f in self.failures:  # what the sentence says, or a failure before, is not said again
            words = f.explained
            if f.rule in said and (f.rule or f is first_of(self)):
                words = f"{f.sentence}{f.conditions and f' ({f.conditions})'}"
            lines.append(f"\n# {words}\n{f.snippet}{f.traceback and chr(10)}{f.traceback}")
            said.add(f.rule)
        return "\n".join(lines)

    def dumps(self) -> str:
        return json.dumps(self.to_json(), indent=2)

    def _repr_html_(self) -> str:
        rows = [(c.case, c.verdict, c.n, "" if c.detectable_tv is None else c.detectable_tv) for c in self.cases]
        return html_of(self.verdict, self.sentence, ["case", "verdict", "n", "detectable"], rows)


def verdict_of(failures: list[Failure], cases: list[CaseResult], is_open: bool) -> str:
    """is_open: cases with too few draws leave it open; else those without any. Where nothing was called, nothing is
    consistent."""
    if any(not failure.is_error for failure in failures):
        return "biased"
    if failures:
        return "error"
    return "inconclusive" if not any(case.n for case in cases) or any(case.verdict == "inconclusive"
            and (is_open or case.n == 0) for case in cases) else "consistent"


def first_of(audit: CallableAudit) -> Failure:
    """The failure that the sentence tells."""
    return next((f for f in audit.failures if f.is_error == (audit.verdict == "error")), audit.failures[0])


def kind_of(name: str) -> str:
    """What cases have in common: their names up to the first number."""
    return re.split(r"[,:(]|\s[\d.=-]|\sof\s\d", re.sub(r"^\d+ ", "", name))[0].strip()


def where_it_fails(cases: list[CaseResult], told: str = "") -> str:
    """Which cases fail, beside that which was told, and of what kinds those are that pass: those of a failing one's
    kind first, then the largest."""
    failing = [case.case for case in cases if case.verdict in ("biased", "error") and case.case != told]
    passing: dict[str, list[str]] = {}
    for case in cases:
        if case.verdict == "consistent" or (case.verdict == "inconclusive" and case.n > 0):
            passing.setdefault(kind_of(case.case), []).append(case.case)
    named = ", ".join(f"'{name}'" for name in failing[:NAMED_FAILING]) + (f" and {len(failing) - NAMED_FAILING} more"
            if len(failing) > NAMED_FAILING else "")
    fails = f"fails {'also ' if told else ''}in {named}, " if failing else ""
    if not passing:
        return f"{fails}passes nowhere"
    akin = {kind_of(name) for name in [*failing, told]}
    kinds = sorted(passing, key=lambda kind: (kind not in akin, -len(passing[kind])))
    words = [f"'{passing[kind][-1]}'" if len(passing[kind]) == 1
             else f"{len(passing[kind])} of {kind} (last '{passing[kind][-1]}')" if kind in akin
             else f"{len(passing[kind])} of {kind}" for kind in kinds[:NAMED_PASSING]]
    more = sum(len(passing[kind]) for kind in kinds[NAMED_PASSING:])
    return f"{fails}passes {', '.join(words)}" + (f" and {more} others" if more else "")


def sentence_of(audit: CallableAudit) -> str:
    what = {"sample": "draws", "filter": "rows", "verify": "steps", "constrained": "steps"}[audit.kind]
    reached = [case for case in audit.cases if case.n > 0]
    of_all = "" if len(reached) == len(audit.cases) else f" of {len(audit.cases)}"
    coarsest = audit.would_find[1].detectable_tv if audit.verdict == "consistent" and audit.would_find else None
    distance = "" if coarsest is None else f" at distance {number(coarsest)}"
    if audit.failures:
        first = first_of(audit)
        told = next((case.case for case in audit.cases if first.sentence.startswith(f"{case.case}: ")), "")
        return f"{audit.verdict}: {first.brief}; {where_it_fails(audit.cases, told)}"
    over = f"{audit.verdict}{distance} ({len(reached)}{of_all} cases, {audit.n} {what}, at level {number(audit.alpha)})"
    text = f"{over}: {f'consistent, but {audit.but}; ' if audit.but else ''}no fault found" + ("; every row was "
                                                                                               "compared exactly"
            if audit.kind == "filter" else _power(audit))
    text += f"; readings: {', '.join(audit.readings)}" if audit.readings else ""
    unreached = [case.case for case in audit.cases if case.n == 0]
    return text + (f"; {len(unreached)} cases were not reached, first '{unreached[0]}'" if unreached else "")


def _power(audit: CallableAudit) -> str:
    """What the cases exclude, and the weakest by its name; each has its own in `cases`."""
    seen = sum(case.detectable_share is not None for case in audit.cases)
    text = f"; each of {seen} regimes was seen" if seen else ""
    if audit.would_find is not None:
        powered = [case for case in audit.cases if case.verdict in ("consistent", "inconclusive")
                   and case.detectable_tv]
        fine = sum(1 for case in powered if (case.detectable_tv or 1.0) <= 1.05 * audit.tv)
        weakest = audit.would_find[1]
        strings = " over strings of K + 1 tokens" if audit.kind == "verify" else ""
        text += (f"; with 99 % power a distance{strings} of {number(audit.tv)} is excluded in {fine} of {len(powered)} "
                 "cases, of "
                 f"{number(weakest.detectable_tv or 0.0)} in the weakest, '{weakest.case}'")
    return text + ("; details: cases" if text else "")
