#include <algorithm>
#include <iterator>

#include "reference/exactness/mutants/filter/family.hpp"

namespace draftproof {

std::vector<Mutant> in_order_of_ids(std::initializer_list<std::vector<Mutant> (*)()> families) {
  std::vector<Mutant> mutants;
  for (const auto family : families) {
    std::vector<Mutant> members = family();
    std::move(members.begin(), members.end(), std::back_inserter(mutants));
  }
  std::sort(mutants.begin(), mutants.end(), [](const Mutant& a, const Mutant& b) { return a.id < b.id; });
  return mutants;
}

std::vector<Mutant> filter_mutants() {
  return in_order_of_ids(
      {top_k_mutants, top_p_mutants, filter_order_mutants, row_mapping_mutants, out_of_range_mutants});
}

}  // namespace draftproof
