// A scenario of what a server's log says: its server, the acceptance of its drafts, its load, its arrivals and lengths.
#pragma once

#include <string>
#include <vector>

#include "sim/predict/prediction_request.hpp"
#include "sim/serving/arrivals_file.hpp"
#include "sim/serving/scenario.hpp"

namespace draftproof {

struct LogScenario {
  std::string toml;                // of the scenario, which scenario.hpp reads; its trace is kTraceOfLog beside it
  ArrivalTrace arrivals;           // where the log has a line of each request; else none, and the load is closed
  std::string seen;                // what the log is, in a sentence
  std::vector<std::string> notes;  // what of it is assumed, in sentences
  double tokens_per_second = 0.0;  // that the log's server generated; 0: not said
};
inline constexpr const char* kTraceOfLog = "requests.csv";

// `request` is that of a prediction with this log. A log with the arrivals of requests (vLLM's "Added request ...",
// SGLang's "Receive: ...", with times) has them replayed, with mean lengths from its throughput; any other becomes a
// closed loop at its mean load, whose lengths are asked for where the log does not say them (request.prompt,
// request.output; 0: by the log). Errors as of inputs_of(); (usage): a length that nothing says, stages of a pipeline.
LogScenario scenario_of_log(const PredictionRequest& request);

// The scenario with some of its values changed, and its trace; nothing is read from a file.
Scenario read_scenario(const LogScenario& of_log, const ScenarioRequest& request);

// Arrivals as a file that arrivals_file.hpp reads.
std::string arrivals_csv(const ArrivalTrace& trace);

}  // namespace draftproof
