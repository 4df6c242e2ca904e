// What `draftproof mutants --json` says, and the way back (docs/json.md).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "reference/exactness/mutants/run_mutants.hpp"

namespace draftproof {

nlohmann::ordered_json json_of(const MutantReport& report);

// What was found, without the hunts themselves, which no file holds. Input errors naming `where`: a missing key, a
// value of another type, a detector that is none.
MutantReport report_of(const nlohmann::ordered_json& json, const std::string& where);

}  // namespace draftproof
