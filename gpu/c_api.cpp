// draftproof.h over the C++ interface (api.hpp): exceptions become codes and a message of the calling thread.
#include <array>
#include <exception>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "gpu/api.hpp"
#include "gpu/argument_checks.hpp"

namespace {

using draftproof::Error;
using draftproof::ErrorKind;

// Short enough to be kept without allocating, so that no error is lost for want of memory.
thread_local std::array<char, 512> last_message{};

int fail(int code, std::string_view message) noexcept {
  last_message = {};
  message.copy(last_message.data(), last_message.size() - 1);
  return code;
}

int fail_unavailable(draftproof_executor executor, const std::string& why) {
  return fail(DRAFTPROOF_UNAVAILABLE,
              std::string("executor ") + draftproof::device::executor_name(executor) + ": " + why);
}

int code_of(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::usage:
      return DRAFTPROOF_USAGE;
    case ErrorKind::input:
      return DRAFTPROOF_INPUT;
    case ErrorKind::internal:
      break;
  }
  return DRAFTPROOF_INTERNAL;
}

// Runs body() for its code; no exception leaves.
template <class Body>
int guarded(Body body) noexcept {
  try {
    return body();
  } catch (const Error& error) {
    return fail(code_of(error.kind()), error.what());
  } catch (const std::exception& error) {
    return fail(DRAFTPROOF_INTERNAL, error.what());
  } catch (...) {
    return fail(DRAFTPROOF_INTERNAL, "an exception without a message");
  }
}

// reference_only: the name of a call that has no kernels.
template <class Arguments>
int run(const Arguments* arguments, const draftproof_settings* settings,
        void (*call)(const Arguments&, const draftproof_settings&), const char* reference_only = nullptr) noexcept {
  return guarded([&] {
    if (arguments == nullptr) return fail(DRAFTPROOF_USAGE, "arguments: it is NULL; expected a struct");
    if (settings == nullptr) return fail(DRAFTPROOF_USAGE, "settings: it is NULL; expected a struct");
    const int available = draftproof_executor_available(settings->executor);
    if (available != DRAFTPROOF_SUCCESS) return available;
    const auto executor = static_cast<draftproof_executor>(settings->executor);
    if (reference_only != nullptr && executor != DRAFTPROOF_REFERENCE)
      return fail_unavailable(executor, draftproof::device::why_no_kernels(reference_only, executor));
    call(*arguments, *settings);
    return static_cast<int>(DRAFTPROOF_SUCCESS);
  });
}

template <class Arguments>
std::int64_t measure(const Arguments* arguments, std::int64_t (*bytes_of)(const Arguments&)) noexcept {
  std::int64_t bytes = -1;
  guarded([&] {
    if (arguments == nullptr) return fail(DRAFTPROOF_USAGE, "arguments: it is NULL; expected a struct");
    bytes = bytes_of(*arguments);
    return static_cast<int>(DRAFTPROOF_SUCCESS);
  });
  return bytes;
}

}  // namespace

extern "C" {

int draftproof_abi_version(void) {
  return DRAFTPROOF_ABI_VERSION;
}

std::int64_t draftproof_struct_bytes(const char* name) {
  if (name == nullptr) return -1;
  const std::string_view wanted = name;
#define DRAFTPROOF_STRUCT(type) \
  if (wanted == #type) return sizeof(type);
#define DRAFTPROOF_ARGUMENTS(name, Arguments) DRAFTPROOF_STRUCT(Arguments)
  DRAFTPROOF_STRUCT(draftproof_settings)
  DRAFTPROOF_STRUCT(draftproof_rows)
  DRAFTPROOF_STRUCT(draftproof_parameters)
  DRAFTPROOF_STRUCT(draftproof_constraints)
  DRAFTPROOF_STRUCT(draftproof_randomness)
  DRAFTPROOF_STRUCT(draftproof_shard)
  DRAFTPROOF_STRUCT(draftproof_shard_kept)
  DRAFTPROOF_STRUCT(draftproof_shard_search)
  DRAFTPROOF_STRUCT(draftproof_shard_rows)
  DRAFTPROOF_OPERATIONS(DRAFTPROOF_ARGUMENTS, DRAFTPROOF_ARGUMENTS)
  DRAFTPROOF_REFERENCE_OPERATIONS(DRAFTPROOF_ARGUMENTS)
  return -1;
}

const char* draftproof_error_message(void) {
  return last_message.data();
}

const char* draftproof_row_status_text(std::int32_t status) {
  switch (status) {
    case DRAFTPROOF_ROW_OK:
      return "ok";
    case DRAFTPROOF_ROW_NOTHING_LEFT:
      return "no token is left: all are masked or far below every limit";
    case DRAFTPROOF_ROW_ALL_ZERO:
      return "every probability is 0";
    case DRAFTPROOF_ROW_BAD_SUM:
      return "the probabilities sum to more than 3";
    case DRAFTPROOF_ROW_LOGIT_TOO_LARGE:
      return "a logit over the temperature is above 2^29";
    case DRAFTPROOF_ROW_INFINITE_LOGIT:
      return "a logit is +infinity";
    case DRAFTPROOF_ROW_NAN_LOGIT:
      return "a logit is NaN";
    case DRAFTPROOF_ROW_BAD_PROBABILITY:
      return "a probability is not a number in [0, 1]";
    case DRAFTPROOF_ROW_BAD_GUIDANCE:
      return "the two rows of guidance do not go together";
    case DRAFTPROOF_ROW_BAD_ID:
      return "an id, an offset or an index is outside of its range";
    case DRAFTPROOF_ROW_BAD_PARAMETER:
      return "a sampling parameter is outside of its range";
    default:
      return "no status that this version knows";
  }
}

int draftproof_executor_available(std::int32_t executor) {
  return guarded([&] {
    draftproof_settings settings{};
    settings.executor = executor;
    draftproof::device::check_settings(settings);
    const auto which = static_cast<draftproof_executor>(executor);
    const std::string why = draftproof::device::why_unavailable(which);
    return why.empty() ? static_cast<int>(DRAFTPROOF_SUCCESS) : fail_unavailable(which, why);
  });
}

#define DRAFTPROOF_DEFINE(name, Arguments)                                                 \
  int draftproof_##name(const Arguments* arguments, const draftproof_settings* settings) { \
    return run(arguments, settings, draftproof::device::name);                             \
  }
#define DRAFTPROOF_DEFINE_REFERENCE_ONLY(name, Arguments)                                  \
  int draftproof_##name(const Arguments* arguments, const draftproof_settings* settings) { \
    return run(arguments, settings, draftproof::device::name, #name);                      \
  }
#define DRAFTPROOF_DEFINE_WITH_WORKSPACE(name, Arguments)                        \
  std::int64_t draftproof_##name##_workspace_bytes(const Arguments* arguments) { \
    return measure(arguments, draftproof::device::name##_workspace_bytes);       \
  }                                                                              \
  DRAFTPROOF_DEFINE(name, Arguments)
DRAFTPROOF_OPERATIONS(DRAFTPROOF_DEFINE, DRAFTPROOF_DEFINE_WITH_WORKSPACE)
DRAFTPROOF_REFERENCE_OPERATIONS(DRAFTPROOF_DEFINE_REFERENCE_ONLY)

}  // extern "C"
