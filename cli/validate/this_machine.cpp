#include "cli/validate/this_machine.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>

#include "base/error.hpp"
#include "base/files/input_file.hpp"
#include "base/json_text.hpp"
#include "base/printable.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/this_machine.hpp"
#include "reference/step/draft_plan.hpp"

namespace draftproof {
namespace {

constexpr std::size_t kTableMax = std::size_t{256} << 20;

struct Row {
  std::string name;
  std::string work;
  const Json* measured;
  double predicted;
  double error() const { return predicted / measured->at("speedup").get<double>() - 1.0; }
};

struct Excluded {
  std::string name;
  std::string reason;
};

Json read_table(const std::string& path) {
  if (std::error_code ignored; !std::filesystem::exists(path, ignored))
    throw usage_error("--table", path +
                                     " is not there; expected the result of draftproof speculate, which is to be run "
                                     "on this computer before");
  auto table = parse_json<Json>(InputFile(path, kTableMax).text(), path);
  if (!table.is_object() || !table.contains("settings") || !table.contains("rows") || !table.at("rows").is_array())
    throw input_error(path, "is no table of draftproof speculate; expected its result.json");
  for (const char* const key : {"model", "arithmetic", "threads", "cpu", "simd"})
    if (!table.at("settings").is_object() || !table.at("settings").contains(key))
      throw input_error(path,
                        std::string("its settings have no '") + key + "'; expected a table of draftproof speculate");
  std::size_t number = 0;
  for (const Json& row : table.at("rows")) {
    for (const char* const key :
         {"work", "drafter", "k", "tree", "temperature", "batch", "speedup", "speedup_low", "speedup_high", "requests"})
      if (!row.is_object() || !row.contains(key))
        throw input_error(path, "row " + std::to_string(number) + " has no '" + key +
                                    "'; expected a table of this version of draftproof speculate");
    if (!row.at("speedup").is_number() || !(row.at("speedup").get<double>() > 0.0))
      throw input_error(path, "row " + std::to_string(number) + " has no speedup above 0");
    ++number;
  }
  return table;
}

// Times were measured there and are predicted here: it must be one computer and one arithmetic.
void require_same(const Json& settings, const char* key, const std::string& here, const std::string& path) {
  if (settings.at(key) != here)
    throw usage_error("--measured", path + " was measured with " + key + " " + settings.at(key).dump() +
                                        ", and here it is \"" + here + "\"; expected a table of this computer");
}

std::string name_of(const Json& row) {
  std::string name = row.at("drafter").get<std::string>() + " ";
  name += row.at("tree").is_null() ? "K=" + row.at("k").dump() : row.at("tree").get<std::string>();
  if (row.at("temperature") != 0.0) name += ", T=" + row.at("temperature").dump();
  if (row.at("batch") != 1) name += ", batch " + row.at("batch").dump();
  return name;
}

double predict_row(const Json& row, const MachineProfile& profile, double share, const std::string& path) {
  const std::vector<CountedRequest> requests = read_counted_requests(row.at("requests"), path);
  DraftPasses drafting{share, {}};
  if (row.at("tree").is_null()) {
    drafting.widths.assign(row.at("k").get<std::size_t>(), 1);
  } else {
    // Nodes at each depth: one pass drafts them.
    const TreeShape shape = parse_tree(row.at("tree").get<std::string>(), "rows[].tree");
    std::vector<std::size_t> depths;
    for (const std::int32_t parent : shape.parents) {
      const std::size_t depth = parent == kRootNode ? 0 : depths[static_cast<std::size_t>(parent)] + 1;
      depths.push_back(depth);
      if (depth == drafting.widths.size()) drafting.widths.push_back(0);
      ++drafting.widths[depth];
    }
  }
  const auto batch = row.at("batch").get<std::size_t>();
  double logarithms = 0.0;
  std::size_t groups = 0;
  for (std::size_t begin = 0; begin < requests.size(); begin += batch, ++groups) {
    const auto group = std::span(requests).subspan(begin, std::min(batch, requests.size() - begin));
    const double speedup = predicted_speedup(profile, group, drafting);
    if (!(speedup > 0.0))
      throw input_error("--this-machine",
                        "the timed passes fit no positive time of a step, as on a busy computer; "
                        "expected one with nothing else to do");
    logarithms += std::log(speedup);
  }
  if (groups == 0) throw input_error(path, "a row of " + name_of(row) + " has no requests");
  return std::exp(logarithms / static_cast<double>(groups));
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(std::lround(share * last))];
}

}  // namespace

