#include "cli/speculate/table.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <filesystem>
#include <sstream>

#include "base/csv_text.hpp"
#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "base/files/input_file.hpp"
#include "base/files/inputs_read.hpp"
#include "base/json_text.hpp"
#include "base/split.hpp"
#include "studies/figures/figure.hpp"

namespace draftproof {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kTableMax = std::uint64_t{1} << 28;
// Columns of the CSV file: a cell each, and two lists joined by semicolons.
constexpr std::string_view kColumns =
    "work,drafter,k,tree,verifier,policy,temperature,draft_temperature,batch,prompts,plain_tokens,tokens,steps,drafts,"
    "draft_tokens,accepted,speedup,speedup_low,speedup_high,acceptance_length,tokens_per_step,draft_ms,verify_ms,"
    "sample_ms,step_ms,plain_ms,equal,plain_speedup,plain_speedup_low,plain_speedup_high";
constexpr std::string_view kListColumns = "acceptance_by_position,acceptance_by_rank";

std::string csv_cell(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? csv_field(value.get<std::string>()) : value.dump();
}

std::string csv_list(const Json& list) {
  std::string cell;
  for (const Json& value : list) cell += (cell.empty() ? "" : ";") + (value.is_null() ? "" : value.dump());
  return cell;
}

// The first field of a row that is not what row_json() writes; empty: none.
std::string invalid_field(const Json& row) {
  if (!row.is_object()) return "object";
  using Check = std::function<bool(const Json&)>;
  const Check text = [](const Json& value) { return value.is_string(); };
  const Check number = [](const Json& value) { return value.is_number(); };
  const Check list = [](const Json& value) { return value.is_array(); };
  const auto or_nothing = [](const Check& check) {
    return [check](const Json& value) { return value.is_null() || check(value); };
  };
  const Check equal = [&](const Json& value) {
    return value.is_null() || value == true || (value == false && row.at("difference").is_string());
  };
  const Check rates = [&](const Json& value) {
    return value.is_object() && value.contains("conditional") && list(value.at("conditional"));
  };
  const std::vector<std::pair<std::string_view, Check>> fields{
      {"work,drafter,verifier,policy", text},
      {"tree,difference", or_nothing(text)},
      {"k,temperature,batch,prompts,plain_tokens,tokens,steps,drafts,draft_tokens,accepted,speedup", number},
      {"draft_temperature,speedup_low,speedup_high,acceptance_length,tokens_per_step,draft_ms,verify_ms,sample_ms,"
       "step_ms,plain_ms",
       or_nothing(number)},
      {"equal", equal},
      {"acceptance_by_position", rates},
      {"acceptance_by_rank", list}};
  for (const auto& [names, is_valid] : fields)
    for (const std::string_view name : split(names, ','))
      if (!row.contains(name) || !is_valid(row.at(name))) return std::string(name);
  return "";
}

Json read_table(const std::string& path) {
  const std::string text(InputFile(path, kTableMax).text());
  auto table = parse_json<Json>(text, path);
  const bool is_table = table.is_object() && table.contains("settings") && table.contains("rows") &&
                        table.at("settings").is_object() && table.at("rows").is_array();
  if (!is_table)
    throw input_error(path, "is no table of draftproof speculate; expected one, or another folder by --out");
  for (std::size_t i = 0; i < table.at("rows").size(); ++i)
    if (const std::string field = invalid_field(table.at("rows")[i]); !field.empty())
      throw input_error(path, "row " + std::to_string(i) + " has no valid '" + field +
                                  "'; expected a table of draftproof speculate, or another folder by --out");
  return table;
}

std::vector<std::string> in_order(const Json& rows, const std::function<std::string(const Json&)>& name) {
  std::vector<std::string> names;
  for (const Json& row : rows)
    if (std::ranges::find(names, name(row)) == names.end()) names.push_back(name(row));
  return names;
}

// One place on the x axis for each configuration, at it one point for each kind of work.
std::string figure_script(const Json& rows) {
  static const std::vector<std::string> kColours{"#2a9d5c", "#3b6fb6", "#c8553d", "#8a5fb0", "#b08a2e", "#555555"};
  const auto work_of = [](const Json& row) { return row.at("work").get<std::string>(); };
  const std::vector<std::string> configurations = in_order(rows, configuration_name);
  const std::vector<std::string> works = in_order(rows, work_of);
  double highest = 1.0, zero_low = 1.0, zero_high = 1.0;
  for (const Json& row : rows) {
    highest = std::max(highest, row.at("speedup").get<double>());
    const double zero = row.value("plain_speedup", 1.0);  // rows of earlier versions have none
    const auto end = [&](const char* key) { return row.value(key, Json()).is_null() ? zero : row[key].get<double>(); };
    zero_low = std::min(zero_low, end("plain_speedup_low"));
    zero_high = std::max(zero_high, end("plain_speedup_high"));
  }
  std::ostringstream data;
  std::ostringstream plots;
  for (std::size_t w = 0; w < works.size(); ++w) {
    data << "$work" << w << " << EOD\n";
    for (const Json& row : rows) {
      if (work_of(row) != works[w]) continue;
      const auto x = std::ranges::find(configurations, configuration_name(row)) - configurations.begin();
      const auto speedup = row.at("speedup").get<double>();
      data << static_cast<double>(x) + 0.7 * (static_cast<double>(w) + 0.5) / static_cast<double>(works.size()) - 0.35
           << ' ' << speedup << ' ' << (row.at("speedup_low").is_null() ? speedup : row.at("speedup_low").get<double>())
           << ' ' << (row.at("speedup_high").is_null() ? speedup : row.at("speedup_high").get<double>()) << '\n';
    }
    data << "EOD\n";
    plots << ", $work" << w << " using 1:2:3:4 with yerrorbars pt 7 ps 0.6 lw 1.5 lc rgb '"
          << kColours[w % kColours.size()] << "' title " << gnuplot_quoted(works[w]);
  }
  std::ostringstream labels;
  for (std::size_t i = 0; i < configurations.size(); ++i)
    labels << (i == 0 ? "" : ", ") << gnuplot_quoted(configurations[i]) << ' ' << i;
  std::ostringstream band;
  band << "set object rectangle from graph 0, first " << zero_low << " to graph 1, first " << zero_high
       << " behind fillcolor rgb '#dddddd' fillstyle solid noborder\n";
  return data.str() + band.str() +
         "set title 'Speculation against plain decoding of the same prompts (95 % intervals; grey: plain over plain)'\n"
         "set ylabel 'speedup, wall clock'\nset yrange [0:1.5 * " +
         std::to_string(highest) + "]\nset xrange [-0.5:" + std::to_string(configurations.size()) +
         " - 0.5]\nset xtics rotate by 40 right (" + labels.str() +
         ")\nset grid ytics lc rgb '#dddddd'\nset key below\n" + "plot 1 with lines dt 2 lc rgb '#222222' notitle" +
         plots.str() + "\n";
}

}  // namespace

