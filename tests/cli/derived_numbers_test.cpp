// Numbers in the JSON of the commands that follow from others beside them: quotients, sums, counts of rows, verdicts.
#include "cli/bench/result.hpp"
#include "exactness/statistics/binomial_interval.hpp"
#include "exactness/statistics/chi_squared.hpp"
#include "exactness/statistics/kolmogorov_smirnov.hpp"
#include "sim/csv.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {
namespace {

double number(const ordered_json& object, const char* key) {
  return object.at(key).get<double>();
}

double sum_of(const ordered_json& rows, const char* key) {
  double sum = 0.0;
  for (const ordered_json& row : rows) sum += number(row, key);
  return sum;
}

std::int64_t count_if(const ordered_json& rows, const char* key, const ordered_json& value) {
  return std::count_if(rows.begin(), rows.end(), [&](const ordered_json& row) { return row.at(key) == value; });
}

// Some numbers are written with six digits.
Approx about(double expected) {
  return Approx(expected).epsilon(1e-5);
}

// In an object, or in each of a list: `value` is numerator / denominator times `unit`, null where that is none.
struct Quotient {
  const char* pointer;
  const char* value;
  const char* numerator;
  const char* denominator;
  double unit = 1.0;
};

void check_quotients(const ordered_json& document, std::initializer_list<Quotient> quotients) {
  for (const Quotient& q : quotients) {
    const ordered_json& found = document.at(ordered_json::json_pointer(q.pointer));
    std::int64_t numbers = 0;
    for (const ordered_json& row : found.is_array() ? found : ordered_json::array({found})) {
      INFO(q.value << " of " << q.pointer << ": " << row.dump());
      if (row.at(q.denominator).is_null() || row.at(q.denominator) == 0) {
        CHECK(row.at(q.value).is_null());
        continue;
      }
      CHECK(number(row, q.value) == about(q.unit * number(row, q.numerator) / number(row, q.denominator)));
      ++numbers;
    }
    CHECK(numbers > 0);
  }
}

// 1 + accepted / drafts; null without drafts.
void check_acceptance_length(const ordered_json& object) {
  if (object.at("drafts") == 0)
    CHECK(object.at("acceptance_length").is_null());
  else
    CHECK(number(object, "acceptance_length") == about(1.0 + number(object, "accepted") / number(object, "drafts")));
}

void check_interval(const ordered_json& interval, const ordered_json& successes, const ordered_json& trials) {
  const Interval expected = clopper_pearson(successes.get<std::int64_t>(), trials.get<std::int64_t>(), 0.99);
  CHECK(interval[0].get<double>() == about(expected.low));
  CHECK(interval[1].get<double>() == about(expected.high));
}

// The tests that are judged together; how is tested in battery_test.cpp.
void check_battery(const ordered_json& document) {
  const ordered_json& tests = document.at("tests");
  double least = 1.0;
  for (const ordered_json& test : tests) {
    INFO(test.dump());
    const double p = number(test, "p_value");
    const auto n = test.at("n").get<std::int64_t>();
    if (test.at("statistic_name") == "count")
      CHECK(p == (test.at("statistic") > 0 ? 0.0 : 1.0));
    else if (test.at("df").is_null())
      CHECK(p == about(kolmogorov_p_value(n, number(test, "statistic"))));
    else
      CHECK(p == about(chi_squared_p_value(number(test, "statistic"), test.at("df").get<std::int64_t>())));
    CHECK(test.at("alpha") == document.at("alpha"));
    CHECK(number(test, "p_value_holm") >= p);
    CHECK(number(test, "p_value_holm") <= std::min(1.0, static_cast<double>(tests.size()) * p) * (1.0 + 1e-12));
    CHECK(test.at("rejects") == (number(test, "p_value_holm") < number(document, "alpha")));
    const double level = number(document, "alpha") / static_cast<double>(tests.size());
    if (!test.at("df").is_null() && n > 0)
      CHECK(number(test, "detectable_tv") ==
            about(detectable_total_variation(static_cast<double>(n), test.at("df").get<std::int64_t>(), level, 0.99)));
    if (test.at("covers_all") == true) least = std::min(least, number(test, "detectable_tv"));
  }
  if (document.contains("detectable_tv")) CHECK(number(document, "detectable_tv") == least);
}

// The rows of a CSV file of numbers as objects; an empty cell is null.
ordered_json rows_of_csv(const std::string& text) {
  const CsvTable table = parse_csv(text, "csv");
  ordered_json rows = ordered_json::array();
  for (const CsvRow& row : table.rows) {
    REQUIRE(row.fields.size() == table.columns.size());
    ordered_json& object = rows.emplace_back();
    for (std::size_t i = 0; i < table.columns.size(); ++i)
      object[table.columns[i]] = row.fields[i].empty() ? ordered_json() : ordered_json::parse(row.fields[i]);
  }
  return rows;
}

std::string corpus_text() {
  const std::vector<std::string> words{"the ", "draft ", "target ", "of ", "a ", "token ", "is ", "that "};
  std::string text;
  for (std::size_t i = 0; i < 4000; ++i) text += words[i * (i + 3) / 5 % words.size()];
  return text;
}

TEST_CASE("the derived numbers of the demo follow from their parts") {
  const TemporaryFolder folder;
  write_whole_file(folder.file("corpus"), corpus_text());
  ordered_json demo = json_of({"demo", "--corpus", folder.file("corpus"), "--out", folder.file("out"), "--prompt",
                               "the ", "--tokens", "77", "--samples", "1000", "--continuations", "3"});
  demo["csv"] = rows_of_csv(read_whole_file(demo.at("files").at("acceptance_csv").get<std::string>()));
  const ordered_json& csv = demo.at("csv");
  CHECK(csv.size() == 5);
  demo["timing"]["tokens"] = demo.at("shown").at("tokens");
  check_quotients(demo, {{"", "tokens_per_step", "tokens", "steps"},
                         {"/csv", "conditional", "accepted", "reached"},
                         {"/csv", "unconditional", "accepted_all_steps", "steps"},
                         {"/timing", "speculative_tokens_per_second", "tokens", "speculative_ms", 1e3},
                         {"/timing", "plain_tokens_per_second", "tokens", "plain_ms", 1e3}});
  check_acceptance_length(demo);
  double formula = 1.0;
  double product = 1.0;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    CHECK(csv[i].at("position") == i + 1);
    CHECK(csv[i].at("steps") == demo.at("steps"));
    for (const char* const kind : {"conditional", "unconditional"})
      CHECK(demo.at("acceptance_by_position").at(kind)[i] == csv[i].at(kind));
    formula += product *= csv[i].at("conditional").is_null() ? 0.0 : number(csv[i], "conditional");
  }
  CHECK(number(demo, "tokens_per_step_formula") == about(formula));
  CHECK(number(demo, "accepted") == sum_of(csv, "accepted_all_steps"));
  // No continuation is cut short, so every step emits what it accepted and one token.
  CHECK(number(demo, "tokens") == number(demo, "accepted") + number(demo, "steps"));
  const ordered_json& shown = demo.at("shown");
  CHECK(number(shown, "tokens") ==
        number(shown, "accepted_shown") + number(shown, "recovered_shown") + number(shown, "bonus_shown"));
  CHECK(number(shown, "discarded") == number(shown, "accepted") + number(shown, "steps") - number(shown, "tokens"));
  const ordered_json& both = demo.at("chi_squared");
  for (const auto& [test, samples] : {std::pair(both, 2.0), {both.at("exact_distribution"), 1.0}}) {
    const auto df = test.at("df").get<std::int64_t>();
    CHECK(df == test.at("cells").get<std::int64_t>() - 1);
    CHECK(number(test, "p_value") == about(chi_squared_p_value(number(test, "statistic"), df)));
    CHECK(number(test, "detectable_tv") ==
          about(detectable_total_variation(number(test, "n") / samples, df, number(both, "alpha"),
                                           number(both, "power"))));
  }
}

