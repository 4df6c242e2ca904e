// Draft trees of any size by the builders of engine/draft/tree_builders, chosen by name.
//
//   chain      every node has one child
//   static     a fixed shape (Medusa): the paths of least sum of (rank + 1), which is the best tree where the child of
//              rank r is accepted with probability 2^-(r + 1); or the levels of `shape`
//   sequoia    the best shape for given rates of the ranks
//   eagle2     the likeliest nodes of a beam search by the draft's probabilities
//   opt_tree   the likeliest nodes of all
//   paths      independent paths of one length, as many as the verifier takes; equal prefixes are merged
//
// The first three and `paths` fix a shape, and the verifier says how tokens are drawn into it. eagle2 and opt_tree
// choose nodes by the probabilities of their tokens: these are the likeliest ones, with no randomness, and the
// verifier must take drafts of any origin.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/step/draft_plan.hpp"
#include "reference/step/verifiers.hpp"
#include "reference/verify/tree_shape.hpp"
#include "studies/lab/draft_pair.hpp"

namespace draftproof {

enum class TreeBuilder : std::uint8_t { chain, fixed, sequoia, eagle2, opt_tree, paths };

std::span<const TreeBuilder> tree_builders();
std::string_view name_of(TreeBuilder builder);
// Error (usage) at `where`: an unknown name.
TreeBuilder parse_tree_builder(std::string_view name, const std::string& where);
inline bool chooses_nodes(TreeBuilder builder) {
  return builder == TreeBuilder::eagle2 || builder == TreeBuilder::opt_tree;
}

// Lossless verifiers that take what a builder makes, in the order of verifiers().
std::vector<VerifierChoice> verifiers_for(TreeBuilder builder);
// Error (usage) at `where` naming those that do.
void require_fit(TreeBuilder builder, const VerifierChoice& verifier, const std::string& where);

struct TreeLimits {
  std::int32_t depth = 5;  // levels of a tree; chains may be longer
  std::int32_t top_k = 4;  // children of a node, but of opt_tree, which has no limit
};

// The shape of `nodes` nodes, or nearly so many where the limits hold no more (and of `paths`, whose nodes are a
// multiple of the number of paths). rates: of the ranks, for sequoia. Errors (usage): those of parse_tree and
// SequoiaTrees.
TreeShape shape_of(TreeBuilder builder, std::int32_t nodes, const TreeLimits& limits, const std::string& shape,
                   std::span<const double> rates, const VerifierChoice& verifier);

// The draft plan of a shape for a verifier.
DraftPlan plan_of(TreeBuilder builder, TreeShape shape, const VerifierChoice& verifier);

// The tree of the draft's likeliest tokens: of eagle2 and opt_tree, or those of a shape.
DraftTree likeliest_tree(TreeBuilder builder, std::int32_t nodes, const TreeLimits& limits, const TreeShape& shape,
                         DraftPair& pair);

// How often the child of rank r = 0 .. top_k - 1 is the accepted one, over the examples of a pair. Where the likeliest
// tokens are the children: the mean of p at the draft's r-th likeliest token. Where children are drawn: by the rule of
// sibling_rates() from the mean of sum min(p, q), the acceptance of the first.
std::vector<double> rank_rates(DraftPair& pair, std::int32_t top_k, DraftSampling sampling);

}  // namespace draftproof
