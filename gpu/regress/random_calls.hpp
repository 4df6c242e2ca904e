// Calls with random arguments: valid ones, and ones with a few wrong numbers in every kind of array. Every optional
// array is there in some and absent in others.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/regress/case.hpp"

namespace draftproof::regress {

// Calls seed .. seed + count - 1, the operations in turns. A call is a function of its seed alone.
std::vector<RegressCase> random_calls(std::int64_t count, std::uint64_t seed);

}  // namespace draftproof::regress
