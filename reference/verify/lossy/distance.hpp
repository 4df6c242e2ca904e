// How far a lossy rule is from the target, at one position.
#pragma once

#include "reference/verify/dense_rows.hpp"

namespace draftproof {

// The total-variation distance of two distributions [V], each summing to 1: half the sum of |p - q|, which is the sum
// of the positive differences.
template <class Number>
Number total_variation_of(const DenseMasses<Number>& p, const DenseMasses<Number>& q) {
  return total_of(positive_difference(p, q));
}

}  // namespace draftproof
