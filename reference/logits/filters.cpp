#include "reference/logits/filters.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "reference/numerics/order_key.hpp"

namespace draftproof {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();
constexpr Token kLastToken = std::numeric_limits<Token>::max();
constexpr KeptSet kKeepAll{kLowest, kLastToken, 0};

// The radix passes over the key of a logit.
struct Digit {
  int shift;
  int bits;

  std::size_t buckets() const { return std::size_t{1} << bits; }
  std::size_t operator()(float logit) const { return (order_key(logit) >> shift) & (buckets() - 1); }
};
constexpr std::array<Digit, 3> kDigits{{{21, 11}, {10, 11}, {0, 10}}};

// Calls visit(token, logit, weight, tile) for every token of the row in ascending order of id.
template <class Visit>
void for_each_token(const LogitsDistribution& row, Visit visit) {
  for (std::size_t tile = 0; tile < row.tile_count(); ++tile) {
    const std::span<const float> weights = row.tile_weights(tile);
    const std::size_t first = tile * kTileTokens;
    const float* logits = row.logits().data() + first;
    for (std::size_t i = 0; i < weights.size(); ++i) visit(static_cast<Token>(first + i), logits[i], weights[i], tile);
  }
}

// The longest prefix of the total order in which every token has less than a limit of `measure` strictly before it.
// measure(weight, tile) is 0 for a dropped token; limit_of(total measure of the row) is at least 1. Three radix passes
// over the key: each finds the bucket where the limit falls and hands only its tokens to the next; what remains has one
// value, and ids decide.
template <class Measure, class Limit>
KeptSet longest_prefix(const LogitsDistribution& row, Ties ties, Measure measure, Limit limit_of) {
  std::vector<std::uint64_t> histogram(kDigits[0].buckets(), 0);
  for_each_token(row, [&](Token, float logit, float weight, std::size_t tile) {
    histogram[kDigits[0](logit)] += measure(weight, tile);
  });
  const std::uint64_t limit = limit_of(std::accumulate(histogram.begin(), histogram.end(), std::uint64_t{0}));

  std::uint64_t before = 0;
  const auto bucket_of_limit = [&]() -> std::optional<std::size_t> {
    for (std::size_t bucket = histogram.size(); bucket-- > 0; before += histogram[bucket])
      if (before + histogram[bucket] >= limit) return bucket;
    return std::nullopt;
  };
  const std::optional<std::size_t> first = bucket_of_limit();
  if (!first) return kKeepAll;  // the whole row stays below the limit
  std::vector<Token> candidates;
  for_each_token(row, [&](Token token, float logit, float weight, std::size_t) {
    if (kDigits[0](logit) == *first && weight > 0.0f) candidates.push_back(token);
  });

  const auto logit_of = [&](Token i) { return row.logits()[static_cast<std::size_t>(i)]; };
  const auto measure_of = [&](Token i) {
    const auto tile = static_cast<std::size_t>(i / kTileTokens);
    return measure(row.tile_weights(tile)[static_cast<std::size_t>(i % kTileTokens)], tile);
  };
  for (const Digit digit : {kDigits[1], kDigits[2]}) {
    histogram.assign(digit.buckets(), 0);
    for (const Token i : candidates) histogram[digit(logit_of(i))] += measure_of(i);
    const std::size_t bucket = bucket_of_limit().value();
    std::erase_if(candidates, [&](Token i) { return digit(logit_of(i)) != bucket; });
  }
  const float value = logit_of(candidates.front());
  if (ties == Ties::keep_all) return {value, kLastToken, 0};
  // Candidates are in ascending order of id, since every pass kept their order.
  std::size_t last = 0;
  for (before += measure_of(candidates[0]); before < limit; before += measure_of(candidates[last])) ++last;
  return {value, candidates[last], 0};
}

KeptSet intersection(const KeptSet& a, const KeptSet& b) {
  const bool a_is_shorter =
      a.last_value > b.last_value || (a.last_value == b.last_value && a.last_token < b.last_token);
  const KeptSet& shorter = a_is_shorter ? a : b;
  return {shorter.last_value, shorter.last_token, std::max(a.least_mass, b.least_mass)};
}

KeptSet top_k_set(const LogitsDistribution& row, const FilterParameters& parameters) {
  if (parameters.top_k == 0 || parameters.top_k >= row.kept_count()) return kKeepAll;
  const auto one = [](float weight, std::size_t) -> std::uint64_t { return weight > 0.0f ? 1 : 0; };
  return longest_prefix(row, parameters.ties, one,
                        [&](std::uint64_t) { return static_cast<std::uint64_t>(parameters.top_k); });
}

KeptSet top_p_set(const LogitsDistribution& row, const FilterParameters& parameters) {
  if (parameters.top_p == 1.0f) return kKeepAll;
  const auto mass = [&](float weight, std::size_t tile) { return row.row_mass(weight, tile); };
  return longest_prefix(row, parameters.ties, mass, [&](std::uint64_t total) {
    return std::max<std::uint64_t>(1, ceil_of_fraction(parameters.top_p, total));
  });
}

KeptSet min_p_set(const LogitsDistribution& row, const FilterParameters& parameters) {
  if (parameters.min_p == 0.0f) return kKeepAll;
  // The first token and not the largest mass: exp is not monotone to its last bit, and the set of one filter must hold
  // the token that every other filter keeps.
  const std::uint64_t first = row.mass(greedy_token(row.logits(), 0));
  return {kLowest, kLastToken, ceil_of_fraction(parameters.min_p, first)};
}

}  // namespace

void apply_filters(const FilterParameters& parameters, LogitsDistribution& distribution) {
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
