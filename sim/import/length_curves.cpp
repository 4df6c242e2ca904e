#include "sim/import/length_curves.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/strict_number.hpp"
#include "base/words.hpp"
#include "sim/acceptance/acceptance_model.hpp"
#include "sim/import/text_lines.hpp"

namespace draftproof {
namespace {

// A line without its comment: how far it is indented, and KEY: VALUE; the value may be empty.
struct Line {
  std::size_t indent = 0;
  std::string key, value;
};

std::optional<Line> line_of(std::string text) {
  if (const std::size_t comment = text.find('#'); comment != std::string::npos) text.resize(comment);
  while (!text.empty() && text.back() == ' ') text.pop_back();
  const std::size_t indent = text.find_first_not_of(' ');
  const std::size_t colon = text.find(':', indent == std::string::npos ? 0 : indent);
  if (indent == std::string::npos || colon == std::string::npos || colon == indent) return std::nullopt;
  if (colon + 1 < text.size() && text[colon + 1] != ' ') return std::nullopt;
  const std::size_t value = text.find_first_not_of(' ', colon + 1);
  return Line{indent, text.substr(indent, colon - indent), value == std::string::npos ? "" : text.substr(value)};
}

// The lines that say something: without blank ones, comments, and blocks of other names than models' (_metadata).
class CurveLines {
 public:
  CurveLines(std::string_view text, const std::string& name) : lines_(text, name) {}

  bool next() {
    while (lines_.next()) {
      const std::size_t first = lines_.line().find_first_not_of(" \t");
      if (first == std::string::npos || lines_.line()[first] == '#' || lines_.line() == "---") continue;
      if (first == 0) skipped_ = lines_.line().front() == '_';
      if (!skipped_) return true;
    }
    return false;
  }
  const std::string& line() const { return lines_.line(); }
  std::string where() const { return lines_.where(); }

 private:
  TextLines lines_;
  bool skipped_ = false;
};

struct Curve {
  std::string model, mode;
  std::vector<std::pair<std::int32_t, double>> lengths;  // K, length; rising K
  std::string name() const { return model + "/" + mode; }
};

void add_point(Curve& curve, const Line& line, const std::string& where) {
  const auto k = read_integer(line.key, 1, kAcceptanceDepthMax);
  if (!k || (!curve.lengths.empty() && *k <= curve.lengths.back().first))
    throw input_error(where, "K is " + in_quotes(line.key) + "; expected rising numbers of drafts from 1 to " +
                                 std::to_string(kAcceptanceDepthMax));
  const auto length = read_number(line.value);
  if (!length || !(*length >= 1.0 && *length <= static_cast<double>(*k) + 1.0))
    throw input_error(where, "the length is " + in_quotes(line.value) + "; expected a number from 1 to " +
                                 std::to_string(*k + 1) + ", the bonus token counted");
  curve.lengths.emplace_back(static_cast<std::int32_t>(*k), *length);
}

std::vector<Curve> curves_of(std::string_view text, const std::string& name) {
  std::vector<Curve> curves;
  std::string model;
  std::size_t mode_indent = 0, point_indent = 0;  // 0: not known yet
  CurveLines lines(text, name);
  while (lines.next()) {
    const auto line = line_of(lines.line());
    const auto refuse = [&] {
      throw input_error(lines.where(), "is " + in_quotes(lines.line()) +
                                           "; expected MODEL:, in it MODE:, and in that K: LENGTH, indented by blanks");
    };
    if (!line) refuse();
    if (line->indent == 0) {
      if (!line->value.empty()) refuse();
      model = line->key;
      mode_indent = point_indent = 0;
    } else if (line->value.empty()) {
      if (model.empty() || (mode_indent != 0 && line->indent != mode_indent)) refuse();
      mode_indent = line->indent;
      point_indent = 0;
      curves.push_back({model, line->key, {}});
    } else {
      if (mode_indent == 0 || line->indent <= mode_indent || (point_indent != 0 && line->indent != point_indent))
        refuse();
      point_indent = line->indent;
      add_point(curves.back(), *line, lines.where());
    }
  }
  std::erase_if(curves, [](const Curve& curve) { return curve.lengths.empty(); });
  if (curves.empty()) throw input_error(name, "has no acceptance length; expected K: LENGTH in a MODE of a MODEL");
  return curves;
}

const Curve& chosen(const std::vector<Curve>& curves, const std::string& choice, const std::string& name) {
  std::vector<const Curve*> found;
  for (const Curve& curve : curves)
    if (choice.empty() || choice == curve.model || choice == curve.mode || choice == curve.name())
      found.push_back(&curve);
  if (found.size() == 1) return *found.front();
  std::vector<std::string> names;
  for (const Curve& curve : curves) names.push_back(curve.name());
  throw input_error(name, (found.empty() ? "has no curve " + in_quotes(choice)
                                         : "has " + counted_noun(std::ssize(found), "curve") +
                                               (choice.empty() ? "" : " of " + in_quotes(choice))) +
                              "; expected one of " + first_names(names));
}

// Rates that never rise and are nearest to the rises of the lengths (pool adjacent violators; each K's rise counts
// once): pooled ones are equal, so the length behind them is the file's. Between two K of the file the rates fall by
// one factor, unless they would fall below those behind them.
std::vector<double> rates_of(const std::vector<std::pair<std::int32_t, double>>& lengths) {
  struct Block {
    std::int32_t count;
    double sum;
    bool pooled;
    double mean() const { return std::clamp(sum / count, 0.0, 1.0); }
  };
  std::vector<Block> blocks;
  std::pair<std::int32_t, double> before{0, 1.0};
  for (const auto& point : lengths) {
    Block block{point.first - before.first, point.second - before.second, false};
    before = point;
    while (!blocks.empty() && blocks.back().sum * block.count < block.sum * blocks.back().count) {
      block = {blocks.back().count + block.count, blocks.back().sum + block.sum, true};
      blocks.pop_back();
    }
    blocks.push_back(block);
  }
  std::vector<double> rates;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Block& block = blocks[i];
    const double last = rates.empty() ? 1.0 : rates.back();
    const double factor = block.pooled ? 1.0 : factor_of_sum(last, block.count, block.mean() * block.count);
    const double end = last * std::pow(factor, block.count);
    const bool falls = !block.pooled && block.count > 1 && (i + 1 == blocks.size() || end >= blocks[i + 1].mean());
    for (std::int32_t j = 1; j <= block.count; ++j) rates.push_back(falls ? last * std::pow(factor, j) : block.mean());
  }
  return rates;
}

}  // namespace

