#include "gpu/api.hpp"

#include "gpu/argument_checks.hpp"
#include "gpu/device_memory.hpp"
#include "gpu/executors.hpp"
#include "reference/error.hpp"

namespace draftproof::device {
namespace {

// Which executor measures workspaces: all kernels lay them out by the same text.
#if defined(DRAFTPROOF_HAS_SIMT)
namespace layout = simt_executor;
#else
namespace layout = cuda_executor;
#endif

void require_available(std::int32_t executor) {
  const auto which = static_cast<draftproof_executor>(executor);
  const std::string why = why_unavailable(which);
  if (!why.empty()) throw usage_error(std::string("executor ") + executor_name(which), why);
}

}  // namespace

const char* executor_name(draftproof_executor executor) {
  switch (executor) {
    case DRAFTPROOF_REFERENCE:
      return "reference";
    case DRAFTPROOF_SIMT:
      return "simt";
    case DRAFTPROOF_CUDA:
      return "cuda";
  }
  throw usage_error("executor", "it is " + std::to_string(static_cast<int>(executor)) +
                                    "; expected 0 (reference), 1 (simt) or 2 (cuda)");
}

std::string why_unavailable(draftproof_executor executor) {
  switch (executor) {
    case DRAFTPROOF_REFERENCE:
      return {};
    case DRAFTPROOF_SIMT:
#if defined(DRAFTPROOF_HAS_SIMT)
      return {};
#else
      return "this build has no CPU executor";
#endif
    case DRAFTPROOF_CUDA:
#if defined(DRAFTPROOF_HAS_CUDA)
      return cuda_executor::why_unavailable();
#else
      return "this build has no CUDA code: there was no GPU, or no nvcc, when it was configured";
#endif
  }
  return "there is no such executor";
}

std::int64_t mass_pass_workspace_bytes(const draftproof_mass_pass_arguments& arguments) {
  check_mass_pass(arguments);
  return check_workspace_size("mass_pass", layout::mass_pass_workspace_bytes(arguments));
}
std::int64_t sample_workspace_bytes(const draftproof_sample_arguments& arguments) {
  check_sample(arguments);
  return check_workspace_size("sample", layout::sample_workspace_bytes(arguments));
}
std::int64_t logprobs_workspace_bytes(const draftproof_logprobs_arguments& arguments) {
  check_logprobs(arguments);
  return check_workspace_size("logprobs", layout::logprobs_workspace_bytes(arguments));
}
std::int64_t verify_chain_workspace_bytes(const draftproof_verify_arguments& arguments) {
  check_verify_chain(arguments);
  return check_workspace_size("verify_chain", layout::verify_chain_workspace_bytes(arguments));
}
std::int64_t verify_block_workspace_bytes(const draftproof_verify_arguments& arguments) {
  check_verify_block(arguments);
  return check_workspace_size("verify_block", layout::verify_block_workspace_bytes(arguments));
}
std::int64_t verify_tree_workspace_bytes(const draftproof_verify_arguments& arguments) {
  check_verify_tree(arguments);
  return check_workspace_size("verify_tree", layout::verify_tree_workspace_bytes(arguments));
}

#if defined(DRAFTPROOF_HAS_SIMT)
#define DRAFTPROOF_ON_SIMT(call) \
  case DRAFTPROOF_SIMT:          \
    return simt_executor::call(arguments, settings);
#else
#define DRAFTPROOF_ON_SIMT(call)
#endif
#if defined(DRAFTPROOF_HAS_CUDA)
#define DRAFTPROOF_ON_CUDA(call) \
  case DRAFTPROOF_CUDA:          \
    return cuda_executor::call(arguments, settings);
#else
#define DRAFTPROOF_ON_CUDA(call)
#endif

// The one place where an executor is chosen. The reference allocates for itself, and refuses the same sizes.
#define DRAFTPROOF_DISPATCH(call, Arguments, check_scratch)                    \
  void call(const Arguments& arguments, const draftproof_settings& settings) { \
    check_settings(settings);                                                  \
    require_available(settings.executor);                                      \
    check_##call(arguments);                                                   \
    check_scratch(call) switch (settings.executor) {                           \
      case DRAFTPROOF_REFERENCE:                                               \
        return reference_executor::call(arguments, settings);                  \
        DRAFTPROOF_ON_SIMT(call)                                               \
        DRAFTPROOF_ON_CUDA(call)                                               \
    }                                                                          \
  }
#define DRAFTPROOF_SCRATCH(call)                                                                      \
  const std::int64_t needed = check_workspace_size(#call, layout::call##_workspace_bytes(arguments)); \
  if (settings.executor != DRAFTPROOF_REFERENCE)                                                      \
    check_workspace(#call, arguments.workspace, arguments.workspace_bytes, needed);
#define DRAFTPROOF_NO_SCRATCH(call)

DRAFTPROOF_DISPATCH(mass_pass, draftproof_mass_pass_arguments, DRAFTPROOF_SCRATCH)
DRAFTPROOF_DISPATCH(guidance, draftproof_guidance_arguments, DRAFTPROOF_NO_SCRATCH)
DRAFTPROOF_DISPATCH(sample, draftproof_sample_arguments, DRAFTPROOF_SCRATCH)
DRAFTPROOF_DISPATCH(logprobs, draftproof_logprobs_arguments, DRAFTPROOF_SCRATCH)
DRAFTPROOF_DISPATCH(verify_chain, draftproof_verify_arguments, DRAFTPROOF_SCRATCH)
DRAFTPROOF_DISPATCH(verify_block, draftproof_verify_arguments, DRAFTPROOF_SCRATCH)
DRAFTPROOF_DISPATCH(verify_tree, draftproof_verify_arguments, DRAFTPROOF_SCRATCH)
DRAFTPROOF_DISPATCH(tree_mask, draftproof_tree_mask_arguments, DRAFTPROOF_NO_SCRATCH)
DRAFTPROOF_DISPATCH(kv_commit, draftproof_kv_commit_arguments, DRAFTPROOF_NO_SCRATCH)

}  // namespace draftproof::device
