"""What audits, filter checks and proofs find out, as objects: a verdict, a sentence, tables, and HTML for notebooks."""

from __future__ import annotations

import dataclasses
import html
from typing import Any, Iterable, Sequence

_COLOURS = {"consistent": "#2e7d32", "holds": "#2e7d32", "biased": "#c62828", "fails": "#c62828", "error": "#c62828",
            "inconclusive": "#b26a00"}


def number(value: Any) -> str:
    """Three significant digits, for people."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def html_of(verdict: str, sentence: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    cell = lambda value: f"<td>{html.escape(number(value))}</td>"  # noqa: E731
    body = "".join(f"<tr>{''.join(cell(value) for value in row)}</tr>" for row in rows)
    head = "".join(f"<th>{html.escape(name)}</th>" for name in header)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if body else ""
    return (f"<p><b style='color:{_COLOURS.get(verdict, 'inherit')}'>{html.escape(verdict)}</b> "
            f"{html.escape(sentence)}</p>{table}")


@dataclasses.dataclass(frozen=True)
class Test:
    """One statistical test: what it counted, and what it says of it. docs/audit.md has the tests by name."""

    name: str
    statistic_name: str
    statistic: float
    df: int | None
    n: int
    unit: str
    p_value: float
    p_value_holm: float
    rejects: bool
    estimated_tv: float
    detectable_tv: float
    is_correlation: bool
    sentence: str
    worst_cells: list[dict[str, float]]


@dataclasses.dataclass(frozen=True)
class Position:
    """Acceptance at one draft position of the chain verifier, beside what the rows let expect."""

    reached: int
    accepted: int
    rate: float
    interval: tuple[float, float]
    expected_rate: float
    expected_by_rows: float


@dataclasses.dataclass(frozen=True)
class Audit:
    """What the draws or steps of a sampler say of it.

    verdict: 'consistent', 'biased' or 'inconclusive' (too few samples for tv_wanted).
    sentence: the verdict with its reason; names the depth and the distance that were tested.
    n: draws or steps; detectable_tv: what would have been found with 99 % probability in a single or first token,
    detectable_temperature: the relative change of temperature found by the score (None: not tested), and
    string_detectable_tv in completed strings of string_tokens tokens (of at most string_tokens_max).
    """

    verdict: str
    sentence: str
    alpha: float
    tv_wanted: float
    detectable_tv: float
    detectable_temperature: float | None
    string_tokens: int
    string_tokens_max: int
    string_detectable_tv: float
    lossless: bool
    n: int
    groups: int
    vocab_size: int
    anytime_log10_wealth: float | None
    tests: list[Test]
    positions: list[Position]

    def test(self, name: str) -> Test | None:
        """The test of this name; None where it was not possible."""
        return next((test for test in self.tests if test.name == name), None)

    def worst(self) -> Test | None:
        """The test that speaks loudest: a correlation that was found, else the smallest p value."""
        return min(self.tests, key=lambda t: (not (t.is_correlation and t.rejects), t.p_value), default=None)

    def _repr_html_(self) -> str:
        rows = [(t.name, t.n, t.p_value, t.estimated_tv, t.detectable_tv, "rejects" if t.rejects else "")
                for t in self.tests]
        return html_of(self.verdict, self.sentence, ["test", "n", "p", "estimated", "detectable", ""], rows)


def audit_of(found: dict[str, Any]) -> Audit:
    tests = [Test(**test) for test in found.pop("tests")]
    positions = [Position(**position) for position in found.pop("positions")]
    return Audit(**found, tests=tests, positions=positions)


@dataclasses.dataclass(frozen=True)
class FilterRow:
    """A row that a filter got wrong: how many tokens were wrongly kept or dropped, the first of them, their mass in the
    unfiltered distribution, and the total variation distance of what is left from the reference."""

    row: int
    fault: str
    expected_count: int
    kept_count: int
    wrongly_kept: tuple[int, ...]
    wrongly_dropped: tuple[int, ...]
    wrongly_kept_count: int
    wrongly_dropped_count: int
    wrongly_kept_mass: float
    wrongly_dropped_mass: float
    distance: float


@dataclasses.dataclass(frozen=True)
class FilterCheck:
    """What check_filter found: exact, no statistics. verdict: 'holds' or 'fails'; failing: rows, the worst first."""

    holds: bool
    sentence: str
    rows: int
    failing: list[FilterRow]

    @property
    def verdict(self) -> str:
        return "holds" if self.holds else "fails"

    def _repr_html_(self) -> str:
        rows = [(r.row, r.fault, r.expected_count, r.kept_count, r.wrongly_kept_count, r.wrongly_dropped_count,
                 r.distance) for r in self.failing[:20]]
        header = ["row", "fault", "expected", "kept", "wrongly kept", "wrongly dropped", "distance"]
        return html_of(self.verdict, self.sentence, header, rows)
