#include "reference/exactness/mutants/filter/family.hpp"

namespace draftproof {

std::vector<Mutant> processor_mutants() {
  return in_order_of_ids({history_mutants, draft_row_mutants, mixed_row_mutants});
}

}  // namespace draftproof
