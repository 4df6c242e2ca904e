// The course: every answer is what the project's own commands print, and draftproof lesson checks those of a learner.
#include <regex>

#include "base/printable.hpp"
#include "base/strict_number.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {
namespace {

double number_at(const ordered_json& document, const std::string& pointer) {
  const ordered_json& value = document.at(ordered_json::json_pointer(pointer));
  if (!value.is_string()) return value.get<double>();
  const auto text = value.get<std::string>();  // a fraction
  const std::size_t slash = text.find('/');
  return read_number(text.substr(0, slash)).value() / read_number(text.substr(slash + 1)).value();
}

TEST_CASE("every exercise of the course accepts what its command prints, and nothing beside it") {
  const ordered_json course = json_of({"lesson"});
  REQUIRE(course.at("lessons").size() == 8);
  for (const ordered_json& lesson : course.at("lessons")) {
    REQUIRE(lesson.at("exercises").size() == 3);
    std::vector<std::string> right{"lesson", std::to_string(lesson.at("number").get<int>())};
    std::vector<std::string> wrong = right;
    for (std::size_t i = 0; i < 3; ++i) {
      const ordered_json& exercise = lesson.at("exercises").at(i);
      INFO(exercise.at("command"));
      const ordered_json document = printed_by(shell_arguments(exercise.at("command").get<std::string>()));
      double value = number_at(document, exercise.at("key").get<std::string>());
      if (!exercise.at("per").is_null()) value /= number_at(document, exercise.at("per").get<std::string>());
      const double off = 2.2 * exercise.at("tolerance").get<double>() + 1e-6;
      const std::string check = std::to_string(i + 1) + "=";
      right.insert(right.end(), {"--check", check + ordered_json(value).dump()});
      wrong.insert(wrong.end(), {"--check", check + ordered_json(value + off).dump()});
    }
    INFO(lesson.dump());
    CHECK(json_of(right).at("checks").size() == 3);
    const ordered_json refused = json_of(wrong, 1);
    for (const ordered_json& check : refused.at("checks")) {
      CHECK(check.at("right") == false);
      CHECK(check.at("hint").get<std::string>().size() > 10);
    }
  }
}

TEST_CASE("a lesson is its page, an answer is a number or a fraction, and a wrong one gets a hint") {
  const ProgramResult page = run_draftproof({"lesson", "2"});
  CHECK(page.exit_code == 0);
  CHECK(page.out.starts_with("# 2 Why rejection keeps the distribution\n"));
  CHECK(page.out.find("## Exercises") != std::string::npos);
  CHECK(run_draftproof({"lesson", "rejection"}).out == page.out);
  CHECK(run_draftproof({"lesson", "2", "--check", "1=7/10"})
            .out.starts_with("Exercise 1: 7/10 is right; draftproof lab "));
  CHECK(run_draftproof({"lesson", "2", "--check", "1=0.7", "--check", "2=4/5"}).exit_code == 0);
  const ProgramResult wrong = run_draftproof({"lesson", "2", "--check", "1=0.7", "--check", "2=0.4"});
  CHECK(wrong.exit_code == 1);
  CHECK(wrong.out.find("Exercise 2: 0.4 is wrong. Hint: the residual is") != std::string::npos);
  CHECK(run_draftproof({"lesson", "2", "--check", "1=.7", "--check", "2=.8/1"}).exit_code == 0);
  CHECK(run_draftproof({"lesson", "1", "--check", "2=0.34"}).out ==
        "Exercise 2: 0.34 is wrong. Hint: the answer rounds to it; give it to within 0.002.\n");
  CHECK(run_draftproof({"lesson", "1", "--check", "2=0.35"}).out.find("Hint: halving the logits") != std::string::npos);
}

TEST_CASE(
    "other numbers for each student have answers that their commands print, and a code that a teacher can check") {
  std::set<std::string> codes;
  for (int asked_for = 1; asked_for <= 9; ++asked_for) {
    const std::string lesson = asked_for == 9 ? "2" : std::to_string(asked_for);
    const std::string seed = asked_for == 9 ? "8" : "7";
    INFO("lesson " << lesson << " --new " << seed);
    const ordered_json asked = json_of({"lesson", lesson, "--new", seed}).at("lesson");
    std::vector<std::string> checks{"lesson", lesson, "--new", seed};
    for (std::size_t i = 0; i < 3; ++i) {
      const ordered_json& exercise = asked.at("exercises").at(i);
      const ordered_json printed = printed_by(shell_arguments(exercise.at("command").get<std::string>()));
      double value = number_at(printed, exercise.at("key").get<std::string>());
      if (!exercise.at("per").is_null()) value /= number_at(printed, exercise.at("per").get<std::string>());
      CHECK(exercise.at("question").get<std::string>().find('{') == std::string::npos);
      checks.insert(checks.end(), {"--check", std::to_string(i + 1) + "=" + ordered_json(value).dump()});
    }
    const ordered_json right = json_of(checks);
    const auto code = right.at("code").get<std::string>();
    CHECK(codes.insert(code).second);
    if (lesson != "2") continue;
    CHECK(json_of({"lesson", lesson, "--new", seed, "--code", code}).at("code_is_right") == true);
    CHECK(json_of({"lesson", lesson, "--new", seed, "--code", "00000000"}, 1).at("code_is_right") == false);
    checks.resize(checks.size() - 2);
    CHECK(json_of(checks).at("code").is_null());  // not of two answers of three
  }
  const ProgramResult page = run_draftproof({"lesson", "2", "--new", "7"});
  CHECK(page.out.starts_with("2 Why rejection keeps the distribution, numbers 7\n\n1. p = (0."));
  CHECK(run_draftproof({"lesson", "2", "--new", "7"}).out == page.out);
  CHECK(run_draftproof({"lesson", "2", "--new", "8"}).out != page.out);
  const ProgramResult wrong = run_draftproof({"lesson", "2", "--new", "7", "--check", "1=0.001"});
  CHECK(wrong.exit_code == 1);
  CHECK_THAT(wrong.out, Contains("Exercise 1: 0.001 is wrong. Hint: run draftproof lab --target 0."));
  check_refused({"lesson", "2", "--code", "12345678"}, {"--code: has no use without --new"});
}

TEST_CASE("questions with other numbers quote what their commands print, and by hand that gives the answer") {
  const auto numbers_in = [](const std::string& question) {
    std::vector<double> numbers;
    const std::regex number("[0-9]+(\\.[0-9]+)?");
    for (std::sregex_iterator at(question.begin(), question.end(), number), end; at != end; ++at)
      numbers.push_back(std::stod(at->str()));
    return numbers;
  };
  const auto question_of = [](const char* lesson, std::size_t exercise) {
    return json_of({"lesson", lesson, "--new", "3"}).at("lesson").at("exercises").at(exercise).at("question");
  };
  const auto is_answer = [](const char* lesson, int exercise, double value) {
    return run_draftproof(
               {"lesson", lesson, "--new", "3", "--check", std::to_string(exercise) + "=" + number("%.6g", value)})
               .exit_code == 0;
  };
  // On a GPU a step at batch 1 emits X tokens and takes Y times as long: the last two numbers.
  const std::vector<double> step = numbers_in(question_of("6", 2));
  REQUIRE(step.size() >= 3);
  CHECK(is_answer("6", 3, step[step.size() - 2] / step.back()));
  // A draft in half of the steps, 58 % of them accepted, c target steps each; the last number is K = 1.
  const std::vector<double> n_gram = numbers_in(question_of("5", 2));
  REQUIRE(n_gram.size() == 3);
  CHECK(is_answer("5", 3, (1.0 + 0.5 * 0.58) / (1.0 + 0.5 * n_gram[1])));
  // No student's residual is 0 or 1.
  for (int seed = 1; seed <= 20; ++seed) {
    const ordered_json asked = json_of({"lesson", "2", "--new", std::to_string(seed)}).at("lesson").at("exercises");
    const std::vector<double> pq = numbers_in(asked.at(1).at("question"));
    REQUIRE(pq.size() == 8);
    double others = 0.0;
    for (std::size_t i = 1; i < 4; ++i) others += std::max(pq[i] - pq[4 + i], 0.0);
    CHECK((pq[0] - pq[4] > 0.05 && others > 0.05));
  }
  const std::vector<double> lab = numbers_in(question_of("8", 1));  // "With 20,000 samples ... with {u}?"
  CHECK(is_answer("8", 2, 0.0259 * std::sqrt(20'000.0 / lab.back())));
}

TEST_CASE("lesson refuses lessons, exercises and answers that there are not") {
  check_refused({"lesson", "9"}, {"'9'", "[1, 8]"});
  check_refused({"lesson", "filter"},
                {"'filter'", "[1, 8], or filters, rejection, ", "honest; did you mean 'filters'?"});
  check_refused({"lesson", "2", "--check", "4=1"}, {"--check", "'4'", "[1, 3]"});
  check_refused({"lesson", "2", "--check", "0.7"}, {"--check", "EXERCISE=ANSWER"});
  check_refused({"lesson", "2", "--check", "1=1/0"}, {"--check", "'1/0'", "7/10"});
  check_refused({"lesson", "2", "--check", "1=half"}, {"--check", "'half'"});
  check_refused({"lesson", "--check", "1=1"}, {"--check", "without a lesson"});
}

}  // namespace
}  // namespace draftproof::testing
