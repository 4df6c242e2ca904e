// Faults that differences of rows show and rounding would not: a size, or a place (parity.hpp has the rules).
#pragma once

#include <cstddef>
#include <vector>

#include "exactness/parity/parity.hpp"
#include "exactness/parity/rank_tests.hpp"

namespace draftproof {

// Fewer rows than this have no places to compare.
inline constexpr std::size_t kParityRows = 8;

// parity: its rows and the numbers of all of them; squares [rows][64]: of the differences in 64 ranges of columns.
std::vector<ParityFinding> parity_findings(const Parity& parity, const std::vector<std::vector<double>>& squares,
                                           std::size_t vocab_size);

}  // namespace draftproof
