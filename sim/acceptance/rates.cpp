#include "sim/acceptance/rates.hpp"

#include <numeric>

#include "base/error.hpp"

namespace draftproof {

std::vector<double> survival_of(std::span<const double> conditional) {
  std::vector<double> survival(conditional.size());
  std::partial_sum(conditional.begin(), conditional.end(), survival.begin(), std::multiplies<>());
  return survival;
}

std::vector<double> conditional_of(std::span<const double> survival, const std::string& where) {
  std::vector<double> conditional;
  conditional.reserve(survival.size());
  double before = 1.0;
  for (const double s : survival) {
    if (!(s >= 0.0 && s <= before))
      throw input_error(where, "unconditional rate " + std::to_string(conditional.size() + 1) + " is " +
                                   std::to_string(s) + "; expected a number between 0 and the one before it, " +
                                   std::to_string(before));
    conditional.push_back(before > 0.0 ? s / before : 0.0);
    before = s;
  }
  return conditional;
}

double acceptance_length_of(std::span<const double> survival) {
  return std::accumulate(survival.begin(), survival.end(), 1.0);
}

}  // namespace draftproof
