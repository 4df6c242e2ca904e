#include "cli/bench/result.hpp"

#include <algorithm>
#include <iomanip>
#include <sstream>
#include <vector>

namespace draftproof {
namespace {

Json number_or_null(const std::string& name, std::optional<double> value) {
  return value ? Json(finite(name, *value)) : Json(nullptr);
}

template <class Number>
std::optional<double> ratio(std::optional<Number> numerator, double denominator) {
  if (!numerator || denominator == 0.0) return std::nullopt;
  return static_cast<double>(*numerator) / denominator;
}

std::string in_words(const BenchGoal& goal) {
  std::ostringstream out;
  out << goal.metric << (goal.at_most ? " <= " : " >= ") << goal.bound;
  return out.str();
}

std::string with_decimals(const Json& number, int decimals) {
  if (number.is_null()) return "-";
  std::ostringstream out;
  out << std::fixed << std::setprecision(decimals) << number.get<double>();
  return out.str();
}

Json to_json(const std::string& name, const Speedup& of) {
  return {{"ratio", finite(name, of.ratio)},
          {"low", number_or_null(name, of.low)},
          {"high", number_or_null(name, of.high)}};
}

// "0.993 [0.985, 1.001]"
std::string in_words(const Json& of) {
  if (of.is_null()) return "-";
  return with_decimals(of["ratio"], 3) + " [" + with_decimals(of["low"], 3) + ", " + with_decimals(of["high"], 3) + "]";
}

using Row = std::vector<std::string>;

// "ratio_to_mass_pass <= 1.15  met"
std::string goal_of(const Json& json) {
  if (json["goal"].is_null()) return "";
  const Json& met = json["met"];
  return json["goal"].get<std::string>() + (met.is_null() ? "" : met.get<bool>() ? "  met" : "  MISSED");
}

Row row_of(const BenchResult& result) {
  const Json json = to_json(result);
  return {result.name,
          std::to_string(result.threads),
          with_decimals(json["ms"], 3),
          with_decimals(json["ms_median"], 3),
          with_decimals(json["ns_per_element"], 3),
          with_decimals(json["gb_per_s"], 1),
          with_decimals(json["ratio_to_bandwidth"], 2),
          with_decimals(json["ratio_to_mass_pass"], 2),
          with_decimals(json["ratio_to_one_row"], 2),
          with_decimals(json["ratio_to_pytorch"], 1),
          with_decimals(json["ratio_to_llama_cpp"], 2),
          goal_of(json)};
}

Row policy_row_of(const BenchResult& result) {
  const Json json = to_json(result);
  const Json& ratios = json["ratio_to_plain"];
  return {result.name,
          std::to_string(result.threads),
          in_words(ratios["clock"]),
          in_words(ratios["cpu"]),
          in_words(ratios["instructions"]),
          goal_of(json)};
}

void print_rows(std::ostream& out, const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const Row& row : rows)
    for (std::size_t column = 0; column < row.size(); ++column)
      widths[column] = std::max(widths[column], row[column].size());
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t column = 0; column < row.size(); ++column) {
      const std::string fill(widths[column] - row[column].size(), ' ');
      const bool left = column == 0 || column + 1 == row.size();
      line += (column == 0 ? "" : "  ") + (left ? row[column] + fill : fill + row[column]);
    }
    out << line.substr(0, line.find_last_not_of(' ') + 1) << '\n';
  }
}

}  // namespace

Json to_json(const BenchResult& result) {
  const std::string& name = result.name;
  const double seconds = result.ms * 1e-3;
  Json json;
  json["name"] = name;
  json["threads"] = result.threads;
  json["ms"] = finite(name, result.ms);
  json["ms_median"] = finite(name, result.ms_median);
  json["elements"] = or_null(result.elements);
  json["ns_per_element"] =
      result.elements ? number_or_null(name, result.ms * 1e6 / static_cast<double>(*result.elements)) : Json(nullptr);
  json["bytes"] = or_null(result.bytes);
  json["message_bytes"] = or_null(result.message_bytes);
  const std::optional<double> bytes_per_s = ratio(result.bytes, seconds);
  json["gb_per_s"] = bytes_per_s ? number_or_null(name, *bytes_per_s * 1e-9) : Json(nullptr);
  json["ratio_to_bandwidth"] = number_or_null(name, ratio(bytes_per_s, result.bandwidth_bytes_per_s.value_or(0.0)));
  json["ratio_to_mass_pass"] =
      result.mass_pass_ms ? number_or_null(name, result.ms / *result.mass_pass_ms) : Json(nullptr);
  json["mass_pass_ms"] = number_or_null(name, result.mass_pass_ms);
  json["ratio_to_one_row"] = result.one_row_ms ? number_or_null(name, result.ms / *result.one_row_ms) : Json(nullptr);
  json["one_row_ms"] = number_or_null(name, result.one_row_ms);
  json["ratio_to_pytorch"] = number_or_null(name, ratio(result.pytorch_ms, result.ms));
  json["pytorch_ms"] = number_or_null(name, result.pytorch_ms);
  json["ratio_to_llama_cpp"] = number_or_null(name, ratio(result.llama_cpp_ms, result.ms));
  json["llama_cpp_ms"] = number_or_null(name, result.llama_cpp_ms);
  json["acceptance_length"] = number_or_null(name, result.acceptance_length);
  if (result.policy) {
    const UsageRatios& ratios = result.policy->ratios;
    json["ratio_to_plain_low"] = number_or_null(name, ratios.clock.low);
    json["ratio_to_plain"] = {
        {"clock", to_json(name, ratios.clock)},
        {"cpu", to_json(name, ratios.cpu)},
        {"instructions", ratios.instructions ? to_json(name, *ratios.instructions) : Json(nullptr)},
        {"why_no_instructions", text_or_null(result.policy->why_no_instructions)}};
    json["plain_steps"] = result.policy->plain_steps;
    json["policy_steps"] = result.policy->policy_steps;
  }
  json["goal"] = nullptr;
  json["met"] = nullptr;
  if (result.goal) {
    json["goal"] = in_words(*result.goal);
    if (const Json& value = json[result.goal->metric]; !value.is_null()) {
      const double measured = value.get<double>();
      json["met"] = result.goal->at_most ? measured <= result.goal->bound : measured >= result.goal->bound;
    }
  }
  return json;
}

void print_bench_table(std::ostream& out, std::span<const BenchResult> results) {
  std::vector<Row> rows{{"name", "threads", "ms", "median", "ns/element", "GB/s", "of bandwidth", "of mass pass",
                         "of one row", "x PyTorch", "x llama.cpp", "goal"}};
  std::vector<Row> policies{{"name", "threads", "clock, x plain", "CPU, x plain", "instructions, x plain", "goal"}};
  for (const BenchResult& result : results)
    result.policy ? policies.push_back(policy_row_of(result)) : rows.push_back(row_of(result));
  print_rows(out, rows);
  if (policies.size() == 1) return;
  out << '\n';
  print_rows(out, policies);
  if (const std::string& why = results.back().policy->why_no_instructions; !why.empty())
    out << "\nInstructions are not counted (" << why << ").\n";
}

}  // namespace draftproof
