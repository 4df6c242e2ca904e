// The record of one cell against an oracle that remembers everything: random histories of accesses, meetings of lanes
// and barriers, for three lanes of one warp and two of another.
#include "gpu/simt/shadow.hpp"

#include "gpu/simt/schedule.hpp"
#include "tests/support/test.hpp"

using namespace draftproof::simt;

namespace {

constexpr std::array<std::uint32_t, 5> kThreads = {0, 1, 2, 32, 33};
constexpr std::array<std::uint32_t, 2> kWholeWarp = {0b111, 0b11};

// Exact: every access has a number in its thread, every thread knows the number up to which it has seen each other one.
class Oracle {
 public:
  // The threads whose earlier access races with this one.
  std::vector<std::uint32_t> access(std::size_t who, Access kind) {
    std::vector<std::uint32_t> racing;
    for (const Event& event : events_) {
      const bool harmless = (kind == Access::read && event.kind == Access::read) ||
                            (kind == Access::atomic && event.kind == Access::atomic);
      if (!harmless && event.who != who && seen_[who][event.who] < event.number) racing.push_back(kThreads[event.who]);
    }
    events_.push_back({who, kind, ++seen_[who][who]});
    return racing;
  }

  void meet(std::uint32_t warp, std::uint32_t mask) {
    std::array<std::uint64_t, kThreads.size()> joined{};
    const auto takes_part = [&](std::size_t who) {
      return kThreads[who] / kLanes == warp && (mask >> kThreads[who] % kLanes & 1) != 0;
    };
    for (std::size_t who = 0; who < kThreads.size(); ++who) {
      for (std::size_t i = 0; takes_part(who) && i < kThreads.size(); ++i)
        joined[i] = std::max(joined[i], seen_[who][i]);
    }
    for (std::size_t who = 0; who < kThreads.size(); ++who) {
      if (takes_part(who)) seen_[who] = joined;
    }
  }

  void barrier() { events_.clear(); }

 private:
  struct Event {
    std::size_t who;
    Access kind;
    std::uint64_t number;
  };
  std::vector<Event> events_;
  std::array<std::array<std::uint64_t, kThreads.size()>, kThreads.size()> seen_{};
};

struct Tally {
  int races = 0, missed = 0, false_alarms = 0, clean = 0;
};

// One history up to its first race.
void play(std::uint64_t seed, bool whole_warps, Tally& tally) {
  Schedule random(seed, 0);
  Oracle oracle;
  std::array<WarpClock, 2> clocks;
  Cell cell;
  std::uint64_t epoch = std::uint64_t{5} << kEpochBits;
  for (int step = 0; step < 24; ++step) {
    const std::uint32_t what = random.below(20);
    if (what == 0) {
      ++epoch;
      oracle.barrier();
    } else if (what < 12) {
      const std::uint32_t warp = random.below(3) / 2;
      const std::uint32_t mask = whole_warps ? kWholeWarp[warp] : 1 + random.below(kWholeWarp[warp]);
      clocks[warp].meet(mask);
      oracle.meet(warp, mask);
    } else {
      const std::size_t who = random.below(kThreads.size());
      const Access kind = random.below(4) == 0 ? Access::write : random.below(2) == 0 ? Access::atomic : Access::read;
      const std::vector<std::uint32_t> racing = oracle.access(who, kind);
      Conflict conflict;
      const bool accused =
          !record_access(cell, kind, {epoch, kThreads[who], &clocks[kThreads[who] / kLanes]}, conflict);
      if (accused && std::find(racing.begin(), racing.end(), conflict.other) == racing.end()) ++tally.false_alarms;
      if (!accused && !racing.empty()) ++tally.missed;
      if (!racing.empty()) ++tally.races;
      if (accused || !racing.empty()) return;
    }
  }
  ++tally.clean;
}

}  // namespace

TEST_CASE("With whole-warp meetings a cell finds every race at the access that makes it and accuses no other") {
  Tally tally;
  for (std::uint64_t seed = 0; seed < 20000; ++seed) play(seed, true, tally);
  CHECK(tally.false_alarms == 0);
  CHECK(tally.missed == 0);
  CHECK(tally.races > 5000);
  CHECK(tally.clean > 100);
}

TEST_CASE("With meetings of any subset a cell accuses nobody wrongly and misses little") {
  Tally tally;
  for (std::uint64_t seed = 0; seed < 20000; ++seed) play(seed, false, tally);
  CHECK(tally.false_alarms == 0);
  CHECK(tally.missed * 50 < tally.races);
  CHECK(tally.races > 5000);
  CHECK(tally.clean > 100);
}
