// The engine's metrics as Prometheus text (exposition format 0.0.4), under vLLM's names, so that dashboards and
// importers made for vLLM read them. Names, labels, types and buckets as in vLLM's V1 engine, 0.19 to 0.25
// (vllm/v1/metrics/loggers.py, vllm/v1/spec_decode/metrics.py); counters carry the suffix _total that its client
// library adds. What vLLM has not stands under draftproof: (metrics.hpp has the formulas).
#pragma once

#include <string>
#include <string_view>

#include "engine/metrics/metrics.hpp"

namespace draftproof {

// `model_name` is the label of that name; control characters, quotes and backslashes are escaped.
std::string prometheus_text(const EngineMetrics& metrics, std::string_view model_name);

}  // namespace draftproof
