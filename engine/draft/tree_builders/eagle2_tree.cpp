#include "engine/draft/tree_builders/eagle2_tree.hpp"

#include <string>

#include "base/error.hpp"

namespace draftproof {

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

}  // namespace draftproof
