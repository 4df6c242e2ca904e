#include "sim/serving/log_scenario.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <sstream>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/words.hpp"
#include "sim/import/log_text.hpp"
#include "sim/import/read_acceptance.hpp"
#include "sim/import/text_lines.hpp"
#include "sim/toml.hpp"

namespace draftproof {
namespace {

constexpr std::size_t kArrivalsLeast = 10;  // fewer say nothing of a load

// Seconds since the first one, of the lines with these words.
std::vector<double> arrivals_in(std::string_view text, const std::string& name, std::string_view mark) {
  constexpr int kDay = 86'400;
  std::vector<double> seconds;
  std::optional<int> before;
  double now = 0.0;
  for (TextLines lines(text, name); lines.next();) {
    if (!has_words(lines.line(), mark)) continue;
    const std::optional<int> time = time_of_day(lines.line());
    if (!time) continue;
    if (before) now += (*time - *before + kDay) % kDay;
    before = time;
    seconds.push_back(now);
  }
  return seconds;
}

// Arrivals from the lines in which a server logs requests: one kind of them, since two processes may both log one.
std::vector<double> arrivals_in(std::string_view text, const std::string& name) {
  std::vector<double> most;
  for (const char* const mark : {"Added request ", "Received request ", "Receive: obj=", "Receive: rid="})
    if (std::vector<double> found = arrivals_in(text, name, mark); found.size() > most.size()) most = std::move(found);
  return most;
}

struct MeanRates {
  double running = 0.0, generated = 0.0, prompt = 0.0;  // requests, tokens a second; of all engines
};

MeanRates rates_of(const AcceptanceData& data) {
  MeanRates mean;
  int engines = 1;
  for (const ThroughputWindow& window : data.throughput) {
    mean.running += window.running;
    mean.generated += window.tokens_per_second;
    mean.prompt += window.prompt_tokens_per_second;
    engines = std::max(engines, window.engine + 1);
  }
  const double windows = static_cast<double>(std::max<std::size_t>(1, data.throughput.size())) / engines;
  return {mean.running / windows, mean.generated / windows, mean.prompt / windows};
}

// Lengths of a closed loop are no part of a prediction's question here.
PredictionRequest without_lengths(PredictionRequest request) {
  request.prompt = request.output = 0;
  return request;
}

std::int32_t whole(double value) {
  return static_cast<std::int32_t>(std::clamp<long long>(std::llround(value), 1, 1 << 24));
}

class FromLog {
 public:
  explicit FromLog(const PredictionRequest& request)
      : inputs_(inputs_of(without_lengths(request))), asked_(request), text_(read_log_text(request.log).text) {
    ImportOptions options;
    options.plain = true;  // of a server that does not speculate its load
    data_ = parse_acceptance(text_, request.log, options);
  }

  LogScenario read() {
    if (inputs_.request.pp > 1)
      throw usage_error("--from", "the server of " + inputs_.seen->name +
                                      " shares its layers among stages, which the simulator has not; expected --pp 1");
    scenario_.seen = inputs_.seen->text();
    scenario_.notes = inputs_.notes;
    for (const CheckedStep& step : inputs_.steps)
      scenario_.notes.push_back("The log's step takes " + step.text() + "; the scenario's clock is the preset's.");
    rates_ = rates_of(data_);
    scenario_.tokens_per_second = rates_.generated;
    const std::vector<double> arrivals = arrivals_in(text_, asked_.log);
    const bool replays = arrivals.size() >= kArrivalsLeast && arrivals.back() > 0.0;
    set_lengths(replays ? static_cast<double>(arrivals.size()) / arrivals.back() : 0.0);
    if (replays) {
      for (const double second : arrivals)
        scenario_.arrivals.requests.push_back({std::llround(1e9 * second), prompt_, output_});
      scenario_.arrivals.unit = "s";
    }
    write(replays);
    return std::move(scenario_);
  }

 private:
  // Lengths asked for, else those of the throughput: tokens a second over requests a second.
  void set_lengths(double arrivals_a_second) {
    const auto length = [&](int asked, double tokens_a_second) {
      if (asked > 0) return std::int32_t{asked};
      return arrivals_a_second > 0.0 && tokens_a_second > 0.0 ? whole(tokens_a_second / arrivals_a_second) : 0;
    };
    output_ = length(asked_.output, rates_.generated);
    const double ratio = inputs_.seen->prompt_per_output;
    const bool by_ratio = asked_.prompt == 0 && arrivals_a_second == 0.0 && ratio > 0.0;
    prompt_ = by_ratio ? whole(ratio * output_) : length(asked_.prompt, rates_.prompt);
    if (output_ == 0 || prompt_ == 0)
      throw usage_error(
          output_ > 0   ? "--prompt"
          : prompt_ > 0 ? "--output"
                        : "--prompt and --output",
          "is missing, and " + inputs_.seen->name + " does not say it; expected tokens of a request, on average");
    scenario_.notes.push_back("Every request has the mean lengths, " + std::to_string(prompt_) + " and " +
                              std::to_string(output_) + " tokens.");
  }

