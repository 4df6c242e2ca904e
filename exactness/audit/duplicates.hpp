// Rows that repeat other rows: streams of draws that hold the same tokens from the first to the last.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "exactness/audit/audit_sample.hpp"
#include "exactness/statistics/test_result.hpp"

namespace draftproof {

// `duplicate_streams`: a stream is what one row of a batch drew with one seed, over its steps and positions. Two that
// drew at the same places hold the same tokens by chance with the product of `coincidence(a, b)`, the probability that
// draws a and b are of one token; p is the least such product among those that do, times the number of pairs that
// might. Nothing where there are no rows or seeds, or one place only.
std::vector<TestResult> duplicate_tests(std::span<const Token> tokens, const DrawCoordinates& at,
                                        const std::function<double(std::size_t, std::size_t)>& coincidence);

}  // namespace draftproof
