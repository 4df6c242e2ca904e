#include "sim/acceptance/rates.hpp"

#include <numeric>

#include "base/error.hpp"

namespace draftproof {

std::vector<double> survival_of(std::span<const double> conditional) {
  std::vector<double> survival(conditional.size());
  std::partial_sum(conditional.begin(), conditional.end(), survival.begin(), std::multiplies<>());
  return survival;
}

std::vector<double> conditional_of(std::span<const double> survival, const std::string& where) {
  std::vector<double> conditional;
  conditional.reserve(survival.size());
  double before = 1.0;
  for (const double s : survival) {
    if (!(s >= 0.0 && s <= before))
      throw input_error(where, "unconditional rate " + std::to_string(conditional.size() + 1) + " is " +
                                   std::to_string(s) + "; expected a number between 0 and the one before it, " +
                                   std::to_string(before));
    conditional.push_back(before > 0.0 ? s / before : 0.0);
    before = s;
  }
  return conditional;
}

double acceptance_length_of(std::span<const double> survival) {
  return std::accumulate(survival.begin(), survival.end(), 1.0);
}

double chain_tokens_per_step(std::span<const double> survival, double draft_share) {
  return 1.0 + draft_share * (acceptance_length_of(survival) - 1.0);
}

double chain_speedup(double tokens_per_step, std::int32_t drafts, const ChainCost& cost) {
  return tokens_per_step / (1.0 + cost.draft_share * cost.draft_cost * drafts);
}

BestChain best_chain(std::span<const double> tokens_per_step, const ChainCost& cost) {
  BestChain best;
  for (std::size_t drafts = 1; drafts < tokens_per_step.size(); ++drafts) {
    const auto k = static_cast<std::int32_t>(drafts);
    const double speedup = chain_speedup(tokens_per_step[drafts], k, cost);
    if (speedup > best.speedup) best = {k, speedup};
  }
  return best;
}

}  // namespace draftproof
