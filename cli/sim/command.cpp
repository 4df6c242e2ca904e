// draftproof sim: a scenario served in simulated time, one policy of speculation against another.
#include <algorithm>
#include <deque>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/files/output_paths.hpp"
#include "base/files/run_folder.hpp"
#include "base/printable.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/sim/report.hpp"
#include "sim/serving/comparison_json.hpp"
#include "sim/serving/run_files.hpp"

namespace draftproof {
namespace {

struct SimArguments {
  ScenarioRequest request;
  std::vector<double> loads;
  std::string out;
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
      files.writer = std::make_unique<RunFiles>(files.requests, files.steps, policy.name);
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

void run(const SimArguments& arguments, ProgramContext& context) {
  const Scenario scenario = scenario_of(arguments.request);
  std::vector<Scenario> loaded;  // all of them before the work, which takes long
  for (const double load : arguments.loads) loaded.push_back(with_load(scenario, load, "--load"));
  std::unique_ptr<OutFolder> out;
  if (!arguments.out.empty()) out = std::make_unique<OutFolder>(arguments.out, scenario);
  const std::vector<PolicyReport> reports =
      compare(scenario, arguments.threads, [&](std::size_t policy) { return out ? out->observer(policy) : nullptr; });
  std::vector<LoadPoint> loads;
  for (std::size_t i = 0; i < loaded.size(); ++i)
    loads.push_back({arguments.loads[i], compare(loaded[i], arguments.threads)});
  Json document = json_document(context.arguments);
  document.update(sim_json(arguments.request.file, scenario, reports, loads));
  if (out) out->commit(document);
  if (arguments.json) {
    print_json(document);
  } else {
    print_sim_report(std::cout, scenario, reports);
    print_loads(std::cout, scenario, loads);
    if (out) std::cout << "\nwritten to " << printable_line(out->path("")) << '\n';
  }
}

}  // namespace

void add_sim(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<SimArguments>();
  options.required_text("scenario", arguments->request.file, "Scenario to run (docs/simulator.md)", "SCENARIO.toml");
  options.text("--out", arguments->out,
               "Folder for the result, the requests (CSV) and the steps (Chrome trace) of the first replication",
               "DIR");
  options.integer("--seed", arguments->request.seed, {}, "Instead of the scenario's");
  options.integer("--replications", arguments->request.replications, {1, 10'000}, "Instead of the scenario's");
  options.texts("--set", arguments->request.changes,
                "Instead of the scenario's value, as workload.arrivals.rate=12; may be given several times",
                "KEY=VALUE");
  options.numbers(
      "--load", arguments->loads, {},
      "Besides, every policy at these loads, as 4,8,16: requests per second, or at a time with closed arrivals");
  options.threads(arguments->threads);
  options.json(arguments->json);
  options.examples({"experiments/scenarios/chat.toml", "experiments/scenarios/chat.toml --load 4,8,16 --out out/sim"});
  options.on_run([arguments, &context] { run(*arguments, context); });
}

}  // namespace draftproof
