// Step times of this computer's own engine, from few timed configurations, and what they say of all others.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/model/language_model.hpp"
#include "engine/scheduler/step_cost.hpp"

namespace draftproof {

// A step of the engine with `rows` rows of the target, a chain behind context_len committed tokens: its forward pass
// and what verification of the rows takes, but for what a plain step needs beside its pass (step_ms).
struct TimedPass {
  std::int64_t rows = 0;
  std::int64_t context_len = 0;
  double ms = 0.0;
};

struct MachineProfile {
  std::string cpu;
  std::string simd;
  std::string model;
  std::string arithmetic;
  int threads = 1;
  // Sorted by rows, then by context. At least two row counts at one context, and that context's one-row pass at another
  // one.
  std::vector<TimedPass> passes;
  double step_ms = 0.0;  // of a plain step beside its pass: the scheduler, the row's token

  // A pass of `rows` rows: between the timed row counts along a line, behind the last one along the last line; each row
  // takes longer by its further context as the one-row passes say. No pass takes less than half the fastest timed
  // one, where lines through passes that contradict one another would fall to 0.
  double pass_ms(double rows, double context_len) const;
};

// Errors (input) at `where`: passes that pass_ms() cannot stand on, or times that are not above 0.
void check(const MachineProfile& profile, const std::string& where);

// As a [machine] table, which is read back to the same values.
std::string toml_of(const MachineProfile& profile);
MachineProfile read_machine_profile(const std::string& path);

// Step cost for policies of this computer's engine: passes at the context length of the timed ones, and the engine's
// own time for each request. A draft pass costs `draft_share` of a target pass, the drafter's share of its weights;
// 0: drafts are looked up, at no cost.
class MachineCost final : public StepCost {
 public:
  MachineCost(MachineProfile profile, double draft_share) : profile_(std::move(profile)), draft_share_(draft_share) {}

  double target_ns(const PassLoad& load) const override;
  double draft_ns(const DraftLoad& load) const override;
  double overhead_ns(std::int64_t, const DraftLoad&) const override { return 0.0; }

 private:
  MachineProfile profile_;
  double draft_share_;
};

// Times steps of this computer's engine on a model: five configurations, in turns, so that all meet the same
// disturbances; the lower quartile of each. A step of n rows verifies n - 1 guesses.

struct MachineTiming {
  std::vector<std::int64_t> rows = {1, 4, 8, 16};  // rising, the first one 1
  std::int64_t context_len = 96;
  std::int64_t far_context_len = 608;  // of one more pass of one row
  int repeats = 60;
};

// Fills passes and step_ms; what the computer and the model are is left to the caller. Errors (usage): a model with a
// smaller context. `done` is called after every repeat.
MachineProfile time_machine(LanguageModel& model, const MachineTiming& timing, const std::function<void()>& done = {});

}  // namespace draftproof
