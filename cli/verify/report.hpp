// Results of `draftproof verify`, as text, as JSON (docs/json.md) and as the metadata of its result file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/shared/json_document.hpp"
#include "cli/verify/lossy_rules.hpp"
#include "engine/metrics/acceptance.hpp"
#include "reference/step/consistency.hpp"
#include "reference/step/impossible_drafts.hpp"
#include "reference/trace/result_comparison.hpp"
#include "reference/trace/trace.hpp"

namespace draftproof {

struct VerifyRun {
  explicit VerifyRun(Trace opened) : trace(std::move(opened)) {}

  Trace trace;
  std::string input_sha256;
  VerifyResult result;
  AcceptanceMetrics acceptance;
  ImpossibleDrafts impossible;
  ConsistencyReport consistency;  // no rows where the drafts' own parameters are not known
  std::optional<ResultComparison> comparison;
  std::vector<LossyRule> lossy;                           // with --lossy
  std::vector<std::optional<double>> guidance_distances;  // of every row, with guidance of probabilities
  std::optional<Departure> departure;  // of the first request that differs, where the engine's own numbers are known
  int threads = 1;
  double open_ms = 0.0;
  double verify_ms = 0.0;
};

// K is the largest number of drafts of a request; each request is a step.
AcceptanceMetrics measure_acceptance(std::span<const VerifyRequest> requests, const VerifyResult& result);

// Metadata of the result file: version, settings, SHA-256 of the input.
std::map<std::string, std::string> result_metadata(const VerifyRun& run);

// Each finding as a sentence; none means exit code 0.
std::vector<std::string> findings_of(const VerifyRun& run);

Json verify_json(const VerifyRun& run, const std::vector<std::string>& command_line);

void print_verify_summary(std::ostream& out, const VerifyRun& run);

}  // namespace draftproof
