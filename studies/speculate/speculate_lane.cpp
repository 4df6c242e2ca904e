#include "studies/speculate/speculate_lane.hpp"

#include <cmath>

#include "base/printable.hpp"
#include "reference/step/step_rows.hpp"
#include "studies/token_label.hpp"

namespace draftproof {
namespace {

constexpr std::uint64_t kShownOutput = 0;

std::int32_t rows_of(const StepPlan& plan, const StepOutcome& outcome) {
  std::int32_t rows = 0;
  for (std::size_t i = 0; i < plan.requests.size(); ++i) {
    const PlannedRequest& request = plan.requests[i];
    for (std::int32_t s = 0; s < request.num_streams; ++s)
      rows += request.streams[static_cast<std::size_t>(s)].num_tokens + outcome.sequences[i].num_drafted;
  }
  return rows;
}

EngineOptions options_of(std::span<const DecodeJob> jobs, const TextModel& model, const SpeculationPolicy& policy) {
  DecodeRoom room;
  room.batch = static_cast<std::int64_t>(jobs.size());
  room.share_prefixes = true;
  return engine_options(jobs, room, *model.model, policy);
}

}  // namespace

SpeculateLaneRun::SpeculateLaneRun(std::span<const DecodeJob> jobs, const SpeculationPolicy& policy, TextModel& model,
                                   Drafter* drafter)
    : model_(model), run_(*model.model, drafter, options_of(jobs, model, policy)) {
  for (const DecodeJob& job : jobs) run_.submit(job);
  lane_.num_prompt_tokens = static_cast<std::int64_t>(jobs.front().prompt.size());
  run_.on_verified([this](const SpeculativeStep&, const TargetRows& rows) { verified_ = rows; });
  run_.engine().on_tokens([this](const ActiveRequest& active, std::size_t num_tokens, const std::string&) {
    if (active.id != kShownOutput) return;
    emitted_ = &active;
    num_emitted_ = num_tokens;
    rows_ = verified_;
  });
  run_.engine().on_step([this](const StepPlan& plan, const StepOutcome& outcome) { record(plan, outcome); });
}

void SpeculateLaneRun::step() {
  emitted_ = nullptr;
  if (const auto times = run_.step()) {
    step_->begin_ns = lane_.time_ns();
    step_->draft_ns = times->draft_ns;
    (times->prompt_tokens > 0 ? step_->prefill_ns : step_->verify_ns) = times->verify_ns;
    step_->sample_ns = times->sample_ns;
    step_->end_ns = step_->begin_ns + times->engine_ns;
    const EngineMetrics& metrics = run_.engine().scheduler().metrics();
    step_->acceptance = metrics.acceptance;
    step_->acceptance_rate_p50 = metrics.acceptance_rate_p50();
    step_->overhead_ratio = metrics.overhead_ratio();
    step_->effective_speedup = metrics.effective_speedup();
    step_->tokens_per_row = metrics.tokens_per_row();
    step_->tokens = step_->acceptance.received_tokens;
    lane_.steps.push_back(std::move(step_));
  }
  lane_.ended = run_.ended();
  if (lane_.ended && lane_.outputs.empty()) lane_.outputs = run_.run().generations;
}

void SpeculateLaneRun::record(const StepPlan& plan, const StepOutcome& outcome) {
  step_ = std::make_shared<SpeculateStep>();
  step_->num_rows = rows_of(plan, outcome);
  if (emitted_ == nullptr) return;
  const Generation& generation = emitted_->generation;
  for (std::size_t i = generation.tokens.size() - num_emitted_; i < generation.tokens.size(); ++i)
    step_->emitted.push_back(
        {generation.tokens[i], generation.origins[i], token_label(*model_.tokenizer, generation.tokens[i])});
  if (emitted_->speculates) record_draft(*step_);
}

// The probabilities that the verifier saw, or would have seen: it need not have looked at every row.
void SpeculateLaneRun::record_draft(SpeculateStep& record) {
  const SpeculativeStep& step = emitted_->step;
  const Sequence& sequence = emitted_->sequence;
  const VerifyRequest request =
      request_of(step, rows_, emitted_->options, model_.model->vocab_size(), sequence.prompt(), sequence.output());
  StepRows rows(request, emitted_->options.verify, workspace_);
  const DraftTree& tree = step.draft.tree;
  std::vector<std::int32_t> depths;
  for (std::int32_t node = 0; node < tree.size(); ++node) {
    const auto index = static_cast<std::size_t>(node);
    ShownNode shown;
    shown.token = tree.tokens[index];
    shown.parent = tree.parents[index];
    shown.depth = shown.parent == kRootNode ? 1 : depths[static_cast<std::size_t>(shown.parent)] + 1;
    depths.push_back(shown.depth);
    shown.text = token_label(*model_.tokenizer, shown.token);
    const std::uint32_t row = DraftTree::row_after(shown.parent);
    shown.target_probability = rows.target(row).probability(shown.token);
    shown.model_probability = std::exp(workspace_.target_pipeline.raw_log_probability(shown.token));
    // Against a greedy target every proposal is as good as a one-hot one; shown is what the token was drawn with.
    shown.has_draft_probability = request.proposal_kind == ProposalKind::logits;
    if (shown.has_draft_probability) {
      process_proposal_row(request, row, request.draft_parameters, workspace_.draft_pipeline, workspace_.proposal);
      shown.draft_probability = workspace_.proposal.probability(shown.token);
    }
    record.draft.push_back(std::move(shown));
  }
  record.path = step.emission.path;
  for (const std::int32_t node : record.path) record.draft[static_cast<std::size_t>(node)].accepted = true;
  const std::int32_t last = record.path.empty() ? kRootNode : record.path.back();
  record.last_probability = rows.target(DraftTree::row_after(last)).probability(step.emission.tokens.back());
}

std::vector<TextPiece> SpeculateLaneRun::text() const {
  std::string bytes;
  std::vector<std::pair<TokenOrigin, std::int32_t>> sources;  // of every byte: how it came about, and its step
  for (std::size_t step = 0; step < lane_.steps.size(); ++step)
    for (const ShownToken& token : lane_.steps[step]->emitted) {
      bytes += model_.tokenizer->bytes_of(token.token);
      sources.resize(bytes.size(), {token.origin, static_cast<std::int32_t>(step)});
    }
  std::vector<TextPiece> pieces;
  for (const PrintableCharacter& character : printable_characters(bytes)) {
    const auto& [origin, step] = sources[character.first_byte];
    if (pieces.empty() || pieces.back().origin != origin || pieces.back().step != step)
      pieces.push_back({"", origin, step});
    pieces.back().text += character.text;
  }
  return pieces;
}

SpeculateLane SpeculateLaneRun::lane() const {
  SpeculateLane lane = lane_;
  lane.text = text();
  return lane;
}

}  // namespace draftproof
