// The distribution of one row, whatever it came from, and the masses that can be drawn from it.
//
// A verifier sees rows only through `probability`, and draws only from DistributionMasses (the row itself: bonus token,
// plain sampling) and ResidualMasses (max(p - q, 0): the recovered token). Both are unnormalised integer masses over
// tiles.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <variant>
#include <vector>

#include "reference/random/philox.hpp"
#include "reference/sampling/logits_distribution.hpp"
#include "reference/sampling/probability_row.hpp"

namespace draftproof {

// All mass on one token: the target of a greedy row, the proposal of a drafter without probabilities.
struct OneHot {
  Token token = 0;
  std::int64_t vocab_size = 0;
};

class Distribution {
 public:
  Distribution() : distribution_(OneHot{}) {}

  // The distribution object inside is kept between rows so that its buffers are reused; fill it with assign().
  LogitsDistribution& make_logits_distribution();
  void make_probabilities(const RowView& view, const RowName& row) { distribution_ = ProbabilityRow(view, row); }
  void make_one_hot(Token token, std::int64_t vocab_size) { distribution_ = OneHot{token, vocab_size}; }

  const LogitsDistribution* logits_distribution() const { return std::get_if<LogitsDistribution>(&distribution_); }
  const ProbabilityRow* probabilities() const { return std::get_if<ProbabilityRow>(&distribution_); }
  const OneHot* one_hot() const { return std::get_if<OneHot>(&distribution_); }

  std::int64_t vocab_size() const;
  std::size_t tile_count() const { return static_cast<std::size_t>((vocab_size() + kTileTokens - 1) / kTileTokens); }
  std::size_t tile_size(std::size_t tile) const {
    const std::int64_t left = vocab_size() - static_cast<std::int64_t>(tile) * kTileTokens;
    return static_cast<std::size_t>(left < kTileTokens ? left : kTileTokens);
  }
  float probability(Token token) const;
  float log_probability(Token token) const;  // natural log, -infinity for probability 0
  std::int64_t kept_count() const;           // tokens of positive probability (of a probability row: counted)
  double kept_mass() const;                  // see LogitsDistribution; 1 for the others

  // Probabilities of the tokens [begin, begin + count), all of one tile, in place or written to `scratch` [count].
  const float* probabilities_in(std::size_t begin, std::size_t count, float* scratch) const;
  // The same of a whole tile; scratch [kTileTokens].
  const float* tile_probabilities(std::size_t tile, float* scratch) const;

 private:
  std::variant<OneHot, ProbabilityRow, LogitsDistribution> distribution_;
};

// Receives the logarithms of the masses of a tile: first token and log weights (-infinity: no mass).
using LogWeightSink = std::function<void(Token first_token, std::span<const double> log_weights)>;

// The kept logits of a row but for one token's (kPaddingToken: of all), tile by tile.
void send_log_weights(const LogitsDistribution& row, Token excluded, const LogWeightSink& sink);

// The masses of a row's own distribution. Errors (input, naming the row) of a row given as probabilities: a number
// outside [0, 1] (naming the column too), all zeros, a sum above 3.
class DistributionMasses {
 public:
  explicit DistributionMasses(const Distribution& distribution) : distribution_(distribution) {}
  Token draw(const RandomBlock& block) const;
  void for_each_log_weight(const LogWeightSink& sink) const;
  std::vector<double> values() const;  // [V] the probabilities

 private:
  const Distribution& distribution_;
};

// The masses of max(p - q, 0), or those of p where that is zero everywhere (which p = q reaches only by rounding).
// Errors as above, of either row.
class ResidualMasses {
 public:
  ResidualMasses(const Distribution& p, const Distribution& q) : p_(p), q_(q) {}
  Token draw(const RandomBlock& block) const;
  void for_each_log_weight(const LogWeightSink& sink) const;
  std::vector<double> values() const;  // [V] the floats max(p - q, 0)

 private:
  const Distribution& p_;
  const Distribution& q_;
};

}  // namespace draftproof
