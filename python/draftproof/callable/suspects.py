"""What a smallest failing case still needs, in words: the suspect."""

from __future__ import annotations

from typing import Any

import numpy as np

from .filter_cases import FilterCase
from .sample_cases import OFF, SampleCase, shown
from .sample_judge import Judgement
from .verify_cases import VerifyCase
from .verify_sweep import StepsCase

#: Tests of random numbers, not of a distribution.
OF_NOISE = ("repeats", "low_bits")
SEEDS = {"families": "seeds that agree in low, high or folded bits", "high_bits": "seeds that differ only above bit 32",
         "large": "consecutive seeds beyond 2^40", "double": "consecutive seeds beyond 2^53", "signed": "seeds from 2^63 on"}


def suspect_of(case: Any, judgement: Judgement, rule: str = "", is_lone: bool = False) -> str:
    """case: shrunk; is_lone: before that too a call had one row or request. rule: the wrong rule that explains what came, or ''. That, and the features without which it did not fail."""
    needs = ", ".join([*filter(None, [_needs(case, judgement, rule)]), *(["a batch of one"] if is_lone else [])])
    if not rule:
        return needs
    return f"{rule} ({needs})" if needs else rule


def _needs(case: Any, judgement: Judgement, rule: str) -> str:
    out = []
    seeds = SEEDS.get(getattr(case, "seeds", ""), "")
    if (judgement.suspect or judgement.name in OF_NOISE or judgement.name.startswith("correlation")) and not rule:
        out.append((judgement.suspect or "random numbers") + (f", {seeds}" if seeds else ""))
    elif judgement.name == "masked_token":
        out.append("the mask of -infinity")
    elif seeds:
        out.append(seeds)
    out += _of_parameters(case.params)
    batch = case.logits.shape[0] if isinstance(case, FilterCase) else case.batch
    if batch > 16 and not (isinstance(case, SampleCase) and case.groups == 1 and not out and batch <= 64):
        out.append(f"a batch of {batch} rows" if not hasattr(case, "lens") else f"a batch of {batch} requests")
    if case.vocab_size > 1000:
        out.append(f"a vocabulary of {case.vocab_size}")
    lens = case.draft_lens if isinstance(case, VerifyCase) else getattr(case, "lens", None)
    if lens is not None:
        kinds = sorted({int(length) for length in lens})
        bare = isinstance(case, StepsCase) and (case.one_hot or case.fixed is not None) and kinds[-1]
        out.append((f"{kinds[0]} drafts" if len(kinds) == 1 else f"ragged drafts of {kinds[0]} to {kinds[-1]}") +
                   (" without probabilities" if bare else ""))
    return ", ".join(out)


def _of_parameters(params: dict[str, np.ndarray]) -> list[str]:
    out = []
    for name, values in params.items():
        kinds = np.unique(values[values != np.asarray(OFF[name], values.dtype)])
        if not kinds.size:
            continue
        off = kinds.size < np.unique(values).size
        if name == "temperature" and 0.0 in kinds:
            out.append("temperature 0" if len(np.unique(values)) == 1 else "temperature 0 beside others")
        elif kinds.size == 1:
            out.append(f"{name} {shown(kinds[0])}" + (" beside rows without" if off else ""))
        else:
            out.append(f"{name} that differs from row to row")
    return out
