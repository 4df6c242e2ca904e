#include "engine/draft/tree_builders/static_tree.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"

namespace draftproof {
namespace {

std::string text_of_ranks(const IndexPath& path) {
  std::string text = "[";
  for (const std::int32_t rank : path) text += (text.size() > 1 ? ", " : "") + std::to_string(rank);
  return text + "]";
}

bool stands_before(const IndexPath& a, const IndexPath& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

}  // namespace

StaticTree make_static_tree(std::vector<IndexPath> paths, const std::string& where) {
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (paths[i].empty())
      throw input_error(where, "path " + std::to_string(i) + " is empty; the context itself is not listed");
    for (const std::int32_t rank : paths[i])
      if (rank < 0)
        throw input_error(where, "path " + std::to_string(i) + ", " + text_of_ranks(paths[i]) +
                                     ", has a negative rank; ranks count from 0");
  }
  StaticTree tree;
  std::sort(paths.begin(), paths.end(), stands_before);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const IndexPath& path = paths[i];
    if (i > 0 && paths[i - 1] == path)
      throw input_error(where, "path " + text_of_ranks(path) + " is given twice; each node must be given once");
    const IndexPath parent(path.begin(), path.end() - 1);
    std::int32_t parent_node = kRootNode;
    if (!parent.empty()) {
      const auto found = std::lower_bound(paths.begin(), paths.end(), parent, stands_before);
      if (found == paths.end() || *found != parent)
        throw input_error(
            where, "path " + text_of_ranks(path) + " has no parent; " + text_of_ranks(parent) + " must be given too");
      parent_node = static_cast<std::int32_t>(found - paths.begin());
    }
    tree.shape.parents.push_back(parent_node);
  }
  tree.paths = std::move(paths);
  return tree;
}

DraftTree fill_static_tree(const StaticTree& tree, std::span<const std::vector<Token>> candidates,
                           const std::string& where) {
  for (std::size_t depth = 0; depth < candidates.size(); ++depth) {
    std::set<Token> seen;
    for (const Token token : candidates[depth])
      if (!seen.insert(token).second)
        throw input_error(where, "the candidates of depth " + std::to_string(depth + 1) + " hold token " +
                                     std::to_string(token) + " twice; they must be distinct");
  }
  DraftTree filled;
  for (std::int32_t node = 0; node < tree.shape.size(); ++node) {
    const auto depth = static_cast<std::size_t>(tree.depth(node));
    const auto rank = static_cast<std::size_t>(tree.rank(node));
    const std::size_t given = depth <= candidates.size() ? candidates[depth - 1].size() : 0;
    if (rank >= given)
      throw input_error(where, "path " + text_of_ranks(tree.paths[static_cast<std::size_t>(node)]) + " needs " +
                                   std::to_string(rank + 1) + " candidates of depth " + std::to_string(depth) +
                                   ", and there are " + std::to_string(given));
    filled.add(candidates[depth - 1][rank], tree.shape.parents[static_cast<std::size_t>(node)]);
  }
  return filled;
}

}  // namespace draftproof
