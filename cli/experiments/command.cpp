// draftproof experiments: claims that people quote, and what the simulator says of them.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "base/files/run_folder.hpp"
#include "base/printable.hpp"
#include "cli/experiments/report.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/progress.hpp"
#include "cli/shared/terminal.hpp"
#include "sim/serving/row_store.hpp"
#include "studies/figures/figure.hpp"

namespace draftproof {
namespace {

struct ExperimentsArguments {
  std::string name;
  std::string folder = DRAFTPROOF_EXPERIMENTS;
  std::string out = "out/experiments";
  std::string claims;
  int threads = 1;
  bool json = false;
};

std::vector<std::string> chosen(const ExperimentsArguments& arguments) {
  const std::vector<std::string> names = experiment_names(arguments.folder);
  if (names.empty())
    throw input_error(arguments.folder, "holds no experiments; expected folders with an experiment.toml");
  if (arguments.name.empty()) return names;
  if (std::ranges::find(names, arguments.name) != names.end()) return {arguments.name};
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  throw usage_error("experiment", "'" + printable_line(arguments.name) + "' is not one of " + list);
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw input_error("--out", "the files could not be written; is the disk full?");
}

// Everything that is not a figure, and the paths where it will be.
void write_rows(RunFolder& folder, const std::vector<ExperimentResult>& results) {
  RowStore store(
      folder.staged("rows.sqlite"), "experiments", "experiment_number",
      {"claim", "experiment", "x", "claimed_low", "claimed_high", "model_low", "model_high", "consistent", "why"});
  for (std::size_t i = 0; i < results.size(); ++i) {
    std::vector<Row> rows;
    for (const ClaimVerdict& claim : results[i].claims)
      rows.push_back({claim.what, results[i].name, results[i].x_name.empty() ? Cell() : Cell(claim.x),
                      claim.claimed.low, claim.claimed.high, claim.model.low, claim.model.high,
                      std::int64_t{claim.consistent}, claim.why});
    store.add(static_cast<std::int64_t>(i), rows);
    write_text(folder.staged(results[i].name + ".csv"), experiment_csv(results[i]));
  }
}

// The paths where the figures will be; no_figures: why some are missing.
Json draw(RunFolder& folder, const std::vector<ExperimentResult>& results, std::string& no_figures) {
  Json figures = Json::array();
  for (const ExperimentResult& result : results) {
    const std::string name = result.name + ".svg";
    try {
      write_figure(folder.staged(name), experiment_figure(result));
      figures.push_back(folder.final_path(name));
    } catch (const Error& error) {
      no_figures = folder.with_final_paths(error.what());
      break;
    }
  }
  return figures;
}

void run(const ExperimentsArguments& arguments, ProgramContext& context) {
  const std::vector<std::string> names = chosen(arguments);
  std::vector<std::string> files{"rows.sqlite", "claims.md"};
  for (const std::string& name : experiment_names(arguments.folder))
    for (const char* const suffix : {".csv", ".svg"}) files.push_back(name + suffix);
  // Before the work: what cannot be written is known at once.
  RunFolder folder(arguments.out, files);
  std::optional<AtomicFile> claims_file;
  if (!arguments.claims.empty()) claims_file.emplace(arguments.claims);

  std::vector<ExperimentResult> results;
  {
    Progress progress("experiments", names.size(), "experiments");
    for (const std::string& name : names) {
      results.push_back(run_experiment(arguments.folder, name, arguments.threads));
      progress.advance();
    }
  }
  folder.write([&] { write_rows(folder, results); });
  const std::string markdown = claims_markdown(results);
  write_text(folder.staged("claims.md"), markdown);
  std::string no_figures;
  const Json figures = draw(folder, results, no_figures);
  if (claims_file) {
    claims_file->stream() << markdown;
    claims_file->commit();
  }
  folder.commit();
  if (!no_figures.empty()) print_message("warning", "no figures: " + no_figures);
  if (arguments.json) {
    Json document = json_document(context.arguments);
    Json list = Json::array();
    for (const ExperimentResult& result : results) list.push_back(experiment_json(result));
    document["experiments"] = list;
    document["files"] = {
        {"rows", folder.final_path("rows.sqlite")}, {"claims", folder.final_path("claims.md")}, {"figures", figures}};
    print_json(document);
    return;
  }
  int claims = 0, consistent = 0;
  for (const ExperimentResult& result : results) {
    print_experiment(std::cout, result);
    claims += static_cast<int>(result.claims.size());
    consistent += result.consistent();
  }
  std::cout << consistent << " of " << claims << " claims are consistent; rows, tables and figures in "
            << printable_line(arguments.out) << '\n';
}

}  // namespace

void add_experiments(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<ExperimentsArguments>();
  options.text("name", arguments->name, "Experiment to run; all if left out", "NAME");
  options.text("--folder", arguments->folder, "Folder of experiments", "DIR");
  options.text("--out", arguments->out, "Folder for rows (SQLite), tables (CSV), figures (SVG) and claims.md", "DIR");
  options.file("--claims", arguments->claims, "Also write claims.md here");
  options.threads(arguments->threads);
  options.json(arguments->json);
  options.examples({"", "low_acceptance --out out/experiments"});
  options.on_run([arguments, &context] { run(*arguments, context); });
}

}  // namespace draftproof
