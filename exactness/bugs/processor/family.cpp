#include "exactness/bugs/filter/family.hpp"

namespace draftproof {

std::vector<Bug> processor_bugs() {
  return in_order_of_ids({history_bugs, draft_row_bugs, mixed_row_bugs});
}

}  // namespace draftproof
