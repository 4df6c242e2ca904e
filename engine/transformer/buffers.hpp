// Memory for what is streamed at every pass: aligned, zeroed, on huge pages where the system gives them.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

namespace draftproof {

class HugeBuffer {
  struct Unmap {
    std::size_t bytes;
    void operator()(std::byte* at) const;
  };

 public:
  HugeBuffer() : data_(nullptr, Unmap{0}) {}
  // Zeroed; pages come into being when they are first written. Error (std::bad_alloc): the system has no such range.
  explicit HugeBuffer(std::size_t bytes);

  std::byte* data() const { return data_.get(); }
  std::size_t size() const { return data_.get_deleter().bytes; }

 private:
  std::unique_ptr<std::byte, Unmap> data_;
};

// Vectors that begin at a line of the cache: threads that share an array at multiples of 16 floats then never write to
// the same line, which would travel between their cores.

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
