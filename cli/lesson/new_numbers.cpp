#include "cli/lesson/new_numbers.hpp"

#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "base/archives/sha256.hpp"
#include "base/error.hpp"
#include "base/files/own_files.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/python.hpp"
#include "reference/random/philox.hpp"

namespace draftproof {
namespace {

class Numbers {
 public:
  Numbers(std::uint64_t seed, std::uint32_t lesson, std::uint32_t exercise)
      : seed_(seed), lesson_(lesson), exercise_(exercise) {}

  // Text for a name in course.toml's templates; one name is one value within an exercise.
  std::string text_of(const std::string& name) {
    if (name == "p" || name == "q") return tenths(3);
    if (name == "p4" || name == "q4") return tenths(4);
    if (name == "w") {  // falling weights, of which no sum is a top_p
      std::vector<std::string> weights{"1"};
      int weight = 1;
      while (weights.size() < 5) weights.insert(weights.begin(), std::to_string(weight += from(0, 4)));
      return joined(weights, ",");
    }
    if (name == "n") return one_of({"0.61", "0.73", "0.83", "0.91"});
    if (name == "k") return std::to_string(from(2, 4));
    if (name == "t") return one_of({"0.5", "2"});
    if (name == "a") return number("%.2f", 0.05 * from(11, 18));
    if (name == "c") return number("%.2f", 0.05 * from(2, 8));
    if (name == "r") {
      std::vector<std::string> rates;
      while (rates.size() < 3) rates.push_back(number("%.2f", 0.01 * from(55, 90)));
      return joined(rates, ",");
    }
    if (name == "s") return one_of({"2000", "5000", "10000", "40000"});
    if (name == "u") return one_of({"800", "1250", "3000", "8000"});
    if (name == "m") return one_of({"4", "8", "12", "20", "24"});
    if (name == "b") return std::to_string(from(2, 7));
    if (name == "d") return std::to_string(from(1, 99));
    if (name == "g") return one_of({"A100", "H200", "L40S", "B200"});
    if (name == "x" || name == "y" || name == "z") return std::to_string(from(1, 4));
    throw Error(ErrorKind::internal, "course.toml", "there are no numbers for {" + name + "}");
  }

 private:
  int from(int least, int most) {
    const RandomBlock block = philox_block(seed_, drawn_++, lesson_, exercise_, 0);
    return least + static_cast<int>(block.word[0] % static_cast<std::uint32_t>(most - least + 1));
  }
  std::string one_of(const std::vector<std::string>& texts) {
    return texts[static_cast<std::size_t>(from(0, static_cast<int>(texts.size()) - 1))];
  }
  // Probabilities of so many tokens, each a number of tenths; never those before.
  std::string tenths(std::size_t tokens) {
    std::vector<int> masses(tokens, 1);
    for (int left = 10 - static_cast<int>(tokens); left > 0; --left)
      ++masses[static_cast<std::size_t>(from(0, static_cast<int>(tokens) - 1))];
    if (masses == before_ || (tokens == 4 && !leaves_a_residual(masses))) return tenths(tokens);
    before_ = masses;
    return joined(masses, ",", [](int mass) { return "0." + std::to_string(mass); });
  }
  // The residual of p and then q is the first token and another, so that no answer is 0 or 1.
  bool leaves_a_residual(const std::vector<int>& masses) const {
    if (before_.empty()) return masses[0] >= 2 && masses[0] <= 6;  // p, beside which there is such a q
    return before_[0] > masses[0] && (before_[1] > masses[1] || before_[2] > masses[2] || before_[3] > masses[3]);
  }

  std::vector<int> before_;
  std::uint64_t seed_;
  std::uint32_t lesson_, exercise_, drawn_ = 0;
};

Json document_of(const std::string& arguments) {
  std::vector<std::string> command{own_program()};
  for (const std::string& word : shell_arguments(arguments)) command.push_back(word);
  command.emplace_back("--json");
  std::string text;
  const int code = run_program(command, [&](std::string_view block) { text += block; });
  Json document = Json::parse(text, nullptr, false);
  if (document.is_discarded())
    throw Error(ErrorKind::internal, shell_command(command), "printed no JSON; exit code " + std::to_string(code));
  return document;
}

// "0.3014, 1/3": a number, a text, or a list of them.
std::string text_at(const Json& document, const std::string& pointer) {
  const Json& value = document.at(Json::json_pointer(pointer));
  const auto text_of = [](const Json& one) {
    return one.is_string() ? one.get<std::string>() : number("%.4g", one.get<double>());
  };
  return value.is_array() ? joined(value, ", ", text_of) : text_of(value);
}

// A name in braces in both texts becomes one value, and in the question a pointer what the command prints there.
void fill(Exercise& exercise, Numbers& numbers) {
  for (std::size_t begin = 0; (begin = exercise.new_command.find('{')) != std::string::npos;) {
    const std::string place = exercise.new_command.substr(begin, exercise.new_command.find('}') + 1 - begin);
    const std::string value = numbers.text_of(place.substr(1, place.size() - 2));
    for (std::string* text : {&exercise.new_command, &exercise.question})
      for (std::size_t at = 0; (at = text->find(place, at)) != std::string::npos; at += value.size())
        text->replace(at, place.size(), value);
  }
  std::optional<Json> document;
  for (std::size_t begin = 0; (begin = exercise.question.find("{/", begin)) != std::string::npos;) {
    if (!document) document = document_of(exercise.new_command);
    const std::size_t end = exercise.question.find('}', begin);
    exercise.question.replace(begin, end + 1 - begin,
                              text_at(*document, exercise.question.substr(begin + 1, end - begin - 1)));
  }
}

double value_at(const Json& document, const std::string& pointer) {
  const Json& value = document.at(Json::json_pointer(pointer));
  return value.is_string() ? answer_value(value.get<std::string>()).value() : value.get<double>();
}

}  // namespace

CourseLesson with_new_numbers(const CourseLesson& lesson, std::uint64_t seed) {
  CourseLesson other = lesson;
  for (std::size_t i = 0; i < other.exercises.size(); ++i) {
    Exercise& exercise = other.exercises[i];
    Numbers numbers(seed, static_cast<std::uint32_t>(lesson.title.front()), static_cast<std::uint32_t>(i));
    fill(exercise, numbers);
    exercise.command = exercise.new_command;
    exercise.key = exercise.new_key;
    exercise.answer.clear();
    exercise.hint = "run draftproof " + exercise.command + " and look at " + exercise.key + " of its --json";
  }
  return other;
}

void find_answer(Exercise& exercise) {
  if (!exercise.answer.empty()) return;
  const Json document = document_of(exercise.command);
  exercise.value = value_at(document, exercise.key);
  if (!exercise.per.empty()) exercise.value /= value_at(document, exercise.per);
  exercise.answer = number("%.9g", exercise.value);
}

std::string code_of(const CourseLesson& lesson) {
  std::string text = lesson.name;
  for (Exercise exercise : lesson.exercises) {
    find_answer(exercise);
    text += "\n" + exercise.command + " " + number("%.4g", exercise.value);
  }
  return sha256_hex(text).substr(0, 8);
}

}  // namespace draftproof
