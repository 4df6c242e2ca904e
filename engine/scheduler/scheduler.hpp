// Which requests compute what in the next step: continuous batching over a paged KV cache, in whole numbers. It knows
// nothing of tokens, so that the engine and the simulator run the same one.
//
// One rule and no phases. A stream has prompt + output tokens, of which `computed` have their KV:
//
//   num_new = tokens + drafts - computed
//
// requests take what they need of the step's token budget in the order of their arrival; who needs more than is left
// gets a chunk. A stream of which one token is missing decodes. plan() advances `computed` as if all drafts were
// accepted; commit() takes the rejected ones back, and the blocks that lie behind.
//
//   running   in order of arrival, all before any that waits. Where blocks are missing the youngest is preempted: its
//             KV is dropped and computed again later, or swapped out
//   waiting   preempted requests, then those that have not run, each in order of arrival; only the first is admitted
//   drafts    are worth no preemption: they get the blocks that are left
//
// So the oldest request advances in every step, and nobody starves. The two-phase policy, for comparison, runs steps of
// one kind: prompts first, up to prefill_steps_max in a row, then requests without drafts and requests with drafts in
// turns.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/metrics/metrics.hpp"
#include "engine/scheduler/kv_blocks.hpp"
#include "engine/scheduler/speculation_policy.hpp"
#include "engine/scheduler/step_plan.hpp"

namespace draftproof {

enum class StepPolicy : std::uint8_t { one_rule, two_phase };
enum class Preemption : std::uint8_t { recompute, swap };

struct SchedulerOptions {
  std::int32_t num_blocks = 1024;       // of kKvBlockSlots slots
  std::int32_t context_len_max = 4096;  // prompt and output of a stream
  std::int32_t token_budget = 2048;     // rows of the target in one step, drafts and companions included
  std::int32_t running_max = 256;       // requests
  std::int64_t waiting_max = std::numeric_limits<std::int64_t>::max();
  bool chunked_prefill = true;                                                // else a prompt is computed in one step
  std::int32_t prefill_chunk_max = std::numeric_limits<std::int32_t>::max();  // of one request in one step
  bool drafts_with_prefill = true;  // the step that computes the end of the prompt may draft
  StepPolicy policy = StepPolicy::one_rule;
  std::int32_t prefill_steps_max = 16;  // two phases: in a row, while others decode
  Preemption preemption = Preemption::recompute;
  std::int32_t num_swap_blocks = 0;
  std::int32_t admission_reserve_blocks = 0;  // stay free when a request is admitted beside others
  ServiceLevel service_level;
};

struct RequestSpec {
  std::int32_t prompt_len = 0;
  std::optional<std::int32_t> companion_prompt_len;  // of the unconditional companion
  std::int32_t output_len_max = 0;
  std::int64_t arrival_ns = 0;
  // Keys of the full blocks of the prompt, in order (see kv_blocks.hpp); fewer, or none: those are not shared.
  std::span<const std::uint64_t> block_keys;
  std::span<const std::uint64_t> companion_block_keys;
  // Of one request that goes on where another ended: the key of the prompt's tail behind its full blocks, without the
  // last token, to be found; of the whole tail, to be left. 0: none. Not of guided requests.
  std::uint64_t tail_key = 0;
  std::uint64_t left_tail_key = 0;
  std::int32_t num_drafts_max = std::numeric_limits<std::int32_t>::max();  // nodes; 0: it does not speculate
  bool draft_trees = false;                                                // a draft may have more nodes than its depth
  bool drafts_shape_tokens = false;  // its tokens depend on its drafts: rule auto must not look at times
  bool drafts_looked_up = false;     // they come with evidence (NodeEvidence)
};

enum class RequestState : std::uint8_t { vacant, waiting, swapped, running, finished };

struct StreamProgress {
  std::int32_t prompt_len = 0;
  std::int32_t computed = 0;   // positions 0 .. computed - 1 have their KV; between plan() and commit() optimistic
  std::int32_t published = 0;  // full blocks that were offered to others
  std::int32_t seen = 0;       // computed before a preemption
  BlockTable table;
  std::vector<std::uint64_t> keys;
  std::vector<std::int32_t> swapped;  // blocks of the swap space, as table.blocks were
};

struct RequestProgress {
  RequestState state = RequestState::vacant;
  RequestEnd end = RequestEnd::none;
  bool draft_trees = false;
  bool planned = false;  // in the plan that is being run
  bool cancelled = false;
  std::int32_t num_streams = 1;
  std::array<StreamProgress, kStreamsMax> streams;
  std::int32_t output_len = 0;
  std::int32_t output_len_max = 0;
  std::int32_t num_drafts_max = 0;
  std::int32_t planned_drafts = 0;
  std::int64_t arrival = 0;     // its number in the order of add()
  std::int64_t last_step = -1;  // the last plan it was in, or was admitted to
  std::uint64_t tail_key = 0, left_tail_key = 0;
  SpeculationState speculation;
  RequestHandle before = -1;  // in the list of those that wait
  RequestHandle after = -1;

