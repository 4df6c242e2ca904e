// The best strings of the draft model as a tree without randomness.
#include <algorithm>
#include <set>

#include "exactness/proof/acceptance_sums.hpp"

namespace draftproof {
namespace {

// Does `a` come before `b`? Both may be drafted after the prefix.
class BestStringFirst {
 public:
  BestStringFirst(const Models& models, const TokenString& prefix) : models_(models), prefix_(prefix) {}

  bool operator()(TokenString a, TokenString b) const {
    const Rational score_a = score(a);
    const Rational score_b = score(b);
    if (score_a != score_b) return score_a > score_b;
    if (a.size() != b.size()) return a.size() < b.size();
    const Token last_a = a.back();
    const Token last_b = b.back();
    a.pop_back();
    b.pop_back();
    return a == b ? last_a < last_b : (*this)(a, b);
  }

 private:
  Rational score(const TokenString& string) const {
    Rational product(1);
    TokenString path = prefix_;
    for (const Token token : string) {
      product *= models_.draft(path)[static_cast<std::size_t>(token)];
      path.push_back(token);
    }
    return product;
  }

  const Models& models_;
  const TokenString& prefix_;
};

// Only the `width` most probable tokens, and the others 0.
ExactMasses truncated(const ExactMasses& q, std::int32_t width) {
  ExactMasses kept = q;
  for (std::size_t x = 0; x < q.size(); ++x) {
    std::int32_t before = 0;
    for (std::size_t y = 0; y < q.size(); ++y) before += q[y] > q[x] || (q[y] == q[x] && y < x);
    if (before >= width) kept[x] = 0;
  }
  return kept;
}

std::set<TokenString> best_strings(const Models& models, const TokenString& prefix, std::int32_t depth,
                                   std::int32_t width) {
  const auto likeliest = [&](const TokenString& path) { return truncated(models.draft(path), width); };
  std::vector<TokenString> strings;
  for (std::int32_t length = 1; length <= depth; ++length)
    for (const WeightedString& string : strings_of(likeliest, prefix, length)) strings.push_back(string.tokens);
  std::ranges::sort(strings, BestStringFirst(models, prefix));
  strings.resize(std::min(strings.size(), static_cast<std::size_t>(width + 1)));
  return {strings.begin(), strings.end()};
}

}  // namespace

Rational best_string_sum(const Models& models, const TokenString& prefix, std::int32_t depth, std::int32_t width) {
  Rational sum(0);
  for (const TokenString& string : best_strings(models, prefix, depth, width)) {
    Rational product(1);
    TokenString path = prefix;
    for (const Token token : string) {
      product *= models.target(path)[static_cast<std::size_t>(token)];
      path.push_back(token);
    }
    sum += product;
  }
  return sum;
}

Rational best_string_matches(const Models& models, const TokenString& prefix, std::int32_t depth, std::int32_t width) {
  const std::set<TokenString> best = best_strings(models, prefix, depth, width);
  Rational sum(0);
  for (const WeightedString& string : strings_of(target_of(models), prefix, depth)) {
    TokenString path;
    for (const Token token : string.tokens) {
      path.push_back(token);
      if (!best.contains(path)) break;
      sum += string.probability;
    }
  }
  return sum;
}

}  // namespace draftproof
