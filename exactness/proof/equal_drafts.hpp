// Verifiers at equal drafts: what a step emits, how far off it is, and how many rows its rule reads, on one pair of
// distributions after every prefix. By enumeration of the verifiers' own templates over fractions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exactness/rational.hpp"
#include "reference/verify/dense_rows.hpp"

namespace draftproof {

struct EqualDraftsRow {
  std::string verifier;     // with its parameters where it is lossy
  std::string drafts;       // "chain of 4", "4 siblings, independent", "2 paths of 2, merged"
  std::int32_t budget = 0;  // tokens drawn
  bool lossless = true;
  Rational tokens;         // emitted by a step, on average: accepted drafts and one more
  Rational target_rows;    // of the target that the rule asked for, on average, each once
  Rational proposal_rows;  // of the proposal
  // Total variation of the first emitted token from a draw from p, and of all that is emitted, completed by draws from
  // p to as many tokens as the drafts are deep and one.
  Rational first_distance, distance;
};

// Rows for budgets 2 and 4, by budget and tokens. p, q [V] sum to 1.
std::vector<EqualDraftsRow> equal_drafts(const DenseMasses<Rational>& p, const DenseMasses<Rational>& q);

// The pair that `draftproof prove --equal-drafts` takes: p = (10, 5, 3, 2) / 20, q = (8, 4, 6, 2) / 20.
DenseMasses<Rational> equal_drafts_target();
DenseMasses<Rational> equal_drafts_proposal();

}  // namespace draftproof
