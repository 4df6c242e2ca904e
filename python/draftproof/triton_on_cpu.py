"""Lets Triton kernels run on a CPU, unedited, in Triton's own interpreter.

    from draftproof import triton_on_cpu
    triton_on_cpu.install()   # before anything imports Triton
    from vllm.v1.worker.gpu.sample.gumbel import gumbel_sample   # takes CPU tensors now

The interpreter (TRITON_INTERPRET=1) turns every program of a grid into numpy. Some things stand between it and the
kernels of an engine:

* Engines switch Triton off where they see no GPU. They leave it on where the list of visible devices is empty, as it is
  in a worker that has not been given its device yet: so CUDA_VISIBLE_DEVICES is set, and empty.
* The variable of a loop over a range is a Python integer, where a compiler makes it a scalar of Triton:
`row.to(tl.int64)`
  fails, and sums do not wrap. The loops are rewritten to begin by making it one.
* A variable cannot be set to None, as kernels do whose optional pointers are not given.
* A grid may not be a list.
* Functions of libdevice give None. Those of one number that numpy has (LIBDEVICE) are numpy's.
* Each call of one jitted function by another patches all of triton.language again. Everything in this process is
interpreted,
  so it is patched once for each module and never restored. With what `_quicken` does small kernels take a third of the
  time (`python -m draftproof.triton_on_cpu` measures it), and no bit of a result changes.

What it cannot show: races, barriers, warps and a GPU's own rounding: reductions are numpy's pairwise sums, scans are
sequential, exp and log are numpy's.
"""

from __future__ import annotations

import ast
import dataclasses
import math
import os
from typing import Any

LIBDEVICE = ("ceil", "exp", "exp2", "expm1", "fabs", "floor", "log", "log1p", "log2", "sqrt", "tanh")


class _Kept:
    def restore(self) -> None:
        """Nothing: the patches stay."""


def install(quick: bool = True) -> None:
    os.environ["TRITON_INTERPRET"] = "1"
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    from triton.runtime import interpreter

    class WithLoops(interpreter.ASTTransformer):
        def visit_For(self, node: ast.For) -> ast.For:
            self.generic_visit(node)
            called = node.iter.func if isinstance(node.iter, ast.Call) else None
            name = getattr(called, "attr", getattr(called, "id", ""))
            if name == "range" and isinstance(node.target, ast.Name):
                scalar = ast.parse(f"{node.target.id} = interpreter_semantic.to_tensor({node.target.id}, "
                                   "False)").body[0]
                node.body.insert(0, ast.fix_missing_locations(ast.copy_location(scalar, node)))
            return node

    interpreter.FunctionRewriter.ast_transformer = WithLoops()
    to_tensor = interpreter.interpreter_semantic.to_tensor
    interpreter.interpreter_semantic.to_tensor = lambda x, check_type=True: None if x is None else to_tensor(x,
            check_type)
    initialize = interpreter.GridExecutor.__init__

    def with_tuple(self: Any, fn: Any, arg_names: Any, grid: Any, *more: Any) -> None:
        initialize(self, fn, arg_names, tuple(grid) if isinstance(grid, list) else grid, *more)

    interpreter.GridExecutor.__init__ = with_tuple
    _fill_libdevice(interpreter)
    if not quick:
        return
    _quicken(interpreter)
    patch = interpreter._patch_lang
    seen: dict[int, Any] = {}

    def patch_once(fn: Any) -> _Kept:
        names = fn.__globals__
        if id(names) not in seen:
            seen[id(names)] = names
            patch(fn)
        return _Kept()

    interpreter._patch_lang = patch_once
    numpy_types: dict[str, Any] = {}
    look_up = interpreter._get_np_dtype

    def numpy_type(triton_type: Any) -> Any:
        name = triton_type.scalar.name
        if name not in numpy_types:
            numpy_types[name] = look_up(triton_type)
        return numpy_types[name]

    interpreter._get_np_dtype = numpy_type


def _quicken(interpreter: Any) -> None:
    """The same results with less of Triton's own bookkeeping, which is most of the time of a small kernel: integers
    wrap as on a GPU and are not computed twice to see whether they do; shapes, types and constants are made once;
    operands that are alike are not made alike."""
    core, semantic = interpreter.tl.core, interpreter.interpreter_semantic
    builder = interpreter.interpreter_builder
    builder.options = dataclasses.replace(builder.options, sanitize_overflow=False)
    shapes: dict[tuple[int, ...], tuple[Any, Any]] = {}
    blocks: dict[tuple[str, int], Any] = {}

    def shape_of(type: Any) -> tuple[Any, Any]:
        """Its shape and number of elements, as a tensor has them."""
        if "shape_of_tensor" not in type.__dict__:
            shape = tuple(type.shape) if type.is_block() else ()
            if shape not in shapes:
                shapes[shape] = tuple([core.constexpr(s) for s in shape]), core.constexpr(math.prod(shape))
            type.shape_of_tensor = shapes[shape]
        return type.shape_of_tensor

    def initialize(self: Any, handle: Any, type: Any) -> None:
        self.handle, self.type, self.dtype = handle, type, type.scalar
        self.shape, self.numel = shape_of(type)

    def with_element(self: Any, scalar: Any) -> Any:
        key = (scalar.name, id(shape_of(self)))
        if key not in blocks:
            blocks[key] = core.block_type(scalar, self.shape)
        return blocks[key]

    core.tensor.__init__ = initialize
    core.block_type.with_element_ty = with_element
    check = semantic.binary_op_type_checking_impl
    plain = {"fp32", "int32", "uint32", "int64", "uint64"}
    constants: dict[Any, Any] = {}

    def alike(lhs: Any, rhs: Any, *more: Any, **flags: Any) -> tuple[Any, Any]:
        if not isinstance(lhs, core.tensor) or lhs.dtype.name not in plain:
            return check(lhs, rhs, *more, **flags)
        if isinstance(rhs, core.tensor):
            same = lhs.shape is rhs.shape and lhs.dtype == rhs.dtype
            return (lhs, rhs) if same else check(lhs, rhs, *more, **flags)
        key = (rhs, type(rhs), lhs.dtype.name, id(lhs.shape), *more, *flags.items())
        if key not in constants:
            found = check(lhs, rhs, *more, **flags)
            if found[0] is not lhs:
                return found
            found[1].handle.data.flags.writeable = False
            constants[key] = found[1]
        return lhs, constants[key]

    semantic.binary_op_type_checking_impl = alike


def _fill_libdevice(interpreter: Any) -> None:
    import numpy as np
    import triton.language as tl
    from triton.language.extra import libdevice

    def elementwise(function: Any) -> Any:
        def apply(x: Any, **_: Any) -> Any:
            return tl.core.tensor(interpreter.TensorHandle(function(x.handle.data), x.dtype), x.type)

        return apply

    for name in LIBDEVICE:
        setattr(libdevice, name, elementwise(getattr(np, name)))


def _measure(quick: bool) -> float:
    """Seconds of 64 programs that draw with Philox."""
    import time

    install(quick)
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def draw(out_ptr, seed):
        offsets = tl.program_id(0) * 32 + tl.arange(0, 32)
        tl.store(out_ptr + offsets, tl.rand(seed, offsets))

    out = torch.empty(64 * 32)
    draw[(64,)](out, 1)
    begin = time.perf_counter()
    draw[(64,)](out, 1)
    return time.perf_counter() - begin


if __name__ == "__main__":
    before = _measure(False)
    print(f"64 programs: {before:.3f} s, made quick {_measure(True):.3f} s")
