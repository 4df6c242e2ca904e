#include "engine/transformer/rope.hpp"

#include <algorithm>

#include "reference/numerics/natural_exp.hpp"
#include "reference/numerics/natural_log.hpp"
#include "reference/numerics/natural_sin_cos.hpp"

namespace draftproof {
namespace {

// Rotates the pairs (first[i kStep], second[i kStep]). No element is in two of them, which the compiler does not see.
template <std::size_t kStep>
void rotate_pairs(float* first, float* second, const float* cosines, const float* sines, std::size_t count) {
#pragma GCC ivdep  // NOLINT(clang-diagnostic-unknown-pragmas)
  for (std::size_t i = 0; i < count; ++i) {
    const float a = first[i * kStep];
    const float b = second[i * kStep];
    first[i * kStep] = a * cosines[i] - b * sines[i];
    second[i * kStep] = b * cosines[i] + a * sines[i];
  }
}

}  // namespace

RopeTable::RopeTable(const ModelDescription& description)
    : pairing_(description.rope_pairing), half_(static_cast<std::size_t>(description.head_size / 2)) {
  const double log_base = natural_log(description.rope_base);
  for (std::size_t i = 0; i < half_; ++i) {
    const double power = -2.0 * static_cast<double>(i) / static_cast<double>(description.head_size);
    frequencies_.push_back(natural_exp(power * log_base) / static_cast<double>(description.rope_divisors[i]));
  }
}

void RopeTable::extend(std::int64_t positions) {
  const std::size_t made = cos_sin_.size() / (2 * half_);
  const auto wanted = static_cast<std::size_t>(positions);
  if (wanted <= made) return;
  const std::size_t end = std::max(wanted, std::max<std::size_t>(256, 2 * made));
  cos_sin_.resize(end * 2 * half_);
  for (std::size_t p = made; p < end; ++p) {
    float* const row = cos_sin_.data() + p * 2 * half_;
    for (std::size_t i = 0; i < half_; ++i) {
      const SinCos at = natural_sin_cos(static_cast<double>(p) * frequencies_[i]);
      row[i] = static_cast<float>(at.cos);
      row[half_ + i] = static_cast<float>(at.sin);
    }
  }
}

void RopeTable::rotate(float* head, std::int64_t position) const {
  const float* const cosines = cos_sin_.data() + static_cast<std::size_t>(position) * 2 * half_;
  if (pairing_ == RopePairing::adjacent)
    rotate_pairs<2>(head, head + 1, cosines, cosines + half_, half_);
  else
    rotate_pairs<1>(head, head + half_, cosines, cosines + half_, half_);
}

}  // namespace draftproof
