// draftproof lesson: a page of the course, and whether answers to its exercises are right.
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/files/own_files.hpp"
#include "base/json_values.hpp"
#include "base/near_names.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "cli/lesson/course.hpp"
#include "cli/lesson/new_numbers.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/terminal.hpp"

namespace draftproof {
namespace {

struct LessonArguments {
  std::string number;  // empty: all lessons are listed
  std::vector<std::string> checks;
  std::optional<std::uint64_t> seed;  // of other numbers
  std::string code;
  bool json = false;
};

const Exercise& exercise_of(const CourseLesson& lesson, const CheckedAnswer& checked) {
  return lesson.exercises[static_cast<std::size_t>(checked.exercise - 1)];
}

void print_checked(const CourseLesson& lesson, const CheckedAnswer& checked) {
  const Palette palette(wants_colour(1));
  const Exercise& exercise = exercise_of(lesson, checked);
  std::cout << "Exercise " << checked.exercise << ": " << printable_line(checked.answer) << " is "
            << palette.paint(checked.right ? Colour::green : Colour::red, checked.right ? "right" : "wrong");
  if (checked.right)
    std::cout << "; draftproof " << exercise.command << " --json prints it at " << exercise.key
              << (exercise.per.empty() ? "" : " over " + exercise.per) << ".\n";
  else
    std::cout << ". Hint: " << checked.hint << ".\n";
}

// `is_asked`: with numbers of their own; the page has the others.
Json json_of(const CourseLesson& lesson, std::int64_t number, bool is_asked) {
  Json json{{"number", number}, {"name", lesson.name}, {"title", lesson.title}, {"panel", lesson.panel}};
  json["exercises"] = json_list(lesson.exercises, [&](const Exercise& exercise) -> Json {
    return {{"command", "draftproof " + exercise.command},
            {"key", exercise.key},
            {"question", is_asked ? Json(exercise.question) : Json()},
            {"per", exercise.per.empty() ? Json() : Json(exercise.per)},
            {"tolerance", exercise.tolerance}};
  });
  return json;
}

Json json_of(const CheckedAnswer& checked) {
  return {{"exercise", checked.exercise},
          {"answer", checked.answer},
          {"value", finite("value", checked.value)},
          {"right", checked.right},
          {"hint", checked.right ? Json() : Json(checked.hint)}};
}

void list_lessons(const std::vector<CourseLesson>& course, const LessonArguments& arguments,
                  const ProgramContext& context) {
  if (arguments.json) {
    Json document = json_document(context.arguments);
    document["lessons"] = Json::array();
    for (std::size_t i = 0; i < course.size(); ++i)
      document["lessons"].push_back(json_of(course[i], static_cast<std::int64_t>(i + 1), false));
    return print_json(document);
  }
  for (const CourseLesson& lesson : course)
    std::cout << lesson.title << "  (draftproof dash --lesson " << lesson.name << ")\n";
}

void print_questions(const CourseLesson& lesson, std::int64_t number, std::uint64_t seed) {
  std::cout << lesson.title << ", numbers " << seed << "\n\n";
  for (std::size_t i = 0; i < lesson.exercises.size(); ++i)
    std::cout << i + 1 << ". " << lesson.exercises[i].question << "\n";
  std::cout << "\nAll answers in one call give a code: draftproof lesson " << number << " --new " << seed
            << " --check 1=... --check 2=... --check 3=...\n";
}

void run(const LessonArguments& arguments, ProgramContext& context) {
  const std::vector<CourseLesson> course = read_course(own_file("course"));
  if (arguments.number.empty()) return list_lessons(course, arguments, context);
  std::optional<std::int64_t> number = read_integer(arguments.number, 1, std::ssize(course));
  std::vector<std::string> names;
  for (const CourseLesson& lesson : course) names.push_back(lesson.name);
  if (const auto named = std::ranges::find(names, arguments.number); named != names.end())
    number = named - names.begin() + 1;
  if (!number)
    throw usage_error("lesson", "is " + in_quotes(arguments.number) + "; expected " +
                                    expected_text(IntegerRange{1, std::ssize(course)}) + ", or " + joined(names, ", ") +
                                    did_you_mean(arguments.number, names));
  CourseLesson lesson = course[static_cast<std::size_t>(*number - 1)];
  if (arguments.seed) lesson = with_new_numbers(lesson, *arguments.seed);
  if (!arguments.checks.empty())
    for (Exercise& exercise : lesson.exercises) find_answer(exercise);
  std::vector<CheckedAnswer> checked;
  for (const std::string& check : arguments.checks) checked.push_back(check_answer(lesson, check));
  const bool all_right = std::ranges::all_of(checked, [](const CheckedAnswer& answer) { return answer.right; });
  std::set<int> right;
  for (const CheckedAnswer& answer : checked)
    if (answer.right) right.insert(answer.exercise);
  const bool has_code = arguments.seed && all_right && std::ssize(right) == std::ssize(lesson.exercises);
  const std::string code = has_code || !arguments.code.empty() ? code_of(lesson) : "";
  const bool is_code = arguments.code.empty() || arguments.code == code;
  if (!all_right || !is_code) context.exit_code = ExitCode::finding;
  if (arguments.json) {
    Json document = json_document(context.arguments);
    document["lesson"] = json_of(lesson, *number, arguments.seed.has_value());
    document["checks"] = json_list(checked, [](const CheckedAnswer& answer) { return json_of(answer); });
    document["code"] = has_code ? Json(code) : Json();
    document["code_is_right"] = arguments.code.empty() ? Json() : Json(is_code);
    return print_json(document);
  }
  if (!arguments.code.empty()) {
    std::cout << "Code " << printable_line(arguments.code) << " is " << (is_code ? "right" : "wrong") << " for lesson "
              << *number << " with the numbers " << *arguments.seed << ".\n";
    return;
  }
  if (checked.empty() && arguments.seed)
    print_questions(lesson, *number, *arguments.seed);
  else if (checked.empty())
    std::cout << lesson.page;
  for (const CheckedAnswer& answer : checked) print_checked(lesson, answer);
  if (has_code)
    std::cout << "All right. The code for your teacher, who checks it with draftproof lesson " << *number << " --new "
              << *arguments.seed << " --code CODE: " << code << "\n";
}

}  // namespace

void add_lesson(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<LessonArguments>();
  options.text("lesson", arguments->number, "Number or name of the lesson (none: the list of lessons)", "N");
  options.texts("--check", arguments->checks,
                "An answer to check, as 1=7/10: exercise 1 and a number or a fraction; exit code 1 if one is wrong",
                "EXERCISE=ANSWER");
  options.integer("--new", arguments->seed, {0, 1'000'000'000},
                  "Exercises with other numbers, the same for the same INT: one for each student; right answers to all "
                  "give a code");
  options.text("--code", arguments->code, "A student's code to check, of the lesson with --new", "CODE");
  options.used_only({"--check", "--new"}, "without a lesson", [arguments] { return !arguments->number.empty(); });
  options.used_only({"--code"}, "without --new", [arguments] { return arguments->seed.has_value(); });
  options.used_only({"--check"}, "with --code", [arguments] { return arguments->code.empty(); });
  options.json(arguments->json);
  options.examples({"", "2", "2 --check 1=7/10 --check 2=0.8", "2 --new 7"});
  options.on_run([arguments, &context] { run(*arguments, context); });
}

}  // namespace draftproof
