// The course (docs/course): its pages, and what their exercises' answers are.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace draftproof {

struct Exercise {
  std::string command;  // prints the answer: what stands behind "draftproof"
  std::string key;      // JSON pointer into its document
  std::string per;      // pointer to the number that it is divided by; empty: none
  std::string answer;   // a number or a fraction
  double value = 0.0;   // of the answer
  double tolerance = 0.0;
  std::string hint;
  std::string new_command, new_key, question;  // with names in braces for numbers (new_numbers.hpp)
};

struct CourseLesson {
  std::string name;   // of dash --lesson
  std::string title;  // "2 Why rejection keeps the distribution"
  std::string panel;
  std::string page;  // Markdown
  std::vector<Exercise> exercises;
};

// In their order, lesson 1 first. Input error naming the file and line of what is missing or wrong.
std::vector<CourseLesson> read_course(const std::string& folder);

// "0.7", ".7", "7/10", "-3"; nothing for any other text and for a denominator of 0.
std::optional<double> answer_value(const std::string& text);

struct CheckedAnswer {
  int exercise = 0;  // from 1
  std::string answer;
  double value = 0.0;
  bool right = false;
  std::string hint;  // of a wrong one
};

// `check` is EXERCISE=ANSWER. Usage error naming --check: another form, no such exercise, an answer that is no number.
CheckedAnswer check_answer(const CourseLesson& lesson, const std::string& check);

}  // namespace draftproof
