// Memory for what is streamed at every pass: aligned, zeroed, on huge pages where the system gives them.
#pragma once

#include <cstddef>
#include <memory>

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

}  // namespace draftproof
