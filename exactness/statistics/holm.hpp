// Holm's step-down correction for many tests at once, whatever their dependence.
#pragma once

#include <span>
#include <vector>

namespace draftproof {

// Adjusted p values in the order given: test i may be rejected at family level alpha iff the adjusted p value is below
// alpha. With p sorted ascending, the i-th (from 0, of m) becomes max over j <= i of min(1, (m - j) p_j).
std::vector<double> holm_adjusted(std::span<const double> p_values);

}  // namespace draftproof
