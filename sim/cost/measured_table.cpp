#include "sim/cost/measured_table.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/strict_number.hpp"

namespace draftproof {
namespace {

constexpr double kNanosecondsOfMs = 1e6;

// Means of neighbours until the values never fall (pool adjacent violators).
std::vector<double> never_falling(const std::vector<double>& y) {
  std::vector<std::pair<double, double>> pools;  // mean, number of values
  for (const double value : y) {
    pools.emplace_back(value, 1.0);
    while (pools.size() > 1 && pools.end()[-2].first > pools.back().first) {
      const auto [mean, count] = pools.back();
      pools.pop_back();
      auto& before = pools.back();
      before.first = (before.first * before.second + mean * count) / (before.second + count);
      before.second += count;
    }
  }
  std::vector<double> result;
  for (const auto& [mean, count] : pools) result.insert(result.end(), static_cast<std::size_t>(count), mean);
  return result;
}

std::string whole(double value) {
  return std::to_string(static_cast<long long>(value));
}

}  // namespace

MonotoneCurve::MonotoneCurve(std::vector<double> x, const std::vector<double>& y)
    : x_(std::move(x)), y_(never_falling(y)), slope_(x_.size(), 0.0) {
  // Fritsch and Carlson 1980, with the harmonic mean of the two secants: it never leaves their range.
  const auto secant = [&](std::size_t i) { return (y_[i + 1] - y_[i]) / (x_[i + 1] - x_[i]); };
  const std::size_t n = x_.size();
  if (n < 2) return;
  slope_.front() = secant(0);
  slope_.back() = secant(n - 2);
  for (std::size_t i = 1; i + 1 < n; ++i) {
    const double before = secant(i - 1);
    const double after = secant(i);
    slope_[i] = before > 0.0 && after > 0.0 ? 2.0 * before * after / (before + after) : 0.0;
  }
}

double MonotoneCurve::at(double x) const {
  if (x <= x_.front()) return y_.front();
  if (x >= x_.back()) return y_.back() + slope_.back() * (x - x_.back());
  const auto above = static_cast<std::size_t>(std::upper_bound(x_.begin(), x_.end(), x) - x_.begin());
  const std::size_t i = above - 1;
  const double width = x_[above] - x_[i];
  const double t = (x - x_[i]) / width;
  const double u = 1.0 - t;
  return u * u * (1.0 + 2.0 * t) * y_[i] + t * t * (3.0 - 2.0 * t) * y_[above] +
         width * t * u * (u * slope_[i] - t * slope_[above]);
}

MeasuredTable::MeasuredTable(const std::string& path) : MeasuredTable(read_csv(path), path) {}

MeasuredTable::MeasuredTable(const CsvTable& table, const std::string& file) {
  const int part_column = table.column("part");
  const int rows_column = table.column("rows");
  const int ms_column = table.column("ms");
  const int kv_column = table.column("kv_tokens");
  if (part_column < 0 || rows_column < 0 || ms_column < 0)
    throw input_error(printable_line(file), "it lacks a column; expected part, rows and ms");
  // part -> kv_tokens -> rows -> times
  std::map<std::string, std::map<double, std::map<double, std::vector<double>>>> parts;
  for (const CsvRow& row : table.rows) {
    const std::string where = printable_line(file) + ":" + std::to_string(row.line);
    if (row.fields.size() != table.columns.size())
      throw input_error(where, "it has " + std::to_string(row.fields.size()) + " fields; expected " +
                                   std::to_string(table.columns.size()));
    const auto field = [&](int column) { return row.fields[static_cast<std::size_t>(column)]; };
    const auto number = [&](int column, const char* name, double least) {
      const auto value = read_number(field(column));
      if (!value || !(*value >= least && *value <= 1e12))
        throw input_error(where, std::string(name) + " is " + in_quotes(field(column)) + "; expected a number from " +
                                     (least > 0.0 ? "above 0" : "0") + " on");
      return *value;
    };
    const std::string part = field(part_column);
    if (part != "target" && part != "draft" && part != "overhead" && part != "speculation")
      throw input_error(where, "part is " + in_quotes(part) + "; expected target, draft, overhead or speculation");
    const double kv =
        part == "target" && kv_column >= 0 && !field(kv_column).empty() ? number(kv_column, "kv_tokens", 0.0) : 0.0;
    parts[part][kv][number(rows_column, "rows", 0.0)].push_back(number(ms_column, "ms", 1e-9));
  }
  const auto curve = [](const std::map<double, std::vector<double>>& points) {
    std::vector<double> x, y;
    for (const auto& [rows, times] : points) {
      double sum = 0.0;
      for (const double time : times) sum += time;
      x.push_back(rows);
      y.push_back(sum / static_cast<double>(times.size()));
    }
    return MonotoneCurve(x, y);
  };
  for (const auto& [kv, points] : parts["target"]) target_.emplace(kv, curve(points));
  if (target_.empty()) throw input_error(printable_line(file), "it has no row of part target; expected at least one");
  for (auto& [name, curves] : {std::pair<const char*, std::vector<MonotoneCurve>*>{"draft", &draft_},
                               {"overhead", &overhead_},
                               {"speculation", &speculation_}})
    if (!parts[name].empty()) curves->push_back(curve(parts[name][0.0]));
}

double MeasuredTable::target_ns(const PassLoad& load) const {
  const double rows = static_cast<double>(load.rows);
  const double kv = static_cast<double>(load.kv_tokens);
  const auto above = target_.lower_bound(kv);
  if (target_.size() == 1 || above == target_.begin()) return kNanosecondsOfMs * target_.begin()->second.at(rows);
  // Between two curves, or beyond the last one on the line through the last two; not below the last one.
  const auto high = above == target_.end() ? std::prev(target_.end()) : above;
  const auto low = std::prev(high);
  const double low_ms = low->second.at(rows);
  const double high_ms = high->second.at(rows);
  const double ms = low_ms + (kv - low->first) / (high->first - low->first) * std::max(0.0, high_ms - low_ms);
  return kNanosecondsOfMs * ms;
}

double MeasuredTable::draft_ns(const DraftLoad& load) const {
  if (load.passes <= 0 || draft_.empty()) return 0.0;
  return kNanosecondsOfMs * load.passes * draft_.front().at(static_cast<double>(load.rows) / load.passes);
}

double MeasuredTable::overhead_ns(std::int64_t requests, const DraftLoad& load) const {
  double ms = overhead_.empty() ? 0.0 : overhead_.front().at(static_cast<double>(requests));
  if (load.passes > 0 && load.requests > 0 && !speculation_.empty())
    ms += speculation_.front().at(static_cast<double>(requests));
  return kNanosecondsOfMs * ms;
}

std::string MeasuredTable::extrapolates(const PassLoad& load) const {
  const double rows = static_cast<double>(load.rows);
  const double kv = static_cast<double>(load.kv_tokens);
  double least = target_.begin()->second.first();
  double most = target_.begin()->second.last();
  for (const auto& [tokens, curve] : target_) {
    least = std::max(least, curve.first());
    most = std::min(most, curve.last());
  }
  if (rows > most) return whole(rows) + " rows: measured up to " + whole(most);
  if (rows < least) return whole(rows) + " rows: measured from " + whole(least) + " on";
  if (kv > target_.rbegin()->first && target_.size() > 1)
    return whole(kv) + " KV tokens: measured up to " + whole(target_.rbegin()->first);
  return "";
}

std::string MeasuredTable::extrapolates(const DraftLoad& load) const {
  if (load.passes <= 0) return "";
  if (draft_.empty()) return "drafting: not measured";
  const double rows = static_cast<double>(load.rows) / load.passes;
  if (rows > draft_.front().last())
    return whole(rows) + " rows of a draft pass: measured up to " + whole(draft_.front().last());
  return "";
}

}  // namespace draftproof
