// The server of a scenario: presets of a model, a GPU and an engine behind the roofline, or the constants of a linear
// cost model.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/scheduler/step_cost.hpp"
#include "sim/cost/roofline.hpp"
#include "sim/serving/scenario.hpp"

namespace draftproof {

class ScenarioServer {
 public:
  // [server] or [linear] of the file. Errors (input) at their places: neither or both, unknown presets, weights that do
  // not fit into the memory.
  explicit ScenarioServer(const TomlValue& file);

  std::string description() const;
  // Blocks for which there is memory beside the weights; of a linear server the scheduler's default.
  std::int32_t kv_blocks() const { return kv_blocks_; }
  std::shared_ptr<const StepCost> cost_without_drafter() const;
  // May it draft while the target computes? Constants may be those of any devices.
  bool drafts_elsewhere() const { return linear_ != nullptr || setup_.draft_gpu.has_value(); }
  // The cost of a policy and how it drafts. drafter: the value in the file, null where there is none; policy_where: for
  // the error (input) that there is none.
  void set_drafter(const TomlValue* drafter, const std::string& policy_where, ScenarioPolicy& policy) const;

 private:
  void read_presets(const TomlValue& table);

  std::shared_ptr<const LinearCost> linear_;  // null: presets
  RooflineSetup setup_;
  std::string precision_text_;
  std::int32_t kv_blocks_ = SchedulerOptions{}.num_blocks;
};

}  // namespace draftproof
