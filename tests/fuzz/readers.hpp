// The readers of what users and other programs write, each with a few small inputs that it takes.
#pragma once

#include <string>
#include <vector>

#include "tests/fuzz/fuzz.hpp"

namespace draftproof::testing {

// Files that an input names stand in `folder`, and are written there.
std::vector<FuzzedReader> fuzzed_readers(const std::string& folder);

}  // namespace draftproof::testing
