// The requests of a call as the reference's chain verifiers see them: the distributions of their rows, and what is
// wrong with them. What refuses a request is thrown, since a verifier asks for rows deep in its own loop.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/draftproof.h"
#include "gpu/reference_executor/draft_ranges.hpp"
#include "gpu/reference_executor/row_distributions.hpp"
#include "reference/verify/chain.hpp"

namespace draftproof::reference_executor {

struct Refusal {
  std::int32_t status;  // draftproof_row_status
};

class VerifyRows {
 public:
  explicit VerifyRows(const draftproof_verify_arguments& arguments);

  // Throws Refusal where the offsets are invalid or an id is outside of the vocabulary.
  std::span<const Token> draft(std::int64_t request) const;

  // The distribution of the request's target row `place`, or of its proposal row `place` as its target sees it: one-hot
  // at the draft where the proposal or the target is. Throws Refusal of a row of logits. Good until the next call.
  const Distribution& target(std::int64_t request, std::uint32_t place);
  const Distribution& proposal(std::int64_t request, std::uint32_t place);

 private:
  std::span<const Token> draft_tokens(std::int64_t request) const;

  const draftproof_verify_arguments& a_;
  std::vector<DraftRange> ranges_;
  RowDistributions target_rows_;
  RowDistributions proposal_rows_;
  Distribution target_;
  Distribution proposal_;
};

// The probability of a token; throws Refusal where it is none.
float checked_probability(const Distribution& distribution, Token token);

// What is wrong with drawing from max(p - q, 0), or from p where that is 0 everywhere or q is null.
std::int32_t status_of_residual(const Distribution& p, const Distribution* q);

// Writes all outputs of a request. logprobs: of the accepted drafts and of the last token.
void write_emission(const draftproof_verify_arguments& a, std::int64_t request, std::span<const Token> draft,
                    const ChainOutcome& outcome, std::span<const float> logprobs);
void write_refusal(const draftproof_verify_arguments& a, std::int64_t request, std::int32_t status);

}  // namespace draftproof::reference_executor
