// Drafting while the target verifies: speculative speculative decoding (Kumar, Dao, May, arXiv:2603.03251).
//
// A drafter on devices of its own does not wait for the verification of its K drafts. It drafts K more for each of B
// outcomes: k drafts accepted and a token x after them. Where the step's outcome is one of them the next drafts are
// ready; else a backup drafts behind the verification, or nothing is drafted.
//
//   fan-out  F_k outcomes with k accepted drafts, B in all. Their x is missed with probability F_k^-r, the paper's
//            power law; always where F_k <= 1
//   best     max of sum P(k) (1 - F_k^-r), P(k) = a^k (1 - a) for k < K, P(K) = a^K: F_k ~ P(k)^(1/(1+r)), the paper's
//            capped geometric series. K = 2, a = 1/2, r = 1, B = 12: F = 4.971, 3.515, 3.515, ready 0.7571
//   round    ready: max(1, T_p), else 1 + T_b, in times of a verification: T_p to draft ahead, T_b of the backup. One
//            request with h = P(ready) has E[tokens] / (h max(1, T_p) + (1 - h)(1 + T_b)) times plain decoding's speed.
//            h = 0.8, T_p = 0.9, T_b = 0.3, 3 tokens a step: 3 / 1.06 = 2.830; drafting first: 3 / 1.3 = 2.308
//   batch    it waits for the backup where one request misses, for the drafts ahead where one is ready
//   work     K + 1 passes: one of the K + 1 tokens of the step, then K of B rows, as the authors' engine has it
//            (github:tanishqkumar/ssd@6ed30227); a drafter of one pass takes two
//
// Not here: their sampling that moves the residual to the outcomes. It changes acceptance and r, which are inputs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/scheduler/step_cost.hpp"

namespace draftproof {

struct DraftingAhead {
  double outcomes = 0.0;                     // B, of a request; 0: it drafts before the target verifies
  std::optional<double> hit = std::nullopt;  // measured share of ready drafts, in place of the power law
  double exponent = 1.0;                     // r
  double rate = 0.5;                         // a
  bool backup = true;

  bool is_on() const { return outcomes > 0.0; }
};

// "outcomes=24,hit=0.9" or "outcomes=24,exponent=1,rate=0.8", either with ",backup=none". Errors (usage) at `where`.
DraftingAhead parse_ahead(std::string_view text, const std::string& where);

// F_k, k = 0 .. drafts. Their sum is B.
std::vector<double> fan_outs(const DraftingAhead& ahead, std::int32_t drafts);
// That the next drafts are ready, k = 0 .. drafts accepted ones of a step.
std::vector<double> ready_probabilities(const DraftingAhead& ahead, std::int32_t drafts);
// The same of a step whose drafts survive so (s_1 .. s_K).
double ready_probability(const DraftingAhead& ahead, const std::vector<double>& survival);

// Adds what is drafted ahead for a request whose step has so many drafts and tokens in the cache.
void add_drafts_ahead(DraftLoad& load, const DraftingAhead& ahead, std::int32_t drafts, std::int64_t kv_tokens,
                      bool one_pass);

}  // namespace draftproof
