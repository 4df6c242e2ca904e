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

// The Target and Proposal of the templates of verify/.
class DenseTarget {
 public:
  explicit DenseTarget(StepRows& rows) : rows_(rows), made_(rows.request().rows()) {}

  const DenseMasses<double>& row(std::uint32_t r) const;
  const DenseMasses<double>& masses(std::uint32_t r) const { return row(r); }
  double probability(std::uint32_t r, Token token) const { return row(r)[static_cast<std::size_t>(token)]; }

 private:
  StepRows& rows_;
  mutable std::vector<std::optional<DenseMasses<double>>> made_;
};

// A leaf proposes nothing: its row is empty, and not looked at.
class DenseProposal {
 public:
  explicit DenseProposal(StepRows& rows) : rows_(rows), made_(rows.request().rows()) {}

  const DenseMasses<double>& row(std::uint32_t r) const;
  const DenseMasses<double>& masses(std::uint32_t r) const { return row(r); }
  double probability(std::uint32_t r, Token token) const { return row(r)[static_cast<std::size_t>(token)]; }

 private:
  StepRows& rows_;
  mutable std::vector<std::optional<DenseMasses<double>>> made_;
};

// For rules that do not look at the proposal.
struct NoProposal {
  DenseMasses<double> row(std::uint32_t) const { return {}; }
};

}  // namespace draftproof
