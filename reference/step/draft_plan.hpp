// The order to a drafter: the shape of the draft and how its tokens must be drawn, so that the verifier's output is
// exact.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "reference/step/verifiers.hpp"
#include "reference/verify/tree_shape.hpp"

namespace draftproof {

inline constexpr std::int32_t kDraftNodesMax = 1024;

struct DraftPlan {
  TreeShape shape;                                // at most these nodes; of one path where there are several
  DraftSampling sampling = DraftSampling::drawn;  // of siblings; `any`: the most probable tokens, no randomness
  std::int32_t num_paths = 1;                     // independent paths of the shape's length, merged
  bool coupled = false;                           // tokens race over the noise that the verifier shares

  bool is_chain() const { return shape.is_chain() && num_paths == 1; }
  std::int32_t draft_len_max() const;  // depth of the deepest node
};

// The plan that fits a verifier. tree: absent for a chain of num_speculative_tokens. Errors (usage) at `where`: a
// verifier of chains or of paths with a tree, more than kDraftNodesMax nodes.
DraftPlan plan_for(const VerifierChoice& verifier, const std::optional<TreeShape>& tree, int num_speculative_tokens,
                   const std::string& where);

// "3x2x1": every node of depth d has the d-th number of children. Errors (usage) at `where`: not of this form, a number
// outside [1, 64], more than 64 levels or kDraftNodesMax nodes.
TreeShape parse_tree(std::string_view text, const std::string& where);

}  // namespace draftproof
