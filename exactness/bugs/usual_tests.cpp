#include "exactness/bugs/usual_tests.hpp"

#include <cmath>

#include "reference/random/philox.hpp"
#include "reference/random/uniform.hpp"

namespace draftproof {
namespace {

std::vector<double> normalised_weights(std::vector<double> weights) {
  double sum = 0.0;
  for (const double w : weights) sum += w;
  for (double& w : weights) w /= sum;
  return weights;
}

std::vector<double> make_target_distribution() {
  std::vector<double> weights;
  for (std::int32_t rank = 1; rank <= kUsualVocabSize; ++rank) weights.push_back(1.0 / rank);
  return normalised_weights(std::move(weights));
}

std::vector<double> make_draft_distribution() {
  std::vector<double> weights = usual_target_distribution();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const RandomBlock block =
        philox_block(0, static_cast<std::uint32_t>(i), 0, 0, static_cast<std::uint32_t>(Purpose::simulator));
    weights[i] *= std::exp(uniform_53(high_half(block)) - 0.5);
  }
  return normalised_weights(std::move(weights));
}

}  // namespace

const std::vector<double>& usual_target_distribution() {
  static const std::vector<double> distribution = make_target_distribution();
  return distribution;
}

const std::vector<double>& usual_draft_distribution() {
  static const std::vector<double> distribution = make_draft_distribution();
  return distribution;
}

UsualTests usual_tests_of(const LargeSampler& sampler) {
  std::vector<std::int64_t> counts(sampler.distribution.size(), 0);
  std::int64_t n = 0;
  for (std::int64_t i = 0; i < kUsualDraws; ++i) {
    const Token token = sampler.draw(static_cast<std::uint64_t>(i));
    if (token < 0 || static_cast<std::size_t>(token) >= counts.size()) continue;
    ++counts[static_cast<std::size_t>(token)];
    ++n;
  }
  UsualTests result;
  double product = 0.0;
  double square_of_counts = 0.0;
  double square_of_distribution = 0.0;
  std::int64_t cells = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto count = static_cast<double>(counts[i]);
    product += count * sampler.distribution[i];
    square_of_counts += count * count;
    square_of_distribution += sampler.distribution[i] * sampler.distribution[i];
    if (!(sampler.distribution[i] > 0.0)) continue;
    const double expected = static_cast<double>(n) * sampler.distribution[i];
    if (expected > 0.0) result.chi_squared += (count - expected) * (count - expected) / expected;
    ++cells;
  }
  if (square_of_counts > 0.0) result.cosine = product / std::sqrt(square_of_counts * square_of_distribution);
  const auto df = static_cast<double>(cells - 1);
  result.chi_squared_limit = df + 10.0 * std::sqrt(2.0 * df);
  return result;
}

}  // namespace draftproof
