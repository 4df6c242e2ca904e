// An e-process: an anytime-valid test of a multinomial distribution, whose false-alarm rate stays below alpha however
// often you look (Ville's inequality: under the distribution the e-value reaches 1 / alpha with probability alpha at
// most). A soak may be watched after every observation and stopped at any time.
//
// The e-value is the wealth of a bettor against the distribution. Its prediction is the mean of a Dirichlet(a)
// posterior, so that after counts O
//   log E = log B(a + O) - log B(a) - sum_i O_i ln p_i          (Lindon and Malek, 2011.03567)
// with a_i = concentration * p_i: centred at the distribution, hence sharpest for small faults.
#pragma once

#include <cstdint>
#include <span>

namespace draftproof {

// log E of counts [cells] against a distribution [cells] of sum 1; `concentration` > 0. Infinite where a cell of
// probability 0 was seen.
double dirichlet_log_wealth(std::span<const std::int64_t> counts, std::span<const double> distribution,
                            double concentration);

}  // namespace draftproof
