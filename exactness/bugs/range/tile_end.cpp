// B78: the inverse of a cumulative sum, tile by tile, where a tile's sum and its running sum round differently.
#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "exactness/bugs/families.hpp"
#include "exactness/bugs/filter/hunts.hpp"
#include "reference/numerics/fixed_point.hpp"
#include "reference/random/philox.hpp"
#include "reference/random/uniform.hpp"

namespace draftproof {
namespace {

constexpr std::size_t kTile = 8;

// Sum: binary32 as the kernel's, or integer masses, whose sums have no rounding.
template <class Sum>
class TiledDraw {
 public:
  explicit TiledDraw(std::span<const double> distribution) {
    for (const double p : distribution) masses_.push_back(mass_of(p));
    masses_.resize((masses_.size() + kTile - 1) / kTile * kTile, Sum(0));
    for (std::size_t tile = 0; tile < masses_.size(); tile += kTile) before_.push_back(before_.back() + reduced(tile));
  }

  Sum end_of_tile(std::size_t tile) const { return before_[tile + 1]; }

  // The first tile whose end is past the number, and in it the first token whose running sum is; where none is, the
  // tile's last token.
  Token draw(Sum number) const {
    const auto past = std::upper_bound(before_.begin() + 1, before_.end(), number);
    const auto tile = std::min<std::size_t>(static_cast<std::size_t>(past - before_.begin()) - 1, before_.size() - 2);
    Sum running = before_[tile];
    for (std::size_t i = 0; i < kTile; ++i) {
      running += masses_[tile * kTile + i];
      if (running > number) return static_cast<Token>(tile * kTile + i);
    }
    return static_cast<Token>(tile * kTile + kTile - 1);
  }

 private:
  static Sum mass_of(double p) {
    if constexpr (std::is_floating_point_v<Sum>) {
      return static_cast<Sum>(p);
    } else {
      return residual_mass(p);
    }
  }
  // As lanes add: in pairs, then pairs of pairs.
  Sum reduced(std::size_t first) const {
    std::vector<Sum> lanes(masses_.begin() + static_cast<std::ptrdiff_t>(first),
                           masses_.begin() + static_cast<std::ptrdiff_t>(first + kTile));
    for (std::size_t apart = kTile / 2; apart > 0; apart /= 2)
      for (std::size_t i = 0; i < apart; ++i) lanes[i] += lanes[i + apart];
    return lanes[0];
  }

  std::vector<Sum> masses_;
  std::vector<Sum> before_{Sum(0)};
};

// Four tiles of which the last token is impossible.
std::vector<double> row_of_tiles(std::uint64_t index) {
  std::vector<double> row;
  double sum = 0.0;
  for (std::uint32_t i = 0; i < 4 * kTile; ++i) {
    const RandomBlock block = PhiloxSource().block(derive_seed(78, index), {i, 0, 0, Purpose::choice});
    sum += row.emplace_back(i % kTile == kTile - 1 ? 0.0 : uniform_53(high_half(block)));
  }
  for (double& p : row) p = static_cast<double>(static_cast<float>(p / sum));
  return row;
}

std::vector<SupportCase> cases_at_the_ends(bool faulty) {
  std::vector<SupportCase> cases;
  for (std::uint64_t index = 0; index < 32; ++index) {
    const std::vector<double> row = row_of_tiles(index);
    const auto in_floats = std::make_shared<const TiledDraw<float>>(row);
    const auto in_integers = std::make_shared<const TiledDraw<std::uint64_t>>(row);
    KeptTokens support;
    for (const double p : row) support.push_back(p > 0.0);
    for (std::size_t tile = 0; tile < 4; ++tile) {
      const float u = std::nextafter(in_floats->end_of_tile(tile), 0.0f);
      cases.push_back(
          {"row " + std::to_string(index) + ", a number just below the end of tile " + std::to_string(tile), support,
           [=] { return faulty ? in_floats->draw(u) : in_integers->draw(in_integers->end_of_tile(tile) - 1); }});
    }
  }
  return cases;
}

Finding find_token_at_tile_end(bool faulty) {
  const std::vector<SupportCase> cases = cases_at_the_ends(faulty);
  return find_impossible_token(cases);
}

}  // namespace

std::vector<Bug> tile_end_bugs() {
  return {{.id = "B78",
           .source = "SGLang 0.5.23, chain kernel",
           .fault =
               "the scan of a tile and its reduction round differently: a number between the two falls to the tile's "
               "last token, which may be impossible",
           .hunts = {{Detector::injection, find_token_at_tile_end}}}};
}

}  // namespace draftproof
