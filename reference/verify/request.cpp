#include "reference/verify/request.hpp"

#include <string>

#include "reference/error.hpp"
#include "reference/logits/edits.hpp"

namespace draftproof {
namespace {

std::string name_of(std::int64_t request) {
  return "request " + std::to_string(request);
}

void check_ids(std::span<const Token> tokens, std::int64_t vocab_size, const std::string& where, const char* what) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= vocab_size)
      throw input_error(where, std::string(what) + "[" + std::to_string(i) + "] is " + std::to_string(tokens[i]) +
                                   "; ids in [0, " + std::to_string(vocab_size) + ") are right");
  }
}

void check_rows(const RowMatrix& m, std::int64_t rows, std::int64_t vocab_size, const std::string& where,
                const char* what) {
  if (m.rows != rows || m.vocab_size != vocab_size)
    throw input_error(where, std::string(what) + " has shape [" + std::to_string(m.rows) + ", " +
                                 std::to_string(m.vocab_size) + "]; [" + std::to_string(rows) + ", " +
                                 std::to_string(vocab_size) + "] is right");
  if (m.dtype != DType::f32 && m.dtype != DType::f16 && m.dtype != DType::bf16)
    throw input_error(where, std::string(what) + " has elements of type " + std::string(dtype_name(m.dtype)) +
                                 "; F32, F16 and BF16 are right");
}

}  // namespace

void validate(const VerifyRequest& request, std::int64_t request_index) {
  const std::string where = name_of(request_index);
  const auto draft_len = static_cast<std::int64_t>(request.draft.size());
  const std::int64_t vocab_size = request.target.vocab_size;
  if (vocab_size < 1 || vocab_size > kVocabularyLimit)
    throw input_error(where, "the vocabulary has " + std::to_string(vocab_size) + " tokens; 1 to " +
                                 std::to_string(kVocabularyLimit) + " are right");
  check_rows(request.target, draft_len + 1, vocab_size, where, "target");
  check_ids(request.draft, vocab_size, where, "draft_tokens");
  check_ids(request.prompt_tokens, vocab_size, where, "prompt_tokens");
  check_ids(request.output_tokens, vocab_size, where, "output_tokens");
  if (request.proposal_kind != ProposalKind::one_hot)
    check_rows(request.proposal, draft_len, vocab_size, where, "draft");
  if (request.proposal_kind == ProposalKind::logits) {
    validate(request.draft_parameters, where + ", draft parameters");
    if (needs_history(request.draft_parameters, {}) || request.draft_parameters.guidance_scale != 1.0f)
      throw usage_error(
          where + ", draft parameters",
          "penalties and guidance of the drafter belong into its logits; only temperature and filters are right");
  }
  if (request.target_is_probabilities) return;
  validate(request.parameters, where);
  validate(request.constraints, vocab_size, where);
  if (request.unconditional) check_rows(*request.unconditional, draft_len + 1, vocab_size, where, "unconditional");
  if (request.parameters.guidance_scale != 1.0f && !request.unconditional)
    throw input_error(where, "guidance_scale is " + std::to_string(request.parameters.guidance_scale) +
                                 " and there are no unconditional logits; give them, or scale 1");
  const auto words = static_cast<std::size_t>((draft_len + 1) * ((vocab_size + 31) / 32));
  if (!request.allowed_masks.empty() && request.allowed_masks.size() != words)
    throw input_error(where, "the bitmask has " + std::to_string(request.allowed_masks.size()) +
                                 " words; (K + 1) * ceil(V/32) = " + std::to_string(words) + " is right");
}

}  // namespace draftproof
