// A rate that is known exactly, against how often the event came: the tail test and the acceptance test of bugs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "exactness/bugs/bug.hpp"

namespace draftproof {

// Compares the rate of an event with its probability after 32, 64, ... draws and stops at the first look whose exact
// binomial interval leaves the probability out, at a level that keeps all looks together below 1e-9. Cases are draws.
// `event` is how evidence names it: "tokens of the tail".
Finding find_wrong_rate(double probability, const std::function<bool(std::uint64_t draw)>& happens,
                        std::int64_t draws_max, const std::string& event);

}  // namespace draftproof
