// Numbers that rows may hold and sums may not.
#pragma once

#include <limits>

namespace draftproof {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
// The logarithm of a weight of zero.
inline constexpr double kNoWeight = -std::numeric_limits<double>::infinity();

}  // namespace draftproof
