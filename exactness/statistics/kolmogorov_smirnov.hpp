// The Kolmogorov-Smirnov distance of n uniform numbers: its distribution, p values and critical distances.
//
//   D_n = sup_u |F_n(u) - u|
#pragma once

#include <cstdint>
#include <vector>

namespace draftproof {

// P(D_n < d). Exact for n <= 100 (Marsaglia, Tsang and Wang, J. Stat. Software 8(18), 2003: the middle entry of a power
// of Durbin's matrix, times n! / n^n); beyond that Kolmogorov's limit series at the argument corrected to first order,
// x + 1 / (6 sqrt n) + (x - 1) / (4 n) with x = d sqrt n: off by 1.7e-4 at n = 100 and less for more.
double kolmogorov_cdf(std::int64_t n, double d);

// P(D_n >= d), with its relative accuracy kept in the tail, where 1 - cdf would lose it: there it is too large by 15 %
// at most (n = 101; 2 % from n = 1000) and too small by 2 % at most. 1 for n = 0.
double kolmogorov_p_value(std::int64_t n, double d);

// The d whose p value is `alpha`.
double kolmogorov_critical_distance(std::int64_t n, double alpha);

// The distance |F - u| that a test of level alpha finds with probability `power`, wherever it occurs: what is found at
// one point u is a binomial proportion, whose standard deviation is 1 / (2 sqrt n) at most. 1 where none is enough.
double detectable_kolmogorov_distance(std::int64_t n, double alpha, double power);

// D_n of the values, which should be in [0, 1]; 0 for none.
double uniform_distance(std::vector<double> values);

}  // namespace draftproof
