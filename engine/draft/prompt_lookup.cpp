#include "engine/draft/prompt_lookup.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

#include "base/error.hpp"
#include "base/parallel.hpp"

namespace draftproof {
namespace {

// One step of Knuth, Morris and Pratt: given that the last n tokens of the text were the first n of the pattern, and no
// more than n were, how many are once `token` is added? border[j] is the length of the longest proper prefix of
// pattern[0..j] that is also its suffix: a mismatch, or a full match that cannot grow, falls back to the next shorter
// candidate.
template <typename Reversed>
std::size_t extend_match(std::size_t n, std::size_t pattern_length, Token token, const std::vector<std::size_t>& border,
                         Reversed reversed) {
  if (n == pattern_length) n = border[n - 1];
  while (n > 0 && reversed(n) != token) n = border[n - 1];
  return reversed(n) == token ? n + 1 : 0;
}

}  // namespace

PromptLookup::PromptLookup(int min_n, int max_n, LookupTie tie) : min_n_(min_n), max_n_(max_n), tie_(tie) {
  if (min_n < 1 || max_n < min_n) {
    throw usage_error("prompt lookup", "the suffix lengths are " + std::to_string(min_n) + " to " +
                                           std::to_string(max_n) + ", it must be 1 <= min_n <= max_n");
  }
}

PromptLookup::Found PromptLookup::find(std::span<const Token> context, int k) const {
  if (k < 0) throw usage_error("prompt lookup", "k is " + std::to_string(k) + ", it must not be negative");
  // The last max_n tokens, backwards, are the pattern; the whole context, backwards and without its last token, is the
  // text.
  const auto reversed = [&](std::size_t i) { return context[context.size() - 1 - i]; };
  const std::size_t pattern_length = std::min(context.size(), static_cast<std::size_t>(max_n_));
  std::vector<std::size_t> border(pattern_length);
  std::size_t match = 0;
  std::size_t best = 0;
  std::size_t best_end = 0;  // index in the reversed text of the last token of the best match
  for (std::size_t i = 1; i < context.size(); ++i) {
    match = extend_match(match, pattern_length, reversed(i), border, reversed);
    // While i is inside the pattern, text and pattern are the same tokens, and the match is the border of
    // pattern[0..i].
    if (i < pattern_length) border[i] = match;
    if (match > best || (match == best && tie_ == LookupTie::earliest)) {
      best = match;
      best_end = i;
    }
  }
  if (best < static_cast<std::size_t>(min_n_)) return {};
  // The last token of the reversed match is the first of the occurrence in the context.
  const std::size_t continuation = context.size() - 1 - best_end + best;
  const std::size_t length = std::min(static_cast<std::size_t>(k), context.size() - continuation);
  const auto first = context.begin() + static_cast<std::ptrdiff_t>(continuation);
  return {{first, first + static_cast<std::ptrdiff_t>(length)}, static_cast<std::int32_t>(best)};
}

void LookupDrafter::propose_all(std::span<DraftJob> jobs, DraftCache* cache) {
  constexpr std::size_t kTokensAThread = std::size_t{1} << 18;
  std::size_t tokens = 0;
  for (const DraftJob& job : jobs) tokens += job.context.tokens.size();
  const auto useful = static_cast<int>(std::clamp<std::size_t>(tokens / kTokensAThread, 1, jobs.size() + 1));
  parallel_for(std::ssize(jobs), std::min(threads_, useful),
               [&](std::int64_t i, int) { Drafter::propose_all(jobs.subspan(static_cast<std::size_t>(i), 1), cache); });
}

}  // namespace draftproof
