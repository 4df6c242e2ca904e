// Masses of max(p - q, 0) over the tiles of two rows (or of the same part of both), in units of 2^-62.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reference/sampling/distribution.hpp"

namespace draftproof {

// Add up first, then draw. The two scratch tiles live here.
class DifferenceMasses {
 public:
  // q null: the masses of p itself.
  DifferenceMasses(const Distribution& p, const Distribution* q) : p_(p), q_(q) {}

  // The sums of the tiles; p rows sum to 1, so the row's sum stays below 2^63. Errors: a probability outside [0, 1], or
  // a row whose sum would overflow.
  void add_up();
  std::uint64_t total() const { return total_; }
  const std::vector<std::uint64_t>& tile_sums() const { return sums_; }

  Token draw(const RandomBlock& block);
  Token token_at(std::size_t tile, std::uint64_t before);  // of a tile, where its sum first exceeds `before`
  void for_each_log_weight(const LogWeightSink& sink);
  std::vector<double> values();

 private:
  using TileScratch = std::array<float, kTileTokens>;

  void load(std::size_t tile, std::size_t first, std::size_t count);
  void load(std::size_t tile) { load(tile, 0, p_.tile_size(tile)); }
  bool has_proposal(std::size_t tile) const;
  float difference_at(std::size_t i) const {
    return positive_part_of_difference(p_part_[i], q_part_ == nullptr ? 0.0f : q_part_[i]);
  }
  std::uint64_t mass_at(std::size_t i) const { return residual_mass(difference_at(i)); }
  std::uint64_t sum_of_run(std::size_t i) const;
  void throw_bad_probability(std::size_t tile) const;
  [[noreturn]] void throw_bad_sum() const;

  const Distribution& p_;
  const Distribution* q_;
  const float* p_part_ = nullptr;
  const float* q_part_ = nullptr;
  std::vector<std::uint64_t> sums_;
  std::uint64_t total_ = 0;
  TileScratch p_scratch_;
  TileScratch q_scratch_;
};

}  // namespace draftproof
