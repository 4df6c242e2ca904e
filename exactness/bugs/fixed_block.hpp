// Block verification over the rows of fixed_rows.hpp. The verifier asks for the sum of max(w p - q, 0) at a weight w
// that differs from draft to draft; with the tokens in the order of q / p that is a difference of two cumulative sums.
#pragma once

#include <vector>

#include "exactness/bugs/fixed_rows.hpp"

namespace draftproof {

class ResidualSums {
 public:
  explicit ResidualSums(const FixedRows& rows);
  double at(double weight) const;  // the sum over all tokens of max(weight * p - q, 0)

 private:
  std::vector<double> ratios_;             // q / p of the tokens of positive p, ascending
  std::vector<double> target_, proposal_;  // sums of p and q over the first i ratios, [V + 1]
};

// Stand-in for dense masses in verify_block; they become dense where a token is drawn from them.
struct FixedMasses {
  const CumulativeTable& table;
  const FixedRows& rows;
  const ResidualSums& sums;

  Token draw(const RandomBlock& block) const { return table.draw(block); }
  void for_each_log_weight(const LogWeightSink& sink) const { table.for_each_log_weight(sink); }
  operator DenseMasses<double>() const { return table.masses(); }
};
struct ScaledFixedMasses {
  FixedMasses masses;
  double weight;
};
struct FixedResidual {
  const FixedRows& rows;
  const ResidualSums& sums;
  double weight;
  operator DenseMasses<double>() const;
};
inline ScaledFixedMasses scaled(const FixedMasses& masses, double weight) {
  return {masses, weight};
}
inline FixedResidual positive_difference(const ScaledFixedMasses& target, const FixedMasses&) {
  return {target.masses.rows, target.masses.sums, target.weight};
}
inline double total_of(const FixedResidual& residual) {
  return residual.sums.at(residual.weight);
}

// For speculative_sampler(), over these rows alone.
FixedVerify verify_fixed_block(const FixedRowsPointer& rows);

}  // namespace draftproof
