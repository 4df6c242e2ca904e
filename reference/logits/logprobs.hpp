// Log-probabilities that a request may ask for: the N most probable tokens of a row and the rank of the sampled one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/sampling/logits_distribution.hpp"

namespace draftproof {

// Ids that a request may give, whose log-probabilities are listed besides.
inline constexpr std::size_t kLogprobTokenIdsMax = 128;

struct TokenLogprob {
  Token token;
  float logprob;      // natural log
  std::int64_t rank;  // 1 is the first of the total order
};

// The first n tokens of the total order with a positive probability (fewer where the row has fewer), then the sampled
// token and the `ids` asked for, each if it is not among those before it. `row` may be filtered; ranks count kept
// tokens only. Errors (usage): n < 0, a token outside the vocabulary.
std::vector<TokenLogprob> top_logprobs(const LogitsDistribution& row, std::int64_t n, Token sampled,
                                       std::span<const Token> ids = {});

}  // namespace draftproof
