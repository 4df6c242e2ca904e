#include "cli/demo/distribution.hpp"

#include <algorithm>
#include <optional>

#include "reference/logits/edits.hpp"
#include "reference/logits/history.hpp"

namespace draftproof {
namespace {

// That of the sequence, where the target's distribution depends on one.
std::optional<History> history_of(const DecodingOptions& options, const Sequence& sequence, std::int64_t vocab_size) {
  if (!needs_history(options.parameters, options.constraints)) return std::nullopt;
  return History(sequence.prompt(), sequence.output(), vocab_size);
}

// Plain draws from the target until the string is full.
void complete(ModelSession& target, const DecodingOptions& options, Sequence& sequence, std::size_t emitted,
              DecodingWorkspace& workspace, DistributionString& string) {
  PhiloxSource source;
  for (std::size_t i = emitted; i < string.size(); ++i) {
    // Step = tokens emitted so far, which is not 0, the number of the speculative step: no address is shared.
    const std::optional<History> history = history_of(options, sequence, target.vocab_size());
    string[i] = sample_token(target, options, sequence, history ? &*history : nullptr, source, workspace);
    sequence.append(string[i]);
  }
}

// The processed probabilities of the token after a sequence.
std::vector<double> next_token_distribution(ModelSession& target, const DecodingOptions& options, Sequence& sequence,
                                            DecodingWorkspace& workspace) {
  workspace.step.draft.tree = {};
  compute_target_rows(target, sequence, workspace.step);
  RowInput input;
  input.logits = {DType::f32, workspace.step.target_logits.data(), target.vocab_size()};
  input.parameters = options.parameters;
  input.constraints = options.constraints;
  const std::optional<History> history = history_of(options, sequence, target.vocab_size());
  if (history) input.history = &*history;
  if (sequence.guided())
    input.unconditional = RowView{DType::f32, workspace.step.unconditional_logits.data(), target.vocab_size()};
  Distribution& distribution = workspace.verify.target;
  workspace.verify.target_pipeline.run(input, distribution);
  std::vector<double> probabilities(static_cast<std::size_t>(target.vocab_size()));
  for (std::size_t i = 0; i < probabilities.size(); ++i)
    probabilities[i] = static_cast<double>(distribution.probability(static_cast<Token>(i)));
  return probabilities;
}

}  // namespace

DistributionString draw_speculatively(ModelSession& target, Drafter& drafter, const DecodingOptions& options,
                                      std::span<const Token> prompt, DecodingWorkspace& workspace) {
  PhiloxSource source;
  Sequence sequence = start_sequence(options, prompt);
  speculate(target, drafter, options, sequence, 0, source, workspace);
  const std::vector<Token>& tokens = workspace.step.emission.tokens;
  DistributionString string{};
  std::size_t emitted = 0;
  for (; emitted < std::min(tokens.size(), string.size()); ++emitted) {
    string[emitted] = tokens[emitted];
    sequence.append(tokens[emitted]);
  }
  complete(target, options, sequence, emitted, workspace, string);
  return string;
}

DistributionString draw_directly(ModelSession& target, const DecodingOptions& options, std::span<const Token> prompt,
                                 DecodingWorkspace& workspace) {
  Sequence sequence = start_sequence(options, prompt);
  DistributionString string{};
  complete(target, options, sequence, 0, workspace, string);
  return string;
}

std::vector<double> exact_distribution(ModelSession& target, const DecodingOptions& options,
                                       std::span<const Token> prompt, DecodingWorkspace& workspace) {
  const auto vocab_size = static_cast<std::size_t>(target.vocab_size());
  Sequence sequence = start_sequence(options, prompt);
  const std::vector<double> first = next_token_distribution(target, options, sequence, workspace);
  std::vector<double> distribution(vocab_size * vocab_size);
  for (std::size_t a = 0; a < vocab_size; ++a) {
    if (first[a] == 0.0) continue;
    sequence.append(static_cast<Token>(a));
    const std::vector<double> second = next_token_distribution(target, options, sequence, workspace);
    for (std::size_t b = 0; b < vocab_size; ++b) distribution[a * vocab_size + b] = first[a] * second[b];
    sequence.roll_back(0);
  }
  return distribution;
}

}  // namespace draftproof
