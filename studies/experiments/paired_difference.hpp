// Difference between two runs of the same prompts: pairs, not groups, since prompts differ more among themselves than
// drafters or verifiers do.
//
//   d_i = a_i - b_i,   t = mean(d) / (s / sqrt(n)),   interval mean(d) +- t(0.975, n - 1) s / sqrt(n)
//
// Student (W. S. Gosset, Biometrika 6, 1908); the exact test flips signs of the d_i (R. A. Fisher, "The Design of
// Experiments", 1935, section 21); Holm's correction is of S. Holm, Scand. J. Statist. 6 (1979).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace draftproof {

struct PairedDifference {
  std::size_t pairs = 0;
  double mean_a = 0.0, mean_b = 0.0;
  double difference = 0.0;       // mean of a_i - b_i
  double spread = 0.0;           // their standard deviation
  double low = 0.0, high = 0.0;  // 95 %
  double p_value = 1.0;          // two-sided: of all sign flips up to 20 pairs, Student's beyond
  bool exact = false;            // it is of all sign flips
  double p_holm = 1.0;           // corrected for the family; p_value until correct() is called
  // The least true difference that would have come out with p below 0.05, not corrected, with a probability of 80 %, by
  // the spread of these pairs: (t(0.975) + t(0.8)) s / sqrt(n), for sign flips up to 8 pairs a little too small. What a
  // "no difference" has to say. Nothing below six pairs, of which no sign flips give such a p.
  std::optional<double> detectable;
};

// Error (input) for fewer than two pairs or lists of different lengths.
PairedDifference paired_difference(std::span<const double> a, std::span<const double> b);
// The fewest pairs of that spread of which a true difference comes out with p below 0.05, not corrected, with a
// probability of 80 %: detectable, the other way round. Both above 0; a million at most.
std::size_t pairs_needed(double spread, double difference);
// Holm's correction over a family of comparisons.
void correct(std::vector<PairedDifference>& family);

}  // namespace draftproof
