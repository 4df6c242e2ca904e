// Runs every hunt on every bug, its sound twin, and the controls.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "exactness/bugs/bug.hpp"

namespace draftproof {

// Coupling, range, algorithm, filters, processors: each family in the order of its ids.
std::vector<Bug> all_bugs();

struct HuntResult {
  Detector detector;
  Finding faulty;
  Finding sound;
  double milliseconds = 0.0;  // of the hunt on the faulty code
};

struct BugResult {
  Bug bug;
  std::vector<HuntResult> hunts;

  // The first hunt that caught the fault; null for none: the bug survived.
  const HuntResult* killer() const;
  // Did every hunt stay silent on the same code without the fault?
  bool twin_passes() const;
};

struct ControlResult {
  Control control;
  std::vector<HuntResult> hunts;  // `sound` is not run
  bool passes() const;
};

struct BugReport {
  std::vector<BugResult> bugs;
  std::vector<ControlResult> controls;
  std::vector<WaitingBug> waiting;

  std::int64_t killed() const;
  std::int64_t twins_passed() const;
  std::int64_t controls_passed() const;
  // All killed, and no false alarm.
  bool as_claimed() const;
  std::string sentence() const;
};

// `wanted`: ids of bugs and controls, all when empty. `done` is called after each of them, from any thread. Errors
// (usage): an id that there is not.
BugReport run_bugs(const std::vector<std::string>& wanted, int threads, const std::function<void()>& done = {});

// How many there are, controls included.
std::size_t count_of_bugs();

}  // namespace draftproof
