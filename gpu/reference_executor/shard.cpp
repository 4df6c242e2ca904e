// Rows across devices, a call at a time: each makes the device's part of a row anew and asks reference/shard.
#include <algorithm>
#include <limits>
#include <vector>

#include "gpu/executors.hpp"
#include "gpu/reference_executor/shard_part.hpp"
#include "reference/numerics/order_key.hpp"
#include "reference/random/philox.hpp"
#include "reference/sampling/tile_draw.hpp"
#include "reference/shard/prefix_search.hpp"

namespace draftproof::reference_executor {
namespace {

constexpr Token kLastToken = std::numeric_limits<Token>::max();

std::int64_t largest_word(const RankedLogit& first) {
  if (first.token == kPaddingToken) return -1;
  return std::int64_t{order_key(first.value)} * kVocabularyLimit + kVocabularyLimit - 1 - first.token;
}

Measure measure_of(std::int32_t filter) {
  return filter == DRAFTPROOF_SHARD_TOP_P ? Measure::mass : Measure::count;
}

std::size_t search_words(std::int32_t filter, std::int32_t round, std::int32_t devices) {
  if (round < kHistogramRounds) return histogram_words(measure_of(filter));
  return round == kHistogramRounds ? static_cast<std::size_t>(devices) : 1;
}

// One row's step of shard_select.
struct Search {
  const draftproof_shard_select_arguments& a;
  std::int64_t row;
  RowParameters parameters;
  draftproof_shard_search& search;
  draftproof_shard_kept& kept;

  Measure measure() const { return measure_of(a.filter); }
  bool is_mass() const { return measure() == Measure::mass; }
  // The message of the round before.
  std::span<const std::uint64_t> combined() const {
    const std::size_t words = search_words(a.filter, a.round - 1, a.shard.devices);
    return {a.combined + row * static_cast<std::int64_t>(words), words};
  }

  void begin() {
    if (!is_mass()) kept = {0, -kInfinity, kLastToken, DRAFTPROOF_ROW_OK, 0};
    const RowStatus status = status_of(a.parameters, row);
    if (status != RowStatus::ok) kept.status = static_cast<std::int32_t>(status);
    search = {0, 0, 0, -1};
    const Known of_row = known(a.shard, row, a.tile_exponent, a.largest[row], nullptr);
    const bool draws =
        of_row.status == DRAFTPROOF_ROW_OK && kept.status == DRAFTPROOF_ROW_OK && temperature_of(a.shard, row) != 0.0f;
    if (!draws) return;
    const FilterParameters& filters = parameters.filters;
    if (!is_mass() && filters.min_p != 0.0f) {
      const std::int64_t word = a.largest[row];
      const float first = value_of_key(static_cast<std::uint32_t>(word / kVocabularyLimit));
      const auto tile = static_cast<std::size_t>(token_of_largest(word) / kTileTokens);
      kept.least_mass = least_mass_of(filters.min_p, first, of_row.exponent, of_row.exponents[tile]);
    }
    search.limit = (is_mass() ? filters.top_p != 1.0f : filters.top_k != 0) ? 1 : 0;
  }

  std::uint64_t limit_of(std::uint64_t whole) const {
    const auto k = static_cast<std::uint64_t>(parameters.filters.top_k);
    return is_mass() ? top_p_limit(parameters.filters, whole) : k < whole ? k : 0;
  }

  void end(Token last_token) {
    const KeptSet both =
        intersection({kept.last_value, kept.last_token, kept.least_mass}, {value_of_key(search.key), last_token, 0});
    kept.last_value = both.last_value;
    kept.last_token = both.last_token;
    search.limit = 0;
  }

  void step() {
    if (a.round == 0) return begin();
    if (search.limit == 0) return;
    if (a.round <= kHistogramRounds) {
      take_histogram(search, measure(), a.round - 1, combined(), [&](std::uint64_t whole) { return limit_of(whole); });
      if (a.round == kHistogramRounds && search.limit != 0 && parameters.filters.ties == Ties::keep_all)
        end(kLastToken);
    } else if (a.round == kHistogramRounds + 1) {
      search.owner = static_cast<std::int32_t>(take_shares(search, combined()));
    } else {
      end(static_cast<Token>(combined()[0]) - 1);
    }
  }

