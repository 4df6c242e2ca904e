// A cost model of a few constants, as published fits have them and as one can calculate with.
//
//   pass    fixed_ns + row_ns rows + kv_token_ns cached tokens
//   drafts  passes (draft_pass_ns + draft_kv_token_ns cached tokens) + draft_row_ns rows over all passes
//   engine  engine_ns a step, speculation_ns more of one that drafts
#pragma once

#include "sim/cost/cost_model.hpp"

namespace draftproof {

struct LinearCost final : CostModel {
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

// The published fit of an 8B model on an H100 (vLLM): verify 5.886 ms + 21.0 us a row + 39.3 ns a cached token; EAGLE's
// draft 2.135 ms + 0.84 us a row + 2.4 ns a cached token; 1.2 ms a step.
inline LinearCost published_cost_8b_h100() {
  LinearCost cost;
  cost.fixed_ns = 5.886e6;
  cost.row_ns = 21.0e3;
  cost.kv_token_ns = 39.3;
  cost.draft_pass_ns = 2.135e6;
  cost.draft_row_ns = 0.84e3;
  cost.draft_kv_token_ns = 2.4;
  cost.engine_ns = 1.2e6;
  return cost;
}

}  // namespace draftproof
