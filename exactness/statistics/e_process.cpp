#include "exactness/statistics/e_process.hpp"

#include "reference/numerics/boost_math.hpp"

#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <limits>
#include <string>

#include "base/error.hpp"
#include "reference/numerics/natural_log.hpp"

namespace draftproof {

DirichletEProcess::DirichletEProcess(std::span<const double> distribution, double concentration)
    : distribution_(distribution.begin(), distribution.end()),
      counts_(distribution.size(), 0),
      concentration_(concentration) {
  double sum = 0.0;
  std::int64_t possible = 0;
  for (const double p : distribution_) {
    if (!(p >= 0.0))
      throw usage_error("e-process", "a probability is " + std::to_string(p) + "; it must not be below 0");
    sum += p;
    possible += p > 0.0 ? 1 : 0;
  }
  if (!(std::abs(sum - 1.0) < 1e-3))
    throw usage_error("e-process", "the probabilities sum to " + std::to_string(sum) + "; they must sum to 1");
  if (!(concentration >= 0.0) || !std::isfinite(concentration))
    throw usage_error("e-process", "the concentration is " + std::to_string(concentration) +
                                       "; expected a positive number (or 0 for the default)");
  if (concentration_ == 0.0) concentration_ = static_cast<double>(possible);
  // Prior and prediction must be distributions to the last bit, or the bettor would win by rounding.
  for (double& p : distribution_) p /= sum;
}

void DirichletEProcess::add(std::size_t cell) {
  const double p = distribution_[cell];
  if (p > 0.0) {
    const double prediction =
        (concentration_ * p + static_cast<double>(counts_[cell])) / (concentration_ + static_cast<double>(n_));
    log_wealth_ += natural_log(prediction / p);
  } else {
    log_wealth_ = std::numeric_limits<double>::infinity();
  }
  log_wealth_max_ = std::max(log_wealth_max_, log_wealth_);
  ++counts_[cell];
  ++n_;
}

double DirichletEProcess::p_value() const {
  return std::exp(-log_wealth_max_);  // log_wealth_max_ is never below 0, the wealth at the start being 1
}

bool DirichletEProcess::rejects(double alpha) const {
  return log_wealth_max_ >= -natural_log(alpha);
}

double dirichlet_log_wealth(std::span<const std::int64_t> counts, std::span<const double> distribution,
                            double concentration) {
  const auto log_gamma = [](double x) { return boost::math::lgamma(x); };
  std::int64_t n = 0;
  double log_wealth = 0.0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    if (!(distribution[i] > 0.0)) return std::numeric_limits<double>::infinity();
    const auto count = static_cast<double>(counts[i]);
    const double prior = concentration * distribution[i];
    log_wealth += log_gamma(prior + count) - log_gamma(prior) - count * natural_log(distribution[i]);
    n += counts[i];
  }
  return log_wealth - (log_gamma(concentration + static_cast<double>(n)) - log_gamma(concentration));
}

}  // namespace draftproof
