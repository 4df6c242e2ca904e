// The race that some of the range bugs share.
#pragma once

#include <cstdint>
#include <functional>

#include "exactness/bugs/families.hpp"

namespace draftproof {

// Gumbel noise of a random word; at the ends it may be infinite.
using WordNoise = std::function<float(std::uint32_t word)>;

// Races over usual_target_distribution() with noise that does not fall when the word rises.
LargeSampler large_race_sampler(WordNoise noise);

}  // namespace draftproof
