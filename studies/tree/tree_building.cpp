#include "studies/tree/tree_building.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <tuple>

#include "base/error.hpp"
#include "base/split.hpp"
#include "engine/draft/tree_builders/dynamic_trees.hpp"
#include "engine/draft/tree_builders/sequoia_tree.hpp"
#include "reference/verify/sampled_tree.hpp"
#include "sim/acceptance/tree_survival.hpp"

namespace draftproof {
namespace {

constexpr std::array kBuilders{TreeBuilder::chain,  TreeBuilder::fixed,    TreeBuilder::sequoia,
                               TreeBuilder::eagle2, TreeBuilder::opt_tree, TreeBuilder::paths};
constexpr std::array<std::string_view, kBuilders.size()> kNames{"chain",  "static",   "sequoia",
                                                                "eagle2", "opt_tree", "paths"};

bool fits(TreeBuilder builder, const VerifierInfo& info) {
  if (!info.lossless) return false;
  if (builder == TreeBuilder::paths) return info.takes_paths();
  if (info.takes_paths()) return false;
  if (builder == TreeBuilder::chain) return true;
  if (info.draft == DraftForm::chain) return false;
  return !chooses_nodes(builder) || info.proposal == DraftSampling::any;
}

// Medusa's static trees (Cai et al. 2401.10774, section 3.1): the path (i_1, ..., i_d) is the node that takes the
// i_1-th best candidate of depth 1, then the i_2-th of depth 2, and so on, ranks from 0.
TreeShape static_shape(std::int32_t nodes, const TreeLimits& limits) {
  using IndexPath = std::vector<std::int32_t>;
  // Sorted by (sum of rank + 1, length, ranks): a path's prefixes come before it.
  using Entry = std::tuple<std::int32_t, std::size_t, IndexPath>;
  const auto entry = [](IndexPath path) {
    std::int32_t cost = 0;
    for (const std::int32_t rank : path) cost += rank + 1;
    const std::size_t length = path.size();
    return Entry{cost, length, std::move(path)};
  };
  std::vector<IndexPath> paths;
  for (std::set<Entry> open{entry({0})}; !open.empty() && std::ssize(paths) < nodes;) {
    const IndexPath path = std::get<2>(open.extract(open.begin()).value());
    paths.push_back(path);
    if (std::ssize(path) < limits.depth) {
      IndexPath child = path;
      child.push_back(0);
      open.insert(entry(std::move(child)));
    }
    if (path.back() + 1 < limits.top_k) {
      IndexPath sibling = path;
      ++sibling.back();
      open.insert(entry(std::move(sibling)));
    }
  }
  // Breadth first.
  std::ranges::sort(paths, {}, [](const IndexPath& path) { return std::pair(path.size(), path); });
  TreeShape shape;
  for (const IndexPath& path : paths) {
    const auto parent = std::ranges::find(paths, IndexPath(path.begin(), path.end() - 1));
    shape.parents.push_back(path.size() == 1 ? kRootNode : static_cast<std::int32_t>(parent - paths.begin()));
  }
  return shape;
}

TreeShape sequoia_shape(std::int32_t nodes, const TreeLimits& limits, std::span<const double> rates) {
  const SequoiaTrees trees(rates, nodes, limits.depth);
  std::int32_t most = nodes;
  while (!trees.fits(most, limits.depth)) --most;
  return trees.shape(most, limits.depth);
}

}  // namespace

std::span<const TreeBuilder> tree_builders() {
  return kBuilders;
}

std::string_view name_of(TreeBuilder builder) {
  return kNames[static_cast<std::size_t>(builder)];
}

TreeBuilder parse_tree_builder(std::string_view name, const std::string& where) {
  const auto found = std::ranges::find(kNames, name);
  if (found != kNames.end()) return kBuilders[static_cast<std::size_t>(found - kNames.begin())];
  throw usage_error(where, "is '" + std::string(name) + "'; expected one of " + joined(kNames, ", "));
}

std::vector<VerifierChoice> verifiers_for(TreeBuilder builder) {
  std::vector<VerifierChoice> choices;
  for (const VerifierInfo& info : verifiers())
    if (fits(builder, info)) choices.emplace_back(info.verifier);
  return choices;
}

void require_fit(TreeBuilder builder, const VerifierChoice& verifier, const std::string& where) {
  if (fits(builder, verifier.info())) return;
  throw usage_error(where, "is " + std::string(verifier.info().name) + ", which " +
                               (verifier.info().lossless ? "does not take what builder " : "is lossy: builder ") +
                               std::string(name_of(builder)) +
                               (verifier.info().lossless ? " makes; expected one of " : " is shown with one of ") +
                               verifier_names([&](const VerifierInfo& info) { return fits(builder, info); }));
}

TreeShape shape_of(TreeBuilder builder, std::int32_t nodes, const TreeLimits& limits, const std::string& shape,
                   std::span<const double> rates, const VerifierChoice& verifier) {
  switch (builder) {
    case TreeBuilder::chain:
      return chain_shape(nodes);
    case TreeBuilder::paths:
      return chain_shape(std::max(1, nodes / static_cast<std::int32_t>(verifier.parameter("paths"))));
    case TreeBuilder::fixed:
      return shape.empty() ? static_shape(nodes, limits) : parse_tree(shape, "--shape");
    case TreeBuilder::sequoia:
      return sequoia_shape(nodes, limits, rates);
    case TreeBuilder::eagle2:
    case TreeBuilder::opt_tree:
      break;
  }
  return {};
}

DraftPlan plan_of(TreeBuilder builder, TreeShape shape, const VerifierChoice& verifier) {
  const bool takes_shape = builder != TreeBuilder::paths;
  const auto length = static_cast<int>(shape.size());
  return plan_for(verifier, takes_shape ? std::optional(shape) : std::nullopt, length, "--builder");
}

DraftTree likeliest_tree(TreeBuilder builder, std::int32_t nodes, const TreeLimits& limits, const TreeShape& shape,
                         DraftPair& pair) {
  const DraftCandidates draft = [&](std::span<const Token> path, std::int32_t count) {
    return candidates_of(pair.draft(path), count);
  };
  if (builder == TreeBuilder::eagle2) return eagle2_tree({limits.top_k, limits.depth - 1, nodes}, draft).tree;
  if (builder == TreeBuilder::opt_tree) return opt_tree({nodes, limits.depth, 0.0}, draft).tree;
  return top_k_children([&](std::span<const Token> path) -> const PairRow& { return pair.draft(path); }, shape);
}

std::vector<double> rank_rates(DraftPair& pair, std::int32_t top_k, DraftSampling sampling) {
  const std::vector<std::pair<PairRow, PairRow>> examples = pair.examples();
  const auto count = static_cast<double>(examples.size());
  if (sampling != DraftSampling::any) {
    double overlap = 0.0;
    for (const auto& [p, q] : examples)
      for (std::size_t i = 0; i < p.size(); ++i) overlap += std::min(p[i], q[i]) / count;
    std::vector<double> rates = sibling_rates(std::min(overlap, 1.0));
    rates.resize(std::min(rates.size(), static_cast<std::size_t>(top_k)));
    return rates;
  }
  std::vector<double> rates(static_cast<std::size_t>(top_k), 0.0);
  for (const auto& [p, q] : examples) {
    const std::vector<Token> ranked = most_probable_tokens(q, rates.size());
    for (std::size_t r = 0; r < ranked.size(); ++r) rates[r] += p[static_cast<std::size_t>(ranked[r])] / count;
  }
  // Rounded to floats, the probabilities of a row may sum to a little more than 1.
  const double total = std::accumulate(rates.begin(), rates.end(), 0.0);
  for (double& rate : rates) rate /= std::max(total, 1.0);
  return rates;
}

}  // namespace draftproof
