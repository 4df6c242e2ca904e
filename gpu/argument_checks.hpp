// What the host can see of a call before anything runs: shapes, strides, sizes, element types, pointers that must not
// be NULL, settings. Each function throws Error(usage) naming call and argument, its value and what was expected. What
// only the data shows is reported per row (draftproof_row_status).
#pragma once

#include <cstdint>

#include "gpu/draftproof.h"

namespace draftproof::device {

void check_settings(const draftproof_settings& settings);

// What a workspace's layout came to: no more than DRAFTPROOF_BYTES_MAX. Returns it.
std::int64_t check_workspace_size(const char* call, std::int64_t needed);

// `workspace` of a call with kernels: at least `needed` bytes, 256-byte aligned.
void check_workspace(const char* call, const void* workspace, std::int64_t workspace_bytes, std::int64_t needed);

// All other arguments.
void check_mass_pass(const draftproof_mass_pass_arguments& arguments);
void check_guidance(const draftproof_guidance_arguments& arguments);
void check_sample(const draftproof_sample_arguments& arguments);
void check_logprobs(const draftproof_logprobs_arguments& arguments);
void check_verify_chain(const draftproof_verify_arguments& arguments);
void check_verify_block(const draftproof_verify_arguments& arguments);
void check_verify_tree(const draftproof_verify_arguments& arguments);
void check_tree_mask(const draftproof_tree_mask_arguments& arguments);
void check_kv_commit(const draftproof_kv_commit_arguments& arguments);

}  // namespace draftproof::device
