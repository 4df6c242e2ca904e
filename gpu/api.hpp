// The host interface in C++: the calls of draftproof.h, throwing Error instead of returning codes. No CUDA types: a
// stream is an opaque pointer. Arguments, memory and guarantees: draftproof.h.
#pragma once

#include <cstdint>
#include <string>

#include "gpu/draftproof.h"
#include "gpu/operation_table.hpp"

namespace draftproof::device {

// For each operation of the table (operation_table.hpp):
//
//   void name(const Arguments& arguments, const draftproof_settings& settings);
//   std::int64_t name_workspace_bytes(const Arguments& arguments);   where it takes a workspace, which is not looked at
//
// Errors (usage): an argument that is refused, by name and with what was expected; an executor that cannot run here.
// Errors (internal): what the CPU executor found in a kernel, what CUDA reported.
DRAFTPROOF_OPERATIONS(DRAFTPROOF_DECLARE_CALL, DRAFTPROOF_DECLARE_CALL_AND_WORKSPACE)
DRAFTPROOF_REFERENCE_OPERATIONS(DRAFTPROOF_DECLARE_CALL)

// Empty where the executor can run here; else why it cannot.
std::string why_unavailable(draftproof_executor executor);

// For a call that the reference alone answers: empty for the reference; else why this executor does not.
std::string why_no_kernels(const char* call, draftproof_executor executor);

// "reference", "simt" or "cuda".
const char* executor_name(draftproof_executor executor);

}  // namespace draftproof::device
