#include "cli/shared/test_report.hpp"

#include <iomanip>
#include <sstream>

#include "exactness/statistics/battery.hpp"

namespace draftproof {
namespace {

Json cell_json(const CountedCell& cell) {
  Json json = Json::object();
  for (const auto& [key, value] : cell.keys) json[key] = value;
  json["observed"] = cell.observed;
  json["expected"] = cell.expected;
  return json;
}

// A p value so small that it is no number any more says so, unless it is of an impossible event.
std::string p_text(const TestResult& test, double p) {
  return p == 0.0 && test.null_distribution != NullDistribution::certainty ? "<1e-300" : short_number(p);
}

}  // namespace

Json test_json(const TestResult& test) {
  Json json;
  json["name"] = test.name;
  json["statistic_name"] = test.statistic_name;
  json["unit"] = test.unit;
  json["n"] = test.n;
  json["df"] = or_null(test.df);
  json["alpha"] = test.alpha;
  json["statistic"] = test.statistic;
  json["p_value"] = test.p_value;
  json["p_value_holm"] = test.p_value_holm;
  json["rejects"] = test.rejects;
  json["covers_all"] = test.covers_all;
  json["detectable_tv"] = test.detectable_tv;
  json["estimated_tv"] = test.estimated_tv;
  json["worst_cells"] = json_list(test.worst_cells, cell_json);
  json["sentence"] = test.sentence;
  return json;
}

std::vector<std::string> test_keys() {
  return {"name", "n", "df", "statistic", "p_value", "p_value_holm", "detectable_tv", "estimated_tv"};
}

void print_tests(std::ostream& out, std::span<const TestResult> tests, const Palette& palette) {
  out << std::left << std::setw(24) << "test" << std::right << std::setw(10) << "n" << std::setw(7) << "df"
      << std::setw(11) << "statistic" << std::setw(11) << "p" << std::setw(11) << "p (Holm)" << std::setw(15)
      << "detectable TV" << std::setw(14) << "estimated TV" << '\n';
  for (const TestResult& test : tests) {
    std::ostringstream line;
    line << std::left << std::setw(24) << test.name << std::right << std::setw(10) << test.n << std::setw(7)
         << (test.df ? std::to_string(*test.df) : "-") << std::setw(11) << short_number(test.statistic) << std::setw(11)
         << p_text(test, test.p_value) << std::setw(11) << p_text(test, test.p_value_holm) << std::setw(15)
         << short_number(test.detectable_tv) << std::setw(14) << short_number(test.estimated_tv);
    out << (test.rejects ? palette.paint(Colour::red, line.str()) : line.str()) << '\n';
  }
}

}  // namespace draftproof
