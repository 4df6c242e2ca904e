#include "reference/sampling/dense_draw.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/error.hpp"
#include "reference/sampling/tile_draw.hpp"

namespace draftproof {

std::vector<std::uint64_t> DenseDraw::tile_sums() const {
  std::vector<std::uint64_t> sums((masses_.size() + kTileTokens - 1) / kTileTokens, 0);
  for (std::size_t i = 0; i < masses_.size(); ++i) sums[i / kTileTokens] += residual_mass(masses_[i]);
  return sums;
}

Token DenseDraw::draw(const RandomBlock& block) const {
  const std::vector<std::uint64_t> sums = tile_sums();
  std::uint64_t total = 0;
  for (const std::uint64_t sum : sums) total += sum;
  if (total == 0) throw Error(ErrorKind::internal, "draw", "every mass is 0");
  const auto sum_of = [&](std::size_t tile) { return sums[tile]; };
  const TilePlace place = place_of_draw(block, total, sum_of, sum_of);
  return token_at(place.tile, place.before);
}

Token DenseDraw::token_at(std::size_t tile, std::uint64_t before) const {
  std::size_t token = tile * kTileTokens;
  for (std::uint64_t mass = residual_mass(masses_[token]); before >= mass; mass = residual_mass(masses_[++token]))
    before -= mass;
  return static_cast<Token>(token);
}

void DenseDraw::for_each_log_weight(const LogWeightSink& sink) const {
  std::vector<double> log_weights;
  for (std::size_t begin = 0; begin < masses_.size(); begin += kTileTokens) {
    log_weights.clear();
    for (const double x : masses_.subspan(begin, std::min<std::size_t>(kTileTokens, masses_.size() - begin)))
      log_weights.push_back(x > 0.0 ? natural_log(x) : -std::numeric_limits<double>::infinity());
    sink(static_cast<Token>(begin), log_weights);
  }
}

}  // namespace draftproof
