#include "engine/draft/tree_builders/dynamic_trees.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>

#include "base/error.hpp"

namespace draftproof {
namespace {

std::string text_of(const std::vector<Token>& path) {
  std::string text = "[";
  for (const Token token : path) text += (text.size() > 1 ? ", " : "") + std::to_string(token);
  return text + "]";
}

void check(const std::vector<DraftCandidate>& candidates, std::int32_t count, const std::string& where) {
  if (candidates.size() > static_cast<std::size_t>(count))
    throw input_error(where, std::to_string(candidates.size()) + " candidates were given; at most " +
                                 std::to_string(count) + " were asked for");
  std::set<Token> seen;
  const DraftCandidate* before = nullptr;
  for (const DraftCandidate& candidate : candidates) {
    const std::string name = "candidate token " + std::to_string(candidate.token);
    if (!(candidate.probability > 0.0 && candidate.probability <= 1.0))
      throw input_error(
          where, name + " has probability " + std::to_string(candidate.probability) + "; expected a number in (0, 1]");
    if (!seen.insert(candidate.token).second)
      throw input_error(where, name + " is given twice; candidates must be distinct");
    if (before != nullptr && (candidate.probability > before->probability ||
                              (candidate.probability == before->probability && candidate.token < before->token)))
      throw input_error(where, name + " stands after token " + std::to_string(before->token) +
                                   "; the order must be probability descending, then id ascending");
    before = &candidate;
  }
}

}  // namespace

std::vector<DraftCandidate> candidates_of(std::span<const double> probabilities, std::int32_t count) {
  std::vector<DraftCandidate> all;
  for (std::size_t i = 0; i < probabilities.size(); ++i)
    if (probabilities[i] > 0.0) all.push_back({static_cast<Token>(i), probabilities[i]});
  std::stable_sort(all.begin(), all.end(),
                   [](const DraftCandidate& a, const DraftCandidate& b) { return a.probability > b.probability; });
  all.resize(std::min(all.size(), static_cast<std::size_t>(count)));
  return all;
}

double total_value(const ValuedTree& tree) {
  return std::accumulate(tree.values.begin(), tree.values.end(), 0.0);
}

std::int32_t CandidatePool::expand(std::int32_t parent, std::int32_t count) {
  return add(parent, draft_(nodes_.tree.path(parent), count), count);
}

std::int32_t CandidatePool::add(std::int32_t parent, const std::vector<DraftCandidate>& candidates,
                                std::int32_t count) {
  check(candidates, count, std::string(builder_) + ", draft path " + text_of(nodes_.tree.path(parent)));
  const std::int32_t first = size();
  const double parent_value = parent == kRootNode ? 1.0 : value(parent);
  for (const DraftCandidate& candidate : candidates) {
    nodes_.tree.add(candidate.token, parent);
    nodes_.values.push_back(parent_value * candidate.probability);
  }
  return first;
}

std::vector<std::int32_t> CandidatePool::best(std::int32_t first, std::int32_t n) const {
  std::vector<std::int32_t> nodes(static_cast<std::size_t>(size() - first));
  std::iota(nodes.begin(), nodes.end(), first);
  std::stable_sort(nodes.begin(), nodes.end(), [&](std::int32_t a, std::int32_t b) { return value(a) > value(b); });
  nodes.resize(std::min(nodes.size(), static_cast<std::size_t>(n)));
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

ValuedTree CandidatePool::tree_of(const std::vector<std::int32_t>& nodes) const {
  ValuedTree chosen;
  for (const std::int32_t node : nodes) {
    const std::int32_t parent = nodes_.tree.parents[static_cast<std::size_t>(node)];
    const auto place = std::lower_bound(nodes.begin(), nodes.end(), parent);
    chosen.tree.add(nodes_.tree.tokens[static_cast<std::size_t>(node)],
                    parent == kRootNode ? kRootNode : static_cast<std::int32_t>(place - nodes.begin()));
    chosen.values.push_back(value(node));
  }
  return chosen;
}

ValuedTree eagle2_tree(const Eagle2Options& options, const DraftCandidates& draft) {
  const auto require = [](std::int32_t value, std::int32_t least, const char* name) {
    if (value < least)
      throw usage_error("EAGLE-2 tree", std::string(name) + " is " + std::to_string(value) + "; expected at least " +
                                            std::to_string(least));
  };
  require(options.top_k, 1, "top_k");
  require(options.depth, 0, "depth");
  require(options.num_nodes, 1, "num_nodes");

  CandidatePool pool("EAGLE-2 tree", draft);
  std::int32_t layer_first = pool.expand(kRootNode, options.top_k);
  for (std::int32_t expansion = 0; expansion < options.depth; ++expansion) {
    const std::vector<std::int32_t> frontier = pool.best(layer_first, options.top_k);
    layer_first = pool.size();
    for (const std::int32_t node : frontier) pool.expand(node, options.top_k);
  }
  return pool.tree_of(pool.best(0, options.num_nodes));
}

ValuedTree opt_tree(const OptTreeOptions& options, const DraftCandidates& draft) {
  if (options.num_nodes < 1)
    throw usage_error("OPT-Tree", "num_nodes is " + std::to_string(options.num_nodes) + "; expected at least 1");
  if (options.depth_max < 1)
    throw usage_error("OPT-Tree", "depth_max is " + std::to_string(options.depth_max) + "; expected at least 1");
  if (!(options.threshold >= 0.0 && std::isfinite(options.threshold)))
    throw usage_error("OPT-Tree", "threshold is " + std::to_string(options.threshold) +
                                      "; expected 0 (the optimum) or a finite number above");

  CandidatePool pool("OPT-Tree", draft);
  std::int32_t layer_first = pool.expand(kRootNode, options.num_nodes);
  ValuedTree best = pool.tree_of(pool.best(0, options.num_nodes));
  for (std::int32_t depth = 2; depth <= options.depth_max; ++depth) {
    const std::vector<std::int32_t> layer = pool.best(layer_first, options.num_nodes);
    layer_first = pool.size();
    for (const std::int32_t node : layer) pool.expand(node, options.num_nodes);
    ValuedTree deeper = pool.tree_of(pool.best(0, options.num_nodes));
    const double gain = total_value(deeper) - total_value(best);
    best = std::move(deeper);
    if (!(gain > options.threshold)) break;
  }
  return best;
}

}  // namespace draftproof
