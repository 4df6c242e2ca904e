"""Signs of life of what takes long: a line every 30 seconds."""

from __future__ import annotations

import sys
import time
from typing import Callable

#: Seconds between two lines.
INTERVAL = 30.0


def on_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Progress:
    """Called often, with a function that makes the text; says it where the last line is 30 seconds old."""

    def __init__(self, say: Callable[[str], None] | None = None) -> None:
        self.say = say or on_stderr
        self.last = time.monotonic()

    def __call__(self, text: Callable[[], str]) -> None:
        if time.monotonic() - self.last >= INTERVAL:
            self.last = time.monotonic()
            self.say(f"draftproof: {text()}")
