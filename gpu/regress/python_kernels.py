"""The Python side of `draftproof regress --python MODULE[:FUNCTION]`: calls of gpu/draftproof_kernels.h come through a
pipe and are answered by functions, which get the arrays that their parameters name (docs/your_kernel.md)."""

import importlib
import importlib.util
import inspect
import json
import operator
import os
import sys

import numpy as np

_ROWS = ("logits", "temperature", "top_k", "top_p", "min_p", "params")
_DRAFTS = ("draft_tokens", "cu_num_draft_tokens", "target_probs", "draft_probs", "draft_len_max", "seeds", "steps",
           "coins", "draws")
#: What a function of each call may take.
TAKES = {
    "filter": _ROWS,
    "sample": (*_ROWS, "seeds", "steps", "uniforms"),
    "verify_chain": _DRAFTS,
    "verify_block": _DRAFTS,
    "verify_tree": (*_DRAFTS, "parents"),
    "guidance": ("conditional", "unconditional", "scale"),
    "tree_mask": ("cu_num_draft_tokens", "parents", "draft_len_max", "words_per_row"),
}
#: Where a parameter of a row changes nothing.
OFF = {"temperature": 1, "top_k": 0, "top_p": 1, "min_p": 0}
OWN, GIVEN = 0, 1


class Failure(Exception):
    """What a function did wrong, and where."""

    def __init__(self, where, what):
        super().__init__(what)
        self.where = where


class Kernel:
    """A function and what it takes: a Python function, a torch.library.custom_op, or an operator of torch.ops."""

    def __init__(self, call, name, function):
        self.call, self.function = call, function
        schema = getattr(getattr(function, "default", None), "_schema", None)
        if schema is not None:
            parameters, self.on_tensors = {argument.name: argument.has_default_value()
                                           for argument in schema.arguments}, True
        else:
            signature = inspect.signature(getattr(function, "_init_fn", function))
            named = [p for p in signature.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
            parameters = {p.name: p.default is not p.empty for p in named}
            self.on_tensors = any("Tensor" in str(p.annotation) for p in named)
        unknown = [p for p, has_default in parameters.items() if p not in TAKES[call] and not has_default]
        if unknown:
            raise ValueError(f"{name} takes {unknown[0]}, which {call} has not; expected some of "
                             f"{', '.join(TAKES[call])}")
        self.takes = [p for p in parameters if p in TAKES[call]]
        if not self.takes:
            raise ValueError(f"{name} takes nothing of {call}; expected some of {', '.join(TAKES[call])}")

    def lacks(self, parameter):
        return parameter in TAKES[self.call] and parameter not in self.takes and "params" not in self.takes

    @property
    def numbers(self):
        if self.call != "sample" and not self.call.startswith("verify"):
            return None
        return GIVEN if {"uniforms", "coins", "draws"} & set(self.takes) else OWN

    def __call__(self, values):
        keywords = {name: values[name] for name in self.takes}
        if "seeds" in keywords and "steps" not in keywords:  # the calls have several steps of a seed
            keywords["seeds"] = values["seeds"] ^ values["steps"] * np.uint64(0x9E3779B97F4A7C15)
        if self.on_tensors:
            keywords = {name: _tensors(value) for name, value in keywords.items()}
        return self.function(**keywords)


def _tensors(value):
    import torch

    if isinstance(value, dict):
        return {name: _tensors(one) for name, one in value.items()}
    if not isinstance(value, np.ndarray):
        return value
    # Operators take few unsigned types.
    signed = {"uint64": np.int64, "uint32": np.int32}.get(value.dtype.name)
    return torch.from_numpy(value.view(signed) if signed else value)


def _array(value):
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = (value.float() if value.is_floating_point() else value).numpy()
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], (list, tuple)):
        width = max(map(len, value))
        value = [[*row, *[-1] * (width - len(row))] for row in value]
    return np.asarray(value)


def _of_shape(name, value, shape):
    array = _array(value)
    if array.shape != shape:
        raise Failure(name, f"has the shape {list(array.shape)}; expected {list(shape)}")
    return array


def values_of(call, vocab_size, arrays):
    """The arrays as the functions get them: rows [n, vocab_size], with the strides that they have."""
    values = dict(arrays)
    if call == "tree_mask":
        rows = len(arrays["parents"]) + len(arrays["cu_num_draft_tokens"]) - 1
        values["words_per_row"] = len(arrays["mask"]) // rows
    else:
        matrices = [name for name in ("logits", "target_probs", "draft_probs", "conditional", "unconditional")
                    if name in arrays]
        rows = {"logits": "temperature", "conditional": "scale"}.get(matrices[0])
        rows = len(arrays[rows]) if rows else len(arrays["draft_tokens"]) + len(arrays["draws"])
        stride = len(arrays[matrices[0]]) // rows
        values.update({name: arrays[name].reshape(-1, stride)[:, :vocab_size] for name in matrices})
    if "cu_num_draft_tokens" in arrays:
        values["draft_len_max"] = int(np.diff(arrays["cu_num_draft_tokens"]).max())
        values.setdefault("draft_probs", None)
    values["params"] = {name: arrays[name] for name in OFF if name in arrays}
    return values


