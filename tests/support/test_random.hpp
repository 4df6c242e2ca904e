// Random inputs of tests: one stream of Philox words a seed, so that a failing case is found again by its seed alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/token.hpp"
#include "reference/random/philox.hpp"
#include "reference/random/uniform.hpp"

namespace draftproof {

class TestRandom {
 public:
  explicit TestRandom(std::uint64_t seed) : seed_(seed) {}

  std::uint32_t word() {
    if (used_ == 4) {
      block_ = philox_block(seed_, static_cast<std::uint32_t>(next_block_++), 0, 0, 0x74657374);  // no Purpose is this
      used_ = 0;
    }
    return block_.word[used_++];
  }

  // A uniform integer in [0, n), n >= 1.
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(
        multiply_high(static_cast<std::uint64_t>(word()) << 32, static_cast<std::uint64_t>(n)));
  }
  bool chance(double probability) { return uniform() < probability; }
  double uniform() { return static_cast<double>(word()) * 0x1p-32; }

  // About normal: mean 0, standard deviation 1, within [-6, 6].
  float normal() {
    double sum = -6.0;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return static_cast<float>(sum);
  }

  // An index by the probabilities `distribution`, never one of probability 0.
  std::size_t draw(std::span<const double> distribution) {
    double left = uniform();
    std::size_t drawn = 0;
    for (std::size_t i = 0; i < distribution.size(); ++i) {
      if (distribution[i] == 0.0) continue;
      drawn = i;
      if (left < distribution[i]) break;
      left -= distribution[i];
    }
    return drawn;
  }

  Token token(std::int64_t vocab_size) { return static_cast<Token>(below(vocab_size)); }
  std::vector<Token> tokens(std::int64_t count, std::int64_t vocab_size) {
    std::vector<Token> out(static_cast<std::size_t>(count));
    for (Token& t : out) t = token(vocab_size);
    return out;
  }

 private:
  std::uint64_t seed_;
  std::uint64_t next_block_ = 0;
  RandomBlock block_{};
  int used_ = 4;
};

inline constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Logits [vocab_size] with what real rows do not have and adversarial ones do: many equal values, -infinity, tokens
// hundreds of nats below the others. At least one token is finite.
inline std::vector<float> awkward_row(TestRandom& random, std::int64_t vocab_size) {
  std::vector<float> row(static_cast<std::size_t>(vocab_size));
  const int kind = static_cast<int>(random.below(4));
  const double masked = random.chance(0.5) ? 0.0 : 0.3;
  const auto levels = 1 + random.below(5);
  for (float& l : row) {
    if (kind == 0) l = random.normal() * 3.0f;
    if (kind == 1) l = static_cast<float>(random.below(levels)) - 2.0f;
    if (kind == 2) l = static_cast<float>(random.below(levels)) * 0.25f + (random.chance(0.1) ? 8.0f : 0.0f);
    if (kind == 3) l = random.normal() * (random.chance(0.3) ? 100.0f : 1.0f);
    if (random.chance(masked)) l = kMinusInfinity;
  }
  row[static_cast<std::size_t>(random.below(vocab_size))] = 0.5f;
  return row;
}

// Logits of a common kind: normal, all finite.
inline std::vector<float> normal_row(TestRandom& random, std::int64_t vocab_size, float scale = 2.0f) {
  std::vector<float> row(static_cast<std::size_t>(vocab_size));
  for (float& l : row) l = random.normal() * scale;
  return row;
}

}  // namespace draftproof
