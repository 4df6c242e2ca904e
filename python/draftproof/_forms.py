"""Arguments into the form that the extension module takes: shapes, dtypes, layouts, each refused by its name.

The module lets other Python threads run while it reads, so that what it reads is never the caller's memory but a copy,
which was looked at after it was made. Of libraries whose arrays cannot change there is none."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any, Iterable

import numpy as np

from . import _core
from ._core import Error

#: Sampling parameters: name -> (dtype, value that switches it off).
PARAMETERS: dict[str, tuple[Any, float]] = {
    "temperature": (np.float32, 1.0),
    "top_k": (np.int32, 0),
    "top_p": (np.float32, 1.0),
    "min_p": (np.float32, 0.0),
    "repetition_penalty": (np.float32, 1.0),
    "frequency_penalty": (np.float32, 0.0),
    "presence_penalty": (np.float32, 0.0),
    "guidance_scale": (np.float32, 1.0),
    "min_tokens": (np.int64, 0),
    **{name: (np.float32, off) for name, off in _core.sampler_parameters().items()},
}
SETTINGS = ("filter_order", "ties", "penalty_window", "guidance_form", "nan_policy")
UNCHANGING = ("jax", "jaxlib", "tensorflow")


def on_host(value: Any, name: str) -> Any:
    """The array itself, or a copy in host memory of one that lies on another device."""
    if isinstance(value, np.ndarray):
        return np.asarray(value)
    device = getattr(value, "__dlpack_device__", None)
    if device is None:
        return value
    try:
        if int(device()[0]) in (1, 3):  # host memory, also pinned
            return value.detach() if getattr(value, "requires_grad", False) else value
        for move in ("cpu", "get"):  # PyTorch and TensorFlow; CuPy
            if hasattr(value, move):
                return getattr(value.detach() if hasattr(value, "detach") else value, move)()
        return np.asarray(value)
    except Exception as error:
        raise Error(f"{name}: cannot be brought into host memory: {type(error).__name__}: {error}") from None


def rows(value: Any, name: str, vocab_size: int | None = None) -> Any:
    """Rows [n, V] of float32, float16 or bfloat16, one after the other. Float64 is rounded to float32."""
    array = on_host(value, name)
    changes = type(value).__module__.split(".")[0] not in UNCHANGING
    if not isinstance(array, np.ndarray):
        array = _imported(array, name)
    if isinstance(array, np.ndarray) and str(array.dtype) == "bfloat16":  # numpy cannot hand that type on
        array = array.astype(np.float32)
    if isinstance(array, np.ndarray):
        if array.dtype == object or array.dtype.kind not in "fiu":
            raise Error(f"{name}: has dtype {array.dtype}; expected float32, float16, bfloat16 or float64")
        if array.dtype not in (np.float32, np.float16) or not array.dtype.isnative:
            array, changes = array.astype(np.float32), False
    shape = tuple(array.shape)
    if len(shape) != 2:
        raise Error(f"{name}: has shape {list(shape)}; expected [rows, V]")
    if shape[1] < 1:
        raise Error(f"{name}: has shape {list(shape)}; expected a vocabulary of 1 token or more")
    if vocab_size is not None and shape[1] != vocab_size:
        raise Error(f"{name}: has shape {list(shape)}; expected [rows, {vocab_size}]")
    if isinstance(array, np.ndarray):
        apart, within = array.strides
        side_by_side = within == array.itemsize or shape[1] == 1
        if not side_by_side or (shape[0] > 1 and apart != 0 and apart < shape[1] * array.itemsize):
            array, changes = np.array(array, order="C"), False
        if changes and shape[0] > 1 and apart == 0:  # one row for all
            return np.broadcast_to(array[:1].copy(), shape)
        if changes or not array.flags.aligned or array.strides[0] % array.itemsize:
            array = array.copy()
        return array
    array = array.contiguous() if hasattr(array, "contiguous") else array
    return array.clone() if changes and hasattr(array, "clone") else array


def _imported(value: Any, name: str) -> Any:
    """An array of numpy's over the same memory where that can be; bfloat16 stays what it is."""
    if hasattr(value, "__dlpack__"):
        try:
            return np.from_dlpack(value)
        except Exception:  # of bfloat16, and of what offers more than it can give
            if "bfloat16" in str(getattr(value, "dtype", "")) and hasattr(value, "shape"):
                return value
    return as_numpy(value, name)


def as_numpy(value: Any, name: str) -> np.ndarray:
    value = on_host(value, name)
    try:
        return np.asarray(value)
    except Exception as error:
        raise Error(f"{name}: is no array: {error}") from None


