// Floats mapped to unsigned integers that sort the same way, and the total order of tokens: value descending, id
// ascending.
#pragma once

#include <cstdint>

#include "base/host_device.hpp"
#include "base/token.hpp"

namespace draftproof {

// a < b as floats iff order_key(a) < order_key(b). -0 and +0 are one value and get one key. x must not be NaN.
DRAFTPROOF_HD inline std::uint32_t order_key(float x) {
  const std::uint32_t bits = bit_cast<std::uint32_t>(x + 0.0f);  // -0 + 0 = +0
  return bits ^ ((0u - (bits >> 31)) | 0x80000000u);             // all bits of a negative number, the sign of another
}

// Does token a stand before token b in the total order?
DRAFTPROOF_HD inline bool stands_before(std::uint32_t key_a, Token a, std::uint32_t key_b, Token b) {
  return key_a > key_b || (key_a == key_b && a < b);
}

}  // namespace draftproof