TEST_CASE("the derived numbers of audit follow from their parts") {
  const ordered_json self_test = json_of({"audit", "--self-test", "20"});
  check_quotients(self_test, {{"", "accused_share", "accused", "batteries"}});
  check_interval(self_test.at("accused_interval"), self_test.at("accused"), self_test.at("batteries"));
  double least = 1.0;
  for (const ordered_json& test : self_test.at("tests")) {
    const double p = kolmogorov_p_value(test.at("count").get<std::int64_t>(), number(test, "ks_distance"));
    CHECK(number(test, "ks_p_value") == about(p));
    least = std::min(least, p);
  }
  // Holm's first step is the least of all.
  CHECK(number(self_test, "least_ks_p_value_holm") ==
        about(std::min(1.0, least * static_cast<double>(self_test.at("tests").size()))));

  const TemporaryFolder folder;
  const std::string script = std::string(DRAFTPROOF_SOURCE_DIR) + "/tests/reference/trace/make_audit_samples.py";
  if (run_command({"python3", script, folder.path(), "8000", "3000"}).exit_code != 0) {
    CHECK(run_command({"sh", "-c", "command -v python3"}).exit_code != 0);
    WARN("SKIPPED: python3 is not installed");
    return;
  }
  const ordered_json audit = json_of({"audit", folder.file("steps_unbiased.safetensors"), "--tv-wanted", "0.5"});
  check_battery(audit);
  check_quotients(audit, {{"/positions", "rate", "accepted", "reached"}});
  for (const ordered_json& position : audit.at("positions"))
    check_interval(position.at("interval"), position.at("accepted"), position.at("reached"));
  // Takes the test of the longest strings that were counted.
  const auto tokens = audit.at("string_tokens").get<std::int64_t>();
  const std::string longest = tokens > 2 ? "string_" + std::to_string(tokens) : "string";
  double of_strings = 1.0;
  for (const ordered_json& test : audit.at("tests"))
    if (test.at("name") == longest) of_strings = number(test, "detectable_tv");
  CHECK(number(audit, "string_detectable_tv") == of_strings);
}

