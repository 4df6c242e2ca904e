#include "exactness/bugs/families.hpp"

#include <algorithm>
#include <string>

#include "exactness/bugs/run_bugs.hpp"

namespace draftproof {

std::vector<Bug> all_bugs() {
  using BugsOfFile = std::vector<Bug> (*)();
  const std::vector<BugsOfFile> families[] = {
      {shared_race_bugs, shared_key_bugs, barrier_bugs, shared_seed_bugs, lost_write_bugs, rank_bugs,
       shared_number_bugs},
      {infinite_noise_bugs, coin_bugs, short_tail_bugs, running_sum_bugs, tile_end_bugs},
      {other_distribution_bugs, in_place_edit_bugs, tree_row_bugs, block_bugs, residual_bugs, misaligned_row_bugs,
       draft_length_bugs, reranked_tree_bugs},
      {top_k_bugs, top_p_bugs, filter_order_bugs, row_mapping_bugs, out_of_range_bugs},
      {history_bugs, draft_row_bugs, mixed_row_bugs},
      {draft_mask_bugs, grammar_state_bugs, mask_order_bugs, masked_draft_bugs}};
  std::vector<Bug> all;
  for (const std::vector<BugsOfFile>& family : families) {
    const std::ptrdiff_t first = std::ssize(all);
    for (const BugsOfFile bugs : family)
      for (Bug& bug : bugs()) all.push_back(std::move(bug));
    std::sort(all.begin() + first, all.end(),
              [](const Bug& a, const Bug& b) { return std::stoi(a.id.substr(1)) < std::stoi(b.id.substr(1)); });
  }
  return all;
}

std::vector<WaitingBug> waiting_bugs() {
  return {{"B12", "ROCm/aiter #2035", "an engine of several ranks, each with its own share of the vocabulary"}};
}

}  // namespace draftproof
