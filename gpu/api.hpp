// The host interface in C++: the calls of draftproof.h, throwing Error instead of returning codes. No CUDA types: a
// stream is an opaque pointer. Arguments, memory and guarantees: draftproof.h.
#pragma once

#include <cstdint>
#include <string>

#include "gpu/draftproof.h"

namespace draftproof::device {

// Scratch bytes of a call with these arguments (their workspace is not looked at). Errors (usage): as the call's.
std::int64_t mass_pass_workspace_bytes(const draftproof_mass_pass_arguments& arguments);
std::int64_t sample_workspace_bytes(const draftproof_sample_arguments& arguments);
std::int64_t logprobs_workspace_bytes(const draftproof_logprobs_arguments& arguments);
std::int64_t verify_chain_workspace_bytes(const draftproof_verify_arguments& arguments);
std::int64_t verify_block_workspace_bytes(const draftproof_verify_arguments& arguments);
std::int64_t verify_tree_workspace_bytes(const draftproof_verify_arguments& arguments);

// Errors (usage): an argument that is wrong, by name and with what would be right; an executor that cannot run here.
// Errors (internal): what the CPU executor found in a kernel, what CUDA reported.
void mass_pass(const draftproof_mass_pass_arguments& arguments, const draftproof_settings& settings);
void guidance(const draftproof_guidance_arguments& arguments, const draftproof_settings& settings);
void sample(const draftproof_sample_arguments& arguments, const draftproof_settings& settings);
void logprobs(const draftproof_logprobs_arguments& arguments, const draftproof_settings& settings);
void verify_chain(const draftproof_verify_arguments& arguments, const draftproof_settings& settings);
void verify_block(const draftproof_verify_arguments& arguments, const draftproof_settings& settings);
void verify_tree(const draftproof_verify_arguments& arguments, const draftproof_settings& settings);
void tree_mask(const draftproof_tree_mask_arguments& arguments, const draftproof_settings& settings);
void kv_commit(const draftproof_kv_commit_arguments& arguments, const draftproof_settings& settings);

// Empty where the executor can run here; else why it cannot.
std::string why_unavailable(draftproof_executor executor);

// "reference", "simt" or "cuda".
const char* executor_name(draftproof_executor executor);

}  // namespace draftproof::device
