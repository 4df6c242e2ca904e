#include "reference/verify/kv_slots.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

#include "base/error.hpp"

namespace draftproof {
namespace {

void check_slots(std::span<const std::int64_t> slots, std::int64_t num_slots) {
  for (std::size_t r = 0; r < slots.size(); ++r) {
    const std::string where = "slot of row " + std::to_string(r);
    if (slots[r] < 0 || slots[r] >= num_slots)
      throw input_error(
          where, "it is " + std::to_string(slots[r]) + "; expected a slot in [0, " + std::to_string(num_slots) + ")");
    if (std::ranges::count(slots.first(r), slots[r]) > 0)
      throw input_error(where, std::to_string(slots[r]) + " is an earlier row's too; a slot holds one entry");
  }
}

void check_path(std::span<const std::int32_t> path, std::size_t nodes) {
  for (std::size_t k = 0; k < path.size(); ++k) {
    const std::int32_t least = k == 0 ? 0 : path[k - 1] + 1;
    if (path[k] < least || static_cast<std::size_t>(path[k]) >= nodes)
      throw input_error("accepted node " + std::to_string(k), "it is " + std::to_string(path[k]) +
                                                                  "; nodes ascend along a path and lie in [0, " +
                                                                  std::to_string(nodes) + ")");
  }
}

}  // namespace

SlotCommit commit_slots(std::span<const std::int64_t> slots, std::span<const std::int32_t> path,
                        std::int64_t num_slots) {
  if (slots.empty()) throw input_error("slots", "there are none; the root's row has one");
  check_slots(slots, num_slots);
  check_path(path, slots.size() - 1);
  SlotCommit commit;
  append_path_moves(
      path, [&](std::size_t row) { return slots[row]; }, commit.moves);
  for (std::size_t r = path.size() + 1; r < slots.size(); ++r) commit.freed.push_back(slots[r]);
  return commit;
}

}  // namespace draftproof