  // For reports. Times are -1 until they come.
  std::int64_t arrival_ns = 0;
  std::int64_t begin_ns = -1;
  std::int64_t first_token_ns = -1;
  std::int64_t last_token_ns = -1;
  std::int32_t steps = 0;  // that emitted
  std::int32_t drafts = 0;
  std::int32_t draft_tokens = 0;
  std::int32_t accepted_tokens = 0;
  std::int32_t preemptions = 0;

  std::int32_t tokens(std::int32_t stream) const { return streams[stream].prompt_len + output_len; }
  // Committed tokens without KV.
  std::int32_t missing(std::int32_t stream) const { return tokens(stream) - streams[stream].computed; }
  bool decodes() const { return missing(0) == 1 && (num_streams == 1 || missing(1) == 1); }
};

class Scheduler {
 public:
  // Errors (usage): an option that is out of range.
  explicit Scheduler(const SchedulerOptions& options, SpeculationPolicy policy = SpeculationPolicy());

  // Appends a request to those that wait. Its output ends at output_len_max, or where the context does. Errors (input)
  // at `where`, after which everything is as before: an empty prompt, one that leaves no room for a token in the
  // context, a request that the whole cache or token budget is too small for, too many keys, a queue that is full.
  RequestHandle add(const RequestSpec& spec, std::string_view where = "request");
  // Ends a request; one that is in the plan being run ends with its commit(), without a token. False: it had ended.
  bool cancel(RequestHandle request);
  // Keys of the next blocks of a stream, when its output fills them. Errors (input): more keys than full blocks.
  void append_block_keys(RequestHandle request, std::int32_t stream, std::span<const std::uint64_t> keys);

  // The next step. Empty when nothing is left to do: then there is nothing to commit. Errors (internal): the step
  // before has not been committed.
  const StepPlan& plan();
  // Takes the outcome of the plan. Returns the KV entries that move, for the backend to do before the next step. Errors
  // (internal), after which everything is as before: an outcome that is not one of this plan.
  std::span<const SlotMove> commit(const StepOutcome& outcome);

  // Requests that ended since the last plan(). Their handles and progress are valid until the next plan(), which
  // gives the handles to others.
  std::span<const RequestHandle> finished() const { return finished_; }
  const RequestProgress& progress(RequestHandle request) const { return requests_[request]; }
  bool idle() const { return running_.empty() && first_waiting_ < 0; }

  const SchedulerOptions& options() const { return options_; }
  const KvBlockPool& blocks() const { return blocks_; }
  const SpeculationPolicy& policy() const { return policy_; }
  const EngineMetrics& metrics() const { return metrics_; }

 private:
  friend struct SchedulerInspection;  // invariants, and the faults that tests plant

  enum class Fit : std::uint8_t { planned, no_tokens, no_blocks };

  void check(const RequestSpec& spec, std::string_view where) const;
  void check(const StepOutcome& outcome) const;

  void prepare_policy();
  void plan_running();
  void plan_waiting();
  void plan_two_phases();
  bool belongs_to_phase(const RequestProgress& request) const;
  std::int32_t wanted_drafts(const RequestProgress& request) const;
  // Gives the request its part of the step, `reserve` blocks staying free.
  Fit plan_request(RequestHandle handle, std::int32_t reserve);
  bool admit_waiting(RequestHandle handle, std::int32_t reserve);
  bool admit_swapped(RequestHandle handle, std::int32_t reserve);
  void preempt_youngest();

  void commit_request(const PlannedRequest& planned, const SequenceOutcome& outcome, const StepOutcome& step);
  void commit_stream(RequestProgress& request, std::int32_t stream, const SequenceOutcome& outcome,
                     std::span<const std::int32_t> path, std::int32_t kept);
  void count_computed(const RequestProgress& request, const PlannedRequest& planned);
  void count_times(RequestProgress& request, const SequenceOutcome& outcome, const StepOutcome& step);
  void count_end(const RequestProgress& request);

  void release_blocks(RequestProgress& request);
  void finish(RequestHandle handle, RequestEnd end);  // leaves it in running_
  void link_waiting(RequestHandle handle, bool first);
  void unlink_waiting(RequestHandle handle);

  SchedulerOptions options_;
  SpeculationPolicy policy_;
  KvBlockPool blocks_;
  KvBlockPool swap_blocks_;
  std::vector<RequestProgress> requests_;  // by handle
  std::vector<RequestHandle> vacant_;
  std::vector<RequestHandle> running_;
  std::vector<RequestHandle> finished_;
  RequestHandle first_waiting_ = -1;
  RequestHandle last_waiting_ = -1;
  std::int64_t arrivals_ = 0;
  StepPlan plan_;
  bool outstanding_ = false;
  std::int32_t tokens_left_ = 0;  // of the budget of the step being planned
  bool preempted_ = false;        // in the step being planned
  // Two phases: steps of prompts in a row, and the kind of the last other step.
  std::int32_t prefill_steps_ = 0;
  StepPhase last_decode_phase_ = StepPhase::normal;
  std::vector<SlotMove> moves_;
  EngineMetrics metrics_;
};

}  // namespace draftproof
