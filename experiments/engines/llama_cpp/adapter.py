"""llama.cpp's samplers on the CPU, nothing replaced: its C functions, out of the library of the package xllamacpp."""

import ctypes
import importlib.util
from pathlib import Path

import numpy as np

from component import Component, mixed

library = ctypes.CDLL(str(next(Path(importlib.util.find_spec("xllamacpp").origin).parent.glob("*.so"))))


class TokenDataArray(ctypes.Structure):
    """llama_token_data_array of llama.h."""

    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t), ("selected", ctypes.c_int64),
                ("sorted", ctypes.c_bool)]


token_data = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])


class ChainParams(ctypes.Structure):
    _fields_ = [("no_perf", ctypes.c_bool)]


pointer, i32, u32, f32, size = ctypes.c_void_p, ctypes.c_int32, ctypes.c_uint32, ctypes.c_float, ctypes.c_size_t
for name, result, *arguments in (
        ("chain_init", pointer, ChainParams), ("chain_add", None, pointer, pointer), ("free", None, pointer),
        ("apply", None, pointer, ctypes.POINTER(TokenDataArray)), ("init_dist", pointer, u32), ("init_top_k", pointer, i32),
        ("init_top_p", pointer, f32, size), ("init_min_p", pointer, f32, size), ("init_temp", pointer, f32),
        ("init_greedy", pointer), ("init_xtc", pointer, f32, f32, size, u32)):
    function = getattr(library, f"llama_sampler_{name}")
    function.restype, function.argtypes = result, arguments


class Chain:
    """A sampler chain of one request: temperature first, as the cases mean their cuts."""

    def __init__(self, temperature, top_k, top_p, min_p, *last):
        self.chain = library.llama_sampler_chain_init(ChainParams(True))
        filters = [library.llama_sampler_init_temp(temperature), library.llama_sampler_init_top_k(top_k),
                   library.llama_sampler_init_top_p(top_p, 1), library.llama_sampler_init_min_p(min_p, 1)]
        for sampler in (*filters, *last):
            library.llama_sampler_chain_add(self.chain, sampler)

    def __del__(self):
        library.llama_sampler_free(self.chain)

    def apply(self, row):
        """What is left of the row, and which of it was selected."""
        data = np.zeros(len(row), token_data)
        data["id"], data["logit"] = np.arange(len(row)), row
        array = TokenDataArray(data.ctypes.data, len(row), -1, False)
        library.llama_sampler_apply(self.chain, ctypes.byref(array))
        address = (ctypes.c_char * (array.size * token_data.itemsize)).from_address(array.data)
        return np.frombuffer(address, token_data).copy(), array.selected


def values(params, i):
    given = [float(params["temperature"][i]), int(params["top_k"][i]), float(params["top_p"][i])]
    return [*given, float(params["min_p"][i]) if params.get("min_p") is not None else 0.0]


def filter_rows(logits, params):
    out = np.full(logits.shape, -np.inf, np.float32)
    for i, row in enumerate(logits):
        left, _ = Chain(*values(params, i)).apply(row)
        out[i, left["id"]] = left["logit"]
    return out


def sample(logits, params, seeds):
    tokens = []
    for i, row in enumerate(logits):
        last = library.llama_sampler_init_dist(mixed(seeds[i]))
        left, selected = Chain(*values(params, i), last).apply(row)
        tokens.append(left["id"][selected])
    return np.array(tokens)


class XtcChains:
    """Chains that live as long as a request, with XTC and the final draw from one seed, as `--seed` gives it to both."""

    probability, threshold = 0.5, 0.1

    def __init__(self):
        self.chains = {}

    def __call__(self, logits, params, seeds, steps=None):
        tokens = []
        if steps is None or not steps.any():
            self.chains.clear()
        for i, row in enumerate(logits):
            seed = key = mixed(seeds[i])
            if key not in self.chains:
                self.chains[key] = Chain(*values(params, i),
                                         library.llama_sampler_init_xtc(self.probability, self.threshold, 1, seed),
                                         library.llama_sampler_init_dist(seed))
            left, selected = self.chains[key].apply(row)
            tokens.append(left["id"][selected])
        return np.array(tokens)

    def distribution(self, logits, params):
        """XTC as its author defines it: with this probability all tokens above the threshold but the least likely of them
        go."""
        import draftproof

        whole = draftproof.process_rows(logits, params).probabilities.astype(np.float64)
        cut = whole.copy()
        for row, left in zip(whole, cut):
            above = np.flatnonzero(row >= self.threshold)
            if len(above) >= 2:
                left[above[row[above] > row[above].min()]] = 0.0
        cut /= cut.sum(axis=1, keepdims=True)
        return (self.probability * cut + (1.0 - self.probability) * whole).astype(np.float32)


def components():
    source = "src/llama-sampler.cpp"
    seeds = "a seed of 64 bits is mixed into the 32 that init_dist takes"
    xtc = XtcChains()
    return [
        Component("filters", source, "llama_sampler_init_temp, _top_k, _top_p, _min_p; llama_sampler_apply", "filter",
                  filter_rows),
        Component("filters and draw", source, "the same with llama_sampler_init_dist", "sample", sample, note=seeds),
        Component("XTC and draw, one seed", source, "the same with llama_sampler_init_xtc", "sample", xtc,
                  options={"distribution": xtc.distribution},
                  note=f"{seeds}; XTC and the final draw get the request's seed, as llama.cpp's own common_sampler_init "
                  "gives it to both"),
    ]
