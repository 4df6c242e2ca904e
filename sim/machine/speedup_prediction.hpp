// The wall-clock speedup of speculation on a computer, from its timed passes and from what was drafted and accepted:
// what `draftproof validate --this-machine` compares with what `draftproof speculate` measured.
//
//   plain        prefill + (tokens - 1) x step(1 row)
//   speculative  prefill + (steps - 1) x [step(1 + drafted rows) + draft passes]
//   speedup      (plain / plain tokens) / (speculative / tokens)                 as speculate's table has it
//
// Acceptance is taken as measured; no time of the table is read. Requests of a batch run side by side until they end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/machine/machine_profile.hpp"

namespace draftproof {

// Counts of one request under speculation, and its length under plain decoding.
struct CountedRequest {
  std::int64_t prompt_tokens = 0;
  std::int64_t plain_tokens = 0;  // received without speculation
  std::int64_t tokens = 0;        // received with it
  std::int64_t steps = 0;         // that emitted; the first one ends the prompt
  std::int64_t drafts = 0;        // steps that had one
  std::int64_t draft_tokens = 0;  // nodes, of all drafts
};

// How drafts are made. The first pass of a draft takes in the tokens that the step before emitted, each further one the
// nodes of the one before.
struct DraftPasses {
  double share = 0.0;                // of a pass of the target that one takes; 0: looked up, at no cost
  std::vector<std::int64_t> widths;  // nodes that each pass adds: 1, 1, ... for chains
};

// Requests of one batch. Errors (input): counts that cannot be, named.
double predicted_speedup(const MachineProfile& profile, std::span<const CountedRequest> batch,
                         const DraftPasses& drafting);

}  // namespace draftproof
