#include "sim/serving/grid.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "base/archives/sha256.hpp"
#include "base/error.hpp"
#include "base/files/input_file.hpp"
#include "base/files/own_files.hpp"

namespace draftproof {
namespace {

constexpr std::size_t kPointsMax = 1'000'000;

Cell cell_of(const TomlValue& value) {
  switch (value.kind()) {
    case TomlValue::Kind::text:
      return value.text();
    case TomlValue::Kind::integer:
      return value.integer(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
    case TomlValue::Kind::number:
      return value.number();
    case TomlValue::Kind::flag:
      return std::int64_t{value.flag() ? 1 : 0};
    default:
      throw input_error(value.where(), "it is a table or a list; expected a text, a number, true or false");
  }
}

Cell cell_of(double value) {
  return std::isfinite(value) ? Cell(value) : Cell(std::monostate{});
}
Cell cell_of(const std::optional<double>& value) {
  return value ? cell_of(*value) : Cell(std::monostate{});
}

// All of them, since each is read once in a process, by whoever asks first.
std::string digest_of_presets() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(own_file("presets")))
    if (entry.is_regular_file() && entry.path().extension() == ".toml") paths.push_back(entry.path().string());
  std::ranges::sort(paths);
  Sha256 all;
  for (const std::string& path : paths) all.update(sha256_hex(InputFile(path).bytes()));
  return all.hex_digest();
}

void append(Row& row, const Estimate& estimate) {
  row.push_back(cell_of(estimate.mean));
  row.push_back(cell_of(estimate.low));
  row.push_back(cell_of(estimate.high));
}

}  // namespace

Grid::Grid(const std::string& path) {
  const TomlValue file = read_toml(path);
  file.allow_only({"scenario", "grid"});
  const std::string scenario_path = (std::filesystem::path(path).parent_path() / file.at("scenario").text()).string();
  scenario_ = read_toml(scenario_path);
  const TomlValue& grid = file.at("grid");
  for (const std::string& key : grid.keys()) {
    const TomlValue& list = grid.at(key);
    if (list.kind() != TomlValue::Kind::array || list.items().empty())
      throw input_error(list.where(), "it has no list of values; expected one, and keys with points in quotes");
    keys_.push_back(key);
    values_.push_back(list.items());
    size_ *= list.items().size();
    if (size_ > kPointsMax)
      throw input_error(list.where(), "the grid has more than " + std::to_string(kPointsMax) + " points");
  }
  for (std::size_t point = 0; point < size_; ++point) {
    scenario(point);
    for (std::size_t key = 0; key < keys_.size(); ++key) cell_of(value(point, key));
  }
  contents_.end();
  identity_ = contents_.sha256(own_file("presets")) + " " + digest_of_presets();
}

// The last key changes fastest.
const TomlValue& Grid::value(std::size_t point, std::size_t key) const {
  for (std::size_t later = keys_.size() - 1; later > key; --later) point /= values_[later].size();
  return values_[key][point % values_[key].size()];
}

Scenario Grid::scenario(std::size_t point) const {
  TomlValue file = scenario_;
  for (std::size_t key = 0; key < keys_.size(); ++key) file = file.with(keys_[key], value(point, key));
  return read_scenario(file);
}

std::vector<std::string> Grid::columns() const {
  std::vector<std::string> columns{"policy"};
  columns.insert(columns.end(), keys_.begin(), keys_.end());
  const auto estimate = [&](const std::string& name) {
    for (const char* const suffix : {"", "_low", "_high"}) columns.push_back(name + suffix);
  };
  for (std::size_t f = 0; f < kFigures; ++f) estimate(name_of(static_cast<Figure>(f)));
  estimate("speedup");
  estimate("latency_ratio");
  for (const char* const name : {"requests", "sequence_steps", "events"}) columns.emplace_back(name);
  return columns;
}

std::string Grid::point_name(std::size_t point) const {
  std::ostringstream name;
  name << "point " << point;
  for (std::size_t key = 0; key < keys_.size(); ++key) {
    name << (key == 0 ? " (" : ", ") << keys_[key] << " = ";
    const Cell cell = cell_of(value(point, key));
    if (const auto* integer = std::get_if<std::int64_t>(&cell)) name << *integer;
    if (const auto* number = std::get_if<double>(&cell)) name << *number;
    if (const auto* text = std::get_if<std::string>(&cell)) name << *text;
  }
  name << ")";
  return name.str();
}

std::vector<PolicyReport> Grid::reports_of(std::size_t point) const {
  try {
    const ContentsRead now(&contents_);
    return compare(scenario(point), 1);
  } catch (const Error& error) {
    throw Error(error.kind(), point_name(point), error.what());
  }
}

std::vector<Row> Grid::run(std::size_t point) const {
  std::vector<Row> rows;
  for (const PolicyReport& report : reports_of(point)) {
    Row& row = rows.emplace_back();
    row.emplace_back(report.name);
    for (std::size_t key = 0; key < keys_.size(); ++key) row.push_back(cell_of(value(point, key)));
    for (const Estimate& estimate : report.figures) append(row, estimate);
    append(row, report.speedup);
    append(row, report.latency_ratio);
    for (const std::int64_t count : {report.requests, report.sequence_steps, report.events}) row.emplace_back(count);
  }
  return rows;
}

}  // namespace draftproof
