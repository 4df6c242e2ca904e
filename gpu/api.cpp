#include "gpu/api.hpp"

#include "base/error.hpp"
#include "gpu/argument_checks.hpp"
#include "gpu/device_memory.hpp"
#include "gpu/executors.hpp"

namespace draftproof::device {
namespace {

// The one place where an executor with kernels is chosen: one that can run here.
const KernelCalls& kernel_calls(std::int32_t executor) {
#if defined(DRAFTPROOF_HAS_CUDA)
  if (executor == DRAFTPROOF_CUDA) return cuda_executor::kCalls;
#endif
#if defined(DRAFTPROOF_HAS_SIMT)
  if (executor == DRAFTPROOF_SIMT) return simt_calls();
#endif
  throw Error(ErrorKind::internal, "executor " + std::to_string(executor), "it has no kernels");
}

// Which executor measures workspaces for all: their kernels lay them out by the same text.
#if defined(DRAFTPROOF_HAS_SIMT)
constexpr std::int32_t kMeasures = DRAFTPROOF_SIMT;
constexpr const char* kWhyNoSimt = "";
#else
constexpr std::int32_t kMeasures = DRAFTPROOF_CUDA;
constexpr const char* kWhyNoSimt = "this build has no CPU executor";
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
      return kWhyNoSimt;
    case DRAFTPROOF_CUDA:
#if defined(DRAFTPROOF_HAS_CUDA)
      return cuda_executor::why_unavailable();
#else
      return "this build has no CUDA code: there was no GPU, or no nvcc, when it was configured";
#endif
  }
  return "there is no such executor";
}

std::string why_no_kernels(const char* call, draftproof_executor executor) {
  if (executor == DRAFTPROOF_REFERENCE) return {};
  return std::string(call) + " has no kernels; expected executor 0 (reference)";
}

// The reference allocates for itself, and refuses the same sizes.
#define DRAFTPROOF_RUN(name)                                                                           \
  if (settings.executor == DRAFTPROOF_REFERENCE) return reference_executor::name(arguments, settings); \
  kernel_calls(settings.executor).name(arguments, settings);
#define DRAFTPROOF_DEFINE(name, Arguments)                                     \
  void name(const Arguments& arguments, const draftproof_settings& settings) { \
    check_settings(settings);                                                  \
    require_available(settings.executor);                                      \
    check_##name(arguments);                                                   \
    DRAFTPROOF_RUN(name)                                                       \
  }
#define DRAFTPROOF_DEFINE_WITH_WORKSPACE(name, Arguments)                                          \
  std::int64_t name##_workspace_bytes(const Arguments& arguments) {                                \
    check_##name(arguments);                                                                       \
    return check_workspace_size(#name, kernel_calls(kMeasures).name##_workspace_bytes(arguments)); \
  }                                                                                                \
  void name(const Arguments& arguments, const draftproof_settings& settings) {                     \
    check_settings(settings);                                                                      \
    require_available(settings.executor);                                                          \
    const std::int64_t needed = name##_workspace_bytes(arguments);                                 \
    if (settings.executor != DRAFTPROOF_REFERENCE)                                                 \
      check_workspace(#name, arguments.workspace, arguments.workspace_bytes, needed);              \
    DRAFTPROOF_RUN(name)                                                                           \
  }
#define DRAFTPROOF_DEFINE_REFERENCE_ONLY(name, Arguments)                                         \
  void name(const Arguments& arguments, const draftproof_settings& settings) {                    \
    check_settings(settings);                                                                     \
    const auto executor = static_cast<draftproof_executor>(settings.executor);                    \
    const std::string why = why_no_kernels(#name, executor);                                      \
    if (!why.empty()) throw usage_error(std::string("executor ") + executor_name(executor), why); \
    check_##name(arguments);                                                                      \
    reference_executor::name(arguments, settings);                                                \
  }
DRAFTPROOF_OPERATIONS(DRAFTPROOF_DEFINE, DRAFTPROOF_DEFINE_WITH_WORKSPACE)
DRAFTPROOF_REFERENCE_OPERATIONS(DRAFTPROOF_DEFINE_REFERENCE_ONLY)

}  // namespace draftproof::device
