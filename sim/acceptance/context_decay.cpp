#include "sim/acceptance/context_decay.hpp"

#include <algorithm>
#include <cmath>

#include "sim/acceptance/survival_table.hpp"
#include "sim/acceptance/thinning.hpp"

namespace draftproof {

ContextDecay::ContextDecay(std::shared_ptr<const AcceptanceModel> model, std::int32_t trained, std::int32_t half)
    : model_(std::move(model)), trained_(trained), step_tokens_(std::max(1, half / 64)) {
  constexpr double kLeast = 1e-4;
  double factor = 1.0;
  for (std::int64_t step = 1; factor > kLeast; ++step) {
    factors_.push_back(factor);
    factor = std::exp2(-static_cast<double>(step) * step_tokens_ / half);
  }
  factors_.push_back(0.0);
  for (const double f : factors_) keep_below_.push_back(word_threshold(f));
}

std::size_t ContextDecay::step_of(std::int32_t context_len) const {
  if (context_len <= trained_) return 0;
  return std::min(static_cast<std::size_t>((context_len - trained_) / step_tokens_), factors_.size() - 1);
}

double ContextDecay::factor(std::int32_t context_len) const {
  return factors_[step_of(context_len)];
}

std::int32_t ContextDecay::accepted(AcceptanceState& state, AcceptancePlace place, std::int32_t nodes,
                                    std::int32_t depth) const {
  const std::int32_t n = model_->accepted(state, place, nodes, depth);
  const std::size_t step = step_of(place.context_len);
  return step == 0 ? n : thinned(n, keep_below_[step], state, place, AcceptanceWords::context);
}

std::int32_t ContextDecay::accepted_with_confidences(AcceptanceState& state, AcceptancePlace place, std::int32_t depth,
                                                     std::vector<float>& confidences) const {
  const std::int32_t n = model_->accepted_with_confidences(state, place, depth, confidences);
  const std::size_t step = step_of(place.context_len);
  if (step == 0) return n;
  for (float& confidence : confidences) confidence *= static_cast<float>(factors_[step]);
  return thinned(n, keep_below_[step], state, place, AcceptanceWords::context);
}

std::vector<double> ContextDecay::survival(std::int32_t nodes, std::int32_t depth, std::int32_t context_len) const {
  return thinned(model_->survival(nodes, depth, context_len), factor(context_len));
}

std::vector<double> ContextDecay::survival_in_run(std::int32_t nodes, std::int32_t depth,
                                                  std::int32_t context_len) const {
  return thinned(model_->survival_in_run(nodes, depth, context_len), factor(context_len));
}

}  // namespace draftproof
