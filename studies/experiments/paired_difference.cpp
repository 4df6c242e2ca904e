#include "studies/experiments/paired_difference.hpp"

#include "reference/numerics/boost_math.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>

#include "base/error.hpp"

namespace draftproof {
namespace {

constexpr std::size_t kFlippedPairsMax = 20;  // a million sign patterns
constexpr std::size_t kPairsLeast = 6;        // 2 / 2^5 is above 0.05

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The share of all sign patterns whose sum is at least as far from 0 as that of the differences. Sums that are equal on
// paper may differ in their last digits.
double p_of_sign_flips(const std::vector<double>& differences) {
  double sum = 0.0, size = 0.0;
  for (const double d : differences) {
    sum += d;
    size += std::abs(d);
  }
  const double observed = std::abs(sum) - 1e-12 * size;
  const std::uint64_t patterns = std::uint64_t{1} << differences.size();
  std::uint64_t as_far = 0;
  for (std::uint64_t pattern = 0; pattern < patterns; ++pattern) {
    double flipped = 0.0;
    for (std::size_t i = 0; i < differences.size(); ++i)
      flipped += (pattern >> i & 1) != 0 ? -differences[i] : differences[i];
    as_far += std::abs(flipped) >= observed ? 1 : 0;
  }
  return static_cast<double>(as_far) / static_cast<double>(patterns);
}

// (t(0.975) + t(0.8)) / sqrt(n): what shows of `n` pairs, in units of their spread.
double detectable_of(double n) {
  const boost::math::students_t student(n - 1.0);
  return (boost::math::quantile(student, 0.975) + boost::math::quantile(student, 0.8)) / std::sqrt(n);
}

}  // namespace

PairedDifference paired_difference(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size())
    throw input_error("paired values", "there are " + std::to_string(a.size()) + " and " + std::to_string(b.size()) +
                                           "; expected as many of both");
  if (a.size() < 2) throw input_error("paired values", "there are fewer than two pairs; expected two or more");
  PairedDifference result;
  result.pairs = a.size();
  result.mean_a = mean_of(a);
  result.mean_b = mean_of(b);
  std::vector<double> differences;
  for (std::size_t i = 0; i < a.size(); ++i) differences.push_back(a[i] - b[i]);
  result.difference = mean_of(differences);
  double squares = 0.0;
  for (const double d : differences) squares += (d - result.difference) * (d - result.difference);
  const auto n = static_cast<double>(a.size());
  result.spread = std::sqrt(squares / (n - 1.0));
  const double error = result.spread / std::sqrt(n);
  const boost::math::students_t student(n - 1.0);
  const double t95 = boost::math::quantile(student, 0.975);
  result.low = result.difference - t95 * error;
  result.high = result.difference + t95 * error;
  if (a.size() >= kPairsLeast) result.detectable = detectable_of(n) * result.spread;
  result.exact = a.size() <= kFlippedPairsMax;
  if (result.exact)
    result.p_value = p_of_sign_flips(differences);
  else if (error > 0.0)
    result.p_value =
        std::min(1.0, 2.0 * boost::math::cdf(boost::math::complement(student, std::abs(result.difference) / error)));
  else
    result.p_value = result.difference == 0.0 ? 1.0 : 0.0;
  result.p_holm = result.p_value;
  return result;
}

std::size_t pairs_needed(double spread, double difference) {
  constexpr std::size_t kMost = 1'000'000;
  std::size_t low = kPairsLeast - 1, high = kMost;  // too few, enough
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    (detectable_of(static_cast<double>(middle)) * spread <= difference ? high : low) = middle;
  }
  return high;
}

void correct(std::vector<PairedDifference>& family) {
  std::vector<std::size_t> order(family.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return family[i].p_value; });
  double largest = 0.0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const double scaled = static_cast<double>(order.size() - rank) * family[order[rank]].p_value;
    largest = std::max(largest, std::min(1.0, scaled));
    family[order[rank]].p_holm = largest;
  }
}

}  // namespace draftproof
