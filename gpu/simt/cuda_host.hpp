// CUDA's names on the host. Included through cuda.hpp.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <source_location>
#include <string>

#include "gpu/simt/atomics.hpp"
#include "gpu/simt/checked_pointer.hpp"
#include "gpu/simt/collectives.hpp"
#include "gpu/simt/this_block.hpp"
#include "gpu/simt/thread_names.hpp"
#include "gpu/simt/vector_types.hpp"

namespace draftproof {

template <class T>
using Global = simt::CheckedPointer<T>;
template <class T>
using Shared = simt::CheckedPointer<T>;

// The same bytes as elements of another type: view_as<const uint4>(p).
template <class U, class T>
simt::CheckedPointer<U> view_as(const simt::CheckedPointer<T>& p) {
  return p.template as<U>();
}

namespace simt {

template <class T, std::int64_t Count>
CheckedPointer<T> static_shared(const void* tag, const char* name) {
  constexpr std::uint32_t kGranule = alignof(T) > 8 ? 8 : alignof(T);
  return {&this_block().static_shared(tag, name, sizeof(T) * Count, sizeof(T), kGranule), 0, Count};
}

template <class T>
CheckedPointer<T> dynamic_shared(const char* name, std::uint64_t byte_offset, std::uint64_t count) {
  Region& region = this_block().dynamic_shared(alignof(T));
  if (byte_offset > region.bytes || count > (region.bytes - byte_offset) / sizeof(T)) {
    this_block().fault(std::string("dynamic shared memory: ") + name + " ends at byte " +
                       std::to_string(byte_offset + count * sizeof(T)) + ", but the launch gave " +
                       std::to_string(region.bytes));
  }
  return {&region, byte_offset, static_cast<std::int64_t>(count)};
}

}  // namespace simt
}  // namespace draftproof

// NOLINTBEGIN: CUDA's own names, and macros that become CUDA's declarations under nvcc
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define DRAFTPROOF_UNROLL
#define DRAFTPROOF_ROLLED
#define __restrict__  // it may stand behind a Global<T>, which is a class here

// The address of the tag names the declaration, in each instance of a template.
#define DRAFTPROOF_SHARED(T, name, count)     \
  static constexpr char name##_declaration{}; \
  const ::draftproof::Shared<T> name = ::draftproof::simt::static_shared<T, (count)>(&name##_declaration, #name)
#define DRAFTPROOF_DYNAMIC_SHARED(T, name, byte_offset, count) \
  const ::draftproof::Shared<T> name = ::draftproof::simt::dynamic_shared<T>(#name, (byte_offset), (count))

inline constexpr int warpSize = 32;

inline void __syncthreads(const std::source_location& place = std::source_location::current()) {
  draftproof::simt::this_block().barrier(place);
}
// Every access of the executor is sequentially consistent already: a fence has nothing left to do.
inline void __threadfence() {}
inline void __threadfence_block() {}

inline int __popc(unsigned x) {
  return std::popcount(x);
}
inline int __popcll(unsigned long long x) {
  return std::popcount(x);
}
inline int __clz(int x) {
  return std::countl_zero(static_cast<unsigned>(x));
}
inline int __clzll(long long x) {
  return std::countl_zero(static_cast<unsigned long long>(x));
}
// Logarithm of a normal number, to 2^-21; no stored result may depend on its last bits, which differ by executor.
inline float approximate_log2(float x) {
  return std::log2(x);
}
// To the nearest even integer; x from 0 to 2^52 here.
inline unsigned long long __float2ull_rn(float x) {
  return std::bit_cast<std::uint64_t>(static_cast<double>(x) + 0x1p52) - std::bit_cast<std::uint64_t>(0x1p52);
}
inline int __ffs(int x) {
  return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1;
}
inline int __ffsll(long long x) {
  return x == 0 ? 0 : std::countr_zero(static_cast<unsigned long long>(x)) + 1;
}
// NOLINTEND
