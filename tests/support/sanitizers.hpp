// Repetitions left out under sanitizers, which slow tests tenfold: bad addresses and undefined behaviour show in few
// repetitions; distributions and rare schedules are the release build's to test.
#pragma once

#include <cstdint>

namespace draftproof::testing {

#if defined(DRAFTPROOF_SANITIZED)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// `repetitions`, a quarter of them under sanitizers.
constexpr std::int64_t fewer_if_sanitized(std::int64_t repetitions) {
  return kSanitized ? repetitions / 4 : repetitions;
}

}  // namespace draftproof::testing
