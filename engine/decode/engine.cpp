#include "engine/decode/engine.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.hpp"

namespace draftproof {
namespace {

SchedulerOptions bounded(SchedulerOptions options, const LanguageModel& target) {
  options.context_len_max =
      static_cast<std::int32_t>(std::min<std::int64_t>(options.context_len_max, target.context_len_max()));
  return options;
}

}  // namespace

std::int32_t output_len_max(const ActiveRequest& request) {
  std::int64_t limit = std::numeric_limits<std::int32_t>::max();
  const DecodingOptions& options = request.options;
  if (options.stop.max_tokens) limit = std::min(limit, *options.stop.max_tokens);
  if (options.stop.max_model_len)
    limit = std::min(limit, *options.stop.max_model_len - static_cast<std::int64_t>(request.sequence.prompt().size()));
  if (options.max_steps) {
    const std::int64_t per_step = request.speculates ? request.plan.draft_len_max() + 1 : 1;
    limit = std::min(limit, std::min(*options.max_steps, limit) * per_step);
  }
  return static_cast<std::int32_t>(limit);
}

Engine::Engine(LanguageModel& target, Drafter* drafter, StepSampler& sampler, EngineOptions options)
    : target_(target),
      drafter_(drafter),
      share_prefixes_(options.share_prefixes),
      scheduler_(bounded(options.scheduler, target), std::move(options.policy)),
      backend_(target, drafter, sampler, options.scheduler.num_blocks, options.scheduler.num_swap_blocks,
               scheduler_.policy()) {
  if (by_confidence() && drafter != nullptr && !drafter->has_confidences())
    throw usage_error("speculation policy " + text_of(scheduler_.policy().choice()),
                      "the drafter gives no confidences; expected one with a confidence head, or another policy");
}

std::uint64_t Engine::submit(std::span<const Token> prompt, const DecodingOptions& options, bool speculates,
                             const std::string& where, bool goes_on) {
  auto request =
      std::make_unique<ActiveRequest>(next_request_, target_, prompt, options, speculates && drafter_ != nullptr);
  if (by_confidence() && request->speculates && !request->plan.is_chain())
    throw usage_error(where, "it drafts a tree or several paths; expected a chain with speculation policy confidence");
  if (!request->may_go_on()) {
    request->generation.finish_reason = request->stop.finish_reason();
    ended_.emplace(next_request_, std::move(request->generation));
    return next_request_++;
  }
  Submitted submitted;
  RequestSpec spec;
  // Rows of the prompt are asked for: none of it may come out of the cache.
  for (std::size_t s = 0; s < request->streams.size() && share_prefixes_ && !request->needs_prompt_rows(); ++s)
    submitted.keys[s] = keys_.keys_of(request->streams[s]);
  spec.prompt_len = static_cast<std::int32_t>(request->streams[0].size());
  if (request->sequence.guided()) spec.companion_prompt_len = static_cast<std::int32_t>(request->streams[1].size());
  spec.output_len_max = output_len_max(*request);
  spec.block_keys = submitted.keys[0];
  spec.companion_block_keys = submitted.keys[1];
  if (goes_on && share_prefixes_ && !request->sequence.guided() && !request->needs_prompt_rows()) {
    const std::span<const Token> tokens = request->stream(0);
    spec.tail_key = keys_.tail_key(submitted.keys[0], tokens.first(tokens.size() - 1));
    spec.left_tail_key = keys_.tail_key(submitted.keys[0], tokens);
  }
  spec.num_drafts_max = request->plan.num_paths * request->plan.shape.size();
  spec.draft_trees = request->speculates && !request->plan.is_chain();
  spec.drafts_looked_up = request->speculates && drafter_->looks_up();
  spec.drafts_shape_tokens = request->speculates && !promises_equal_tokens(request->options);
  submitted.handle = scheduler_.add(spec, where);
  backend_.add(submitted.handle, std::move(request));
  active_.emplace(next_request_, std::move(submitted));
  return next_request_++;
}

bool Engine::cancel(std::uint64_t request) {
  const auto found = active_.find(request);
  if (found == active_.end() || !scheduler_.cancel(found->second.handle)) return false;
  backend_.request(found->second.handle).generation.finish_reason = FinishReason::abort;
  collect_finished();
  return true;
}

void Engine::collect_finished() {
  for (const RequestHandle handle : scheduler_.finished()) {
    if (!backend_.has(handle)) continue;  // collected already
    const std::unique_ptr<ActiveRequest> request = backend_.remove(handle);
    ended_.emplace(request->id, std::move(request->generation));
    active_.erase(request->id);
  }
}

// Full blocks of outputs can be shared too: a conversation's next prompt begins with them.
void Engine::share_new_blocks() {
  constexpr auto kSlots = static_cast<std::size_t>(kKvBlockSlots);
  for (auto& [id, submitted] : active_) {
    const ActiveRequest& request = backend_.request(submitted.handle);
    if (request.needs_prompt_rows()) continue;
    for (std::size_t s = 0; s < request.streams.size(); ++s) {
      std::vector<std::uint64_t>& keys = submitted.keys[s];
      const std::size_t known = keys.size();
      while ((keys.size() + 1) * kSlots <= request.streams[s].size())
        keys.push_back(keys_.key_after(keys.empty() ? 0 : keys.back(),
                                       std::span(request.streams[s]).subspan(keys.size() * kSlots, kSlots)));
      if (keys.size() > known)
        scheduler_.append_block_keys(submitted.handle, static_cast<std::int32_t>(s), std::span(keys).subspan(known));
    }
  }
}

bool Engine::step() {
  const StepPlan& plan = scheduler_.plan();
  if (plan.empty()) return false;
  backend_.run(plan, outcome_);
  if (on_step_) on_step_(plan, outcome_);
  backend_.move(scheduler_.commit(outcome_));
  collect_finished();
  if (share_prefixes_) share_new_blocks();
  return true;
}

std::optional<Generation> Engine::take(std::uint64_t request) {
  const auto found = ended_.find(request);
  if (found == ended_.end()) return std::nullopt;
  std::optional<Generation> generation = std::move(found->second);
  ended_.erase(found);
  return generation;
}

}  // namespace draftproof
