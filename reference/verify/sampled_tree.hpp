// Draft trees whose tokens are drawn from a draft distribution. Proofs draft with these over exact numbers, and so can
// a drafter over doubles.
//
//   Distribution     distribution(path) -> DenseMasses<Number> [V], the draft distribution q after the tokens `path`
//   (std::span<const Token>),
//           which follow the context; or distribution(tree, node), which sees all nodes of the level that is drawn from
//   Chance  verify/chance.hpp
//
// Node i draws at the address (row = i, Purpose::draft_sample); paths that are merged afterwards draw at row = path *
// length + level. Siblings stand in the order in which they were drawn, which is what RRS, RRSw and traversal
// verification rely on.
//
// Assumptions that a verifier may make about the siblings of one node:
//   draw_iid_children                      independent draws from q (a repeated token is a sibling of its own)
//   draw_children_without_replacement      q, then q without the first token, and so on, renormalised
//   draw_merged_paths(Duplicates::merged)  the distinct tokens of independent draws, in order of first appearance: the
//                                          distribution of draws without replacement, their number being random
//   draw_merged_paths(Duplicates::kept)    independent draws again, their number being random
//   draw_greedy_children                   the k - 1 most probable, then one draw from the renormalised rest
//   top_k_children                         the k most probable; no randomness
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "reference/random/address.hpp"
#include "reference/verify/dense_rows.hpp"
#include "reference/verify/draft_tree.hpp"
#include "reference/verify/tree_shape.hpp"

