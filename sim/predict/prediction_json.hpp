// A prediction as the JSON document of `draftproof predict` (docs/json.md), without its envelope and files.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/predict/prediction_request.hpp"

namespace draftproof {

nlohmann::ordered_json prediction_json(const PredictionReport& report);

// "Llama-3.1-8B on 2 x H100 SXM 80GB, vLLM, drafter EAGLE-3".
std::string head_of(const PredictionReport& report);

}  // namespace draftproof
