#include "reference/verify/kv_slots.hpp"

#include "tests/support/test.hpp"

namespace {

using Slots = std::vector<std::int64_t>;
using Path = std::vector<std::int32_t>;

// Rows 0..6 in slots 10..16 of a cache of 32.
const Slots kSlots = {10, 11, 12, 13, 14, 15, 16};

TEST_CASE("of a chain nothing moves and the rejected drafts' slots are freed", "[kv_slots]") {
  const SlotCommit commit = commit_slots(kSlots, Path{0, 1, 2}, 32);
  CHECK(commit.moves.empty());
  CHECK(commit.freed == Slots{14, 15, 16});
}

TEST_CASE("accepted nodes of a tree move to the first slots, in order", "[kv_slots]") {
  const SlotCommit commit = commit_slots(kSlots, Path{0, 3, 5}, 32);
  CHECK(commit.moves == std::vector<SlotMove>{{14, 12}, {16, 13}});  // node 0 is in its place
  CHECK(commit.freed == Slots{14, 15, 16});
}

TEST_CASE("a move may overwrite an entry that has moved, never one that has to", "[kv_slots]") {
  const SlotCommit commit = commit_slots(kSlots, Path{1, 2, 3, 4, 5}, 32);
  std::vector<std::int64_t> cache(32);
  for (std::size_t r = 0; r < kSlots.size(); ++r)
    cache[static_cast<std::size_t>(kSlots[r])] = static_cast<std::int64_t>(r);
  for (const SlotMove& move : commit.moves)
    cache[static_cast<std::size_t>(move.to)] = cache[static_cast<std::size_t>(move.from)];
  CHECK(std::vector(cache.begin() + 10, cache.begin() + 16) == std::vector<std::int64_t>{0, 2, 3, 4, 5, 6});
  CHECK(commit.freed == Slots{16});
}

TEST_CASE("nothing accepted keeps the root's entry, everything accepted frees nothing", "[kv_slots]") {
  CHECK(commit_slots(kSlots, Path{}, 32).freed == Slots{11, 12, 13, 14, 15, 16});
  CHECK(commit_slots(kSlots, Path{0, 1, 2, 3, 4, 5}, 32).freed.empty());
  CHECK(commit_slots(Slots{3}, Path{}, 4).freed.empty());
}

TEST_CASE("wrong slots and paths are refused by name", "[kv_slots]") {
  const auto message = [](const Slots& slots, const Path& path) {
    return error_of(ErrorKind::input, [&] { commit_slots(slots, path, 32); });
  };
  CHECK(message({10, 32}, {}).find("slot of row 1: it is 32; expected a slot in [0, 32)") != std::string::npos);
  CHECK(message({10, -1}, {}).find("slot of row 1: it is -1") != std::string::npos);
  CHECK(message({10, 11, 10}, {}).find("slot of row 2: 10 is an earlier row's too") != std::string::npos);
  CHECK(message(kSlots, {0, 0}).find("accepted node 1: it is 0") != std::string::npos);
  CHECK(message(kSlots, {6}).find("accepted node 0: it is 6") != std::string::npos);
  CHECK(message(kSlots, {-1}).find("accepted node 0: it is -1") != std::string::npos);
  CHECK(message({}, {}).find("the root's row has one") != std::string::npos);
}

}  // namespace
