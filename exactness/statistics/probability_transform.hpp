// The randomised probability integral transform: a draw from a discrete distribution becomes a uniform number, exactly.
// Draws from a thousand different distributions, one from each, thus become one sample that can be tested.
//
//   u = (mass of the tokens ranked before x) + v p(x),   v uniform in [0, 1), independent of the draw
//
// Tokens are ranked by falling probability (ties: lowest id first). Most faults of samplers change that order's ends: a
// wrong temperature, top-p, top-k or min-p multiplies probabilities by a factor that rises or falls with the rank, so
// that p' - p changes its sign once and the Kolmogorov distance of the u is the total variation distance itself.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/token.hpp"

namespace draftproof {

// Mass of the tokens ranked before `token`. One pass over the distribution [V].
double mass_ranked_before(std::span<const double> distribution, Token token);

// The same for all tokens of positive probability at once (0 for the others): one sort.
std::vector<double> masses_ranked_before(std::span<const double> distribution);

// Counts of uniform numbers in kCells equal cells, so that any number of them takes constant memory. Tallies add up, in
// any order.
class UniformTally {
 public:
  static constexpr std::size_t kCells = std::size_t{1} << 16;

  UniformTally() : counts_(kCells, 0) {}
  void add(double u);
  void merge(const UniformTally& other);

  std::int64_t n() const { return n_; }
  // D_n seen at the edges of the cells: at most 2^-16 below the exact distance.
  double distance() const;
  // Counts in `bins` equal bins; a power of two up to kCells.
  std::vector<std::int64_t> binned(std::size_t bins) const;

 private:
  std::vector<std::int64_t> counts_;
  std::int64_t n_ = 0;
};

}  // namespace draftproof
