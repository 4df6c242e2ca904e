// Runs every hunt on every mutant, its sound twin, and the controls.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reference/exactness/mutants/mutant.hpp"
#include "reference/exactness/mutants/usual_tests.hpp"

namespace draftproof {

// All families, each in the order of its ids.
std::vector<Mutant> all_mutants();

struct HuntResult {
  Detector detector;
  Finding faulty;
  Finding sound;
  double milliseconds = 0.0;  // of the hunt on the faulty code
};

struct MutantResult {
  Mutant mutant;
  std::vector<HuntResult> hunts;
  std::optional<UsualTests> usual;

  // The first hunt that caught the fault; null for none: the mutant survived.
  const HuntResult* killer() const;
  // Did every hunt stay silent on the same code without the fault?
  bool twin_passes() const;
};

struct ControlResult {
  Control control;
  std::vector<HuntResult> hunts;  // `sound` is not run
  std::optional<UsualTests> usual;
  bool passes() const;
};

struct MutantReport {
  std::vector<MutantResult> mutants;
  std::vector<ControlResult> controls;
  std::vector<WaitingMutant> waiting;

  std::int64_t killed() const;
  std::int64_t twins_passed() const;
  std::int64_t controls_passed() const;
  // All killed, and no false alarm.
  bool as_claimed() const;
  std::string sentence() const;
};

// `wanted`: ids of mutants and controls, all when empty. `done` is called after each of them, from any thread. Errors
// (usage): an id that there is not.
MutantReport run_mutants(const std::vector<std::string>& wanted, int threads, const std::function<void()>& done = {});

// How many there are, controls included.
std::size_t count_of_mutants();

// The table of docs/exactness.md: what does not depend on the machine.
std::string markdown_table(const MutantReport& report);

}  // namespace draftproof
