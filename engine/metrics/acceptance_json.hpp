// Acceptance by position as JSON (docs/json.md, "acceptance_by_position").
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "engine/metrics/acceptance.hpp"

namespace draftproof {

nlohmann::ordered_json acceptance_by_position_json(const AcceptanceMetrics& metrics);

}  // namespace draftproof
