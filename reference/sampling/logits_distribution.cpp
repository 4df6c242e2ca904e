#include "reference/sampling/logits_distribution.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "base/error.hpp"
#include "reference/sampling/tile_draw.hpp"

namespace draftproof {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::size_t kRunTokens = 128;

// Not initialised: a tile is written before it is read.
using Tile = std::array<float, kTileTokens>;

void check_vocab(std::size_t vocab_size, const RowName& row) {
  const std::string where = "row " + std::to_string(row.number);
  if (vocab_size == 0) throw input_error(where, "the vocabulary is empty; expected at least 1 logit");
  if (vocab_size > static_cast<std::size_t>(kVocabularyLimit))
    throw input_error(where, "the vocabulary has " + std::to_string(vocab_size) + " tokens; expected at most " +
                                 std::to_string(kVocabularyLimit) + ", which the fixed-point sums hold");
}

// The logit with the highest status, the first of several. `limit`: what a kernel refuses besides NaN and +infinity; a
// greedy choice refuses nothing more.
[[noreturn]] void throw_bad_logit(std::span<const float> logits, const RowName& row, float limit) {
  const auto first = [&](auto is_bad) {
    const auto found = std::find_if(logits.begin(), logits.end(), is_bad);
    return found == logits.end() ? std::int64_t{-1} : static_cast<std::int64_t>(found - logits.begin());
  };
  if (const std::int64_t column = first([](float x) { return std::isnan(x); }); column >= 0)
    throw RowError(RowStatus::nan_logit, row, column, "the logit is NaN; expected a finite value, or -inf (masked)");
  if (const std::int64_t column = first([](float x) { return x == kInfinity; }); column >= 0)
    throw RowError(RowStatus::infinite_logit, row, column,
                   "the logit is +inf, as given or after bias, penalties and temperature; expected a finite value, or "
                   "-inf (masked)");
  if (const std::int64_t column = first([&](float x) { return x > limit; }); column >= 0)
    throw RowError(RowStatus::logit_too_large, row, column,
                   "the logit divided by the temperature is " +
                       std::to_string(logits[static_cast<std::size_t>(column)]) +
                       ", above 2^29; use temperature 0 for the greedy choice");
  throw Error(ErrorKind::internal, "row " + std::to_string(row.number), "a kernel refused a row without a bad logit");
}

}  // namespace

RowError nothing_left(const RowName& row) {
  return {RowStatus::nothing_left, row, -1,
          "no token is left: every logit is masked, -inf or (over the temperature) below -2^29; expected at "
          "least one that is unmasked and finite"};
}

KeptSet intersection(const KeptSet& a, const KeptSet& b) {
  const bool a_is_shorter =
      a.last_value > b.last_value || (a.last_value == b.last_value && a.last_token < b.last_token);
  const KeptSet& shorter = a_is_shorter ? a : b;
  return {shorter.last_value, shorter.last_token, std::max(a.least_mass, b.least_mass)};
}

float LogNormaliser::log_probability(float logit) const {
  return logit >= -kLogitLimit ? log_probability_of(logit, exponent, log_total) : -kInfinity;
}

float LogitsDistribution::logit(Token token) const {
  if (is_processed_) return processed_[static_cast<std::size_t>(token)];
  const float x = element_of(view_, token);
  return temperature_ == 1.0f ? x : x / temperature_;
}

const float* LogitsDistribution::logits_in(std::size_t begin, std::size_t count, float* scratch) const {
  if (is_processed_) return processed_.data() + begin;
  const float* x = elements_of(view_, static_cast<std::int64_t>(begin), count, scratch);
  if (temperature_ == 1.0f) return x;
  row_kernels().divide(x, count, temperature_, scratch);
  return scratch;
}