def take_result(call, result, values, arrays):
    """Writes what a function returned into the outputs."""
    if call in ("filter", "guidance"):
        name, rows = ("filtered", values["logits"]) if call == "filter" else ("out", values["conditional"])
        arrays[name].reshape(len(rows), -1)[:, : rows.shape[1]] = _of_shape(name, result, rows.shape)
    elif call == "sample":
        arrays["tokens"][:] = _of_shape("tokens", result, arrays["tokens"].shape)
    elif call == "tree_mask":
        rows = len(arrays["mask"]) // values["words_per_row"]
        mask = _array(result)
        if mask.dtype == bool:  # [rows, tokens]
            padded = np.zeros((len(mask), 32 * values["words_per_row"]), dtype=bool)
            padded[:, : mask.shape[1]] = mask
            mask = np.packbits(padded, axis=1, bitorder="little").view(np.uint32)
        arrays["mask"][:] = _of_shape("mask", mask, (rows, values["words_per_row"])).ravel()
    else:
        requests = len(arrays["num_accepted"])
        parts = list(result) if isinstance(result, tuple) else [result]
        expected = 2 if call == "verify_tree" else 1
        if len(parts) != expected:
            raise Failure("tokens",
                          f"come as {len(parts)} results; expected {'(tokens, path)' if expected == 2 else 'tokens'}")
        tokens = _of_shape("tokens", parts[0], (requests, values["draft_len_max"] + 1))
        arrays["tokens"][:] = tokens.ravel()
        arrays["num_accepted"][:] = (tokens >= 0).sum(axis=1) - 1
        if expected == 2:
            arrays["path"][:] = _of_shape("path", parts[1], (requests, values["draft_len_max"])).ravel()


def answer(kernel, header, arrays):
    """The outputs have been written; or why not."""
    call, inputs = header["call"], [name for name, _, _, is_output in header["arrays"] if not is_output]
    if any(kernel.lacks(name) and np.any(arrays[name] != off) for name, off in OFF.items() if name in arrays):
        return {"unsupported": True}
    if call.startswith("verify") and "draft_probs" in arrays and "draft_probs" not in kernel.takes:
        return {"unsupported": True}
    before = {name: arrays[name].tobytes() for name in inputs}
    values = values_of(call, header["vocab_size"], arrays)
    try:
        take_result(call, kernel(values), values, arrays)
    except NotImplementedError:
        return {"unsupported": True}
    except Failure as failure:
        return {"where": failure.where, "error": str(failure)}
    except Exception as error:
        return {"where": call, "error": f"{type(error).__name__}: {error}"}
    changed = next((name for name in inputs if arrays[name].tobytes() != before[name]), None)
    return {"where": changed, "error": "the call wrote to this input"} if changed else {}


def kernels_of(what, call):
    """Those of MODULE, by the names of the calls, or one MODULE:FUNCTION. A module is a name or a file."""
    module_name, _, function_name = what.rpartition(":") if ":" in what else (what, "", "")
    if module_name.endswith(".py"):
        spec = importlib.util.spec_from_file_location(os.path.basename(module_name)[:-3], module_name)
        module = importlib.util.module_from_spec(spec)
        sys.path.insert(0, os.path.dirname(os.path.abspath(module_name)))
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(module_name)
    if function_name:
        function = operator.attrgetter(function_name)(module)
        call = call or function_name
        if call not in TAKES:
            raise ValueError(f"{function_name} is no call's name; expected --call with one of {', '.join(TAKES)}")
        return {call: Kernel(call, function_name, function)}
    found = {name: Kernel(name, name, getattr(module, name)) for name in TAKES if callable(getattr(module, name, None))}
    if not found:
        raise ValueError(f"{module_name} has no function of the name of a call; expected some of {', '.join(TAKES)}, "
                         "or MODULE:FUNCTION")
    return found


def description_of(what, kernels):
    numbers = {kernel.numbers for kernel in kernels.values()} - {None}
    if len(numbers) > 1:
        raise ValueError("some functions take the random numbers (uniforms, coins, draws) and others seeds; expected "
                         "one or the other")
    without = [name for name in OFF if any(kernel.lacks(name) for kernel in kernels.values())]
    return {"name": what, "numbers": max(numbers, default=OWN), "calls": list(kernels), "without": without}


def serve(requests, answers, kernels):
    while line := requests.readline():
        header, arrays = json.loads(line), {}
        for name, kind, size, _ in header["arrays"]:
            arrays[name] = np.frombuffer(bytearray(requests.read(size)), dtype=kind)
        said = answer(kernels[header["call"]], header, arrays)
        answers.write(json.dumps(said).encode() + b"\n")
        if not said:
            for name, _, _, is_output in header["arrays"]:
                if is_output:
                    answers.write(arrays[name].tobytes())
        answers.flush()


def main(what, call):
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what functions print is no answer
    sys.path.insert(0, os.getcwd())
    try:
        kernels = kernels_of(what, call)
        said = description_of(what, kernels)
    except Exception as error:
        said = {"error": f"cannot be tested: {type(error).__name__}: {error}"}
    answers.write(json.dumps(said).encode() + b"\n")
    answers.flush()
    if "error" not in said:
        serve(requests, answers, kernels)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
