// The distribution of a logits row: fixed-point masses over the tokens that its filters kept. See
// numerics/fixed_point.hpp for the formulas; everything that is summed here is an integer, so no result depends on an
// order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/numerics/row_kernels.hpp"
#include "reference/random/philox.hpp"
#include "reference/sampling/row_status.hpp"
#include "reference/token.hpp"

namespace draftproof {

// A prefix of the total order (value descending, id ascending), cut further by a least mass. What top-k, top-p and
// min-p leave of a row is always of this form, and so is the intersection of several.
struct KeptSet {
  // Tokens stand in the prefix when they stand before (last_value, last_token) or are that token. The default keeps
  // all.
  float last_value;
  Token last_token;
  std::uint64_t least_mass;  // in the scale of the row
};

// log p_i = x_i - N ln 2 - log(S 2^-44) for every token of a row that has any mass.
struct LogNormaliser {
  std::int32_t exponent;  // N
  double log_total;

  // Natural log; -infinity for a masked logit.
  float log_probability(float logit) const;
};

class LogitsDistribution {
 public:
  // The distribution of processed logits [V]: softmax, in fixed point. `logits` is not copied and must outlive the
  // object. RowError: nan_logit, infinite_logit, logit_too_large (above 2^29), nothing_left. Error (input): V = 0 or V
  // > 2^19.
  void assign(std::span<const float> logits, const RowName& row);

  // Drops every token outside the set. At least one token must remain; the sets made by logits/filters.hpp see to that.
  void keep(const KeptSet& kept);

  std::int64_t vocab_size() const { return static_cast<std::int64_t>(logits_.size()); }
  std::size_t tile_count() const { return tiles_.size(); }
  std::span<const float> logits() const { return logits_; }

  bool is_kept(Token token) const { return weights_[static_cast<std::size_t>(token)] > 0.0f; }
  std::int64_t kept_count() const { return kept_count_; }
  // Share of the unfiltered row's mass that the kept tokens have, in (0, 1].
  double kept_mass() const;

  std::int32_t exponent() const { return exponent_; }  // N
  std::uint64_t total() const { return total_; }       // S, over the kept tokens
  std::uint64_t tile_mass(std::size_t tile) const { return row_scale(tiles_[tile].sum, exponent_, tiles_[tile].n_max); }

  std::uint64_t mass_in_tile(Token token) const {
    return mass_of_weight(weights_[static_cast<std::size_t>(token)]);
  }                                        // W_i
  std::uint64_t mass(Token token) const {  // m_i
    return row_mass(weights_[static_cast<std::size_t>(token)], static_cast<std::size_t>(token / kTileTokens));
  }
  std::uint64_t total_without(Token token) const;  // S with the mass of one token taken out of its tile
  float probability(Token token) const;            // p_i; 0 for a dropped token
  float log_probability(Token token) const;        // natural log; -infinity for a dropped token
  LogNormaliser log_normaliser() const { return {exponent_, log_total_}; }

  // f 2^(n - N_t) of one tile's tokens; 0 for a dropped token. row_mass() makes m_i of it.
  std::span<const float> tile_weights(std::size_t tile) const {
    return {weights_.data() + tile_begin(tile), tile_size(tile)};
  }
  std::uint64_t row_mass(float weight, std::size_t tile) const {
    return row_scale(mass_of_weight(weight), exponent_, tiles_[tile].n_max);
  }

  // Probabilities of the tokens [begin, begin + count), all of one tile, written to `scratch` [count]; returns
  // `scratch`.
  const float* probabilities_in(std::size_t begin, std::size_t count, float* scratch) const;
  const float* tile_probabilities(std::size_t tile, float* scratch) const {
    return probabilities_in(tile_begin(tile), tile_size(tile), scratch);
  }

  // Inverse mass: the block's high half picks the tile, its low half the token inside. `excluded` (-1: none) has its
  // mass taken out, which is the residual of a one-hot proposal; if nothing else has mass, `excluded` is returned.
  Token draw(const RandomBlock& block, Token excluded = kPaddingToken) const;

 private:
  std::size_t tile_begin(std::size_t tile) const { return tile * kTileTokens; }
  std::size_t tile_size(std::size_t tile) const {
    const std::size_t left = logits_.size() - tile_begin(tile);
    return left < kTileTokens ? left : kTileTokens;
  }
  void add_up();

  std::span<const float> logits_;
  std::vector<float> weights_;  // f 2^(n - N_t); 0 for masked and dropped tokens
  std::vector<TileMass> tiles_;
  std::int32_t exponent_ = kMaskedExponent;
  std::uint64_t total_ = 0;
  std::uint64_t unfiltered_total_ = 0;
  std::int64_t kept_count_ = 0;
  float reciprocal_ = 0.0f;
  double log_total_ = 0.0;
};

// The greedy choice of processed logits [V]: the largest value, lowest id first among equals. Errors as
// LogitsDistribution's.
Token greedy_token(std::span<const float> logits, const RowName& row);

}  // namespace draftproof
