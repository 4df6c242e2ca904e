#include "reference/sampling/dense_draw.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/error.hpp"
#include "reference/random/uniform.hpp"

namespace draftproof {

Token DenseDraw::draw(const RandomBlock& block) const {
  std::vector<std::uint64_t> tiles((masses_.size() + kTileTokens - 1) / kTileTokens, 0);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < masses_.size(); ++i) tiles[i / kTileTokens] += residual_mass(masses_[i]);
  for (const std::uint64_t sum : tiles) total += sum;
  if (total == 0) throw Error(ErrorKind::internal, "draw", "every mass is 0");

  std::uint64_t left = multiply_high(high_half(block), total);
  std::size_t tile = 0;
  while (left >= tiles[tile]) left -= tiles[tile++];
  left = multiply_high(low_half(block), tiles[tile]);
  std::size_t token = tile * kTileTokens;
  for (std::uint64_t mass = residual_mass(masses_[token]); left >= mass; mass = residual_mass(masses_[++token]))
    left -= mass;
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