void LogitsDistribution::begin(const RowView& logits, float temperature) {
  view_ = logits;
  temperature_ = temperature;
  kept_.reset();
  is_weighed_ = false;
  is_processed_ = false;
  tiles_.resize((static_cast<std::size_t>(logits.vocab_size) + kTileTokens - 1) / kTileTokens);
  exponent_ = kMaskedExponent;
}

bool LogitsDistribution::try_assign_part(const RowView& logits, float temperature, bool weighs) {
  begin(logits, temperature);
  if (weighs) return weigh_tiles();
  const RowKernels& kernels = row_kernels();
  Tile scratch;
  for (std::size_t t = 0; t < tiles_.size(); ++t) {
    const float* x = logits_in(tile_begin(t), tile_size(t), scratch.data());
    if (!kernels.tile_mass(x, tile_size(t), &tiles_[t])) return false;
    exponent_ = std::max(exponent_, tiles_[t].n_max);
  }
  return true;
}

void LogitsDistribution::join_tiles(std::span<const std::int32_t> n_max) {
  Tile scratch;
  Tile weights;
  for (std::size_t t = 0; t < tiles_.size(); ++t) {
    if (tiles_[t].n_max == n_max[t] || tiles_[t].kept == 0) continue;
    tiles_[t].n_max = n_max[t];
    const float* x = logits_in(tile_begin(t), tile_size(t), scratch.data());
    float* const written = is_weighed_ ? weights_.data() + tile_begin(t) : weights.data();
    tiles_[t].sum = row_kernels().weigh_tile(x, tile_size(t), tiles_[t], written);
  }
}

void LogitsDistribution::join_row(std::int32_t exponent, std::uint64_t total) {
  exponent_ = exponent;
  kept_count_ = 0;
  for (const TileMass& tile : tiles_) kept_count_ += tile.kept;
  take_total(total);
  if (!kept_) unfiltered_ = {exponent_, total_};
}

bool LogitsDistribution::try_assign(const RowView& logits, float temperature, const RowName& row) {
  check_vocab(static_cast<std::size_t>(logits.vocab_size), row);
  if (!try_assign_part(logits, temperature)) return false;
  if (exponent_ == kMaskedExponent) throw nothing_left(row);
  add_up();
  unfiltered_ = {exponent_, total_};
  return true;
}

bool LogitsDistribution::try_weigh(const RowView& logits, float temperature, const RowName& row) {
  check_vocab(static_cast<std::size_t>(logits.vocab_size), row);
  begin(logits, temperature);
  if (!weigh_tiles()) return false;
  if (exponent_ == kMaskedExponent) throw nothing_left(row);
  add_up();
  unfiltered_ = {exponent_, total_};
  return true;
}

bool LogitsDistribution::weigh_tiles() {
  const auto vocab_size = static_cast<std::size_t>(view_.vocab_size);
  const bool is_changed = view_.dtype != DType::f32 || temperature_ != 1.0f;
  if (is_changed) processed_.resize(vocab_size);
  weights_.resize(vocab_size);
  group_largest_.resize((vocab_size + kGroupTokens - 1) / kGroupTokens);
  const RowKernels& kernels = row_kernels();
  for (std::size_t t = 0; t < tiles_.size(); ++t) {
    float* processed = is_changed ? processed_.data() + tile_begin(t) : nullptr;
    const float* x = elements_of(view_, static_cast<std::int64_t>(tile_begin(t)), tile_size(t), processed);
    if (!kernels.tile_range(x, tile_size(t), temperature_, temperature_ == 1.0f ? nullptr : processed, &tiles_[t],
                            group_largest_.data() + t * kTileGroups))
      return false;
    tiles_[t].sum = kernels.weigh_tile(processed != nullptr ? processed : x, tile_size(t), tiles_[t],
                                       weights_.data() + tile_begin(t));
    exponent_ = std::max(exponent_, tiles_[t].n_max);
  }
  is_processed_ = is_changed;
  is_weighed_ = true;
  return true;
}

