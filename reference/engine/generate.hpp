// The decoding loops: plain, one token per step, and speculative, one verification step at a time.
//
// Guarantee: with a lossless verifier the output of both follows the same distribution; at temperature 0, and with
// coupled verification at any, it is the same tokens. They are templates over the source of random blocks, so that the
// loops that run are the ones that are audited.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "reference/draft/drafter.hpp"
#include "reference/engine/acceptance.hpp"
#include "reference/engine/decoding_options.hpp"
#include "reference/engine/sequence.hpp"
#include "reference/logits/edits.hpp"
#include "reference/model/model_session.hpp"
#include "reference/step/verify_step.hpp"

namespace draftproof {

// How a token came about. Plain decoding samples every token.
enum class TokenOrigin : std::uint8_t { sampled, accepted, recovered, bonus };

// One verification step with everything that it was made of.
struct SpeculativeStep {
  std::uint32_t step = 0;
  std::size_t output_len = 0;  // tokens of the output before it
  Draft draft;
  std::vector<float> target_logits;         // [K' + 1, V]
  std::vector<float> unconditional_logits;  // [K' + 1, V] when guided
  Emission emission;
};

struct Generation {
  std::vector<Token> tokens;
  std::vector<TokenOrigin> origins;                 // of every token
  FinishReason finish_reason = FinishReason::none;  // none: max_steps were done
  std::int64_t target_steps = 0;                    // forward steps of the target model
  AcceptanceCounts acceptance;                      // speculative only
  std::vector<SpeculativeStep> steps;               // with keep_steps
};

// The buffers of one thread.
struct DecodingWorkspace {
  StepWorkspace verify;
  SpeculativeStep step;
  std::vector<float> logits;
  std::vector<float> unconditional_logits;
};

// How plain decoding draws: by race where the verifier is coupled, so that the two agree token for token.
template <class Chance>
Token draw_target(const Distribution& distribution, const VerifierChoice& verifier, std::uint32_t position,
                  Chance& chance) {
  const DistributionMasses masses(distribution);
  if (verifier.verifier == Verifier::coupled) return chance.coupled_race(masses, position);
  if (verifier.verifier == Verifier::coupled_list)
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

// The verification request of a step, as a view of it. `prompt` and `output` are for penalties: `output` holds at least
// the step's output_len tokens.
VerifyRequest request_of(const SpeculativeStep& step, const DecodingOptions& options, std::int64_t vocab_size,
                         std::span<const Token> prompt, std::span<const Token> output);

// The stream of the companion in a session of the target.
inline constexpr std::uint64_t kUnconditionalStream = 1;

// Fills the step's target rows, the companion's too, each side in one forward pass: row 0 is the model's row after the
// sequence, row i + 1 that after draft node i.
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

// The next token after `sequence` by plain decoding, step = tokens emitted so far. `history` is that of the sequence,
// null where the parameters do not look at it.
template <class Source>
Token sample_token(ModelSession& target, const DecodingOptions& options, const Sequence& sequence,
                   const History* history, Source& source, DecodingWorkspace& workspace) {
  const std::int64_t vocab_size = target.vocab_size();
  workspace.logits.resize(static_cast<std::size_t>(vocab_size));
  target.logits(sequence.tokens(), workspace.logits);
  RowInput input{{DType::f32, workspace.logits.data(), vocab_size},
                 std::nullopt,
                 options.parameters,
                 options.constraints,
                 history,
                 static_cast<std::int64_t>(sequence.output().size())};
  if (sequence.guided()) {
    workspace.unconditional_logits.resize(static_cast<std::size_t>(vocab_size));
    target.logits(sequence.unconditional_tokens(), workspace.unconditional_logits, kUnconditionalStream);
    input.unconditional = RowView{DType::f32, workspace.unconditional_logits.data(), vocab_size};
  }
  Distribution& distribution = workspace.verify.target;
  workspace.verify.target_pipeline.run(input, distribution);
  AddressedChance<Source> chance(source, options.seed, static_cast<std::uint32_t>(sequence.output().size()),
                                 options.verify.sampler, options.verify.convention);
  return draw_target(distribution, options.verify.verifier, static_cast<std::uint32_t>(sequence.output().size()),
                     chance);
}

// One verification step after `sequence`, left in workspace.step; nothing is committed.
template <class Source>
void speculate(ModelSession& target, Drafter& drafter, const DecodingOptions& options, Sequence& sequence,
               std::uint32_t step_number, Source& source, DecodingWorkspace& workspace) {
  SpeculativeStep& step = workspace.step;
  step.step = step_number;
  step.output_len = sequence.output().size();
  const DraftPlan plan = plan_for(options.verify.verifier, options.tree, options.num_speculative_tokens, "tree");
  AddressedDraftChance<Source> draft_chance(source, options, step_number, static_cast<std::uint32_t>(step.output_len));
  drafter.propose({sequence.tokens(), sequence.prompt().size()}, plan, draft_chance, step.draft);
  compute_target_rows(target, sequence, step);
  const VerifyRequest request = request_of(step, options, target.vocab_size(), sequence.prompt(), sequence.output());
  validate(request, options.verify.verifier, step_number);
  try {
    step.emission = verify_step(request, options.verify, source, workspace.verify);
  } catch (const RowError& error) {
    throw error_in_request(request, step_number, error);
  }
}

// Errors: those of validate(DecodingOptions) and of the rows, which are numbered by the tokens before them.
template <class Source>
Generation generate_plain(ModelSession& target, const DecodingOptions& options, std::span<const Token> prompt,
                          Source& source, DecodingWorkspace& workspace) {
  validate(options, prompt, target.vocab_size());
  StopConditions stop(options.stop, static_cast<std::size_t>(target.vocab_size()),
                      static_cast<std::int64_t>(prompt.size()), options.detokeniser);
  Sequence sequence = start_sequence(options, prompt);
  const bool uses_history = needs_history(options.parameters, options.constraints);
  History history;
  if (uses_history) history = History(prompt, {}, target.vocab_size());
  Generation generation;
  const auto steps_left = [&] { return !options.max_steps || generation.target_steps < *options.max_steps; };
  while (!stop.finished() && steps_left()) {
    const Token token = sample_token(target, options, sequence, uses_history ? &history : nullptr, source, workspace);
    ++generation.target_steps;
    stop.push(std::span(&token, 1));
    sequence.append(token);
    if (uses_history) history.append(token);
    generation.tokens.push_back(token);
    generation.origins.push_back(TokenOrigin::sampled);
  }
  generation.finish_reason = stop.finish_reason();
  return generation;
}

// Errors: as above; rows are named by request = verification step.
template <class Source>
Generation generate_speculative(ModelSession& target, Drafter& drafter, const DecodingOptions& options,
                                std::span<const Token> prompt, Source& source, DecodingWorkspace& workspace) {
  validate(options, prompt, target.vocab_size());
  StopConditions stop(options.stop, static_cast<std::size_t>(target.vocab_size()),
                      static_cast<std::int64_t>(prompt.size()), options.detokeniser);
  Sequence sequence = start_sequence(options, prompt);
  Generation generation;
  generation.acceptance = AcceptanceCounts(static_cast<std::size_t>(options.num_speculative_tokens));
  const auto steps_left = [&] { return !options.max_steps || generation.target_steps < *options.max_steps; };
  while (!stop.finished() && steps_left()) {
    speculate(target, drafter, options, sequence, static_cast<std::uint32_t>(generation.target_steps), source,
              workspace);
    const SpeculativeStep& step = workspace.step;
    const StopResult result = stop.push(step.emission.tokens);
    for (std::size_t i = 0; i < result.tokens_kept; ++i) {
      sequence.append(step.emission.tokens[i]);
      generation.tokens.push_back(step.emission.tokens[i]);
      generation.origins.push_back(origin_of(step, i));
    }
    generation.acceptance.add_step({step.draft.tree.tokens.size(), step.emission.num_accepted,
                                    rejected_a_draft(step.draft.tree, step.emission), result.tokens_kept});
    ++generation.target_steps;
    if (options.keep_steps) generation.steps.push_back(step);
  }
  drafter.finish({sequence.tokens(), sequence.prompt().size()});
  generation.finish_reason = stop.finish_reason();
  return generation;
}

}  // namespace draftproof
