#include "gpu/simt/warp.hpp"

#include <bit>
#include <cstring>

namespace draftproof::simt {

const char* name_of(Collective kind) {
  switch (kind) {
    case Collective::shuffle:
      return "__shfl_sync";
    case Collective::shuffle_xor:
      return "__shfl_xor_sync";
    case Collective::shuffle_down:
      return "__shfl_down_sync";
    case Collective::shuffle_up:
      return "__shfl_up_sync";
    case Collective::ballot:
      return "__ballot_sync";
    case Collective::any:
      return "__any_sync";
    case Collective::all:
      return "__all_sync";
    case Collective::sync:
      return "__syncwarp";
  }
  return "";
}

std::string text_of(const std::source_location& place) {
  const std::string file = place.file_name();
  return file.substr(file.find_last_of('/') + 1) + ":" + std::to_string(place.line());
}

bool same_place(const std::source_location& a, const std::source_location& b) {
  if (a.line() != b.line() || a.column() != b.column()) return false;
  return a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0;
}

std::uint32_t Warp::missing(const Meeting& meeting) const {
  std::uint32_t rest = expected(meeting);
  if (const std::uint32_t away = rest & ~waits; away != 0) return static_cast<std::uint32_t>(std::countr_zero(away));
  for (; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    if (!meetings[lane].matches(meeting)) return lane;
  }
  return kLanes;
}

void Warp::complete(const Meeting& meeting) {
  const std::uint32_t lanes = expected(meeting);
  std::uint64_t ballot = 0;
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    ballot |= std::uint64_t{meetings[lane].value != 0} << lane;
  }
  const Collective kind = meeting.kind;
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    Meeting& mine = meetings[static_cast<std::size_t>(std::countr_zero(rest))];
    if (kind == Collective::ballot || kind == Collective::any) {
      mine.result = kind == Collective::ballot ? ballot : std::uint64_t{ballot != 0};
    } else if (kind == Collective::all) {
      mine.result = ballot == lanes;
    } else {
      mine.result = meetings[mine.source].value;
    }
  }
  waits &= ~lanes;
  clock.meet(lanes);
}

}  // namespace draftproof::simt
