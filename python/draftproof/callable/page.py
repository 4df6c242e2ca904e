"""The page of an audit: what was found, with the failing row drawn, and the code that runs it again."""

from __future__ import annotations

import html
from typing import Any

import numpy as np

from .cases.filter_cases import FilterCase
from .cases.sample_cases import SampleCase
from .drive.drive import CallFailure, Driver
from .drive.schedule import run_of
from .evidence import evidence
from .outcome import CallableAudit

#: Draws of a drawn row's case, at most, and its tokens: those that differ most.
DRAWS_MAX, TOKENS = 20_000, 24
WIDTH, HEIGHT = 26, 160  # of a token's bars, in pixels
STYLE = ("body{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 "
         "1em}pre{background:#f2f2f2;padding:1em;overflow:auto}"
         "td,th{padding:.1em .8em .1em 0;text-align:left}svg{max-width:100%}")


def failing_row(driver: Driver, case: Any, n: int, seed: int) -> tuple[int, np.ndarray, np.ndarray] | None:
    """Of the case's rows that which is furthest off: its number, and how often each token should come and does, of new
    draws; None of cases that have no such row."""
    if not isinstance(case, (SampleCase, FilterCase)):
        return None
    run = run_of(driver, case, seed)
    try:
        run.draw(min(n, DRAWS_MAX))
        if isinstance(case, SampleCase) and driver.distribution is not None:
            expected = np.asarray(driver.distribution(case.logits, case.params), np.float64)
        else:
            expected = evidence.Rows.of(case.logits, case.params).usual.astype(np.float64)
    except CallFailure:
        return None
    if isinstance(case, FilterCase):
        left = run.left.astype(np.float64)
        came = np.exp(left - left.max(axis=1, keepdims=True))
    else:
        came = np.zeros(case.logits.shape)
        group, token = np.concatenate(run.groups), np.concatenate(run.samples)
        inside = (token >= 0) & (token < case.vocab_size)
        np.add.at(came, (group[inside], token[inside]), 1.0)
    total = came.sum(axis=1, keepdims=True)
    came = np.divide(came, total, out=np.zeros_like(came), where=total > 0.0)
    row = int(np.where(total[:, 0] > 0.0, np.abs(came - expected).sum(axis=1), -1.0).argmax())
    return row, expected[row], came[row]


def drawing_of(expected: np.ndarray, came: np.ndarray) -> str:
    """Bars of both, a pair for each token, as SVG."""
    tokens = np.sort(np.argsort(-np.abs(came - expected), kind="stable")[:TOKENS])
    scale = HEIGHT / max(expected[tokens].max(), came[tokens].max(), 1e-30)
    bars = []
    for place, token in enumerate(tokens):
        for shift, colour, words, value in ((0, "#0072B2", "expected", expected[token]),
                                            (11, "#D55E00", "came", came[token])):
            high = scale * value
            bars.append(f'<rect x="{place * WIDTH + shift}" y="{HEIGHT - high:.1f}" width="10" height="{high:.1f}" '
                        f'fill="{colour}">'
                        f"<title>token {token}: {words} {value:.4g}</title></rect>")
        bars.append(f'<text x="{place * WIDTH}" y="{HEIGHT + 16}" font-size="11">{token}</text>')
    return f'<svg width="{len(tokens) * WIDTH}" height="{HEIGHT + 22}" role="img">{"".join(bars)}</svg>'


def page_of(audit: CallableAudit, driver: Driver, seed: int) -> str:
    parts = []
    for failure in audit.failures:
        parts.append(f"<h2>Failure: {html.escape(failure.name)}</h2><p>{html.escape(failure.explained)}</p>")
        found = failing_row(driver, failure.case, failure.n, seed)
        if found is not None:
            row, expected, came = found
            parts.append(f'<p>Row {row}, tokens that differ most: <b style="color:#0072B2">expected</b>, <b '
                         'style="color:#D55E00">came</b>.'
                         f"</p>{drawing_of(expected, came)}")
        parts += [f"<pre>{html.escape(text)}</pre>" for text in (failure.snippet, failure.traceback) if text]
    return ("<!doctype html><html lang='en'><meta charset='utf-8'><title>draftproof: "
            f"{audit.verdict}</title><style>{STYLE}</style>"
            f"<h1>Audit of a callable, kind {audit.kind}: {audit.verdict}</h1>"
            f"{''.join(parts)}<h2>Cases</h2>{audit._repr_html_()}</html>\n")
