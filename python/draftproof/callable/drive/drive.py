"""Calls of code that is not ours: what it may do wrong has a name, and none of it reaches the interpreter.

A call gets copies of its inputs, runs in a thread of its own under a time limit, and what it gives back is brought
into form. `CallFailure` says what went wrong.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import io
import threading
import traceback
from typing import Any, Callable, Iterable, Iterator, Mapping

import numpy as np

from ... import _forms
from ..cases.request_params import NEUTRAL
from ..cases.sample_cases import DTYPES, OFF
from .profiles import queued


class CallFailure(Exception):
    """name: 'raises', 'hangs', 'wrong_shape', 'wrong_dtype', 'mutates_inputs' or 'prints'; traceback: of what was
    raised, as text, the callable's own frames."""

    def __init__(self, name: str, sentence: str, traceback: str = "") -> None:
        super().__init__(sentence)
        self.name = name
        self.sentence = sentence
        self.traceback = traceback


class Params(dict):
    """The parameters of one call: an array of every name in OFF, so that a callable may read each in any way, whatever
    a case has; remembers those that were read by name, names of NEUTRAL that were asked for, and whether all were taken
    at once, as by `**params`. size: rows or requests of the call; None: of a copy, which gets no more names."""

    def __init__(self, values: Mapping[str, np.ndarray], size: int | None) -> None:
        off = {} if size is None else {name: np.full(size, value, DTYPES[name]) for name, value in OFF.items()}
        super().__init__({**off, **values})
        self.read: set[str] = set()
        self.asked: set[str] = set()
        self.is_taken_whole = False
        self._handed: set[str] = set()  # keys that came of an iteration, which are no names asked for

    def __getitem__(self, key: str) -> Any:
        if key in self._handed:
            self._handed.remove(key)
            return super().__getitem__(key)
        self._note(key)
        self.read.add(key)
        return super().__getitem__(key)

    def _whole(self) -> Params:
        self.is_taken_whole = True
        return self

    def __iter__(self) -> Iterator[str]:
        self._whole()._handed.update(dict.keys(self))
        return super().__iter__()

    def keys(self) -> Any:
        iter(self)
        return super().keys()

    def items(self) -> Any:
        return super(Params, self._whole()).items()

    def values(self) -> Any:
        return super(Params, self._whole()).values()

    def copy(self) -> dict[str, Any]:
        return dict(self)

    def __or__(self, other: Any) -> Any:
        return dict(self) | other

    def __ror__(self, other: Any) -> Any:
        return other | dict(self)

    def __contains__(self, key: object) -> bool:
        self._note(key)
        return super().__contains__(key)

    def _note(self, key: object) -> None:
        if key in NEUTRAL:
            self.asked.add(str(key))

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else default

    def copied(self, without: Iterable[str], more: Mapping[str, Any] | None = None) -> Params:
        """A copy; `without`: names that the callable refuses, which are left out where they are off; more: where they
        are not there."""
        return Params({**(more or {}), **{name: copy.deepcopy(value) for name, value in self.items()
                                          if not (name in without and name in OFF
                                                  and (value == np.asarray(OFF[name], value.dtype)).all())}}, None)


#: Arguments that a callable may have, which it gets in the cases that are about them; where they have no default, in
#: all. By kind (as
#: many positional arguments), from those what stands for them elsewhere.
STAND_INS: dict[str, tuple[int, Callable[..., Any]]] = {
    "steps": (3, lambda logits, params, seeds: np.zeros(len(seeds), np.uint32)),
    "uniforms": (6, lambda *arguments: None),
    "parents": (7, lambda drafts, q, p, ends, *rest: np.concatenate(
        [np.arange(count, dtype=np.int32) - 1 for count in np.diff(ends, prepend=0)])),
}


#: What log-probabilities may be of (logprobs.py).
STAGES = ("of the model's row", "of the row before its temperature", "of the row before its filters",
          "of what is drawn from")


