// Access history of each cell of memory, and the rules that say when two accesses conflict. Pure bookkeeping: who
// the threads are and where the bytes lie is passed by the caller.
#pragma once

#include <cstdint>

#include "gpu/simt/warp_clock.hpp"

namespace draftproof::simt {

enum class Access : std::uint8_t { read, write, atomic };

// An epoch is the time between two barriers of one block. Its upper bits are the ticket of the block, which is unique
// in the process, so that records of earlier blocks and launches grow old by themselves and nothing is ever cleared. A
// block with 2^28 barriers would take minutes on fibres.
inline constexpr int kEpochBits = 28;
inline std::uint64_t ticket_of(std::uint64_t epoch) {
  return epoch >> kEpochBits;
}

inline constexpr std::uint16_t kNobody = 0xffff;

struct Cell {
  std::uint64_t epoch = 0;         // of everything below but `written` and `lock`
  std::uint32_t plain_stamp = 0;   // of the last write that was no atomic
  std::uint32_t atomic_stamp = 0;  // of the earlier of the two atomic writers
  std::uint32_t read_stamp = 0;    // of the earliest of read_lanes
  std::uint32_t read_lanes = 0;    // lanes of read_warp
  std::uint16_t plain_writer = kNobody;
  std::uint16_t atomic_writer = kNobody;
  std::uint16_t other_atomic_writer = kNobody;  // not ordered with the first; of another warp if there is one
  std::uint16_t read_warp = kNobody;
  std::uint16_t other_reader = kNobody;  // of another warp
  std::uint8_t flags = 0;                // of Flag
  std::uint8_t lock = 0;                 // of global memory, which blocks on several OS threads share

  enum Flag : std::uint8_t { written = 1, plain_write_by_block = 2 };
};
static_assert(sizeof(Cell) == 40);

struct Accessor {
  std::uint64_t epoch;
  std::uint32_t thread;
  const WarpClock* clock;
};

struct Conflict {
  std::uint32_t other = 0;  // the thread of the same block whose access came first
  Access other_access = Access::read;
};

// Checks one access against the record of its cell (races inside one block), then adds it to the record. Returns false,
// with the conflict, where there is a race. Of two atomic
// accesses none is a race; neither are accesses that a barrier or a meeting of both lanes separates.
// Sound: whatever it reports is unordered. Complete for whole-warp meetings; where lanes meet in changing subsets of a
// warp, a cell keeps the earliest stamp of its readers, and may miss a later one.
bool record_access(Cell& cell, Access access, const Accessor& by, Conflict& conflict);

}  // namespace draftproof::simt
