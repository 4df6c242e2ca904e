// From one random word to a number of accepted drafts, n with probability s_n - s_{n+1}, in a few instructions.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace draftproof {

// A word below it has the probability p, to 2^-32; none is below 0, all are below the one of 1.
inline std::uint64_t word_threshold(double p) {
  return static_cast<std::uint64_t>(std::llround(p * 0x1p32));
}

// kBits: the first bits of a word lead to the answer, or near it, by a table of 2^kBits bytes.
template <int kBits>
class SurvivalTable {
 public:
  SurvivalTable() : SurvivalTable(std::span<const double>()) {}
  // survival [at most 64]: in [0, 1], never rising.
  explicit SurvivalTable(std::span<const double> survival) {
    for (const double s : survival) thresholds_.push_back(word_threshold(s));
    thresholds_.push_back(0);
    for (std::size_t cell = 0; cell < first_.size(); ++cell) {
      const std::uint64_t last_word = ((std::uint64_t{cell} + 1) << kShift) - 1;
      std::uint8_t n = 0;
      while (last_word < thresholds_[n]) ++n;
      first_[cell] = n;
    }
  }

  std::int32_t accepted(std::uint32_t word) const {
    std::size_t n = first_[word >> kShift];
    while (word < thresholds_[n]) ++n;
    return static_cast<std::int32_t>(n);
  }

 private:
  static constexpr int kShift = 32 - kBits;
  std::array<std::uint8_t, std::size_t{1} << kBits> first_{};
  std::vector<std::uint64_t> thresholds_;  // falling, the last one 0
};

}  // namespace draftproof
