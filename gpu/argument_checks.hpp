// Checks of a call on the host before anything runs: shapes, strides, sizes, element types, pointers that must not be
// NULL, settings. Each function throws Error(usage) naming call and argument, its value and what was expected. Faults
// that only the data shows are reported per row (draftproof_row_status).
#pragma once

#include <cstdint>

#include "gpu/draftproof.h"
#include "gpu/operation_table.hpp"

namespace draftproof::device {

void check_settings(const draftproof_settings& settings);

// The bytes of a workspace's layout, at most DRAFTPROOF_BYTES_MAX. Returns them.
std::int64_t check_workspace_size(const char* call, std::int64_t needed);

// `workspace` of a call with kernels: at least `needed` bytes, 256-byte aligned.
void check_workspace(const char* call, const void* workspace, std::int64_t workspace_bytes, std::int64_t needed);

// All other arguments: check_<name>(const Arguments&) of each operation.
#define DRAFTPROOF_DECLARE_CHECK(name, Arguments) void check_##name(const Arguments& arguments);
DRAFTPROOF_OPERATIONS(DRAFTPROOF_DECLARE_CHECK, DRAFTPROOF_DECLARE_CHECK)
DRAFTPROOF_REFERENCE_OPERATIONS(DRAFTPROOF_DECLARE_CHECK)
#undef DRAFTPROOF_DECLARE_CHECK

}  // namespace draftproof::device
