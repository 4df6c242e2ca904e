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
  explicit CandidatePool(const char* builder, const DraftCandidates& draft) : builder_(builder), draft_(draft) {}

  // Asks for the best `count` continuations of `parent` (kRootNode: of the context) and adds them. Returns the first
  // index added. Errors (input) naming the path: more than `count`, a probability outside (0, 1], wrong order, a token
  // named twice.
  std::int32_t expand(std::int32_t parent, std::int32_t count);

  std::int32_t size() const { return nodes_.tree.size(); }
  // The best n of the nodes first .. size() - 1 by (value descending, index ascending), in ascending order of index.
  std::vector<std::int32_t> best(std::int32_t first, std::int32_t n) const;
  double value(std::int32_t node) const { return nodes_.values[static_cast<std::size_t>(node)]; }
  // The tree of these nodes, ascending; they must be closed under ancestors.
  ValuedTree tree_of(const std::vector<std::int32_t>& nodes) const;

 private:
  const char* builder_;
  const DraftCandidates& draft_;
  ValuedTree nodes_;
};

}  // namespace draftproof
