// CUDA's names, for kernels that nvcc and the host compiler both compile. Under nvcc: the CUDA runtime, and the few
// things that CUDA lacks. Elsewhere: the same names, served by the executor of this folder. A kernel includes this
// header last, and nothing else of gpu/simt.
#pragma once

#if defined(__CUDACC__)
#include "gpu/simt/cuda_device.cuh"
#else
#include "gpu/simt/cuda_host.hpp"
#endif
