// Durations counted in buckets. Times are whole nanoseconds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace draftproof {

class LatencyHistogram {
 public:
  // bounds_ns [n], ascending: bucket i counts what is at most bounds_ns[i] and above the bound before; a last bucket
  // counts the rest.
  explicit LatencyHistogram(std::span<const std::int64_t> bounds_ns)
      : bounds_ns_(bounds_ns.begin(), bounds_ns.end()), counts_(bounds_ns.size() + 1) {}

  void observe(std::int64_t duration_ns) {
    // Requests of one step have waited equally long, as a rule.
    if (duration_ns != last_ns_) {
      last_ns_ = duration_ns;
      last_bucket_ = static_cast<std::size_t>(std::ranges::lower_bound(bounds_ns_, duration_ns) - bounds_ns_.begin());
    }
    ++counts_[last_bucket_];
    ++count_;
    sum_ns_ += duration_ns;
  }

  std::span<const std::int64_t> bounds_ns() const { return bounds_ns_; }
  std::span<const std::int64_t> counts() const { return counts_; }  // [n + 1], each bucket's own
  std::int64_t count() const { return count_; }
  std::int64_t sum_ns() const { return sum_ns_; }
  double mean_ns() const { return count_ == 0 ? 0.0 : static_cast<double>(sum_ns_) / static_cast<double>(count_); }

 private:
  std::vector<std::int64_t> bounds_ns_;
  std::vector<std::int64_t> counts_;
  std::int64_t count_ = 0;
  std::int64_t sum_ns_ = 0;
  std::int64_t last_ns_ = -1;
  std::size_t last_bucket_ = 0;
};

}  // namespace draftproof
