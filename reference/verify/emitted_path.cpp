#include "reference/verify/emitted_path.hpp"

#include <algorithm>

namespace draftproof {

EmittedPath find_emitted_path(const DraftTree& tree, std::span<const Token> accepted) {
  // Nodes whose path is a prefix of the tokens, by depth; parents come before their children.
  std::vector<std::size_t> depth(static_cast<std::size_t>(tree.size()), 0);  // 0: not one of them
  std::vector<std::int32_t> deepest;  // the first node of the greatest depth, or nothing
  std::size_t reached = 0;
  for (std::int32_t node = 0; node < tree.size(); ++node) {
    const auto i = static_cast<std::size_t>(node);
    const std::int32_t parent = tree.parents[i];
    if (parent != kRootNode && depth[static_cast<std::size_t>(parent)] == 0) continue;
    const std::size_t above = parent == kRootNode ? 0 : depth[static_cast<std::size_t>(parent)];
    if (above >= accepted.size() || tree.tokens[i] != accepted[above]) continue;
    depth[i] = above + 1;
    if (depth[i] <= reached) continue;
    reached = depth[i];
    deepest.assign(1, node);
  }
  EmittedPath path;
  if (deepest.empty()) return path;
  for (std::int32_t node = deepest.front(); node != kRootNode; node = tree.parents[static_cast<std::size_t>(node)])
    path.nodes.push_back(node);
  std::reverse(path.nodes.begin(), path.nodes.end());
  path.ambiguous = static_cast<std::size_t>(std::count_if(depth.begin(), depth.end(),
                                                          [](std::size_t d) { return d > 0; })) > path.nodes.size();
  return path;
}

std::vector<Token> tokens_of(const DraftTree& tree, std::span<const std::int32_t> nodes) {
  std::vector<Token> tokens;
  for (const std::int32_t node : nodes) tokens.push_back(tree.tokens[static_cast<std::size_t>(node)]);
  return tokens;
}

}  // namespace draftproof
