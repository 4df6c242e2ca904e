// How often does the audit accuse a correct sampler? Measured: batteries of small null samples, drawn by our own
// production samplers with Philox, each audited as a stranger's would be.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "exactness/statistics/binomial_interval.hpp"

namespace draftproof {

struct SelfTestOptions {
  std::int64_t batteries = 10'000;
  double alpha = 0.01;  // at which batteries are judged; a level that shows something within 10,000 of them
  std::uint64_t seed = 0;
  int threads = 1;
};

// The p values of one test over the batteries in which it was possible.
struct PooledTest {
  std::string name;  // with "draws/" or "steps/" before it
  std::int64_t count = 0;
  double ks_distance = 0.0;  // from uniform
  double ks_p_value = 1.0;
  std::int64_t below_alpha = 0;
};

struct SelfTest {
  std::int64_t batteries = 0;
  double alpha = 0.0;
  std::int64_t accused = 0;       // batteries in which any test rejects after Holm's correction over all of it
  Interval accused_interval;      // Clopper-Pearson, 99 %
  std::vector<PooledTest> tests;  // those of impossible events are left out: a correct sampler never meets one
  std::int64_t impossible = 0;    // how often one did meet one

  // The smallest KS p value after Holm's correction over the tests.
  double least_ks_p_value_holm = 1.0;

  double accused_share() const { return static_cast<double>(accused) / static_cast<double>(batteries); }
  // Correct samplers are accused more often than alpha says, meet what is impossible, or have p values that are not
  // uniform.
  bool is_finding() const;
  std::string sentence() const;
};

// `done` is called with the batteries finished, from any thread. Errors (usage): fewer than 1 battery or thread.
SelfTest test_null_batteries(const SelfTestOptions& options, const std::function<void(std::int64_t)>& done = {});

}  // namespace draftproof
