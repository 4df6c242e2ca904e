#include "engine/metrics/acceptance_json.hpp"

#include "base/json_values.hpp"

namespace draftproof {
namespace {

using Json = nlohmann::ordered_json;

Json rates(const std::vector<std::optional<RateEstimate>>& estimates) {
  return json_list(estimates, [](const auto& estimate) { return estimate ? Json(estimate->rate) : Json(nullptr); });
}

Json errors(const std::vector<std::optional<RateEstimate>>& estimates) {
  return json_list(estimates,
                   [](const auto& estimate) { return estimate ? or_null(estimate->standard_error) : Json(nullptr); });
}

}  // namespace

Json acceptance_by_position_json(const AcceptanceMetrics& metrics) {
  return {{"conditional", rates(metrics.conditional)},
          {"unconditional", rates(metrics.unconditional)},
          {"conditional_standard_error", errors(metrics.conditional)},
          {"unconditional_standard_error", errors(metrics.unconditional)}};
}

Json tokens_per_step_json(std::span<const AcceptanceCounts> requests) {
  const AcceptanceMetrics metrics = acceptance_metrics(requests);
  return metrics.counts.steps > 0 ? Json(metrics.tokens_per_step) : Json(nullptr);
}

}  // namespace draftproof
