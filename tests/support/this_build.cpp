#include "tests/support/this_build.hpp"

namespace draftproof::testing {

#if defined(DRAFTPROOF_SANITIZED)
const bool kSanitized = true;
#else
const bool kSanitized = false;
#endif
const char* const kSharedLibrary = DRAFTPROOF_LIBRARY;
const char* const kCExamples = DRAFTPROOF_C_EXAMPLES;

}  // namespace draftproof::testing
