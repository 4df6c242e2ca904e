#include "studies/serving/serving_timeline.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.hpp"
#include "base/files/own_files.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "base/strict_number.hpp"
#include "sim/serving/comparison.hpp"
#include "studies/figures/figure.hpp"
#include "studies/figures/table.hpp"
#include "studies/palette.hpp"

namespace draftproof {
namespace {

constexpr double kMs = 1e-6;  // of a nanosecond

const PolicyTimeline* timeline_of(const std::vector<PolicyTimeline>& timelines, const std::string& name) {
  const auto found = std::ranges::find(timelines, name, &PolicyTimeline::policy);
  return found == timelines.end() ? nullptr : &*found;
}

// Nobody looks at the steps of a point of a curve; it only ends when the job is cancelled.
class CancelOnly final : public ServingObserver {
 public:
  explicit CancelOnly(const Job& job) : job_(job) {}
  void on_step(const StepPlan&, const StepOutcome&, const Scheduler&, const SimulatedBackend&) override {
    job_.check();
  }
  void on_end(std::uint64_t, const RequestProgress&) override {}

 private:
  const Job& job_;
};

void set_key(ScenarioRequest& request, const TomlValue& file, const char* table, const char* key, std::int64_t value) {
  const TomlValue* const found = file.find(table);
  if (found != nullptr && found->find(key) != nullptr && found->find(key)->integer(0, std::int64_t{1} << 40) == value)
    return;
  request.changes.push_back(std::string(table) + "." + key + "=" + std::to_string(value));
}

std::int64_t whole(double value) {
  return static_cast<std::int64_t>(std::llround(value));
}

void add_rows(Table& table, const PolicyTimeline& timeline) {
  for (const StepBox& box : timeline.steps.steps()) {
    std::vector<TableCell> row{timeline.policy, box.first_step, static_cast<double>(box.begin_ns) * kMs};
    for (const std::int64_t ns : box.part_ns) row.emplace_back(static_cast<double>(ns) * kMs);
    for (const std::int64_t count :
         {std::int64_t{box.running_max}, std::int64_t{box.waiting_max}, box.prompt_tokens, box.drafted, box.accepted,
          box.emitted, whole(box.mean_slots(box.held_slot_ns)), whole(box.mean_slots(box.committed_slot_ns))})
      row.emplace_back(count);
    table.rows.push_back(std::move(row));
  }
}

}  // namespace

std::string chat_scenario() {
  return own_file("experiments/scenarios/chat.toml");
}

std::vector<std::string> shipped_scenarios() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(own_file("experiments/scenarios")))
    if (entry.path().extension() == ".toml" && read_toml(entry.path().string()).find("grid") == nullptr)
      files.push_back(entry.path().string());
  std::ranges::sort(files);
  return files;
}

const PolicyTimeline* ServingTimelineSnapshot::upper() const {
  if (timelines.empty()) return nullptr;
  const PolicyTimeline* const wanted = timeline_of(timelines, settings.upper);
  return wanted != nullptr ? wanted : &timelines.front();
}

const PolicyTimeline* ServingTimelineSnapshot::lower() const {
  if (timelines.size() < 2) return nullptr;
  const PolicyTimeline* const wanted = timeline_of(timelines, settings.lower);
  return wanted != nullptr ? wanted : &timelines[1];
}

ScenarioRequest request_of(const ServingTimelineSettings& settings) {
  ScenarioRequest request;
  request.file = settings.scenario;
  request.changes = settings.changes;
  request.seed = settings.seed;
  request.replications = 1;
  const TomlValue file = read_toml(settings.scenario);
  const TomlValue* const workload = file.find("workload");
  if (workload == nullptr) return request;  // whose absence the scenario's reader reports
  if (settings.load > 0.0) {
    const TomlValue* const arrivals = workload->find("arrivals");
    const bool closed = arrivals != nullptr && arrivals->text_or("kind", "") == "closed";
    request.changes.push_back(std::string("workload.arrivals.") + (closed ? "concurrency=" : "rate=") +
                              (closed ? std::to_string(std::llround(settings.load)) : json_number(settings.load)));
  }
  if (settings.requests > 0) {
    set_key(request, file, "workload", "requests", settings.requests);
    const std::int64_t warmup = workload->integer_or("warmup", 0, 0, std::int64_t{1} << 40);
    if (warmup >= settings.requests) set_key(request, file, "workload", "warmup", settings.requests / 4);
  }
  return request;
}

void compute(const ServingTimelineSettings& settings, Job& job, const PublishServing& publish) {
  ServingTimelineSnapshot snapshot;
  snapshot.settings = settings;
  snapshot.scenario = scenario_of(request_of(settings));
  const Scenario& scenario = snapshot.scenario;
  snapshot.closed = scenario.workload.arrivals.kind == ArrivalKind::closed;
  job.check();

  std::int64_t ended = 0;
  const auto policies = static_cast<std::int64_t>(scenario.policies.size());
  std::vector<std::unique_ptr<TimelineRecorder>> recorders;
  for (const ScenarioPolicy& policy : scenario.policies)
    recorders.push_back(
        std::make_unique<TimelineRecorder>(policy.name, job, ended, policies * scenario.workload.num_requests));
  snapshot.reports = compare(scenario, 1, [&](std::size_t policy) { return recorders[policy].get(); });
  if (!scenario.static_batch)
    for (const auto& recorder : recorders) snapshot.timelines.push_back(recorder->take());
  publish(snapshot);

  CancelOnly observer(job);
  for (const double load : settings.loads) {
    job.report(static_cast<double>(snapshot.loads.size()) / static_cast<double>(settings.loads.size()),
               "serving at a load of " + json_number(load));
    job.check();
    snapshot.loads.push_back(
        {load, compare(with_load(scenario, load, "--load"), 1, [&](std::size_t) { return &observer; })});
    publish(snapshot);
  }
}

