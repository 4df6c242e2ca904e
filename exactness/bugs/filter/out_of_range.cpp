// Ids that are no tokens: searches that run past the end, and lanes that pad a row to the width of a tile.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "exactness/bugs/families.hpp"
#include "exactness/bugs/filter/hunts.hpp"
#include "reference/random/injected.hpp"
#include "reference/verify/chance.hpp"

namespace draftproof {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::array<RandomBlock, 3> kEndWords{InjectedSource::kZeros, InjectedSource::kSmallest,
                                               InjectedSource::kOnes};

// Inverse-CDF sampling as a count of cumulative sums below the threshold; sums in float may end below top_p.
class CountingSearch {
 public:
  explicit CountingSearch(std::span<const float> probabilities) {
    float sum = 0.0f;
    for (const float p : probabilities) cumulative_.push_back(sum += p);
  }
  Token operator()(float top_p, const RandomBlock& block) const {
    const float threshold = uniform_open_closed(block.word[0]) * top_p;
    return static_cast<Token>(std::lower_bound(cumulative_.begin(), cumulative_.end(), threshold) -
                              cumulative_.begin());
  }

 private:
  std::vector<float> cumulative_;
};

Finding find_search_past_the_end(bool faulty) {
  std::vector<SupportCase> cases;
  for (const std::size_t vocab_size : {3u, 7u, 100u, 1000u}) {
    for (const float top_p : {0.5f, std::nextafter(1.0f, 0.0f), 1.0f}) {
      for (const RandomBlock& block : kEndWords) {
        const auto draw = [=] {
          if (faulty)
            return CountingSearch(std::vector<float>(vocab_size, 1.0f / static_cast<float>(vocab_size)))(top_p, block);
          const Logits logits(vocab_size, 0.0f);
          const ProcessedRow row(logits, with_top_p(top_p));
          return DistributionMasses(row.distribution).draw(block);
        };
        const char* name = top_p < 1.0f && top_p > 0.5f ? "top_p = 1 - 2^-24" : "top_p = 1/2 or 1";
        cases.push_back({name, std::vector<bool>(vocab_size, true), draw});
      }
    }
  }
  return find_impossible_token(cases);
}

constexpr std::size_t kLanes = 8;
std::size_t padded(std::size_t vocab_size) {
  return (vocab_size + kLanes - 1) / kLanes * kLanes;
}

using Probabilities = std::vector<float>;

// The race for the recovered token over whole tiles; padding lanes have mass 0 and win a tie.
Token recovered_with_padding(const Probabilities& p, const Probabilities& q, std::uint64_t seed) {
  double best = 0.0;
  Token winner = 0;
  for (std::size_t lane = 0; lane < padded(p.size()); ++lane) {
    const double mass =
        lane < p.size() ? std::max(0.0, static_cast<double>(p[lane]) - static_cast<double>(q[lane])) : 0;
    const RandomBlock words =
        PhiloxSource().block(seed, {static_cast<std::uint32_t>(lane / 4), 0, 0, Purpose::residual});
    const double score = mass / exponential_noise(words.word[lane % 4]);
    if (score < best) continue;
    best = score;
    winner = static_cast<Token>(lane);
  }
  return winner;
}

Token recovered_by_production(const Probabilities& p, const Probabilities& q, std::uint64_t seed) {
  const auto distribution_of = [](const Probabilities& row) {
    Distribution distribution;
    distribution.make_probabilities({DType::f32, row.data(), static_cast<std::int64_t>(row.size())}, 0);
    return distribution;
  };
  PhiloxSource source;
  AddressedChance chance(source, seed, 0, Sampler::race);
  return chance.draw(ResidualMasses(distribution_of(p), distribution_of(q)), 0, Purpose::residual);
}

struct NamedDistribution {
  std::string name;
  Probabilities p;
};

// Distributions of 13 tokens, of which the last five do not fill their tile.
std::vector<NamedDistribution> distributions_of_thirteen() {
  constexpr std::size_t kTileVocabSize = 13;
  Probabilities first_tile(kTileVocabSize, 0.0f);
  std::fill_n(first_tile.begin(), kLanes, 0.125f);
  Probabilities last(kTileVocabSize, 0.0f);
  last.back() = 1.0f;
  return {{"zero in the last tile", first_tile},
          {"uniform", Probabilities(kTileVocabSize, 1.0f / 13.0f)},
          {"one-hot", last}};
}

// Every pair of them, p = q among them.
Finding find_padding_id(bool faulty) {
  std::vector<SupportCase> cases;
  std::uint64_t seed = 0;
  for (const NamedDistribution& p : distributions_of_thirteen()) {
    for (const NamedDistribution& q : distributions_of_thirteen()) {
      std::vector<bool> support;
      for (const float x : p.p) support.push_back(x > 0.0f);
      cases.push_back({"p " + p.name + " and q " + q.name, support, [p, q, seed, faulty] {
                         return (faulty ? recovered_with_padding : recovered_by_production)(p.p, q.p, seed);
                       }});
      ++seed;
    }
  }
  return find_impossible_token(cases);
}

// The greatest of logits plus noise over whole tiles; it starts from the end of the padding and no NaN is greater.
Token argmax_with_padding(std::span<const float> logits, const RandomBlock* noise) {
  float best = -kInfinity;
  auto winner = static_cast<Token>(padded(logits.size()));
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const float score = logits[i] + (noise != nullptr ? static_cast<float>(gumbel_noise(noise->word[i % 4])) : 0.0f);
    if (!(score > best)) continue;
    best = score;
    winner = static_cast<Token>(i);
  }
  return winner;
}

