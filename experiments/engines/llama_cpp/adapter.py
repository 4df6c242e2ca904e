"""llama.cpp's samplers on the CPU, nothing replaced: its C functions, out of the library of the package xllamacpp."""

import ctypes
import importlib.util
import sys
from pathlib import Path

import numpy as np
import xllamacpp
from component import Component, mixed, with_probabilities

sys.path.append(str(Path(__file__).resolve().parent))
import table_model  # noqa: E402

library = ctypes.CDLL(str(next(Path(importlib.util.find_spec("xllamacpp").origin).parent.glob("*.so"))))
table_model.declare(library)


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
        ("init_xtc", pointer, f32, f32, size, u32)):
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


class Vector(ctypes.Structure):
    """std::vector: what the C++ functions of common/sampling.h take and give."""

    _fields_ = [("begin", pointer), ("end", pointer), ("capacity", pointer)]

    def __init__(self, array=None):
        super().__init__()
        if array is not None:
            self.array = np.ascontiguousarray(array)
            self.begin = self.array.ctypes.data
            self.end = self.capacity = self.begin + self.array.nbytes


def common(name, result, *arguments):
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments
    return function


vectors = ctypes.POINTER(Vector)
ints, q_rows = "RKSt6vectorIiSaIiEE", "RKS3_IS3_I16llama_token_dataSaIS8_EESaISA_EE"
sampler_init = common("_Z19common_sampler_initPK11llama_modelR22common_params_sampling", pointer, pointer, pointer)
sampler_free = common("_Z19common_sampler_freeP14common_sampler", None, pointer)
sample_and_match = common(f"_Z34common_sampler_sample_and_accept_nP14common_samplerP13llama_context{ints}S7_b", pointer,
                          vectors, pointer, pointer, vectors, vectors, ctypes.c_bool)
reject = common(f"_Z44common_sampler_sample_and_accept_n_rejectionP14common_samplerP13llama_context{ints}S7_{q_rows}b", pointer,
                vectors, pointer, pointer, vectors, vectors, vectors, ctypes.c_bool)
delete = common("_ZdlPv", None, pointer)
sampling = xllamacpp.CommonParams().sampling
sampling.samplers = "temperature;top_k;top_p;min_p"  # temperature first, as the cases mean their cuts
SAMPLING = ctypes.c_void_p.from_address(id(sampling) + 24).value  # where the engine's own object is
models = {}


def verify(rejects, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
    """Each request as llama-server verifies it: the rows are decoded, then one sampler of the request draws and accepts."""
    vocab_size = target_logits.shape[1]
    model = models.setdefault(vocab_size, table_model.TableModel(library))
    places = model.decode(target_logits).astype(np.int32)
    lens = np.diff(cu_num_draft_tokens, prepend=0)
    out = np.full((len(lens), lens.max() + 1), -1, np.int64)
    for b, (length, end) in enumerate(zip(lens, cu_num_draft_tokens)):
        sampling.seed = mixed(seeds[b])
        sampling.temp, sampling.top_k, sampling.top_p, sampling.min_p = values(params, b)
        sampler = sampler_init(model.model, SAMPLING)
        at, drafts = Vector(places[end - length + b:end + b + 1]), Vector(draft_tokens[end - length:end].astype(np.int32))
        found = Vector()
        if rejects:
            kept = []
            for q in draft_probs[end - length:end]:
                row = np.zeros(vocab_size, token_data)
                row["id"], row["p"] = np.arange(vocab_size), q
                kept.append(Vector(row[q > 0.0]))
            each = (Vector * max(1, len(kept)))(*kept)
            begin = ctypes.addressof(each)
            every = Vector()
            every.begin, every.end = begin, begin + len(kept) * ctypes.sizeof(Vector)
            reject(found, sampler, model.context, at, drafts, every, False)
        else:
            sample_and_match(found, sampler, model.context, at, drafts, False)
        count = (found.end - found.begin) // 4
        out[b, :count] = np.ctypeslib.as_array(ctypes.cast(found.begin, ctypes.POINTER(i32)), (count,))
        delete(found.begin)
        sampler_free(sampler)
    return out


def components():
    source, speculative = "src/llama-sampler.cpp", "common/sampling.cpp"
    seeds = "a seed of 64 bits is mixed into the 32 that init_dist takes"
    model = "the rows are the logits of a model made for them, which llama_decode runs; a sampler is made for each step"
    xtc = XtcChains()
    return [
        Component("filters", source, "llama_sampler_init_temp, _top_k, _top_p, _min_p; llama_sampler_apply", "filter",
                  filter_rows),
        Component("filters and draw", source, "the same with llama_sampler_init_dist", "sample", sample, note=seeds),
        Component("XTC and draw, one seed", source, "the same with llama_sampler_init_xtc", "sample", xtc,
                  options={"distribution": xtc.distribution},
                  note=f"{seeds}; XTC and the final draw get the request's seed, as llama.cpp's own common_sampler_init "
                  "gives it to both"),
        Component("speculative: sample and match", speculative, "common_sampler_sample_and_accept_n", "verify",
                  lambda *a: verify(False, *a), tv=0.1, note=f"{model}; {seeds}"),
        Component("speculative: rejection", speculative, "common_sampler_sample_and_accept_n_rejection", "verify",
                  lambda *a: verify(True, *a), tv=0.1, options=with_probabilities(), note=f"{model}; {seeds}"),
    ]
