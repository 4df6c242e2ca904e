"""All planted faults by kind and name."""

from typing import Any

from . import blind_samplers, blind_verifiers, constrained, faults, later_samplers, later_verifiers

FAULTS: dict[str, dict[str, Any]] = {**{kind: dict(every) for kind, every in faults.FAULTS.items()},
                                   "constrained": {name: fault for name, (fault, _) in constrained.FAULTS.items()}}
for _kind, _name, _fault, _ in (*blind_samplers.TABLE, *blind_verifiers.TABLE, *later_samplers.TABLE, *later_verifiers.TABLE):
    assert _name not in FAULTS[_kind], f"two faults are called {_name!r}"
    FAULTS[_kind][_name] = _fault
SOUND: dict[str, Any] = {**faults.SOUND, "constrained": constrained.Constrained}
#: Faults that neither `quick` nor `full` finds, and why; `soak` was not tried.
UNSEEN = {("verify", "the residual is of half precision"): "rounding moves less than 10^-3 of any row: a million draws would show it"}
