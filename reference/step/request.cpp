#include "reference/step/request.hpp"

#include <string>

#include "base/error.hpp"
#include "reference/logits/edits.hpp"
#include "reference/logits/logprobs.hpp"

namespace draftproof {
namespace {

void check_ids(std::span<const Token> tokens, std::int64_t vocab_size, const std::string& where, const char* what) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= vocab_size)
      throw input_error(where, std::string(what) + "[" + std::to_string(i) + "] is " + std::to_string(tokens[i]) +
                                   "; expected an id in [0, " + std::to_string(vocab_size) + ")");
  }
}

void check_rows(const RowMatrix& m, std::int64_t rows, std::int64_t vocab_size, const std::string& where,
                const char* what) {
  if (m.rows != rows || m.vocab_size != vocab_size)
    throw input_error(where, std::string(what) + " has shape [" + std::to_string(m.rows) + ", " +
                                 std::to_string(m.vocab_size) + "]; expected [" + std::to_string(rows) + ", " +
                                 std::to_string(vocab_size) + "]");
  if (m.dtype != DType::f32 && m.dtype != DType::f16 && m.dtype != DType::bf16)
    throw input_error(where, std::string(what) + " has elements of type " + std::string(dtype_name(m.dtype)) +
                                 "; expected F32, F16 or BF16");
}

}  // namespace

void validate(const VerifyRequest& request, const VerifierChoice& verifier, std::int64_t request_index) {
  const std::string where = "request " + std::to_string(request_index);
  const auto draft_len = static_cast<std::int64_t>(request.draft.size());
  const std::int64_t vocab_size = request.target.vocab_size;
  if (vocab_size < 1 || vocab_size > kVocabularyLimit)
    throw input_error(where, "the vocabulary has " + std::to_string(vocab_size) + " tokens; expected 1 to " +
                                 std::to_string(kVocabularyLimit));
  check_rows(request.target, draft_len + 1, vocab_size, where, "target");
  validate(request.draft, vocab_size, where);
  require_fit(verifier, request.draft, request.proposal_kind != ProposalKind::one_hot, where);
  check_ids(request.prompt_tokens, vocab_size, where, "prompt_tokens");
  check_ids(request.output_tokens, vocab_size, where, "output_tokens");
  check_ids(request.logprob_token_ids, vocab_size, where, "logprob_token_ids");
  if (request.logprob_token_ids.size() > kLogprobTokenIdsMax)
    throw input_error(where, "logprob_token_ids has " + std::to_string(request.logprob_token_ids.size()) +
                                 " ids; expected at most " + std::to_string(kLogprobTokenIdsMax));
  // The last row of a chain proposes nothing, and may be left out.
  const bool whole = !request.draft.is_chain() || request.has_tree_rows();
  if (request.proposal_kind != ProposalKind::one_hot)
    check_rows(request.proposal, whole ? draft_len + 1 : draft_len, vocab_size, where, "draft");
  if (request.proposal_kind == ProposalKind::logits) {
    validate(request.draft_parameters, where + ", draft parameters");
    if (needs_history(request.draft_parameters, {}) || request.draft_parameters.guidance_scale != 1.0f)
      throw usage_error(
          where + ", draft parameters",
          "has penalties or guidance; expected temperature and filters only, since the rest belongs into the logits");
  }
  if (request.target_is_probabilities) return;
  validate(request.parameters, where);
  if (draft_len > 0 && request.parameters.samplers.has_state())
    throw usage_error(
        where,
        "has drafts, and XTC by chance, Mirostat or adaptive-p, whose number or state is another in every row; "
        "expected a request for each row");
  validate(request.constraints, vocab_size, where);
  if (request.unconditional) check_rows(*request.unconditional, draft_len + 1, vocab_size, where, "unconditional");
  if (request.parameters.guidance_scale != 1.0f && !request.unconditional)
    throw input_error(where, "guidance_scale is " + std::to_string(request.parameters.guidance_scale) +
                                 " and there are no unconditional logits; give them, or scale 1");
  const std::int64_t words = (vocab_size + 31) / 32;
  const std::int64_t stride = request.allowed_mask_stride == 0 ? words : request.allowed_mask_stride;
  const auto expected = static_cast<std::size_t>(draft_len * stride + words);
  if (!request.allowed_masks.empty() && (stride < words || request.allowed_masks.size() < expected))
    throw input_error(where, "the bitmask has " + std::to_string(request.allowed_masks.size()) +
                                 " words; expected (K + 1) * ceil(V/32) = " + std::to_string(expected));
}

}  // namespace draftproof
