// Costs of the parts of a step on some hardware, engine, target and drafter: the clock of the simulator, and what
// `predict` compares. Behind it stand a roofline, a table of measured step times, or constants; see their files.
#pragma once

#include <cstdint>

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
};

// Times are nanoseconds, positive and finite for every load.
class CostModel {
 public:
  virtual ~CostModel() = default;
  virtual double target_ns(const PassLoad& load) const = 0;
  virtual double draft_ns(const DraftLoad& load) const = 0;
  // Time of the engine itself in a step of `requests` requests, beside the passes: scheduling, sampling, verification
  // of drafts where there are any.
  virtual double overhead_ns(std::int64_t requests, const DraftLoad& load) const = 0;
};

}  // namespace draftproof
