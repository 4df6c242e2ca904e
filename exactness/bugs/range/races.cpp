// B16 and B21: noise that can be infinite meets a masked logit. The sound twin is the race that production runs.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>

#include "exactness/bugs/engine_numbers.hpp"
#include "exactness/bugs/families.hpp"
#include "exactness/bugs/filter/hunts.hpp"
#include "reference/random/injected.hpp"
#include "reference/verify/chance.hpp"

namespace draftproof {
namespace {

// Gumbel noise of a random word; at the ends it may be infinite.
using WordNoise = std::function<float(std::uint32_t word)>;

using Scores = std::vector<float>;
using Argmax = Token (*)(std::span<const float> scores);

constexpr float kMasked = -std::numeric_limits<float>::infinity();

// u = (word + 1/2) / 2^32 in binary32, where the top 128 words round to 1; the noise is +infinity there.
float noise_of_rounded_uniform(std::uint32_t word) {
  const float u = static_cast<float>(word) * 0x1p-32f + 0x1p-33f;
  return -log_f32(-log_f32(u));
}

// The logarithm of an exponential over u in (0, 1] with 24 bits: u = 1 gives 0, and the noise is +infinity.
float noise_of_zero_exponential(std::uint32_t word) {
  const float u = static_cast<float>((word >> 8) + 1) * 0x1p-24f;
  return -log_f32(-log_f32(u));
}

// NaN is above every number, as tensor libraries have it.
Token argmax_where_nan_wins(std::span<const float> scores) {
  const auto nan = std::ranges::find_if(scores, [](float s) { return std::isnan(s); });
  return static_cast<Token>((nan != scores.end() ? nan : std::ranges::max_element(scores)) - scores.begin());
}

// A kernel's reduction: first the maximum, which a NaN becomes, then the lowest index whose score equals it. Nothing
// equals NaN, and what is left is the padding index.
Token argmax_by_equality(std::span<const float> scores) {
  float maximum = kMasked;
  for (const float s : scores) maximum = std::isnan(s) || std::isnan(maximum) ? s + maximum : std::max(maximum, s);
  const auto found = std::ranges::find(scores, maximum);
  return found != scores.end() ? static_cast<Token>(found - scores.begin()) : std::numeric_limits<Token>::max();
}

// A race in binary32 over logits. Words are addressed as in production.
template <class Source>
Token binary32_race(std::span<const float> logits, std::uint64_t seed, Source& source, const WordNoise& noise,
                    Argmax argmax) {
  Scores scores(logits.size());
  RandomBlock words{};
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (i % 4 == 0) words = source.block(seed, {static_cast<std::uint32_t>(i / 4), 0, 0, Purpose::target_sample});
    scores[i] = logits[i] + noise(words.word[i % 4]);
  }
  return argmax(scores);
}

template <class Source>
Token production_race(std::span<const float> logits, std::uint64_t seed, Source& source) {
  Distribution distribution;
  distribution.make_logits_distribution().assign(logits, 0);
  AddressedChance<Source> chance(source, seed, 0, Sampler::race);
  return chance.draw(DistributionMasses(distribution), 0, Purpose::target_sample);
}

std::vector<bool> unmasked(std::span<const float> logits) {
  std::vector<bool> support;
  for (const float l : logits) support.push_back(l > kMasked);
  return support;
}

// X: every noise word of the race at one end of its range, over rows with masked tokens.
Finding find_masked_winner(bool faulty, const WordNoise& noise, Argmax argmax) {
  static const std::vector<Scores> rows{{0.0f, 1.0f, -2.0f}, {kMasked, 0.0f, 1.0f}, {0.0f, kMasked, kMasked, 3.0f}};
  std::vector<SupportCase> cases;
  for (const Scores& row : rows) {
    for (const std::uint32_t word : kEndWords) {
      cases.push_back({"all words " + std::to_string(word), unmasked(row), [&row, word, faulty, noise, argmax] {
                         InjectedSource source;
                         source.inject(Purpose::target_sample, block_of(word));
                         return faulty ? binary32_race(row, 0, source, noise, argmax) : production_race(row, 0, source);
                       }});
    }
  }
  return find_impossible_token(cases);
}

// V: draws with ordinary words. A grammar leaves 8 of 2^17 tokens, so that a draw looks at 2^17 words and an event of
// 2^-24 a word comes within some hundred draws.
Finding find_masked_winner_in_draws(bool faulty, const WordNoise& noise, Argmax argmax) {
  constexpr std::size_t kVocabSize = std::size_t{1} << 17;
  constexpr std::size_t kAllowedEvery = kVocabSize / 8;
  constexpr std::uint64_t kDraws = 128;
  constexpr std::uint64_t kRunSeed = 1;
  Scores row(kVocabSize, kMasked);
  for (std::size_t i = 0; i < kVocabSize; i += kAllowedEvery) row[i] = 0.0f;
  const std::vector<bool> support = unmasked(row);
  std::vector<SupportCase> cases;
  for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
    cases.push_back({"draw " + std::to_string(draw), support, [&row, draw, faulty, noise, argmax] {
                       PhiloxSource source;
                       const std::uint64_t seed = derive_seed(kRunSeed, draw);
                       return faulty ? binary32_race(row, seed, source, noise, argmax)
                                     : production_race(row, seed, source);
                     }});
  }
  return find_impossible_token(cases);
}

}  // namespace

std::vector<Bug> infinite_noise_bugs() {
  return {{.id = "B16",
           .source = "sglang #25106, #33423",
           .fault = "u of 32 bits rounds to 1 in binary32: the noise is +infinity, -infinity + infinity is NaN on a "
                    "masked token, and the argmax takes the NaN",
           .hunts = {{Detector::injection,
                      [](bool faulty) {
                        return find_masked_winner(faulty, noise_of_rounded_uniform, argmax_where_nan_wins);
                      }}}},
          {.id = "B21",
           .source = "vllm #43249",
           .fault = "an exponential of 0 makes infinite noise; on a masked token that is NaN, the maximum is NaN, no "
                    "index equals it, and the padding index is emitted",
           .hunts = {
               {Detector::injection,
                [](bool faulty) { return find_masked_winner(faulty, noise_of_zero_exponential, argmax_by_equality); }},
               {Detector::support, [](bool faulty) {
                  return find_masked_winner_in_draws(faulty, noise_of_zero_exponential, argmax_by_equality);
                }}}}};
}

}  // namespace draftproof
