// The table of operations: the one list that declarations (api.hpp, executors.hpp, argument_checks.hpp), dispatch
// (api.cpp), the C functions (c_api.cpp), the regression's registry (regress/cases.hpp) and the sources for nvcc and
// for the CPU executor (cmake/draftproof_cuda.cmake, which reads this file's lines) come from.
//
// A macro and not a generator: compiler, editor and debugger see the same text, nothing has to run before a build, and
// gpu/standalone needs no more than the compiler. draftproof.h stays plain C, for its readers and for the generators of
// bindings; a test compares it with this table.
//
//   PLAIN(name, Arguments)            draftproof_<name>(const Arguments*, const draftproof_settings*)
//   WITH_WORKSPACE(name, Arguments)   also draftproof_<name>_workspace_bytes(const Arguments*)
//   REFERENCE_ONLY(name, Arguments)   as PLAIN, without kernels: the other executors are refused
#pragma once

// clang-format off
#define DRAFTPROOF_OPERATIONS(PLAIN, WITH_WORKSPACE)          \
  WITH_WORKSPACE(mass_pass, draftproof_mass_pass_arguments)   \
  PLAIN(guidance, draftproof_guidance_arguments)              \
  WITH_WORKSPACE(sample, draftproof_sample_arguments)         \
  WITH_WORKSPACE(logprobs, draftproof_logprobs_arguments)     \
  WITH_WORKSPACE(verify_chain, draftproof_verify_arguments)   \
  WITH_WORKSPACE(verify_block, draftproof_verify_arguments)   \
  WITH_WORKSPACE(verify_tree, draftproof_verify_arguments)    \
  PLAIN(tree_mask, draftproof_tree_mask_arguments)            \
  PLAIN(kv_commit, draftproof_kv_commit_arguments)            \
  PLAIN(shard_prepare, draftproof_shard_prepare_arguments)    \
  PLAIN(shard_summarise, draftproof_shard_summarise_arguments) \
  PLAIN(shard_select, draftproof_shard_select_arguments)      \
  WITH_WORKSPACE(shard_draw, draftproof_shard_draw_arguments) \
  WITH_WORKSPACE(shard_verify, draftproof_shard_verify_arguments)
#define DRAFTPROOF_REFERENCE_OPERATIONS(REFERENCE_ONLY)       \
  REFERENCE_ONLY(verify_by_name, draftproof_verify_by_name_arguments)
// clang-format on

#define DRAFTPROOF_DECLARE_CALL(name, Arguments) \
  void name(const Arguments& arguments, const draftproof_settings& settings);
#define DRAFTPROOF_DECLARE_CALL_AND_WORKSPACE(name, Arguments) \
  DRAFTPROOF_DECLARE_CALL(name, Arguments)                     \
  std::int64_t name##_workspace_bytes(const Arguments& arguments);
