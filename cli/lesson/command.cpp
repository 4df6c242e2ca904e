// draftproof lesson: a page of the course, and whether answers to its exercises are right.
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

#include "base/error.hpp"
#include "base/files/own_files.hpp"
#include "base/json_values.hpp"
#include "base/near_names.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "cli/lesson/course.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/terminal.hpp"

namespace draftproof {
namespace {

struct LessonArguments {
  std::string number;  // empty: all lessons are listed
  std::vector<std::string> checks;
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

Json json_of(const CourseLesson& lesson, std::int64_t number) {
  Json json{{"number", number}, {"name", lesson.name}, {"title", lesson.title}, {"panel", lesson.panel}};
  json["exercises"] = json_list(lesson.exercises, [](const Exercise& exercise) -> Json {
    return {{"command", "draftproof " + exercise.command},
            {"key", exercise.key},
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
      document["lessons"].push_back(json_of(course[i], static_cast<std::int64_t>(i + 1)));
    return print_json(document);
  }
  for (const CourseLesson& lesson : course)
    std::cout << lesson.title << "  (draftproof dash --lesson " << lesson.name << ")\n";
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
  const CourseLesson& lesson = course[static_cast<std::size_t>(*number - 1)];
  std::vector<CheckedAnswer> checked;
  for (const std::string& check : arguments.checks) checked.push_back(check_answer(lesson, check));
  if (std::ranges::any_of(checked, [](const CheckedAnswer& answer) { return !answer.right; }))
    context.exit_code = ExitCode::finding;
  if (arguments.json) {
    Json document = json_document(context.arguments);
    document["lesson"] = json_of(lesson, *number);
    document["checks"] = json_list(checked, [](const CheckedAnswer& answer) { return json_of(answer); });
    return print_json(document);
  }
  if (checked.empty()) std::cout << lesson.page;
  for (const CheckedAnswer& answer : checked) print_checked(lesson, answer);
}

}  // namespace

void add_lesson(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<LessonArguments>();
  options.text("lesson", arguments->number, "Number or name of the lesson (none: the list of lessons)", "N");
  options.texts("--check", arguments->checks,
                "An answer to check, as 1=7/10: exercise 1 and a number or a fraction; exit code 1 if one is wrong",
                "EXERCISE=ANSWER");
  options.used_only({"--check"}, "without a lesson", [arguments] { return !arguments->number.empty(); });
  options.json(arguments->json);
  options.examples({"", "2", "2 --check 1=7/10 --check 2=0.8"});
  options.on_run([arguments, &context] { run(*arguments, context); });
}

}  // namespace draftproof
