#include "reference/exactness/mutants/coupling/family.hpp"

#include <algorithm>
#include <utility>

namespace draftproof {

std::vector<Mutant> coupling_mutants() {
  std::vector<Mutant> mutants{shared_race_mutant(), missing_barrier_mutant(), lost_write_mutant(),
                              differing_ranks_mutant()};
  for (Mutant& mutant : shared_key_mutants()) mutants.push_back(std::move(mutant));
  for (Mutant& mutant : shared_seed_mutants()) mutants.push_back(std::move(mutant));
  for (Mutant& mutant : shared_number_mutants()) mutants.push_back(std::move(mutant));
  std::sort(mutants.begin(), mutants.end(), [](const Mutant& a, const Mutant& b) { return a.id < b.id; });
  return mutants;
}

}  // namespace draftproof
