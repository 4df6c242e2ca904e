#include "engine/decode/decode_step.hpp"

namespace draftproof {
namespace {

RowMatrix matrix_of(std::span<const float> rows, std::int64_t vocab_size) {
  return {DType::f32, rows.data(), static_cast<std::int64_t>(rows.size()) / vocab_size, vocab_size, vocab_size};
}

}  // namespace

Sequence start_sequence(const DecodingOptions& options, std::span<const Token> prompt) {
  if (options.parameters.guidance_scale == 1.0f) return Sequence(prompt, std::nullopt);
  return Sequence(prompt, std::span<const Token>(options.unconditional_prompt));
}

VerifyRequest request_of(const SpeculativeStep& step, const TargetRows& rows, const DecodingOptions& options,
                         std::int64_t vocab_size, std::span<const Token> prompt, std::span<const Token> output) {
  VerifyRequest request;
  request.draft = step.draft.tree;
  request.target = matrix_of(rows.logits, vocab_size);
  if (!rows.unconditional.empty()) request.unconditional = matrix_of(rows.unconditional, vocab_size);
  request.parameters = options.parameters;
  request.constraints = options.constraints;
  request.allowed_masks = step.allowed_masks;
  request.proposal_kind = step.draft.proposal_kind;
  if (request.proposal_kind != ProposalKind::one_hot) request.proposal = matrix_of(step.draft.logits, vocab_size);
  request.draft_parameters = step.draft.draft_parameters;
  request.prompt_tokens = prompt;
  request.output_tokens = output.first(step.output_len);
  request.logprob_token_ids = options.logprob_token_ids;
  request.seed = options.seed;
  request.step = step.step;
  return request;
}

void compute_target_rows(ModelSession& target, const Sequence& sequence, SpeculativeStep& step) {
  const DraftTree& tree = step.draft.tree;
  const std::size_t size = (tree.tokens.size() + 1) * static_cast<std::size_t>(target.vocab_size());
  step.target_logits.resize(size);
  step.unconditional_logits.resize(sequence.guided() ? size : 0);
  target.tree_logits(sequence.tokens(), tree.tokens, tree.parents, step.target_logits);
  if (sequence.guided())
    target.tree_logits(sequence.unconditional_tokens(), tree.tokens, tree.parents, step.unconditional_logits,
                       kUnconditionalStream);
}

}  // namespace draftproof
