// Block verification of a step's rows by the template of verify/block.hpp. All coins are thrown, so all rows of the
// drafts are looked at, and the worst of them decides what is reported.
#pragma once

#include <cstdint>

#include "reference/step/dense_step_rows.hpp"
#include "reference/verify/block.hpp"

namespace draftproof {

// The rows of the drafts, made at once; the bonus row when it is asked for.
class BlockRows {
 public:
  // RowError with the highest status among the rows of the drafts: of the rows themselves, then of probabilities that
  // are none, then of residuals that sum to more than 3.
  explicit BlockRows(StepRows& rows);

  double probability(std::uint32_t row, Token token) { return masses(row)[static_cast<std::size_t>(token)]; }
  const DenseMasses<double>& masses(std::uint32_t row);
  DenseRows<double>& proposal() { return proposal_; }

 private:
  void check_residuals() const;

  StepRows& rows_;
  std::uint32_t draft_len_;
  DenseRows<double> target_;
  DenseRows<double> proposal_;
};

// RowError unless the masses can be drawn from: all_zero, bad_sum (above 3).
void check_masses(const DenseMasses<double>& masses, const RowName& row);

// A Chance that refuses to draw from what is no distribution.
template <class Chance>
class CheckedChance {
 public:
  CheckedChance(Chance& chance, const VerifyRequest& request) : chance_(chance), request_(request) {}

  bool accept(double p, double q, std::uint32_t row) { return chance_.accept(p, q, row); }
  Token draw(const DenseMasses<double>& masses, std::uint32_t row, Purpose purpose) {
    check_masses(masses, {request_.first_row + row, "target_probs", row});
    return chance_.draw(masses, row, purpose);
  }

 private:
  Chance& chance_;
  const VerifyRequest& request_;
};

template <class Chance>
ChainOutcome verify_block_step(StepRows& rows, Chance& chance) {
  BlockRows target(rows);
  CheckedChance<Chance> checked(chance, rows.request());
  return verify_block(std::span<const Token>(rows.request().draft.tokens), target, target.proposal(), checked);
}

}  // namespace draftproof
