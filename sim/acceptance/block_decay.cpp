#include "sim/acceptance/block_decay.hpp"

#include <algorithm>
#include <cmath>

#include "sim/acceptance/survival_table.hpp"
#include "sim/acceptance/thinning.hpp"

namespace draftproof {

BlockDecay::BlockDecay(std::shared_ptr<const AcceptanceModel> model, std::int32_t trained, double factor)
    : model_(std::move(model)) {
  for (std::int32_t depth = 0; depth <= kAcceptanceDepthMax; ++depth)
    factors_[static_cast<std::size_t>(depth)] = std::pow(factor, std::max(depth - trained, 0));
}

std::int32_t BlockDecay::accepted(AcceptanceState& state, AcceptancePlace place, std::int32_t nodes,
                                  std::int32_t depth) const {
  const std::int32_t n = model_->accepted(state, place, nodes, depth);
  const double f = factor(depth);
  return f == 1.0 ? n : thinned(n, word_threshold(f), state, place, AcceptanceWords::block);
}

std::int32_t BlockDecay::accepted_with_confidences(AcceptanceState& state, AcceptancePlace place, std::int32_t depth,
                                                   std::vector<float>& confidences) const {
  const std::int32_t n = model_->accepted_with_confidences(state, place, depth, confidences);
  const double f = factor(depth);
  if (f == 1.0) return n;
  for (float& confidence : confidences) confidence *= static_cast<float>(f);
  return thinned(n, word_threshold(f), state, place, AcceptanceWords::block);
}

std::vector<double> BlockDecay::survival(std::int32_t nodes, std::int32_t depth, std::int32_t context_len) const {
  return thinned(model_->survival(nodes, depth, context_len), factor(depth));
}

std::vector<double> BlockDecay::survival_in_run(std::int32_t nodes, std::int32_t depth,
                                                std::int32_t context_len) const {
  return thinned(model_->survival_in_run(nodes, depth, context_len), factor(depth));
}

}  // namespace draftproof
