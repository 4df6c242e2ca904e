// Durations counted finely enough for percentiles: exact below 2^9 ns, above in buckets of which 2^9 make up a doubling
// (0.2 %). Memory does not grow with the number of observations, of which a long run has hundreds of millions.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace draftproof {

class DurationCounts {
 public:
  void observe(std::int64_t ns) {
    // Requests of one step have waited equally long, as a rule.
    if (ns != last_ns_) {
      last_ns_ = ns;
      last_bucket_ = bucket_of(ns);
      if (last_bucket_ >= counts_.size()) counts_.resize(last_bucket_ + 1);
    }
    ++counts_[last_bucket_];
    ++count_;
    sum_ns_ += static_cast<double>(ns);
  }

  std::int64_t count() const { return count_; }
  double mean_ns() const { return count_ == 0 ? 0.0 : sum_ns_ / static_cast<double>(count_); }

  // The bucket's middle of the smallest duration that a share of at least `share` does not exceed; 0 of nothing.
  std::int64_t quantile_ns(double share) const {
    const double wanted = share * static_cast<double>(count_);
    std::int64_t seen = 0;
    for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
      seen += counts_[bucket];
      if (seen > 0 && static_cast<double>(seen) >= wanted) return middle_of(bucket);
    }
    return 0;
  }

 private:
  static constexpr int kBits = 9;

  static std::size_t bucket_of(std::int64_t ns) {
    const auto value = static_cast<std::uint64_t>(ns);
    const int shift = static_cast<int>(std::bit_width(value >> kBits)) - 1;
    if (shift < 0) return static_cast<std::size_t>(value);
    return (static_cast<std::size_t>(shift) << kBits) + static_cast<std::size_t>(value >> shift);
  }
  static std::int64_t middle_of(std::size_t bucket) {
    if (bucket < (std::size_t{2} << kBits)) return static_cast<std::int64_t>(bucket);
    const auto shift = (bucket >> kBits) - 1;
    const std::uint64_t low = (bucket - (shift << kBits)) << shift;
    return static_cast<std::int64_t>(low + (std::uint64_t{1} << shift) / 2);
  }

  std::vector<std::int64_t> counts_;
  std::int64_t count_ = 0;
  double sum_ns_ = 0.0;
  std::int64_t last_ns_ = -1;
  std::size_t last_bucket_ = 0;
};

}  // namespace draftproof
