// B22, B23 and B25: noise whose tail ends early, so that rare tokens win less often than they should, or never.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "exactness/bugs/engine_numbers.hpp"
#include "exactness/bugs/families.hpp"
#include "exactness/statistics/battery.hpp"
#include "reference/random/uniform.hpp"

namespace draftproof {
namespace {

constexpr int kTailBitsMax = 27;        // tails down to 2^-27: 32 words of 2^32
constexpr int kStratumBits = 8;         // 2^8 words are looked at in every stratum
constexpr double kTailTolerance = 0.1;  // relative; the grid of 2^32 words and the strata cost less than 1/32

// u in (0, 1]; where log u is above -2^-24 it is held there, so that the exponential never is 0.
float noise_of_clamped_exponential(std::uint32_t word) {
  const float u = static_cast<float>(word) * 0x1p-32f + 0x1p-33f;
  const float log_u = u >= 1.0f - 0x1p-24f ? -0x1p-24f : log_f32(u);
  return -log_f32(-log_u);
}

// -log(-log u), u = (n + 1/2) 2^-23: near 1, where the winners are, the grid is coarse.
float noise_on_coarse_grid(std::uint32_t word) {
  const float u = static_cast<float>(word >> 9) * 0x1p-23f + 0x1p-24f;
  return -log_f32(-log_f32(u));
}

// u in (0, 1] is kept off 1 by a factor 1 - 2^-23.
float noise_of_shrunk_uniform(std::uint32_t word) {
  const float u = static_cast<float>(word) * 0x1p-32f + 0x1p-33f;
  return -log_f32(-log_f32(u * (1.0f - 0x1p-23f)));
}

// T: how many of the 2^32 words give noise above t, for t with P(noise > t) = 2^-27 .. 2^-1. The words are counted in
// strata that shrink towards both ends of the range, [2^k, 2^(k+1)) above the first and below the last word; of each,
// evenly spaced ones are looked at, and all of the small ones. So a tail of 32 words in 2^32 is counted exactly by some
// thousand evaluations. Cases are words.
Finding find_wrong_noise_tail(const std::function<double(std::uint32_t)>& noise) {
  struct Weighted {
    double noise;
    double words;  // that it stands for
  };
  Finding finding{false, 0, "words", {}};
  std::vector<Weighted> values;
  double largest = -std::numeric_limits<double>::infinity();
  const auto look = [&](std::uint32_t word, double words) {
    values.push_back({noise(word), words});
    largest = std::max(largest, values.back().noise);
    ++finding.cases;
  };
  look(0, 1.0);
  look(~0u, 1.0);
  for (int k = 0; k < 31; ++k) {
    const std::uint32_t first = 1u << k;
    const std::uint32_t stride = k <= kStratumBits ? 1u : 1u << (k - kStratumBits);
    for (std::uint32_t offset = stride / 2; offset < first; offset += stride) {
      look(first + offset, stride);
      look(~(first + offset), stride);
    }
  }
  for (int bits = kTailBitsMax; bits > 0; --bits) {
    const double tail = std::ldexp(1.0, -bits);
    const double threshold = -std::log(-std::log1p(-tail));  // P(noise > t) = 1 - exp(-exp(-t))
    double words = 0.0;
    for (const Weighted& value : values)
      if (value.noise > threshold) words += value.words;
    const double expected = tail * 0x1p32;
    if (std::abs(words - expected) <= kTailTolerance * expected) continue;
    finding.caught = true;
    finding.evidence = short_number(words) + " of 2^32 words give noise above " + short_number(threshold) + ", where " +
                       short_number(expected) + " should; the largest noise is " + short_number(largest);
    return finding;
  }
  return finding;
}

Bug noise_bug(std::string id, std::string source, std::string fault, float (*noise)(std::uint32_t)) {
  const auto run = [noise](bool faulty) {
    return find_wrong_noise_tail(
        [&](std::uint32_t word) { return faulty ? static_cast<double>(noise(word)) : gumbel_noise(word); });
  };
  return {
      .id = std::move(id), .source = std::move(source), .fault = std::move(fault), .hunts = {{Detector::tail, run}}};
}

}  // namespace

std::vector<Bug> short_tail_bugs() {
  return {noise_bug("B22", "vllm #43150",
                    "the exponential of a race is binary32 and never below 2^-24: a token much rarer than that never "
                    "wins",
                    noise_of_clamped_exponential),
          noise_bug("B23", "vllm #34854 to #47524",
                    "Gumbel noise is -log(-log u) of a binary32 u: near 1 its grid is coarse, and the tail is "
                    "under-sampled",
                    noise_on_coarse_grid),
          noise_bug("B25", "flashinfer, Gumbel sampling",
                    "u is kept below 1 by a factor 1 - eps in binary32, which caps the noise at 15.9",
                    noise_of_shrunk_uniform)};
}

}  // namespace draftproof
