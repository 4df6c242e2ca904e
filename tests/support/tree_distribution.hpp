// Random draft distributions for tree builders: a pure function of the path, with ties, certainties and impossible
// tokens.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "engine/draft/tree_builders/dynamic_trees.hpp"
#include "tests/support/test_random.hpp"

namespace draftproof {

// Probabilities [vocab_size] in eighths.
inline std::vector<double> tree_distribution(std::uint64_t seed, std::int64_t vocab_size, std::span<const Token> path) {
  std::uint64_t key = seed * 8191 + 1;
  for (const Token token : path) key = key * 31 + 1 + static_cast<std::uint64_t>(token);
  TestRandom random(key);
  std::vector<double> distribution(static_cast<std::size_t>(vocab_size), 0.0);
  if (random.chance(0.2)) {
    distribution[static_cast<std::size_t>(random.below(vocab_size))] = 1.0;
    return distribution;
  }
  for (int i = 0; i < 8; ++i) distribution[static_cast<std::size_t>(random.below(vocab_size))] += 0.125;
  return distribution;
}

inline DraftCandidates tree_candidates(std::uint64_t seed, std::int64_t vocab_size) {
  return [=](std::span<const Token> path, std::int32_t count) {
    return candidates_of(tree_distribution(seed, vocab_size, path), count);
  };
}

// Every node of positive probability down to `depth_max`, with the product of the probabilities on its path.
inline void add_all_nodes(std::uint64_t seed, std::int64_t vocab_size, std::size_t depth_max, std::vector<Token>& path,
                          double value, std::map<std::vector<Token>, double>& nodes) {
  if (path.size() == depth_max) return;
  const std::vector<double> distribution = tree_distribution(seed, vocab_size, path);
  for (std::size_t i = 0; i < distribution.size(); ++i) {
    if (distribution[i] == 0.0) continue;
    path.push_back(static_cast<Token>(i));
    nodes[path] = value * distribution[i];
    add_all_nodes(seed, vocab_size, depth_max, path, value * distribution[i], nodes);
    path.pop_back();
  }
}

// The largest sum of values of `n` nodes that are closed under ancestors, by trying all such sets: nodes are decided in
// the order of the map, where a prefix comes before what it begins.
inline double best_closed_sum(const std::map<std::vector<Token>, double>& nodes, std::size_t n) {
  std::vector<std::pair<std::vector<Token>, double>> list(nodes.begin(), nodes.end());
  std::vector<std::vector<Token>> chosen;
  double best = -1.0;
  const auto decide = [&](auto self, std::size_t i, double sum) -> void {
    if (chosen.size() == n) best = sum > best ? sum : best;
    if (chosen.size() == n || i == list.size()) return;
    const std::vector<Token>& path = list[i].first;
    bool parent_is_chosen = path.size() == 1;
    for (const auto& other : chosen)
      parent_is_chosen = parent_is_chosen || std::vector<Token>(path.begin(), path.end() - 1) == other;
    if (parent_is_chosen) {
      chosen.push_back(path);
      self(self, i + 1, sum + list[i].second);
      chosen.pop_back();
    }
    self(self, i + 1, sum);
  };
  decide(decide, 0, 0.0);
  return best;
}

}  // namespace draftproof
