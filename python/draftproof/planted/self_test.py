"""self_test: audits the planted faults and says what a profile finds of them; `draftproof audit --self-test --profile
quick`."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from typing import Any, Callable, Iterator, Sequence

from .._core import Error
from .._results import html_of
from ..callable.audit_callable import audit_callable
from ..callable.drive.profiles import PROFILES, profile_of
from . import table

SOUND = "sound"


@dataclasses.dataclass(frozen=True)
class Planted:
    """What one audit found: of a callable with a planted fault, or of the sound one (fault 'sound').

    found: it failed, or is called exact and slow (`but`). case, test, suspect: of the failure. profiles: those that
    make the draws which found it, the one that was run among them. n: rows drawn in all; seconds: of CPU in `quick`, of
    the clock in others.
    """

    kind: str
    fault: str
    found: bool
    case: str
    test: str
    suspect: str
    but: str
    profiles: tuple[str, ...]
    n: int
    seconds: float

    @property
    def is_right(self) -> bool:
        return self.found == (self.fault != SOUND)

    def __str__(self) -> str:
        found = f"{self.case} | {self.test} | {self.suspect}" if self.case else self.but or "nothing found"
        wrong = "" if self.is_right else "MISSED " if self.fault != SOUND else "ACCUSED "
        return (f"{wrong}{self.kind}, {self.fault}: {found}; "
                f"{self.n:,} rows, {self.seconds:.1f} s")


@dataclasses.dataclass(frozen=True)
class SelfTest:
    """What `profile` finds of the planted faults that were asked for."""

    profile: str
    faults: list[Planted]

    @property
    def is_finding(self) -> bool:
        """Was a sound callable accused, or a fault missed that is meant to be found?"""
        return any(not one.is_right for one in self.faults)

    @property
    def sentence(self) -> str:
        wrong = [one for one in self.faults if one.fault != SOUND]
        sound = [one for one in self.faults if one.fault == SOUND]
        found = [one for one in wrong if one.found]
        missed = ", ".join(f"{one.kind}, {one.fault}" for one in wrong if not one.found)
        every = sum(len(one.profiles) == len(PROFILES) for one in found)
        return (f"{self.profile} finds {len(found)} of {len(wrong)} planted faults" +
                (f" (not: {missed})" if missed else "") +
                f", {every} of them by draws that every profile makes; "
                f"{sum(one.found for one in sound)} of {len(sound)} sound callables accused")

    def to_json(self) -> dict[str, Any]:
        return {"profile": self.profile, "sentence": self.sentence,
                "faults": [{**dataclasses.asdict(one), "is_right": one.is_right} for one in self.faults]}

    def dumps(self) -> str:
        return json.dumps(self.to_json(), indent=2)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.faults), self.sentence])

    def _repr_html_(self) -> str:
        rows = [(one.kind, one.fault, one.case or one.but, one.test, one.suspect, one.n) for one in self.faults]
        return html_of("biased" if self.is_finding else "consistent", self.sentence,
                       ["kind", "fault", "case", "test", "suspect", "rows"], rows)


def audited(kind: str, fault: str, profile: str) -> Planted:
    callable_ = table.SOUND[kind]() if fault == SOUND else table.FAULTS[kind][fault]()
    audit = audit_callable(callable_, kind=kind, failures_max=1, profile=profile)
    failure = audit.failures[0] if audit.failures else None
    found = failure is not None or bool(audit.but)
    # what is slow shows in whatever is drawn
    by_every = audit.but or (failure is not None and failure.by_every_profile)
    return Planted(kind, fault, found, failure.sentence.split(": ")[0] if failure else "",
                   failure.name if failure else "",
                   failure.suspect if failure else "", audit.but,
                   (tuple(PROFILES) if by_every else (profile,)) if found else (), audit.n, audit.seconds)


def chosen(kinds: Sequence[str], names: Sequence[str]) -> list[tuple[str, str]]:
    """(kind, fault) of what is asked for, the sound callable of each kind last."""
    every = [(kind, fault) for kind in kinds for fault in (*table.FAULTS[kind], SOUND)]
    for name in names:
        if not any(fault == name for _, fault in every):
            raise Error(f"faults: {name!r} is not planted in {', '.join(kinds)}; expected {SOUND!r}, or a name as "
                        f"{every[0][1]!r} of draftproof.planted.FAULTS")
    return [(kind, fault) for kind, fault in every if not names or fault in names]


def self_test(profile: str = "quick", kind: str = "all", faults: Sequence[str] = (), processes: int = 1,
              each: Callable[[Planted], Any] | None = None) -> SelfTest:
    """Audits every planted fault, and the sound callable of each kind, with this profile; an audit ends at its first
    failure.

    kind: 'sample', 'filter', 'verify', 'constrained' or 'all'; faults: names, all if empty ('sound' is the sound
    callable);
    processes: audits side by side, spawned, so that a script needs its `if __name__ == "__main__"`; each: is called
    with every result as it comes, in order.
    """
    if kind != "all" and kind not in table.FAULTS:
        raise Error(f"kind: is {kind!r}; expected all, {', '.join(table.FAULTS)}")
    if int(processes) < 1:
        raise Error(f"processes: is {processes}; expected 1 or more")
    profile = profile_of(profile).name
    kinds = list(table.FAULTS) if kind == "all" else [kind]
    asked = chosen(kinds, faults)
    results = []
    for result in _all_audited(asked, profile, int(processes)):
        results.append(result)
        if each is not None:
            each(result)
    return SelfTest(profile, results)


def _all_audited(asked: list[tuple[str, str]], profile: str, processes: int) -> Iterator[Planted]:
    if processes == 1:
        yield from (audited(kind, fault, profile) for kind, fault in asked)
        return
    with ProcessPoolExecutor(min(processes, len(asked)), mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(audited, *zip(*asked), [profile] * len(asked))
