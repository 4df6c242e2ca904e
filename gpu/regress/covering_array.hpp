// Covering arrays: few assignments in which every two values of every two arguments meet.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace draftproof::regress {

// An argument of a call and the kinds of values that it can take, the default first.
struct ArgumentValues {
  std::string name;
  std::vector<std::string> values;
};

// May value v of argument i stand beside value w of argument j? The answer must not depend on their order.
using CanMeet = std::function<bool(std::size_t i, std::size_t v, std::size_t j, std::size_t w)>;

// Assignments [arguments] of indices into the values, greedy and without chance: each begins with a pair that has not
// met yet, and gives every further argument the value that makes most new pairs. Error (internal): a pair that may meet
// can be part of no assignment.
std::vector<std::vector<std::size_t>> covering_array(const std::vector<ArgumentValues>& arguments,
                                                     const CanMeet& can_meet);

}  // namespace draftproof::regress
