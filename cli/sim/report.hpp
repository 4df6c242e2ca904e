// What `draftproof sim` answers: as JSON (docs/json.md) and as a table.
#pragma once

#include <ostream>
#include <span>
#include <string>

#include "cli/shared/json_document.hpp"
#include "sim/serving/comparison.hpp"

namespace draftproof {

Json sim_json(const std::string& path, const Scenario& scenario, std::span<const PolicyReport> reports);
void print_sim_report(std::ostream& out, const Scenario& scenario, std::span<const PolicyReport> reports);

// null where nothing was measured.
Json estimate_json(const Estimate& estimate);

}  // namespace draftproof