void LogitsDistribution::weigh() {
  if (!is_weighed_) weigh_tiles();
}

void RowBand::make_room(std::size_t tokens) {
  if (values.size() >= tokens + kBandSlack) return;
  values.resize(tokens + kBandSlack);
  weights.resize(tokens + kBandSlack);
}

void RowBand::begin(float low_value, float high_value, std::size_t tile_count) {
  low = low_value;
  high = high_value;
  count = 0;
  tile_end.resize(tile_count);
  tiles.assign(tile_count, TileBand{});
  above_mass = band_mass = 0;
  above_count = 0;
}

void RowBand::add(std::size_t tile, const float* x, const float* token_weights, std::size_t tokens,
                  std::int64_t shift) {
  const TileBand part = row_kernels().tile_band(x, token_weights, tokens, shift, low, high, values.data() + count,
                                                weights.data() + count);
  count += static_cast<std::size_t>(part.band_count);
  above_mass += part.above_in_row;
  band_mass += part.band_in_row;
  above_count += part.above_count;
  tiles[tile].above += part.above;
  tiles[tile].above_count += part.above_count;
}

void LogitsDistribution::scan(float low, float high, RowBand& out) const {
  const auto looked_at = std::count_if(group_largest_.begin(), group_largest_.end(), [&](float x) { return x >= low; });
  out.make_room(static_cast<std::size_t>(looked_at) * kGroupTokens);
  out.begin(low, high, tiles_.size());
  const auto is_below = [&](std::size_t begin) { return group_largest_[begin / kGroupTokens] < low; };
  for (std::size_t t = 0; t < tiles_.size(); ++t) {
    const std::size_t tile_end = tile_begin(t) + tile_size(t);
    for (std::size_t begin = tile_begin(t); begin < tile_end;) {
      std::size_t end = begin;
      while (end < tile_end && !is_below(end)) end += kGroupTokens;
      const std::size_t count = std::min(end, tile_end) - begin;
      if (count > 0) out.add(t, logits_in(begin, count, nullptr), unfiltered_weights(begin), count, shift_of(t));
      begin = end + kGroupTokens;
    }
    out.tile_end[t] = out.count;
  }
}

void LogitsDistribution::narrow(const RowBand& from, float low, float high, RowBand& out) const {
  out.make_room(from.count);
  out.begin(low, high, tiles_.size());
  for (std::size_t t = 0; t < tiles_.size(); ++t) {
    const std::size_t begin = from.tile_begin(t);
    const std::size_t count = from.tile_end[t] - begin;
    if (count > 0) out.add(t, from.values.data() + begin, from.weights.data() + begin, count, shift_of(t));
    out.tile_end[t] = out.count;
  }
}

MassBounds LogitsDistribution::mass_bounds() const {
  MassBounds bounds{0, 0};
  std::uint64_t cut = 0;  // each of these tokens may have lost less than one
  for (std::size_t t = 0; t < tiles_.size(); ++t) {
    bounds.most += tile_mass(t);
    if (shift_of(t) > 0) cut += static_cast<std::uint64_t>(tiles_[t].kept);
  }
  bounds.least = bounds.most > cut ? bounds.most - cut : 0;
  return bounds;
}

std::uint64_t LogitsDistribution::sum_of_masses() const {
  RowBand all;
  scan(-kLogitLimit, kInfinity, all);
  return all.band_mass;
}

std::int64_t LogitsDistribution::count_up_to(float value, Token last_token, std::size_t tile) const {
  const auto end = std::min(tile_begin(tile) + tile_size(tile), static_cast<std::size_t>(last_token) + 1);
  if (end <= tile_begin(tile)) return 0;
  Tile scratch;
  const float* x = logits_in(tile_begin(tile), tile_size(tile), scratch.data());
  return std::count(x, x + (end - tile_begin(tile)), value);
}

