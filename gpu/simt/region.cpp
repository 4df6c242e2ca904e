#include "gpu/simt/region.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "gpu/simt/this_block.hpp"

namespace draftproof::simt {
namespace {

constexpr std::uint32_t kPoison = 0x7FFBADAD;

std::string element(const Region& region, std::uint64_t offset) {
  const bool by_byte = region.element_bytes == 1 && region.space == Space::shared;
  return region.name + (by_byte ? ": byte " : ": element ") + std::to_string(offset / region.element_bytes);
}

const char* past(Access access) {
  switch (access) {
    case Access::read:
      return "read";
    case Access::write:
      return "written";
    case Access::atomic:
      return "updated atomically";
  }
  return "";
}

}  // namespace

CheckedAccess::CheckedAccess(Region& region, std::uint64_t offset, std::uint64_t bytes, Access access,
                             const std::byte* new_bytes)
    : region_(region), first_(offset / region.granule), last_((offset + bytes - 1) / region.granule) {
  if (region_.space == Space::global) {
    for (std::uint64_t i = first_; i <= last_; ++i) {  // always upwards, so that two blocks cannot wait for each other
      while (std::atomic_ref(region_.cells[i].lock).exchange(1, std::memory_order_acquire) != 0) {
      }
    }
  }
  try {
    for (std::uint64_t i = first_; i <= last_; ++i) {
      const bool whole = new_bytes != nullptr && bytes >= region_.granule;  // a smaller element has no value of its own
      check(i, access, whole ? new_bytes + (i - first_) * region_.granule : nullptr);
    }
  } catch (...) {
    unlock();
    throw;
  }
}

void CheckedAccess::unlock() {
  if (region_.space != Space::global) return;
  for (std::uint64_t i = first_; i <= last_; ++i)
    std::atomic_ref(region_.cells[i].lock).store(0, std::memory_order_release);
}

void CheckedAccess::check(std::uint64_t cell_index, Access access, const std::byte* new_bytes) {
  ThisBlock& block = this_block();
  const Accessor& by = block.accessor();
  Cell& cell = region_.cells[cell_index];
  const std::uint64_t offset = cell_index * region_.granule;
  const bool foreign = ticket_of(cell.epoch) != ticket_of(by.epoch);
  if (access != Access::write) {
    const bool written =
        region_.begins_written || ((cell.flags & Cell::written) != 0 && !(foreign && region_.space == Space::shared));
    if (!written) {
      block.fault(element(region_, offset) + " is read, but nobody has written it" +
                  (region_.space == Space::shared ? " since the block began" : ""));
    }
  }
  if (foreign && (cell.flags & Cell::plain_write_by_block) != 0 && region_.space == Space::global) {
    std::string other_block;
    if (block.block_name(ticket_of(cell.epoch), other_block)) {
      if (access == Access::read) return;  // the record of the writer is worth more than one of this reader
      if (new_bytes != nullptr && std::memcmp(new_bytes, region_.data + offset, region_.granule) != 0) {
        block.fault(element(region_, offset) + " is written, but " + other_block +
                    " has written another value there: blocks have no order");
      }
    }
  }
  Conflict conflict;
  if (!record_access(cell, access, by, conflict)) {
    block.fault("race on " + element(region_, offset) + ": " + past(access) + " here and " +
                past(conflict.other_access) + " by thread " + block.thread_name(conflict.other) +
                " with no barrier between them");
  }
}

void poison(std::byte* data, std::uint64_t bytes) {
  for (std::uint64_t i = 0; i < bytes; i += sizeof(kPoison)) {
    std::memcpy(data + i, &kPoison, std::min<std::uint64_t>(sizeof(kPoison), bytes - i));
  }
}

void out_of_bounds(const Region& region, std::int64_t index, std::int64_t count, bool is_write) {
  this_block().fault(region.name + ": element " + std::to_string(index) + " is " + (is_write ? "written" : "read") +
                     ", but it has elements 0 to " + std::to_string(count - 1));
}

void misaligned(const Region& region, std::uint64_t alignment) {
  this_block().fault(region.name + ": an access of " + std::to_string(alignment) + "-byte elements is not aligned");
}

void null_pointer() {
  this_block().fault("a null pointer is dereferenced");
}

}  // namespace draftproof::simt
