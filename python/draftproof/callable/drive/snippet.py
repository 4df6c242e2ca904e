"""A failing case as Python that runs it again."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ..cases.constrained import ConstrainedCase
from ..cases.filter_cases import FilterCase
from ..cases.request_cases import RequestCase
from ..cases.sample_cases import SampleCase
from ..cases.verify_cases import VerifyCase
from ..cases.verify_sweep import StepsCase

#: Arrays up to so many numbers are written out.
LITERAL_MAX = 80


def literal(array: np.ndarray) -> str:
    if array.size > 8 and array.ndim == 1 and (array == array[0]).all():
        return f"np.full({array.size}, {array[0]!s}, np.{array.dtype})".replace("inf", "np.inf").replace("nan",
                "np.nan")
    text = np.array2string(array, separator=", ", threshold=array.size + 1, floatmode="unique", max_line_width=110)
    return f"np.array({text.replace('inf', 'np.inf').replace('nan', 'np.nan')}, np.{array.dtype})"


def import_of(sampler: Callable[..., Any]) -> str:
    module, name = getattr(sampler, "__module__", None), getattr(sampler, "__qualname__", None)
    if module and name and module != "__main__" and "<" not in name and "." not in name:
        return f"from {module} import {name} as sampler"
    return f"# sampler: the callable under audit, {name or type(sampler).__name__}"


def expression_of(case: Any) -> str:
    """The case as Python; large arrays by the source of their rows."""
    if isinstance(case, ConstrainedCase):
        return f"constrained_case({case.name!r})"
    if isinstance(case, RequestCase):
        return f"draftproof.{case!r}"
    params = ", ".join(f"{name!r}: {literal(value)}" for name, value in case.params.items())
    name = type(case).__name__
    if isinstance(case, StepsCase):
        if case.target.size + (0 if case.drafts is None else case.drafts.size) <= LITERAL_MAX:
            optional = lambda array: "None" if array is None else literal(array)  # noqa: E731
            return (f"draftproof.{name}({case.name!r}, target={literal(case.target)},\n    "
                    f"drafts={optional(case.drafts)}, "
                    f"lens={literal(case.lens)}, source='',\n    params={{{params}}}, seeds={case.seeds!r}, "
                    f"one_hot={case.one_hot}, "
                    f"fixed={optional(case.fixed)})")
        which = [] if case.taken is None else case.taken.tolist()
        taken = ("" if case.taken is None else f".take([{which[0]}] * {len(which)})" if len(which) > 2
                 and len(set(which)) == 1 else f".take({which})") + ("" if case.most is None
                         else f".first_drafts({case.most})")
        return f"dataclasses.replace({case.source}{taken},\n    params={{{params}}}, seeds={case.seeds!r})"
    if isinstance(case, VerifyCase):
        small = sum(table.size for table in case.target) * (2 if case.drafter else 1) <= LITERAL_MAX
        rows = case.source
        if small:
            tables = lambda values: "(" + "".join(literal(table) + ", " for table in values) + ")"  # noqa: E731
            rows = f"target={tables(case.target)}, drafter={tables(case.drafter) if case.drafter else None}"
        return (f"draftproof.{name}({case.name!r}, source='', {rows},\n    draft_lens={case.draft_lens}, "
                f"params={{{params}}}, "
                f"batch={case.batch}, seeds={case.seeds!r}{', endpoints=True' if case.endpoints else ''})")
    row = literal(case.logits) if case.logits.size <= LITERAL_MAX else case.source
    more = ""
    if isinstance(case, SampleCase):
        more = f", batch={case.batch}, shuffled={case.shuffled}, seeds={case.seeds!r}"
        for flag in ("is_fixed", "is_sweep", "is_flat", "may_raise"):
            more += f", {flag}=True" if getattr(case, flag) else ""
        if case.readings and case.merge is not None:
            more += f", readings=({', '.join(literal(r) for r in case.readings)},), merge={literal(case.merge)}"
    assert isinstance(case, (SampleCase, FilterCase))
    return f"draftproof.{name}({case.name!r}, logits={row}, source='',\n    params={{{params}}}{more})"


def snippet_of(sampler: Callable[..., Any], case: Any, n: int, seed: int, with_distribution: bool = False,
               before: Any = None, shards: int | None = None) -> str:
    """before: a case of which a call is made first."""
    body = [f"case = {expression_of(case)}"]
    if before is not None:
        body.append(f"before = {expression_of(before)}")
    text = "\n".join(body)
    lines = ["import numpy as np", "import draftproof", "from draftproof.callable.cases import rows"]
    if "dataclasses." in text:
        lines.insert(0, "import dataclasses")
    if isinstance(case, VerifyCase) or isinstance(before, VerifyCase):
        lines.append("from draftproof.callable.cases.verify_cases import dirichlet, logits, softmax, weighted")
    if "constrained_case(" in text:
        lines.append("from draftproof.callable.cases.constrained import constrained_case")
    if "sweep(" in text:
        kind = "verify" if isinstance(case, (StepsCase, VerifyCase)) else "sample"
        lines.append(f"from draftproof.callable.cases.{kind}_sweep import sweep")
    more = ", before=before" if before is not None else ""
    more += ", distribution=distribution" if with_distribution else ""
    more += f", shards={shards}" if shards is not None else ""
    lines += [import_of(sampler), "", *body,
              f"print(draftproof.run_case(sampler, case, n={n}, seed={seed}{more}).sentence)"]
    return "\n".join(lines) + "\n"
