// The parts of coupling_mutants() (mutant.hpp).
#pragma once

#include <vector>

#include "reference/exactness/mutants/mutant.hpp"

namespace draftproof {

Mutant shared_race_mutant();                  // B01
std::vector<Mutant> shared_key_mutants();     // decisions of one request: B03, B04, B05, B11, B15
Mutant missing_barrier_mutant();              // B06
std::vector<Mutant> shared_seed_mutants();    // requests of one batch: B07, B08, B09, B14
Mutant lost_write_mutant();                   // B10
Mutant differing_ranks_mutant();              // B12
std::vector<Mutant> shared_number_mutants();  // draws of right marginals that depend on each other: B77, B79

}  // namespace draftproof
