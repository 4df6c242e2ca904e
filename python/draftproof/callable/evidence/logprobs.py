"""Log-probabilities that a callable gives beside its tokens: of which stage of the pipeline are they?"""

from __future__ import annotations

import numpy as np

from ..drive.drive import Driver
from . import evidence
from .sample_judge import Judgement

#: What rounding is left to an engine: this, and ULPS of the row's largest number over the temperature.
SLACK, ULPS = 1e-3, 2.0 ** -22
#: Below it the logarithm of a float32 probability has few digits, or none.
UNDERFLOW = -80.0


def _normalised(logits: np.ndarray) -> np.ndarray:
    wide = logits.astype(np.float64)
    wide = wide - wide.max(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        return wide - np.log(np.exp(wide).sum(axis=1, keepdims=True))


def stages(raw: np.ndarray, shaped: np.ndarray, params: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """By stage [R, V] natural logarithms: of the model's row; behind masks, bias and penalties; over the temperature;
    and what is drawn from. NaN where engines differ: greedy rows behind the temperature, and cuts that usual readings
    put elsewhere. params: [R]."""
    greedy = (params["temperature"] == 0.0)[:, None]
    heat = np.where(greedy, 1.0, params["temperature"][:, None])
    rows = evidence.Rows.of(shaped, params)
    with np.errstate(divide="ignore"):
        drawn = np.log(rows.usual.astype(np.float64))
    return {"of the model's row": _normalised(raw), "of the row before its temperature": _normalised(shaped),
            "of the row before its filters": np.where(greedy, np.nan, _normalised(shaped.astype(np.float64) / heat)),
            "of what is drawn from": np.where(greedy | rows.zone.any(axis=1, keepdims=True), np.nan, drawn)}


def judged(driver: Driver, raw: np.ndarray, shaped: np.ndarray, params: dict[str, np.ndarray], row: np.ndarray,
           token: np.ndarray, given: np.ndarray) -> Judgement | None:
    """None where all of the log-probabilities `given` [n] of tokens [n] of rows [n] are of one stage, the same as in
    earlier cases."""
    finite = np.where(np.isfinite(raw), np.abs(raw), 0.0).max(axis=1)
    heat = np.where(params["temperature"] > 0.0, np.minimum(params["temperature"], 1.0), 1.0)
    slack = (SLACK + ULPS * finite / heat)[row]
    wrong, due = {}, {}
    for name, table in stages(raw, shaped, params).items():
        due[name] = table[row, token]
        is_right = (np.abs(due[name] - given) <= slack) | ((due[name] < UNDERFLOW) & (given < UNDERFLOW))
        wrong[name] = np.flatnonzero(~np.isnan(due[name]) & ~is_right)
    sound = {name for name, of in wrong.items() if not of.size}
    if sound & driver.stages:
        driver.stages &= sound
        return None
    nearest = min(driver.stages, key=lambda name: wrong[name].size)
    first = wrong[nearest][0]
    sentence = (f"{wrong[nearest].size} of {len(given)} log-probabilities are not those {nearest}, first of "
                f"token {token[first]}: "
                f"{given[first]:.6g} where {due[nearest][first]:.6g} is due")
    if sound:
        sentence += f"; here all are {' or '.join(sorted(sound))}, in other cases not"
    return Judgement(True, "logprobs", sentence, len(given), wrong[nearest].size / len(given), None, int(row[first]))
