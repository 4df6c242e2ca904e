// draftproof calibrate: engine constants from measured speedups, and how well these determine them; or this computer's
// own, from a few timed passes.
#include <cmath>
#include <iomanip>
#include <iostream>
#include <memory>

#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "base/printable.hpp"
#include "cli/shared/artefacts.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/model_path.hpp"
#include "cli/shared/this_machine.hpp"
#include "sim/cost/validation.hpp"

namespace draftproof {
namespace {

struct Arguments {
  std::string data;
  std::string unseen;
  bool this_machine = false;
  std::string model = kShippedModel;
  int threads = 1;
  std::string out;
  std::string start = "prior";
  bool no_download = false;
  Artefacts artefacts;
  bool json = false;
};

Json json_of(const std::vector<EngineProfile>& engines) {
  return json_list(engines, [](const EngineProfile& engine) {
    Json entry{{"name", engine.name}, {"constants", Json::object()}};
    for (std::size_t i = 0; i < kEngineConstants; ++i)
      entry["constants"][name_of(static_cast<EngineConstant>(i))] = {{"value", engine.constants[i].value},
                                                                     {"spread", engine.constants[i].spread},
                                                                     {"prior", engine.constants[i].prior}};
    return entry;
  });
}

// The engines with the fit that gave them, in the form of sim/presets/engines.
void write_profiles(const std::string& path, const FitRecord& record, const std::vector<EngineProfile>& engines) {
  AtomicFile file(path);
  file.stream()
      << "# Engines: named overhead profiles, written by draftproof calibrate. Fields: sim/cost/engine_profile.hpp.\n\n"
      << toml_of(record);
  for (const EngineProfile& engine : engines) file.stream() << "\n" << toml_of(engine);
  file.commit();
}

void run_this_machine(const Arguments& arguments, const ProgramContext& context) {
  const MachineProfile profile = time_this_machine(arguments.model, {false, arguments.threads}).profile;
  if (!arguments.out.empty()) {
    AtomicFile file(arguments.out);
    file.stream()
        << "# What a computer takes for passes of a model, written by draftproof calibrate --this-machine.\n\n"
        << toml_of(profile);
    file.commit();
  }
  if (arguments.json) {
    Json document = json_document(context.arguments);
    document["profile"] = machine_profile_json(profile);
    document["out"] = text_or_null(arguments.out);
    return print_json(document);
  }
  print_machine_profile(profile, std::cout);
  if (!arguments.out.empty()) std::cout << "\nWritten: " << printable_line(arguments.out) << "\n";
}

void run(const Arguments& arguments, const ProgramContext& context) {
  if (arguments.this_machine == !arguments.data.empty())
    throw usage_error("calibrate", arguments.this_machine ? "--data and --this-machine exclude each other"
                                                          : "expected --data CSV or --this-machine");
  require_writable({{"--out", arguments.out}});
  require_artefacts(arguments.artefacts, {{"--data", arguments.data}});
  if (arguments.this_machine) return run_this_machine(arguments, context);
  require_no_overwriting({{"--data", arguments.data}, {"--unseen", arguments.unseen}}, {{"--out", arguments.out}});
  const MeasuredData data = read_measured_data(arguments.data);
  if (data.points.empty())
    throw input_error(
        printable_line(arguments.data),
        "none of its rows can be used; expected measured speedups (draftproof validate says why each is excluded)");
  std::vector<const MeasuredPoint*> points;
  for (const MeasuredPoint& point : data.points) points.push_back(&point);
  const FitState prior = arguments.start == "prior" ? fit_prior() : shipped_fit().state;
  const EngineFit fit = fit_engines(points, prior);
  const std::vector<EngineProfile> engines = engines_with(fit.state, fit.covariance);
  if (!arguments.out.empty()) {
    FitRecord record;
    record.state = fit_prior();
    record.sources = fit.sources;
    record = validate(data, record, Constants::refitted).record;
    record.state = fit.state;
    if (!arguments.unseen.empty()) {
      const MeasuredData unseen = read_measured_data(arguments.unseen);
      record.scatter = scatter_of(validate(unseen, record, Constants::as_shipped).points, {}, record.scatter);
    }
    write_profiles(arguments.out, record, engines);
  }

  Json document = json_document(context.arguments);
  document["rows"] = fit.rows;
  document["configurations"] = fit.configurations;
  document["sources"] = fit.sources;
  document["excluded"] = data.excluded.size();
  document["converged"] = fit.converged;
  document["parameters"] = Json::array();
  for (std::size_t i = 0; i < fit_parameters().size(); ++i)
    document["parameters"].push_back({{"name", fit_parameters()[i].name},
                                      {"factor", std::exp(fit.state.offset[i])},
                                      {"spread", fit.state.spread[i]},
                                      {"prior_spread", prior.spread[i]},
                                      {"determined", fit.determined(i, prior)}});
  document["engines"] = json_of(engines);
  document["out"] = text_or_null(arguments.out);
  write_table_of(arguments.artefacts, "Constants of engines, as factors on their priors", context, [&] {
    return table_of(document["parameters"], {"name", "factor", "spread", "prior_spread", "determined"});
  });
  if (arguments.json) return print_json(document);
  std::cout << fit.rows << " rows in " << fit.configurations << " configurations from " << fit.sources.size()
            << " sources; " << data.excluded.size() << " rows excluded\n\n"
            << std::left << std::setw(38) << "factor on the prior of" << std::right << std::setw(8) << "factor"
            << std::setw(9) << "+- %" << std::setw(10) << "prior %" << std::setw(13) << "determined\n";
  for (std::size_t i = 0; i < fit_parameters().size(); ++i)
    std::cout << std::left << std::setw(38) << fit_parameters()[i].name << std::right << std::fixed
              << std::setprecision(3) << std::setw(8) << std::exp(fit.state.offset[i]) << std::setprecision(1)
              << std::setw(9) << 100.0 * fit.state.spread[i] << std::setw(10) << 100.0 * prior.spread[i]
              << std::setprecision(0) << std::setw(10) << 100.0 * fit.determined(i, prior) << " %\n";
  if (!fit.converged) std::cout << "\nThe fit did not converge.\n";
  if (!arguments.out.empty()) std::cout << "\nWritten: " << printable_line(arguments.out) << "\n";
}

}  // namespace

void add_calibrate(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<Arguments>();
  options.file("--data", arguments->data, "CSV of measured speedups (columns: docs/json.md, validate)");
  options.file("--unseen", arguments->unseen, "With --out: rows that widen or narrow the bands and fit no constant");
  options.flag("--this-machine", arguments->this_machine, "Time passes of the project's own engine on this computer");
  options.text("--model", arguments->model, "With --this-machine: smollm2, a GGUF file or a Hugging Face folder",
               "MODEL");
  options.integer("--threads", arguments->threads, kThreadRange, "With --this-machine: of the engine");
  options.choice("--start", arguments->start, {"prior", "shipped"},
                 "Starting point: the priors, or the shipped constants");
  options.file("--out", arguments->out, "Write what was found: engines, for --engine FILE:NAME, or this machine");
  add_no_download(options, arguments->no_download);
  options.used_only({"--model", "--threads", "--no-download"}, "without --this-machine",
                    [arguments] { return arguments->this_machine; });
  options.used_only({"--unseen"}, "without --out", [arguments] { return !arguments->out.empty(); });
  options.used_only({"--start", "--unseen"}, "with --this-machine", [arguments] { return !arguments->this_machine; });
  add_table(options, arguments->artefacts);
  options.used_only({"--table"}, "with --this-machine", [arguments] { return !arguments->this_machine; });
  options.json(arguments->json);
  options.examples({"--data speedups.csv --out engines.toml", "--this-machine --model smollm2"});
  options.on_run([arguments, &context] { run(*arguments, context); });
}

}  // namespace draftproof
