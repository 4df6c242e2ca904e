#include "sim/acceptance/regime_chain.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/acceptance/survival_table.hpp"

namespace draftproof {
namespace {

std::vector<std::uint64_t> cumulative_thresholds(const std::vector<double>& distribution) {
  std::vector<std::uint64_t> below;
  double sum = 0.0;
  for (const double p : distribution) below.push_back(word_threshold(std::min(sum += p, 1.0)));
  below.back() = word_threshold(1.0);
  return below;
}

// The words of the tokens of a text, four a block.
class TextWords {
 public:
  explicit TextWords(std::uint64_t request_seed) : seed_(request_seed) {}
  std::uint32_t operator[](std::int32_t position) {
    if (position / 4 != held_) {
      held_ = position / 4;
      block_ = acceptance_block(seed_, AcceptanceWords::text, held_);
    }
    return block_.word[position % 4];
  }

 private:
  std::uint64_t seed_;
  std::int32_t held_ = -1;
  RandomBlock block_{};
};

}  // namespace

Regimes two_state_regimes(double good, double bad, double to_bad, double to_good) {
  const double changes = to_bad + to_good;
  const double share_bad = changes > 0.0 ? to_bad / changes : 0.5;
  return {{good, bad}, {1.0 - share_bad, share_bad}, {{1.0 - to_bad, to_bad}, {to_good, 1.0 - to_good}}};
}

Regimes entropy_regimes(double mean_nats, double gamma, double memory) {
  constexpr int kClasses = 16;
  constexpr int kPoints = 64;  // of a class, equally probable
  Regimes regimes;
  for (int c = 0; c < kClasses; ++c) {
    double sum = 0.0;
    for (int k = 0; k < kPoints; ++k) {
      const double quantile = (c + (k + 0.5) / kPoints) / kClasses;
      const double entropy = -mean_nats * std::log1p(-quantile);
      sum += std::max(0.0, 1.0 - std::sqrt(gamma * entropy));
    }
    regimes.rates.push_back(sum / kPoints);
    regimes.start.push_back(1.0 / kClasses);
    regimes.transition.emplace_back(kClasses, (1.0 - memory) / kClasses)[static_cast<std::size_t>(c)] += memory;
  }
  return regimes;
}

RegimeChain::RegimeChain(Regimes regimes, std::uint64_t seed)
    : regimes_(std::move(regimes)), seed_(seed), start_below_(cumulative_thresholds(regimes_.start)) {
  for (std::size_t r = 0; r < regimes_.rates.size(); ++r) {
    std::vector<double> joint;
    for (const double p : regimes_.transition[r]) joint.push_back(regimes_.rates[r] * p);
    for (const double p : regimes_.transition[r]) joint.push_back((1.0 - regimes_.rates[r]) * p);
    Outcomes& outcomes = outcomes_.emplace_back();
    outcomes.below = cumulative_thresholds(joint);
    for (std::size_t byte = 0; byte < outcomes.first.size(); ++byte) {
      std::size_t c = byte == 0 ? 0 : outcomes.first[byte - 1];
      while ((std::uint64_t{byte} << 24) >= outcomes.below[c]) ++c;
      outcomes.first[byte] = static_cast<std::uint8_t>(c);
    }
  }
}

std::int32_t RegimeChain::first_regime(std::uint64_t request_seed) const {
  const std::uint32_t word = acceptance_block(request_seed, AcceptanceWords::request, 0).word[0];
  std::size_t regime = 0;
  while (word >= start_below_[regime]) ++regime;
  return static_cast<std::int32_t>(regime);
}

AcceptanceState RegimeChain::begin(std::uint64_t request) const {
  const std::uint64_t seed = derive_seed(seed_, request);
  return {seed, first_regime(seed), 0};
}

std::int32_t RegimeChain::accepted(AcceptanceState& state, AcceptancePlace place, std::int32_t nodes,
                                   std::int32_t depth) const {
  require_draft_shape(nodes, depth);
  if (place.output_len < state.position) state = {state.seed, first_regime(state.seed), 0};
  TextWords words(state.seed);
  const auto num_regimes = static_cast<std::uint32_t>(outcomes_.size());
  const auto cell_at = [&](std::uint32_t regime, std::int32_t position) {
    return outcomes_[regime].cell(words[position]);
  };
  auto regime = static_cast<std::uint32_t>(state.choice);
  for (; state.position < place.output_len; ++state.position) {
    const std::uint32_t cell = cell_at(regime, state.position);
    regime = cell < num_regimes ? cell : cell - num_regimes;
  }
  state.choice = static_cast<std::int32_t>(regime);
  for (std::int32_t n = 0; n < depth; ++n) {
    regime = cell_at(regime, state.position + n);
    if (regime >= num_regimes) return n;  // rejected
  }
  return depth;
}

std::vector<double> RegimeChain::after_token(const std::vector<double>& regime_distribution) const {
  std::vector<double> next(regime_distribution.size());
  for (std::size_t from = 0; from < next.size(); ++from)
    for (std::size_t to = 0; to < next.size(); ++to)
      next[to] += regime_distribution[from] * regimes_.transition[from][to];
  return next;
}

std::vector<double> RegimeChain::survival_from(std::vector<double> regime_distribution, std::int32_t depth) const {
  std::vector<double> survival;
  for (std::int32_t i = 0; i < depth; ++i) {
    for (std::size_t r = 0; r < regime_distribution.size(); ++r) regime_distribution[r] *= regimes_.rates[r];
    survival.push_back(std::accumulate(regime_distribution.begin(), regime_distribution.end(), 0.0));
    regime_distribution = after_token(regime_distribution);
  }
  return survival;
}

// After j accepted drafts comes a rejected one, in whose place stands the recovered token; after the last one comes the
// bonus token, which nothing was drafted for.
std::vector<double> RegimeChain::after_step(std::vector<double> reached, std::int32_t depth) const {
  std::vector<double> next(reached.size());
  for (std::int32_t i = 0; i <= depth; ++i) {
    std::vector<double> ends(reached);
    for (std::size_t r = 0; i < depth && r < reached.size(); ++r) {
      ends[r] *= 1.0 - regimes_.rates[r];
      reached[r] *= regimes_.rates[r];
    }
    const std::vector<double> begins = after_token(ends);
    for (std::size_t r = 0; r < next.size(); ++r) next[r] += begins[r];
    if (i < depth) reached = after_token(reached);
  }
  return next;
}

std::vector<double> RegimeChain::survival(std::int32_t nodes, std::int32_t depth, std::int32_t) const {
  require_draft_shape(nodes, depth);
  return survival_from(regimes_.start, depth);
}

std::vector<double> RegimeChain::survival_in_run(std::int32_t nodes, std::int32_t depth, std::int32_t) const {
  require_draft_shape(nodes, depth);
  // The stationary distribution over steps; the mean with the step before also settles chains that alternate.
  std::vector<double> at_steps = regimes_.start;
  constexpr int kIterationsMax = 100'000;
  for (int iteration = 0; iteration < kIterationsMax; ++iteration) {
    const std::vector<double> next = after_step(at_steps, depth);
    double change = 0.0;
    for (std::size_t r = 0; r < next.size(); ++r) {
      change += std::abs(next[r] - at_steps[r]);
      at_steps[r] = 0.5 * (at_steps[r] + next[r]);
    }
    if (change < 1e-14) break;
  }
  return survival_from(at_steps, depth);
}

}  // namespace draftproof
