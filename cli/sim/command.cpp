// draftproof sim: a scenario served in simulated time, one policy of speculation against another.
#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <ostream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "base/files/own_files.hpp"
#include "base/files/run_folder.hpp"
#include "base/near_names.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "base/words.hpp"
#include "cli/shared/artefacts.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/progress.hpp"
#include "sim/serving/comparison.hpp"
#include "sim/serving/log_scenario.hpp"
#include "sim/serving/run_files.hpp"
#include "sim/serving/scenario.hpp"

namespace draftproof {
namespace {

std::string text(const char* format, double value) {
  return std::isfinite(value) ? number(format, value) : "-";
}

std::string right(const std::string& text, std::size_t width) {
  return std::string(text.size() < width ? width - text.size() : 0, ' ') + text;
}

void print_sim_report(std::ostream& out, const Scenario& scenario, std::span<const PolicyReport> reports) {
  out << printable_line(scenario.server) << '\n'
      << scenario.workload.num_requests << " requests, " << counted_noun(scenario.replications, "replication");
  if (!scenario.static_batch) out << ", " << scenario.scheduler.num_blocks << " KV blocks";
  if (const auto& trace = scenario.workload.recorded) {
    out << "\ntrace: " << trace->requests.size() << " requests over " << text("%.4g", trace->seconds()) << " s, times "
        << (trace->unit == "dates" ? "as dates" : "in " + trace->unit);
    if (trace->later_turns > 0) out << ", " << trace->later_turns << " of them later turns of sessions";
    if (trace->left_out > 0) out << "; left out: " << trace->left_out << " without output tokens, which failed";
  }
  out << "\n\n";
  struct Column {
    const char* head;
    const char* unit;
    const char* format;
    Figure figure;
  };
  const Column columns[] = {{"tokens", "/s", "%.0f", Figure::throughput},
                            {"goodput", "req/s", "%.2f", Figure::goodput},
                            {"in SLO", "share", "%.3f", Figure::slo_share},
                            {"TTFT ms", "p50", "%.1f", Figure::ttft_p50},
                            {"", "p99", "%.1f", Figure::ttft_p99},
                            {"TPOT ms", "p50", "%.2f", Figure::tpot_p50},
                            {"", "p99", "%.2f", Figure::tpot_p99},
                            {"ITL ms", "p99", "%.2f", Figure::itl_p99},
                            {"KV", "use", "%.3f", Figure::kv_use},
                            {"", "waste", "%.3f", Figure::kv_waste},
                            {"tokens", "/step", "%.2f", Figure::tokens_per_step}};
  constexpr std::size_t kNumber = 9;
  std::size_t name = 8;
  for (const PolicyReport& report : reports) name = std::max(name, report.name.size() + 1);
  const auto row = [&](const std::string& first, auto cell, const std::string& last) {
    out << first << std::string(name - first.size(), ' ');
    for (const Column& column : columns) out << right(cell(column), kNumber);
    out << "  " << last << '\n';
  };
  row(
      "policy", [](const Column& column) { return std::string(column.head); }, "throughput");
  row(
      "", [](const Column& column) { return std::string(column.unit); },
      "/ " + reports[0].name + (reports[0].speedup.low ? " (95 % interval)" : ""));
  for (const PolicyReport& report : reports) {
    std::string ratio = text("%.3f", report.speedup.mean);
    if (report.speedup.low && &report != reports.data())
      ratio += " [" + text("%.3f", *report.speedup.low) + ", " + text("%.3f", *report.speedup.high) + "]";
    row(
        report.name, [&](const Column& column) { return text(column.format, report.figure(column.figure).mean); },
        ratio);
  }
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const FleetOptions& fleet = scenario.policies[i].fleet;
    if (fleet.servers == 1) continue;
    out << (i == 0 ? "\n" : "") << reports[i].name << ": " << fleet.servers << " servers, router "
        << name_of(fleet.router);
    if (fleet.guided_servers > 0) out << ", " << fleet.guided_servers << " for guided requests";
    const auto tail = [&](std::size_t k) { return text("%.2f", reports[i].tails_ms[k].mean); };
    if (scenario.workload.companion_prompt_len)
      out << "; p99 of TTFT and TPOT, ms: guided " << tail(0) << ", " << tail(1) << ", others " << tail(2) << ", "
          << tail(3);
    out << '\n';
  }
  for (const PolicyReport& report : reports)
    if (report.asked_drafts > 0)
      out << '\n'
          << report.name << ": of the drafts "
          << text("%.1f", 100.0 * static_cast<double>(report.ready_drafts) / static_cast<double>(report.asked_drafts))
          << " % were ready\n";
  std::int64_t steps = 0;
  double wall_s = 0.0;
  for (const PolicyReport& report : reports) {
    steps += report.sequence_steps;
    wall_s += report.wall_s;
  }
  out << '\n'
      << steps << " sequence-steps in " << text("%.2f", wall_s) << " s, "
      << text("%.1f", static_cast<double>(steps) / wall_s * 1e-6) << " million a second on a core\n";
}

// A table of the policies by load.
void print_loads(std::ostream& out, const Scenario& scenario, std::span<const LoadPoint> loads) {
  if (loads.empty()) return;
  out << '\n'
      << (scenario.workload.arrivals.kind == ArrivalKind::closed ? "at a time" : "    req/s")
      << "  policy       tokens/s  goodput  TTFT p50  TPOT p50 ms\n";
  for (const LoadPoint& point : loads)
    for (const PolicyReport& report : point.policies)
      out << right(text("%g", point.load), 9) << "  " << report.name
          << std::string(report.name.size() < 12 ? 12 - report.name.size() : 1, ' ')
          << right(text("%.0f", report.figure(Figure::throughput).mean), 9)
          << right(text("%.2f", report.figure(Figure::goodput).mean), 9)
          << right(text("%.1f", report.figure(Figure::ttft_p50).mean), 10)
          << right(text("%.2f", report.figure(Figure::tpot_p50).mean), 13) << '\n';
}

// The file of a scenario that is named by its path, or by the name of a shipped one.
std::string scenario_file(const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::exists(name, ignored) || name.find_first_of("./") != std::string::npos) return name;
  const std::string folder = own_file("experiments/scenarios");
  std::vector<std::string> known;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) known.push_back(entry.path().stem().string());
  std::ranges::sort(known);
  if (!std::ranges::binary_search(known, name))
    throw usage_error("scenario", in_quotes(name) + " is no file, nor the name of a shipped scenario (" +
                                      joined(known, ", ") + ")" + did_you_mean(name, known));
  return folder + "/" + name + ".toml";
}

