// The rows of a request as the chain verifier sees them: its Target and its Proposal.
#pragma once

#include <cstdint>

#include "reference/logits/history.hpp"
#include "reference/logits/pipeline.hpp"
#include "reference/sampling/distribution.hpp"
#include "reference/verify/request.hpp"

namespace draftproof {

// Buffers of one thread; reuse them over requests.
struct VerifyWorkspace {
  Pipeline target_pipeline;
  Pipeline draft_pipeline;
  Distribution target_distribution;
  Distribution proposal_distribution;
};

// The distribution that draft logits [V] have under `parameters`: temperature and filters.
void process_draft_row(const VerifyRequest& request, std::uint32_t row, const RowParameters& parameters,
                       Pipeline& pipeline, Distribution& distribution);

// Processes a row when it is first asked for, with the history that plain decoding would have had there. Rows are asked
// for in order; only the current one is held.
class RequestRows {
 public:
  RequestRows(const VerifyRequest& request, const VerifyOptions& options, VerifyWorkspace& workspace,
              Emission& emission);

  // Target
  float probability(std::uint32_t row, Token token);
  DistributionMasses masses(std::uint32_t row);
  const Distribution& target_distribution(std::uint32_t row);

  // Proposal
  const Distribution& proposal_distribution(std::uint32_t row);

  // Records log-probabilities of an emitted token of the current row.
  void emit(std::uint32_t row, Token token);

 private:
  void process_target(std::uint32_t row);
  RowInput input_of(std::uint32_t row) const;

  const VerifyRequest& request_;
  const VerifyOptions options_;  // a copy, so that a caller may pass a temporary
  VerifyWorkspace& workspace_;
  Emission& emission_;
  History history_;  // the copy that advances along the draft
  std::int64_t target_row_ = -1;
  std::int64_t proposal_row_ = -1;
};

struct RequestProposal {
  RequestRows& rows;
  float probability(std::uint32_t row, Token token) { return rows.proposal_distribution(row).probability(token); }
};

inline ResidualMasses residual_masses(RequestRows& target, RequestProposal&, std::uint32_t row) {
  return {target.target_distribution(row), target.proposal_distribution(row)};
}

}  // namespace draftproof
