#include "gpu/simt/shadow.hpp"

#include <algorithm>
#include <bit>

namespace draftproof::simt {
namespace {

// Whether what `other` did at `stamp`, in this epoch, happens before what `by` does now.
bool ordered(const Accessor& by, std::uint32_t other, std::uint32_t stamp) {
  if (other == by.thread) return true;
  return other / kLanes == by.thread / kLanes && by.clock->has_seen(by.thread % kLanes, other % kLanes, stamp);
}

// A lane of cell.read_lanes whose read is not ordered before `by`, or kNobody.
std::uint16_t unordered_reader(const Cell& cell, const Accessor& by) {
  for (std::uint32_t rest = cell.read_lanes; rest != 0; rest &= rest - 1) {
    const std::uint32_t reader = cell.read_warp * kLanes + static_cast<std::uint32_t>(std::countr_zero(rest));
    if (!ordered(by, reader, cell.read_stamp)) return static_cast<std::uint16_t>(reader);
  }
  return cell.other_reader != by.thread ? cell.other_reader : kNobody;
}

void record_read(Cell& cell, const Accessor& by) {
  const auto warp = static_cast<std::uint16_t>(by.thread / kLanes);
  const std::uint32_t bit = 1U << by.thread % kLanes;
  if (cell.read_lanes != 0 && cell.read_warp != warp) {
    if (cell.other_reader == kNobody) cell.other_reader = static_cast<std::uint16_t>(by.thread);
    return;
  }
  std::uint32_t unordered = 0;  // a reader that happens before this one is represented by it
  for (std::uint32_t rest = cell.read_lanes & ~bit; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    if (!by.clock->has_seen(by.thread % kLanes, lane, cell.read_stamp)) unordered |= 1U << lane;
  }
  if (unordered == 0) cell.read_stamp = by.clock->now();
  cell.read_warp = warp;
  cell.read_lanes = unordered | bit;
}

// Everything of this epoch happens before a plain write that is no race, so that it stands for everything.
void record_plain_write(Cell& cell, const Accessor& by) {
  cell.plain_writer = static_cast<std::uint16_t>(by.thread);
  cell.plain_stamp = by.clock->now();
  cell.atomic_writer = cell.other_atomic_writer = cell.other_reader = kNobody;
  cell.read_lanes = 0;
  cell.flags |= Cell::written | Cell::plain_write_by_block;
}

// An atomic is not ordered with other atomics: it stands for nobody but the atomics before it in its own order.
void record_atomic(Cell& cell, const Accessor& by) {
  const auto thread = static_cast<std::uint16_t>(by.thread);
  cell.flags |= Cell::written;
  if (cell.atomic_writer != kNobody && !ordered(by, cell.atomic_writer, cell.atomic_stamp)) {
    // A second warp is kept: whoever comes next is unordered with one of two warps. A second lane adds nothing.
    const bool other_warp = thread / kLanes != cell.atomic_writer / kLanes;
    if (cell.other_atomic_writer == kNobody || other_warp) cell.other_atomic_writer = thread;
    return;
  }
  cell.atomic_writer = thread;
  if (cell.other_atomic_writer != kNobody && ordered(by, cell.other_atomic_writer, cell.atomic_stamp)) {
    cell.other_atomic_writer = kNobody;
  }
  if (cell.other_atomic_writer == kNobody)
    cell.atomic_stamp = by.clock->now();  // else the earlier stamp stands for both
}

void begin_epoch(Cell& cell, std::uint64_t epoch) {
  if (ticket_of(cell.epoch) != ticket_of(epoch)) cell.flags &= Cell::written;
  cell.epoch = epoch;
  cell.read_lanes = 0;
  cell.plain_writer = cell.atomic_writer = cell.other_atomic_writer = cell.other_reader = kNobody;
}

}  // namespace

bool record_access(Cell& cell, Access access, const Accessor& by, Conflict& conflict) {
  if (cell.epoch != by.epoch) begin_epoch(cell, by.epoch);
  if (cell.plain_writer != kNobody && !ordered(by, cell.plain_writer, cell.plain_stamp)) {
    conflict = {cell.plain_writer, Access::write};
    return false;
  }
  if (access != Access::atomic) {
    for (const std::uint16_t writer : {cell.atomic_writer, cell.other_atomic_writer}) {
      if (writer != kNobody && !ordered(by, writer, cell.atomic_stamp)) {
        conflict = {writer, Access::atomic};
        return false;
      }
    }
  }
  if (access == Access::read) {
    record_read(cell, by);
    return true;
  }
  const std::uint16_t reader = unordered_reader(cell, by);
  if (reader != kNobody) {
    conflict = {reader, Access::read};
    return false;
  }
  if (access == Access::write) {
    record_plain_write(cell, by);
  } else {
    record_atomic(cell, by);
  }
  return true;
}

}  // namespace draftproof::simt
