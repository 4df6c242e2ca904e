"""Calls of code that is not ours: what it may do wrong has a name, and none of it reaches the interpreter.

A call gets copies of its inputs, runs in a thread of its own under a time limit, and what it gives back is brought
into form. `CallFailure` says what went wrong.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import threading
import traceback
from typing import Any, Callable

import numpy as np

from .. import _forms


#: Numbers of an array that is kept for suspects, at most.
NOTED = 1 << 20


class CallFailure(Exception):
    """name: 'raises', 'hangs', 'wrong_shape', 'wrong_dtype', 'mutates_inputs' or 'prints'; traceback: of what was raised, as
    text, the callable's own frames."""

    def __init__(self, name: str, sentence: str, traceback: str = "") -> None:
        super().__init__(sentence)
        self.name = name
        self.sentence = sentence
        self.traceback = traceback


class ReadDict(dict):
    """Parameters that remember whether those which need not be there were asked for: such a one is offered with the
    value that switches it off, but does not show among the keys."""

    def __init__(self, values: dict[str, np.ndarray], offered: dict[str, np.ndarray]) -> None:
        super().__init__(values)
        self.offered = offered
        self.read: set[str] = set()

    def __missing__(self, key: str) -> np.ndarray:
        if key in self.offered:
            self.read.add(key)
            return self.offered[key]
        raise KeyError(key)

    def get(self, key: str, default: Any = None) -> Any:
        if key in self:
            return self[key]
        return self.__missing__(key) if key in self.offered else default


class Driver:
    """Calls `sampler` and counts what it was given. Not to be used again after a call that hangs."""

    def __init__(self, sampler: Callable[..., Any], time_limit: float,
                 distribution: Callable[..., Any] | None = None) -> None:
        if not callable(sampler):
            raise _forms.Error(f"sampler: is {type(sampler).__name__}; expected something that can be called")
        self.sampler = sampler
        self.time_limit = time_limit
        self.distribution = distribution
        self.calls = 0
        self.seconds = 0.0
        self.read: set[str] = set()
        # What runs note of their calls, for suspects: the last call's parameters; draft probabilities or what a filter left, of the last
        # call and of the first of those before it that had the same shape.
        self.last_params: dict[str, np.ndarray] | None = None
        self.noted: list[np.ndarray] = []
        try:
            names = set(inspect.signature(sampler).parameters)
        except (TypeError, ValueError):
            names = set()
        self.takes_steps = "steps" in names
        self.takes_parents = "parents" in names
        # Those of verify itself are what an engine recorded, in other shapes.
        self.takes_uniforms = "uniforms" in names and "draw_uniforms" not in names

    def note(self, array: np.ndarray) -> None:
        self.noted = [*(self.earlier(array.shape) or [array])[:1], array] if array.size <= NOTED else []

    def earlier(self, shape: tuple[int, ...]) -> list[np.ndarray]:
        return self.noted if self.noted and self.noted[0].shape == shape else []

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        given = [_copied(argument) for argument in arguments]
        outcome: dict[str, Any] = {}
        output = io.StringIO()

        def run() -> None:
            try:
                with contextlib.redirect_stdout(output), np.errstate(all="ignore"):
                    outcome["value"] = self.sampler(*given, **keywords)
            except BaseException as error:  # also SystemExit: it must not end the audit
                outcome["error"] = error

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(self.time_limit)
        self.calls += 1
        if thread.is_alive():
            raise CallFailure("hangs", f"a call took longer than {self.time_limit:g} seconds")
        if "error" in outcome:
            error = outcome["error"]
            raise CallFailure("raises", f"a call raised {_described(error)}", _traceback(error)) from error
        for argument, after in zip(arguments, given):
            _require_unchanged(argument, after)
        for argument in given:
            if isinstance(argument, ReadDict):
                self.read |= argument.read
        if output.getvalue():
            first = output.getvalue().splitlines()[0][:80]
            raise CallFailure("prints", f"a call printed to standard output: {first!r}")
        return outcome["value"]


def _traceback(error: BaseException) -> str:
    frames = error.__traceback__.tb_next if error.__traceback__ is not None else None  # without this module's
    return "".join(["Traceback of the callable (most recent call last):\n", *traceback.format_tb(frames),
                    f"{_described(error)}\n"])


def _described(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # its own text raises
        return type(error).__name__


def _copied(argument: Any) -> Any:
    if isinstance(argument, ReadDict):
        copy = ReadDict({k: v.copy() for k, v in argument.items()}, {k: v.copy() for k, v in argument.offered.items()})
        return copy
    return argument.copy() if isinstance(argument, np.ndarray) else argument


def _require_unchanged(before: Any, after: Any) -> None:
    if isinstance(before, dict):
        for name, value in before.items():
            if name not in after or not _same(value, after[name]):
                raise CallFailure("mutates_inputs", f"a call changed its input params[{name!r}]")
    elif isinstance(before, np.ndarray) and not _same(before, after):
        raise CallFailure("mutates_inputs", f"a call changed its input array {before.dtype} {list(before.shape)}")


def _same(a: np.ndarray, b: Any) -> bool:
    if not isinstance(b, np.ndarray) or a.shape != b.shape or a.dtype != b.dtype:
        return False
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))


def _array(value: Any, what: str) -> np.ndarray:
    try:
        return np.asarray(_forms.on_host(value, what))
    except Exception as error:
        raise CallFailure("wrong_dtype", f"a call gave {type(value).__name__}, which is no array ({error}); expected "
                                         f"{what}") from None


def tokens_of(value: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    """Token ids of this shape as int64."""
    array = _array(value, what)
    if array.dtype.kind not in "iu":
        raise CallFailure("wrong_dtype", f"a call gave {array.dtype} {list(array.shape)}; expected {what}, whole numbers")
    if array.shape != shape:
        raise CallFailure("wrong_shape", f"a call gave shape {list(array.shape)}; expected {list(shape)}, {what}")
    return array.astype(np.int64)


def logits_of(value: Any, shape: tuple[int, ...]) -> np.ndarray:
    array = _array(value, "filtered logits")
    if array.dtype.kind != "f":
        raise CallFailure("wrong_dtype", f"a call gave {array.dtype}; expected filtered logits, floats")
    if array.shape != shape:
        raise CallFailure("wrong_shape", f"a call gave shape {list(array.shape)}; expected {list(shape)}, filtered logits")
    return array.astype(np.float32)


def probabilities_of(distribution: Callable[..., Any], case: Any) -> np.ndarray:
    """What `distribution` gives for the rows of a case, in the form of audit_draws."""
    shape = case.logits.shape
    try:
        value = distribution(case.logits.copy(), dict(case.params))
    except Exception as error:
        raise _forms.Error(f"distribution: raised {type(error).__name__} for logits {list(shape)} of {case.name!r}: {error}") from error
    array = _forms.as_numpy(value, "distribution")
    if array.shape != shape or array.dtype.kind != "f":
        raise _forms.Error(f"distribution: gave {array.dtype} {list(array.shape)}; expected probabilities {list(shape)}")
    return array.astype(np.float32)
