"""What `reproducible=True` demands: a token is made by its row, its parameters and its seed alone, in any batch, call
and process, and another seed makes another stream."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from typing import Any, Callable

import numpy as np

from ..cases.sample_cases import params_of

#: Rows of a call; equal tokens of all of SEEDS pairs of seeds come by chance with SIZE^-SEEDS.
ROWS, SIZE, SEEDS = 48, 2048, 8
#: (logits, params, seeds) -> a token of each row; None where the callable does not take them.
Called = Callable[[np.ndarray, dict[str, np.ndarray], np.ndarray], "np.ndarray | None"]

#: Run by a fresh interpreter: its standard input is (paths, the callable, arguments), its output the tokens.
OTHER_PROCESS = """
import pickle, sys
out = sys.stdout.buffer
paths, given = pickle.load(sys.stdin.buffer)
sys.path[:] = paths
import numpy as np
sampler, arguments = pickle.loads(given)
out.write(pickle.dumps(np.asarray(sampler(*arguments)).astype(np.int64)))
"""


def probes() -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
    """Logits, parameters and seeds of a call."""
    logits = np.random.default_rng(1).normal(size=(ROWS, SIZE)).astype(np.float32)
    every = np.arange(ROWS)
    params = params_of(ROWS, temperature=np.where(every % 3 == 0, 0.7, 1.0), top_k=np.where(every % 2, 200, 0),
                       top_p=np.where(every % 5, 1.0, 0.95), min_p=0.0)
    return logits, params, every.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(7)


def unreproduced(called: Called) -> str:
    """What differs, in words; '' if nothing does."""
    logits, params, seeds = probes()

    def of(rows: np.ndarray) -> np.ndarray | None:
        return called(logits[rows], {name: value[rows] for name, value in params.items()}, seeds[rows])

    every = np.arange(ROWS)
    first = of(every)
    if first is None:
        return ""
    for words, rows in (("in an equal call", every), ("in a batch of another order", every[::-1]),
                        ("in half of the batch", every[::2]),
                        ("alone", every[5:6]), ("in a batch that has rows twice", np.repeat(every, 2))):
        again = of(rows)
        if again is not None and (differ := int((again != first[rows]).sum())):
            return f"{differ} of {len(rows)} tokens are others with the same seeds {words}"
    flat = np.zeros((65 * SEEDS, SIZE), np.float32)
    base = np.random.default_rng(2).integers(0, 1 << 63, SEEDS, np.uint64)
    changed = np.concatenate([base, *(base ^ (np.uint64(1) << np.uint64(bit)) for bit in range(64))])
    drawn = called(flat, params_of(len(flat), temperature=1.0, top_k=0, top_p=1.0, min_p=0.0), changed)
    if drawn is not None:
        drawn = drawn.reshape(65, SEEDS)
        alike = [bit for bit in range(64) if (drawn[bit + 1] == drawn[0]).all()]
        if alike:
            return f"seeds that differ in bit {alike[0]} alone draw the same tokens" + (f", and in {len(alike) - 1} "
                                                                                        "other bits" if alike[1:]
                    else "")
    return ""


def in_another_process(sampler: Callable[..., Any], arguments: tuple[Any, ...], seconds: float) -> np.ndarray | None:
    """The tokens [B] of a fresh interpreter, whose strings hash otherwise; None where the callable cannot be brought
    there."""
    try:
        given = pickle.dumps((sys.path, pickle.dumps((sampler, arguments))))
    except Exception:  # a lambda, a closure, an object with a device
        return None
    environment = {**os.environ, "PYTHONHASHSEED": "12345" if os.environ.get("PYTHONHASHSEED") != "12345" else "54321"}
    try:
        ran = subprocess.run([sys.executable, "-c", OTHER_PROCESS], input=given, capture_output=True, timeout=seconds,
                             env=environment, check=True)
        return pickle.loads(ran.stdout)
    except (subprocess.SubprocessError, OSError, pickle.UnpicklingError, EOFError):
        return None
