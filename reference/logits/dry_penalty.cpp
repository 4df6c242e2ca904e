#include "reference/logits/dry_penalty.hpp"

#include <algorithm>
#include <limits>
#include <map>

namespace draftproof {
namespace {

// z[k]: how many tokens the text shares with itself from k on (Gusfield's Z values), k >= 1.
std::vector<std::size_t> shared_prefixes(std::span<const Token> text) {
  std::vector<std::size_t> z(text.size(), 0);
  std::size_t begin = 0;  // of the match that reaches furthest, and its end
  std::size_t end = 0;
  for (std::size_t k = 1; k < text.size(); ++k) {
    if (k < end) z[k] = std::min(end - k, z[k - begin]);
    while (k + z[k] < text.size() && text[z[k]] == text[k + z[k]]) ++z[k];
    if (k + z[k] > end) {
      begin = k;
      end = k + z[k];
    }
  }
  return z;
}

}  // namespace

std::vector<std::pair<Token, std::int64_t>> repetitions(std::span<const Token> context, std::span<const Token> breakers,
                                                        const SamplerParameters& p) {
  const auto range = static_cast<std::size_t>(p.dry_range);
  if (range > 0 && context.size() > range) context = context.last(range);
  const auto is_breaker = [&](Token token) {
    return std::find(breakers.begin(), breakers.end(), token) != breakers.end();
  };
  const std::vector<Token> backwards(context.rbegin(), context.rend());
  const auto unbroken =
      static_cast<std::size_t>(std::find_if(backwards.begin(), backwards.end(), is_breaker) - backwards.begin());
  const std::vector<std::size_t> shared = shared_prefixes(backwards);
  std::map<Token, std::int64_t> longest;
  for (std::size_t k = 1; k < backwards.size(); ++k) {
    const auto length = static_cast<std::int64_t>(std::min(shared[k], unbroken));
    const Token next = backwards[k - 1];
    if (length < static_cast<std::int64_t>(p.dry_allowed_length) || is_breaker(next)) continue;
    std::int64_t& known = longest[next];
    known = std::max(known, length);
  }
  return {longest.begin(), longest.end()};
}

void penalise_repetitions(std::span<const Token> context, std::span<const Token> breakers, const SamplerParameters& p,
                          const LogitsPart& part) {
  if (p.dry_multiplier == 0.0f) return;
  for (const auto& [token, length] : repetitions(context, breakers, p)) {
    float* const found = part.find(token);
    if (found == nullptr || *found == -std::numeric_limits<float>::infinity()) continue;
    double penalty = static_cast<double>(p.dry_multiplier);
    for (auto i = static_cast<std::int64_t>(p.dry_allowed_length); i < length && penalty < 1e30; ++i)
      penalty *= static_cast<double>(p.dry_base);
    const double lowered = static_cast<double>(*found) - penalty;
    *found = static_cast<float>(std::max(lowered, static_cast<double>(std::numeric_limits<float>::lowest())));
  }
}

}  // namespace draftproof
