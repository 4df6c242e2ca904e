// Samples of acceptance models, for tests that compare them with the survival that a model promises.
#pragma once

#include "sim/acceptance/acceptance_model.hpp"
#include "tests/support/statistical.hpp"
#include "tests/support/test.hpp"

namespace draftproof {

// P(n accepted), n = 0 .. depth.
inline std::vector<double> lengths_of(const std::vector<double>& survival) {
  std::vector<double> lengths;
  double before = 1.0;
  for (const double s : survival) {
    lengths.push_back(std::max(0.0, before - s));
    before = s;
  }
  lengths.push_back(before);
  return lengths;
}

// One step of each of `requests` requests, behind `steps_before` steps of the same draft: counts of n accepted.
inline std::vector<std::int64_t> accepted_counts(const AcceptanceModel& model, std::int32_t nodes, std::int32_t depth,
                                                 int requests, int steps_before = 0, std::int32_t prompt_len = 0) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(depth) + 1);
  for (int request = 0; request < requests; ++request) {
    AcceptanceState state = model.begin(static_cast<std::uint64_t>(request));
    std::int32_t output_len = 1;
    std::int32_t accepted = 0;
    for (int step = 0; step <= steps_before; ++step) {
      accepted = model.accepted(state, {output_len, prompt_len + output_len}, nodes, depth);
      output_len += accepted + 1;
    }
    ++counts[static_cast<std::size_t>(accepted)];
  }
  return counts;
}

}  // namespace draftproof