namespace draftproof {

template <class Distribution>
auto row_at(const Distribution& distribution, const DraftTree& tree, std::int32_t node) {
  if constexpr (requires { distribution(tree, node); }) {
    return distribution(tree, node);
  } else {
    return distribution(tree.path(node));
  }
}

// Fills a shape with tokens: `add_children(tree, parent, count)` adds at most `count` children to a node of the tree.
// Nodes of the shape that get no token are left out with all that hangs from them.
template <class AddChildren>
DraftTree fill_shape(const TreeShape& shape, AddChildren add_children) {
  std::vector<std::vector<std::int32_t>> children(shape.parents.size() + 1);  // of shape node i at i + 1
  for (std::int32_t i = 0; i < shape.size(); ++i)
    children[DraftTree::row_after(shape.parents[static_cast<std::size_t>(i)])].push_back(i);
  constexpr std::int32_t kMissing = -2;
  std::vector<std::int32_t> filled(children.size(), kMissing);  // tree node of a shape node
  filled[0] = kRootNode;
  DraftTree tree;
  for (std::size_t row = 0; row < children.size(); ++row) {
    if (filled[row] == kMissing || children[row].empty()) continue;
    const std::int32_t first = tree.size();
    add_children(tree, filled[row], static_cast<std::int32_t>(children[row].size()));
    for (std::int32_t b = 0; first + b < tree.size(); ++b)
      filled[DraftTree::row_after(children[row][static_cast<std::size_t>(b)])] = first + b;
  }
  return tree;
}

// `count` children of one node, added to the tree. masses: q [V] at that node.
template <class Number, class Chance>
void add_iid_children(DraftTree& tree, std::int32_t parent, std::int32_t count, const DenseMasses<Number>& masses,
                      Chance& chance) {
  for (std::int32_t b = 0; b < count; ++b)
    tree.add(chance.draw(masses, static_cast<std::uint32_t>(tree.size()), Purpose::draft_sample), parent);
}

// Fewer than `count` where the support of q is exhausted.
template <class Number, class Chance>
void add_children_without_replacement(DraftTree& tree, std::int32_t parent, std::int32_t count,
                                      DenseMasses<Number> masses, Chance& chance) {
  for (std::int32_t b = 0; b < count && total_of(masses) > 0; ++b) {
    const Token token = chance.draw(masses, static_cast<std::uint32_t>(tree.size()), Purpose::draft_sample);
    tree.add(token, parent);
    masses[static_cast<std::size_t>(token)] = 0;
  }
}

// The first count - 1 are the most probable of q, the last is drawn from the rest. Fewer than `count`: the support of q
// is exhausted, and all of them are deterministic.
template <class Number, class Chance>
void add_greedy_children(DraftTree& tree, std::int32_t parent, std::int32_t count, DenseMasses<Number> masses,
                         Chance& chance) {
  for (const Token token : most_probable_tokens(masses, static_cast<std::size_t>(count - 1))) {
    tree.add(token, parent);
    masses[static_cast<std::size_t>(token)] = 0;
  }
  if (total_of(masses) > 0)
    tree.add(chance.draw(masses, static_cast<std::uint32_t>(tree.size()), Purpose::draft_sample), parent);
}

// Every child an independent draw. With chain_shape this is chain drafting.
template <class Distribution, class Chance>
DraftTree draw_iid_children(const Distribution& distribution, const TreeShape& shape, Chance& chance) {
  return fill_shape(shape, [&](DraftTree& tree, std::int32_t parent, std::int32_t count) {
    add_iid_children(tree, parent, count, row_at(distribution, tree, parent), chance);
  });
}

template <class Distribution, class Chance>
DraftTree draw_chain(const Distribution& distribution, std::int32_t length, Chance& chance) {
  return draw_iid_children(distribution, chain_shape(length), chance);
}

template <class Distribution, class Chance>
DraftTree draw_children_without_replacement(const Distribution& distribution, const TreeShape& shape, Chance& chance) {
  return fill_shape(shape, [&](DraftTree& tree, std::int32_t parent, std::int32_t count) {
    add_children_without_replacement(tree, parent, count, row_at(distribution, tree, parent), chance);
  });
}

template <class Distribution, class Chance>
DraftTree draw_greedy_children(const Distribution& distribution, const TreeShape& shape, Chance& chance) {
  return fill_shape(shape, [&](DraftTree& tree, std::int32_t parent, std::int32_t count) {
    add_greedy_children(tree, parent, count, row_at(distribution, tree, parent), chance);
  });
}

// The k most probable tokens of positive probability as children: no randomness.
template <class Distribution>
DraftTree top_k_children(const Distribution& distribution, const TreeShape& shape) {
  return fill_shape(shape, [&](DraftTree& tree, std::int32_t parent, std::int32_t count) {
    for (const Token token : most_probable_tokens(row_at(distribution, tree, parent), static_cast<std::size_t>(count)))
      tree.add(token, parent);
  });
}

// Independent paths [num_paths][length].
template <class Distribution, class Chance>
std::vector<std::vector<Token>> draw_iid_paths(const Distribution& distribution, std::int32_t num_paths,
                                               std::int32_t length, Chance& chance) {
  std::vector<std::vector<Token>> paths(static_cast<std::size_t>(num_paths));
  std::uint32_t row = 0;
  for (std::vector<Token>& path : paths)
    for (std::int32_t level = 0; level < length; ++level)
      path.push_back(chance.draw(distribution(path), row++, Purpose::draft_sample));
  return paths;
}

enum class Duplicates : std::uint8_t {
  merged,  // the distinct tokens, each once
  kept,    // a repeated token is one more sibling; whatever follows hangs from the first of its name
};

// The prefix tree of paths, breadth first, siblings in order of first appearance. With Duplicates::kept the siblings at
// a prefix are all the tokens that the paths through this prefix continue with. That repetitions are leaves costs
// nothing where siblings are tried in order: once rejected, a token has no residual mass left.
inline DraftTree merge_paths(const std::vector<std::vector<Token>>& paths, Duplicates duplicates) {
  DraftTree tree;
  std::vector<std::int32_t> node(paths.size(), kRootNode);  // where each path has arrived
  std::size_t length = 0;
  for (const std::vector<Token>& path : paths) length = std::max(length, path.size());
  for (std::size_t level = 0; level < length; ++level) {
    // Grouped by parent, in the order of the parents, so that the nodes come out breadth first.
    std::map<std::int32_t, std::vector<std::size_t>> paths_through;
    for (std::size_t i = 0; i < paths.size(); ++i)
      if (level < paths[i].size()) paths_through[node[i]].push_back(i);
    for (const auto& [parent, members] : paths_through) {
      std::map<Token, std::int32_t> first_of_token;
      for (const std::size_t i : members) {
        const Token token = paths[i][level];
        const auto [found, is_new] = first_of_token.try_emplace(token, tree.size());
        if (is_new || duplicates == Duplicates::kept) tree.add(token, parent);
        node[i] = found->second;
      }
    }
  }
  return tree;
}

template <class Distribution, class Chance>
DraftTree draw_merged_paths(const Distribution& distribution, std::int32_t num_paths, std::int32_t length,
                            Chance& chance, Duplicates duplicates = Duplicates::merged) {
  return merge_paths(draw_iid_paths(distribution, num_paths, length, chance), duplicates);
}

}  // namespace draftproof
