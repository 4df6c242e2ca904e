"""C and C++ functions of llama.cpp, out of the library of the package xllamacpp."""

import ctypes
import importlib.util
from pathlib import Path

import numpy as np
import xllamacpp

library = ctypes.CDLL(str(next(Path(importlib.util.find_spec("xllamacpp").origin).parent.glob("*.so"))))
pointer, i32, u32, f32, size = ctypes.c_void_p, ctypes.c_int32, ctypes.c_uint32, ctypes.c_float, ctypes.c_size_t
token_data = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])
logit_bias = np.dtype([("token", np.int32), ("bias", np.float32)])


class TokenDataArray(ctypes.Structure):
    """llama_token_data_array of llama.h."""

    _fields_ = [("data", pointer), ("size", size), ("selected", ctypes.c_int64), ("sorted", ctypes.c_bool)]


class ChainParams(ctypes.Structure):
    _fields_ = [("no_perf", ctypes.c_bool)]


for name, result, *arguments in (
        ("chain_init", pointer, ChainParams), ("chain_add", None, pointer, pointer), ("free", None, pointer),
        ("apply", None, pointer, ctypes.POINTER(TokenDataArray)), ("init_dist", pointer, u32),
        ("init_top_k", pointer, i32),
        ("init_top_p", pointer, f32, size), ("init_min_p", pointer, f32, size), ("init_temp", pointer, f32),
        ("init_xtc", pointer, f32, f32, size, u32), ("init_logit_bias", pointer, i32, i32, pointer)):
    function = getattr(library, f"llama_sampler_{name}")
    function.restype, function.argtypes = result, arguments


class Vector(ctypes.Structure):
    """std::vector: what the C++ functions of common/sampling.h take and give."""

    _fields_ = [("begin", pointer), ("end", pointer), ("capacity", pointer)]

    def __init__(self, array=None):
        super().__init__()
        if array is not None:
            self.array = np.ascontiguousarray(array)
            self.begin = self.array.ctypes.data
            self.end = self.capacity = self.begin + self.array.nbytes

    def of_vectors(parts):
        """A vector of vectors, which live as long as it does."""
        vector = Vector()
        vector.parts = (Vector * max(1, len(parts)))(*parts)
        vector.begin = ctypes.addressof(vector.parts)
        vector.end = vector.begin + len(parts) * ctypes.sizeof(Vector)
        return vector

    def taken(self):
        """The numbers of a vector<int> that a function gave, whose memory goes."""
        count = (self.end - self.begin) // 4
        numbers = np.ctypeslib.as_array(ctypes.cast(self.begin, ctypes.POINTER(i32)), (count,)).copy()
        delete(self.begin)
        return numbers


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
reject = common(f"_Z44common_sampler_sample_and_accept_n_rejectionP14common_samplerP13llama_context{ints}S7_{q_rows}b",
                pointer, vectors, pointer, pointer, vectors, vectors, vectors, ctypes.c_bool)
delete = common("_ZdlPv", None, pointer)
sampling = xllamacpp.CommonParams().sampling
SAMPLING = pointer.from_address(id(sampling) + 24).value  # where the engine's own object is
