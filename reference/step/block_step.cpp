#include "reference/step/block_step.hpp"

#include <optional>

#include "reference/numerics/fixed_point.hpp"
#include "reference/numerics/unsigned_128.hpp"

namespace draftproof {
namespace {

Unsigned128 exact_total(const DenseMasses<double>& masses) {
  Unsigned128 total = 0;
  for (const double x : masses) total += residual_mass(x);
  return total;
}

bool sums_to_more_than_3(const DenseMasses<double>& masses) {
  return exact_total(masses) > static_cast<Unsigned128>(3) << kResidualBits;
}

// Runs all of several checks and throws the error of the highest status, the first of equals.
class WorstError {
 public:
  template <class Check>
  void note(Check check) {
    try {
      check();
    } catch (const RowError& error) {
      if (!worst_ || error.status() > worst_->status()) worst_ = error;
    }
  }
  void throw_if_any() const {
    if (worst_) throw *worst_;
  }

 private:
  std::optional<RowError> worst_;
};

}  // namespace

void check_masses(const DenseMasses<double>& masses, const RowName& row) {
  if (exact_total(masses) == 0) throw all_zero(row);
  if (sums_to_more_than_3(masses)) throw bad_sum(row);
}

BlockRows::BlockRows(StepRows& rows) : rows_(rows), draft_len_(rows.request().rows() - 1) {
  target_.rows.resize(draft_len_);
  proposal_.rows.resize(draft_len_);
  WorstError rows_of_logits;
  WorstError probabilities;
  for (std::uint32_t row = 0; row < draft_len_; ++row) {
    rows_of_logits.note([&] {
      const Distribution& distribution = rows.target(row);
      target_.rows[row] = dense_row(distribution);
      probabilities.note([&] { check_dense_row(target_.rows[row], distribution, false); });
    });
    rows_of_logits.note([&] {
      const Distribution& distribution = rows.proposal(row);
      proposal_.rows[row] = dense_row(distribution);
      probabilities.note([&] { check_dense_row(proposal_.rows[row], distribution, false); });
    });
  }
  rows_of_logits.throw_if_any();
  probabilities.throw_if_any();
  check_residuals();
}

const DenseMasses<double>& BlockRows::masses(std::uint32_t row) {
  if (row == draft_len_ && target_.rows.size() == draft_len_) {
    const Distribution& distribution = rows_.target(row);
    DenseMasses<double> bonus = dense_row(distribution);
    check_dense_row(bonus, distribution, false);
    target_.rows.push_back(std::move(bonus));
  }
  return target_.row(row);
}

// Every residual that the template may add up.
void BlockRows::check_residuals() const {
  const VerifyRequest& request = rows_.request();
  double weight = 1.0;
  for (std::uint32_t row = 0; row < draft_len_; ++row) {
    const DenseMasses<double> residual = positive_difference(scaled(target_.row(row), weight), proposal_.row(row));
    if (sums_to_more_than_3(residual)) throw bad_sum({request.first_row + row, "target_probs", row});
    const Token token = request.draft.tokens[row];
    weight = block_weight(weight, target_.probability(row, token), proposal_.probability(row, token));
  }
}

}  // namespace draftproof
