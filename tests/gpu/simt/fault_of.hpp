// Message of the executor for a kernel with a planted fault.
#pragma once

#include "gpu/simt/cuda.hpp"
#include "gpu/simt/launch.hpp"
#include "tests/support/test.hpp"

namespace draftproof {

using Catch::Matchers::Contains;

// The message of the fault; the fault must be found under every seed, or it would be found by luck.
template <class Kernel, class... Arguments>
std::string fault_of(LaunchDescription description, const Kernel& kernel, const Arguments&... arguments) {
  std::string message;
  for (std::uint64_t seed = 8; seed-- > 0;) {
    description.seed = seed;
    INFO("seed " << seed);
    message = error_of(ErrorKind::internal, [&] { launch(description, kernel, arguments...); });
    CHECK_THAT(message, Contains("kernel " + description.kernel + ", block (") && Contains("thread ("));
  }
  return message;
}

}  // namespace draftproof
