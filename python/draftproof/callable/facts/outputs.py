"""What the form of an output says is wrong, without a rule of probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..cases.filter_cases import FilterRun
from ..cases.verify_sweep import StepsRun, drafts_of
from ..evidence.sample_judge import Judgement
from .grammar import PRECISIONS, Rows


def said_of(run: Any, judgement: Judgement) -> str:
    if judgement.name in ("not_a_draft", "well_formed") and isinstance(run, StepsRun):
        return _emitted(run)
    return _dropped(run, run.left) if isinstance(run, FilterRun) and run.left is not None else ""


def _dropped(run: FilterRun, left: np.ndarray) -> str:
    """Dropped tokens have one finite number below all that are kept."""
    dropped = Rows(run.case.logits, run.case.params).probabilities == 0.0
    values = np.unique(left[dropped & np.isfinite(run.case.logits)])
    is_one = values.size == 1 and np.isfinite(values[0]) and values[0] < left[~dropped].min()
    return f"dropped tokens are at {values[0]:.6g}, not at -infinity" if is_one else ""


def _emitted(run: StepsRun) -> str:
    """Of steps that emit more than an accepted prefix and one token."""
    out, drafts, batch = np.concatenate(run.outputs), drafts_of(run), run.case.batch
    fell, place = np.cumsum(out != drafts, axis=1) > 0, np.arange(out.shape[1])[None, :]
    extra = (out != -1) & fell & np.roll(fell, 1, axis=1) & (place > 0)  # behind the first that is no draft
    strange = (out != drafts) & (np.roll(out, -1, axis=1) != -1) & (place < out.shape[1] - 1)
    for words, left in (("of 16 bits", drafts & 0xFFFF), *((words, rounded(drafts.astype(np.float32)).astype(np.int64))
                                                           for words, rounded in PRECISIONS)):
        if strange.any() and (out == left)[strange].all():
            return f"drafts are emitted by ids {words}"
    if words := _sorted_wrongly(run, out, drafts):
        return words
    if ((out != -1).sum(axis=1) > np.tile(run.case.lens, run.calls) + 1).any():
        return "drafts are taken beyond a request's own"
    extra[:batch] = False  # of the first call
    if extra.any() and (out == np.concatenate([out[:batch], out[:-batch]]))[extra].mean() > 0.95:
        return "the output keeps tokens of the call before"
    return "a token is emitted behind a recovered one"


def _sorted_wrongly(run: StepsRun, out: np.ndarray, drafts: np.ndarray) -> str:
    """Of outputs whose requests were sorted and not put back, or by the wrong permutation; '' if they are well formed
    under none."""
    case, place = run.case, np.arange(out.shape[1])[None, :]
    keys = {"draft length": case.lens, **case.params, "greedy and random": case.params["temperature"] > 0.0}
    for name, key in keys.items():
        for words, sign in (("rising", 1.0), ("falling", -1.0)):
            order = np.argsort(sign * key.astype(np.float64), kind="stable")
            for how, whose in (("not put back", order), ("put back by the wrong permutation", order[order])):
                there = out.reshape(run.calls, case.batch, -1)[:, np.argsort(whose, kind="stable")].reshape(out.shape)
                count = np.cumprod((there == drafts) & (drafts != -1), axis=1).sum(axis=1)
                if (whose != np.arange(case.batch)).any() and ((there != -1) == (place <= count[:, None])).all():
                    return f"requests are sorted by {words} {name} and {how}"
    return ""