void LogitsDistribution::kept_band(RowBand& out) const {
  RowBand kept;
  kept.tile_end.resize(tiles_.size());
  Tile scratch;
  Tile weights;
  for (std::size_t t = 0; t < tiles_.size(); ++t) {
    const float* x = logits_in(tile_begin(t), tile_size(t), scratch.data());
    weights_in(tile_begin(t), tile_size(t), weights.data());
    for (std::size_t i = 0; i < tile_size(t); ++i) {
      if (weights[i] == 0.0f) continue;
      kept.values.push_back(x[i]);
      kept.weights.push_back(weights[i]);
    }
    kept.count = kept.tile_end[t] = kept.values.size();
  }
  narrow(kept, -kLogitLimit, kInfinity, out);
}

void LogitsDistribution::assign(const RowView& logits, float temperature, const RowName& row) {
  if (try_assign(logits, temperature, row)) return;
  std::vector<float> processed(static_cast<std::size_t>(logits.vocab_size));
  const float* x = logits_in(0, processed.size(), processed.data());
  throw_bad_logit({x, processed.size()}, row, kLogitLimit);
}

void LogitsDistribution::add_up() {
  std::uint64_t total = 0;
  kept_count_ = 0;
  for (std::size_t t = 0; t < tiles_.size(); ++t) {
    total += tile_mass(t);
    kept_count_ += tiles_[t].kept;
  }
  take_total(total);
}

void LogitsDistribution::take_total(std::uint64_t total) {
  total_ = total;
  reciprocal_ = reciprocal_total(total_);
  log_total_ = log_total(total_);
}

void LogitsDistribution::keep(const KeptSet& kept) {
  kept_ = kept_ ? intersection(*kept_, kept) : kept;
  Tile scratch;
  Tile weights;
  for (std::size_t t = 0; t < tiles_.size(); ++t) {
    const float* x = logits_in(tile_begin(t), tile_size(t), scratch.data());
    make_weights(tile_begin(t), x, tile_size(t), weights.data());
    const TileKept left = row_kernels().keep_in_tile(x, tile_size(t), cut_of(tile_begin(t)), weights.data());
    tiles_[t].sum = left.sum;
    tiles_[t].kept = left.kept;
  }
  add_up();
}

void LogitsDistribution::keep(const KeptSet& kept, const RowBand& band) {
  kept_ = kept;
  const std::size_t last_tile =
      std::min(tiles_.size(), static_cast<std::size_t>(kept.last_token) / static_cast<std::size_t>(kTileTokens));
  Tile scratch;
  for (std::size_t t = 0; t < tiles_.size(); ++t) {
    const float* values = band.values.data() + band.tile_begin(t);
    const std::size_t count = band.tile_end[t] - band.tile_begin(t);
    TileCut cut{kept.last_value, t < last_tile ? count : 0, 0.0};
    // As many tokens of the last value stay as stand up to the last token.
    if (t == last_tile)
      for (auto left = count_up_to(kept.last_value, kept.last_token, t); left > 0; ++cut.position)
        left -= values[cut.position] == kept.last_value ? 1 : 0;
    std::copy_n(band.weights.data() + band.tile_begin(t), count, scratch.data());
    const TileKept left = row_kernels().keep_in_tile(values, count, cut, scratch.data());
    tiles_[t].sum = band.tiles[t].above + left.sum;
    tiles_[t].kept = band.tiles[t].above_count + left.kept;
  }
  add_up();
}

void LogitsDistribution::keep_only(const std::vector<std::uint8_t>& allowed) {
  std::vector<float> left(allowed.size(), -kInfinity);
  for (std::size_t i = 0; i < left.size(); ++i)
    if (allowed[i] != 0 && is_kept(static_cast<Token>(i))) left[i] = logit(static_cast<Token>(i));
  processed_ = std::move(left);
  is_processed_ = true;
  is_weighed_ = false;
  kept_.reset();
  exponent_ = kMaskedExponent;
  for (std::size_t t = 0; t < tiles_.size(); ++t) {
    row_kernels().tile_mass(processed_.data() + tile_begin(t), tile_size(t), &tiles_[t]);
    exponent_ = std::max(exponent_, tiles_[t].n_max);
  }
  add_up();
}

