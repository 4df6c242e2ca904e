// The shared memory of the block that runs on one OS thread: the arrays that kernels declare, and the dynamic bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/simt/region.hpp"

namespace draftproof::simt {

class SharedMemory {
 public:
  explicit SharedMemory(std::uint64_t dynamic_bytes);

  // A new block begins: its memory is poison. (The cells know by the block's ticket that nobody has written yet.)
  void begin_block();

  // A cell is a word until the first view of smaller elements comes; then the cells become as fine as these.
  Region& dynamic(std::uint32_t alignment);
  // The array of a declaration, made when the first thread comes to it. Null where static memory would exceed `limit`.
  Region* array(const void* tag, const char* name, std::uint64_t bytes, std::uint32_t element_bytes,
                std::uint32_t alignment, std::uint64_t limit);

 private:
  struct Array {
    const void* tag = nullptr;
    std::unique_ptr<std::max_align_t[]> bytes;
    Region region;
  };
  static void allocate(Array& array, std::uint64_t bytes);

  Array dynamic_;
  std::vector<std::unique_ptr<Array>> arrays_;  // addresses of regions must last
  std::uint64_t static_bytes_ = 0;
};

}  // namespace draftproof::simt
