"""Steps that emit what no verifier may: what is wrong, in words."""

from __future__ import annotations

import numpy as np

from ..cases.verify_sweep import StepsRun, drafts_of
from .filter_deviations import PRECISIONS


def emitted_wrongly(run: StepsRun) -> str:
    """Of steps that emit more than an accepted prefix and one token."""
    out, drafts = np.concatenate(run.outputs), drafts_of(run)
    fell = np.cumsum(out != drafts, axis=1) > 0
    # behind the first that is no draft
    extra = (out != -1) & fell & np.roll(fell, 1, axis=1) & (np.arange(out.shape[1]) > 0)[None, :]
    strange = (out != drafts) & (np.roll(out, -1, axis=1) != -1) & (np.arange(out.shape[1]) < out.shape[1] - 1)[None, :]
    for words, left in (("of 16 bits", drafts & 0xFFFF),
                        *((words, rounded(drafts.astype(np.float32)).astype(np.int64)) for words,
                          rounded in PRECISIONS)):
        if strange.any() and (out == left)[strange].all():
            return f"drafts are emitted by ids {words}"
    lens = np.tile(run.case.lens, run.calls)
    if words := _sorted_wrongly(run, out, drafts):
        return words
    if ((out != -1).sum(axis=1) > lens + 1).any():
        return "drafts are taken beyond a request's own"
    extra[:run.case.batch] = False  # of the first call
    before = np.concatenate([out[:run.case.batch], out[:-run.case.batch]])
    if extra.any() and (out == before)[extra].mean() > 0.95:
        return "the output keeps tokens of the call before"
    return "a token is emitted behind a recovered one"


def _sorted_wrongly(run: StepsRun, out: np.ndarray, drafts: np.ndarray) -> str:
    """Of outputs whose requests were sorted and not put back, or by the wrong permutation; '' if they are well formed
    under none."""
    case = run.case
    keys = {"draft length": case.lens.astype(np.float64),
            **{name: value.astype(np.float64) for name, value in case.params.items()},
            "greedy and random": (case.params["temperature"] > 0.0).astype(np.float64)}
    for name, key in keys.items():
        for words, sign in (("rising", 1.0), ("falling", -1.0)):
            order = np.argsort(sign * key, kind="stable")
            for how, whose in (("not put back", order), ("put back by the wrong permutation", order[order])):
                if (whose == np.arange(case.batch)).all():
                    continue
                back = (np.arange(run.calls)[:, None] * case.batch + np.argsort(whose, kind="stable")[None, :]).ravel()
                there = out[back]
                stood = np.cumprod((there == drafts) & (drafts != -1), axis=1)
                count = stood.sum(axis=1)
                rest = np.arange(out.shape[1])[None, :] > count[:, None]
                if (((there != -1).sum(axis=1) == count + 1) & (~rest | (there == -1)).all(axis=1)).all():
                    return f"requests are sorted by {words} {name} and {how}"
    return ""