  void write(bool replays) {
    const PredictionRequest& request = inputs_.request;
    const std::int32_t drafts = std::max<std::int32_t>(1, inputs_.options.running_drafts.value_or(data_.draft_len));
    std::ostringstream out;
    out << "# " << printable_line(scenario_.seen) << "\nacceptance = " << toml_quoted(acceptance(drafts))
        << "\ndrafter = " << toml_quoted(request.drafter) << "\n\n[server]\nmodel = " << toml_quoted(request.model)
        << "\ngpu = " << toml_quoted(request.gpu) << "\nengine = " << toml_quoted(request.engine)
        << "\ntp = " << whole(inputs_.preset.tp) << '\n';
    if (!request.precision.empty()) out << "precision = " << toml_quoted(request.precision) << '\n';
    const int groups = std::max(1, request.dp);
    if (groups > 1)
      scenario_.notes.push_back("One of the " + std::to_string(groups) +
                                " groups is simulated, at its share of the load.");
    std::size_t requests = scenario_.arrivals.requests.size() / static_cast<std::size_t>(groups);
    std::string arrivals = "{ kind = \"recorded\", file = " + toml_quoted(kTraceOfLog) + " }";
    if (!replays) {
      const std::int32_t load = inputs_.seen->step      ? whole(static_cast<double>(inputs_.seen->step->batch.batch))
                                : rates_.running >= 1.0 ? whole(rates_.running / groups)
                                                        : whole(static_cast<double>(request.batches.front()));
      arrivals = "{ kind = \"closed\", concurrency = " + std::to_string(load) + " }";
      requests = static_cast<std::size_t>(std::max(200, 20 * load));
      scenario_.notes.push_back("The log has no lines of requests: " + counted_noun(load, "request") +
                                " at a time, each followed by another.");
    }
    out << "\n[workload]\nrequests = " << requests << "\nwarmup = " << requests / 10 << "\narrivals = " << arrivals
        << "\nprompt = " << prompt_ << "\noutput = " << output_
        << "\n\n[[policy]]\nname = \"off\"\nspeculation = \"off\"\n\n[[policy]]\nname = \"k" << drafts
        << "\"\nspeculation = \"fixed:" << drafts
        << "\"\n\n[[policy]]\nname = \"goodput\"\nspeculation = \"goodput:max=" << std::max(8, drafts) << "\"\n";
    scenario_.toml = out.str();
  }

  // A step without a draft accepts nothing.
  std::string acceptance(std::int32_t drafts) const {
    std::string text;
    for (const double rate :
         inputs_.acceptance.survival(std::max(8, drafts), static_cast<std::int32_t>(inputs_.options.context)))
      text +=
          (text.empty() ? "unconditional:" : ",") + draftproof::number("%.6g", inputs_.acceptance.draft_share() * rate);
    return text;
  }

  PredictionInputs inputs_;
  const PredictionRequest& asked_;
  std::string text_;
  AcceptanceData data_;
  LogScenario scenario_;
  MeanRates rates_;
  std::int32_t prompt_ = 0, output_ = 0;
};

}  // namespace

LogScenario scenario_of_log(const PredictionRequest& request) {
  return FromLog(request).read();
}

Scenario read_scenario(const LogScenario& of_log, const ScenarioRequest& request) {
  TomlValue file = parse_toml(of_log.toml, "--from " + request.file);
  if (of_log.arrivals.requests.empty()) return scenario_of(request, file);
  const std::string in_place = "{ kind = \"poisson\", rate = 1.0 }";  // of the trace, which is no file
  Scenario scenario = scenario_of(request, file.with("workload.arrivals", parse_toml_value(in_place, "--from")));
  if (std::ranges::any_of(request.changes, [](const std::string& c) { return c.starts_with("workload.arrivals"); }))
    return scenario;
  scenario.workload.arrivals = {};
  scenario.workload.arrivals.kind = ArrivalKind::recorded;
  scenario.workload.arrivals.rate = 0.0;  // the trace's own
  scenario.workload.recorded = std::make_shared<const ArrivalTrace>(of_log.arrivals);
  return scenario;
}

std::string arrivals_csv(const ArrivalTrace& trace) {
  std::ostringstream out;
  out << "arrival_s,prompt_len,output_len\n";
  for (const RecordedArrival& request : trace.requests)
    out << draftproof::number("%.9g", 1e-9 * static_cast<double>(request.arrival_ns)) << ',' << request.prompt_len
        << ',' << request.output_len << '\n';
  return out.str();
}

}  // namespace draftproof
