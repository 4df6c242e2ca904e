"""Where requests end: at a stop id, behind a stop word, after max_tokens. Of callables that say so: what they say, and
what they emit behind an end that came within accepted drafts."""

from __future__ import annotations

import dataclasses
from typing import Any, Sequence

import numpy as np

from ..drive.drive import CallFailure

#: What a reason may be, beside none at all.
REASONS = ("stop", "length")
#: Readings of `num_tokens`.
COUNTS = ("of the step", "of the request")


@dataclasses.dataclass(frozen=True)
class Ends:
    """What a call says of its requests: reasons [B], None of those that go on; counts [B] of tokens, or None."""

    reasons: list[str | None]
    counts: np.ndarray | None


def ends_of(value: dict[str, Any], size: int) -> Ends | None:
    """Of what a callable gave as a dict beside its tokens."""
    if "finish_reasons" not in value:
        if "num_tokens" in value:
            raise CallFailure("wrong_shape",
                              "a call gave num_tokens without finish_reasons; expected both, or none of them")
        return None
    reasons = [None if one is None or one == "" else str(one) for one in value["finish_reasons"]]
    if len(reasons) != size or any(one not in (None, *REASONS) for one in reasons):
        raise CallFailure("wrong_shape",
                          f"a call gave {len(reasons)} finish_reasons, {sorted(set(map(str, reasons)))}; expected "
                          f"{size} of "
                                         f"None, {', '.join(map(repr, REASONS))}")
    counts = value.get("num_tokens")
    if counts is None:
        return Ends(reasons, None)
    counts = np.asarray(counts)
    if counts.shape != (size,) or counts.dtype.kind not in "iu":
        raise CallFailure("wrong_shape",
                          f"a call gave num_tokens of {counts.dtype} {list(counts.shape)}; expected whole numbers "
                          f"[{size}]")
    return Ends(reasons, counts.astype(np.int64))


def end_of(params: dict[str, Any], before: Sequence[int], emitted: Sequence[int]) -> tuple[int, set[str]]:
    """At which of the emitted tokens a request ends, and by which reasons; behind all and none if it goes on. before:
    its output until then."""
    for place, token in enumerate(emitted):
        output = [*before, *emitted[:place + 1]]
        reasons = set()
        if token in set(np.asarray(params.get("stop_ids", ())).tolist()) or any(output[-len(word):] == word
                for word in params.get("stop_words", ())):
            reasons.add("stop")
        if len(output) >= params.get("max_tokens", len(output) + 1):
            reasons.add("length")
        if reasons:
            return place, reasons
    return len(emitted), set()


@dataclasses.dataclass
class EndsSeen:
    """What was wrong so far; counts: the readings of num_tokens that fit all steps."""

    steps: int = 0
    ended: int = 0
    wrong: list[str] = dataclasses.field(default_factory=list)
    counts: set[str] = dataclasses.field(default_factory=lambda: set(COUNTS))

    def see(self, name: str, params: dict[str, Any], before: Sequence[int], emitted: Sequence[int], reason: str | None,
            count: int | None) -> bool:
        """Does the request end here?"""
        place, due = end_of(params, before, emitted)
        self.steps += 1
        self.ended += bool(due)
        if due and place + 1 < len(emitted):
            self.wrong.append(f"{name} emits {len(emitted) - place - 1} tokens behind the end at {place} of its step "
                              f"({' and '.join(sorted(due))})")
        elif (reason is None) != (not due) or (due and reason not in due):
            self.wrong.append(f"{name} has finish reason {reason!r} where "
                              f"{' or '.join(map(repr, sorted(due))) if due else None} is due")
        if count is not None and self.counts:
            self.counts &= {how for how, right in zip(COUNTS, (len(emitted), len(before) + len(emitted)))
                            if right == count}
            if not self.counts:
                self.wrong.append(f"{name} has num_tokens {count} where its step has {len(emitted)} and the request "
                                  f"{len(before) + len(emitted)}")
        return bool(due)

    @property
    def sentence(self) -> str:
        return (f"refuted: {len(self.wrong)} of {self.steps} steps say or do something else at an end, "
                f"first {self.wrong[0]}")
