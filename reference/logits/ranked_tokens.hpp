// The tokens that are left of a row, in the total order (value descending, id ascending), with their masses: what
// filters look at that are no prefix, or a prefix of another measure.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/token.hpp"
#include "reference/numerics/unsigned_128.hpp"
#include "reference/sampling/logits_distribution.hpp"

namespace draftproof {

struct RankedToken {
  Token token;
  float value;
  std::uint64_t mass;
};
using Ranked = std::vector<RankedToken>;

// Those of a row that have any mass.
Ranked ranked_tokens(const LogitsDistribution& row);

std::uint64_t total_mass(const Ranked& tokens);

// The distance from the largest logit in steps of 2^-32: a token that has any mass is less than 64 below it.
inline std::uint64_t steps_below(const Ranked& tokens, const RankedToken& t) {
  return static_cast<std::uint64_t>(
      std::llrint((static_cast<double>(tokens.front().value) - static_cast<double>(t.value)) * 0x1p32));
}

// Sigma m_i d_i in these steps.
Unsigned128 weighted_steps(const Ranked& tokens);

// Drops the tokens that `keeps` does not hold for, but the first `least`.
void keep_if(Ranked& tokens, std::size_t least, const auto& keeps) {
  Ranked kept;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (i < least || keeps(tokens[i])) kept.push_back(tokens[i]);
  tokens = std::move(kept);
}

}  // namespace draftproof
