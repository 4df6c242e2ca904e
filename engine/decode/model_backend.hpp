// The scheduler's backend of language models: drafts, one forward pass of the target over all requests of the step, and
// each request's tokens drawn or verified from its rows.
//
// A request suffers for no other: what a draft or a row of its own makes impossible ends it alone.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/decode/generation.hpp"
#include "engine/decode/step_sampler.hpp"
#include "engine/model/gathered_batch.hpp"
#include "engine/scheduler/draft_selection.hpp"
#include "engine/scheduler/speculation_policy.hpp"
#include "engine/scheduler/step_plan.hpp"

namespace draftproof {

// A request with its tokens and its state.
struct ActiveRequest {
  // Errors: those of validate(DecodingOptions) and StopConditions. options.stop.max_model_len may be lowered to what
  // the model takes.
  ActiveRequest(std::uint64_t id, const LanguageModel& target, std::span<const Token> prompt, DecodingOptions options,
                bool speculates);

  // Tokens of stream 0 or, 1, of the companion: the model's start token where it has one, prompt and output.
  std::span<const Token> stream(std::int32_t index) const { return streams[static_cast<std::size_t>(index)]; }
  // Are rows before tokens of the prompt asked for that were not computed yet?
  bool needs_prompt_rows() const {
    return options.num_prompt_logprobs && generation.prompt_logprobs.size() < sequence.prompt().size();
  }
  bool may_go_on() const {
    return !stop.finished() && (!options.max_steps || generation.target_steps < *options.max_steps);
  }

  std::uint64_t id;
  DecodingOptions options;
  std::span<const std::uint32_t> own_mask;  // of the options' constraints
  bool speculates;
  Sequence sequence;
  std::vector<std::vector<Token>> streams;
  StopConditions stop;
  std::unique_ptr<GrammarState> grammar;  // behind the output; null: none
  std::optional<History> history;         // for plain decoding, where the parameters look at it
  DraftPlan plan;                         // the whole shape
  SpeculativeStep step;                   // the one under way
  LookedUpDraft offered;                  // its draft before the selection
  Generation generation;
};

// Tokens that a request received, and the text that became final with them.
using OnTokens = std::function<void(const ActiveRequest& request, std::size_t num_tokens, const std::string& text)>;

class ModelBackend final : public Backend {
 public:
  // All must outlive the object; drafter may be null. The cache gets num_blocks blocks, and behind them the blocks of
  // the swap space. policy: under the rules likely and confidence, which nodes of drafts are kept; else all are.
  ModelBackend(LanguageModel& target, Drafter* drafter, StepSampler& sampler, std::int32_t num_blocks,
               std::int32_t num_swap_blocks, const SpeculationPolicy& policy);

  void run(const StepPlan& plan, StepOutcome& outcome) override;
  void move(std::span<const SlotMove> moves) override;

  // Requests by their handle, while the scheduler has them.
  void add(RequestHandle handle, std::unique_ptr<ActiveRequest> request);
  bool has(RequestHandle handle) const { return requests_[static_cast<std::size_t>(handle)] != nullptr; }
  ActiveRequest& request(RequestHandle handle) { return *requests_[static_cast<std::size_t>(handle)]; }
  const ActiveRequest& request(RequestHandle handle) const { return *requests_[static_cast<std::size_t>(handle)]; }
  std::int32_t num_handles() const { return static_cast<std::int32_t>(requests_.size()); }  // that were ever used
  std::unique_ptr<ActiveRequest> remove(RequestHandle handle);

  const KvCache& cache() const { return *cache_; }
  OnTokens on_tokens;

 private:
  // Of the blocks behind `from` and `to`.
  void copy_blocks(std::span<const BlockCopy> copies, std::int64_t from, std::int64_t to);
  void propose(const StepPlan& plan);
  void select_drafts(const StepPlan& plan);
  void keep_confident(const StepPlan& plan);
  void fill_grammar_masks(ActiveRequest& request) const;
  std::size_t follow_grammar(ActiveRequest& request, std::span<const Token> tokens) const;
  void gather(const PlannedRequest& planned, const ActiveRequest& request);
  TargetRows rows_of(std::size_t index, const ActiveRequest& request) const;
  std::vector<TokenLogprob> logprobs_after(std::size_t wanted, std::int64_t n, Token token,
                                           const DecodingOptions& options) const;
  void emit(std::size_t index, ActiveRequest& request, StepOutcome& outcome);
  void show_features(const StepPlan& plan);
  std::int64_t now() const;

  LanguageModel& target_;
  Drafter* drafter_;
  StepSampler& sampler_;
  const SpeculationPolicy& policy_;
  std::int32_t num_blocks_;
  std::unique_ptr<KvCache> cache_;
  std::unique_ptr<DraftCache> draft_cache_;
  std::optional<DraftSelection> selection_;
  std::vector<std::unique_ptr<ActiveRequest>> requests_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();

  // The batch under way.
  struct Place {  // of a stream of a planned request
    std::size_t first_token;
    std::size_t first_prompt;  // wanted rows before tokens of the prompt, up to first_wanted
    std::size_t first_wanted;
  };
  GatheredBatch batch_;
  std::vector<std::array<Place, kStreamsMax>> places_;  // by index in the plan
  std::vector<std::exception_ptr> failures_;            // by index in the plan
  ForwardOutput output_;
};

}  // namespace draftproof
