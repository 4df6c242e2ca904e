// Masses times a factor, element by element. Rules that compare p and q at different weights write them as
// positive_difference(scaled(p, a), scaled(q, b)), each product rounded once.
#pragma once

#include "reference/verify/dense_rows.hpp"

namespace draftproof {

template <class Number>
DenseMasses<Number> scaled(DenseMasses<Number> masses, const Number& factor) {
  for (Number& x : masses) x = x * factor;
  return masses;
}

}  // namespace draftproof
