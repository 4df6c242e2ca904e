#include "reference/logits/filters.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "reference/numerics/order_key.hpp"
#include "reference/numerics/unsigned_128.hpp"

namespace draftproof {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();
constexpr Token kLastToken = std::numeric_limits<Token>::max();
constexpr KeptSet kKeepAll{kLowest, kLastToken, 0};

std::uint64_t sum_of_masses(const Distribution& row) {
  std::uint64_t sum = 0;
  for (Token i = 0; i < row.vocab_size(); ++i) sum += row.mass(i);
  return sum;
}

// The longest prefix of the total order in which every token has less than `limit` of `measure` strictly before it
// (limit >= 1). Three radix passes over the key, 11 + 11 + 10 bits: each finds the bucket where the limit falls and
// hands only its tokens to the next; what remains has one value, and ids decide.
template <class Measure>
KeptSet longest_prefix(const Distribution& row, std::uint64_t limit, Ties ties, Measure measure) {
  constexpr std::array<int, 3> kShift{21, 10, 0};
  constexpr std::array<int, 3> kBits{11, 11, 10};
  std::vector<Token> candidates;
  candidates.reserve(static_cast<std::size_t>(row.vocab_size()));
  for (Token i = 0; i < row.vocab_size(); ++i)
    if (row.is_kept(i)) candidates.push_back(i);

  const auto key_of = [&](Token i) { return order_key(row.logits()[static_cast<std::size_t>(i)]); };
  std::uint64_t before = 0;
  std::vector<std::uint64_t> histogram;
  for (std::size_t pass = 0; pass < kShift.size(); ++pass) {
    const std::uint32_t mask = (1u << kBits[pass]) - 1;
    const auto digit_of = [&](Token i) { return (key_of(i) >> kShift[pass]) & mask; };
    histogram.assign(std::size_t{mask} + 1, 0);
    for (const Token i : candidates) histogram[digit_of(i)] += measure(i);
    std::int64_t digit = mask;
    while (digit >= 0 && before + histogram[static_cast<std::size_t>(digit)] < limit)
      before += histogram[static_cast<std::size_t>(digit--)];
    if (digit < 0) return kKeepAll;  // the whole row stays below the limit
    std::erase_if(candidates, [&](Token i) { return digit_of(i) != static_cast<std::uint32_t>(digit); });
  }
  const float value = row.logits()[static_cast<std::size_t>(candidates.front())];
  if (ties == Ties::keep_all) return {value, kLastToken, 0};
  // Candidates are in ascending order of id, since every pass kept their order.
  std::size_t last = 0;
  for (before += measure(candidates[0]); before < limit; before += measure(candidates[last])) ++last;
  return {value, candidates[last], 0};
}

KeptSet intersection(const KeptSet& a, const KeptSet& b) {
  const bool a_is_shorter =
      a.last_value > b.last_value || (a.last_value == b.last_value && a.last_token < b.last_token);
  const KeptSet& shorter = a_is_shorter ? a : b;
  return {shorter.last_value, shorter.last_token, std::max(a.least_mass, b.least_mass)};
}

KeptSet top_k_set(const Distribution& row, const FilterParameters& parameters) {
  if (parameters.top_k == 0 || parameters.top_k >= row.kept_count()) return kKeepAll;
  const auto one = [](Token) -> std::uint64_t { return 1; };
  return longest_prefix(row, static_cast<std::uint64_t>(parameters.top_k), parameters.ties, one);
}

KeptSet top_p_set(const Distribution& row, const FilterParameters& parameters) {
  if (parameters.top_p == 1.0f) return kKeepAll;
  const std::uint64_t limit = std::max<std::uint64_t>(1, ceil_of_fraction(parameters.top_p, sum_of_masses(row)));
  return longest_prefix(row, limit, parameters.ties, [&](Token i) { return row.mass(i); });
}

KeptSet min_p_set(const Distribution& row, const FilterParameters& parameters) {
  if (parameters.min_p == 0.0f) return kKeepAll;
  // The first token and not the largest mass: exp is not monotone to its last bit, and the set of one filter must hold
  // the token that every other filter keeps.
  const std::uint64_t first = row.mass(greedy_token(row.logits(), 0));
  return {kLowest, kLastToken, ceil_of_fraction(parameters.min_p, first)};
}

}  // namespace

std::uint64_t ceil_of_fraction(float fraction, std::uint64_t total) {
  if (fraction == 0.0f || total == 0) return 0;
  int exponent = 0;
  const float mantissa = std::frexp(fraction, &exponent);                                  // [1/2, 1)
  const auto digits = static_cast<std::uint64_t>(static_cast<double>(mantissa) * 0x1p24);  // exact: 24 bits
  const int shift = 24 - exponent;
  if (shift >= 88) return 1;  // the product is below 2^88
  const Unsigned128 product = static_cast<Unsigned128>(digits) * total;
  const Unsigned128 ones = (static_cast<Unsigned128>(1) << shift) - 1;
  return static_cast<std::uint64_t>((product + ones) >> shift);
}

void apply_filters(const FilterParameters& parameters, Distribution& distribution) {
  if (!parameters.any()) return;
  const KeptSet first = intersection(min_p_set(distribution, parameters), top_k_set(distribution, parameters));
  if (parameters.order == FilterOrder::joint) {
    distribution.keep(intersection(first, top_p_set(distribution, parameters)));
    return;
  }
  distribution.keep(first);
  if (parameters.top_p != 1.0f) distribution.keep(top_p_set(distribution, parameters));
}

}  // namespace draftproof
