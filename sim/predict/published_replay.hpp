// Replays of published recordings with the published cost of their hardware: the speedups that the authors of
// SpecDecode-Bench compute from them (Liu et al. 2601.11580; Llama-3.1-8B-Instruct on one H100 with vLLM), and this
// project's own prompt lookup over the recorded tokens.
//
// Their method, from their public simulator: a batch is B copies of one request. The prompt is one pass, every later
// step a pass over the rows of all copies; a step drafts in one piece, and FIXED_K verifies K drafts, ORACLE exactly
// those that will be accepted (drafting in every step all the same). Throughputs of plain and speculative decoding are
// means over the requests. A step behind p output tokens takes what is recorded for p - 1 (replay.hpp, delay 1);
// `aligned` has it from p.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/scheduler/step_cost.hpp"
#include "sim/acceptance/replay.hpp"

namespace draftproof {

// The published fit of an 8B model on an H100 (vLLM): verify 5.886 ms + 21.0 us a row + 39.3 ns a cached token; EAGLE's
// draft 2.135 ms + 0.84 us a row + 2.4 ns a cached token; 1.2 ms a step.
LinearCost published_cost_8b_h100();

struct ReplayedSpeedup {
  std::string policy;                  // "FIXED_3", "ORACLE"
  std::optional<std::int32_t> drafts;  // nothing: ORACLE
  std::int64_t batch = 1;
  double acceptance_length = 1.0;  // over all steps, as the authors place them
  double speedup = 1.0;            // as the authors place acceptances
  double aligned = 1.0;            // as they were recorded
};

// FIXED_1, FIXED_3, FIXED_5 and ORACLE at these batch sizes; of an EAGLE drafter.
std::vector<ReplayedSpeedup> replay_speedups(const AcceptanceRecording& recording,
                                             const std::vector<std::int64_t>& batches);

// The project's prompt lookup (suffixes of 3 to 5 tokens, as vLLM's default then) on the recorded tokens.
struct LookupComparison {
  std::int64_t places = 0;
  std::int64_t equal = 0;      // that accept as many drafts of at most 20 as recorded
  double recorded_mean = 0.0;  // accepted drafts, over places
  double own_mean = 0.0;
  double draft_share = 0.0;  // of the places, that have a draft
  // In a run with K drafts a step: acceptance lengths over all steps, recorded and own.
  struct Run {
    std::int32_t drafts;
    double recorded, own;
  };
  std::vector<Run> runs;
};
// Needs the token ids; requests without them are left out. Errors (input) at `where`: none has them.
LookupComparison compare_lookup(const AcceptanceRecording& recording, const std::string& where);

}  // namespace draftproof
