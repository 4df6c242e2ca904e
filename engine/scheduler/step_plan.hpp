// Plan and outcome of one step of the engine. The scheduler makes the plan, a backend runs it.
//
// A request has one stream of tokens, or two under classifier-free guidance: its own and the unconditional companion's,
// with prompts of their own and one output. Both are in a plan together, and their last rows fall into the same step.
//
// A backend computes for every stream the committed tokens at positions context.length .. + num_tokens - 1 and writes
// the KV of position p to slot context.slot(p). Where sample is true these reach the last committed token; then it
// drafts at most num_drafts_max nodes, computes them too, in each stream, and verifies. Node i goes to the slot of
// position end() + i, whatever its depth. It may draft fewer, or none.
//
// A draft model with a cache of its own uses the same blocks and slots in that cache. Of a stream it has computed d
// tokens; min(d, context.length) of them are still those of the request: that is all it needs after rejections,
// preemption and restarts.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/language_model.hpp"
#include "reference/verify/kv_slots.hpp"

namespace draftproof {

using RequestHandle = std::int32_t;  // from Scheduler::add()
inline constexpr std::int32_t kStreamsMax = 2;

// Kind of the requests of a step. `mixed` under the one rule; the others under the two-phase policy. Drafting and
// verifying are the two halves of a speculative step.
enum class StepPhase : std::uint8_t { mixed, prefill, normal, speculative };

struct PlannedStream {
  StreamContext context;        // the blocks of all positions up to the last draft's; length: computed before the step
  std::int32_t num_tokens = 0;  // committed tokens to compute

  std::int64_t end() const { return context.length + num_tokens; }
  std::int64_t draft_slot(std::int32_t node) const { return context.slot(end() + node); }
};

struct PlannedRequest {
  RequestHandle request = -1;
  std::int32_t num_streams = 1;
  std::array<PlannedStream, kStreamsMax> streams;
  bool sample = false;               // the step reaches the last committed token of every stream, and emits
  std::int32_t num_drafts_max = 0;   // nodes; 0 where sample is false
  std::int32_t draft_depth_max = 0;  // so that what is accepted and the token after it still fit into the output
};

struct BlockCopy {
  std::int32_t from;
  std::int32_t to;
};

// Valid until the scheduler is called again.
struct StepPlan {
  std::int64_t step = 0;
  StepPhase phase = StepPhase::mixed;
  std::vector<PlannedRequest> requests;
  // To be done before anything is computed. Blocks of the swap space are numbered from 0, like those of the cache.
  std::vector<BlockCopy> swap_out;      // from the cache to the swap space
  std::vector<BlockCopy> swap_in;       // from the swap space to the cache; never both in one step
  std::vector<BlockCopy> copies;        // within the cache, of blocks that are written by several requests
  std::int64_t num_tokens = 0;          // committed tokens to compute, over all streams
  std::int64_t num_draft_rows_max = 0;  // nodes, over all streams

  bool empty() const { return requests.empty(); }
};

// How a request of the plan goes on. stop: its stop condition holds after num_emitted tokens. failed: it cannot go on
// (a row that is no distribution, ...); nothing is emitted, and no other request suffers.
enum class SequenceEnd : std::uint8_t { none, stop, failed };

// Outcome of one planned request. All zero where `sample` is false.
struct SequenceOutcome {
  std::int32_t num_drafted = 0;   // nodes, at most num_drafts_max
  std::int32_t num_accepted = 0;  // along one path
  std::int32_t num_emitted = 0;   // num_accepted + 1; fewer only where the request stops among them
  // Where the accepted nodes begin in StepOutcome::paths, num_accepted of them, ascending; negative: nodes 0, 1, ...
  std::int32_t path = -1;
  bool rejected = false;  // there was a draft below the last accepted node
  SequenceEnd end = SequenceEnd::none;
};

struct StepOutcome {
  std::vector<SequenceOutcome> sequences;  // as StepPlan::requests
  std::vector<std::int32_t> paths;
  // Nanoseconds on the backend's clock, which never goes backwards.
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  // Parts of that time.
  std::int64_t draft_ns = 0;
  std::int64_t late_ns = 0;    // of draft_ns, what made up for steps that did not draft
  std::int64_t verify_ns = 0;  // the target's forward pass
  std::int64_t sample_ns = 0;  // rows processed, verification, stop conditions
  std::int64_t mask_ns = 0;    // masks of grammars
};

// The part that computes: models and drafters on a wall clock, or a simulation on its own.

class Backend {
 public:
  virtual ~Backend() = default;
  // Does the swaps of the plan, then drafts, computes and verifies as step_plan.hpp says. `outcome` is the last one and
  // is overwritten whole.
  virtual void run(const StepPlan& plan, StepOutcome& outcome) = 0;
  // Moves KV entries in every layer and stream cache, in this order, before the next run(): the accepted nodes of
  // trees.
  virtual void move(std::span<const SlotMove> moves) = 0;
};

}  // namespace draftproof
