// Distance of a computed number from the true one, in units of the last place of the true one.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace draftproof::testing {

// `exact` carries enough digits to stand for the real number. NaN in, NaN out, which no comparison with a bound passes.
template <class Float>
double ulp_error(Float computed, long double exact) {
  if (exact == 0.0L) return computed == Float{0} ? 0.0 : std::numeric_limits<double>::infinity();
  const int exponent = std::max(std::ilogb(exact), std::numeric_limits<Float>::min_exponent - 1);
  const long double ulp = std::ldexp(1.0L, exponent - (std::numeric_limits<Float>::digits - 1));
  return static_cast<double>(std::fabs(static_cast<long double>(computed) - exact) / ulp);
}

}  // namespace draftproof::testing
