#include "reference/verify/lossy/typical_acceptance.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.hpp"
#include "reference/numerics/natural_exp.hpp"
#include "reference/numerics/natural_log.hpp"

namespace draftproof {

double typical_threshold(const DenseMasses<double>& p, const TypicalOptions& options) {
  if (!(options.epsilon >= 0.0 && options.epsilon <= 1.0))
    throw usage_error("typical acceptance",
                      "epsilon is " + std::to_string(options.epsilon) + "; expected a number in [0, 1]");
  if (!(options.delta >= 0.0 && std::isfinite(options.delta)))
    throw usage_error("typical acceptance",
                      "delta is " + std::to_string(options.delta) + "; expected a finite number of 0 or more");
  // An entropy is below log 2^19 = 13.2 nats; total_of wants sums below 4.
  constexpr double kScale = 16.0;
  DenseMasses<double> terms(p.size());
  for (std::size_t i = 0; i < p.size(); ++i)
    terms[i] = p[i] > 0.0 ? std::max(0.0, -p[i] * natural_log(p[i])) / kScale : 0.0;
  return std::min(options.epsilon, options.delta * natural_exp(-kScale * total_of(terms)));
}

}  // namespace draftproof
