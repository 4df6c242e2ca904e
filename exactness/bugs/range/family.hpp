// The parts of range_bugs() (bug.hpp), and the race that some of them share.
#pragma once

#include <cstdint>
#include <functional>

#include "exactness/bugs/bug.hpp"

namespace draftproof {

// Gumbel noise of a random word; at the ends it may be infinite.
using WordNoise = std::function<float(std::uint32_t word)>;

// Races over usual_target_distribution() with noise that does not fall when the word rises.
LargeSampler large_race_sampler(WordNoise noise);

Bug masked_token_wins_bug();           // B16
Bug coin_of_one_bug();                 // B17
Bug coin_of_zero_bug();                // B18
Bug ratio_against_zero_bug();          // B19
Bug constant_coin_bug();               // B20
Bug index_of_nan_bug();                // B21
Bug clamped_exponential_bug();         // B22
Bug coarse_gumbel_bug();               // B23
Bug shrunk_uniform_bug();              // B25
Bug half_precision_running_sum_bug();  // B26
Bug tile_end_bug();                    // B78

}  // namespace draftproof
