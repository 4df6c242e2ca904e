#include "sim/acceptance/beta_mixture.hpp"

#include "reference/numerics/boost_math.hpp"

#include <algorithm>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>

#include "base/error.hpp"
#include "sim/acceptance/rates.hpp"

namespace draftproof {
namespace {

// Here F and its derivative are those of 1 - x under Beta(beta, alpha): x itself keeps too few digits of 1 - x.
constexpr double kNearOne = 0x1p-20;

}  // namespace

BetaShape beta_of(double mean, double standard_deviation, const std::string& where) {
  if (!(mean > 0.0 && mean < 1.0))
    throw usage_error(where, "the mean rate is " + std::to_string(mean) + "; expected a number in (0, 1)");
  const double widest = std::sqrt(mean * (1.0 - mean));
  if (!(standard_deviation > 0.0 && standard_deviation < widest))
    throw usage_error(where, "the spread is " + std::to_string(standard_deviation) +
                                 "; expected a standard deviation above 0 and below sqrt(mean (1 - mean)) = " +
                                 std::to_string(widest));
  const double total = mean * (1.0 - mean) / (standard_deviation * standard_deviation) - 1.0;
  return {mean * total, (1.0 - mean) * total};
}

std::vector<double> beta_survival(BetaShape shape, double decay, std::int32_t depth) {
  std::vector<double> survival;
  double product = 1.0;
  double decayed = 1.0;  // decay^j
  for (std::int32_t j = 0; j < depth; ++j, decayed *= decay)
    survival.push_back(product *= decayed * (shape.alpha + j) / (shape.alpha + shape.beta + j));
  return survival;
}

BetaMixture::BetaMixture(BetaShape shape, double decay, std::uint64_t seed)
    : shape_(shape), decay_(decay), seed_(seed) {
  // E[r^i over a class] is a difference of F_i, the distribution function of Beta(alpha + i, beta), times E[r^i]. Of
  // the bounds x between classes F_i comes by F_{i+1}(x) = F_i(x) - x^(alpha + i) (1 - x)^beta / ((alpha + i) B(alpha
  // + i, beta)), whose errors stay far below the 2^-32 of a random word.
  struct Bound {
    double x, up_to, term;
  };
  std::vector<Bound> bounds;
  const double first = shape.alpha + 1.0;
  for (std::size_t c = 1; c < kClasses; ++c) {
    double from_one = 0.0;  // 1 - x, with all digits where x rounds to 1
    const double x = boost::math::ibeta_inv(shape.alpha, shape.beta,
                                            static_cast<double>(c) / static_cast<double>(kClasses), &from_one);
    if (from_one < kNearOne) {
      bounds.push_back({x, boost::math::ibetac(shape.beta, first, from_one),
                        x * from_one * boost::math::ibeta_derivative(shape.beta, first, from_one) / first});
    } else {
      bounds.push_back({x, boost::math::ibeta(first, shape.beta, x),
                        x * (1.0 - x) * boost::math::ibeta_derivative(first, shape.beta, x) / first});
    }
  }
  bounds.push_back({1.0, 1.0, 0.0});
  survivals_.assign(kClasses, {});
  const std::vector<double> whole = beta_survival(shape, decay, kAcceptanceDepthMax);
  for (std::size_t i = 1; i <= whole.size(); ++i) {
    const double order = shape.alpha + static_cast<double>(i);
    double below = 0.0;
    for (std::size_t c = 0; c < kClasses; ++c) {
      Bound& bound = bounds[c];
      const double before = i == 1 ? 1.0 : survivals_[c].back();
      survivals_[c].push_back(std::clamp(kClasses * whole[i - 1] * (bound.up_to - below), 0.0, before));
      below = bound.up_to;
      bound.up_to -= bound.term;
      bound.term *= bound.x * (order + shape.beta) / (order + 1.0);
    }
  }
  for (const std::vector<double>& survival : survivals_) tables_.emplace_back(survival);
}

AcceptanceState BetaMixture::begin(std::uint64_t request) const {
  const std::uint64_t seed = derive_seed(seed_, request);
  const std::uint32_t word = acceptance_block(seed, AcceptanceWords::request, 0).word[0];
  return {seed, static_cast<std::int32_t>(word % kClasses), 0};
}

std::int32_t BetaMixture::accepted(AcceptanceState& state, AcceptancePlace place, std::int32_t nodes,
                                   std::int32_t depth) const {
  require_draft_shape(nodes, depth);
  const std::uint32_t word = acceptance_block(state.seed, AcceptanceWords::step, place.output_len).word[0];
  return std::min(tables_[static_cast<std::size_t>(state.choice)].accepted(word), depth);
}

std::vector<double> BetaMixture::survival(std::int32_t nodes, std::int32_t depth, std::int32_t) const {
  require_draft_shape(nodes, depth);
  return beta_survival(shape_, decay_, depth);
}

std::vector<double> BetaMixture::survival_in_run(std::int32_t nodes, std::int32_t depth, std::int32_t) const {
  require_draft_shape(nodes, depth);
  const auto levels = static_cast<std::size_t>(depth);
  std::vector<double> sum(levels);
  double steps = 0.0;  // per token
  for (const std::vector<double>& survival : survivals_) {
    const double of_class = 1.0 / acceptance_length_of(std::span(survival).first(levels));
    steps += of_class;
    for (std::size_t i = 0; i < levels; ++i) sum[i] += of_class * survival[i];
  }
  for (double& s : sum) s /= steps;
  return sum;
}

}  // namespace draftproof
