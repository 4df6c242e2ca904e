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
#include <vector>

namespace draftproof {

class DirichletEProcess {
 public:
  // distribution [cells], non-negative, sums to 1; concentration > 0 (0: the number of cells that the distribution
  // allows). Errors (usage) otherwise.
  explicit DirichletEProcess(std::span<const double> distribution, double concentration = 0.0);

  // One more observation. A cell of probability 0 makes the wealth infinite, for good.
  void add(std::size_t cell);

  std::int64_t n() const { return n_; }
  double log_wealth() const { return log_wealth_; }          // now
  double log_wealth_max() const { return log_wealth_max_; }  // ever; its exponential is what Ville's inequality bounds
  double p_value() const;                                    // min(1, 1 / the largest wealth): valid at any time
  bool rejects(double alpha) const;

 private:
  std::vector<double> distribution_;
  std::vector<std::int64_t> counts_;
  double concentration_;
  std::int64_t n_ = 0;
  double log_wealth_ = 0.0;
  double log_wealth_max_ = 0.0;
};

// log E of counts all at once, which is what add() arrives at in any order. `concentration` > 0.
double dirichlet_log_wealth(std::span<const std::int64_t> counts, std::span<const double> distribution,
                            double concentration);

}  // namespace draftproof
