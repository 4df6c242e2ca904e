// Probabilities that a sum of independent, unequal terms lies as far out as it was seen to: counts of events whose
// probability differs from draw to draw, and scores. Each is exact, or a bound from above that a level may rely on.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace draftproof {

// A sum S of independent terms under the tilted distribution dP_t = exp(t S) dP / E exp(t S); t = 0: as it is.
struct TiltedSum {
  double log_mgf = 0.0;   // ln E exp(t S)
  double mean = 0.0;      // of S under P_t
  double variance = 0.0;  // of S under P_t
  double third = 0.0;     // sum over the terms of E_t |X - E_t X|^3

  void add(const TiltedSum& terms, double times = 1.0);
};

// The score ln p(x) - E ln p(x) of one draw x from `distribution` [V], which sums to 1; tokens of probability 0 are not
// drawn. Its mean is 0 at tilt 0.
TiltedSum tilted_score(std::span<const double> distribution, double tilt);

// Bounds P(S >= s), or P(S <= s) where s is below the mean:
//   P(S >= s) = exp(K(t) - t s) E_t[exp(-t Y); Y >= 0],  Y = S - s,  K the log_mgf
// The expectation is that of a normal variable with the mean and variance of Y, plus twice the largest difference of
// the two distribution functions, 0.56 sum E|X|^3 / sigma^3 (Berry and Esseen's inequality; constant: Shevtsova 2010).
// Any t gives a bound; t is near where S has the mean s. Within 3 standard deviations Cantelli's 1 / (1 + z^2).
// at(t): the sum tilted by t.
double tail_bound(double s, const std::function<TiltedSum(double)>& at);

// `draws` draws in each of which an event has this probability.
struct EventDraws {
  double probability = 0.0;
  std::int64_t draws = 0;
};

double expected_events(std::span<const EventDraws> draws);

// P(X <= count) and P(X >= count) for the number X of events. Exact where all probabilities are equal (binomial) and up
// to kExactTailOperations of draws x counts (Poisson-binomial, draw by draw); beyond that tail_bound.
inline constexpr double kExactTailOperations = 2e7;
double at_most(std::span<const EventDraws> draws, std::int64_t count);
double at_least(std::span<const EventDraws> draws, std::int64_t count);

// Bounds P(|R| >= |r|) for R = 12 / n sum (u_i - 1/2)(u_(i + lag) - 1/2) over n pairs along sequences of independent
// uniform numbers. A uniform number less its mean is subgaussian with variance 1/12, so that E exp(t sum) of such a
// chain is at most (1 - g)^(-n / 2) with g (1 - g) = (t / 12)^2, g <= 1/2; the least of that over t is taken.
double correlation_bound(double r, std::int64_t n);

}  // namespace draftproof
