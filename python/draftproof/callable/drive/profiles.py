"""Profiles of an audit: how much time it has, and the clock by which it is measured."""

from __future__ import annotations

import dataclasses
import time
from typing import Callable

from ..._core import Error


@dataclasses.dataclass(frozen=True)
class Profile:
    """seconds: of all; is_cpu: of this process's CPU time, so that a busy machine does not look less; sweep: share of
    it for the first sweep over all regimes; repeats: sweeps, each with other seeds; is_open: too few draws leave a
    verdict open."""

    name: str
    seconds: float
    is_cpu: bool
    sweep: float
    repeats: int
    is_open: bool


QUICK = "quick"
PROFILES = {profile.name: profile for profile in (
    Profile(QUICK, 60.0, True, 0.7, 1, False), Profile("full", 1800.0, False, 0.5, 2, True),
    Profile("soak", 8 * 3600.0, False, 0.5, 50, True))}
#: Of a CPU clock: a callable that waits for a device gets so many seconds of the wall for each.
WAITING = 5.0


def profile_of(name: str) -> Profile:
    if name not in PROFILES:
        raise Error(f"profile: is {name!r}; expected one of {', '.join(PROFILES)}")
    return PROFILES[name]


class Clock:
    """Seconds since it was made: of the wall, or of this process's CPU where those are more than a fifth of the
    wall's."""

    def __init__(self, is_cpu: bool, each: Callable[[float], None] = lambda seconds: None) -> None:
        """each: is called with the seconds whenever they are asked for."""
        self.is_cpu, self.each = is_cpu, each
        self.wall = time.monotonic()
        self.cpu = time.process_time() if is_cpu else 0.0

    def __call__(self) -> float:
        wall = time.monotonic() - self.wall
        seconds = max(wall / WAITING, time.process_time() - self.cpu) if self.is_cpu else wall
        self.each(seconds)
        return seconds
