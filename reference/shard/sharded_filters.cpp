// Filters of a row on several devices: where in the total order the kept tokens end.
#include <algorithm>
#include <limits>

#include "reference/shard/sharded_row.hpp"

namespace draftproof {
namespace {

constexpr Token kLastToken = std::numeric_limits<Token>::max();
constexpr KeptSet kKeepAll{-std::numeric_limits<float>::infinity(), kLastToken, 0};
// As many words as the histograms of counts have.
constexpr std::size_t kListWords = kHistogramRounds * kSearchBuckets / 2;

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
    const auto limit = [&](std::uint64_t count) { return k < count ? std::uint64_t{k} : 0; };
    set =
        (fits ? first_of_lists(k, parameters.ties) : prefix(Measure::count, parameters.ties, limit)).value_or(kKeepAll);
  }
  if (parameters.min_p != 0.0f) {
    const RankedLogit first = merged_first_tokens(1).front();
    const auto tile = static_cast<std::size_t>(first.token / kTileTokens);
    set.least_mass = least_mass_of(parameters.min_p, first.value, exponent_, tile_exponents_[tile]);
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

// None where no token is dropped.
std::optional<KeptSet> ShardedRow::prefix(Measure measure, Ties ties,
                                          const std::function<std::uint64_t(std::uint64_t)>& limit_of) {
  for (PartSearch& search : searches_) search.begin(measure);
  struct {
    std::uint64_t before = 0;
    std::uint64_t limit = 0;
    std::uint32_t key = 0;
  } state;
  for (int round = 0; round < kHistogramRounds; ++round) {
    const auto words = devices_->sum(
        histogram_words(measure), [&](std::size_t d, auto all) { searches_[d].add_histogram(round, state.key, all); });
    take_histogram(state, measure, round, words, limit_of);
    if (state.limit == 0) return std::nullopt;
  }
  const float value = value_of_key(state.key);
  if (ties == Ties::keep_all) return KeptSet{value, kLastToken, 0};
  const std::size_t owner =
      take_shares(state, devices_->gather([&](std::size_t d) { return searches_[d].measure_of_ties(state.key); }));
  const Token last = devices_->token_from(
      owner, [&] { return searches_[owner].token_of_ties(state.key, state.limit - state.before); });
  return KeptSet{value, last, 0};
}

}  // namespace draftproof
