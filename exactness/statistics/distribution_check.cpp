#include "exactness/statistics/distribution_check.hpp"

#include <cmath>
#include <sstream>

namespace draftproof {
namespace {

std::vector<std::int64_t> count(std::span<const DistributionString> strings, std::size_t vocab_size) {
  std::vector<std::int64_t> counts(vocab_size * vocab_size);
  for (const DistributionString& s : strings)
    ++counts[static_cast<std::size_t>(s[0]) * vocab_size + static_cast<std::size_t>(s[1])];
  return counts;
}

// "chi-squared 41.8 on 57 degrees of freedom, p = 0.934; a total variation of 0.155 would be found".
std::string describe(const ChiSquaredTest& test, double detectable_tv) {
  if (test.df == 0) return "a single cell, nothing to tell apart";
  std::ostringstream out;
  out.precision(3);
  out << "chi-squared " << test.statistic << " on " << test.df << " degrees of freedom, p = " << test.p_value
      << "; a total variation of " << detectable_tv << " would be found";
  return out.str();
}

}  // namespace

DistributionCheck compare_distributions(std::span<const DistributionString> speculative,
                                        std::span<const DistributionString> direct,
                                        std::span<const double> distribution) {
  auto vocab_size = static_cast<std::size_t>(std::sqrt(static_cast<double>(distribution.size())));
  const std::vector<std::int64_t> speculative_counts = count(speculative, vocab_size);
  const std::vector<std::int64_t> direct_counts = count(direct, vocab_size);
  DistributionCheck check;
  check.samples = static_cast<std::int64_t>(speculative.size());
  check.two_sample = two_sample_test(speculative_counts, direct_counts);
  check.exact = goodness_of_fit(speculative_counts, distribution);
  const auto n = static_cast<double>(check.samples);
  check.detectable_tv =
      detectable_total_variation(n / 2.0, check.two_sample.df, kDistributionAlpha, kDistributionPower);
  check.detectable_tv_exact = detectable_total_variation(n, check.exact.df, kDistributionAlpha, kDistributionPower);
  for (std::size_t cell = 0; cell < distribution.size(); ++cell) {
    const std::int64_t seen = speculative_counts[cell] + direct_counts[cell];
    if (distribution[cell] > 0.0 || seen == 0) continue;
    check.impossible_count += seen;
    if (!check.impossible)
      check.impossible =
          DistributionString{static_cast<Token>(cell / vocab_size), static_cast<Token>(cell % vocab_size)};
  }
  return check;
}

std::string DistributionCheck::verdict() const {
  std::string text = is_finding() ? "speculation does not emit the target's distribution"
                                  : "speculation emits the target's distribution";
  if (!lossless && is_finding()) text += ", as is to be expected of a lossy verifier";
  return text;
}

std::string DistributionCheck::scope() const {
  std::ostringstream out;
  out << samples << " strings of two tokens, level " << kDistributionAlpha << " each";
  return out.str();
}

std::vector<std::string> DistributionCheck::evidence() const {
  std::vector<std::string> lines{"against as many by direct sampling " + describe(two_sample, detectable_tv),
                                 "against the exact distribution " + describe(exact, detectable_tv_exact)};
  if (impossible)
    lines.push_back(std::to_string(impossible_count) + " strings have probability zero, the first of them tokens " +
                    std::to_string((*impossible)[0]) + ", " + std::to_string((*impossible)[1]));
  return lines;
}

std::string DistributionCheck::sentence() const {
  std::string text = verdict() + ": " + scope();
  for (const std::string& line : evidence()) text += "; " + line;
  return text;
}

}  // namespace draftproof
