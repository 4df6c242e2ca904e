// The judge of a library that draws with numbers of its own: kept sets exactly, distributions by the tests of
// exactness/audit, recorded numbers decision by decision.
#pragma once

#include <cstdint>

#include "gpu/regress/library_regression.hpp"

namespace draftproof {

struct StatisticsOptions {
  bool replays = false;         // decisions must follow from the numbers that the library was given or recorded
  double alpha = 1e-6;          // false alarms of each case
  std::int64_t draws = 20'000;  // of each case at most; large vocabularies have fewer
  std::uint64_t seed = 1;
};

// filter        check_filter (exactness/audit/filter_check.hpp), with its tolerances
// sample        audit_draws, or audit_steps of steps without drafts where it replays. Rows whose kept set depends on
//               how the filters are read, or on rounding at their cut, are left out
// verify_*      audit_steps with the call's verifier; rows are normalised before, drafts drawn from their proposals
// guidance      judge_guidance
// tree_mask     judge_bits
// Error (usage) of a build without exactness/.
regress::LibraryJudge statistical_judge(const StatisticsOptions& options);

}  // namespace draftproof