bool is_length_curves(std::string_view text) {
  CurveLines lines(text, "");
  bool model = false, mode = false;
  while (lines.next()) {
    const auto line = line_of(lines.line());
    if (!line) return false;
    if (line->indent == 0) {
      if (!line->value.empty()) return false;
      model = true;
    } else if (line->value.empty()) {
      mode = true;
    } else {
      return model && mode && read_integer(line->key, -1'000'000, 1'000'000).has_value();
    }
  }
  return false;
}

AcceptanceData read_length_curves(std::string_view text, const std::string& name, const std::string& choice) {
  const std::vector<Curve> curves = curves_of(text, name);
  const Curve& curve = chosen(curves, choice, name);
  AcceptanceData data;
  data.format = "acceptance lengths by K";
  const std::vector<double> survival = rates_of(curve.lengths);
  double length = 1.0, worst = 0.0;
  std::int32_t worst_k = 0;
  for (std::size_t i = 0, at = 0; i < survival.size(); ++i) {
    length += survival[i];
    if (curve.lengths[at].first != static_cast<std::int32_t>(i) + 1) continue;
    if (const double error = length - curve.lengths[at++].second; std::abs(error) > std::abs(worst)) {
      worst = error;
      worst_k = static_cast<std::int32_t>(i) + 1;
    }
  }
  merge_windows({AcceptanceWindow{name, {}, survival, std::nullopt, {}}}, name, data);
  data.notes.push_back("Lengths of " + printable_line(curve.name()) +
                       ": the rates are those whose sums they are; runs with fewer drafts are runs of their own.");
  if (std::abs(worst) > 0.005)
    data.notes.push_back("No rates have these lengths: with " + counted_noun(worst_k, "draft") + " they are " +
                         number("%.3f", std::abs(worst)) + (worst > 0.0 ? " above" : " below") + " the file's.");
  return data;
}

}  // namespace draftproof
