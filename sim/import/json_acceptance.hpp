// Acceptance in one JSON document of a server or a benchmark, wherever in it it lies (result_json.hpp lists the forms).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/import/acceptance_data.hpp"
#include "sim/import/server_setup.hpp"

namespace draftproof {

// The runs of one configuration: those under one model, method and number of drafts, as far as the objects
// around them name these.
struct JsonRuns {
  std::vector<AcceptanceWindow> windows, histograms;
  std::size_t longest = 0;                             // draft that a histogram knows of; another may end before it
  std::int64_t draft_tokens = 0, accepted_tokens = 0;  // of counted windows
};

// The acceptance in documents, before the number of configurations is known.
struct JsonAcceptance {
  std::set<std::string> formats;
  std::map<std::string, JsonRuns> runs;  // by configuration; "": not said
  LoggedDraft form;                      // of the server's arguments
  std::vector<ThroughputWindow> throughput;
  std::set<std::string> models;              // that benchmarks name
  std::set<std::int64_t> loads;              // requests at a time that they keep running
  bool of_all_steps = false;                 // lengths are of steps without a draft too
  std::optional<AcceptanceData> of_project;  // a run of draftproof's own

  bool empty() const { return runs.empty() && !of_project; }
  void add(JsonAcceptance&& other);
};

// Adds what the document says. Errors (input) at `name`: counts that contradict one another, a number that is none.
void collect_acceptance(const nlohmann::json& document, const std::string& name, JsonAcceptance& all);

}  // namespace draftproof
