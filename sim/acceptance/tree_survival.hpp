// How deep a path of a draft tree is accepted, where the rates of siblings are known: trees are the best ones of their
// size and depth, by the builders of engine/draft.
//
// At most one child of a node is accepted, so P(i levels accepted) is the sum over the nodes of level i of the product
// of the rates along the path.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

namespace draftproof {

// Survival [n][level] of the best trees of n = 0 .. kAcceptanceNodesMax nodes and at most `depth` levels.
using TreeSurvivals = std::vector<std::vector<double>>;
using TreeSurvivalsOfDepth = std::function<TreeSurvivals(std::int32_t depth)>;

// Sequoia's vector: rank_rates[b] is the probability that the b-th child is the accepted one, the same at every node.
TreeSurvivals sequoia_survivals(std::span<const double> rank_rates, std::int32_t depth);

// From conditional rates by position [depth or more] of a chain, which is what the first child has. The b-th child of a
// node, the b - 1 before it rejected, is accepted with probability a_i / b. That is near Sequoia's published vector
// (0.634, then 0.29, 0.22, 0.11, 0.11 of what is left; the rule gives 0.32, 0.21, 0.16, 0.13), and turns the chain
// rates of EAGLE's Table 8 (2401.15077) into its tree's acceptance lengths with a median error of -1 % (-8 to +4 %).
TreeSurvivals position_survivals(std::span<const double> conditional, std::int32_t depth);

// The rates of the children of one node by that rule, best first.
std::vector<double> sibling_rates(double first_child);

// Computes the survivals of a depth when they are first asked for; from any thread.
class TreeSurvivalTables {
 public:
  explicit TreeSurvivalTables(TreeSurvivalsOfDepth build) : build_(std::move(build)) {}

  const std::vector<double>& survival(std::int32_t nodes, std::int32_t depth) const {
    return of_depth(depth).survivals[static_cast<std::size_t>(nodes)];
  }
  std::int32_t accepted(std::uint32_t word, std::int32_t nodes, std::int32_t depth) const {
    std::int32_t n = 0;
    for (const std::uint64_t threshold : of_depth(depth).thresholds[static_cast<std::size_t>(nodes)])
      n += word < threshold ? 1 : 0;
    return n;
  }

 private:
  struct OfDepth {
    std::once_flag once;
    TreeSurvivals survivals;
    std::vector<std::vector<std::uint64_t>> thresholds;
  };
  const OfDepth& of_depth(std::int32_t depth) const;

  TreeSurvivalsOfDepth build_;
  mutable std::array<OfDepth, 65> tables_;
};

}  // namespace draftproof
