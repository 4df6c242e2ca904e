#include "reference/logits/logprobs.hpp"

#include <algorithm>
#include <string>

#include "base/error.hpp"

namespace draftproof {

std::vector<TokenLogprob> top_logprobs(const LogitsDistribution& row, std::int64_t n, Token sampled,
                                       std::span<const Token> ids) {
  if (n < 0) throw usage_error("logprobs", "n is " + std::to_string(n) + "; expected 0 or more");
  std::vector<Token> also{sampled};
  also.insert(also.end(), ids.begin(), ids.end());
  for (const Token token : also)
    if (token < 0 || token >= row.vocab_size())
      throw usage_error("logprobs", "the token asked for is " + std::to_string(token) + "; expected an id in [0, " +
                                        std::to_string(row.vocab_size()) + ")");
  const auto value_of = [&](Token i) { return row.logit(i); };
  const auto before = [&](Token a, Token b) {
    return value_of(a) > value_of(b) || (value_of(a) == value_of(b) && a < b);
  };
  std::vector<Token> kept;
  for (Token i = 0; i < row.vocab_size(); ++i)
    if (row.is_kept(i)) kept.push_back(i);
  const auto listed = std::min<std::ptrdiff_t>(n, static_cast<std::ptrdiff_t>(kept.size()));
  std::partial_sort(kept.begin(), kept.begin() + listed, kept.end(), before);

  std::vector<TokenLogprob> out;
  for (std::ptrdiff_t i = 0; i < listed; ++i) {
    const Token token = kept[static_cast<std::size_t>(i)];
    out.push_back({token, row.log_probability(token), i + 1});
  }
  for (const Token token : also) {
    if (std::any_of(out.begin(), out.end(), [&](const TokenLogprob& entry) { return entry.token == token; })) continue;
    const auto rank = 1 + std::count_if(kept.begin(), kept.end(), [&](Token i) { return before(i, token); });
    out.push_back({token, row.log_probability(token), rank});
  }
  return out;
}

}  // namespace draftproof
