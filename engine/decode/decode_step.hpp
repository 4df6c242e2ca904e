// One decoding step of one request, given its rows: a token drawn from a row, or a draft proposed, verified and
// emitted. Nothing is committed. Whoever computes the rows (the engine for a batch of requests, a session for one)
// calls these; they are templates over the source of random blocks, so that the steps that run are the ones that are
// audited.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/token.hpp"
#include "engine/decode/decoding_options.hpp"
#include "engine/draft/drafter.hpp"
#include "engine/model/model_session.hpp"
#include "reference/logits/history.hpp"
#include "reference/step/verify_step.hpp"

namespace draftproof {

// The tokens of one request and of its unconditional companion, which guidance needs: two prompts, one output. Whatever
// is appended or rolled back is so in both, since they would otherwise disagree about the position they predict.

class Sequence {
 public:
  // Without an unconditional prompt there is no companion; an empty one is a companion that starts from nothing.
  Sequence(std::span<const Token> prompt, std::optional<std::span<const Token>> unconditional_prompt)
      : tokens_(prompt.begin(), prompt.end()), prompt_len_(prompt.size()) {
    if (!unconditional_prompt) return;
    guided_ = true;
    unconditional_tokens_.assign(unconditional_prompt->begin(), unconditional_prompt->end());
    unconditional_prompt_len_ = unconditional_prompt->size();
  }

  bool guided() const { return guided_; }
  std::span<const Token> tokens() const { return tokens_; }                              // prompt, then output
  std::span<const Token> unconditional_tokens() const { return unconditional_tokens_; }  // the companion's
  std::span<const Token> prompt() const { return tokens().first(prompt_len_); }
  std::span<const Token> output() const { return tokens().subspan(prompt_len_); }

  void append(Token token) {
    tokens_.push_back(token);
    if (guided_) unconditional_tokens_.push_back(token);
  }
  // Keeps the first output_len tokens of the output.
  void roll_back(std::size_t output_len) {
    tokens_.resize(prompt_len_ + output_len);
    if (guided_) unconditional_tokens_.resize(unconditional_prompt_len_ + output_len);
  }

 private:
  std::vector<Token> tokens_;
  std::vector<Token> unconditional_tokens_;
  std::size_t prompt_len_;
  std::size_t unconditional_prompt_len_ = 0;
  bool guided_ = false;
};

// How a token came about. Plain decoding samples every token.
enum class TokenOrigin : std::uint8_t { sampled, accepted, recovered, bonus };

// Rows of the target, [rows, V], the companion's too when guided. Row 0 is that after the sequence, row i + 1 that
// after draft node i.
struct TargetRows {
  std::span<const float> logits;
  std::span<const float> unconditional;
};

// One verification step with everything that it was made of.
struct SpeculativeStep {
  std::uint32_t step = 0;
  std::size_t output_len = 0;  // tokens of the output before it
  Draft draft;
  std::vector<float> target_logits;          // [K' + 1, V]
  std::vector<float> unconditional_logits;   // [K' + 1, V] when guided
  std::vector<std::uint32_t> allowed_masks;  // [K' + 1, ceil(V/32)] where the request follows a grammar
  Emission emission;

  TargetRows rows() const { return {target_logits, unconditional_logits}; }
};

// How plain decoding draws: by race where the verifier is coupled, so that the two agree token for token.
template <class Chance>
Token draw_target(const Distribution& distribution, const VerifierChoice& verifier, std::uint32_t position,
                  Chance& chance) {
  const DistributionMasses masses(distribution);
  const SharedNoise noise = verifier.info().noise;
  if (noise == SharedNoise::one_row) return chance.coupled_race(masses, position);
  if (noise == SharedNoise::row_per_path)
    return chance.coupled_list_race(masses, position, static_cast<std::uint32_t>(verifier.parameter("paths")));
  return chance.draw(masses, 0, Purpose::target_sample);
}

// A drafter's draws in one verification step, at `position` (tokens emitted so far).
template <class Source>
class AddressedDraftChance final : public DraftChance {
 public:
  AddressedDraftChance(Source& source, const DecodingOptions& options, std::uint32_t step, std::uint32_t position)
      : chance_(source, options.seed, step, options.verify.sampler), position_(position) {}

  Token draw(const Distribution& distribution, std::uint32_t row) override {
    return chance_.draw(DistributionMasses(distribution), row, Purpose::draft_sample);
  }
  Token draw(const DenseMasses<double>& masses, std::uint32_t row) override {
    return chance_.draw(masses, row, Purpose::draft_sample);
  }
  Token coupled_race(const Distribution& distribution, std::uint32_t level, std::uint32_t list) override {
    return chance_.coupled_race(DistributionMasses(distribution), position_ + level, list);
  }

