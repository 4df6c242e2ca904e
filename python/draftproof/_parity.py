"""Logits of a torch model, recorded as it runs: what `draftproof parity` compares (docs/parity.md)."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any, Optional, Sequence, Union

import numpy as np

from ._core import Error


class LogitsRecorder:
    """Records every row of logits that `model` puts out while it is open; the file is written when it closes without an
    exception. Made by record_logits."""

    def __init__(self, model: Any, path: Union[str, "os.PathLike[str]"], requests: Optional[Sequence[int]],
                 draft_positions: bool) -> None:
        self.path = Path(path)
        self.requests = requests  # number of each sequence of the batch; may be set between calls
        self._model, self._draft_positions = model, draft_positions
        self._rows: dict[tuple[int, int], tuple[np.ndarray[Any, Any], int]] = {}
        self._lengths: dict[int, int] = {}
        self._dtype = ""
        self._handle: Any = None

    def __enter__(self) -> "LogitsRecorder":
        self._handle = self._model.register_forward_hook(self._record, with_kwargs=True)
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        self._handle.remove()
        if kind is None:
            self._write()

    def _record(self, _model: Any, args: Any, kwargs: dict[str, Any], output: Any) -> None:
        logits = getattr(output, "logits", output)
        if getattr(logits, "ndim", 0) != 3:
            raise Error(f"the model's output has logits of shape {tuple(getattr(logits, 'shape', ()))}; expected [B, "
                        "S, V]")
        dtype = str(logits.dtype).removeprefix("torch.")
        values = logits.detach().float().cpu().numpy()
        batch, length = values.shape[:2]
        requests = list(range(batch)) if self.requests is None else list(self.requests)
        if len(requests) != batch:
            raise Error(f"requests names {len(requests)} sequences; expected {batch}, one for each of the batch")
        inputs = kwargs.get("input_ids", args[0] if args else None)
        read = length if inputs is None else inputs.shape[1]  # generate() asks for the last rows of a prompt alone
        positions = self._positions(kwargs, requests, read)
        mask = kwargs.get("attention_mask")
        for b, request in enumerate(requests):
            self._lengths[request] = int(positions[b][-1]) + 1
            for row in range(length):
                place = int(positions[b][read - length + row])
                if mask is not None and getattr(mask, "ndim",
                                                0) == 2 and not bool(mask[b, mask.shape[1] - length + row]):
                    continue  # padding
                self._rows[request, place] = (values[b, row], row)
        self._dtype = dtype if self._dtype in ("", dtype) else "float32"

    def _positions(self, kwargs: dict[str, Any], requests: list[int], read: int) -> Any:
        for name in ("position_ids", "cache_position"):
            given = kwargs.get(name)
            if given is None:
                continue
            rows = np.asarray(given.detach().cpu() if hasattr(given, "detach") else given)
            return np.broadcast_to(rows, (len(requests), read))
        grows = any(kwargs.get(name) is not None for name in ("past_key_values", "cache"))
        return [np.arange(read) + (self._lengths.get(request, 0) if grows else 0) for request in requests]

    def _write(self) -> None:
        if not self._rows:
            raise Error(f"nothing was recorded for {self.path}; expected a call of the model inside the with block")
        places = sorted(self._rows)
        logits = np.stack([self._rows[place][0] for place in places])
        kind, form = {"bfloat16": ("BF16", np.dtype("<u2")), "float16": ("F16", np.dtype("<f2"))}.get(self._dtype,
                ("F32", np.dtype("<f4")))
        stored = (np.ascontiguousarray(logits, "<f4").view("<u4") >> 16 if kind == "BF16" else logits).astype(form)
        tensors = [("logits", kind, stored), ("positions", "I64", np.array([place[1] for place in places], "<i8")),
                   ("requests", "I64", np.array([place[0] for place in places], "<i8"))]
        if self._draft_positions:
            tensors.append(("draft_positions", "I64", np.array([self._rows[place][1] for place in places], "<i8")))
        tensors.sort(key=lambda tensor: -tensor[2].itemsize)  # so that each lies at a multiple of its size
        header, offset = {}, 0
        for name, dtype, array in tensors:
            header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
            offset += array.nbytes
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        part = self.path.with_name(self.path.name + ".part")
        with open(part, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for _, _, array in tensors:
                file.write(array.tobytes())
        os.replace(part, self.path)


def record_logits(model: Any, path: Union[str, "os.PathLike[str]"], *, requests: Optional[Sequence[int]] = None,
                  draft_positions: bool = False) -> LogitsRecorder:
    """A context in which every row of logits that a torch model puts out is kept, and written to `path` for
    draftproof.parity.

    model: a torch module whose output, or its .logits, is [B, S, V]; called with position_ids or cache_position, or
    plainly from position 0 on, each call with past_key_values behind the one before. requests [B]: numbers of the
    batch's sequences (default 0, 1, ...); recorder.requests may change between calls. draft_positions: the row in its
    call is kept as the row of a verification step. Of a place that is computed twice the last row counts; padding by
    attention_mask is left out.
    Error: another shape, other numbers of requests, nothing recorded."""
    return LogitsRecorder(model, path, requests, draft_positions)