nlohmann::ordered_json to_json(const ServingTimelineSnapshot& snapshot) {
  return sim_json(snapshot.settings.scenario, snapshot.scenario, snapshot.reports, snapshot.loads);
}

Table to_table(const ServingTimelineSnapshot& snapshot) {
  Table table;
  table.columns = {"policy", "step", "begin_ms"};
  for (std::size_t part = 0; part < kStepParts; ++part)
    table.columns.push_back(std::string(name_of(static_cast<StepPart>(part))) + "_ms");
  for (const char* const column :
       {"running", "waiting", "prompt_tokens", "drafted", "accepted", "emitted", "held_slots", "committed_slots"})
    table.columns.emplace_back(column);
  for (const PolicyTimeline* const timeline : {snapshot.upper(), snapshot.lower()})
    if (timeline != nullptr) add_rows(table, *timeline);
  return table;
}

std::string to_figure(const ServingTimelineSnapshot& snapshot) {
  struct Plot {
    const char* title;
    Figure figure;
    bool log_y;
  };
  constexpr std::array<Plot, 3> kPlots{Plot{"TTFT p50, ms", Figure::ttft_p50, true},
                                       Plot{"TPOT p50, ms", Figure::tpot_p50, false},
                                       Plot{"goodput, requests per second", Figure::goodput, false}};
  std::ostringstream script;
  const std::size_t policies = snapshot.reports.size();
  for (std::size_t p = 0; p < policies; ++p) {
    script << "$policy" << p << " << EOD\n";
    for (const LoadPoint& point : snapshot.loads) {
      script << point.load;
      for (const Plot& plot : kPlots) {
        const double value = point.policies[p].figure(plot.figure).mean;
        script << ' ' << (std::isfinite(value) ? json_number(value) : "NaN");
      }
      script << '\n';
    }
    script << "EOD\n";
  }
  script << "set multiplot layout 1,3 title " << gnuplot_quoted(printable_line(snapshot.scenario.server)) << "\n"
         << "set xlabel " << (snapshot.closed ? "'requests at a time'" : "'requests per second'")
         << "\nset logscale x 2\nset grid lc rgb '#dddddd'\nset key top left\n";
  for (std::size_t i = 0; i < kPlots.size(); ++i) {
    script << "set title " << gnuplot_quoted(kPlots[i].title) << "\n"
           << (kPlots[i].log_y ? "set logscale y\nset yrange [*:*]\n" : "unset logscale y\nset yrange [0:*]\n")
           << (i == 0 ? "" : "unset key\n") << "plot ";
    for (std::size_t p = 0; p < policies; ++p)
      script << (p == 0 ? "" : ", ") << "$policy" << p << " using 1:" << i + 2
             << " with linespoints pt 7 ps 0.5 lc rgb '" << palette::kSeries[p % palette::kSeries.size()].hex
             << "' title " << gnuplot_quoted(snapshot.reports[p].name);
    script << "\n";
  }
  script << "unset multiplot\n";
  return script.str();
}

std::vector<std::string> command_arguments(const ServingTimelineSettings& settings) {
  const ScenarioRequest request = request_of(settings);
  std::vector<std::string> arguments{"draftproof", "sim", request.file};
  const auto add = [&](const char* option, const std::string& value) {
    arguments.emplace_back(option);
    arguments.push_back(value);
  };
  for (const std::string& change : request.changes) add("--set", change);
  add("--replications", "1");
  if (request.seed) add("--seed", std::to_string(*request.seed));
  if (!settings.loads.empty()) add("--load", joined(settings.loads, ",", json_number));
  return arguments;
}

ServingTimelineSettings settings_of_scenario(const std::string& path) {
  const TomlValue file = read_toml(path);
  ServingTimelineSettings settings;
  settings.scenario = path;
  if (const TomlValue* const grid = file.find("grid")) {
    settings.scenario = (std::filesystem::path(path).parent_path() / file.at("scenario").text()).string();
    for (const char* const key : {"workload.arrivals.rate", "workload.arrivals.concurrency"}) {
      const TomlValue* const values = grid->find(key);
      if (values == nullptr) continue;
      settings.loads.clear();
      for (const TomlValue& value : values->items()) settings.loads.push_back(value.number());
    }
  }
  scenario_of(request_of(settings));  // refused now rather than when it is run
  return settings;
}

ServingTimelineSettings settings_of_simulation(const nlohmann::ordered_json& document, const std::string& path) {
  const auto command = document.find("command");
  const std::vector<std::string> arguments = command != document.end() && command->is_string()
                                                 ? shell_arguments(command->get_ref<const std::string&>())
                                                 : std::vector<std::string>();
  const auto scenario = document.find("scenario");
  if (arguments.size() < 2 || arguments[1] != "sim" || scenario == document.end() || !scenario->is_string())
    throw input_error(path, "is no document of `draftproof sim`; expected its command and its scenario");
  ServingTimelineSettings settings;
  settings.scenario = scenario->get<std::string>();
  settings.requests = 0;
  settings.loads.clear();
  for (std::size_t i = 2; i + 1 < arguments.size(); ++i) {
    if (arguments[i] == "--set") settings.changes.push_back(arguments[i + 1]);
    if (arguments[i] == "--seed") settings.seed = read_unsigned(arguments[i + 1]);
    if (arguments[i] == "--load")
      settings.loads = read_numbers(arguments[i + 1], path + ": its --load", "number", {}, ErrorKind::input);
  }
  scenario_of(request_of(settings));
  return settings;
}

}  // namespace draftproof
