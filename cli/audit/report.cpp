#include "cli/audit/report.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "base/printable.hpp"
#include "cli/shared/test_report.hpp"
#include "exactness/statistics/battery.hpp"
#include "studies/figures/figure.hpp"

namespace draftproof {
namespace {

Json position_json(const PositionAudit& position) {
  return {{"reached", position.reached},
          {"accepted", position.accepted},
          {"rate", position.rate()},
          {"interval", {position.interval.low, position.interval.high}},
          {"expected_rate", position.expected_rate},
          {"expected_by_rows", position.expected_by_rows}};
}

void print_positions(std::ostream& out, const Audit& audit) {
  if (audit.positions.empty()) return;
  out << "\nposition   reached  accepted    rate   99 % interval      expected  by the rows alone\n";
  for (std::size_t i = 0; i < audit.positions.size(); ++i) {
    const PositionAudit& position = audit.positions[i];
    out << std::right << std::setw(8) << i << std::setw(10) << position.reached << std::setw(10) << position.accepted
        << std::setw(8) << number("%.4f", position.rate()) << "   [" << number("%.4f", position.interval.low) << ", "
        << number("%.4f", position.interval.high) << "]" << std::setw(10) << number("%.4f", position.expected_rate)
        << std::setw(19) << number("%.4f", position.expected_by_rows) << '\n';
  }
}

}  // namespace

Json audit_json(const AuditRun& run, const std::vector<std::string>& command_line) {
  const Audit& audit = run.audit;
  Json document = json_document(command_line);
  document["input"] = {{"path", run.path}, {"kind", run.is_steps ? "steps" : "draws"}};
  document["verifier"] = run.is_steps ? Json(run.verifier) : Json();
  document["verdict"] = name_of(audit.verdict);
  document["sentence"] = audit.sentence;
  document["fits"] = audit.fits;
  document["alpha"] = audit.alpha;
  document["tv_wanted"] = audit.tv_wanted;
  document["detectable_tv"] = audit.detectable_tv;
  document["detectable_temperature"] = or_null(audit.detectable_temperature);
  document["string_tokens"] = run.is_steps ? Json(audit.string_tokens) : Json();
  document["string_tokens_max"] = run.is_steps ? Json(audit.string_tokens_max) : Json();
  document["string_detectable_tv"] = run.is_steps ? Json(audit.string_detectable_tv) : Json();
  document["observations"] = audit.observations;
  document["groups"] = audit.groups;
  document["vocab_size"] = audit.vocab_size;
  document["tests"] = json_list(audit.tests, test_json);
  document["positions"] = json_list(audit.positions, position_json);
  document["anytime_log10_wealth"] = or_null(audit.anytime_log10_wealth);
  document["figure"] = text_or_null(run.figure);
  document["read_ms"] = run.read_ms;
  document["audit_ms"] = run.audit_ms;
  return document;
}

void print_audit(std::ostream& out, const AuditRun& run, const Palette& palette) {
  const Audit& audit = run.audit;
  out << printable_line(run.path) << ": " << audit.observations << (run.is_steps ? " verification steps" : " draws")
      << ", " << audit.groups << (run.is_steps ? " different first rows" : " distributions") << ", vocabulary "
      << audit.vocab_size << "\n\n";
  print_tests(out, audit.tests, palette);
  print_positions(out, audit);
  out << '\n';
  for (const TestResult& test : audit.tests) {
    if (test.rejects) out << palette.paint(Colour::red, test.sentence) << '\n';
  }
  if (const TestResult* const worst = worst_test(audit.tests); worst != nullptr && worst->rejects) {
    out << "worst cells of " << worst->name << ":\n";
    for (const CountedCell& cell : worst->worst_cells)
      out << "    " << cell.label() << ": " << short_number(cell.observed) << " observed, "
          << short_number(cell.expected) << " expected\n";
  }
  if (audit.anytime_log10_wealth)
    out << "e-process against the distribution: 10^" << number("%.1f", *audit.anytime_log10_wealth)
        << " (a level alpha may be rejected at 1 / alpha, however often one looks)\n";
  const Colour colour = audit.verdict == AuditVerdict::consistent ? Colour::green
                        : audit.verdict == AuditVerdict::biased   ? Colour::red
                                                                  : Colour::yellow;
  out << "verdict: " << palette.paint(colour, audit.sentence) << '\n';
}

namespace {

// Rows with a fault that are listed, the largest distance first.
constexpr std::size_t kFilterRowsShown = 10;
constexpr std::size_t kFilterRowsListed = 1000;

std::string tokens_text(const std::vector<Token>& tokens, std::int64_t count, double mass) {
  if (count == 0) return "none";
  std::string text = std::to_string(count) + " of mass " + short_number(mass) + " (";
  for (std::size_t i = 0; i < tokens.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(tokens[i]);
  return text + (count > std::ssize(tokens) ? ", ...)" : ")");
}

}  // namespace

Json filter_json(const AuditRun& run, const std::vector<std::string>& command_line) {
  const FilterCheck& check = *run.filters;
  Json document = json_document(command_line);
  document["input"] = {{"path", run.path}, {"kind", "filters"}};
  document["verdict"] = name_of(check.holds ? AuditVerdict::consistent : AuditVerdict::biased);
  document["sentence"] = check.sentence;
  document["observations"] = check.rows.size();
  document["vocab_size"] = run.vocab_size;
  document["failing"] = check.failing.size();
  document["rows"] = Json::array();
  for (std::size_t i = 0; i < std::min(kFilterRowsListed, check.failing.size()); ++i) {
    const FilterRow& row = check.rows[static_cast<std::size_t>(check.failing[i])];
    document["rows"].push_back({{"row", check.failing[i]},
                                {"fault", name_of(row.fault)},
                                {"expected_count", row.expected_count},
                                {"kept_count", row.kept_count},
                                {"wrongly_kept_count", row.wrongly_kept_count},
                                {"wrongly_kept_mass", row.wrongly_kept_mass},
                                {"wrongly_kept", row.wrongly_kept},
                                {"wrongly_dropped_count", row.wrongly_dropped_count},
                                {"wrongly_dropped_mass", row.wrongly_dropped_mass},
                                {"wrongly_dropped", row.wrongly_dropped},
                                {"distance", row.distance}});
  }
  document["read_ms"] = run.read_ms;
  document["audit_ms"] = run.audit_ms;
  return document;
}

void print_filters(std::ostream& out, const AuditRun& run, const Palette& palette) {
  const FilterCheck& check = *run.filters;
  out << printable_line(run.path) << ": " << check.rows.size() << " filtered rows, vocabulary " << run.vocab_size
      << "\n\n";
  for (std::size_t i = 0; i < std::min(kFilterRowsShown, check.failing.size()); ++i) {
    const FilterRow& row = check.rows[static_cast<std::size_t>(check.failing[i])];
    out << "row " << check.failing[i] << ": " << name_of(row.fault) << ", " << row.kept_count << " kept where "
        << row.expected_count << " should be, distance " << short_number(row.distance)
        << "\n    wrongly kept: " << tokens_text(row.wrongly_kept, row.wrongly_kept_count, row.wrongly_kept_mass)
        << "\n    wrongly dropped: "
        << tokens_text(row.wrongly_dropped, row.wrongly_dropped_count, row.wrongly_dropped_mass) << '\n';
  }
  if (check.failing.size() > kFilterRowsShown)
    out << "... and " << check.failing.size() - kFilterRowsShown << " more rows (--json lists them)\n";
  if (!check.holds) out << '\n';
  out << "verdict: " << palette.paint(check.holds ? Colour::green : Colour::red, check.sentence) << '\n';
}

std::string audit_figure(const AuditRun& run) {
  const TestResult* const test = worst_test(run.audit.tests);
  std::ostringstream script;
  if (test == nullptr) {
    script << "set title " << gnuplot_quoted(run.path + ": no cells to show")
           << "\nset xrange [0:1]\nset yrange [0:1]\nplot -1 notitle\n";
    return script.str();
  }
  // Cells differ in size by orders of magnitude, so what is drawn is observed over expected, the same for all; where
  // nothing is expected, the counts.
  const std::size_t count = test->worst_cells.size();
  const bool as_ratio = std::all_of(test->worst_cells.begin(), test->worst_cells.end(),
                                    [](const CountedCell& cell) { return cell.expected > 0.0; });
  const auto label_of = [](const CountedCell& cell) {
    return cell.label() + ": " + short_number(cell.observed) + " of " + short_number(cell.expected);
  };
  std::size_t longest_label = 0;
  for (const CountedCell& cell : test->worst_cells) longest_label = std::max(longest_label, label_of(cell).size());
  script << "set title "
         << gnuplot_quoted("Worst cells of " + test->name + ", p = " + short_number(test->p_value) + ", " +
                           std::to_string(test->n) + " " + test->unit)
         << "\nset xlabel " << (as_ratio ? "'observed / expected, one s. d.'" : "'count'") << "\nset yrange ["
         << static_cast<double>(count) - 0.4 << ":-0.6]\nset grid xtics\nset xtics rotate by 40 right\nset lmargin "
         << longest_label + 2 << "\n"
         << "set bmargin 4\nset key off\nset style fill solid 0.8 noborder\n$cells << END\n";
  script.precision(17);
  for (std::size_t i = 0; i < count; ++i) {
    const CountedCell& cell = test->worst_cells[i];
    script << i << ' ' << (as_ratio ? cell.observed / cell.expected : cell.observed) << ' '
           << (as_ratio ? 1.0 / std::sqrt(cell.expected) : 0.0) << " \"" << label_of(cell) << "\"\n";
  }
  script << "END\n";
  if (as_ratio) {
    script << "set arrow from 1, graph 0 to 1, graph 1 nohead lw 2 lc rgb '#2c3e50'\n"
           << "plot $cells using 2:1:($2<1?$2:1):($2<1?1:$2):($1-0.3):($1+0.3):ytic(4) with boxxyerror lc rgb '#c0392b'"
           << ", \\\n  $cells using (1):1:3 with xerrorbars pt 0 lw 3 lc rgb '#7f8c8d'\n";
  } else {
    script << "set xrange [0:*]\n"
           << "plot $cells using 2:1:(0):2:($1-0.3):($1+0.3):ytic(4) with boxxyerror lc rgb '#c0392b'\n";
  }
  return script.str();
}

Json self_test_json(const SelfTest& result, const std::vector<std::string>& command_line) {
  Json document = json_document(command_line);
  document["batteries"] = result.batteries;
  document["alpha"] = result.alpha;
  document["accused"] = result.accused;
  document["accused_share"] = result.accused_share();
  document["accused_interval"] = {result.accused_interval.low, result.accused_interval.high};
  document["impossible"] = result.impossible;
  document["least_ks_p_value_holm"] = result.least_ks_p_value_holm;
  document["tests"] = json_list(result.tests, [](const PooledTest& test) -> Json {
    return {{"name", test.name},
            {"count", test.count},
            {"ks_distance", test.ks_distance},
            {"ks_p_value", test.ks_p_value},
            {"below_alpha", test.below_alpha}};
  });
  return document;
}

void print_self_test(std::ostream& out, const SelfTest& result) {
  out << std::left << std::setw(32) << "test" << std::right << std::setw(10) << "p values" << std::setw(10) << "KS D"
      << std::setw(10) << "KS p" << std::setw(16) << "below " + short_number(result.alpha) << '\n';
  for (const PooledTest& test : result.tests) {
    out << std::left << std::setw(32) << test.name << std::right << std::setw(10) << test.count << std::setw(10)
        << number("%.4f", test.ks_distance) << std::setw(10) << short_number(test.ks_p_value) << std::setw(16)
        << number("%.4f", static_cast<double>(test.below_alpha) / static_cast<double>(test.count)) << '\n';
  }
  out << "\nnull batteries accused at level " << short_number(result.alpha) << ": " << result.accused << " of "
      << result.batteries << " = " << number("%.4f", result.accused_share()) << ", 99 % interval ["
      << number("%.4f", result.accused_interval.low) << ", " << number("%.4f", result.accused_interval.high)
      << "]\nimpossible events: " << result.impossible
      << "; least KS p value after Holm: " << short_number(result.least_ks_p_value_holm) << '\n';
}

}  // namespace draftproof