 private:
  AddressedChance<Source> chance_;
  std::uint32_t position_;
};

// The sequence that a request starts with: it has a companion when guidance_scale is not 1.
Sequence start_sequence(const DecodingOptions& options, std::span<const Token> prompt);

// The verification request of a step, as a view of it and of its rows. `prompt` and `output` are for penalties:
// `output` holds at least the step's output_len tokens.
VerifyRequest request_of(const SpeculativeStep& step, const TargetRows& rows, const DecodingOptions& options,
                         std::int64_t vocab_size, std::span<const Token> prompt, std::span<const Token> output);

// The request of a step that holds its rows.
inline VerifyRequest request_of(const SpeculativeStep& step, const DecodingOptions& options, std::int64_t vocab_size,
                                std::span<const Token> prompt, std::span<const Token> output) {
  return request_of(step, step.rows(), options, vocab_size, prompt, output);
}

// The stream of the companion in a session of the target.
inline constexpr std::uint64_t kUnconditionalStream = 1;

// Fills the step's target rows, the companion's too, each side in one forward pass.
void compute_target_rows(ModelSession& target, const Sequence& sequence, SpeculativeStep& step);

// Does the walk end at a node that has drafts below it?
inline bool rejected_a_draft(const DraftTree& tree, const Emission& emission) {
  return !tree.children(emission.path.empty() ? kRootNode : emission.path.back()).empty();
}

// Accepted drafts, then a recovered token where a draft was rejected, or the bonus token.
inline TokenOrigin origin_of(const SpeculativeStep& step, std::size_t index) {
  if (index < step.emission.num_accepted) return TokenOrigin::accepted;
  return rejected_a_draft(step.draft.tree, step.emission) ? TokenOrigin::recovered : TokenOrigin::bonus;
}

// The next token after `sequence` by plain decoding, step = tokens emitted so far. rows: the one after the sequence.
// `history` is that of the sequence, null where the parameters do not look at it. RowError of the row.
template <class Source>
Token sample_token(const TargetRows& rows, const DecodingOptions& options, const Sequence& sequence,
                   const History* history, Source& source, StepWorkspace& workspace) {
  const auto output_len = static_cast<std::uint32_t>(sequence.output().size());
  const auto vocab_size = static_cast<std::int64_t>(rows.logits.size());
  RowInput input{
      {DType::f32, rows.logits.data(), vocab_size}, std::nullopt, options.parameters, options.constraints, history,
      static_cast<std::int64_t>(output_len)};
  if (!rows.unconditional.empty()) input.unconditional = RowView{DType::f32, rows.unconditional.data(), vocab_size};
  workspace.target_pipeline.run(input, workspace.target);
  AddressedChance<Source> chance(source, options.seed, output_len, options.verify.sampler, options.verify.convention);
  return draw_target(workspace.target, options.verify.verifier, output_len, chance);
}

// Fills the draft of `step`, whose number and output_len are set.
template <class Source>
void propose_draft(Drafter& drafter, const DraftContext& context, const DraftPlan& plan, const DecodingOptions& options,
                   Source& source, SpeculativeStep& step) {
  AddressedDraftChance<Source> chance(source, options, step.step, static_cast<std::uint32_t>(step.output_len));
  DraftContext with_parameters = context;
  with_parameters.parameters = options.parameters;
  drafter.propose(with_parameters, plan, chance, step.draft);
}

// A request whose draft is asked for, as above.
struct DraftOrder {
  DraftContext context;
  DraftPlan plan;
  const DecodingOptions* options;
  SpeculativeStep* step;
  bool wants_confidences = false;
  std::exception_ptr failure = nullptr;  // of its draft
};

// Fills the drafts of a step's requests.
template <class Source>
void propose_drafts(Drafter& drafter, DraftCache* cache, std::span<DraftOrder> orders, Source& source) {
  std::vector<AddressedDraftChance<Source>> chances;
  std::vector<DraftJob> jobs;
  chances.reserve(orders.size());
  for (const DraftOrder& order : orders) {
    chances.emplace_back(source, *order.options, order.step->step, static_cast<std::uint32_t>(order.step->output_len));
    DraftJob& job = jobs.emplace_back(
        DraftJob{order.context, order.plan, &chances.back(), &order.step->draft, order.wants_confidences});
    job.context.parameters = order.options->parameters;
  }
  drafter.propose_all(jobs, cache);
  for (std::size_t i = 0; i < jobs.size(); ++i) orders[i].failure = jobs[i].failure;
}

// Fills the emission of `step`. Errors name the step as the request.
template <class Source>
void verify_draft(const TargetRows& rows, const DecodingOptions& options, std::int64_t vocab_size,
                  const Sequence& sequence, Source& source, SpeculativeStep& step, StepWorkspace& workspace) {
  const VerifyRequest request = request_of(step, rows, options, vocab_size, sequence.prompt(), sequence.output());
  validate(request, options.verify.verifier, step.step);
  try {
    step.emission = verify_step(request, options.verify, source, workspace);
  } catch (const RowError& error) {
    throw error_in_request(request, step.step, error);
  }
}

// The buffers of a step whose rows come from a session.
struct DecodingWorkspace {
  StepWorkspace verify;
  SpeculativeStep step;
};

// The next token after `sequence` by plain decoding.
template <class Source>
Token sample_token(ModelSession& target, const DecodingOptions& options, const Sequence& sequence,
                   const History* history, Source& source, DecodingWorkspace& workspace) {
  workspace.step.draft.tree = {};
  compute_target_rows(target, sequence, workspace.step);
  return sample_token(workspace.step.rows(), options, sequence, history, source, workspace.verify);
}

// One verification step after `sequence`, left in workspace.step.
template <class Source>
void speculate(ModelSession& target, Drafter& drafter, const DecodingOptions& options, const Sequence& sequence,
               std::uint32_t step_number, Source& source, DecodingWorkspace& workspace) {
  SpeculativeStep& step = workspace.step;
  step.step = step_number;
  step.output_len = sequence.output().size();
  const DraftPlan plan = plan_for(options.verify.verifier, options.tree, options.num_speculative_tokens, "tree");
  propose_draft(drafter, {sequence.tokens(), sequence.prompt().size()}, plan, options, source, step);
  compute_target_rows(target, sequence, step);
  verify_draft(step.rows(), options, target.vocab_size(), sequence, source, step, workspace.verify);
}

}  // namespace draftproof
