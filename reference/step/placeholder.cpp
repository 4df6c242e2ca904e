#include "reference/step/placeholder.hpp"

#include <algorithm>

namespace draftproof {
namespace {

RecordedNumbers first_of(const RecordedNumbers& numbers, std::size_t count) {
  return {numbers.of_32_bits.first(std::min(count, numbers.of_32_bits.size())),
          numbers.of_64_bits.first(std::min(count, numbers.of_64_bits.size()))};
}

}  // namespace

void end_at_placeholder(VerifyRequest& request) {
  if (!request.draft.is_chain()) return;
  const std::vector<Token> drafts = request.draft.tokens;
  const auto found = std::find(drafts.begin(), drafts.end(), kPaddingToken);
  if (found == drafts.end()) return;
  const auto k = static_cast<std::size_t>(found - drafts.begin());
  const auto rows = static_cast<std::int64_t>(k) + 1;
  RecordedRandomness& recorded = request.recorded;
  // Numbers of rows are one more than the drafts; a single one for the step stays as it is.
  const auto vocab_size = static_cast<std::size_t>(request.target.vocab_size);
  if (recorded.uniforms)
    recorded.uniforms = first_of(*recorded.uniforms, recorded.uniforms->size() > drafts.size() ? k + 1 : k);
  if (recorded.draw_uniforms && recorded.draw_uniforms->size() > 1)
    recorded.draw_uniforms = first_of(*recorded.draw_uniforms, k + 1);
  if (recorded.noise && recorded.noise->size() > vocab_size)
    recorded.noise = first_of(*recorded.noise, (k + 1) * vocab_size);
  recorded.bonus_token.reset();
  if (recorded.recovered_tokens) {
    if (const Token token = (*recorded.recovered_tokens)[k]; token != kPaddingToken) recorded.bonus_token = token;
    recorded.recovered_tokens = recorded.recovered_tokens->first(k);
  }
  if (request.proposal_kind != ProposalKind::one_hot)
    request.proposal = request.proposal.slice(0, request.has_tree_rows() ? rows : rows - 1);
  request.target = request.target.slice(0, rows);
  if (request.unconditional) request.unconditional = request.unconditional->slice(0, rows);
  request.draft = DraftTree::chain(std::span(drafts).first(k));
}

}  // namespace draftproof
