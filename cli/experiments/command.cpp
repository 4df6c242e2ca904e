// draftproof experiments: claims that people quote, and what the simulator says of them.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include "base/csv_text.hpp"
#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "base/files/own_files.hpp"
#include "base/files/run_folder.hpp"
#include "base/printable.hpp"
#include "cli/shared/artefacts.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/progress.hpp"
#include "cli/shared/terminal.hpp"
#include "sim/serving/row_store.hpp"
#include "studies/experiments/experiment.hpp"
#include "studies/figures/figure.hpp"

namespace draftproof {
namespace {

std::string padded(const std::string& text, std::size_t width) {
  return text.size() < width ? text + std::string(width - text.size(), ' ') : text;
}

Json range_json(ValueRange range) {
  return Json::array({finite("low", range.low), finite("high", range.high)});
}

const char* outcome_words(ClaimOutcome outcome) {
  return outcome == ClaimOutcome::consistent ? "consistent"
         : outcome == ClaimOutcome::possible ? "possible"
                                             : "not consistent";
}

void print_experiment(std::ostream& out, const ExperimentResult& result) {
  const Palette palette(wants_colour(1));
  out << result.title << "  (" << result.name << ")\n" << result.question << '\n';
  std::size_t width = 8;
  for (const ClaimVerdict& claim : result.claims) width = std::max(width, claim.what.size());
  out << "  " << padded("claim", width + 2) << padded("claimed", 14) << padded("model", 14) << result.quantity << '\n';
  for (const ClaimVerdict& claim : result.claims)
    out << "  " << padded(claim.what, width + 2) << padded(text_of(claim.claimed), 14)
        << padded(text_of(claim.model), 14)
        << palette.paint(claim.outcome == ClaimOutcome::refuted ? Colour::red : Colour::green,
                         outcome_words(claim.outcome))
        << ": " << claim.why << '\n';
  out << result.reading << "\nSource: " << result.source << "\n\n";
}

Json experiment_json(const ExperimentResult& result) {
  const Json claims = json_list(result.claims, [&](const ClaimVerdict& claim) -> Json {
    return {{"what", claim.what},
            {"x", result.x_name.empty() ? Json(nullptr) : Json(claim.x)},
            {"claimed", range_json(claim.claimed)},
            {"model", range_json(claim.model)},
            {"verdict", name_of(claim.outcome)},
            {"why", claim.why}};
  });
  return {{"name", result.name},
          {"title", result.title},
          {"question", result.question},
          {"source", result.source},
          {"kind", result.kind},
          {"quantity", result.quantity},
          {"reading", result.reading},
          {"tolerance", result.tolerance},
          {"consistent", result.count(ClaimOutcome::consistent)},
          {"possible", result.count(ClaimOutcome::possible)},
          {"claims", claims}};
}

// what,x,claimed_low,claimed_high,model_low,model_high,verdict
std::string experiment_csv(const ExperimentResult& result) {
  std::ostringstream out;
  out.precision(17);
  out << "what,x,claimed_low,claimed_high,model_low,model_high,verdict\n";
  for (const ClaimVerdict& claim : result.claims) {
    out << csv_field(claim.what) << ',';
    if (!result.x_name.empty()) out << claim.x;
    out << ',' << claim.claimed.low << ',' << claim.claimed.high << ',' << claim.model.low << ',' << claim.model.high
        << ',' << name_of(claim.outcome) << '\n';
  }
  return out.str();
}

// Claims and model, as a curve or as points beside one another: a script for gnuplot.
std::string experiment_figure(const ExperimentResult& result) {
  std::ostringstream out;
  const bool curve = !result.x_name.empty();
  const auto block = [&](const char* name, bool claimed, double shift) {
    out << '$' << name << " << EOD\n";
    for (std::size_t i = 0; i < result.claims.size(); ++i) {
      const ClaimVerdict& claim = result.claims[i];
      const ValueRange range = claimed ? claim.claimed : claim.model;
      out << (curve ? claim.x : static_cast<double>(i) + shift) << ' ' << 0.5 * (range.low + range.high) << ' '
          << range.low << ' ' << range.high << '\n';
    }
    out << "EOD\n";
  };
  block("claimed", true, -0.1);
  block("model", false, 0.1);
  out << "set title " << gnuplot_quoted(result.title) << "\nset ylabel " << gnuplot_quoted(result.quantity)
      << "\nset yrange [0:*]\nset key below\nset grid ytics\n";
  if (curve) {
    out << "set xlabel " << gnuplot_quoted(result.x_name) << '\n';
    if (result.log_x) out << "set logscale x 2\n";
    out << "plot $claimed using 1:2 with linespoints lw 2 pt 7 title 'claimed', "
           "$model using 1:2 with linespoints lw 2 pt 5 title 'model'\n";
    return out.str();
  }
  if (result.kind == "bytes") out << "set logscale y\nset yrange [*:*]\n";
  out << "set xrange [-0.6:" << static_cast<double>(result.claims.size()) - 0.4 << "]\nset xtics rotate by 60 right (";
  for (std::size_t i = 0; i < result.claims.size(); ++i) {
    // Labels of tics are formats, in which a percent sign is written twice.
    std::string label;
    for (const char c : result.claims[i].what) label += c == '%' ? std::string("%%") : std::string(1, c);
    out << (i == 0 ? "" : ", ") << gnuplot_quoted(label) << ' ' << i;
  }
  out << ")\nplot $claimed using 1:2:3:4 with yerrorbars lw 2 pt 7 title 'claimed', "
         "$model using 1:2:3:4 with yerrorbars lw 2 pt 5 title 'model'\n";
  return out.str();
}

Table claims_table(const Json& experiments) {
  Json rows = Json::array();
  for (const Json& experiment : experiments)
    for (Json claim : experiment.at("claims")) {
      claim["experiment"] = experiment.at("name");
      rows.push_back(std::move(claim));
    }
  return table_of(rows, {"experiment", "what", "claimed", "model", "consistent"});
}

struct ExperimentsArguments {
  std::string name;
  std::string folder = own_file("experiments");
  std::string out = "out/experiments";
  std::string claims;
  Artefacts artefacts;
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
      {"claim", "experiment", "x", "claimed_low", "claimed_high", "model_low", "model_high", "verdict", "why"});
  for (std::size_t i = 0; i < results.size(); ++i) {
    std::vector<Row> rows;
    for (const ClaimVerdict& claim : results[i].claims)
      rows.push_back({claim.what, results[i].name, results[i].x_name.empty() ? Cell() : Cell(claim.x),
                      claim.claimed.low, claim.claimed.high, claim.model.low, claim.model.high,
                      std::string(name_of(claim.outcome)), claim.why});
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
  require_artefacts(arguments.artefacts);
  if (!arguments.artefacts.figure.empty() && names.size() > 1)
    throw usage_error("--figure", "is of one experiment; expected its name, or the figures that --out holds");
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
  Json document = json_document(context.arguments);
  document["experiments"] = json_list(results, experiment_json);
  write_table_of(arguments.artefacts, "Published claims, and what the model says", context,
                 [&] { return claims_table(document["experiments"]); });
  write_figure_of(arguments.artefacts, context, [&] { return experiment_figure(results.front()); });
  if (arguments.json) {
    document["files"] = {
        {"rows", folder.final_path("rows.sqlite")}, {"claims", folder.final_path("claims.md")}, {"figures", figures}};
    print_json(document);
    return;
  }
  int claims = 0, consistent = 0, possible = 0;
  for (const ExperimentResult& result : results) {
    print_experiment(std::cout, result);
    claims += static_cast<int>(result.claims.size());
    consistent += result.count(ClaimOutcome::consistent);
    possible += result.count(ClaimOutcome::possible);
  }
  std::cout << consistent << " of " << claims << " claims are consistent, " << possible
            << " possible; rows, tables and figures in " << printable_line(arguments.out) << '\n';
}

}  // namespace

void add_experiments(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<ExperimentsArguments>();
  options.text("name", arguments->name, "Experiment to run; all if left out", "NAME");
  options.text("--folder", arguments->folder, "Folder of experiments", "DIR");
  options.text("--out", arguments->out, "Folder for rows (SQLite), tables (CSV), figures (SVG) and claims.md", "DIR");
  options.file("--claims", arguments->claims, "Also write claims.md here");
  options.threads(arguments->threads);
  add_artefacts(options, arguments->artefacts);
  options.json(arguments->json);
  options.examples({"", "low_acceptance --out out/experiments", "--table claims.tex --paper-width double"});
  options.on_run([arguments, &context] { run(*arguments, context); });
}

}  // namespace draftproof
