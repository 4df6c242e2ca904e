// The report on draft and target parameters as JSON (docs/json.md), for every command that has one.
#pragma once

#include "cli/shared/json_document.hpp"
#include "reference/step/consistency.hpp"

namespace draftproof {

// null where no rows were measured.
Json consistency_json(const ConsistencyReport& report);

}  // namespace draftproof
