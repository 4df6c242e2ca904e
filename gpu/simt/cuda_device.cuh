// Names with which nvcc reads the text of our kernels: names for memory that are checked pointers on the host and plain
// pointers here, and atomics on std::uint64_t, which is `unsigned long` where CUDA wants `unsigned long long`.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace draftproof {

template <class T>
using Global = T*;
template <class T>
using Shared = T*;

// The same bytes as elements of another type: view_as<const uint4>(p).
template <class U, class T>
__device__ inline U* view_as(T* p) {
  return reinterpret_cast<U*>(p);
}

}  // namespace draftproof

// Logarithm of a normal number, to 2^-21: one instruction. __log2f takes four, for subnormal numbers too.
__device__ inline float approximate_log2(float x) {
  float out;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
}

// One declaration for all instances of all kernels, since `extern __shared__` names have one type per file.
extern __shared__ __align__(16) unsigned char draftproof_dynamic_shared[];

#define DRAFTPROOF_UNROLL _Pragma("unroll")
#define DRAFTPROOF_ROLLED _Pragma("unroll 1")
#define DRAFTPROOF_SHARED(T, name, count) __shared__ T name[count]
#define DRAFTPROOF_DYNAMIC_SHARED(T, name, byte_offset, count) \
  T* const name = reinterpret_cast<T*>(draftproof_dynamic_shared + (byte_offset))

#define DRAFTPROOF_ATOMIC_64(name, signed_word)                                                       \
  __device__ inline unsigned long name(unsigned long* p, unsigned long v) {                           \
    return ::name(reinterpret_cast<unsigned long long*>(p), static_cast<unsigned long long>(v));      \
  }                                                                                                   \
  __device__ inline long name(long* p, long v) {                                                      \
    return static_cast<long>(::name(reinterpret_cast<signed_word*>(p), static_cast<signed_word>(v))); \
  }
DRAFTPROOF_ATOMIC_64(atomicAdd, unsigned long long)  // two's complement: addition knows no sign
DRAFTPROOF_ATOMIC_64(atomicMax, long long)
DRAFTPROOF_ATOMIC_64(atomicMin, long long)
DRAFTPROOF_ATOMIC_64(atomicOr, unsigned long long)
DRAFTPROOF_ATOMIC_64(atomicExch, unsigned long long)
#undef DRAFTPROOF_ATOMIC_64

__device__ inline unsigned long atomicCAS(unsigned long* p, unsigned long expected, unsigned long v) {
  return ::atomicCAS(reinterpret_cast<unsigned long long*>(p), static_cast<unsigned long long>(expected),
                     static_cast<unsigned long long>(v));
}
__device__ inline long atomicCAS(long* p, long expected, long v) {
  return static_cast<long>(::atomicCAS(reinterpret_cast<unsigned long long*>(p),
                                       static_cast<unsigned long long>(expected), static_cast<unsigned long long>(v)));
}
