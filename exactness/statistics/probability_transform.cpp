#include "exactness/statistics/probability_transform.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace draftproof {

double mass_ranked_before(std::span<const double> distribution, Token token) {
  const auto x = static_cast<std::size_t>(token);
  const double p = distribution[x];
  double before = 0.0;
  for (std::size_t i = 0; i < x; ++i) before += distribution[i] >= p ? distribution[i] : 0.0;
  for (std::size_t i = x + 1; i < distribution.size(); ++i) before += distribution[i] > p ? distribution[i] : 0.0;
  return before;
}

std::vector<double> masses_ranked_before(std::span<const double> distribution) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < distribution.size(); ++i) {
    if (distribution[i] > 0.0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return distribution[a] > distribution[b]; });
  std::vector<double> before(distribution.size(), 0.0);
  double sum = 0.0;
  for (const std::size_t token : order) {
    before[token] = sum;
    sum += distribution[token];
  }
  return before;
}

void UniformTally::add(double u) {
  // Rounding can lift a u of the last token to 1.
  const auto cell = static_cast<std::size_t>(u * static_cast<double>(kCells));
  ++counts_[std::min(cell, kCells - 1)];
  ++n_;
}

void UniformTally::merge(const UniformTally& other) {
  for (std::size_t i = 0; i < kCells; ++i) counts_[i] += other.counts_[i];
  n_ += other.n_;
}

double UniformTally::distance() const {
  if (n_ == 0) return 0.0;
  std::int64_t below = 0;
  double distance = 0.0;
  for (std::size_t i = 0; i < kCells; ++i) {
    below += counts_[i];
    const double share = static_cast<double>(below) / static_cast<double>(n_);
    distance = std::max(distance, std::abs(share - static_cast<double>(i + 1) / static_cast<double>(kCells)));
  }
  return distance;
}

std::vector<std::int64_t> UniformTally::binned(std::size_t bins) const {
  std::vector<std::int64_t> sums(bins, 0);
  for (std::size_t i = 0; i < kCells; ++i) sums[i / (kCells / bins)] += counts_[i];
  return sums;
}

}  // namespace draftproof
