// The course: every answer is what the project's own commands print, and draftproof lesson checks those of a learner.
#include <filesystem>

#include "base/printable.hpp"
#include "base/strict_number.hpp"
#include "tests/support/run_verb.hpp"

namespace draftproof::testing {
namespace {

using nlohmann::ordered_json;

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
