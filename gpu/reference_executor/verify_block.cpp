// Block verification by the template of reference/verify/block.hpp, request by request.
#include "reference/verify/block.hpp"

#include <algorithm>

#include "gpu/executors.hpp"
#include "gpu/reference_executor/verify_rows.hpp"
#include "reference/numerics/unsigned_128.hpp"
#include "reference/random/philox.hpp"
#include "reference/verify/chance.hpp"
#include "reference/verify/dense_distribution.hpp"

namespace draftproof::reference_executor {
namespace {

void refuse_unless_ok(std::int32_t status) {
  if (status != DRAFTPROOF_ROW_OK) throw Refusal{status};
}

std::int32_t status_of_row(const DenseMasses<double>& row) {
  const bool right = std::all_of(row.begin(), row.end(), [](double x) { return x >= 0.0 && x <= 1.0; });
  return right ? DRAFTPROOF_ROW_OK : DRAFTPROOF_ROW_BAD_PROBABILITY;
}

Unsigned128 exact_total(const DenseMasses<double>& masses) {
  Unsigned128 total = 0;
  for (const double x : masses) total += residual_mass(x);
  return total;
}

std::int32_t status_of_total(const DenseMasses<double>& masses) {
  return exact_total(masses) > static_cast<Unsigned128>(3) << kResidualBits ? DRAFTPROOF_ROW_BAD_SUM
                                                                            : DRAFTPROOF_ROW_OK;
}

// The rows of one request. Those of its drafts are made at once, since every coin is thrown; the bonus row when it is
// asked for.
class BlockTarget {
 public:
  BlockTarget(VerifyRows& rows, std::int64_t request, std::span<const Token> draft)
      : rows_(rows), request_(request), draft_len_(static_cast<std::uint32_t>(draft.size())) {
    std::int32_t worst = DRAFTPROOF_ROW_OK;
    for (std::uint32_t place = 0; place < draft_len_; ++place) {
      try {
        target_.rows.push_back(dense_row(rows.target(request, place)));
      } catch (const Refusal& refusal) {
        worst = std::max(worst, refusal.status);
      }
      try {
        proposal_.rows.push_back(dense_row(rows.proposal(request, place)));
      } catch (const Refusal& refusal) {
        worst = std::max(worst, refusal.status);
      }
    }
    refuse_unless_ok(worst);
    for (std::uint32_t place = 0; place < draft_len_; ++place)
      worst = std::max({worst, status_of_row(target_.row(place)), status_of_row(proposal_.row(place))});
    refuse_unless_ok(worst);
    check_residuals(draft);
  }

  double probability(std::uint32_t row, Token token) const { return target_.probability(row, token); }
  const DenseMasses<double>& masses(std::uint32_t row) {
    if (row == draft_len_ && target_.rows.size() == draft_len_) {
      target_.rows.push_back(dense_row(rows_.target(request_, row)));
      refuse_unless_ok(status_of_row(target_.rows.back()));
    }
    return target_.row(row);
  }
  const DenseRows<double>& proposal() const { return proposal_; }

  // Of the accepted drafts and of the last token.
  std::vector<float> logprobs(std::span<const Token> draft, const ChainOutcome& outcome) {
    std::vector<float> emitted;
    for (std::uint32_t place = 0; place <= outcome.num_accepted; ++place) {
      const Token token = place < outcome.num_accepted ? draft[place] : outcome.last_token;
      emitted.push_back(rows_.target(request_, place).log_probability(token));
    }
    return emitted;
  }

 private:
  // Every residual that the template may add up sums to 3 at most.
  void check_residuals(std::span<const Token> draft) const {
    double weight = 1.0;
    for (std::uint32_t place = 0; place < draft_len_; ++place) {
      refuse_unless_ok(status_of_total(positive_difference(scaled(target_.row(place), weight), proposal_.row(place))));
      const Token token = draft[place];
      weight = block_weight(weight, target_.probability(place, token), proposal_.probability(place, token));
    }
  }

  VerifyRows& rows_;
  std::int64_t request_;
  std::uint32_t draft_len_;
  DenseRows<double> target_;
  DenseRows<double> proposal_;
};

// A Chance that refuses to draw from what is no distribution.
class CheckedChance {
 public:
  CheckedChance(PhiloxSource& source, std::uint64_t seed, std::uint32_t step) : chance_(source, seed, step) {}

  bool accept(double p, double q, std::uint32_t row) { return chance_.accept(p, q, row); }
  Token draw(const DenseMasses<double>& masses, std::uint32_t row, Purpose purpose) {
    refuse_unless_ok(exact_total(masses) == 0 ? DRAFTPROOF_ROW_ALL_ZERO : status_of_total(masses));
    return chance_.draw(masses, row, purpose);
  }

 private:
  AddressedChance<PhiloxSource> chance_;
};

}  // namespace

void verify_block(const draftproof_verify_arguments& a, const draftproof_settings&) {
  VerifyRows rows(a);
  PhiloxSource source;
  for (std::int64_t request = 0; request < a.requests; ++request) {
    try {
      const std::span<const Token> draft = rows.draft(request);
      BlockTarget target(rows, request, draft);
      CheckedChance chance(source, a.randomness.seed[request], a.randomness.step[request]);
      DenseRows<double> proposal = target.proposal();
      const ChainOutcome outcome = draftproof::verify_block(draft, target, proposal, chance);
      write_emission(a, request, draft, outcome, target.logprobs(draft, outcome));
    } catch (const Refusal& refusal) {
      write_refusal(a, request, refusal.status);
    }
  }
}

}  // namespace draftproof::reference_executor
