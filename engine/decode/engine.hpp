// The serving engine: requests in, tokens out, many at a time. The scheduler decides what a step computes, the model
// backend computes it.
//
// Guarantee: with a lossless verifier the output of a request follows the distribution of plain decoding; at
// temperature 0, and with coupled verification at any, it is the same tokens, whatever the batch, the drafter, chunks
// and preemptions.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/decode/model_backend.hpp"
#include "engine/scheduler/kv_blocks.hpp"
#include "engine/scheduler/scheduler.hpp"

namespace draftproof {

struct EngineOptions {
  SchedulerOptions scheduler;  // context_len_max is lowered to the model's
  SpeculationPolicy policy;
  bool share_prefixes = true;
};

// Tokens that a request can get at most.
std::int32_t output_len_max(const ActiveRequest& request);

// A step that has been run and is not committed yet: its plan, with what became of it and how long that took. The
// backend's requests and rows are those of the step.
using OnStep = std::function<void(const StepPlan& plan, const StepOutcome& outcome)>;

class Engine {
 public:
  // All must outlive the object; drafter may be null: every request is then decoded plainly. Errors (usage): options
  // out of range, speculation policy confidence with a drafter that gives none.
  Engine(LanguageModel& target, Drafter* drafter, StepSampler& sampler, EngineOptions options);

  // A request by the number that it gets, 0, 1, ... speculates: its drafts are verified; else it is decoded plainly,
  // though a drafter is there. goes_on: where its prompt without the last token is that of such a request before, it
  // shares the last block's KV too, copied on write. Errors at `where` (input, usage), after which everything is as
  // before: options, ids, a prompt that is empty (of a model without a start token) or too long, a cache too small for
  // it.
  std::uint64_t submit(std::span<const Token> prompt, const DecodingOptions& options, bool speculates = true,
                       const std::string& where = "request", bool goes_on = false);
  // False: it had ended.
  bool cancel(std::uint64_t request);

  // One step of all requests. False: nothing was left to do.
  bool step();
  // Until all requests have ended.
  void run() {
    while (step()) {
    }
  }

  // The outcome of a request that has ended, to be taken once; nothing before.
  std::optional<Generation> take(std::uint64_t request);

  void on_tokens(OnTokens callback) { backend_.on_tokens = std::move(callback); }
  void on_step(OnStep callback) { on_step_ = std::move(callback); }
  const Scheduler& scheduler() const { return scheduler_; }
  const ModelBackend& backend() const { return backend_; }

 private:
  void collect_finished();
  void share_new_blocks();
  bool by_confidence() const { return scheduler_.policy().choice().rule == SpeculationRule::confidence; }

  LanguageModel& target_;
  Drafter* drafter_;
  bool share_prefixes_;
  Scheduler scheduler_;
  ModelBackend backend_;
  BlockKeys keys_;
  struct Submitted {
    RequestHandle handle;
    std::array<std::vector<std::uint64_t>, kStreamsMax> keys;
  };
  std::map<std::uint64_t, Submitted> active_;
  std::map<std::uint64_t, Generation> ended_;
  std::uint64_t next_request_ = 0;
  StepOutcome outcome_;
  OnStep on_step_;
};

}  // namespace draftproof
