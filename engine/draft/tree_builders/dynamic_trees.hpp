// Requests of dynamic tree builders to a draft model, and the order in which they rank nodes.
//
// A node is worth the product of the draft probabilities on its path: the probability that all of them are accepted,
// were the target the draft model. A product of doubles in (0, 1] never rises along a path, after rounding too, so no
// logarithm is needed. Nodes are ranked by (value descending, pool index ascending), and parents come before their
// children in the pool: hence the best n of any pool are closed under ancestors, ties and underflow included.
//
// Trees built like this are chosen by values of their own nodes. With tokens that were sampled, that is a selection,
// and the ratio tests of RRS and RRSw are then wrong; with the most probable tokens, as here, drafts are deterministic,
// and the verifier to use is target-only, naive sampling or a one-hot ratio test.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "reference/verify/draft_tree.hpp"

namespace draftproof {

struct DraftCandidate {
  Token token;
  double probability;  // (0, 1]
};

// The `count` most probable tokens after `path` (which follows the context), by (probability descending, id ascending);
// fewer where fewer are possible.
using DraftCandidates = std::function<std::vector<DraftCandidate>(std::span<const Token> path, std::int32_t count)>;

// The candidates of a row of probabilities [V] held by the caller.
std::vector<DraftCandidate> candidates_of(std::span<const double> probabilities, std::int32_t count);

struct ValuedTree {
  DraftTree tree;              // breadth first
  std::vector<double> values;  // [n], product of the draft probabilities on the path
};

// Sum of the values: the expected number of accepted drafts, were the draft probabilities those of acceptance.
double total_value(const ValuedTree& tree);

// Nodes that have been scored, from which a tree is then chosen. A node's index is its place in the order of adding.
class CandidatePool {
 public:
  // `builder` names the caller in errors.
  explicit CandidatePool(const char* builder, DraftCandidates draft = {})
      : builder_(builder), draft_(std::move(draft)) {}

  // Asks for the best `count` continuations of `parent` (kRootNode: of the context) and adds them. Returns the first
  // index added. Errors (input) naming the path: more than `count`, a probability outside (0, 1], wrong order, a token
  // named twice.
  std::int32_t expand(std::int32_t parent, std::int32_t count);

  // The same with continuations that are at hand.
  std::int32_t add(std::int32_t parent, const std::vector<DraftCandidate>& candidates, std::int32_t count);

  std::int32_t size() const { return nodes_.tree.size(); }
  // The best n of the nodes first .. size() - 1 by (value descending, index ascending), in ascending order of index.
  std::vector<std::int32_t> best(std::int32_t first, std::int32_t n) const;
  double value(std::int32_t node) const { return nodes_.values[static_cast<std::size_t>(node)]; }
  // The tree of these nodes, ascending; they must be closed under ancestors.
  ValuedTree tree_of(const std::vector<std::int32_t>& nodes) const;

 private:
  const char* builder_;
  DraftCandidates draft_;
  ValuedTree nodes_;
};

// EAGLE-2's dynamic draft tree: Li, Wei, Zhang, Zhang 2406.16858, section 4. Expand layer by layer, then rerank all
// that was scored.
//
//   layer 1         the top_k best continuations of the context
//   each expansion  every node of the frontier proposes its top_k; all of these stay in the pool; the next frontier is
//                   the top_k best of them
//   rerank          the best num_nodes of the pool, top_k + depth top_k^2 nodes at most

struct Eagle2Options {
  std::int32_t top_k = 10;
  std::int32_t depth = 7;       // expansions after the first layer: the deepest nodes lie depth + 1 below the context
  std::int32_t num_nodes = 59;  // drafts; with the root's own token this is one less than the usual "60 total tokens"
};

// At most num_nodes drafts, fewer where the pool holds fewer. Errors (usage): top_k < 1, depth < 0, num_nodes < 1;
// (input) what CandidatePool::expand says.
ValuedTree eagle2_tree(const Eagle2Options& options, const DraftCandidates& draft);

// OPT-Tree: Wang et al. 2406.17276. The draft tree of n nodes with the largest sum of path probabilities, which is the
// expected number of accepted drafts where the draft's probabilities are those of acceptance.
//
// Values never rise along a path, so the best n nodes of all are closed under ancestors, and no such tree is better.
// Only the best n nodes of a layer can be among them, or have descendants that are: so layers are cut to n, and the
// search ends at the first layer that adds nothing.

struct OptTreeOptions {
  std::int32_t num_nodes = 50;
  std::int32_t depth_max = 10;
  double threshold = 0.0;  // stop when one more layer raises the sum by this or less; 0 gives the optimum
};

// Errors (usage): num_nodes < 1, depth_max < 1, a threshold that is negative or not finite; (input) what
// CandidatePool::expand says.
ValuedTree opt_tree(const OptTreeOptions& options, const DraftCandidates& draft);

}  // namespace draftproof
