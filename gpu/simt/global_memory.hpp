// Global memory of the executor: buffers with guard words on both sides, poison where nobody has written, and a shadow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gpu/simt/checked_pointer.hpp"
#include "gpu/simt/region.hpp"

namespace draftproof {
namespace simt {

// The bytes of one buffer between two guards, aligned as cudaMalloc aligns.
class GlobalMemory {
 public:
  GlobalMemory(const std::string& name, std::uint64_t bytes, std::uint32_t element_bytes, std::uint32_t granule,
               bool has_cells);

  Region& region() const { return *region_; }
  void mark_written() const;
  // The first element that nobody has written, or -1.
  std::int64_t first_unwritten() const;
  void throw_unwritten(std::int64_t element) const;
  void throw_input() const;

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte[], Free> bytes_;
  std::unique_ptr<Region> region_;  // pointers to it outlive a move of this
};

// Throws Error(internal) where the guard words around a buffer are damaged; `when` ends the message.
void check_guards(const Region& region, const std::string& when);

}  // namespace simt

// Device memory of `count` elements. The host reads and writes it only through these functions, as through cudaMemcpy.
template <class T>
class Buffer {
 public:
  // Only read by kernels.
  static Buffer input(const std::string& name, std::span<const T> values) { return Buffer(name, values, false); }
  // Read and written.
  static Buffer in_out(const std::string& name, std::span<const T> values) { return Buffer(name, values, true); }
  // Poison until a kernel writes it.
  static Buffer output(const std::string& name, std::size_t count) { return Buffer(name, count, true); }

  std::size_t size() const { return count_; }
  // For a kernel that writes. Throws Error(internal) for an input.
  simt::CheckedPointer<T> global() const {
    if (!writable_) memory_.throw_input();
    return {&memory_.region(), 0, static_cast<std::int64_t>(count_)};
  }
  simt::CheckedPointer<const T> read_only() const { return {&memory_.region(), 0, static_cast<std::int64_t>(count_)}; }

  // A copy. Throws Error(internal) where a guard word is damaged or an element was never written.
  std::vector<T> values() const {
    const std::int64_t unwritten = memory_.first_unwritten();
    if (unwritten >= 0) memory_.throw_unwritten(unwritten);
    return values_or_poison();
  }
  // A copy of a buffer that need not be full.
  std::vector<T> values_or_poison() const {
    simt::check_guards(memory_.region(), "when it was copied to the host");
    std::vector<T> copy(count_);
    if (count_ != 0) std::memcpy(copy.data(), memory_.region().data, count_ * sizeof(T));
    return copy;
  }
  // The bytes, unchecked, for code that knows no Global<T>: only the guard words watch what happens to them.
  T* unchecked() const { return reinterpret_cast<T*>(memory_.region().data); }

 private:
  static constexpr std::uint32_t kGranule = alignof(T) > 8 ? 8 : alignof(T);

  Buffer(const std::string& name, std::size_t count, bool writable)
      : count_(count), writable_(writable), memory_(name, count * sizeof(T), sizeof(T), kGranule, writable) {}
  Buffer(const std::string& name, std::span<const T> values, bool writable) : Buffer(name, values.size(), writable) {
    if (!values.empty()) std::memcpy(memory_.region().data, values.data(), values.size_bytes());
    memory_.mark_written();
  }

  std::size_t count_;
  bool writable_;
  simt::GlobalMemory memory_;
};

}  // namespace draftproof
