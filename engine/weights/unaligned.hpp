// Values inside the blocks of a file, at any address. Little-endian, as the formats and the machines that run this.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/dtype.hpp"

namespace draftproof {

template <class T>
T load_unaligned(const void* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

inline float half_at(const void* at) {
  return f16_to_f32(load_unaligned<std::uint16_t>(at));
}

}  // namespace draftproof
