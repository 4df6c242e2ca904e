#include "sim/acceptance/context_decay.hpp"

#include <algorithm>
#include <cmath>

#include "sim/acceptance/survival_table.hpp"

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
  if (step == 0) return n;
  RandomBlock words{};
  for (std::int32_t i = 0; i < n; ++i) {
    if (i % 4 == 0)
      words =
          acceptance_block(state.seed, AcceptanceWords::context, place.output_len, static_cast<std::uint32_t>(i / 4));
    if (words.word[i % 4] >= keep_below_[step]) return i;
  }
  return n;
}

std::vector<double> ContextDecay::thinned(std::vector<double> survival, std::int32_t context_len) const {
  double product = 1.0;
  for (double& s : survival) s *= product *= factor(context_len);
  return survival;
}

std::vector<double> ContextDecay::survival(std::int32_t nodes, std::int32_t depth, std::int32_t context_len) const {
  return thinned(model_->survival(nodes, depth, context_len), context_len);
}

std::vector<double> ContextDecay::survival_in_run(std::int32_t nodes, std::int32_t depth,
                                                  std::int32_t context_len) const {
  return thinned(model_->survival_in_run(nodes, depth, context_len), context_len);
}

}  // namespace draftproof
