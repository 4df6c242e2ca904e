// How a call's scratch memory is cut from its workspace: one section after the other, each 256-byte aligned. The same
// code lays it out and, without memory, says how much is needed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace draftproof {

class WorkspaceLayout {
 public:
  static constexpr std::int64_t kAlignment = 256;

  // The byte at which the next section begins.
  std::int64_t add(std::int64_t bytes) {
    const std::int64_t begin = bytes_;
    bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return begin;
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::int64_t bytes_ = 0;
};

}  // namespace draftproof
