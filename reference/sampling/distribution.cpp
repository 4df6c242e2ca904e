#include "reference/sampling/distribution.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "reference/sampling/difference_masses.hpp"

namespace draftproof {
namespace {

constexpr double kNoWeight = -std::numeric_limits<double>::infinity();

}  // namespace

void send_log_weights(const LogitsDistribution& row, Token excluded, const LogWeightSink& sink) {
  std::array<double, kTileTokens> log_weights;
  for (std::size_t t = 0; t < row.tile_count(); ++t) {
    row.log_weights_of_tile(t, log_weights.data());
    const Token first = static_cast<Token>(t * kTileTokens);
    if (excluded >= first && excluded < first + kTileTokens)
      log_weights[static_cast<std::size_t>(excluded - first)] = kNoWeight;
    sink(first, {log_weights.data(), row.tile_size(t)});
  }
}

LogitsDistribution& Distribution::make_logits_distribution() {
  if (LogitsDistribution* existing = std::get_if<LogitsDistribution>(&distribution_)) return *existing;
  return distribution_.emplace<LogitsDistribution>();
}

std::int64_t Distribution::vocab_size() const {
  if (const OneHot* distribution = one_hot()) return distribution->vocab_size;
  if (const ProbabilityRow* distribution = probabilities()) return distribution->vocab_size();
  return logits_distribution()->vocab_size();
}

float Distribution::probability(Token token) const {
  if (const OneHot* distribution = one_hot()) return token == distribution->token ? 1.0f : 0.0f;
  if (const ProbabilityRow* distribution = probabilities()) return distribution->probability(token);
  return logits_distribution()->probability(token);
}

float Distribution::log_probability(Token token) const {
  if (const LogitsDistribution* distribution = logits_distribution()) return distribution->log_probability(token);
  const float p = probability(token);
  return static_cast<float>(p > 0.0f ? natural_log(static_cast<double>(p)) : kNoWeight);
}

std::int64_t Distribution::kept_count() const {
  if (one_hot() != nullptr) return 1;
  if (const LogitsDistribution* distribution = logits_distribution()) return distribution->kept_count();
  std::int64_t count = 0;
  for (Token i = 0; i < vocab_size(); ++i) count += probability(i) > 0.0f ? 1 : 0;
  return count;
}

double Distribution::kept_mass() const {
  return logits_distribution() != nullptr ? logits_distribution()->kept_mass() : 1.0;
}

const float* Distribution::probabilities_in(std::size_t begin, std::size_t count, float* scratch) const {
  if (const LogitsDistribution* distribution = logits_distribution())
    return distribution->probabilities_in(begin, count, scratch);
  if (const ProbabilityRow* distribution = probabilities())
    return distribution->probabilities_in(begin, count, scratch);
  std::fill_n(scratch, count, 0.0f);
  const auto token = static_cast<std::size_t>(one_hot()->token);
  if (token >= begin && token < begin + count) scratch[token - begin] = 1.0f;
  return scratch;
}

const float* Distribution::tile_probabilities(std::size_t tile, float* scratch) const {
  return probabilities_in(tile * kTileTokens, tile_size(tile), scratch);
}

Token DistributionMasses::draw(const RandomBlock& block) const {
  if (const OneHot* distribution = distribution_.one_hot()) return distribution->token;
  if (const LogitsDistribution* distribution = distribution_.logits_distribution()) return distribution->draw(block);
  DifferenceMasses masses(distribution_, nullptr);
  masses.add_up();
  if (masses.total() == 0) throw all_zero(distribution_.probabilities()->row());
  return masses.draw(block);
}

void DistributionMasses::for_each_log_weight(const LogWeightSink& sink) const {
  if (distribution_.logits_distribution() != nullptr)
    return send_log_weights(*distribution_.logits_distribution(), kPaddingToken, sink);
  // Added up for the checks alone: a race would pass over a bad row in silence.
  DifferenceMasses masses(distribution_, nullptr);
  masses.add_up();
  if (masses.total() == 0) throw all_zero(distribution_.probabilities()->row());
  masses.for_each_log_weight(sink);
}

std::vector<double> DistributionMasses::values() const {
  DifferenceMasses masses(distribution_, nullptr);
  masses.add_up();
  if (masses.total() == 0) throw all_zero(distribution_.probabilities()->row());
  return masses.values();
}

Token ResidualMasses::draw(const RandomBlock& block) const {
  if (const OneHot* target = p_.one_hot()) return target->token;
  const OneHot* proposal = q_.one_hot();
  if (p_.logits_distribution() != nullptr && proposal != nullptr)
    return p_.logits_distribution()->draw(block, proposal->token);
  DifferenceMasses masses(p_, &q_);
  masses.add_up();
  return masses.total() == 0 ? DistributionMasses(p_).draw(block) : masses.draw(block);
}

void ResidualMasses::for_each_log_weight(const LogWeightSink& sink) const {
  const OneHot* proposal = q_.one_hot();
  if (p_.logits_distribution() != nullptr && proposal != nullptr) {
    // As in LogitsDistribution::draw: where nothing else has mass, rounding alone led here and the token itself is
    // right.
    const bool alone = p_.logits_distribution()->total_without(proposal->token) == 0;
    const Token excluded = alone ? kPaddingToken : proposal->token;
    return send_log_weights(*p_.logits_distribution(), excluded, sink);
  }
  DifferenceMasses masses(p_, &q_);
  masses.add_up();
  if (masses.total() == 0) return DistributionMasses(p_).for_each_log_weight(sink);
  masses.for_each_log_weight(sink);
}

std::vector<double> ResidualMasses::values() const {
  DifferenceMasses masses(p_, &q_);
  masses.add_up();
  return masses.total() == 0 ? DistributionMasses(p_).values() : masses.values();
}

}  // namespace draftproof