struct SimArguments {
  ScenarioRequest request;
  PredictionRequest of_log;  // whose scenario it is
  std::string save;
  std::string time_unit;  // empty: the trace's own
  std::vector<double> loads;
  std::string out;
  Artefacts artefacts;
  int threads = 1;
  bool json = false;
};

// The files of one policy while it runs.
struct PolicyFiles {
  std::ofstream requests;
  std::ofstream steps;
  std::unique_ptr<RunFiles> writer;
};

class OutFolder {
 public:
  OutFolder(const std::string& path, const Scenario& scenario) : folder_(path, names_of(scenario)) {
    for (const ScenarioPolicy& policy : scenario.policies) {
      PolicyFiles& files = files_.emplace_back();
      if (scenario.static_batch) continue;
      files.requests.open(folder_.staged("requests." + policy.name + ".csv"), std::ios::binary);
      files.steps.open(folder_.staged("steps." + policy.name + ".json"), std::ios::binary);
      files.writer = std::make_unique<RunFiles>(files.requests, files.steps, policy.name, policy.fleet.servers);
    }
  }

  ServingObserver* observer(std::size_t policy) { return files_[policy].writer.get(); }

  void commit(const Json& document) {
    for (PolicyFiles& files : files_) {
      if (!files.writer) continue;
      files.writer.reset();
      files.requests.close();
      files.steps.close();
      if (!files.requests || !files.steps)
        throw input_error("--out", "the files could not be written; is the disk full?");
    }
    folder_.write([&] { write_json_file(folder_.staged("result.json"), document); });
    folder_.commit();
  }
  std::string path(const std::string& name) const { return folder_.final_path(name); }

 private:
  static std::vector<std::string> names_of(const Scenario& scenario) {
    std::vector<std::string> names{"result.json"};
    for (const ScenarioPolicy& policy : scenario.policies) {
      names.push_back("requests." + policy.name + ".csv");
      names.push_back("steps." + policy.name + ".json");
    }
    return names;
  }

  RunFolder folder_;
  std::deque<PolicyFiles> files_;  // which stay where they are
};

