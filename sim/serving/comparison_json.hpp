// A comparison as the JSON document of `draftproof sim` (docs/json.md), without its envelope.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "sim/serving/comparison.hpp"
#include "sim/serving/scenario_request.hpp"

namespace draftproof {

nlohmann::ordered_json sim_json(const std::string& path, const Scenario& scenario,
                                std::span<const PolicyReport> reports, std::span<const LoadPoint> loads = {});

}  // namespace draftproof
