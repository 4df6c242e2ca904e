// Greedy multi-path block verification: the greatest of K independent drafts in an order of strings, judged as one
// chain that has that distribution.
#include <algorithm>
#include <map>

#include "exactness/proof/acceptance_sums.hpp"

namespace draftproof {
namespace {

using StringDistribution = std::map<TokenString, Rational>;

TokenString first_tokens(const TokenString& string, std::size_t count) {
  return {string.begin(), string.begin() + static_cast<std::ptrdiff_t>(count)};
}
TokenString joined(TokenString prefix, const TokenString& string) {
  prefix.insert(prefix.end(), string.begin(), string.end());
  return prefix;
}

// The strict order of strings of one length after a prefix: where two first differ, the greater p / q decides, then the
// greater id.
class StringOrder {
 public:
  StringOrder(const Models& models, const TokenString& prefix) : models_(models), prefix_(prefix) {}

  bool operator()(const TokenString& s, const TokenString& t) const {
    const auto [at_s, at_t] = std::ranges::mismatch(s, t);
    if (at_s == s.end()) return false;
    const TokenString path = joined(prefix_, {s.begin(), at_s});
    const ExactMasses& p = models_.target(path);
    const ExactMasses& q = models_.draft(path);
    const auto x = static_cast<std::size_t>(*at_s);
    const auto y = static_cast<std::size_t>(*at_t);
    const Rational ratio_x = p[x] / q[x];
    const Rational ratio_y = p[y] / q[y];
    return ratio_x != ratio_y ? ratio_x < ratio_y : x < y;
  }

 private:
  const Models& models_;
  const TokenString& prefix_;
};

// The distribution of the first `length` tokens of the greatest of K drafts, by rank: with A the probability that a
// draft's prefix ranks strictly below x and J that of x itself, all K are at most x with (A + J)^K and below it with
// A^K.
StringDistribution greatest_by_rank(const Models& models, const TokenString& prefix, std::int32_t length,
                                    std::int32_t num_paths) {
  std::vector<WeightedString> strings = strings_of(draft_of(models), prefix, length);
  const StringOrder below(models, prefix);
  std::ranges::sort(strings,
                    [&](const WeightedString& s, const WeightedString& t) { return below(s.tokens, t.tokens); });
  StringDistribution distribution;
  Rational ranked_below(0);
  for (const WeightedString& string : strings) {
    const Rational ranked_up_to = ranked_below + string.probability;
    distribution[string.tokens] = power(ranked_up_to, num_paths) - power(ranked_below, num_paths);
    ranked_below = ranked_up_to;
  }
  return distribution;
}

// The distribution of the greatest of K whole drafts, by looking at every pair of the greatest so far and one more.
StringDistribution greatest_by_pairs(const Models& models, const TokenString& prefix, std::int32_t length,
                                     std::int32_t num_paths) {
  const std::vector<WeightedString> strings = strings_of(draft_of(models), prefix, length);
  const StringOrder below(models, prefix);
  StringDistribution distribution;
  for (const WeightedString& string : strings) distribution[string.tokens] = string.probability;
  for (std::int32_t i = 1; i < num_paths; ++i) {
    StringDistribution next;
    for (const auto& [greatest, probability] : distribution)
      for (const WeightedString& string : strings)
        next[below(greatest, string.tokens) ? string.tokens : greatest] += probability * string.probability;
    distribution = std::move(next);
  }
  return distribution;
}

}  // namespace

Rational greedy_multipath_recursion(const Models& models, const TokenString& prefix, std::int32_t depth,
                                    std::int32_t num_paths) {
  Rational sum(0);
  StringDistribution accepted{{{}, 1}};  // A(x^l), as in block_recursion
  for (std::int32_t length = 1; length <= depth; ++length) {
    StringDistribution longer;
    for (const auto& [string, drafted] : greatest_by_rank(models, prefix, length, num_paths)) {
      const TokenString parent = first_tokens(string, string.size() - 1);
      const Rational& p = models.target(joined(prefix, parent))[static_cast<std::size_t>(string.back())];
      const Rational passing = std::min(Rational(accepted.at(parent) * p), drafted);
      sum += passing;
      longer[string] = passing;
    }
    accepted = std::move(longer);
  }
  return sum;
}

Rational greedy_multipath_path_expectation(const Models& models, const TokenString& prefix, std::int32_t depth,
                                           std::int32_t num_paths) {
  const StringDistribution selected = greatest_by_pairs(models, prefix, depth, num_paths);
  StringDistribution drafted;  // of every prefix of the selected path
  for (const auto& [string, probability] : selected)
    for (std::size_t length = 0; length <= string.size(); ++length)
      drafted[first_tokens(string, length)] += probability;
  Rational sum(0);
  for (const auto& [string, probability] : selected) {
    Rational weight(1);  // p_l of this draft, with q~(x) = Pr(prefix x) / Pr(prefix)
    for (std::size_t length = 0; length < string.size(); ++length) {
      const TokenString parent = first_tokens(string, length);
      const Rational q = drafted.at(first_tokens(string, length + 1)) / drafted.at(parent);
      weight = ratio(weight * models.target(joined(prefix, parent))[static_cast<std::size_t>(string[length])], q);
      sum += probability * weight;
    }
  }
  return sum;
}

}  // namespace draftproof
