// The draft of a plan from rows that are at hand: what a drafter does with a model, for those who have distributions.
#pragma once

#include <span>
#include <vector>

#include "reference/step/draft_plan.hpp"
#include "reference/verify/sampled_tree.hpp"

namespace draftproof {

// row_after(path) -> DenseMasses<double> [V], q after these tokens; Chance as in sampled_tree.hpp. Coupled drafts race
// over the noise of the positions from 0 on.
template <class RowAfter, class Chance>
DraftTree draw_planned_tree(const DraftPlan& plan, const RowAfter& row_after, Chance& chance) {
  if (plan.coupled) {
    std::vector<std::vector<Token>> paths(static_cast<std::size_t>(plan.num_paths));
    for (std::uint32_t list = 0; list < paths.size(); ++list)
      for (std::uint32_t level = 0; level < static_cast<std::uint32_t>(plan.shape.size()); ++level)
        paths[list].push_back(chance.coupled_race(row_after(std::span<const Token>(paths[list])), level, list));
    return merge_paths(paths, Duplicates::merged);
  }
  switch (plan.sampling) {
    case DraftSampling::any:
      return top_k_children(row_after, plan.shape);
    case DraftSampling::without_replacement:
      return draw_children_without_replacement(row_after, plan.shape, chance);
    case DraftSampling::greedy:
      return draw_greedy_children(row_after, plan.shape, chance);
    case DraftSampling::independent_paths:
      return draw_merged_paths(row_after, plan.num_paths, plan.shape.size(), chance);
    case DraftSampling::drawn:
    case DraftSampling::independent:
      break;
  }
  return draw_iid_children(row_after, plan.shape, chance);
}

}  // namespace draftproof
