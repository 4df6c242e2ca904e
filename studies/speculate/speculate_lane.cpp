#include "studies/speculate/speculate_lane.hpp"

#include <cmath>

#include "base/printable.hpp"
#include "reference/step/step_rows.hpp"

namespace draftproof {
namespace {

constexpr std::uint64_t kShownOutput = 0;

bool computes_a_prompt(const StepPlan& plan) {
  for (const PlannedRequest& request : plan.requests)
    for (std::int32_t s = 0; s < request.num_streams; ++s)
      if (request.streams[static_cast<std::size_t>(s)].num_tokens > 1) return true;
  return false;
}

std::int32_t rows_of(const StepPlan& plan, const StepOutcome& outcome) {
  std::int32_t rows = 0;
  for (std::size_t i = 0; i < plan.requests.size(); ++i) {
    const PlannedRequest& request = plan.requests[i];
    for (std::int32_t s = 0; s < request.num_streams; ++s)
      rows += request.streams[static_cast<std::size_t>(s)].num_tokens + outcome.sequences[i].num_drafted;
  }
  return rows;
}

}  // namespace

SpeculateLaneRun::SpeculateLaneRun(const SpeculateSettings& settings, const SpeculateRequest& request, TextModel& model,
                                   Drafter* drafter)
    : model_(model),
      drafts_(drafter != nullptr),
      engine_(*model.model, drafter, sampler_, engine_options(settings, request, drafter != nullptr)) {
  for (std::int64_t output = 0; output < settings.outputs; ++output) {
    DecodingOptions decoding = request.decoding;
    decoding.seed += static_cast<std::uint64_t>(output);
    engine_.submit(request.prompt, decoding, true, "prompt");
  }
  lane_.num_prompt_tokens = static_cast<std::int64_t>(request.prompt.size());
  lane_.outputs.resize(static_cast<std::size_t>(settings.outputs));
  engine_.on_tokens([this](const ActiveRequest& active, std::size_t num_tokens, const std::string&) {
    if (active.id != kShownOutput) return;
    emitted_ = &active;
    num_emitted_ = num_tokens;
    rows_ = sampler_.verified();
  });
  engine_.on_step([this](const StepPlan& plan, const StepOutcome& outcome) { record(plan, outcome); });
}

void SpeculateLaneRun::step() {
  emitted_ = nullptr;
  if (!engine_.step()) {
    lane_.ended = true;
  } else {
    const AcceptanceCounts& acceptance = engine_.scheduler().metrics().acceptance;
    step_->tokens = acceptance.received_tokens;
    step_->acceptance = acceptance;
    lane_.steps.push_back(std::move(step_));
  }
  for (std::uint64_t output = 0; output < lane_.outputs.size(); ++output) {
    std::optional<Generation> generation = engine_.take(output);
    if (!generation) continue;
    if (generation->failure) std::rethrow_exception(generation->failure);
    lane_.outputs[output] = std::move(*generation);
  }
  lane_.ended = lane_.ended || engine_.scheduler().idle();
}

void SpeculateLaneRun::record(const StepPlan& plan, const StepOutcome& outcome) {
  step_ = std::make_shared<SpeculateStep>();
  step_->begin_ns = lane_.time_ns();
  step_->draft_ns = drafts_ ? outcome.draft_ns : 0;
  (computes_a_prompt(plan) ? step_->prefill_ns : step_->verify_ns) = outcome.verify_ns;
  step_->sample_ns = outcome.sample_ns;
  step_->end_ns = step_->begin_ns + (outcome.end_ns - outcome.begin_ns);
  step_->num_rows = rows_of(plan, outcome);
  if (emitted_ == nullptr) return;
  const Generation& generation = emitted_->generation;
  for (std::size_t i = generation.tokens.size() - num_emitted_; i < generation.tokens.size(); ++i)
    step_->emitted.push_back({generation.tokens[i], generation.origins[i], label_of(generation.tokens[i])});
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
    shown.text = label_of(shown.token);
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

// Spaces are seen as middle dots; tokens without bytes have the name that their model gives them.
std::string SpeculateLaneRun::label_of(Token token) const {
  std::string label;
  for (const PrintableCharacter& character : printable_characters(model_.tokenizer->bytes_of(token))) {
    if (character.text == " ") {
      label += "\u00b7";
    } else if (character.text == "\n") {
      label += "\\n";
    } else if (character.text == "\t") {
      label += "\\t";
    } else {
      label += character.text;
    }
  }
  return label.empty() ? printable_line(model_.tokenizer->entry(token).text) : label;
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
  if (!lane.ended) lane.outputs.clear();
  return lane;
}

}  // namespace draftproof
