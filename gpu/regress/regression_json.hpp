// A regression as the JSON document of `draftproof regress` (docs/json.md), without its envelope.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "gpu/regress/regression.hpp"

namespace draftproof::regress {

nlohmann::ordered_json to_json(const CaseResult& result);
nlohmann::ordered_json to_json(const RegressionReport& report, const std::string& executor);

// Such a row, and such a document, read again. Errors (input) at `where`: a key is missing or of another type.
CaseResult case_result_of(const nlohmann::ordered_json& row, const std::string& where);
RegressionReport regression_of(const nlohmann::ordered_json& document, const std::string& where);

}  // namespace draftproof::regress
