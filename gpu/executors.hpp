// Every operation of every executor. The kernels' side is one text, operations/<name>.hpp, compiled once for GPUs
// (cuda_executor) and once for the CPU executor (simt_executor); its twin in reference_executor answers from
// reference/. Arguments have been checked (api.cpp).
#pragma once

#include <cstdint>

#include "gpu/draftproof.h"

#define DRAFTPROOF_DECLARE_OPERATIONS                                                      \
  std::int64_t mass_pass_workspace_bytes(const draftproof_mass_pass_arguments& arguments); \
  std::int64_t sample_workspace_bytes(const draftproof_sample_arguments& arguments);       \
  std::int64_t logprobs_workspace_bytes(const draftproof_logprobs_arguments& arguments);   \
  std::int64_t verify_chain_workspace_bytes(const draftproof_verify_arguments& arguments); \
  std::int64_t verify_block_workspace_bytes(const draftproof_verify_arguments& arguments); \
  std::int64_t verify_tree_workspace_bytes(const draftproof_verify_arguments& arguments);  \
  DRAFTPROOF_DECLARE_CALLS

#define DRAFTPROOF_DECLARE_CALLS                                                                        \
  void mass_pass(const draftproof_mass_pass_arguments& arguments, const draftproof_settings& settings); \
  void guidance(const draftproof_guidance_arguments& arguments, const draftproof_settings& settings);   \
  void sample(const draftproof_sample_arguments& arguments, const draftproof_settings& settings);       \
  void logprobs(const draftproof_logprobs_arguments& arguments, const draftproof_settings& settings);   \
  void verify_chain(const draftproof_verify_arguments& arguments, const draftproof_settings& settings); \
  void verify_block(const draftproof_verify_arguments& arguments, const draftproof_settings& settings); \
  void verify_tree(const draftproof_verify_arguments& arguments, const draftproof_settings& settings);  \
  void tree_mask(const draftproof_tree_mask_arguments& arguments, const draftproof_settings& settings); \
  void kv_commit(const draftproof_kv_commit_arguments& arguments, const draftproof_settings& settings);

namespace draftproof {
namespace cuda_executor {
DRAFTPROOF_DECLARE_OPERATIONS
}
namespace simt_executor {
DRAFTPROOF_DECLARE_OPERATIONS
}
namespace reference_executor {
DRAFTPROOF_DECLARE_CALLS
}
}  // namespace draftproof

#undef DRAFTPROOF_DECLARE_OPERATIONS
#undef DRAFTPROOF_DECLARE_CALLS
