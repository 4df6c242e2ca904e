// The parts of algorithm_mutants() (mutant.hpp), and what they share: one step of chain drafting and verification whose
// distributions may be others than they should.
#pragma once

#include <array>
#include <functional>
#include <span>

#include "reference/exactness/mutants/hunting.hpp"
#include "reference/exactness/mutants/mutant.hpp"
#include "reference/verify/chain.hpp"

namespace draftproof {

using ExactMasses = DenseMasses<Rational>;
using ExactRows = DenseRows<Rational>;

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

Mutant argmax_drafts_mutant();       // B27
Mutant raw_proposal_mutant();        // B28
Mutant default_parameters_mutant();  // B30
Mutant in_place_edits_mutant();      // B31/32
Mutant bfloat16_drafts_mutant();     // B34
Mutant wrong_slice_mutant();         // B36
Mutant tokenwise_block_mutant();     // B37
Mutant one_token_residual_mutant();  // B38
Mutant divided_residual_mutant();    // B39
Mutant residual_floor_mutant();      // B40
Mutant misaligned_rows_mutant();     // B43/45
Mutant unscaled_block_mutant();      // B80

}  // namespace draftproof
