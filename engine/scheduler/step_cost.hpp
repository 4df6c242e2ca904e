// Costs of the parts of a step on some hardware, engine, target and drafter: what policies weigh, what `predict`
// compares, and the clock of the simulator. Behind it stand constants and a table of this project's own passes (below),
// a roofline (sim/cost) and timed passes of this computer (sim/machine).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace draftproof {

// One forward pass of the target. Under guidance a request has two streams, and both have rows.
struct PassLoad {
  std::int64_t rows = 0;        // tokens through the weights: committed ones, drafts, parts of prompts
  std::int64_t streams = 0;     // that have rows
  std::int64_t kv_tokens = 0;   // cached tokens that attention reads, over all streams
  std::int64_t attended = 0;    // pairs of a row and a key, over all streams
  std::int64_t logit_rows = 0;  // rows that go through the head
};

// The drafting of one step, over all requests that draft.
struct DraftLoad {
  std::int64_t requests = 0;
  std::int32_t passes = 0;     // one after the other; 0: nothing is drafted in this step
  std::int64_t rows = 0;       // tokens through the drafter, over all passes
  std::int64_t kv_tokens = 0;  // cached tokens that one pass reads
  bool tree = false;
  std::int32_t depth = 0;  // levels of the longest draft; one pass may propose them all
};

// Loads as a policy plans them: it knows no contexts.
inline PassLoad planned_pass(std::int64_t rows, std::int64_t requests) {
  return {rows, requests, 0, 0, rows};
}
inline DraftLoad planned_drafting(std::int32_t passes, std::int64_t requests) {
  return passes == 0 ? DraftLoad{} : DraftLoad{requests, passes, requests * passes, 0, false, passes};
}

// Times are nanoseconds, finite and not negative for every load.
class StepCost {
 public:
  virtual ~StepCost() = default;
  virtual double target_ns(const PassLoad& load) const = 0;
  virtual double draft_ns(const DraftLoad& load) const = 0;
  // Time of the engine itself in a step of `requests` requests, beside the passes: scheduling, sampling, verification
  // of drafts if there are any.
  virtual double overhead_ns(std::int64_t requests, const DraftLoad& load) const = 0;
};

// A few constants, as published fits have them and as one can calculate with.
//
//   pass    fixed_ns + row_ns rows + kv_token_ns cached tokens
//   drafts  passes (draft_pass_ns + draft_kv_token_ns cached tokens) + draft_row_ns rows over all passes
//   engine  engine_ns a step, speculation_ns more of one that drafts
struct LinearCost final : StepCost {
  double fixed_ns = 0.0;
  double row_ns = 0.0;
  double kv_token_ns = 0.0;
  double draft_pass_ns = 0.0;
  double draft_row_ns = 0.0;
  double draft_kv_token_ns = 0.0;
  double engine_ns = 0.0;
  double speculation_ns = 0.0;

  double target_ns(const PassLoad& load) const override {
    return fixed_ns + row_ns * static_cast<double>(load.rows) + kv_token_ns * static_cast<double>(load.kv_tokens);
  }
  double draft_ns(const DraftLoad& load) const override {
    return load.passes * (draft_pass_ns + draft_kv_token_ns * static_cast<double>(load.kv_tokens)) +
           draft_row_ns * static_cast<double>(load.rows);
  }
  double overhead_ns(std::int64_t, const DraftLoad& load) const override {
    return engine_ns + (load.passes > 0 ? speculation_ns : 0.0);
  }
};

// The shape of this project's own passes where no machine has been timed: a line from row count to row count of
// default_step_cost.json, which says where its times come from. Machine-independent on purpose: draft length affects
// sampled tokens. Drafts and the engine cost nothing.
class DefaultStepCost final : public StepCost {
 public:
  // Errors (input), naming the file: it cannot be read, has fewer than two passes, rows that do not rise from 1 on, or
  // a time that is not above 0.
  explicit DefaultStepCost(const std::string& path = shipped_file());

  double target_ns(const PassLoad& load) const override;
  double draft_ns(const DraftLoad&) const override { return 0.0; }
  double overhead_ns(std::int64_t, const DraftLoad&) const override { return 0.0; }

 private:
  static std::string shipped_file();
  std::vector<std::pair<double, double>> passes_;  // (rows, milliseconds)
};

}  // namespace draftproof