  void say(std::span<std::uint64_t> words) const {
    std::fill(words.begin(), words.end(), 0);
    if (search.limit == 0 || a.shard.begin == a.shard.end) return;
    const bool is_cut = is_mass() && parameters.filters.order == FilterOrder::top_k_first;
    Part part = joined_part(a.shard, row, known(a.shard, row, a.tile_exponent, a.largest[row], nullptr),
                            is_cut ? a.kept : nullptr);
    PartSearch tokens(part.shard());
    tokens.begin(measure());
    if (a.round < kHistogramRounds) {
      tokens.add_histogram(a.round, search.key, words);
    } else if (a.round == kHistogramRounds) {
      words[static_cast<std::size_t>(a.shard.device)] = tokens.measure_of_ties(search.key);
    } else if (search.owner == a.shard.device) {
      words[0] = static_cast<std::uint64_t>(tokens.token_of_ties(search.key, search.limit - search.before)) + 1;
    }
  }
};

// The race among the part's tokens.
RaceWinner race(const draftproof_shard_draw_arguments& a, std::int64_t row, Part& part) {
  const std::uint64_t seed = value_of<std::uint64_t>(a.randomness.seed, row, 0);
  const NoiseAddress noise{{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
                           value_of<std::uint32_t>(a.row_in_step, row, 0),
                           value_of<std::uint32_t>(a.randomness.step, row, 0),
                           static_cast<std::uint32_t>(a.purpose)};
  RaceWinner best = RaceWinner::none();
  std::vector<double> log_weights(kTileTokens);
  const LogitsDistribution& logits = part.shard().logits();
  for (std::size_t t = 0; t < logits.tile_count(); ++t) {
    logits.log_weights_of_tile(t, log_weights.data());
    const auto first = static_cast<std::uint32_t>(part.shard().base()) + static_cast<std::uint32_t>(t * kTileTokens);
    best = row_kernels().race(log_weights.data(), logits.tile_size(t), first, noise, best);
  }
  return best;
}

// Doubles in their order; -infinity, which nobody scores, is below all.
std::int64_t score_word(double score) {
  if (score == -std::numeric_limits<double>::infinity()) return kNobody;
  const std::int64_t bits = bit_cast<std::int64_t>(score + 0.0);
  return bits >= 0 ? bits : bits ^ std::numeric_limits<std::int64_t>::max();
}

TilePlace place_of(const draftproof_shard_draw_arguments& a, std::int64_t row, const Known& of_row) {
  const RandomBlock block = philox_block(
      value_of<std::uint64_t>(a.randomness.seed, row, 0), 0, value_of<std::uint32_t>(a.row_in_step, row, 0),
      value_of<std::uint32_t>(a.randomness.step, row, 0), static_cast<std::uint32_t>(a.purpose));
  const std::uint64_t* const sums = a.tile_sum + row * static_cast<std::int64_t>(tiles_of(a.shard));
  return place_of_draw(
      block, of_row.total, [&](std::size_t t) { return row_scale(sums[t], of_row.exponent, of_row.exponents[t]); },
      [&](std::size_t t) { return sums[t]; });
}

void say_first(const draftproof_shard_draw_arguments& a, std::int64_t row, const Known& of_row, bool draws) {
  if (a.sampler == DRAFTPROOF_RACE) {
    RaceWinner best = RaceWinner::none();
    if (draws && a.shard.begin != a.shard.end) {
      Part part = joined_part(a.shard, row, of_row, a.kept);
      best = race(a, row, part);
    }
    a.message[row] = a.winner[2 * row] = score_word(best.score);
    a.winner[2 * row + 1] = best.token;
    return;
  }
  std::int64_t* const shares = a.message + row * a.shard.devices;
  std::fill_n(shares, a.shard.devices, 0);
  if (!draws || a.shard.begin == a.shard.end) return;
  Part part = joined_part(a.shard, row, of_row, a.kept);
  const TilePlace place = place_of(a, row, of_row);
  if (part.holds(place.tile))
    shares[a.shard.device] = static_cast<std::int64_t>(part.shard().logits().tiles()[part.place(place.tile)].sum);
}

void say_token(const draftproof_shard_draw_arguments& a, std::int64_t row, const Known& of_row) {
  Token token = kPaddingToken;
  if (a.sampler == DRAFTPROOF_RACE) {
    if (a.winner[2 * row] == a.combined[row]) token = static_cast<Token>(a.winner[2 * row + 1]);
  } else {
    const TilePlace place = place_of(a, row, of_row);
    const auto before = left_of_share(a.shard, a.combined + row * a.shard.devices, place.before);
    if (!before) return;
    Part part = joined_part(a.shard, row, of_row, a.kept);
    token = part.shard().logits().token_at(part.place(place.tile), *before) + part.shard().base();
  }
  if (token == kPaddingToken) return;
  Part part = joined_part(a.shard, row, of_row, a.kept);
  a.message[row] = drawn_message(token, of_row.log_probability(part.logit(token)));
}

}  // namespace

void shard_prepare(const draftproof_shard_prepare_arguments& a, const draftproof_settings&) {
  const std::size_t tiles = tiles_of(a.shard);
  for (std::int64_t row = 0; row < a.shard.rows; ++row) {
    Part part(a.shard, row);
    std::int32_t* const own_exponent = a.own_exponent + row * static_cast<std::int64_t>(tiles);
    std::uint64_t* const own_sum = a.own_sum + row * static_cast<std::int64_t>(tiles);
    std::fill_n(own_exponent, tiles, kMaskedExponent);
    std::fill_n(own_sum, tiles, 0);
    const bool is_used = part.status() == RowStatus::ok && a.shard.begin != a.shard.end;
    if (is_used && !part.is_greedy()) {
      part.shard().raise_exponents({own_exponent, tiles});
      part.shard().add_tile_sums({own_sum, tiles});
    }
    a.largest[row] = is_used ? largest_word(part.first()) : -1;
    std::int32_t* const message = a.tile_exponent + row * static_cast<std::int64_t>(tiles + 1);
    std::copy_n(own_exponent, tiles, message);
    message[tiles] = static_cast<std::int32_t>(part.status());
  }
}

void shard_summarise(const draftproof_shard_summarise_arguments& a, const draftproof_settings&) {
  const std::size_t tiles = tiles_of(a.shard);
  for (std::int64_t row = 0; row < a.shard.rows; ++row) {
    const std::span<std::uint64_t> sums(a.tile_sum + row * static_cast<std::int64_t>(tiles), tiles);
    std::fill(sums.begin(), sums.end(), 0);
    const Known of_row = known(a.shard, row, a.tile_exponent, 0, a.kept);
    if (of_row.status != DRAFTPROOF_ROW_OK || temperature_of(a.shard, row) == 0.0f || a.shard.begin == a.shard.end)
      continue;
    joined_part(a.shard, row, of_row, a.kept).shard().add_tile_sums(sums);
  }
}

void shard_select(const draftproof_shard_select_arguments& a, const draftproof_settings&) {
  const std::size_t words = search_words(a.filter, a.round, a.shard.devices);
  for (std::int64_t row = 0; row < a.shard.rows; ++row) {
    Search search{a, row, parameters_of(a.parameters, row), a.search[row], a.kept[row]};
    search.step();
    if (a.message != nullptr) search.say({a.message + row * static_cast<std::int64_t>(words), words});
  }
}

void shard_draw(const draftproof_shard_draw_arguments& a, const draftproof_settings&) {
  for (std::int64_t row = 0; row < a.shard.rows; ++row) {
    const Known of_row = known(a.shard, row, a.tile_exponent, a.largest[row], a.kept, a.tile_sum);
    const bool is_greedy = temperature_of(a.shard, row) == 0.0f;
    const bool draws = of_row.status == DRAFTPROOF_ROW_OK && !is_greedy;
    if (a.stage == 0) {
      say_first(a, row, of_row, draws);
    } else if (a.stage == 1) {
      a.message[row] = kNobody;
      if (draws) say_token(a, row, of_row);
    } else {
      a.status[row] = of_row.status;
      a.tokens[row] = DRAFTPROOF_NO_TOKEN;
      a.logprobs[row] = -kInfinity;
      if (of_row.status != DRAFTPROOF_ROW_OK) continue;
      const std::int64_t drawn = draws ? a.combined[row] : 0;
      a.tokens[row] = is_greedy ? token_of_largest(a.largest[row]) : token_of_message(drawn);
      a.logprobs[row] = is_greedy ? 0.0f : logprob_of_message(drawn);
    }
  }
}

}  // namespace draftproof::reference_executor
