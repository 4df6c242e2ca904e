#include "exactness/bugs/range/family.hpp"

#include <limits>
#include <memory>
#include <utility>

#include "exactness/bugs/usual_tests.hpp"
#include "reference/numerics/natural_log.hpp"
#include "reference/random/philox.hpp"

namespace draftproof {
namespace {

constexpr std::size_t kHeadTokens = 64;  // raced without a look at what they need to win

// Words that cost next to nothing, for races of thousands of tokens: two to one 64-bit mix (Steele, Lea, Flood,
// "Fast splittable pseudorandom number generators", OOPSLA 2014).
std::uint64_t mixed_words(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// The lowest word whose noise is at least `needed`; 2^32 where there is none.
std::uint64_t first_word_reaching(float needed, const WordNoise& noise) {
  std::uint64_t low = 0;
  std::uint64_t high = std::uint64_t{1} << 32;
  while (low < high) {
    const std::uint64_t middle = (low + high) / 2;
    if (noise(static_cast<std::uint32_t>(middle)) >= needed)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

// Only those of the many tokens behind the head are looked at whose word could still win, by the largest log weight of
// the rest: the distribution falls from token to token.
Token race_of(const std::vector<float>& log_weights, std::uint64_t seed, const WordNoise& noise) {
  const auto word = [&](std::size_t token) {
    return static_cast<std::uint32_t>(mixed_words(seed, token / 2) >> (token % 2 == 0 ? 0 : 32));
  };
  float best = -std::numeric_limits<float>::infinity();
  Token winner = kPaddingToken;
  const auto run = [&](std::size_t token, std::uint32_t noise_word) {
    const float score = log_weights[token] + noise(noise_word);
    if (!(score > best)) return;
    best = score;
    winner = static_cast<Token>(token);
  };
  for (std::size_t token = 0; token < kHeadTokens; ++token) run(token, word(token));
  const std::uint64_t least = first_word_reaching(best - log_weights[kHeadTokens], noise);
  for (std::size_t pair = kHeadTokens / 2; pair < log_weights.size() / 2; ++pair) {
    const std::uint64_t words = mixed_words(seed, pair);
    const auto low = static_cast<std::uint32_t>(words);
    const auto high = static_cast<std::uint32_t>(words >> 32);
    if (low >= least) run(2 * pair, low);
    if (high >= least) run(2 * pair + 1, high);
  }
  return winner;
}

}  // namespace

LargeSampler large_race_sampler(WordNoise noise) {
  const auto log_weights = std::make_shared<std::vector<float>>();
  for (const double p : usual_target_distribution()) log_weights->push_back(static_cast<float>(natural_log(p)));
  return {usual_target_distribution(), [log_weights, noise = std::move(noise)](std::uint64_t draw) {
            return race_of(*log_weights, derive_seed(0, draw), noise);
          }};
}

}  // namespace draftproof
