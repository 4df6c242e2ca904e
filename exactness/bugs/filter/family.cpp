#include <algorithm>
#include <iterator>

#include "exactness/bugs/filter/family.hpp"

namespace draftproof {

std::vector<Bug> in_order_of_ids(std::initializer_list<std::vector<Bug> (*)()> families) {
  std::vector<Bug> bugs;
  for (const auto family : families) {
    std::vector<Bug> members = family();
    std::move(members.begin(), members.end(), std::back_inserter(bugs));
  }
  std::sort(bugs.begin(), bugs.end(), [](const Bug& a, const Bug& b) { return a.id < b.id; });
  return bugs;
}

std::vector<Bug> filter_bugs() {
  return in_order_of_ids({top_k_bugs, top_p_bugs, filter_order_bugs, row_mapping_bugs, out_of_range_bugs});
}

}  // namespace draftproof
