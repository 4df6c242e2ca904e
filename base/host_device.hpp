// The mark of a small pure function that the C++ compiler and nvcc both compile: a leaf carries DRAFTPROOF_HD and uses
// no #ifdef of its own.
#pragma once

#include <type_traits>

#if defined(__CUDACC__)
#define DRAFTPROOF_HD __host__ __device__
#else
#define DRAFTPROOF_HD
#endif

namespace draftproof {

// std::bit_cast for both sides. The builtin is used because the standard function is not marked for the device.
template <class To, class From>
DRAFTPROOF_HD constexpr To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "bit_cast needs two types of one size");
  static_assert(std::is_trivially_copyable_v<To> && std::is_trivially_copyable_v<From>);
  return __builtin_bit_cast(To, from);
}

}  // namespace draftproof
