#include "engine/metrics/acceptance_json.hpp"

#include <nlohmann/json.hpp>

namespace draftproof {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json rates(const std::vector<std::optional<RateEstimate>>& estimates) {
  Json list = Json::array();
  for (const auto& estimate : estimates) list.push_back(estimate ? Json(estimate->rate) : Json(nullptr));
  return list;
}

Json errors(const std::vector<std::optional<RateEstimate>>& estimates) {
  Json list = Json::array();
  for (const auto& estimate : estimates)
    list.push_back(or_null(estimate ? estimate->standard_error : std::optional<double>()));
  return list;
}

}  // namespace

Json acceptance_by_position_json(const AcceptanceMetrics& metrics) {
  return {{"conditional", rates(metrics.conditional)},
          {"unconditional", rates(metrics.unconditional)},
          {"conditional_standard_error", errors(metrics.conditional)},
          {"unconditional_standard_error", errors(metrics.unconditional)}};
}

}  // namespace draftproof
