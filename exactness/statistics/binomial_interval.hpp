// Clopper and Pearson's exact interval for a rate that was counted.
#pragma once

#include <cstdint>

namespace draftproof {

struct Interval {
  double low = 0.0;
  double high = 1.0;
};

// Covers the true rate with probability `level` or more, whatever it is. [0, 1] for no trials. Errors (usage): counts
// that cannot be, a level outside (0, 1).
Interval clopper_pearson(std::int64_t successes, std::int64_t trials, double level);

}  // namespace draftproof
