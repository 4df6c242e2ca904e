#include "exactness/bugs/coupling/family.hpp"

#include <algorithm>
#include <utility>

namespace draftproof {

std::vector<Bug> coupling_bugs() {
  std::vector<Bug> bugs{shared_race_bug(), missing_barrier_bug(), lost_write_bug(), differing_ranks_bug()};
  for (Bug& bug : shared_key_bugs()) bugs.push_back(std::move(bug));
  for (Bug& bug : shared_seed_bugs()) bugs.push_back(std::move(bug));
  for (Bug& bug : shared_number_bugs()) bugs.push_back(std::move(bug));
  std::sort(bugs.begin(), bugs.end(), [](const Bug& a, const Bug& b) { return a.id < b.id; });
  return bugs;
}

}  // namespace draftproof
