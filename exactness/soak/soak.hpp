// A soak: our chain verifier, drafts drawn and judged by the bits of production, trial after trial, against the
// distribution of the strings it should emit. What it would take to see a bias of one part in ten thousand is a billion
// trials.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "exactness/model_pair.hpp"
#include "exactness/statistics/test_result.hpp"

namespace draftproof {

struct SoakOptions {
  std::int32_t vocab_size = 8;
  std::int32_t draft_len = 4;
  std::int64_t trials = 1'000'000'000;
  ModelKind kind = ModelKind::zeros;
  std::uint64_t seed = 0;
  int threads = 1;
  double alpha = 1e-6;  // of the anytime-valid test, and of the tests at the end together
};

struct SoakLook {
  std::int64_t trials;
  double log10_wealth;  // of the bettor against the distribution (statistics/e_process.hpp)
};

struct SoakResult {
  std::int64_t trials = 0;  // fewer than asked for where the wealth refuted the distribution before the end
  std::int64_t cells = 0;   // strings that the distribution allows
  double acceptance_length = 0.0;
  double acceptance_length_expected = 0.0;
  std::vector<SoakLook> looks;
  bool refuted_on_the_way = false;
  std::vector<TestResult> tests;  // judged together at alpha
  double milliseconds = 0.0;      // of the trials and the looks

  bool consistent() const;
  // "consistent: a total variation distance of 0.01 would have been found with 99 % probability"; "biased".
  std::string sentence() const;
  double trials_per_s() const { return static_cast<double>(trials) / (milliseconds * 1e-3); }
};

// `done` is called with the number of trials finished since it was last called. Errors (usage): options out of range.
SoakResult soak(const SoakOptions& options, const std::function<void(std::int64_t)>& done = {});

}  // namespace draftproof