// A row for each policy, with --load at each load.
Table sim_table(const Json& document) {
  std::vector<std::string> keys{"name",        "throughput",  "goodput",         "ttft_ms/p50",  "ttft_ms/p99",
                                "tpot_ms/p50", "tpot_ms/p99", "tokens_per_step", "speedup/mean", "speedup/interval"};
  if (document.at("load").empty()) return table_of(document.at("policies"), keys);
  Json rows = Json::array();
  for (const Json& point : document.at("load"))
    for (Json policy : point.at("policies")) {
      policy["load"] = point.at("load");
      rows.push_back(std::move(policy));
    }
  keys.insert(keys.begin(), "load");
  return table_of(rows, keys);
}

// Throughput of each policy: by load, or with its interval beside the others'.
std::string sim_figure(const Scenario& scenario, std::span<const PolicyReport> reports,
                       std::span<const LoadPoint> loads) {
  constexpr std::array kColours{"#1f5fa8", "#d98c3f", "#4f9a5b", "#a6517c", "#555555"};
  std::ostringstream script;
  const auto put = [&](double x, const PolicyReport& report) {
    const Estimate& value = report.figure(Figure::throughput);
    script << x << ' ' << value.mean << ' ' << value.low.value_or(value.mean) << ' ' << value.high.value_or(value.mean)
           << '\n';
  };
  for (std::size_t policy = 0; policy < reports.size(); ++policy) {
    script << "$policy" << policy << " << EOD\n";
    if (loads.empty()) put(static_cast<double>(policy), reports[policy]);
    for (const LoadPoint& point : loads) put(point.load, point.policies[policy]);
    script << "EOD\n";
  }
  const bool closed = scenario.workload.arrivals.kind == ArrivalKind::closed;
  script << "set title " << gnuplot_quoted(scenario.server) << "\nset ylabel 'tokens per second'\nset yrange [0:*]\n"
         << "set grid ytics lc rgb '#dddddd'\n";
  if (loads.empty()) {
    script << "set key off\nset xrange [-0.6:" << reports.size() << " - 0.4]\nset xtics (";
    for (std::size_t policy = 0; policy < reports.size(); ++policy)
      script << (policy == 0 ? "" : ", ") << gnuplot_quoted(reports[policy].name) << ' ' << policy;
    script << ")\n";
  } else {
    script << "set key below\nset offsets graph 0.05,graph 0.05,0,0\nset xlabel '"
           << (closed ? "requests at a time" : "requests per second") << "'\n";
  }
  for (std::size_t policy = 0; policy < reports.size(); ++policy)
    script << (policy == 0 ? "plot " : ", ") << "$policy" << policy << " using 1:2:3:4 with yerror"
           << (loads.empty() ? "bars" : "lines") << " pt 7 ps 0.6 lw 2 lc rgb '" << kColours[policy % kColours.size()]
           << "' title " << gnuplot_quoted(reports[policy].name);
  script << "\n";
  return script.str();
}

// The scenario and its trace as files, to be changed and run again.
void save_scenario(const LogScenario& of_log, const std::string& path) {
  RunFolder folder(path, {"scenario.toml", kTraceOfLog});
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream file(folder.staged(name), std::ios::binary);
    file << text;
    if (!file.flush()) throw input_error("--save", "the files could not be written; is the disk full?");
  };
  folder.write([&] {
    write("scenario.toml", of_log.toml);
    write(kTraceOfLog, arrivals_csv(of_log.arrivals));
  });
  folder.commit();
}

void print_log(const LogScenario& of_log) {
  std::cout << printable_line(of_log.seen) << '\n';
  for (const std::string& note : of_log.notes) std::cout << "  " << printable_line(note) << '\n';
  if (of_log.tokens_per_second > 0.0)
    std::cout << "  It generated " << text("%.0f", of_log.tokens_per_second) << " tokens/s on average.\n";
}

