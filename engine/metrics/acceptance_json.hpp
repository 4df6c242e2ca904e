// Acceptance by position as JSON (docs/json/running.md, demo).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>

#include "engine/metrics/acceptance.hpp"

namespace draftproof {

nlohmann::ordered_json acceptance_by_position_json(const AcceptanceMetrics& metrics);
// Tokens received per target step of these requests (at least one); null without steps.
nlohmann::ordered_json tokens_per_step_json(std::span<const AcceptanceCounts> requests);

}  // namespace draftproof
