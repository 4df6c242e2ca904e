// Target-only sampling with thresholds, SGLang's tree rule (speculative_accept_threshold_acc and _single). Guarantee:
// LOSSY below 1; with both thresholds at 1 it is the exact target-only rule (sibling_rules/target_only.hpp).
//
//   one coin u a node; siblings in order, C_j = sum_{i<=j} p(x_i)
//   accept x_j where  u < C_j / theta_acc  or  p(x_j) >= theta_single
//   none:  emit a token drawn from p without the siblings
//
// Given the siblings, x_j is emitted with probability min(1, C_j / theta_acc) - min(1, C_{j-1} / theta_acc), the first
// x_j with p(x_j) >= theta_single with all that is left, and the rest of p shares what the siblings leave. With p =
// (.5, .3, .2), siblings 0 and 1 and theta_acc = .5 that is (1, 0, 0), at distance .5.
//
// Duplicates have no share and u is never closed at 0, unlike in SGLang: two more ways to be wrong that are not the
// thresholds' own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.hpp"
#include "reference/random/address.hpp"
#include "reference/verify/lossy/distance.hpp"
#include "reference/verify/sibling_outcome.hpp"

namespace draftproof {

template <class Number>
struct AcceptThresholds {
  Number acc{1};     // theta_acc in (0, 1]
  Number single{1};  // theta_single in (0, 1]
};

// Errors (usage): a threshold outside (0, 1].
template <class Number>
void validate(const AcceptThresholds<Number>& thresholds) {
  const auto require = [](const Number& threshold, const char* name) {
    if (!(threshold > 0 && threshold <= 1))
      throw usage_error("target-only thresholds", std::string(name) + " must be a number in (0, 1]; 1 is exact");
  };
  require(thresholds.acc, "theta_acc");
  require(thresholds.single, "theta_single");
}

// A rule for verify_tree (verify/tree.hpp). The node's coin is the draw at (sibling_coin, row).
template <class Number>
struct ThresholdedTargetOnly {
  AcceptThresholds<Number> thresholds;  // validated

  template <class Chance>
  SiblingOutcome operator()(const DenseMasses<Number>& p, const DenseMasses<Number>&, std::span<const Token> siblings,
                            std::span<const std::int32_t>, std::uint32_t row, Chance& chance) const {
    if (siblings.empty()) return {kNoSibling, chance.draw(p, row, Purpose::target_sample)};
    DenseMasses<Number> undrafted = p;
    DenseMasses<Number> shares(siblings.size() + 1, Number(0));  // of u in units of 1 / theta_acc; the last: none
    Number left = thresholds.acc;
    bool taken_surely = false;
    for (std::size_t j = 0; j < siblings.size(); ++j) {
      Number& mass = undrafted[static_cast<std::size_t>(siblings[j])];
      if (!taken_surely && mass > 0) {
        taken_surely = mass >= thresholds.single;
        shares[j] = taken_surely ? left : std::min(mass, left);
        left = left - shares[j];
      }
      mass = Number(0);
    }
    // The rest of theta_acc, as undrafted mass: for doubles it is then zero exactly where there is nothing to draw.
    if (!taken_surely)
      shares.back() = positive_part_of_difference(total_of(undrafted), Number(Number(1) - thresholds.acc));
    // Nothing to share out: no sibling is possible, and p sums to less than 1 - theta_acc.
    if (!(total_of(shares) > 0)) return {kNoSibling, chance.draw(undrafted, row, Purpose::residual)};
    const auto chosen = static_cast<std::size_t>(chance.draw(shares, row, Purpose::sibling_coin));
    if (chosen < siblings.size()) return {static_cast<std::int32_t>(chosen), siblings[chosen]};
    return {kNoSibling, chance.draw(undrafted, row, Purpose::residual)};
  }
};

// The distribution [V] of the token emitted at a node with these distinct siblings.
template <class Number>
DenseMasses<Number> thresholded_distribution(const DenseMasses<Number>& p, std::span<const Token> siblings,
                                             const AcceptThresholds<Number>& thresholds) {
  DenseMasses<Number> distribution(p.size(), Number(0));
  DenseMasses<Number> undrafted = p;
  Number cumulative(0);
  Number before(0);  // probability that a sibling so far was taken
  for (const Token sibling : siblings) {
    const auto x = static_cast<std::size_t>(sibling);
    cumulative += p[x];
    Number after = std::min(Number(1), Number(cumulative / thresholds.acc));
    if (p[x] >= thresholds.single || before == 1) after = Number(1);
    distribution[x] = after - before;
    before = after;
    undrafted[x] = Number(0);
  }
  if (before < 1) {
    const Number total = total_of(undrafted);
    for (std::size_t i = 0; i < p.size(); ++i)
      if (undrafted[i] > 0) distribution[i] = (1 - before) * undrafted[i] / total;
  }
  return distribution;
}

// Its distance from p, given the siblings.
template <class Number>
Number thresholded_distance(const DenseMasses<Number>& p, std::span<const Token> siblings,
                            const AcceptThresholds<Number>& thresholds) {
  return total_variation_of(p, thresholded_distribution(p, siblings, thresholds));
}

}  // namespace draftproof
