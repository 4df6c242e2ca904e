// B26: softmax and cumulative sum in bfloat16 at a large vocabulary.
#include <algorithm>
#include <ranges>
#include <string>

#include "exactness/bugs/engine_numbers.hpp"
#include "exactness/bugs/families.hpp"
#include "exactness/bugs/hunting.hpp"
#include "exactness/statistics/battery.hpp"
#include "reference/numerics/fixed_point.hpp"
#include "reference/random/uniform.hpp"

namespace draftproof {
namespace {

using Rounding = double (*)(double);

double kept_as_double(double x) {
  return x;
}

std::uint64_t bits_of_draw(std::uint64_t draw) {
  return high_half(PhiloxSource().block(derive_seed(0, draw), {0, 0, 0, Purpose::target_sample}));
}

// The inverse of the cumulative sum, every probability and every partial sum rounded. The sum stands still as soon as
// what is added is less than half of its last place.
class RunningSum {
 public:
  RunningSum(std::span<const double> distribution, Rounding round) {
    double sum = 0.0;
    for (const double p : distribution) cumulative_.push_back(sum = round(sum + round(p)));
  }

  double total() const { return cumulative_.back(); }
  Token draw(std::uint64_t bits) const {
    const double u = uniform_53(bits) * cumulative_.back();
    return static_cast<Token>(std::upper_bound(cumulative_.begin(), cumulative_.end(), u) - cumulative_.begin());
  }

 private:
  std::vector<double> cumulative_;
};

// The same inverse over integer masses, which have no rounding of sums (fixed_point.hpp).
class IntegerSum {
 public:
  explicit IntegerSum(std::span<const double> distribution) {
    std::uint64_t sum = 0;
    for (const double p : distribution) cumulative_.push_back(sum += residual_mass(p));
  }

  Token draw(std::uint64_t bits) const {
    const std::uint64_t left = multiply_high(bits, cumulative_.back());
    return static_cast<Token>(std::upper_bound(cumulative_.begin(), cumulative_.end(), left) - cumulative_.begin());
  }

 private:
  std::vector<std::uint64_t> cumulative_;
};

// A Zipf distribution of 131,072 tokens.
const std::vector<double>& long_distribution() {
  static const std::vector<double> distribution = [] {
    std::vector<double> p;
    for (std::int32_t rank = 1; rank <= (1 << 17); ++rank) p.push_back(1.0 / rank);
    double sum = 0.0;
    for (const double x : p) sum += x;
    for (double& x : p) x /= sum;
    return p;
  }();
  return distribution;
}

Rounding rounding_of(bool faulty) {
  return faulty ? to_bfloat16 : kept_as_double;
}

// T: how often a token after the first 1000 is drawn.
Finding find_lost_tail(bool faulty) {
  constexpr std::size_t kLikelyTokens = 1000;
  const RunningSum sum(long_distribution(), rounding_of(faulty));
  double tail = 0.0;
  for (std::size_t i = kLikelyTokens; i < long_distribution().size(); ++i) tail += long_distribution()[i];
  const auto in_tail = [&](std::uint64_t draw) {
    return static_cast<std::size_t>(sum.draw(bits_of_draw(draw))) >= kLikelyTokens;
  };
  Finding finding = find_wrong_rate(tail, in_tail, 1 << 14, "tokens after the first 1000");
  if (finding.caught) finding.evidence += "; the cumulative sum ends at " + short_number(sum.total());
  return finding;
}

// D: the token of every draw against the one that integer sums give for the same bits.
Finding find_other_token(bool faulty) {
  constexpr std::uint64_t kDraws = 1 << 12;
  const RunningSum sum(long_distribution(), rounding_of(faulty));
  const IntegerSum reference(long_distribution());
  return first_evidence("draws", std::views::iota(std::uint64_t{0}, kDraws), [&](std::uint64_t draw) {
    const std::uint64_t bits = bits_of_draw(draw);
    const Token token = sum.draw(bits);
    const Token expected = reference.draw(bits);
    if (token == expected) return std::string();
    return "u = " + short_number(uniform_53(bits)) + " gives token " + std::to_string(token) +
           ", by integer sums token " + std::to_string(expected);
  });
}

}  // namespace

std::vector<Bug> running_sum_bugs() {
  return {
      {.id = "B26",
       .source = "Megatron-LM #7182",
       .fault =
           "softmax and cumulative sum are bfloat16: the sum stands still early, and the tokens behind are never drawn",
       .hunts = {{Detector::tail, find_lost_tail}, {Detector::differential, find_other_token}}}};
}

}  // namespace draftproof
