#include "cli/speculate/report.hpp"

#include <set>

#include "base/printable.hpp"
#include "base/split.hpp"
#include "cli/speculate/table.hpp"

namespace draftproof {
namespace {

std::string number(const char* format, const Json& value) {
  return value.is_null() ? "-" : draftproof::number(format, value.get<double>());
}

std::string padded(const std::string& text, std::size_t width, bool right = true) {
  const std::string space(text.size() < width ? width - text.size() : 0, ' ');
  return right ? space + text : text + space;
}

// Plain decoding over plain decoding, "1.01 [0.97, 1.05]", behind `before`; nothing of rows that were measured without.
std::string plain_speedup(const Json& row, const std::string& before) {
  if (!row.contains("plain_speedup")) return "";
  return before + number("%.2f", row.at("plain_speedup")) + " [" + number("%.2f", row.at("plain_speedup_low")) + ", " +
         number("%.2f", row.at("plain_speedup_high")) + "]";
}

constexpr std::size_t kWork = 12;
constexpr std::size_t kName = 32;
constexpr std::size_t kNumber = 9;

}  // namespace

void print_head(std::ostream& out, const TextModel& model, const SpeculateGrid& grid) {
  out << printable_line(model.name) << "  (" << model.arithmetic << ")\n";
  if (!grid.left_out.empty()) {
    out << "left out: ";
    for (std::size_t i = 0; i < grid.left_out.size(); ++i)
      out << (i == 0 ? "" : "; ") << grid.left_out[i].drafter << " with tree " << grid.left_out[i].tree << " ("
          << grid.left_out[i].reason << ")";
    out << '\n';
  }
  out << '\n' << padded("work", kWork, false) << padded("draft", kName, false);
  for (const char* const column : {"accepted", "tokens", "draft", "target", "plain"}) out << padded(column, kNumber);
  out << "  speedup\n" << std::string(kWork + kName, ' ');
  for (const char* const unit : {"length", "/step", "ms/step", "ms/step", "ms/step"}) out << padded(unit, kNumber);
  out << "  (95 % interval)\n" << std::flush;
}

void print_row(std::ostream& out, const Json& row, bool was_there) {
  out << padded(printable_line(row.at("work").get<std::string>()), kWork, false)
      << padded(printable_line(configuration_name(row)), kName, false);
  for (const char* const key : {"acceptance_length", "tokens_per_step", "draft_ms", "verify_ms", "plain_ms"})
    out << padded(number("%.2f", row.at(key)), kNumber);
  out << "  " << number("%.2f", row.at("speedup")) << " [" << number("%.2f", row.at("speedup_low")) << ", "
      << number("%.2f", row.at("speedup_high")) << "]";
  if (row.at("tokens_per_step").is_number() && row.at("tokens_per_step").get<double>() < 1.0005)
    out << "  noise: 1.000 tokens a step are plain decoding's" << plain_speedup(row, "; plain over plain is ");
  if (was_there) out << "  measured before";
  if (row.at("equal") == false) out << "  DIFFERS";
  out << '\n' << std::flush;
}

void print_tail(std::ostream& out, const Json& document) {
  std::size_t compared = 0;
  for (const Json& row : document.at("rows")) compared += row.at("equal").is_null() ? 0 : 1;
  const Json& findings = document.at("findings");
  out << '\n';
  std::set<std::string> zeros;  // of each work and temperature one
  for (const Json& row : document.at("rows")) {
    const std::string of = row.at("work").get<std::string>() + ", T=" + number("%g", row.at("temperature"));
    if (const std::string zero = plain_speedup(row, of + " "); !zero.empty()) zeros.insert(zero);
  }
  if (!zeros.empty()) out << "plain over plain, which is no speedup: " << printable_line(joined(zeros, "; ")) << '\n';
  for (const Json& finding : findings) out << "finding: " << printable_line(finding.get<std::string>()) << '\n';
  if (findings.empty())
    out << compared << " of " << document.at("rows").size()
        << " rows promise the tokens of plain decoding, and have them\n";
  for (const char* const file : {"result", "csv", "figure"})
    if (!document.at("files").at(file).is_null())
      out << printable_line(document.at("files").at(file).get<std::string>()) << '\n';
}

Json left_out_json(const std::vector<LeftOut>& left_out) {
  return json_list(left_out, [](const LeftOut& one) -> Json {
    return {{"drafter", one.drafter}, {"tree", one.tree}, {"reason", one.reason}};
  });
}

}  // namespace draftproof
