#!/usr/bin/env python3
"""Writes the files of tests/vectors/safetensors with the `safetensors` Python package.

They are committed, so this is run only to change them:
    python3 -m venv venv && venv/bin/pip install safetensors numpy ml_dtypes
    venv/bin/python tests/base/archives/make_safetensors_fixtures.py
What they hold is repeated, by hand, in tests/base/archives/safetensors_test.cpp. Last written with safetensors 0.8.0.
"""

import pathlib

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "vectors" / "safetensors"


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    save_file(
        {
            "f64": np.array([0.1, -np.inf], dtype=np.float64),
            "f32": np.array([[1.5, -2.25, 1e-45], [0.0, -0.0, 3.0e38]], dtype=np.float32),
            "f16": np.array([1.0, 65504.0, 2.0**-24], dtype=np.float16),
            "bf16": np.array([1.0, -3.0, 2.0**-133], dtype=ml_dtypes.bfloat16),
            "f8_e4m3": np.array([1.0, 448.0], dtype=ml_dtypes.float8_e4m3fn),
            "f8_e5m2": np.array([1.0, 57344.0], dtype=ml_dtypes.float8_e5m2),
            "i64": np.array([-(2**63), 2**63 - 1], dtype=np.int64),
            "u64": np.array([2**64 - 1, 0], dtype=np.uint64),
            "i32": np.array([-1, 2**31 - 1, -(2**31)], dtype=np.int32),
            "u32": np.array([2**32 - 1], dtype=np.uint32),
            "i16": np.array([-(2**15), 258], dtype=np.int16),
            "u16": np.array([2**16 - 1, 258], dtype=np.uint16),
            "i8": np.array([-128, 127, 5], dtype=np.int8),
            "u8": np.array([255, 0, 7], dtype=np.uint8),
            "bool": np.array([[True], [False], [True]]),
        },
        FOLDER / "every_dtype.safetensors",
    )
    save_file(
        {
            "scalar": np.array(-7, dtype=np.int32),
            "empty": np.zeros([0], dtype=np.float32),
            "empty_rows": np.zeros([3, 0, 2], dtype=np.int64),
            "\u00e9t\u00e9 \u2192 \"quoted\\name\"": np.array([1, 2], dtype=np.uint8),
        },
        FOLDER / "empty_and_scalar.safetensors",
        metadata={"verifier": "chain \u2713"},
    )
    save_file({}, FOLDER / "only_metadata.safetensors", metadata={"version": "0.1", "note": "line\nbreak"})


if __name__ == "__main__":
    main()
