// Top-p as a fraction, where exactness is asked for: 4/5 is less than 0.8f, the number that a float32 can hold.
#pragma once

#include <algorithm>
#include <cstdint>

#include "reference/logits/filters.hpp"

namespace draftproof {

// Without effect where the denominator is 0. The float beside the fraction says whether the filter is on.
inline void set_top_p(FilterParameters& filters, std::uint32_t numerator, std::uint32_t denominator) {
  if (denominator == 0) return;
  filters.top_p_numerator = numerator;
  filters.top_p_denominator = denominator;
  const auto nearest = static_cast<float>(static_cast<double>(numerator) / denominator);
  filters.top_p = numerator < denominator ? std::min(nearest, 0x1.fffffep-1f) : nearest;
}

}  // namespace draftproof
