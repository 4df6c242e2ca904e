// Claims that people quote, and what the simulator says of each: a folder of experiments/ with experiment.toml, which
// says question, source, claims and by which model they are judged.
//
//   chain_formula   accepted or emitted tokens of a chain with one conditional rate at all positions
//   draft_cost      speedups by rate, of one unknown draft cost c (in target steps): tokens / (1 + K c)
//   target_latency  speedups by drafter, of one unknown target step t: tokens t / (K draft + t)
//   draft_passes    a speedup by accepted tokens and draft cost: (n + 1) / (n c + 1), n draft passes
//   bytes           a time against what must be read: bytes / bandwidth
//   scenario        of a scenario (sim/serving/scenario.hpp) with some keys changed: the speedup of a policy over the
//                   first, or a `figure` of it, or that `over` another policy's, whose
//                   keys may be others (over_set)
// A claim is consistent if it lies inside what the model says, or that inside the claim, widened by the experiment's
// tolerance. A model that gives only a bound (bytes) finds a claim impossible or possible, which is not consistent.
#pragma once

#include <string>
#include <vector>

namespace draftproof {

struct ValueRange {
  double low = 0.0;
  double high = 0.0;
};

enum class ClaimOutcome { refuted, possible, consistent };
const char* name_of(ClaimOutcome outcome);  // "no", "possible", "yes"

struct ClaimVerdict {
  std::string what;
  double x = 0.0;  // where the claim is a point of a curve
  ValueRange claimed;
  ValueRange model;
  ClaimOutcome outcome = ClaimOutcome::refuted;
  std::string why;  // what it would take, or what was found
};

struct ExperimentResult {
  std::string name;  // of the folder
  std::string title, question, source, kind, quantity, reading;
  std::string x_name;  // empty: the claims are no curve
  bool log_x = false;
  double tolerance = 0.0;
  std::vector<ClaimVerdict> claims;

  int count(ClaimOutcome outcome) const;
};

// The experiments of a folder, in alphabetical order.
std::vector<std::string> experiment_names(const std::string& folder);

// Errors (input) at FILE:LINE; `name` is not in the folder.
ExperimentResult run_experiment(const std::string& folder, const std::string& name, int threads);

// docs/claims.md.
std::string claims_markdown(const std::vector<ExperimentResult>& results);

// A range or its one value, with so many digits as it takes.
std::string text_of(ValueRange range);

}  // namespace draftproof
