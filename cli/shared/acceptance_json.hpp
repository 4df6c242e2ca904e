// Acceptance rates by draft position as JSON: `acceptance_by_position` of all documents that have one.
#pragma once

#include "cli/shared/json_document.hpp"
#include "reference/engine/acceptance.hpp"

namespace draftproof {

Json acceptance_by_position_json(const AcceptanceMetrics& metrics);

}  // namespace draftproof
