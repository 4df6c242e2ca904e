// What differs between the builds that the same objects of tests are linked in (tests/CMakeLists.txt).
//
// Repetitions are left out under sanitizers, which slow tests tenfold: bad addresses and undefined behaviour show in a
// few; distributions and rare schedules are the release build's to test.
#pragma once

#include <cstdint>

namespace draftproof::testing {

extern const bool kSanitized;
extern const char* const kSharedLibrary;  // the path of it
extern const char* const kCExamples;      // the folder of the programs in C

// `repetitions`, a quarter of them under sanitizers.
inline std::int64_t fewer_if_sanitized(std::int64_t repetitions) {
  return kSanitized ? repetitions / 4 : repetitions;
}

}  // namespace draftproof::testing
