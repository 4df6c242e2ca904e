// How many tokens to draft: the rules by name and their parameters, as people write them.
//
//   off                                        none
//   fixed:5                                    5 for every request
//   threshold:min=1,max=8,start=4,raise=0.85,lower=0.55,weight=0.3
//                                              of each request: one more when the moving average of accepted / drafted
//                                              is above `raise`, one fewer when it is below `lower`; `weight` is the
//                                              newest step's in the average
//   cumulative:min=1,max=8,start=5,raise=0.85,lower=0.55
//                                              the same by the share of all its drafts so far
//   target_efficiency:share=0.7,max=8,start=5  of each request: the most drafts whose expected share of accepted ones,
//                                              (a + ... + a^K) / K at its rate a so far, is at least `share`; not none
//   schedule:1=5,8=3,32=0                      by batch size: 5 from 1 request, 3 from 8, none from 32
//   goodput:max=8,prior=4,memory=0.95,probe=32 what makes expected tokens per second largest, by the cost model and the
//                                              acceptance measured of the request, of which the batch's counts as
//                                              `prior` observations; older steps count `memory` times less with each
//                                              step; a request without drafts tries one every `probe` steps
//   tree:nodes=16,budget=64                    trees: as many nodes as the budget leaves each request, at most `nodes`
//   likely                                     of drafts that were looked up, the nodes that are likely enough to be
//                                              worth their rows (draft_selection.hpp); of others all
//   auto                                       where tokens do not depend on drafts: drafts that were looked up as
//                                              likely, others as goodput, both by what steps take here
//                                              (own_step_cost.hpp); else as likely
//   confidence:max=7,threshold=0.3,budget=0    of drafters that say of each draft how likely it is accepted, before it
//                                              is drawn: `max` are drafted, and of these the first ones verified, as
//                                              far as the product of their confidences is at least `threshold`; with a
//                                              budget above 0 those with the largest products over the batch, in so
//                                              many rows
// Parameters that are left out have the values above.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace draftproof {

inline constexpr std::int32_t kDraftLenMax = 64;

enum class SpeculationRule : std::uint8_t {
  off,
  fixed,
  threshold,
  schedule,
  goodput,
  tree,
  likely,
  confidence,
  automatic,
  cumulative,
  target_efficiency,
};

struct SpeculationChoice {
  SpeculationRule rule = SpeculationRule::off;
  std::int32_t num_drafts = 5;  // fixed
  // threshold, cumulative
  std::int32_t least = 1;
  std::int32_t most = 8;   // goodput, confidence and target_efficiency too
  std::int32_t start = 4;  // target_efficiency too
  double raise = 0.85;
  double lower = 0.55;
  double weight = 0.3;
  // target_efficiency
  double share = 0.7;
  // schedule: (batch size from which it holds, drafts); ascending, the first from 1
  std::vector<std::pair<std::int32_t, std::int32_t>> schedule;
  // goodput
  double prior = 4.0;
  double memory = 0.95;
  std::int32_t probe = 32;
  // tree
  std::int32_t nodes = 16;
  std::int32_t budget = 64;
  // confidence
  double threshold = 0.3;
  std::int32_t row_budget = 0;  // 0: no limit
};

// Errors (usage) at `where`: an unknown rule or parameter, one given twice, a value outside its range.
SpeculationChoice parse_speculation(std::string_view text, const std::string& where);
// Inverse of parse_speculation.
std::string text_of(const SpeculationChoice& choice);

}  // namespace draftproof
