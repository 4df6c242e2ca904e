// Shared by the bugs of algorithms: one step of chain drafting and verification whose distributions may be others than
// they should.
#pragma once

#include <array>
#include <functional>
#include <span>

#include "exactness/bugs/families.hpp"
#include "exactness/bugs/hunting.hpp"
#include "reference/verify/chain.hpp"

namespace draftproof {

using ExactMasses = DenseMasses<Rational>;
using ExactRows = DenseRows<Rational>;

// Judges a chain of drafts over the rows of an enumeration.
using EnumeratedVerify =
    std::function<ChainOutcome(std::span<const Token> draft, ExactRows& target, ExactRows& proposal, ExactChance&)>;

// A distribution of a row in place of its p or its q, made from both.
using DistributionOf = std::function<ExactMasses(const ExactMasses& p, const ExactMasses& q)>;

inline ExactMasses distribution_p(const ExactMasses& p, const ExactMasses&) {
  return p;
}
inline ExactMasses distribution_q(const ExactMasses&, const ExactMasses& q) {
  return q;
}

// Which distributions a step drafts from, and what it takes for target and proposal.
struct StepDistributions {
  DistributionOf drafted = distribution_q;
  DistributionOf target = distribution_p;
  DistributionOf proposal = distribution_q;
};

// Drafting by those distributions and production's chain verification.
EnumeratedStep chain_step_with(StepDistributions distributions);

// p = (.1, .6, .3) and q = (.5, .4, .1): far apart, none of a token's probabilities equal.
const ExactMasses& plain_target();
const ExactMasses& plain_draft();

// The first token that one draft from `drafted` leaves after chain verification.
template <class Target>
Token verify_one_draft(const ExactMasses& drafted, Target& target, ExactRows& proposal, ExactChance& chance) {
  const std::array<Token, 1> draft{chance.draw(drafted, 0, Purpose::draft_sample)};
  const ChainOutcome outcome = verify_chain(std::span<const Token>(draft), target, proposal, chance);
  return outcome.num_accepted == 1 ? draft.front() : outcome.last_token;
}

}  // namespace draftproof
