#include "sim/serving/scenario_request.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.hpp"
#include "base/printable.hpp"

namespace draftproof {
namespace {

// As TOML where it is, else a text: fixed:3, H100.
TomlValue value_of(const std::string& text, const std::string& where) {
  try {
    return parse_toml_value(text, where);
  } catch (const Error&) {
    return parse_toml_value(toml_quoted(text), where);
  }
}

}  // namespace

Scenario scenario_of(const ScenarioRequest& request) {
  TomlValue file = read_toml(request.file);
  std::set<std::string> changed;
  for (const std::string& change : request.changes) {
    const std::size_t equals = change.find('=');
    if (equals == 0 || equals == std::string::npos)
      throw usage_error("--set", "is " + in_quotes(change) + "; expected KEY=VALUE, as workload.arrivals.rate=12");
    const std::string key = change.substr(0, equals);
    if (!changed.insert(key).second)
      throw usage_error("--set", printable_line(key) + " is given several times; expected once");
    file = file.with(key, value_of(change.substr(equals + 1), "--set " + printable_line(change)));
  }
  Scenario scenario = read_scenario(file);
  if (request.seed) scenario.seed = *request.seed;
  if (request.replications) scenario.replications = *request.replications;
  return scenario;
}

Scenario with_load(Scenario scenario, double load, const std::string& where) {
  constexpr double kMost = 1e6;
  ArrivalOptions& arrivals = scenario.workload.arrivals;
  const bool closed = arrivals.kind == ArrivalKind::closed;
  if (!(load > 0.0 && load <= kMost) || (closed && load != std::floor(load)))
    throw usage_error(where, "is " + nlohmann::json(load).dump() + "; expected " +
                                 (closed ? "a number of requests at a time" : "requests per second, above 0") +
                                 " and up to 1e6");
  if (closed) {
    arrivals.concurrency = static_cast<std::int32_t>(load);
  } else {
    arrivals.rate = load;
  }
  try {
    Workload(scenario.workload, 0);
  } catch (const Error& error) {
    throw usage_error(where + " " + nlohmann::json(load).dump(), error.what());
  }
  return scenario;
}

}  // namespace draftproof