def flat(array: np.ndarray, dtype: Any) -> np.ndarray:
    """A copy of its elements, one after the other."""
    return np.array(array, dtype, order="C").reshape(-1)


def integers(value: Any, name: str, dtype: Any, size: int | None = None) -> np.ndarray:
    """A contiguous array [n] of whole numbers of this dtype; a scalar is repeated where the size is known."""
    array = np.array(as_numpy(value, name))
    if array.size == 0 and array.ndim <= 1 and array.dtype.kind in "fiu":
        array = array.astype(np.int64)
    if array.dtype == object or array.dtype.kind not in "iu":
        raise Error(f"{name}: has dtype {array.dtype}; expected whole numbers")
    if array.ndim == 0 and size is not None:
        array = np.full(size, array)
    if array.ndim != 1 or (size is not None and array.size != size):
        raise Error(f"{name}: has shape {list(array.shape)}; expected [{'n' if size is None else size}]")
    limits = np.iinfo(dtype)
    if array.size and not (dtype is np.uint64 and array.dtype == np.int64):  # seeds as int64: the same 64 bits
        least, greatest = int(array.min()), int(array.max())
        if least < limits.min or greatest > limits.max:
            wrong = least if least < limits.min else greatest
            raise Error(f"{name}: holds {wrong}; expected numbers in [{limits.min}, {limits.max}]")
    return flat(array, dtype)


def numbers(value: Any, name: str, size: int) -> np.ndarray:
    array = as_numpy(value, name)
    if array.dtype == object or array.dtype.kind not in "fiu":
        raise Error(f"{name}: has dtype {array.dtype}; expected numbers")
    if array.ndim == 0:
        array = np.full(size, array)
    if array.shape != (size,):
        raise Error(f"{name}: has shape {list(array.shape)}; expected [{size}] or one number")
    return flat(array, np.float32)


def recorded(value: Any, name: str, shapes: list[tuple[int, ...]]) -> np.ndarray:
    """Numbers of an engine as float64, flat: float32 and float64 as they are, a word w of uint32 is w / 2^32."""
    array = as_numpy(value, name)
    if array.dtype not in (np.float32, np.float64, np.uint32):
        raise Error(f"{name}: has dtype {array.dtype}; expected float32, float64 or uint32")
    if array.shape not in shapes:
        expected = " or ".join(str(list(shape)) for shape in shapes)
        raise Error(f"{name}: has shape {list(array.shape)}; expected {expected}")
    scale = 2.0**-32 if array.dtype == np.uint32 else 1.0
    return np.ascontiguousarray(array, dtype=np.float64).reshape(-1) * scale


def _fractions(value: Any, size: int) -> dict[str, np.ndarray]:
    """top_p [B] where some are of Fraction or Decimal, which are compared as they are; {} where none is."""
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    if not any(isinstance(one, (Fraction, Decimal)) for one in values):
        return {}
    if len(values) not in (1, size):
        raise Error(f"top_p: has {len(values)} numbers; expected {size} or one")
    for one in values:
        is_finite = not isinstance(one, Decimal) or one.is_finite()
        if not is_finite or (isinstance(one, (Fraction, Decimal))
                             and not (0 < one <= 1 and Fraction(one).denominator < 1 << 32)):
            raise Error(f"top_p: is {one}; expected a fraction in (0, 1] with a denominator below 2^32")
    exact = [Fraction(one) if isinstance(one, (Fraction, Decimal)) else None for one in values] * (size // len(values))
    return {"top_p": numbers(np.array([float(one) for one in values] * (size // len(values))), "top_p", size),
            "top_p_numerator": np.array([0 if one is None else one.numerator for one in exact], np.uint32),
            "top_p_denominator": np.array([0 if one is None else one.denominator for one in exact], np.uint32)}


def parameters(given: dict[str, Any], size: int, others: Iterable[str]) -> dict[str, Any]:
    """Sampling parameters [B], and the settings of the whole call. others: names that are taken beside them."""
    out: dict[str, Any] = {}
    for name, value in given.items():
        if name in SETTINGS:
            out[name] = value
        elif name == "top_p" and (exact := _fractions(value, size)):
            out.update(exact)
        elif name in PARAMETERS:
            dtype = PARAMETERS[name][0]
            out[name] = numbers(value, name, size) if dtype is np.float32 else integers(value, name, dtype, size)
        else:
            known = ", ".join([*PARAMETERS, *SETTINGS, *others])
            raise Error(f"{name}: is no sampling parameter; expected one of {known}")
    return out