Json validate_this_machine(const std::string& path, bool json, const ProgramContext& context) {
  const Json table = read_table(path);
  const Json& settings = table.at("settings");
  const TextModelOptions options{settings.at("arithmetic").get<std::string>().starts_with("f32"),
                                 settings.at("threads").get<int>()};
  require_same(settings, "cpu", processor_name(), path);
  const TimedModel timed = time_this_machine(settings.at("model").get<std::string>(), options);
  require_same(settings, "arithmetic", timed.profile.arithmetic, path);
  std::map<std::string, double> shares;  // by drafter
  std::vector<Row> rows;
  std::vector<double> errors;
  for (const Json& row : table.at("rows")) {
    const auto drafter = row.at("drafter").get<std::string>();
    if (!shares.contains(drafter))
      shares[drafter] = draft_share(parse_drafter(drafter, path), timed.text, options, path);
    rows.push_back({name_of(row), row.at("work").get<std::string>(), &row,
                    predict_row(row, timed.profile, shares[drafter], path)});
    errors.push_back(std::abs(rows.back().error()));
  }
  if (rows.empty()) throw input_error(path, "it has no rows; expected some that speculate measured");
  const double median = quantile(errors, 0.5);
  const double p90 = quantile(errors, 0.9);
  Json document = json_document(context.arguments);
  document["table"] = path;
  document["profile"] = machine_profile_json(timed.profile);
  document["median"] = median;
  document["p90"] = p90;
  document["rows"] = Json::array();
  for (const Row& row : rows) {
    Json entry;
    for (const char* const key : {"work", "drafter", "k", "tree", "temperature", "batch"})
      entry[key] = row.measured->at(key);
    entry["predicted"] = row.predicted;
    entry["measured"] = row.measured->at("speedup");
    entry["measured_low"] = row.measured->at("speedup_low");
    entry["measured_high"] = row.measured->at("speedup_high");
    entry["error"] = row.error();
    document["rows"].push_back(entry);
  }
  if (json) {
    print_json(document);
    return document;
  }
  print_machine_profile(timed.profile, std::cout);
  char line[200];
  std::snprintf(line, sizeof line, "\n%-12s %-34s %9s %9s %17s %8s\n", "work", "speculation", "predicted", "measured",
                "95 %", "error");
  std::cout << line;
  for (const Row& row : rows) {
    const Json& low = row.measured->at("speedup_low");
    const Json& high = row.measured->at("speedup_high");
    char interval[40] = "-";
    if (low.is_number() && high.is_number())
      std::snprintf(interval, sizeof interval, "%.2f to %.2f", low.get<double>(), high.get<double>());
    std::snprintf(line, sizeof line, "%-12s %-34s %9.2f %9.2f %17s %+7.1f%%\n", printable_line(row.work).c_str(),
                  printable_line(row.name).c_str(), row.predicted, row.measured->at("speedup").get<double>(), interval,
                  100.0 * row.error());
    std::cout << line;
  }
  std::snprintf(line, sizeof line, "\n%zu rows: absolute relative error median %.1f %%, 90th percentile %.1f %%\n",
                rows.size(), 100.0 * median, 100.0 * p90);
  std::cout << line;
  return document;
}

}  // namespace draftproof