Token argmax_by_production(std::span<const float> logits, const RandomBlock* noise) {
  if (noise == nullptr) return greedy_token(logits, 0);
  const ProcessedRow row(logits, {});
  InjectedSource source;
  source.inject(Purpose::target_sample, *noise);
  AddressedChance chance(source, 0, 0, Sampler::race);
  return chance.draw(DistributionMasses(row.distribution), 0, Purpose::target_sample);
}

struct HostileRow {
  std::string name;
  Logits logits;
};
const std::vector<HostileRow>& hostile_rows() {
  static const std::vector<HostileRow> rows{
      {"one token", {0.0f}},
      {"equal logits", Logits(5, 1.0f)},
      {"masked but for the last", {-kInfinity, -kInfinity, 2.0f}},
      {"the greatest and the least float", {std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest()}},
      {"a NaN at the start", {kNan, 1.0f, 0.0f}},
      {"all NaN", Logits(5, kNan)},
      {"all masked", Logits(5, -kInfinity)},
  };
  return rows;
}

// Without noise, and with all of it from each of the end words.
Finding find_id_from_hostile_row(bool faulty, bool with_noise) {
  std::vector<SupportCase> cases;
  for (const HostileRow& row : hostile_rows()) {
    std::vector<bool> support;
    for (const float l : row.logits) support.push_back(l > -kInfinity);  // false for a NaN
    for (const RandomBlock& block : kEndWords) {
      const RandomBlock* noise = with_noise ? &block : nullptr;
      cases.push_back({row.name, support, [&row, noise, faulty] {
                         return (faulty ? argmax_with_padding : argmax_by_production)(row.logits, noise);
                       }});
      if (!with_noise) break;
    }
  }
  return find_impossible_token(cases);
}

}  // namespace

std::vector<Bug> out_of_range_bugs() {
  return {
      {.id = "B54",
       .source = "TensorRT-LLM #19485",
       .fault = "sampling counts the cumulative sums below u * top_p, which with top_p near 1 can be all V of them",
       .hunts = {{Detector::injection, find_search_past_the_end}}},
      {.id = "B60",
       .source = "vllm #44744",
       .fault = "lanes that pad the vocabulary to whole tiles tie with a residual that is zero and win the race",
       .hunts = {{Detector::support, find_padding_id}}},
      {.id = "B61",
       .source = "vllm, all-NaN row",
       .fault = "argmax over a row of NaN returns the index it starts from, which lies behind the vocabulary",
       .hunts = {{Detector::support, [](bool faulty) { return find_id_from_hostile_row(faulty, false); }},
                 {Detector::injection, [](bool faulty) { return find_id_from_hostile_row(faulty, true); }}}},
  };
}

}  // namespace draftproof
