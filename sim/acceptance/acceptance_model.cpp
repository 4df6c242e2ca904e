#include "sim/acceptance/acceptance_model.hpp"

#include <string>

#include "base/error.hpp"

namespace draftproof {

void refuse_draft_shape(std::int32_t nodes, std::int32_t depth) {
  throw usage_error("acceptance", "the draft has " + std::to_string(nodes) + " nodes on " + std::to_string(depth) +
                                      " levels; expected at most " + std::to_string(kAcceptanceNodesMax) + " nodes, " +
                                      std::to_string(kAcceptanceDepthMax) + " levels, and a node for every level");
}

}  // namespace draftproof