class Driver:
    """Calls `sampler` and counts what it was given. Not to be used again after a call that hangs."""

    def __init__(self, sampler: Callable[..., Any], time_limit: float,
                 distribution: Callable[..., Any] | None = None, shards: int | None = None) -> None:
        if not callable(sampler):
            raise _forms.Error(f"sampler: is {type(sampler).__name__}; expected something that can be called")
        self.sampler = sampler
        self.time_limit = time_limit
        self.distribution = distribution
        self.shards = shards  # of the vocabulary: the callable gets logits as a list of so many parts
        self.calls = 0
        self.queued = 0.0  # seconds that its threads had no processor (profiles.py)
        self.read: set[str] = set()
        self.last_params: dict[str, np.ndarray] | None = None  # of the last call, for explanations
        self.refused: set[str] = set()  # parameters that it takes by keyword alone, and not
        self.takes_whole = False  # did it take all parameters at once, and not by name alone?
        self.wanted: set[str] = set()  # names of NEUTRAL that it asked for, which it gets in every call from then on
        self.indexed: set[str] = set()  # those without which it raises
        self.stages = set(STAGES)  # of which its log-probabilities can be, by all cases
        self.gives_ends = False  # did a call give finish_reasons?
        self.reading: dict[str, str] = {}  # of request_rows.READINGS, what it was found to have
        try:
            names: Mapping[str, Any] = inspect.signature(sampler).parameters
        except (TypeError, ValueError):
            names = {}
        self.required = {name for name in STAND_INS if name in names and names[name].default is inspect.Parameter.empty}
        self.takes_steps = "steps" in names
        self.takes_parents = "parents" in names
        # Those of verify itself are what an engine recorded, in other shapes.
        self.takes_uniforms = "uniforms" in names and "draw_uniforms" not in names

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        for name in self.required - keywords.keys():
            count, stand_in = STAND_INS[name]
            if len(arguments) == count:
                keywords[name] = stand_in(*arguments)
        asked = [argument.copied(self.refused, self._neutral(argument, arguments)) if isinstance(argument, Params)
                 else argument
                 for argument in arguments]
        given = [_copied(argument) for argument in asked]
        outcome: dict[str, Any] = {}
        output = io.StringIO()

        def run() -> None:
            try:
                with contextlib.redirect_stdout(output), np.errstate(all="ignore"):
                    outcome["value"] = self.sampler(*self._in_parts(given), **keywords)
            except BaseException as error:  # also SystemExit: it must not end the audit
                outcome["error"] = error
            self.queued += queued()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(self.time_limit)
        self.calls += 1
        if thread.is_alive():
            raise CallFailure("hangs", f"a call took longer than {self.time_limit:g} seconds")
        wanted = {name for after in given if isinstance(after, Params) for name in after.asked}
        self.takes_whole |= any(isinstance(after, Params) and after.is_taken_whole for after in given)
        if isinstance(error := outcome.get("error"), KeyError) and error.args:  # of a copy
            self.indexed |= {name for name in NEUTRAL if name == error.args[0]}
            wanted |= self.indexed
        wanted -= self.wanted
        self.wanted |= wanted
        if "error" in outcome:
            error = outcome["error"]
            if wanted:
                return self(*arguments, **keywords)
            if name := self._refused_by(error, arguments, asked):
                self.refused.add(name)
                return self(*arguments, **keywords)
            raise CallFailure("raises", f"a call raised {_described(error)}", _traceback(error)) from error
        for argument, after in zip(asked, given):
            _require_unchanged(argument, after)
            if isinstance(after, Params):
                self.read |= after.read
        if output.getvalue():
            first = output.getvalue().splitlines()[0][:80]
            raise CallFailure("prints", f"a call printed to standard output: {first!r}")
        value = outcome["value"]
        self.gives_ends = self.gives_ends or (isinstance(value, dict) and "finish_reasons" in value)
        return value

    def _in_parts(self, given: list[Any]) -> list[Any]:
        """The arguments with the logits [B, V] in parts, V if there are fewer tokens than parts."""
        if self.shards is None:
            return given
        parts = np.array_split(given[0], min(self.shards, given[0].shape[1]), axis=1)
        return [[np.ascontiguousarray(part) for part in parts], *given[1:]]

    def _neutral(self, params: Params, arguments: tuple[Any, ...]) -> dict[str, Any]:
        """What the callable asked for, off, where this call has none."""
        missing = [name for name in NEUTRAL if name in self.wanted - self.refused and name not in params.keys()]
        if "allowed" in self.wanted and "bitmask" in missing and "bitmask" not in self.indexed:  # two forms of one mask
            missing.remove("bitmask")
        if not missing:
            return {}
        rows, vocab_size = arguments[0 if len(arguments) < 6 else 2].shape
        return {name: NEUTRAL[name](len(params["temperature"]), rows, vocab_size) for name in missing}

    def _refused_by(self, error: BaseException, arguments: tuple[Any, ...], asked: list[Any]) -> str:
        """The parameter, off in this call, that the callable handed to a function which does not have it, or refuses it
        by name."""
        if not isinstance(error, Exception):
            return ""
        text = _described(error).partition(": ")[2]
        return next((name for own, params in zip(arguments, asked) if isinstance(params, Params) for name in params
                     if (f"unexpected keyword argument '{name}'" in text or text.startswith(f"{name}: "))
                     and name not in own.copied([name])), "")


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
    if isinstance(argument, Params):
        return argument.copied(())
    return argument.copy() if isinstance(argument, np.ndarray) else argument


