// Filters of a row on several devices: where in the total order the kept tokens end.
#include <algorithm>
#include <limits>

#include "reference/numerics/fraction.hpp"
#include "reference/numerics/order_key.hpp"
#include "reference/shard/sharded_row.hpp"

namespace draftproof {
namespace {

constexpr Token kLastToken = std::numeric_limits<Token>::max();
constexpr KeptSet kKeepAll{-std::numeric_limits<float>::infinity(), kLastToken, 0};
constexpr std::size_t kBuckets = 256;
constexpr int kHistogramRounds = 4;
constexpr std::size_t kListWords = kHistogramRounds * kBuckets / 2;  // words of a histogram of counts

bool keeps_all(const KeptSet& set) {
  return set.last_value == kKeepAll.last_value && set.least_mass == 0;
}

}  // namespace

void ShardedRow::apply_filters(const FilterParameters& parameters) {
  if (!parameters.any()) return;
  KeptSet set = kKeepAll;
  const auto k = static_cast<std::size_t>(parameters.top_k);
  if (k != 0) {
    const bool fits = k * devices_->count() <= kListWords;
    const auto limit = [&](std::uint64_t) { return std::uint64_t{k}; };
    set =
        (fits ? first_of_lists(k, parameters.ties) : prefix(Measure::count, parameters.ties, limit)).value_or(kKeepAll);
  }
  if (parameters.min_p != 0.0f) {
    const RankedLogit first = merged_first_tokens(1).front();
    const auto tile = static_cast<std::size_t>(first.token / kTileTokens);
    const float weight = tile_weight(exp_parts(first.value), tile_exponents_[tile]);
    set.least_mass = ceil_of_fraction(parameters.min_p, row_mass_of(tile, mass_of_weight(weight)));
  }
  if (parameters.top_p != 1.0f) {
    if (parameters.order == FilterOrder::top_k_first && !keeps_all(set)) keep(set);
    const auto limit = [&](std::uint64_t mass) { return top_p_limit(parameters, mass); };
    set = intersection(set, *prefix(Measure::mass, parameters.ties, limit));
  }
  if (!keeps_all(set)) keep(set);
}

std::vector<RankedLogit> ShardedRow::merged_first_tokens(std::size_t n) const {
  const std::vector<std::uint64_t> words = devices_->sum(n * devices_->count(), [&](std::size_t d, auto all) {
    std::vector<RankedLogit> own = shards_[d].first_tokens(n);
    own.resize(n, {kKeepAll.last_value, kPaddingToken});
    for (std::size_t i = 0; i < n; ++i) all[d * n + i] = word_of(own[i]);
  });
  std::vector<RankedLogit> tokens;
  for (const std::uint64_t word : words)
    if (logit_of(word).token != kPaddingToken) tokens.push_back(logit_of(word));
  std::sort(tokens.begin(), tokens.end(), comes_first);
  return tokens;
}

std::optional<KeptSet> ShardedRow::first_of_lists(std::size_t k, Ties ties) const {
  const std::vector<RankedLogit> tokens = merged_first_tokens(k);
  if (tokens.size() < k) return std::nullopt;
  return KeptSet{tokens[k - 1].value, ties == Ties::keep_all ? kLastToken : tokens[k - 1].token, 0};
}

// Radix search: eight bits of the order key a round, then the tokens that have this key. None where a count keeps all.
std::optional<KeptSet> ShardedRow::prefix(Measure measure, Ties ties,
                                          const std::function<std::uint64_t(std::uint64_t)>& limit_of) const {
  const std::size_t per_word = measure == Measure::count ? 2 : 1;  // counts are below 2^20
  std::uint32_t key = 0;
  std::uint64_t before = 0;
  std::uint64_t limit = 0;
  for (int round = 0; round < kHistogramRounds; ++round) {
    const std::vector<std::uint64_t> words = devices_->sum(kBuckets / per_word, [&](std::size_t d, auto all) {
      std::vector<std::uint64_t> sums(kBuckets, 0);
      shards_[d].add_histogram(measure, round, key, sums);
      for (std::size_t b = 0; b < kBuckets; ++b) all[b / per_word] += sums[b] << 32 * (b % per_word);
    });
    const auto sum_of = [&](std::size_t b) {
      return per_word == 1 ? words[b] : words[b / 2] >> 32 * (b % 2) & 0xffffffffu;
    };
    if (round == 0) {
      std::uint64_t whole = 0;
      for (std::size_t b = 0; b < kBuckets; ++b) whole += sum_of(b);
      limit = limit_of(whole);
      if (measure == Measure::count && whole <= limit) return std::nullopt;
    }
    std::size_t bucket = kBuckets - 1;
    for (; before + sum_of(bucket) < limit; --bucket) before += sum_of(bucket);
    key |= static_cast<std::uint32_t>(bucket) << (24 - 8 * round);
  }
  const float value = value_of_key(key);
  if (ties == Ties::keep_all) return KeptSet{value, kLastToken, 0};
  const std::vector<std::uint64_t> shares =
      devices_->gather([&](std::size_t d) { return shards_[d].measure_of_ties(measure, key); });
  std::size_t owner = 0;
  for (; before + shares[owner] < limit; ++owner) before += shares[owner];
  return KeptSet{
      value, devices_->token_from(owner, [&] { return shards_[owner].token_of_ties(measure, key, limit - before); }),
      0};
}

}  // namespace draftproof
