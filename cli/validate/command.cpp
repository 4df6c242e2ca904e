// draftproof validate: published speedups, each predicted without having seen its source; or those of this computer,
// from a few timed passes.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "cli/shared/artefacts.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/progress.hpp"
#include "cli/validate/this_machine.hpp"
#include "sim/cost/validation.hpp"
#include "sim/predict/published_replay.hpp"

namespace draftproof {
namespace {

// --- `validate --replay DIR`: published recordings replayed at published cost, beside the published speedups.

constexpr double kGoal = 0.03;
constexpr std::array<std::int64_t, 3> kBatches{1, 8, 32};

// SpecDecode-Bench (2601.11580), EAGLE-3 on GSM8K, batch 1, 8 and 32.
struct Published {
  const char* dataset;
  const char* policy;
  std::array<double, kBatches.size()> speedups;
};
constexpr Published kPublished[] = {{"gsm8k", "FIXED_3", {1.81, 1.73, 1.52}}, {"gsm8k", "ORACLE", {2.13, 2.06, 1.87}}};

std::optional<double> published_of(const std::string& dataset, const ReplayedSpeedup& row) {
  for (const Published& p : kPublished)
    for (std::size_t i = 0; i < kBatches.size(); ++i)
      if (dataset.find(p.dataset) != std::string::npos && row.policy == p.policy && row.batch == kBatches[i])
        return p.speedups[i];
  return std::nullopt;
}

struct Replayed {
  std::string dataset;
  std::size_t requests = 0;
  std::vector<ReplayedSpeedup> rows;
  LookupComparison lookup;
};

std::vector<Replayed> replay_all(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code no_folder;
  for (const auto& entry : std::filesystem::directory_iterator(folder, no_folder))
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
  if (no_folder)
    throw input_error("--replay", printable_line(folder) + " cannot be read as a folder: " + no_folder.message());
  if (files.empty())
    throw input_error("--replay",
                      printable_line(folder) + " holds no *.jsonl; expected a folder of recorded acceptances");
  std::ranges::sort(files);
  std::vector<Replayed> all;
  Progress progress("replaying", files.size(), "files");
  for (const auto& file : files) {
    Replayed& replayed = all.emplace_back();
    replayed.dataset = file.stem().string();
    const AcceptanceRecording eagle = read_recording(file.string(), "eagle");
    replayed.requests = eagle.requests.size();
    replayed.rows = replay_speedups(eagle, {kBatches.begin(), kBatches.end()});
    replayed.lookup = compare_lookup(read_recording(file.string(), "ngram"), file.string());
    progress.advance();
  }
  return all;
}

double share_of(const LookupComparison& lookup) {
  return static_cast<double>(lookup.equal) / static_cast<double>(lookup.places);
}

Json json_of(const Replayed& replayed) {
  Json json{{"dataset", printable_line(replayed.dataset)}, {"requests", replayed.requests}};
  json["rows"] = json_list(replayed.rows, [&](const ReplayedSpeedup& row) -> Json {
    const auto published = published_of(replayed.dataset, row);
    return {{"policy", row.policy},
            {"batch", row.batch},
            {"acceptance_length", row.acceptance_length},
            {"speedup", row.speedup},
            {"speedup_aligned", row.aligned},
            {"published", or_null(published)},
            {"error", published ? Json(row.speedup / *published - 1.0) : Json(nullptr)}};
  });
  const LookupComparison& lookup = replayed.lookup;
  const Json runs = json_list(lookup.runs, [](const LookupComparison::Run& run) -> Json {
    return {{"k", run.drafts}, {"recorded", run.recorded}, {"own", run.own}};
  });
  json["ngram"] = {{"places", lookup.places},
                   {"equal_share", share_of(lookup)},
                   {"draft_share", lookup.draft_share},
                   {"recorded_mean_accepted", lookup.recorded_mean},
                   {"own_mean_accepted", lookup.own_mean},
                   {"acceptance_lengths", runs}};
  return json;
}

void print_text(const std::vector<Replayed>& all, double worst) {
  std::cout << "Recorded acceptances at the published cost of Llama-3.1-8B on an H100 (EAGLE)\n\n"
               "data set                policy   batch  length  speedup  published  aligned\n";
  std::array<char, 160> line{};
  for (const Replayed& replayed : all) {
    for (const ReplayedSpeedup& row : replayed.rows) {
      const auto published = published_of(replayed.dataset, row);
      std::array<char, 16> text{"-"};
      if (published) std::snprintf(text.data(), text.size(), "%.2f", *published);
      std::snprintf(line.data(), line.size(), "%-24s%-8s%6ld%8.2f%9.2f%11s%9.2f\n",
                    printable_line(replayed.dataset).substr(0, 23).c_str(), row.policy.c_str(),
                    static_cast<long>(row.batch), row.acceptance_length, row.speedup, text.data(), row.aligned);
      std::cout << line.data();
    }
  }
  std::cout << "\nThis project's prompt lookup (3 to 5 tokens) over the recorded tokens\n\n"
               "data set                places   equal   drafts   length at K = 3    at K = 5, recorded (own)\n";
  for (const Replayed& replayed : all) {
    const LookupComparison& l = replayed.lookup;
    std::snprintf(line.data(), line.size(), "%-22s%8ld%7.2f %%%7.1f %%%11.3f (%.3f)%11.3f (%.3f)\n",
                  printable_line(replayed.dataset).substr(0, 21).c_str(), static_cast<long>(l.places),
                  100.0 * share_of(l), 100.0 * l.draft_share, l.runs[0].recorded, l.runs[0].own, l.runs[1].recorded,
                  l.runs[1].own);
    std::cout << line.data();
  }
  std::snprintf(line.data(), line.size(), "\nLargest error against a published speedup: %.2f %% (goal: at most 3 %%)\n",
                100.0 * worst);
  std::cout << line.data();
}

// DIR holds JSON lines as of sim/acceptance/replay.hpp, *.jsonl. Errors (input): no such file in it, or a malformed
// one. A published speedup that is missed by more than 3 % is a failure.
void run_replay(const std::string& folder, bool json, const Artefacts& artefacts, ProgramContext& context) {
  const std::vector<Replayed> all = replay_all(folder);
  double worst = 0.0;
  for (const Replayed& replayed : all)
    for (const ReplayedSpeedup& row : replayed.rows)
      if (const auto published = published_of(replayed.dataset, row))
        worst = std::max(worst, std::abs(row.speedup / *published - 1.0));
  Json document = json_document(context.arguments);
  document["replay"] = Json::array();
  for (const Replayed& replayed : all) document["replay"].push_back(json_of(replayed));
  document["worst_error"] = worst;
  write_table_of(artefacts, "Recorded acceptances at the published cost, beside published speedups", context, [&] {
    Json rows = Json::array();
    for (const Json& replayed : document["replay"])
      for (Json row : replayed.at("rows")) {
        row["dataset"] = replayed.at("dataset");
        rows.push_back(std::move(row));
      }
    return table_of(rows, {"dataset", "policy", "batch", "acceptance_length", "speedup", "published", "error"});
  });
  if (json) {
    print_json(document);
  } else {
    print_text(all, worst);
  }
  if (worst > kGoal) context.exit_code = ExitCode::finding;
}

struct Arguments {
  std::string data;
  std::string replay;
  bool this_machine = false;
  std::string measured = kSpeculateTable;
  Artefacts artefacts;
  bool json = false;
};

// The figures of a group that its rows have, as JSON and as columns of the text.
struct GroupColumn {
  const char* key;
  const char* head;
  int width;
  int digits;  // of the percentage
  double GroupFigures::*value;
};
constexpr GroupColumn kGroupColumns[] = {{"step_ratio_median", "median", 8, 1, &GroupFigures::step_ratio_median},
                                         {"step_ratio_p90", "p90", 7, 1, &GroupFigures::step_ratio_p90},
                                         {"bias", "bias", 8, 1, &GroupFigures::bias},
                                         {"speedup_median", "speedup", 8, 1, &GroupFigures::speedup_median},
                                         {"speedup_p90", "p90", 7, 1, &GroupFigures::speedup_p90},
                                         {"textbook_median", "textbook", 10, 1, &GroupFigures::textbook_median},
                                         {"band80_coverage", "in band", 9, 0, &GroupFigures::band80_coverage},
                                         {"band80_by_source", "by source", 11, 0, &GroupFigures::band80_by_source}};

Json json_of(const GroupFigures& figures) {
  Json json;
  json["rows"] = figures.rows;
  json["sources"] = figures.sources;
  for (const GroupColumn& column : kGroupColumns)
    json[column.key] = figures.rows == 0 ? Json(nullptr) : Json(figures.*column.value);
  json["choices"] = figures.choices;
  json["regret"] = figures.choices == 0 ? Json(nullptr) : Json(figures.regret);
  json["textbook_regret"] = figures.choices == 0 ? Json(nullptr) : Json(figures.textbook_regret);
  const SwitchDecisions& d = figures.decisions;
  json["decisions"] = {{"losses", d.losses}, {"losses_found", d.losses_found}, {"losses_off", d.losses_off},
                       {"gains", d.gains},   {"gains_kept", d.gains_kept},     {"gains_on", d.gains_on}};
  return json;
}

Json json_of(const CalibratedFigures& figures) {
  Json json{{"predictions", figures.predictions}, {"step_ratio_median", nullptr}, {"step_ratio_p90", nullptr}};
  if (figures.predictions == 0) return json;
  json["step_ratio_median"] = figures.step_ratio_median;
  json["step_ratio_p90"] = figures.step_ratio_p90;
  return json;
}

Json json_of(const PredictedPoint& predicted) {
  const MeasuredPoint& point = *predicted.point;
  Json json;
  json["line"] = point.line;
  json["id"] = printable_line(point.id);
  json["source"] = printable_line(point.source);
  json["hardware"] = printable_line(point.hardware);
  json["engine"] = printable_line(point.engine);
  json["model"] = printable_line(point.model);
  json["method"] = printable_line(point.method);
  json["draft"] = point.draft;
  json["batch"] = point.batch.batch;
  json["complete"] = point.complete();
  json["assumptions"] = point.assumptions;
  json["constants"] = predicted.from_shipped ? "shipped" : "other sources";
  json["step_ratio"] = point.step_ratio;
  json["predicted"] = predicted.step_ratio();
  json["low"] = predicted.step_ratio() * std::exp(-predicted.half_width);
  json["high"] = predicted.step_ratio() * std::exp(predicted.half_width);
  json["speedup"] = point.speedup;
  json["predicted_speedup"] = predicted.speedup();
  json["loss_probability"] = predicted.band().loss_probability();
  json["textbook"] = point.textbook_ratio;
  return json;
}

std::map<std::string, std::vector<const ExcludedRow*>> by_reason(const std::vector<ExcludedRow>& excluded) {
  std::map<std::string, std::vector<const ExcludedRow*>> reasons;
  for (const ExcludedRow& row : excluded) reasons[row.reason].push_back(&row);
  return reasons;
}

Json json_of(const std::vector<ExcludedRow>& excluded) {
  Json json = Json::array();
  for (const auto& [reason, rows] : by_reason(excluded)) {
    const auto row_json = [](const ExcludedRow* row) -> Json {
      return {{"line", row->line}, {"detail", printable_line(row->detail)}};
    };
    json.push_back({{"reason", reason}, {"count", rows.size()}, {"rows", json_list(rows, row_json)}});
  }
  return json;
}

std::string percent(double share, int digits = 1) {
  return number(("%." + std::to_string(digits) + "f").c_str(), 100.0 * share);
}

void print_group(std::ostream& out, const std::string& name, const GroupFigures& figures) {
  if (figures.rows == 0) return;
  out << std::left << std::setw(30) << printable_line(name).substr(0, 29) << std::right << std::setw(5) << figures.rows;
  for (const GroupColumn& column : kGroupColumns)
    out << std::setw(column.width) << percent(figures.*column.value, column.digits);
  out << std::setw(8) << (figures.choices == 0 ? std::string("-") : percent(figures.regret, 2)) << "\n";
}

void print_text(const Validation& validation, const Validation& refitted, const MeasuredData& data, std::ostream& out) {
  out << "Step ratio and speedup of each row, by the constants and bands that ship, fitted without its source; errors "
         "in "
         "per cent\n\n"
      << std::left << std::setw(30) << "group" << std::right << std::setw(5) << "rows";
  for (const GroupColumn& column : kGroupColumns) out << std::setw(column.width) << column.head;
  out << std::setw(8) << "regret"
      << "\n";
  print_group(out, "overall", validation.overall);
  for (const auto& [name, figures] : validation.groups) print_group(out, name, figures);
  const auto calibrated = [&](const char* name, const CalibratedFigures& figures) {
    if (figures.predictions > 0)
      out << "  " << name << ": median " << percent(figures.step_ratio_median) << ", p90 "
          << percent(figures.step_ratio_p90) << " (" << figures.predictions << " predictions)\n";
  };
  out << "\nFitted again to the other sources of this file\n";
  print_group(out, "overall", refitted.overall);
  print_group(out, "complete", refitted.groups.front().second);
  const SwitchDecisions& d = validation.overall.decisions;
  out << "\nDecisions: of " << d.losses << " measured losses the band holds a loss for " << d.losses_found
      << ", and speculation is turned off for " << d.losses_off << "; of " << d.gains << " gains " << d.gains_kept
      << " are given without a warning, and it is left on for " << d.gains_on << "\n";
  out << "\nWith one other configuration of the same machine measured\n";
  calibrated("complete rows", validation.calibrated_complete);
  calibrated("all rows", validation.calibrated_all);
  out << "\nWorst ten\n";
  for (const PredictedPoint* predicted : validation.worst) {
    const MeasuredPoint& point = *predicted->point;
    out << "  line " << std::left << std::setw(5) << point.line << std::right << std::fixed << std::setprecision(2)
        << std::setw(6) << predicted->step_ratio() << " for " << std::setw(5) << point.step_ratio << "  "
        << printable_line(point.source + ", " + point.hardware + ", " + point.model + ", " + point.method + " " +
                          point.draft)
        << ", batch " << point.batch.batch << "\n";
  }
  out << "\nExcluded rows: " << data.excluded.size() << "\n";
  for (const auto& [reason, rows] : by_reason(data.excluded)) {
    out << "  " << rows.size() << "  " << reason << " (";
    for (std::size_t i = 0; i < std::min<std::size_t>(rows.size(), 8); ++i)
      out << (i == 0 ? "line " : ", ") << rows[i]->line;
    out << (rows.size() > 8 ? ", ..." : "") << ")\n";
  }
}

void run(const Arguments& arguments, ProgramContext& context) {
  const int kinds =
      (arguments.data.empty() ? 0 : 1) + (arguments.replay.empty() ? 0 : 1) + (arguments.this_machine ? 1 : 0);
  if (kinds != 1) throw usage_error("validate", "expected one of --data CSV, --replay DIR and --this-machine");
  require_artefacts(arguments.artefacts, {{"--data", arguments.data}, {"--measured", arguments.measured}});
  if (!arguments.replay.empty()) return run_replay(arguments.replay, arguments.json, arguments.artefacts, context);
  if (arguments.this_machine) {
    const Json document = validate_this_machine(arguments.measured, arguments.json, context);
    write_table_of(arguments.artefacts, "Speedups of this computer, predicted from five timed passes", context, [&] {
      return table_of(document.at("rows"), {"work", "drafter", "k", "tree", "temperature", "batch", "predicted",
                                            "measured", "measured_low", "measured_high", "error"});
    });
    return;
  }
  const MeasuredData data = read_measured_data(arguments.data);
  const Validation validation = validate(data, shipped_fit(), Constants::as_shipped);
  const Validation refitted = validate(data, shipped_fit(), Constants::refitted);
  Json document = json_document(context.arguments);
  document["overall"] = json_of(validation.overall);
  document["groups"] = Json::object();
  for (const auto& [name, figures] : validation.groups) document["groups"][printable_line(name)] = json_of(figures);
  document["refitted"] = {{"overall", json_of(refitted.overall)},
                          {"complete", json_of(refitted.groups.front().second)}};
  document["calibrated"] = {{"complete", json_of(validation.calibrated_complete)},
                            {"all", json_of(validation.calibrated_all)}};
  write_table_of(arguments.artefacts, "Errors of predictions without their own source", context, [&] {
    Json rows = Json::array({document["overall"]});
    rows[0]["group"] = "overall";
    for (const auto& [name, figures] : document["groups"].items()) {
      rows.push_back(figures);
      rows.back()["group"] = name;
    }
    std::vector<std::string> keys{"group", "rows"};
    for (const GroupColumn& column : kGroupColumns) keys.emplace_back(column.key);
    keys.emplace_back("regret");
    return table_of(rows, keys);
  });
  if (!arguments.json) return print_text(validation, refitted, data, std::cout);
  document["excluded"] = json_of(data.excluded);
  document["worst"] = Json::array();
  for (const PredictedPoint* predicted : validation.worst) document["worst"].push_back(json_of(*predicted));
  document["rows"] = Json::array();
  for (const PredictedPoint& predicted : validation.points) document["rows"].push_back(json_of(predicted));
  print_json(document);
}

}  // namespace

void add_validate(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<Arguments>();
  options.file("--data", arguments->data, "CSV of measured speedups (columns: docs/json.md, validate)");
  options.text("--replay", arguments->replay,
               "Folder of recorded acceptances (*.jsonl): replay them at published cost, beside the published speedups",
               "DIR");
  options.flag("--this-machine", arguments->this_machine,
               "Predict what `draftproof speculate` measured on this computer, from five timed passes");
  options.file("--measured", arguments->measured, "With --this-machine: the result of `draftproof speculate`");
  add_table(options, arguments->artefacts);
  options.used_only({"--measured"}, "without --this-machine", [arguments] { return arguments->this_machine; });
  options.json(arguments->json);
  options.examples(
      {"--data speedups.csv", "--data speedups.csv --table errors.tex --paper-width double", "--this-machine"});
  options.on_run([arguments, &context] { run(*arguments, context); });
}

}  // namespace draftproof
