// Every operation of every executor. The kernels' side is one text, operations/<name>.hpp, compiled once for GPUs
// (cuda_executor) and once for the CPU executor (simt_executor); its twin in reference_executor answers from
// reference/. Arguments have been checked (api.cpp).
#pragma once

#include <cstdint>

#include "gpu/draftproof.h"
#include "gpu/operation_table.hpp"

namespace draftproof {

namespace cuda_executor {
DRAFTPROOF_OPERATIONS(DRAFTPROOF_DECLARE_CALL, DRAFTPROOF_DECLARE_CALL_AND_WORKSPACE)
}
namespace simt_executor {
DRAFTPROOF_OPERATIONS(DRAFTPROOF_DECLARE_CALL, DRAFTPROOF_DECLARE_CALL_AND_WORKSPACE)
}
namespace reference_executor {
DRAFTPROOF_OPERATIONS(DRAFTPROOF_DECLARE_CALL, DRAFTPROOF_DECLARE_CALL)
DRAFTPROOF_REFERENCE_OPERATIONS(DRAFTPROOF_DECLARE_CALL)
}  // namespace reference_executor

// The kernels' side of all operations on one executor.
struct KernelCalls {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a type
#define DRAFTPROOF_CALL_POINTER(name, Arguments) void (*name)(const Arguments&, const draftproof_settings&);
#define DRAFTPROOF_CALL_AND_WORKSPACE_POINTERS(name, Arguments) \
  DRAFTPROOF_CALL_POINTER(name, Arguments)                      \
  std::int64_t (*name##_workspace_bytes)(const Arguments&);
  DRAFTPROOF_OPERATIONS(DRAFTPROOF_CALL_POINTER, DRAFTPROOF_CALL_AND_WORKSPACE_POINTERS)
#undef DRAFTPROOF_CALL_POINTER
#undef DRAFTPROOF_CALL_AND_WORKSPACE_POINTERS
};

#define DRAFTPROOF_SIMT_CALL(name, Arguments) simt_executor::name,
#define DRAFTPROOF_SIMT_CALL_AND_WORKSPACE(name, Arguments) simt_executor::name, simt_executor::name##_workspace_bytes,
inline constexpr KernelCalls kSimtCalls = {
    DRAFTPROOF_OPERATIONS(DRAFTPROOF_SIMT_CALL, DRAFTPROOF_SIMT_CALL_AND_WORKSPACE)};
#undef DRAFTPROOF_SIMT_CALL
#undef DRAFTPROOF_SIMT_CALL_AND_WORKSPACE

#define DRAFTPROOF_CUDA_CALL(name, Arguments) cuda_executor::name,
#define DRAFTPROOF_CUDA_CALL_AND_WORKSPACE(name, Arguments) cuda_executor::name, cuda_executor::name##_workspace_bytes,
inline constexpr KernelCalls kCudaCalls = {
    DRAFTPROOF_OPERATIONS(DRAFTPROOF_CUDA_CALL, DRAFTPROOF_CUDA_CALL_AND_WORKSPACE)};
#undef DRAFTPROOF_CUDA_CALL
#undef DRAFTPROOF_CUDA_CALL_AND_WORKSPACE

// What the CPU executor runs: kSimtCalls. A program with a fault's kernels defines it itself (gpu/faults).
const KernelCalls& simt_calls();

}  // namespace draftproof
