// Is anything correlated that should be independent? Draws whose every marginal is right can still share their
// randomness: the coin of one step with the draw of another, the rows of a batch with one another, two seeds that a
// cast made equal.
//
// Every draw comes as the transform of its token (probability_transform.hpp): a uniform number, whatever its
// distribution. Two draws that are independent fill the square evenly; a table of pairs is tested for independence
// given its own margins, so that a bias of the marginal is not taken for a correlation.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exactness/audit/audit_sample.hpp"
#include "exactness/statistics/test_result.hpp"

namespace draftproof {

// transforms [n] (below 0: the row left no choice; such draws are passed over). Of each kind of pair two tables are
// tested, in each of which no draw stands twice; the p value is twice the smaller.
//   correlation_next_step                     one stream (seed, row and position), steps t and t + 1
//   correlation_double_step, _plus, _minus    the same, t with 2 t, 2 t + 1 and 2 t - 1: two generators from one seed,
//                                             of which one takes two numbers a step and the other one
//   correlation_next_position                 one seed, step and row, positions i and i + 1
//   correlation_rows_1, _2, ... _64           one step, rows r and r + 1, 2, ..., 64
//   correlation_next_seed                     one step, row and position: a seed and the next higher one in the sample
//   correlation_low_seed_bits                 the same: seeds that are equal in their low 32 bits
//   correlation_high_seed_bits                the same: seeds that are equal in their high 32 bits
//   correlation_seed_as_float                 the same: seeds that are equal as 32-bit floats
// Rows count as part of a stream only where the sample has no seeds.
std::vector<TestResult> independence_tests(std::span<const double> transforms, const DrawCoordinates& coordinates);

// first[i] beside second[i], made by draws that should be independent; below 0: no such draw. Nothing for too few.
std::vector<TestResult> correlation_of_pairs(const std::string& name, std::span<const double> first,
                                             std::span<const double> second);

}  // namespace draftproof
