// The survival of drafts of a length that nobody measured, from what was measured at another.
//
//   rates of two positions or more   exact within them; behind the last one its conditional rate holds
//   one position, or the acceptance  the Beta mixture with decay (beta_mixture.hpp) that gives it, of the spread and
//   length alone                     decay that fit published rates best: 0.45 of the largest spread there is at the
//                                    mean, 0.94 a position
//
// On some 100 published configurations (server logs, tables of papers; at most 20 of one source) the acceptance length
// errs, median and 90th percentile, by: rates of 3 positions to 5 drafts 0.8 and 2.3 %, 5 to 8 1.6 and 3.7 %; length at
// 3 drafts to that at 5 3.5 and 8.4 %, 5 to 3 2.9 and 6 %; first position to 3 drafts 4.3 and 12 %, to 5 8 and 25 %.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace draftproof {

struct ExtrapolatedSurvival {
  std::vector<double> survival;  // s_1 .. s_depth
  // Standard deviation of the logarithm of the acceptance length, as far as the step from what was measured goes.
  double length_spread = 0.0;
};

// survival [m >= 1] -> [depth].
ExtrapolatedSurvival extrapolate_rates(std::span<const double> survival, std::int32_t depth);
// acceptance_length: with the bonus token, of drafts with `drafts` tokens -> [depth]. Errors (usage) at `where`: a
// length outside [1, drafts + 1].
ExtrapolatedSurvival extrapolate_length(double acceptance_length, std::int32_t drafts, std::int32_t depth,
                                        const std::string& where);
// The same of trees of `nodes` nodes and `levels` levels (tree_survival.hpp), to the rates of a chain.
ExtrapolatedSurvival extrapolate_tree_length(double acceptance_length, std::int32_t nodes, std::int32_t levels,
                                             std::int32_t depth, const std::string& where);

}  // namespace draftproof
