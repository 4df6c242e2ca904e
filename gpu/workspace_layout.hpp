// How a call's scratch memory is cut from its workspace: one section after the other, each 256-byte aligned. The same
// code lays it out and, without memory, says how much is needed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/checked_size.hpp"

namespace draftproof {

class WorkspaceLayout {
 public:
  static constexpr std::int64_t kAlignment = 256;

  // The byte at which the next section begins.
  std::int64_t add(CheckedSize bytes) {
    const std::int64_t begin = bytes_.value();
    const std::int64_t sections = bytes.value() / kAlignment + (bytes.value() % kAlignment != 0 ? 1 : 0);
    bytes_ = bytes_ + CheckedSize(sections) * kAlignment;
    return begin;
  }
  // More than DRAFTPROOF_BYTES_MAX where the sections fit into no memory.
  std::int64_t bytes() const { return bytes_.value(); }

 private:
  CheckedSize bytes_ = 0;
};

}  // namespace draftproof
