// Exercises with other numbers, for each student their own: templates of the course with numbers drawn from a seed,
// whose answers the exercise's own command gives.
#pragma once

#include <cstdint>
#include <string>

#include "cli/lesson/course.hpp"

namespace draftproof {

// The lesson with the exercises of `seed`, without their answers. Error (internal): a command that a question quotes
// prints nothing.
CourseLesson with_new_numbers(const CourseLesson& lesson, std::uint64_t seed);

// Runs the exercise's command and takes its answer from what it prints. Error (internal): it does not.
void find_answer(Exercise& exercise);

// Eight digits that only who has all answers can say: a digest of the questions and their answers.
std::string code_of(const CourseLesson& lesson);

}  // namespace draftproof
