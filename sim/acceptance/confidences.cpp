#include "sim/acceptance/confidences.hpp"

#include <algorithm>
#include <cmath>

#include "sim/acceptance/rates.hpp"
#include "sim/acceptance/survival_table.hpp"
#include "sim/serving/variates.hpp"

namespace draftproof {

Confidences::Confidences(std::shared_ptr<const AcceptanceModel> model, double explained, double error,
                         std::uint64_t seed)
    : model_(std::move(model)), explained_(explained), odds_factor_(std::exp(error)), seed_(seed) {}

AcceptanceState Confidences::begin(std::uint64_t request) const {
  AcceptanceState state = model_->begin(request);
  if (state.seed == 0) state.seed = derive_seed(seed_, request);  // a recording has no random words
  return state;
}

const std::vector<double>& Confidences::conditional(std::int32_t depth) const {
  OfDepth& of_depth = rates_[static_cast<std::size_t>(depth)];
  std::call_once(of_depth.once,
                 [&] { of_depth.conditional = conditional_of(model_->survival_in_run(depth, depth), "confidence"); });
  return of_depth.conditional;
}

double Confidences::draw(double rate, bool accepted, const AcceptanceState& state, std::int32_t output_len,
                         std::int32_t slot) const {
  if (explained_ == 0.0 || rate == 0.0 || rate == 1.0) return rate;
  if (explained_ == 1.0) return accepted ? 1.0 : 0.0;
  const double kappa = 1.0 / explained_ - 1.0;
  // Streams of variates of this request, behind those of the workload.
  constexpr std::int32_t kFirstStream = 16;
  const auto gamma = [&](std::int32_t stream, double shape) {
    const VariateAddress address{state.seed, static_cast<std::uint64_t>(output_len),
                                 static_cast<VariateStream>(kFirstStream + stream)};
    return shape * gamma_variate(address, shape);
  };
  const double of_accepted = gamma(2 * slot, kappa * rate + (accepted ? 1.0 : 0.0));
  const double of_rejected = gamma(2 * slot + 1, kappa * (1.0 - rate) + (accepted ? 0.0 : 1.0));
  return of_accepted / (of_accepted + of_rejected);  // one of the shapes is at least 1: the sum is above 0
}

std::int32_t Confidences::accepted_with_confidences(AcceptanceState& state, AcceptancePlace place, std::int32_t depth,
                                                    std::vector<float>& confidences) const {
  const std::int32_t n = model_->accepted(state, place, depth, depth);
  const std::vector<double>& rates = conditional(depth);
  confidences.clear();
  for (std::int32_t slot = 0; slot < depth; ++slot) {
    const double rate = rates[static_cast<std::size_t>(slot)];
    bool accepted = slot < n;
    if (slot > n) {
      const RandomBlock block =
          acceptance_block(state.seed, AcceptanceWords::confidence, place.output_len, static_cast<std::uint32_t>(slot));
      accepted = block.word[0] < word_threshold(rate);
    }
    const double c = draw(rate, accepted, state, place.output_len, slot);
    confidences.push_back(static_cast<float>(odds_factor_ * c / (odds_factor_ * c + 1.0 - c)));
  }
  return n;
}

}  // namespace draftproof
