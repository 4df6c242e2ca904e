#include "engine/decode/paired_run.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace draftproof {
namespace {

constexpr std::int64_t kWarmUpTokens = 2;  // a pass over the prompt, and one of a single row

constexpr std::array kParts{&StepTimes::steps,     &StepTimes::prompt_tokens, &StepTimes::tokens,
                            &StepTimes::rows,      &StepTimes::drafts,        &StepTimes::wall_ns,
                            &StepTimes::engine_ns, &StepTimes::draft_ns,      &StepTimes::verify_ns,
                            &StepTimes::sample_ns, &StepTimes::mask_ns};

template <class Action>
std::int64_t ns_of(Action action) {
  const auto begin = std::chrono::steady_clock::now();
  action();
  return std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
}

std::int64_t blocks_for_job(const DecodeJob& job, std::int64_t context_len_max) {
  const DecodingOptions& decoding = job.decoding;
  const bool guided = decoding.parameters.guidance_scale != 1.0f;
  std::size_t prompt_len = job.prompt.size();
  if (guided) prompt_len = std::max(prompt_len, decoding.unconditional_prompt.size());
  const std::int64_t output_len_max = decoding.stop.max_tokens.value_or(context_len_max);
  const std::int64_t longest =
      std::min(static_cast<std::int64_t>(prompt_len) + 1 + output_len_max, context_len_max) + kDraftNodesMax;
  return (longest / kKvBlockSlots + 2) * (guided ? 2 : 1);
}

DecodedJobs decode(LanguageModel& target, Drafter* drafter, std::span<const DecodeJob> jobs, EngineOptions options,
                   const OnVerified& on_verified) {
  DecodeRun run(target, drafter, std::move(options));
  run.on_verified(on_verified);
  for (const DecodeJob& job : jobs) run.submit(job);
  return run.run();
}

}  // namespace

EngineOptions engine_options(std::span<const DecodeJob> jobs, const DecodeRoom& room, const LanguageModel& target,
                             SpeculationPolicy policy) {
  const std::int64_t context_len_max = std::min(room.context_len_max, target.context_len_max());
  std::vector<std::int64_t> blocks;
  for (const DecodeJob& job : jobs) blocks.push_back(blocks_for_job(job, context_len_max));
  std::ranges::sort(blocks, std::greater());
  std::int64_t num_blocks = 0;
  for (std::size_t i = 0; i < std::min(blocks.size(), static_cast<std::size_t>(room.batch)); ++i)
    num_blocks += blocks[i];

  EngineOptions options;
  options.policy = std::move(policy);
  options.share_prefixes = room.share_prefixes;
  options.scheduler.num_blocks =
      static_cast<std::int32_t>(room.num_blocks.value_or(std::max<std::int64_t>(num_blocks, 1)));
  options.scheduler.context_len_max = static_cast<std::int32_t>(context_len_max);
  options.scheduler.running_max = static_cast<std::int32_t>(room.batch);
  options.scheduler.token_budget = static_cast<std::int32_t>(room.token_budget);
  return options;
}

SpeculationChoice whole_drafts(const DecodingOptions& decoding, const std::string& where, SpeculationRule rule) {
  const DraftPlan plan = plan_for(decoding.verify.verifier, decoding.tree, decoding.num_speculative_tokens, where);
  SpeculationChoice choice;
  choice.rule = rule;
  choice.num_drafts = plan.num_paths * plan.shape.size();
  return choice;
}

StepTimes& StepTimes::operator+=(const StepTimes& other) {
  for (const auto part : kParts) this->*part += other.*part;
  return *this;
}

void DecodeRun::ObservedSampler::verify(const TargetRows& rows, const DecodingOptions& options, std::int64_t vocab_size,
                                        const Sequence& sequence, SpeculativeStep& step) {
  SourceSampler::verify(rows, options, vocab_size, sequence, step);
  if (on_verified) observer_ns += ns_of([&] { on_verified(step, rows); });
}

DecodeRun::DecodeRun(LanguageModel& target, Drafter* drafter, EngineOptions options)
    : drafts_(drafter != nullptr), engine_(target, drafter, sampler_, std::move(options)) {}

StepTimes DecodeRun::all_steps() const {
  const EngineMetrics& metrics = engine_.scheduler().metrics();
  const std::int64_t observer_ns = sampler_.observer_ns;
  return {.steps = metrics.steps,
          .prompt_tokens = metrics.prompt_tokens,
          .tokens = metrics.generation_tokens(),
          .rows = metrics.sequence_steps + metrics.acceptance.draft_tokens,
          .drafts = metrics.acceptance.draft_tokens,
          .wall_ns = wall_ns_ - observer_ns,
          .engine_ns = metrics.busy_ns - observer_ns,
          .draft_ns = drafts_ ? metrics.draft_ns : 0,
          .verify_ns = metrics.verify_ns,
          .sample_ns = metrics.sample_ns - observer_ns,
          .mask_ns = metrics.mask_ns};
}

std::optional<StepTimes> DecodeRun::step() {
  const StepTimes before = all_steps();
  bool stepped = false;
  wall_ns_ += ns_of([&] { stepped = engine_.step(); });
  if (!stepped) return std::nullopt;
  StepTimes step = all_steps();
  for (const auto part : kParts) step.*part -= before.*part;
  (step.prompt_tokens > 0 ? decoded_.prompt_steps : decoded_.other_steps) += step;
  return step;
}

DecodedJobs DecodeRun::run() {
  while (step()) {
  }
  while (std::optional<Generation> generation = engine_.take(decoded_.generations.size())) {
    if (generation->failure) std::rethrow_exception(generation->failure);
    decoded_.generations.push_back(std::move(*generation));
  }
  return std::move(decoded_);
}

double DecodedJobs::tokens_per_second() const {
  const auto tokens = static_cast<double>(prompt_steps.tokens + other_steps.tokens);
  return wall_ms() > 0.0 ? 1e3 * tokens / wall_ms() : 0.0;
}

PairedRun run_pair(LanguageModel& target, Drafter* drafter, std::span<const DecodeJob> jobs, const DecodeRoom& room,
                   const SpeculationPolicy& policy, PairOrder order, const OnVerified& on_verified) {
  PairedRun pair;
  const auto run_plainly = [&] {
    pair.plain = decode(target, nullptr, jobs, engine_options(jobs, room, target), nullptr);
  };
  if (order == PairOrder::plain_first) run_plainly();
  pair.speculative = decode(target, drafter, jobs, engine_options(jobs, room, target, policy), on_verified);
  if (order == PairOrder::speculative_first) run_plainly();
  return pair;
}

void warm_up(LanguageModel& target, DecodeJob job) {
  job.decoding.stop.max_tokens = kWarmUpTokens;
  const std::span<const DecodeJob> jobs(&job, 1);
  decode(target, nullptr, jobs, engine_options(jobs, {}, target), nullptr);
}

std::optional<std::size_t> first_difference(std::span<const Token> plain, std::span<const Token> speculative) {
  const auto at = static_cast<std::size_t>(std::ranges::mismatch(plain, speculative).in1 - plain.begin());
  if (at == plain.size() && at == speculative.size()) return std::nullopt;
  return at;
}

}  // namespace draftproof
