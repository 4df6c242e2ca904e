// One measurement before it is taken. Cases are listed cheaply; what they work on is made by prepare(), once, when the
// case is due.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "cli/bench/result.hpp"

namespace draftproof {

// Work that a case times, and how much of it there is.
struct BenchWork {
  std::function<void()> body;
  std::function<void()> mass_pass;  // empty, or timed in turns with the body
  std::function<void()> one_row;    // likewise: the same for one row of activations
  std::optional<std::uint64_t> elements;
  std::optional<std::uint64_t> bytes;
  std::optional<double> acceptance_length;
};

struct BenchCase {
  std::string name;
  int threads = 1;
  std::optional<BenchGoal> goal;
  bool cold = false;  // the caches are filled with other data before every repeat
  std::function<BenchWork()> prepare;
};

}  // namespace draftproof