TileCut LogitsDistribution::cut_of(std::size_t begin) const {
  // m_i >= least iff W_i >= least 2^shift. Doubles hold both sides exactly.
  const std::int64_t shift = std::min<std::int64_t>(64, std::int64_t{exponent_} - tiles_[begin / kTileTokens].n_max);
  const double least = static_cast<double>(kept_->least_mass) * exact_power_of_two(static_cast<std::int32_t>(shift));
  const std::size_t end = static_cast<std::size_t>(kept_->last_token) + 1;
  return {kept_->last_value, end > begin ? end - begin : 0, least};
}

double LogitsDistribution::kept_mass() const {
  return static_cast<double>(total_) * exact_power_of_two(exponent_ - unfiltered_.exponent) /
         static_cast<double>(unfiltered_.total);
}

Token LogitsDistribution::first_token() const {
  const std::span<const float> groups = group_largest();
  const auto group = static_cast<std::size_t>(std::max_element(groups.begin(), groups.end()) - groups.begin());
  auto token = static_cast<Token>(group * kGroupTokens);
  while (logit(token) != groups[group]) ++token;
  return token;
}

bool LogitsDistribution::is_kept(Token token) const {
  const float x = logit(token);
  if (!(x >= -kLogitLimit)) return false;
  if (!kept_) return true;
  if (!(x > kept_->last_value || (x == kept_->last_value && token <= kept_->last_token))) return false;
  const auto tile = static_cast<std::size_t>(token / kTileTokens);
  return row_mass(tile_weight(exp_parts(x), tiles_[tile].n_max), tile) >= kept_->least_mass;
}

float LogitsDistribution::weight(Token token) const {
  if (!is_kept(token)) return 0.0f;
  return tile_weight(exp_parts(logit(token)), tiles_[static_cast<std::size_t>(token / kTileTokens)].n_max);
}

// Unfiltered weights of the tokens [begin, begin + count), all of one tile, whose logits are x.
void LogitsDistribution::make_weights(std::size_t begin, const float* x, std::size_t count, float* weights) const {
  if (is_weighed_)
    std::copy_n(unfiltered_weights(begin), count, weights);
  else
    row_kernels().tile_weights(x, count, tiles_[begin / kTileTokens].n_max, weights);
}

const float* LogitsDistribution::weights_in(std::size_t begin, std::size_t count, float* scratch) const {
  Tile logits;
  const float* x = logits_in(begin, count, logits.data());
  make_weights(begin, x, count, scratch);
  if (kept_) {
    TileCut cut = cut_of(begin - begin % kTileTokens);
    const std::size_t offset = begin % kTileTokens;
    cut.position = cut.position > offset ? cut.position - offset : 0;
    row_kernels().keep_in_tile(x, count, cut, scratch);
  }
  return scratch;
}

void LogitsDistribution::log_weights_of_tile(std::size_t tile, double* out) const {
  Tile logits;
  Tile weights;
  const float* x = logits_in(tile_begin(tile), tile_size(tile), logits.data());
  const float* kept = kept_ ? weights_in(tile_begin(tile), tile_size(tile), weights.data()) : nullptr;
  row_kernels().log_weights_of(x, kept, tile_size(tile), out);
}

float LogitsDistribution::probability(Token token) const {
  if (!is_kept(token)) return 0.0f;
  return probability_of(exp_parts(logit(token)), exponent_, reciprocal_);
}

float LogitsDistribution::log_probability(Token token) const {
  return is_kept(token) ? log_normaliser().log_probability(logit(token)) : -kInfinity;
}