std::string configuration_name(const Json& row) {
  std::ostringstream name;
  name << row.at("drafter").get<std::string>() << ' ';
  if (row.at("tree").is_null()) {
    name << "K=" << row.at("k");
  } else {
    name << row.at("tree").get<std::string>();
  }
  const bool looked_up = row.at("drafter") == "prompt_lookup" || row.at("drafter") == "suffix";
  if (looked_up && row.at("policy") == "fixed") name << ", all drafts";
  if (row.at("temperature") != 0.0) name << ", T=" << row.at("temperature").get<double>();
  if (row.at("batch") != 1) name << ", batch " << row.at("batch");
  return name.str();
}

SpeculateTable::SpeculateTable(const std::string& folder, const Json& settings)
    : json_path_((fs::path(folder) / "result.json").string()),
      csv_path_((fs::path(folder) / "speculate.csv").string()),
      figure_path_((fs::path(folder) / "speculate.svg").string()),
      settings_(settings) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error && !fs::is_directory(folder)) throw input_error(folder, "the folder cannot be made: " + error.message());
  lock_ = Descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock_.is_open() && ::flock(lock_.value(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw usage_error("--out", folder + " is being written by another process; expected another folder, or its end");
  require_writable({{"--out", json_path_}, {"--out", csv_path_}, {"--out", figure_path_}});
  if (!fs::exists(json_path_)) return;
  const Json table = read_table(json_path_);
  allow_replacing(json_path_);
  for (const auto& [key, value] : settings.items()) {
    const Json& other = table.at("settings").contains(key) ? table.at("settings").at(key) : Json(nullptr);
    if (other != value)
      throw usage_error("--out", folder + " holds a table with " + key + " " + other.dump() + ", and this run has " +
                                     value.dump() + "; expected the same, or another folder");
  }
  rows_ = table.at("rows");
}

void SpeculateTable::require_same_inputs(const Configuration& configuration, const std::string& inputs_sha256) const {
  const Json expected = text_or_null(inputs_sha256);
  for (const Json& row : rows_) {
    const Json found = row.contains("inputs_sha256") ? row.at("inputs_sha256") : Json(nullptr);
    if (row.at("drafter") != configuration.drafter || row.at("policy") != configuration.policy || found == expected)
      continue;
    throw usage_error("--out",
                      fs::path(json_path_).parent_path().string() + " holds rows of " + configuration.drafter +
                          " with inputs_sha256 " + found.dump() + ", and this run has " + expected.dump() +
                          ": a file of the drafter or of --cost is another; expected the same, or another folder");
  }
}

const Json* SpeculateTable::find(const std::string& work, const Configuration& configuration,
                                 std::int64_t batch) const {
  const auto found = std::ranges::find_if(rows_, [&](const Json& row) {
    return row.at("work") == work && row.at("drafter") == configuration.drafter && row.at("k") == configuration.k &&
           row.at("tree") == or_null(configuration.tree) && row.at("verifier") == configuration.verifier &&
           row.at("policy") == configuration.policy && row.at("temperature") == configuration.temperature &&
           row.at("batch") == batch;
  });
  return found == rows_.end() ? nullptr : &*found;
}

void SpeculateTable::add(const Json& row, const Json& envelope) {
  rows_.push_back(row);
  write(envelope);
}

Json SpeculateTable::document(const Json& envelope) const {
  Json document = envelope;
  document["settings"] = settings_;
  document["rows"] = rows_;
  document["findings"] = Json::array();
  for (const Json& row : rows_)
    if (row.at("equal") == false)
      document["findings"].push_back(row.at("work").get<std::string>() + ", " + configuration_name(row) + ": " +
                                     row.at("difference").get<std::string>());
  document["files"] = {{"result", json_path_}, {"csv", csv_path_}, {"figure", drawn_ ? Json(figure_path_) : Json()}};
  return document;
}

std::string SpeculateTable::figure() const {
  return figure_script(rows_);
}

std::string SpeculateTable::csv() const {
  std::string text = std::string(kColumns) + "," + std::string(kListColumns) + "\n";
  for (const Json& row : rows_) {
    for (const std::string_view column : split(kColumns, ','))
      text += csv_cell(row.value(column, Json())) + ",";  // those of earlier versions have not all
    text += csv_list(row.at("acceptance_by_position").at("conditional")) + "," +
            csv_list(row.at("acceptance_by_rank")) + "\n";
  }
  return text;
}

void SpeculateTable::write(const Json& envelope) const {
  AtomicFile csv_file(csv_path_);
  csv_file.stream() << csv();
  AtomicFile json_file(json_path_);
  write_json(json_file.stream(), json_path_, document(envelope));
  csv_file.commit();
  json_file.commit();
}

std::string SpeculateTable::draw() {
  try {
    write_figure(figure_path_, figure_script(rows_), {1200, 640});
    drawn_ = true;
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace draftproof