TEST_CASE("the counts of bugs are those of its rows, and a row's are those of the first hunt that caught the bug") {
  if (kSanitized) return;  // run_bugs_test.cpp runs them there
  const ordered_json document = json_of({"bugs"});
  for (const ordered_json& row : document.at("rows")) {
    INFO(row.dump());
    const ordered_json& hunts = row.at("hunts");
    const auto killer =
        std::ranges::find_if(hunts, [](const ordered_json& hunt) { return hunt.at("faulty").at("caught") == true; });
    CHECK(row.at("killed") == (killer != hunts.end()));
    if (killer == hunts.end()) continue;
    CHECK(row.at("cases") == killer->at("faulty").at("cases"));
    CHECK(row.at("ms") == killer->at("ms"));
    CHECK(row.at("twin_passes") ==
          std::ranges::none_of(hunts, [](const ordered_json& hunt) { return hunt.at("sound").at("caught") == true; }));
  }
  for (const ordered_json& control : document.at("controls"))
    CHECK(control.at("passes") == std::ranges::none_of(control.at("hunts"), [](const ordered_json& hunt) {
            return hunt.at("finding").at("caught") == true;
          }));
  CHECK(document.at("killed") == count_if(document.at("rows"), "killed", true));
  CHECK(document.at("total") == document.at("rows").size());
  CHECK(document.at("twins_passed") == count_if(document.at("rows"), "twin_passes", true));
  CHECK(document.at("waiting") == document.at("waiting_rows").size());
  CHECK(document.at("controls_passed") == count_if(document.at("controls"), "passes", true));
  CHECK(document.at("controls_total") == document.at("controls").size());
}

TEST_CASE("the derived numbers of soak follow from their parts") {
  const ordered_json soak = json_of({"soak", "--trials", std::to_string(fewer_if_sanitized(200000)), "--threads", "2"});
  check_battery(soak);
  check_quotients(soak, {{"", "trials_per_s", "trials", "ms", 1e3}});
  CHECK(soak.at("trials") == soak.at("looks").back().at("trials"));
}

TEST_CASE("a measurement of bench has the ratios to its peers, and meets its goal at the bound") {
  BenchResult result;
  result.name = "row";
  for (const char* const key : {"ns_per_element", "gb_per_s", "ratio_to_bandwidth", "ratio_to_mass_pass",
                                "ratio_to_one_row", "ratio_to_pytorch", "ratio_to_llama_cpp", "met"})
    CHECK(to_json(result).at(key).is_null());
  result.ms = 3.0;
  result.elements = 1'500'000;
  result.bytes = 6'000'000;
  result.bandwidth_bytes_per_s = 8e9;
  result.mass_pass_ms = 2.0;
  result.one_row_ms = 1.5;
  result.pytorch_ms = 4.5;
  result.llama_cpp_ms = 2.25;
  for (const auto& [goal, met] : {std::pair(BenchGoal{"ratio_to_pytorch", false, 1.5}, true),
                                  {BenchGoal{"ratio_to_pytorch", false, 1.6}, false},
                                  {BenchGoal{"ratio_to_mass_pass", true, 1.5}, true},
                                  {BenchGoal{"ratio_to_mass_pass", true, 1.4}, false}}) {
    result.goal = goal;
    CHECK(to_json(result).at("met") == met);
  }
  const Json json = to_json(result);
  for (const auto& [key, value] : {std::pair("ns_per_element", 2.0),
                                   {"gb_per_s", 2.0},
                                   {"ratio_to_bandwidth", 0.25},
                                   {"ratio_to_mass_pass", 1.5},
                                   {"ratio_to_one_row", 2.0},
                                   {"ratio_to_pytorch", 1.5},
                                   {"ratio_to_llama_cpp", 0.75}}) {
    INFO(key);
    CHECK(json.at(key).get<double>() == Approx(value));
  }
}

TEST_CASE("the derived numbers of speculate follow from their parts") {
  const TemporaryFolder folder;
  write_whole_file(folder.file("text"), corpus_text());
  write_whole_file(folder.file("prompts"), "{\"work\": \"code\", \"prompt\": \"the draft of a \"}\n");
  const ordered_json document =
      json_of({"speculate", "--model", "ngram:3:" + folder.file("text"), "--prompts", folder.file("prompts"),
               "--drafters", "suffix,ngram:2", "-k", "3", "--max-tokens", "20", "--out", folder.file("out")});
  check_quotients(document, {{"/rows", "tokens_per_step", "tokens", "steps"}});
  for (const ordered_json& row : document.at("rows")) {
    check_acceptance_length(row);
    if (!row.at("equal").is_null()) CHECK(row.at("equal") == row.at("difference").is_null());
    for (const char* const key : {"plain_tokens", "tokens", "steps", "drafts", "draft_tokens"})
      CHECK(number(row, key) == sum_of(row.at("requests"), key));
  }
}

}  // namespace
}  // namespace draftproof::testing
