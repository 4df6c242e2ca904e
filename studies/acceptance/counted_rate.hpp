// The interval of a rate that was counted over steps of texts.
#pragma once

#include <optional>

#include "exactness/statistics/binomial_interval.hpp"

namespace draftproof {

// Steps of one text depend on each other, so a standard error over windows or texts may be larger than that of coins:
// then the counts are those of as many independent steps as would have it (Korn, Graubard, Survey Methodology 24
// (1998): Clopper and Pearson's interval of the effective sample). This is that share of the trials, in (0, 1].
double independent_share_of(double rate, double trials, const std::optional<double>& standard_error);

// Clopper and Pearson's interval of `rate` over so many trials, of which a share is independent; covers with
// probability `level`.
Interval counted_interval(double rate, double trials, double independent_share, double level);

}  // namespace draftproof
