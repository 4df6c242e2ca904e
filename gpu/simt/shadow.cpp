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

void record_write(Cell& cell, Access access, const Accessor& by) {
  const auto thread = static_cast<std::uint16_t>(by.thread);
  const bool first_stands = cell.writer != kNobody && !ordered(by, cell.writer, cell.write_stamp);
  if (first_stands) {  // both are atomic, or this would have been a conflict
    if (cell.other_writer == kNobody) cell.other_writer = thread;
  } else {
    cell.writer = thread;
    cell.write_stamp = by.clock->now();
    if (cell.other_writer != kNobody && ordered(by, cell.other_writer, cell.write_stamp)) cell.other_writer = kNobody;
  }
  cell.read_lanes = 0;  // every read of this epoch happens before this write
  cell.other_reader = kNobody;
  cell.flags |= Cell::written;
  if (access == Access::atomic) {
    cell.flags |= Cell::atomic_write;
  } else {
    cell.flags = static_cast<std::uint8_t>((cell.flags & ~Cell::atomic_write) | Cell::plain_write_by_block);
  }
}

}  // namespace

Conflict record_access(Cell& cell, Access access, const Accessor& by) {
  if (cell.epoch != by.epoch) {
    if (ticket_of(cell.epoch) != ticket_of(by.epoch)) cell.flags &= Cell::written;
    cell.flags &= static_cast<std::uint8_t>(~Cell::atomic_write);
    cell.epoch = by.epoch;
    cell.read_lanes = 0;
    cell.writer = cell.other_writer = cell.other_reader = kNobody;
  }
  const Access before = cell.flags & Cell::atomic_write ? Access::atomic : Access::write;
  if (!(access == Access::atomic && before == Access::atomic)) {
    for (const std::uint16_t writer : {cell.writer, cell.other_writer}) {
      if (writer != kNobody && !ordered(by, writer, cell.write_stamp)) return {true, writer, before};
    }
  }
  if (access == Access::read) {
    record_read(cell, by);
    return {};
  }
  const std::uint16_t reader = unordered_reader(cell, by);
  if (reader != kNobody) return {true, reader, Access::read};
  record_write(cell, access, by);
  return {};
}

}  // namespace draftproof::simt
