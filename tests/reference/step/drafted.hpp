// Drafts as the registry says that a verifier's were drawn: chains of two, or two children a node two levels deep.
#pragma once

#include "exactness/model_pair.hpp"
#include "reference/step/verifiers.hpp"
#include "reference/verify/chance.hpp"
#include "reference/verify/sampled_tree.hpp"
#include "tests/support/test.hpp"

namespace draftproof {

inline constexpr std::int32_t kDraftedLen = 2;

// DraftSampling::any: tokens drawn from `other` [V], which is not the draft model.
inline DraftTree drafted(const ModelPair<double>& models, DraftSampling sampling, bool is_chain,
                         const DenseMasses<double>& other, AddressedChance<PhiloxSource>& chance) {
  const auto q = [&](std::span<const Token> path) -> const DenseMasses<double>& { return models.draft(path); };
  const auto from_other = [&](std::span<const Token>) { return other; };
  const TreeShape shape = is_chain ? chain_shape(kDraftedLen) : branching_shape({2, 2});
  switch (sampling) {
    case DraftSampling::any:
      return is_chain ? draw_iid_children(from_other, shape, chance)
                      : draw_merged_paths(from_other, 2, kDraftedLen, chance);
    case DraftSampling::drawn:
    case DraftSampling::independent:
      return draw_iid_children(q, shape, chance);
    case DraftSampling::without_replacement:
      return draw_children_without_replacement(q, shape, chance);
    case DraftSampling::greedy:
      return draw_greedy_children(q, shape, chance);
    case DraftSampling::independent_paths:
      return draw_merged_paths(q, 2, kDraftedLen, chance);
  }
  return {};
}

}  // namespace draftproof
