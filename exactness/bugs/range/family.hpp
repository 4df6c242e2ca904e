// The parts of range_mutants() (mutant.hpp), and the race that some of them share.
#pragma once

#include <cstdint>
#include <functional>

#include "reference/exactness/mutants/mutant.hpp"

namespace draftproof {

// Gumbel noise of a random word; at the ends it may be infinite.
using WordNoise = std::function<float(std::uint32_t word)>;

// Races over usual_target_distribution() with noise that does not fall when the word rises.
LargeSampler large_race_sampler(WordNoise noise);

Mutant masked_token_wins_mutant();           // B16
Mutant coin_of_one_mutant();                 // B17
Mutant coin_of_zero_mutant();                // B18
Mutant ratio_against_zero_mutant();          // B19
Mutant constant_coin_mutant();               // B20
Mutant index_of_nan_mutant();                // B21
Mutant clamped_exponential_mutant();         // B22
Mutant coarse_gumbel_mutant();               // B23
Mutant shrunk_uniform_mutant();              // B25
Mutant half_precision_running_sum_mutant();  // B26
Mutant tile_end_mutant();                    // B78

}  // namespace draftproof
