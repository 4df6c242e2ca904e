// The parts of coupling_bugs() (bug.hpp).
#pragma once

#include <vector>

#include "exactness/bugs/bug.hpp"

namespace draftproof {

Bug shared_race_bug();                  // B01
std::vector<Bug> shared_key_bugs();     // decisions of one request: B03, B04, B05, B11, B15
Bug missing_barrier_bug();              // B06
std::vector<Bug> shared_seed_bugs();    // requests of one batch: B07, B08, B09, B14
Bug lost_write_bug();                   // B10
Bug differing_ranks_bug();              // B12
std::vector<Bug> shared_number_bugs();  // draws of right marginals that depend on each other: B77, B79

}  // namespace draftproof
