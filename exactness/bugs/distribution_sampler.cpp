#include "exactness/bugs/distribution_sampler.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "base/dtype.hpp"
#include "reference/numerics/natural_log.hpp"
#include "reference/random/philox.hpp"
#include "reference/random/uniform.hpp"

namespace draftproof {

namespace {

std::vector<double> kept_probabilities(const LogitsDistribution& row, const KeptTokens& kept) {
  std::vector<double> masses(kept.size(), 0.0);
  double total = 0.0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i]) masses[i] = static_cast<double>(row.mass(static_cast<Token>(i)));
    total += masses[i];
  }
  for (double& m : masses) m /= total;
  return masses;
}

// Draw number i is inverse-CDF sampling from `drawn_from` with the seed of request i.
LargeSampler sampler_of_distribution(std::vector<double> distribution, std::span<const double> drawn_from) {
  std::vector<double> cumulative;
  double sum = 0.0;
  for (const double p : drawn_from) cumulative.push_back(sum += p);
  const auto draw = [cumulative = std::move(cumulative)](std::uint64_t i) {
    const RandomBlock block = PhiloxSource().block(derive_seed(0, i), {0, 0, 0, Purpose::target_sample});
    const double u = uniform_53(high_half(block)) * cumulative.back();
    return static_cast<Token>(std::upper_bound(cumulative.begin(), cumulative.end() - 1, u) - cumulative.begin());
  };
  return {std::move(distribution), draw};
}

}  // namespace

LargeSampler sampler_of_rule(const Logits& logits, const RowParameters& parameters, const KeptRule& rule) {
  const TemperedRow tempered(logits, parameters.temperature);
  const LogitsDistribution& row = tempered.distribution;
  return sampler_of_distribution(kept_probabilities(row, kept_by_definition(row, parameters.filters)),
                                 kept_probabilities(row, rule(row, parameters.filters)));
}

}  // namespace draftproof
