// Acceptance from JSON documents: this project's own (demo, generate, verify: acceptance_by_position), and SGLang's
// answers and server info (spec_accept_length, avg_spec_accept_length, with spec_verify_ct steps where they are
// said), one document or one a line.
#pragma once

#include <string>
#include <string_view>

#include "sim/import/acceptance_data.hpp"

namespace draftproof {

// Errors (input) naming the line: no JSON; and a document that has none of these, or rates that are not rates.
AcceptanceData read_result_json(std::string_view text, const std::string& name);

}  // namespace draftproof
