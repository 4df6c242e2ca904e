#include "reference/model/transformer/rope.hpp"

#include <algorithm>

#include "reference/numerics/natural_exp.hpp"
#include "reference/numerics/natural_log.hpp"
#include "reference/numerics/natural_sin_cos.hpp"

namespace draftproof {
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
  const float* const sines = cosines + half_;
  const std::size_t step = pairing_ == RopePairing::adjacent ? 2 : 1;
  float* const second = head + (pairing_ == RopePairing::adjacent ? 1 : half_);
  for (std::size_t i = 0; i < half_; ++i) {
    const float a = head[i * step];
    const float b = second[i * step];
    head[i * step] = a * cosines[i] - b * sines[i];
    second[i * step] = b * cosines[i] + a * sines[i];
  }
}

}  // namespace draftproof