const float* LogitsDistribution::probabilities_in(std::size_t begin, std::size_t count, float* scratch) const {
  const TileMass& mass = tiles_[begin / kTileTokens];
  if (mass.n_max == kMaskedExponent) {
    std::fill_n(scratch, count, 0.0f);
  } else if (static_cast<std::int64_t>(mass.n_min) - exponent_ >= kDeepestWeight) {
    const float power = static_cast<float>(exact_power_of_two(mass.n_max - exponent_));
    row_kernels().scale_weights(weights_in(begin, count, scratch), count, power, reciprocal_, scratch);
  } else {
    // Somewhere in the tile the weight was held at the deepest exponent; go back to the logits.
    for (std::size_t i = 0; i < count; ++i) scratch[i] = probability(static_cast<Token>(begin + i));
  }
  return scratch;
}

std::uint64_t LogitsDistribution::total_without(Token token) const {
  const TileMass& tile = tiles_[static_cast<std::size_t>(token / kTileTokens)];
  return total_ - row_scale(tile.sum, exponent_, tile.n_max) +
         row_scale(tile.sum - mass_in_tile(token), exponent_, tile.n_max);
}

Token LogitsDistribution::draw(const RandomBlock& block, Token excluded) const {
  const std::size_t excluded_tile =
      excluded < 0 ? tiles_.size() : static_cast<std::size_t>(excluded) / static_cast<std::size_t>(kTileTokens);
  const std::uint64_t excluded_mass = excluded < 0 ? 0 : mass_in_tile(excluded);
  const auto sum_of_tile = [&](std::size_t t) { return tiles_[t].sum - (t == excluded_tile ? excluded_mass : 0); };
  const auto row_mass_of_tile = [&](std::size_t t) { return row_scale(sum_of_tile(t), exponent_, tiles_[t].n_max); };

  const std::uint64_t total = excluded < 0 ? total_ : total_without(excluded);
  if (total == 0) return excluded;

  const TilePlace place = place_of_draw(block, total, row_mass_of_tile, sum_of_tile);
  return token_at(place.tile, place.before, excluded);
}

Token LogitsDistribution::token_at(std::size_t tile, std::uint64_t before, Token excluded) const {
  Tile weights;
  weights_in(tile_begin(tile), tile_size(tile), weights.data());
  if (excluded >= 0 && static_cast<std::size_t>(excluded) / kTileTokens == tile)
    weights[static_cast<std::size_t>(excluded) % kTileTokens] = 0.0f;
  std::uint64_t left = before;
  std::size_t i = 0;
  // Runs of tokens are passed over by their sums, which a kernel finds sooner than the loop below could.
  for (; i + kRunTokens < tile_size(tile); i += kRunTokens) {
    const std::uint64_t sum = row_kernels().weight_sum(weights.data() + i, kRunTokens);
    if (left < sum) break;
    left -= sum;
  }
  for (std::uint64_t mass = mass_of_weight(weights[i]); left >= mass; mass = mass_of_weight(weights[++i])) left -= mass;
  return static_cast<Token>(tile_begin(tile) + i);
}

RankedLogit largest_logit(std::span<const float> logits, const RowName& row) {
  RankedLogit best{-kInfinity, kPaddingToken};
  for (std::size_t begin = 0; begin < logits.size(); begin += kTileTokens) {
    const std::size_t count = std::min<std::size_t>(kTileTokens, logits.size() - begin);
    const TileExtremum top = row_kernels().maximum(logits.data() + begin, count);
    if (!top.valid) throw_bad_logit(logits, row, kInfinity);
    if (top.value > best.value) best = {top.value, static_cast<Token>(begin) + top.index};
  }
  return best;
}

Token greedy_token(std::span<const float> logits, const RowName& row) {
  check_vocab(logits.size(), row);
  const RankedLogit best = largest_logit(logits, row);
  if (best.token == kPaddingToken) throw nothing_left(row);
  return best.token;
}

}  // namespace draftproof
