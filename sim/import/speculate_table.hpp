// Acceptance from the table of `draftproof speculate`: of every drafter and temperature the chains of the most drafts,
// over all kinds of work.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/import/acceptance_data.hpp"

namespace draftproof {

struct DrafterAcceptance {
  std::string drafter;  // "suffix, T = 0"
  AcceptanceData data;
};

// Whether the document is such a table.
bool is_speculate_table(const nlohmann::json& document);
// In the order of the table. Rates of several kinds of work are weighted by their drafts, and their standard errors are
// those of independent samples. Errors (input) at `name`: no row of a chain that drafted, a row whose fields are
// not what they should be.
std::vector<DrafterAcceptance> acceptances_of_speculate(const nlohmann::json& document, const std::string& name);

}  // namespace draftproof
