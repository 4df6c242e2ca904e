// Counts of elements and bytes that are made of what a caller gave. A product or sum beyond 2^63 - 1 stays there, so
// that what no memory can hold is still too large at the end of a computation, where it is refused
// (DRAFTPROOF_BYTES_MAX). Only of numbers that are not negative.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "gpu/draftproof.h"

namespace draftproof {

class CheckedSize {
 public:
  constexpr CheckedSize(std::int64_t value) : value_(value) {}  // NOLINT(google-explicit-constructor)

  friend constexpr CheckedSize operator*(CheckedSize a, CheckedSize b) {
    std::int64_t product = 0;
    return __builtin_mul_overflow(a.value_, b.value_, &product) ? kTooLarge : product;
  }
  friend constexpr CheckedSize operator+(CheckedSize a, CheckedSize b) {
    std::int64_t sum = 0;
    return __builtin_add_overflow(a.value_, b.value_, &sum) ? kTooLarge : sum;
  }

  constexpr std::int64_t value() const { return value_; }

  // How often this many bytes may be asked for: the bound of a factor that a caller chooses.
  constexpr std::int64_t factor_max() const { return DRAFTPROOF_BYTES_MAX / std::max<std::int64_t>(value_, 1); }

 private:
  static constexpr std::int64_t kTooLarge = std::numeric_limits<std::int64_t>::max();

  std::int64_t value_;
};

// How a call's scratch memory is cut from its workspace: one section after the other, each 256-byte aligned. The same
// code lays it out and, without memory, says how much is needed.
class WorkspaceLayout {
 public:
  static constexpr std::int64_t kAlignment = 256;

  // The byte at which the next section begins.
  std::int64_t add(CheckedSize bytes) {
    const std::int64_t begin = bytes_.value();
    const std::int64_t sections = bytes.value() / kAlignment + (bytes.value() % kAlignment != 0 ? 1 : 0);
    bytes_ = bytes_ + CheckedSize(sections) * kAlignment;
    return begin;
  }
  // More than DRAFTPROOF_BYTES_MAX where the sections fit into no memory.
  std::int64_t bytes() const { return bytes_.value(); }

 private:
  CheckedSize bytes_ = 0;
};

}  // namespace draftproof
