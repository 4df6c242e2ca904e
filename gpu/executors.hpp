// Every operation of every executor. The kernels' side is one text, operations/<name>.hpp, compiled once for GPUs
// (cuda_executor) and once for the CPU executor (simt_executor); its twin in reference_executor answers from
// reference/. Arguments have been checked (api.cpp).
#pragma once

#include <cstdint>

#include "gpu/draftproof.h"
#include "gpu/operation_table.hpp"

namespace draftproof {

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

#define DRAFTPROOF_NAME(name, Arguments) name,
#define DRAFTPROOF_NAMES(name, Arguments) name, name##_workspace_bytes,
namespace cuda_executor {
DRAFTPROOF_OPERATIONS(DRAFTPROOF_DECLARE_CALL, DRAFTPROOF_DECLARE_CALL_AND_WORKSPACE)
inline constexpr KernelCalls kCalls = {DRAFTPROOF_OPERATIONS(DRAFTPROOF_NAME, DRAFTPROOF_NAMES)};
}  // namespace cuda_executor
namespace simt_executor {
DRAFTPROOF_OPERATIONS(DRAFTPROOF_DECLARE_CALL, DRAFTPROOF_DECLARE_CALL_AND_WORKSPACE)
inline constexpr KernelCalls kCalls = {DRAFTPROOF_OPERATIONS(DRAFTPROOF_NAME, DRAFTPROOF_NAMES)};
}  // namespace simt_executor
#undef DRAFTPROOF_NAME
#undef DRAFTPROOF_NAMES
namespace reference_executor {
DRAFTPROOF_OPERATIONS(DRAFTPROOF_DECLARE_CALL, DRAFTPROOF_DECLARE_CALL)
DRAFTPROOF_REFERENCE_OPERATIONS(DRAFTPROOF_DECLARE_CALL)
}  // namespace reference_executor

// The calls of the CPU executor. A program with a fault's kernels defines this itself (gpu/faults).
const KernelCalls& simt_calls();

// A drafter's parameters as verifiers take them: temperature and filters alone.
inline draftproof_parameters draft_parameters_of(const draftproof_parameters& given) {
  draftproof_parameters parameters{};
  parameters.temperature = given.temperature;
  parameters.top_k = given.top_k;
  parameters.top_p = given.top_p;
  parameters.min_p = given.min_p;
  parameters.filter_order = given.filter_order;
  parameters.ties = given.ties;
  parameters.top_p_rule = given.top_p_rule;
  return parameters;
}

}  // namespace draftproof
