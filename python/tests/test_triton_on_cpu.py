"""The module's shim for Triton kernels needs Triton where it is installed into it, and not before."""

import sys

import pytest

from draftproof import triton_on_cpu


def test_without_triton_the_shim_is_imported_and_says_what_is_missing(monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(ImportError, match="triton"):
        triton_on_cpu.install()
