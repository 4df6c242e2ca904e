#include "reference/logits/logprobs.hpp"

#include <algorithm>
#include <string>

#include "base/error.hpp"

namespace draftproof {

std::vector<TokenLogprob> top_logprobs(const LogitsDistribution& row, std::int64_t n, Token sampled) {
  if (n < 0) throw usage_error("logprobs", "n is " + std::to_string(n) + "; expected 0 or more");
  if (sampled < 0 || sampled >= row.vocab_size())
    throw usage_error("logprobs", "the sampled token is " + std::to_string(sampled) + "; expected an id in [0, " +
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
  bool has_sampled = false;
  for (std::ptrdiff_t i = 0; i < listed; ++i) {
    const Token token = kept[static_cast<std::size_t>(i)];
    out.push_back({token, row.log_probability(token), i + 1});
    has_sampled = has_sampled || token == sampled;
  }
  if (!has_sampled) {
    const auto rank = 1 + std::count_if(kept.begin(), kept.end(), [&](Token i) { return before(i, sampled); });
    out.push_back({sampled, row.log_probability(sampled), rank});
  }
  return out;
}

}  // namespace draftproof
