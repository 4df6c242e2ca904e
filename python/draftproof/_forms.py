"""Arguments into the form that the extension module takes: shapes, dtypes, layouts, each refused by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

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
}
SETTINGS = ("filter_order", "ties", "nan_policy")


def on_host(value: Any) -> Any:
    """The array itself, or a copy in host memory of one that lies on another device."""
    device = getattr(value, "__dlpack_device__", None)
    if device is None or isinstance(value, np.ndarray):
        return value
    if int(device()[0]) in (1, 3):  # host memory, also pinned
        return value.detach() if getattr(value, "requires_grad", False) else value
    if hasattr(value, "cpu"):
        return value.detach().cpu()
    return np.asarray(value)


def rows(value: Any, name: str, vocab_size: int | None = None) -> Any:
    """Rows [n, V] of float32, float16 or bfloat16 without a copy where their elements lie side by side. Float64 is
    rounded to float32."""
    array = on_host(value)
    if not hasattr(array, "__dlpack__") or isinstance(array, (list, tuple)):
        array = as_numpy(array, name)
    if str(array.dtype) == "bfloat16" and isinstance(array, np.ndarray):  # numpy cannot hand that type on
        array = array.astype(np.float32)
    if isinstance(array, np.ndarray):
        if array.dtype == object or array.dtype.kind not in "fiu":
            raise Error(f"{name}: has dtype {array.dtype}; expected float32, float16, bfloat16 or float64")
        if array.dtype not in (np.float32, np.float16) or not array.dtype.isnative:
            array = array.astype(np.float32)
    elif "float64" in str(array.dtype):
        array = as_numpy(array, name).astype(np.float32)
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
            array = np.ascontiguousarray(array)
        if not array.flags.aligned or apart % array.itemsize:
            array = array.copy()
        return array
    if hasattr(array, "stride") and callable(array.stride) and array.stride()[1] != 1 and shape[1] > 1:
        array = array.contiguous()
    return array


def as_numpy(value: Any, name: str) -> np.ndarray:
    value = on_host(value)
    try:
        return np.asarray(value)
    except (ValueError, TypeError) as error:
        raise Error(f"{name}: is no array: {error}") from None


def integers(value: Any, name: str, dtype: Any, size: int | None = None) -> np.ndarray:
    """A contiguous array [n] of whole numbers of this dtype; a scalar is repeated where the size is known."""
    array = as_numpy(value, name)
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
    return np.ascontiguousarray(array.astype(dtype, copy=False))


def numbers(value: Any, name: str, size: int) -> np.ndarray:
    array = as_numpy(value, name)
    if array.dtype == object or array.dtype.kind not in "fiu":
        raise Error(f"{name}: has dtype {array.dtype}; expected numbers")
    if array.ndim == 0:
        array = np.full(size, array)
    if array.shape != (size,):
        raise Error(f"{name}: has shape {list(array.shape)}; expected [{size}] or one number")
    return np.ascontiguousarray(array, dtype=np.float32)


def parameters(params: Any, given: dict[str, Any], size: int) -> dict[str, Any]:
    """Sampling parameters [B] from a dict and from keywords, and the settings of the whole call."""
    if params is not None and not isinstance(params, Mapping):
        raise Error(f"params: is {type(params).__name__}; expected a dict of arrays or numbers by name")
    merged = dict(params) if params is not None else {}
    merged.update({name: value for name, value in given.items() if value is not None})
    out: dict[str, Any] = {}
    for name, value in merged.items():
        if name in SETTINGS:
            out[name] = str(value)
        elif name in PARAMETERS:
            if value is None:
                continue
            dtype = PARAMETERS[name][0]
            out[name] = integers(value, name, dtype, size) if dtype is np.int32 else numbers(value, name, size)
        else:
            raise Error(f"{name}: is no sampling parameter; expected one of {', '.join([*PARAMETERS, *SETTINGS])}")
    return out


def ragged(lists: Any, name: str, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Lists of token ids, one a request, as one array and its offsets [B + 1]."""
    if len(lists) != size:
        raise Error(f"{name}: has {len(lists)} lists; expected {size}, one a request")
    parts = [integers(np.asarray(part, dtype=np.int64) if len(part) == 0 else part, f"{name}[{b}]", np.int32)
             for b, part in enumerate(lists)]
    offsets = np.zeros(size + 1, np.int64)
    np.cumsum([part.size for part in parts], out=offsets[1:])
    return (np.concatenate(parts) if parts else np.zeros(0, np.int32)), offsets


def histories(prompt_tokens: Any, output_tokens: Any, size: int) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if prompt_tokens is not None:
        out["prompt_tokens"], out["prompt_offsets"] = ragged(prompt_tokens, "prompt_tokens", size)
    if output_tokens is not None:
        out["output_tokens"], out["output_offsets"] = ragged(output_tokens, "output_tokens", size)
    return out


def masks(allowed: Any, n_rows: int, vocab_size: int) -> dict[str, Any]:
    """Booleans [rows, V] as the bits of words."""
    if allowed is None:
        return {}
    array = as_numpy(allowed, "allowed")
    if array.dtype != np.bool_ or array.shape != (n_rows, vocab_size):
        raise Error(f"allowed: is {array.dtype} {list(array.shape)}; expected booleans [{n_rows}, {vocab_size}]")
    words = -(-vocab_size // 32)
    padded = np.zeros((n_rows, 32 * words), np.bool_)
    padded[:, :vocab_size] = array
    return {"allowed_masks": np.packbits(padded, axis=1, bitorder="little").reshape(-1).view("<u4").astype(np.uint32)}


def offsets(cu_num_draft_tokens: Any, requests: int | None, drafts: int) -> np.ndarray:
    """[B + 1] from 0: given so, or as inclusive sums [B]."""
    given = integers(cu_num_draft_tokens, "cu_num_draft_tokens", np.int64)
    from_zero = given.size == requests + 1 if requests is not None else bool(given.size) and given[0] == 0
    if requests is not None and given.size not in (requests, requests + 1):
        raise Error(f"cu_num_draft_tokens: has shape [{given.size}]; expected [{requests}], inclusive sums, "
                    f"or [{requests + 1}], from 0")
    out = given if from_zero else np.concatenate([np.zeros(1, np.int64), given])
    if out[0] != 0 or (np.diff(out) < 0).any() or out[-1] != drafts:
        raise Error(f"cu_num_draft_tokens: is {given[:8].tolist()}{'...' if given.size > 8 else ''}; expected sums "
                    f"that ascend to {drafts}, the number of draft tokens")
    return np.ascontiguousarray(out)
