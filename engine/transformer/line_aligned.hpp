// Vectors that begin at a line of the cache: threads that share an array at multiples of 16 floats then never write to
// the same line, which would travel between their cores.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace draftproof {

template <class T>
struct LineAllocator {
  using value_type = T;

  LineAllocator() = default;
  template <class U>
  LineAllocator(const LineAllocator<U>&) {}

  T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kLine)); }
  void deallocate(T* at, std::size_t) { ::operator delete(at, kLine); }
  bool operator==(const LineAllocator&) const = default;

 private:
  static constexpr std::align_val_t kLine{64};
};

using AlignedFloats = std::vector<float, LineAllocator<float>>;

}  // namespace draftproof
