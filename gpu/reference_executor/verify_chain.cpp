// Chain verification by the template of reference/verify/chain.hpp, request by request.
#include "gpu/executors.hpp"
#include "gpu/reference_executor/verify_rows.hpp"
#include "reference/random/philox.hpp"
#include "reference/verify/chain.hpp"
#include "reference/verify/chance.hpp"

namespace draftproof::reference_executor {
namespace {

// The template's Target and Proposal. Rows are asked for in order, so the log-probability of a draft is noted when its
// row is looked at.
class ChainTarget {
 public:
  ChainTarget(VerifyRows& rows, std::int64_t request) : rows_(rows), request_(request) {}

  float probability(std::uint32_t row, Token token) {
    distribution_ = &rows_.target(request_, row);
    const float p = checked_probability(*distribution_, token);
    logprobs_.push_back(distribution_->log_probability(token));
    return p;
  }
  DistributionMasses masses(std::uint32_t row) {
    distribution_ = &rows_.target(request_, row);
    if (distribution_->probabilities() != nullptr) check(status_of_residual(*distribution_, nullptr));
    return DistributionMasses(*distribution_);
  }
  // The target row is the one that was asked for last.
  ResidualMasses residual(std::uint32_t row) {
    const Distribution& other = rows_.proposal(request_, row);
    const bool own_masses = distribution_->probabilities() == nullptr && other.one_hot() != nullptr;
    if (!own_masses) {
      const std::int32_t status = status_of_residual(*distribution_, &other);
      check(status == DRAFTPROOF_ROW_ALL_ZERO && distribution_->probabilities() == nullptr ? DRAFTPROOF_ROW_OK
                                                                                           : status);
    }
    return {*distribution_, other};
  }
  float proposal_probability(std::uint32_t row, Token token) {
    return checked_probability(rows_.proposal(request_, row), token);
  }

  // Of the accepted drafts and of the last token.
  std::vector<float> logprobs(const ChainOutcome& outcome) const {
    std::vector<float> emitted(logprobs_.begin(), logprobs_.begin() + outcome.num_accepted);
    emitted.push_back(distribution_->log_probability(outcome.last_token));
    return emitted;
  }

 private:
  static void check(std::int32_t status) {
    if (status != DRAFTPROOF_ROW_OK) throw Refusal{status};
  }

  VerifyRows& rows_;
  std::int64_t request_;
  const Distribution* distribution_ = nullptr;
  std::vector<float> logprobs_;
};

struct ChainProposal {
  ChainTarget& rows;
  float probability(std::uint32_t row, Token token) { return rows.proposal_probability(row, token); }
};

ResidualMasses residual_masses(ChainTarget& target, ChainProposal&, std::uint32_t row) {
  return target.residual(row);
}

}  // namespace

void verify_chain(const draftproof_verify_arguments& a, const draftproof_settings&) {
  VerifyRows rows(a);
  PhiloxSource source;
  for (std::int64_t request = 0; request < a.requests; ++request) {
    try {
      const std::span<const Token> draft = rows.draft(request);
      ChainTarget target(rows, request);
      ChainProposal proposal{target};
      AddressedChance<PhiloxSource> chance(source, a.randomness.seed[request], a.randomness.step[request]);
      const ChainOutcome outcome = draftproof::verify_chain(draft, target, proposal, chance);
      write_emission(a, request, draft, outcome, target.logprobs(outcome));
    } catch (const Refusal& refusal) {
      write_refusal(a, request, refusal.status);
    }
  }
}

}  // namespace draftproof::reference_executor
