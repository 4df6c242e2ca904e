// Results of `draftproof bugs --json`, written and read back (docs/json.md).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "exactness/bugs/run_bugs.hpp"

namespace draftproof {

nlohmann::ordered_json json_of(const BugReport& report);

// The report, without the hunts themselves, which no file holds. Input errors naming `where`: a missing key, a value of
// another type, a detector that is none.
BugReport report_of(const nlohmann::ordered_json& json, const std::string& where);

}  // namespace draftproof
