#include "engine/draft/tree_builders/opt_tree.hpp"

#include <cmath>
#include <string>

#include "base/error.hpp"

namespace draftproof {

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