void run(const SimArguments& arguments, ProgramContext& context) {
  ScenarioRequest request = arguments.request;
  std::optional<LogScenario> of_log;
  if (arguments.of_log.log.empty() == request.file.empty())
    throw usage_error("scenario", request.file.empty() ? "is missing; expected one, or --from a server's log"
                                                       : "is given beside --from; expected one of them");
  if (request.file.empty()) {
    request.file = arguments.of_log.log;
    of_log = scenario_of_log(arguments.of_log);
  } else {
    request.file = scenario_file(request.file);
  }
  require_artefacts(arguments.artefacts, {{of_log ? "the log" : "the scenario", request.file}});
  if (!arguments.time_unit.empty()) request.changes.push_back("workload.arrivals.time_unit=" + arguments.time_unit);
  const Scenario scenario = of_log ? read_scenario(*of_log, request) : scenario_of(request);
  if (of_log && !arguments.save.empty()) save_scenario(*of_log, arguments.save);
  std::vector<Scenario> loaded;  // all of them before the work, which takes long
  for (const double load : arguments.loads) loaded.push_back(with_load(scenario, load, "--load"));
  std::unique_ptr<OutFolder> out;
  if (!arguments.out.empty()) out = std::make_unique<OutFolder>(arguments.out, scenario);
  std::vector<PolicyReport> reports;
  std::vector<LoadPoint> loads;
  {
    const auto runs = static_cast<std::size_t>(scenario.replications) * scenario.policies.size() * (1 + loaded.size());
    Progress progress("sim", runs, "runs", "nothing of it is kept");
    const auto advance = [&] { progress.advance(); };
    reports = compare(
        scenario, arguments.threads, [&](std::size_t policy) { return out ? out->observer(policy) : nullptr; },
        advance);
    for (std::size_t i = 0; i < loaded.size(); ++i)
      loads.push_back({arguments.loads[i], compare(loaded[i], arguments.threads, {}, advance)});
  }
  Json document = json_document(context.arguments);
  document.update(sim_json(request.file, scenario, reports, loads));
  if (of_log)
    document["log"] = {
        {"text", of_log->seen}, {"notes", of_log->notes}, {"tokens_per_second", of_log->tokens_per_second}};
  if (out) out->commit(document);
  write_table_of(arguments.artefacts, "Policies on the same requests: " + scenario.server, context,
                 [&] { return sim_table(document); });
  write_figure_of(arguments.artefacts, context, [&] { return sim_figure(scenario, reports, loads); });
  if (arguments.json) {
    print_json(document);
  } else {
    if (of_log) print_log(*of_log);
    print_sim_report(std::cout, scenario, reports);
    print_loads(std::cout, scenario, loads);
    if (out) std::cout << "\nwritten to " << printable_line(out->path("")) << '\n';
  }
}

}  // namespace

void add_sim(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<SimArguments>();
  options.text("scenario", arguments->request.file,
               "Scenario to run: a file, or a shipped one's name, as chat (docs/simulator.md)", "SCENARIO.toml");
  PredictionRequest& of_log = arguments->of_log;
  options.file("--from", of_log.log,
               "Scenario of a server's log instead, with its model, acceptance, load, and arrivals where it has a "
               "line of each request");
  options.text("--gpu", of_log.gpu, "GPU of the log's server, which no server logs", "GPU");
  options.text("--model", of_log.model, "Model of it, instead of the log's", "MODEL");
  options.text("--drafter", of_log.drafter, "Drafter of it, instead of the log's", "DRAFTER");
  options.text("--acceptance", of_log.acceptance, "Acceptance model of it, instead of what the log says", "MODEL");
  constexpr IntegerRange kLengths{1, 1 << 24};
  options.integer("--prompt", of_log.prompt, kLengths, "Tokens of its prompts, if the log does not say them");
  options.integer("--output", of_log.output, kLengths, "Tokens of its answers, if the log does not say them");
  options.text("--save", arguments->save, "Folder for the log's scenario and its trace", "DIR");
  options.used_only({"--gpu", "--model", "--drafter", "--acceptance", "--prompt", "--output", "--save"},
                    "without --from", [arguments] { return !arguments->of_log.log.empty(); });
  options.text("--out", arguments->out,
               "Folder for the result, the requests (CSV) and the steps (Chrome trace) of the first replication",
               "DIR");
  options.integer("--seed", arguments->request.seed, {}, "Instead of the scenario's");
  options.integer("--replications", arguments->request.replications, {1, 10'000}, "Instead of the scenario's");
  options.texts("--set", arguments->request.changes,
                "Instead of the scenario's value, as workload.arrivals.rate=12; may be given several times",
                "KEY=VALUE");
  options.choice("--time-unit", arguments->time_unit, {"s", "ms", "us", "ns"},
                 "Unit of recorded arrivals, where their file does not name it");
  options.numbers(
      "--load", arguments->loads, {},
      "Besides, every policy at these loads, as 4,8,16: requests per second, or at a time with closed arrivals");
  options.threads(arguments->threads);
  add_artefacts(options, arguments->artefacts);
  options.json(arguments->json);
  options.examples({"chat", "--from server.log --gpu H100 --output 250", "chat --load 4,8,16 --out out/sim",
                    "chat --load 4,8,16 --table t.tex --figure f.pdf"});
  options.on_run([arguments, &context] { run(*arguments, context); });
}

}  // namespace draftproof
