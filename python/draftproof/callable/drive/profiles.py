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
#: Of a CPU clock: so many seconds of the wall count as one where the callable waits for a device, and where the machine
#: is busy with others: of 60 seconds of CPU at most half an hour.
WAITING, CEILING = 5.0, 30.0


def profile_of(name: str) -> Profile:
    if name not in PROFILES:
        raise Error(f"profile: is {name!r}; expected one of {', '.join(PROFILES)}")
    return PROFILES[name]


def queued() -> float:
    """Seconds that this thread was ready and had no processor; 0 where the system does not say."""
    try:
        with open("/proc/thread-self/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1]) * 1e-9
    except (OSError, IndexError, ValueError):
        return 0.0


class Clock:
    """Seconds since it was made, of the wall or of a CPU clock, which a busy machine does not drive: this process's
    CPU, a fifth of the wall where the callable waits (less what threads were queued), and a 30th of the wall as its
    ceiling."""

    def __init__(self, is_cpu: bool, each: Callable[[float], None] = lambda seconds: None) -> None:
        """each: is called with the seconds whenever they are asked for."""
        self.is_cpu, self.each = is_cpu, each
        self.wall = time.monotonic()
        self.cpu = time.process_time() if is_cpu else 0.0
        self.queued = queued()
        self.calls_queued: Callable[[], float] = lambda: 0.0  # of the callable's threads
        self.is_at_ceiling = False

    def __call__(self) -> float:
        wall = time.monotonic() - self.wall
        seconds = wall
        if self.is_cpu:
            waited = (wall - self.calls_queued() - max(0.0, queued() - self.queued)) / WAITING
            seconds = max(time.process_time() - self.cpu, waited, wall / CEILING)
            self.is_at_ceiling = seconds == wall / CEILING
        self.each(seconds)
        return seconds
