// The lanes of one warp and the collective operations in which they meet.
#pragma once

#include <array>
#include <cstdint>
#include <source_location>
#include <string>

#include "gpu/simt/this_block.hpp"
#include "gpu/simt/warp_clock.hpp"

namespace draftproof::simt {

const char* name_of(Collective kind);
std::string text_of(const std::source_location& place);  // file and line, without the folder
bool same_place(const std::source_location& a, const std::source_location& b);

// One lane's input to the collective in which it waits, and its result.
struct Meeting {
  Collective kind = Collective::sync;
  std::uint32_t mask = 0;
  std::uint32_t source = 0;  // the lane whose value is wanted
  std::uint64_t value = 0;
  std::uint64_t result = 0;
  std::source_location place;

  bool matches(const Meeting& other) const {
    return kind == other.kind && mask == other.mask && same_place(place, other.place);
  }
};

struct Warp {
  std::uint32_t exists = 0;  // lanes; fewer than 32 in a partial last warp
  std::uint32_t waits = 0;   // lanes in a collective
  std::array<Meeting, kLanes> meetings;
  WarpClock clock;

  // Lanes beyond the end of the block may be named in a mask, as in CUDA; what must come are these.
  std::uint32_t expected(const Meeting& meeting) const { return meeting.mask & exists; }
  // The first expected lane that does not wait in the same collective, or 32 when all are there.
  std::uint32_t missing(const Meeting& meeting) const;
  // All expected lanes are there: gives each its result.
  void complete(const Meeting& meeting);
};

}  // namespace draftproof::simt
