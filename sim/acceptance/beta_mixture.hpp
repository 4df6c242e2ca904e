// Requests that differ: each has a rate of its own, drawn from a Beta distribution, the same at all positions. Over all
// requests the conditional rate then rises with the position, since those that come far are the better ones.
//
//   P(first i accepted) = E[r^i] d^(i (i-1) / 2) = prod_{j<i} (alpha + j) / (alpha + beta + j) d^j
//
// d is a decay by position of every request.
#pragma once

#include <string>
#include <vector>

#include "sim/acceptance/acceptance_model.hpp"
#include "sim/acceptance/survival_table.hpp"

namespace draftproof {

struct BetaShape {
  double alpha, beta;
};
// Errors (usage) at `where`: a mean outside (0, 1), a standard deviation that is not in (0, sqrt(mean (1 - mean))).
BetaShape beta_of(double mean, double standard_deviation, const std::string& where);

// s_1 .. s_depth.
std::vector<double> beta_survival(BetaShape shape, double decay, std::int32_t depth);

class BetaMixture final : public AcceptanceModel {
 public:
  // A bound between two classes may be as near to 0 or 1 as a double can be where the shape has less than this, and
  // indistinguishable from its neighbours where it has more than that.
  static constexpr double kShapeLeast = 0.01;
  static constexpr double kShapeTotalMost = 1e12;
  // shape: alpha and beta from kShapeLeast on, with a sum up to kShapeTotalMost. decay in (0, 1]; 1: none.
  BetaMixture(BetaShape shape, double decay, std::uint64_t seed);

  AcceptanceState begin(std::uint64_t request) const override;
  std::int32_t accepted(AcceptanceState& state, AcceptancePlace place, std::int32_t nodes,
                        std::int32_t depth) const override;
  std::vector<double> survival(std::int32_t nodes, std::int32_t depth, std::int32_t context_len = 0) const override;
  std::vector<double> survival_in_run(std::int32_t nodes, std::int32_t depth,
                                      std::int32_t context_len = 0) const override;

 private:
  // Equally probable classes of requests. A class has the mean survival of its requests, so that the whole has that of
  // the distribution exactly.
  static constexpr std::size_t kClasses = 256;

  BetaShape shape_;
  double decay_;
  std::uint64_t seed_;
  std::vector<std::vector<double>> survivals_;  // [kClasses][kAcceptanceDepthMax]
  std::vector<SurvivalTable<6>> tables_;        // [kClasses]
};

}  // namespace draftproof
