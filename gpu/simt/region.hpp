// One piece of memory that kernels may touch: its bytes, its name for error messages, and a shadow cell per granule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "gpu/simt/cells.hpp"

namespace draftproof::simt {

enum class Space : std::uint8_t { shared, global };

struct Region {
  std::string name;
  Space space = Space::global;
  bool has_guards = false;  // guard words on both sides; a caller's own memory has none
  std::byte* data = nullptr;
  std::uint64_t bytes = 0;
  std::uint32_t element_bytes = 1;  // how error messages count: by element, or by byte in dynamic shared memory
  std::uint32_t granule = 1;        // bytes of a cell; divides the size and the alignment of every element
  Cells cells;                      // empty for inputs: nobody writes them, so there is nothing to find but bounds
  bool begins_written = false;      // no cell of it is unwritten, whatever its flag says
};

// Checks an access by the running thread to the bytes [offset, offset + bytes) of a region that has cells, and holds
// the cells of global memory locked until the end of its scope, so that the access itself is atomic against other
// blocks. Throws a fault of the running thread: unwritten memory read, a race, blocks that write different values.
class CheckedAccess {
 public:
  // new_bytes: what a plain write is about to store, else null.
  CheckedAccess(Region& region, std::uint64_t offset, std::uint64_t bytes, Access access, const std::byte* new_bytes);
  ~CheckedAccess() { unlock(); }
  CheckedAccess(const CheckedAccess&) = delete;
  CheckedAccess& operator=(const CheckedAccess&) = delete;

 private:
  void unlock();
  void check(std::uint64_t cell, Access access, const std::byte* new_bytes);

  Region& region_;
  std::uint64_t first_, last_;  // cells
};

// Fills with the poison of memory that nobody has written: NaN as f32, f64, f16 and bf16, and beyond any token id.
void poison(std::byte* data, std::uint64_t bytes);

// Throws a fault of the running thread: an element outside [0, count) of a pointer into the region.
[[noreturn]] void out_of_bounds(const Region& region, std::int64_t index, std::int64_t count, bool is_write);
[[noreturn]] void misaligned(const Region& region, std::uint64_t alignment);
[[noreturn]] void null_pointer();

}  // namespace draftproof::simt
