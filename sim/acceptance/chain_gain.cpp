#include "sim/acceptance/chain_gain.hpp"

#include "sim/acceptance/rates.hpp"

namespace draftproof {

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
