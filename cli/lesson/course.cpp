#include "cli/lesson/course.hpp"

#include <cmath>

#include "base/error.hpp"
#include "base/files/input_file.hpp"
#include "base/printable.hpp"
#include "base/strict_number.hpp"
#include "sim/toml.hpp"

namespace draftproof {
namespace {

Exercise exercise_of(const TomlValue& table) {
  table.allow_only({"command", "key", "per", "answer", "tolerance", "hint", "new", "new_key", "question"});
  Exercise exercise;
  exercise.command = table.at("command").text();
  exercise.key = table.at("key").text();
  exercise.per = table.text_or("per", "");
  exercise.answer = table.at("answer").text();
  exercise.tolerance = table.at("tolerance").number(0.0, 1e6);
  exercise.hint = table.at("hint").text();
  exercise.new_command = table.at("new").text();
  exercise.new_key = table.text_or("new_key", exercise.key);
  exercise.question = table.at("question").text();
  const auto value = answer_value(exercise.answer);
  if (!value) throw input_error(table.at("answer").where(), "is no number; expected one as 0.7 or 7/10");
  exercise.value = *value;
  return exercise;
}

CourseLesson lesson_of(const TomlValue& table, const std::string& folder) {
  table.allow_only({"file", "name", "panel", "exercise"});
  CourseLesson lesson;
  lesson.name = table.at("name").text();
  lesson.panel = table.at("panel").text();
  lesson.page = InputFile(folder + "/" + table.at("file").text()).text();
  if (!lesson.page.starts_with("# ")) throw input_error(table.at("file").where(), "has no title in its first line");
  lesson.title = lesson.page.substr(2, lesson.page.find('\n') - 2);
  for (const TomlValue& exercise : table.at("exercise").items()) lesson.exercises.push_back(exercise_of(exercise));
  return lesson;
}

}  // namespace

std::vector<CourseLesson> read_course(const std::string& folder) {
  const TomlValue file = read_toml(folder + "/course.toml");
  file.allow_only({"lesson"});
  std::vector<CourseLesson> lessons;
  for (const TomlValue& table : file.at("lesson").items()) lessons.push_back(lesson_of(table, folder));
  return lessons;
}

std::optional<double> answer_value(const std::string& text) {
  const auto number_of = [](std::string part) { return read_number(part.starts_with('.') ? "0" + part : part); };
  const std::size_t slash = text.find('/');
  const auto numerator = number_of(text.substr(0, slash));
  if (slash == std::string::npos || !numerator) return numerator;
  const auto denominator = number_of(text.substr(slash + 1));
  if (!denominator || *denominator == 0.0) return std::nullopt;
  return *numerator / *denominator;
}

namespace {

// Whether the answer is the value to the two decimals or more that it has.
bool rounds_to(double value, const std::string& answer) {
  const std::size_t point = answer.find('.');
  if (point == std::string::npos || answer.find_first_not_of("0123456789", point + 1) != std::string::npos)
    return false;
  const auto decimals = static_cast<double>(answer.size() - point - 1);
  return decimals >= 2 && std::abs(value - *answer_value(answer)) <= 0.5 * std::pow(10.0, -decimals);
}

}  // namespace

CheckedAnswer check_answer(const CourseLesson& lesson, const std::string& check) {
  const std::size_t sign = check.find('=');
  if (sign == std::string::npos)
    throw usage_error("--check", "is " + in_quotes(check) + "; expected EXERCISE=ANSWER, as 1=7/10");
  const auto count = std::ssize(lesson.exercises);
  const auto exercise = read_integer(check.substr(0, sign), 1, count);
  if (!exercise)
    throw usage_error("--check", "names exercise " + in_quotes(check.substr(0, sign)) + "; expected " +
                                     expected_text(IntegerRange{1, count}));
  CheckedAnswer checked{static_cast<int>(*exercise), check.substr(sign + 1), 0.0, false, {}};
  const auto value = answer_value(checked.answer);
  if (!value)
    throw usage_error(
        "--check", "has the answer " + in_quotes(checked.answer) + "; expected a number or a fraction, as 0.7 or 7/10");
  checked.value = *value;
  const Exercise& asked = lesson.exercises[static_cast<std::size_t>(checked.exercise - 1)];
  checked.right = std::abs(*value - asked.value) <= asked.tolerance;
  if (!checked.right)
    checked.hint = rounds_to(asked.value, checked.answer)
                       ? "the answer rounds to it; give it to within " + number("%g", asked.tolerance)
                       : asked.hint;
  return checked;
}

}  // namespace draftproof
