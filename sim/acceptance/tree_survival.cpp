#include "sim/acceptance/tree_survival.hpp"

#include <algorithm>
#include <numeric>

#include "engine/draft/tree_builders/dynamic_trees.hpp"
#include "engine/draft/tree_builders/sequoia_tree.hpp"
#include "sim/acceptance/acceptance_model.hpp"
#include "sim/acceptance/survival_table.hpp"

namespace draftproof {
namespace {

static_assert(kAcceptanceDepthMax == 64, "TreeSurvivalTables holds depths 0 to 64");

constexpr std::int32_t kSiblingsMax = 16;

}  // namespace

TreeSurvivals sequoia_survivals(std::span<const double> rank_rates, std::int32_t depth) {
  const SequoiaTrees trees(rank_rates, kAcceptanceNodesMax, depth);
  TreeSurvivals survivals;
  for (std::int32_t n = 0; n <= kAcceptanceNodesMax; ++n) {
    if (!trees.fits(n, depth)) {  // the full tree has fewer nodes
      survivals.push_back(survivals.back());
      continue;
    }
    std::vector<double>& survival = survivals.emplace_back(static_cast<std::size_t>(depth));
    const TreeShape shape = trees.shape(n, depth);
    struct Node {
      double value;
      std::size_t level, children;
    };
    std::vector<Node> nodes{{1.0, 0, 0}};  // the context, then the drafts
    for (const std::int32_t parent : shape.parents) {
      Node& above = nodes[static_cast<std::size_t>(std::int64_t{parent} + 1)];
      const Node node{above.value * rank_rates[above.children++], above.level + 1, 0};
      survival[node.level - 1] += node.value;
      nodes.push_back(node);
    }
  }
  return survivals;
}

std::vector<double> sibling_rates(double first_child) {
  std::vector<double> rates;
  double left = 1.0;  // the siblings before are all rejected
  for (std::int32_t b = 1; b <= kSiblingsMax && left > 0.0; ++b) {
    const double rate = first_child / b;
    if (left * rate > 0.0) rates.push_back(left * rate);
    left *= 1.0 - rate;
  }
  return rates;
}

TreeSurvivals position_survivals(std::span<const double> conditional, std::int32_t depth) {
  std::vector<std::vector<double>> rates;
  for (const double a : conditional.first(static_cast<std::size_t>(depth))) rates.push_back(sibling_rates(a));
  const DraftCandidates by_rank = [&](std::span<const Token> path, std::int32_t count) {
    std::vector<DraftCandidate> candidates;
    for (const double rate : rates[path.size()])
      if (std::ssize(candidates) < count) candidates.push_back({static_cast<Token>(candidates.size()), rate});
    return candidates;
  };
  TreeSurvivals survivals{std::vector<double>(static_cast<std::size_t>(depth))};
  ValuedTree best;
  if (depth > 0) best = opt_tree({kAcceptanceNodesMax, depth, 0.0}, by_rank);
  // Its best n nodes are the best tree of n nodes, for every n.
  std::vector<std::size_t> order(best.values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return best.values[a] > best.values[b]; });
  for (const std::size_t node : order) {
    survivals.push_back(survivals.back());
    const std::int32_t level = best.tree.depth(static_cast<std::int32_t>(node));
    survivals.back()[static_cast<std::size_t>(level - 1)] += best.values[node];
  }
  survivals.resize(kAcceptanceNodesMax + 1, survivals.back());
  return survivals;
}

const TreeSurvivalTables::OfDepth& TreeSurvivalTables::of_depth(std::int32_t depth) const {
  OfDepth& table = tables_[static_cast<std::size_t>(depth)];
  std::call_once(table.once, [&] {
    table.survivals = build_(depth);
    for (std::vector<double>& survival : table.survivals) {
      // Rounding may leave a level a bit above the one before it, or above 1.
      double before = 1.0;
      for (double& s : survival) before = s = std::min(s, before);
      std::vector<std::uint64_t>& thresholds = table.thresholds.emplace_back();
      for (const double s : survival) thresholds.push_back(word_threshold(s));
    }
  });
  return table;
}

}  // namespace draftproof
