// Rows of a step as dense rows of doubles: what the block, multi-draft and tree rules compute with. Each row is made
// when it is first asked for and kept.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reference/step/step_rows.hpp"
#include "reference/verify/dense_rows.hpp"

namespace draftproof {

// The probabilities [V] of a row, each the float of the contract as a double.
DenseMasses<double> dense_row(const Distribution& distribution);

// RowError of a row given as probabilities: bad_probability; with check_sum also bad_sum and all_zero.
void check_dense_row(const DenseMasses<double>& row, const Distribution& distribution, bool check_sum);

// The rows of one side as the templates of verify/ ask for them. A leaf proposes nothing: its proposal row is empty,
// and not looked at.
class DenseStepRows {
 public:
  enum class Side : std::uint8_t { target, proposal };
  DenseStepRows(StepRows& rows, Side side) : rows_(rows), side_(side), made_(rows.request().rows()) {}

  const DenseMasses<double>& row(std::uint32_t r) const;
  const DenseMasses<double>& masses(std::uint32_t r) const { return row(r); }
  double probability(std::uint32_t r, Token token) const { return row(r)[static_cast<std::size_t>(token)]; }

 private:
  StepRows& rows_;
  Side side_;
  mutable std::vector<std::optional<DenseMasses<double>>> made_;
};

inline DenseStepRows dense_target(StepRows& rows) {
  return {rows, DenseStepRows::Side::target};
}
inline DenseStepRows dense_proposal(StepRows& rows) {
  return {rows, DenseStepRows::Side::proposal};
}

// For rules that do not look at the proposal.
struct NoProposal {
  DenseMasses<double> row(std::uint32_t) const { return {}; }
};

}  // namespace draftproof