def _require_unchanged(before: Any, after: Any) -> None:
    if isinstance(before, dict):
        for name, value in before.items():
            if not dict.__contains__(after, name) or not _same(value, dict.__getitem__(after, name)):
                raise CallFailure("mutates_inputs", f"a call changed its input params[{name!r}]")
    elif isinstance(before, np.ndarray) and not _same(before, after):
        raise CallFailure("mutates_inputs", f"a call changed its input array {before.dtype} {list(before.shape)}")


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(_same, a, b))
    if not isinstance(a, np.ndarray):
        return bool(a == b)
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
        raise CallFailure("wrong_dtype",
                          f"a call gave {array.dtype} {list(array.shape)}; expected {what}, whole numbers")
    if array.shape != shape:
        raise CallFailure("wrong_shape", f"a call gave shape {list(array.shape)}; expected {list(shape)}, {what}")
    if array.dtype.kind == "u" and array.dtype.itemsize == 8:  # no number turns negative, into padding
        array = np.minimum(array, np.uint64(np.iinfo(np.int64).max))
    return array.astype(np.int64)


def drawn_of(value: Any, shape: tuple[int, ...], what: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Token ids, and their log-probabilities where a call gave a pair of both: int64 and float64. A dict has them as
    `tokens` and `logprobs`."""
    if isinstance(value, dict):
        if "tokens" not in value:
            raise CallFailure("wrong_shape",
                              f"a call gave a dict of {', '.join(map(str, value)) or 'nothing'}; expected tokens among "
                              "them")
        value = value["tokens"] if value.get("logprobs") is None else (value["tokens"], value["logprobs"])
    if not (isinstance(value, tuple) and len(value) == 2 and _array(value[1], what).dtype.kind == "f"):
        return tokens_of(value, shape, what), None
    return tokens_of(value[0], shape, what), numbers_of(value[1], shape,
                                                        f"log-probabilities of {what}").astype(np.float64)


def numbers_of(value: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    array = _array(value, what)
    if array.dtype.kind != "f":
        raise CallFailure("wrong_dtype", f"a call gave {array.dtype}; expected {what}, floats")
    if array.shape != shape:
        raise CallFailure("wrong_shape", f"a call gave shape {list(array.shape)}; expected {list(shape)}, {what}")
    return array


def probabilities_of(distribution: Callable[..., Any], case: Any) -> np.ndarray:
    """What `distribution` gives for the rows of a case, in the form of audit_draws."""
    shape = case.logits.shape
    try:
        value = distribution(case.logits.copy(), dict(case.params))
    except Exception as error:
        raise _forms.Error(f"distribution: raised {type(error).__name__} for logits {list(shape)} of {case.name!r}: "
                           f"{error}") from error
    array = _forms.as_numpy(value, "distribution")
    if array.shape != shape or array.dtype.kind != "f":
        raise _forms.Error(f"distribution: gave {array.dtype} {list(array.shape)}; expected probabilities "
                           f"{list(shape)}")
    total = array.sum(axis=1, dtype=np.float64)
    wrong = ~((array >= 0.0) & (array <= 1.0)).all(axis=1) | ~(np.abs(total - 1.0) <=
                                                               (1e-3 if array.itemsize > 2 else 2e-2))
    if wrong.any():
        row = int(wrong.argmax())
        raise _forms.Error(f"distribution: gave row {row} of {case.name!r} with numbers from {array[row].min():.6g} to "
                           f"{array[row].max():.6g} "
                           f"that sum to {total[row]:.6g}; expected probabilities, which sum to 1: `distribution` is "
                           "at fault, not the sampler")
    return array.astype(np.float32)
