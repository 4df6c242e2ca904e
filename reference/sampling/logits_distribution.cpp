#include "reference/sampling/logits_distribution.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "reference/error.hpp"
#include "reference/random/uniform.hpp"

namespace draftproof {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

void check_vocab(std::size_t vocab_size, const RowName& row) {
  const std::string where = "row " + std::to_string(row.number);
  if (vocab_size == 0) throw input_error(where, "the vocabulary is empty; expected at least 1 logit");
  if (vocab_size > static_cast<std::size_t>(kVocabularyLimit))
    throw input_error(where, "the vocabulary has " + std::to_string(vocab_size) + " tokens; expected at most " +
                                 std::to_string(kVocabularyLimit) + ", which the fixed-point sums hold");
}

RowError nothing_left(const RowName& row) {
  return {RowStatus::nothing_left, row, -1,
          "no token is left: every logit is masked, -inf or (over the temperature) below -2^29; expected one that "
          "stands"};
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

float LogNormaliser::log_probability(float logit) const {
  return logit >= -kLogitLimit ? log_probability_of(logit, exponent, log_total) : -kInfinity;
}

void LogitsDistribution::assign(std::span<const float> logits, const RowName& row) {
  check_vocab(logits.size(), row);
  logits_ = logits;
  weights_.resize(logits.size());
  tiles_.resize((logits.size() + kTileTokens - 1) / kTileTokens);
  const RowKernels& kernels = row_kernels();
  exponent_ = kMaskedExponent;
  for (std::size_t t = 0; t < tiles_.size(); ++t) {
    const std::size_t begin = tile_begin(t);
    if (!kernels.tile_mass(logits.data() + begin, tile_size(t), weights_.data() + begin, &tiles_[t]))
      throw_bad_logit(logits, row, kLogitLimit);
    exponent_ = std::max(exponent_, tiles_[t].n_max);
  }
  if (exponent_ == kMaskedExponent) throw nothing_left(row);
  add_up();
  unfiltered_total_ = total_;
}

void LogitsDistribution::add_up() {
  total_ = 0;
  kept_count_ = 0;
  for (std::size_t t = 0; t < tiles_.size(); ++t) {
    total_ += tile_mass(t);
    kept_count_ += tiles_[t].kept;
  }
  reciprocal_ = reciprocal_total(total_);
  log_total_ = log_total(total_);
}

void LogitsDistribution::keep(const KeptSet& kept) {
  const RowKernels& kernels = row_kernels();
  for (std::size_t t = 0; t < tiles_.size(); ++t) {
    const std::size_t begin = tile_begin(t);
    const std::size_t end = begin + tile_size(t);
    // Of the tokens of the last value, those up to the last token stay.
    const std::size_t cut = std::clamp(static_cast<std::size_t>(kept.last_token) + 1, begin, end);
    for (std::size_t i = begin; i < cut; ++i) weights_[i] = logits_[i] >= kept.last_value ? weights_[i] : 0.0f;
    for (std::size_t i = cut; i < end; ++i) weights_[i] = logits_[i] > kept.last_value ? weights_[i] : 0.0f;
    if (kept.least_mass > 0) {
      // m_i >= least iff W_i >= least 2^shift. Doubles hold both sides exactly, and the loop needs no integers.
      const std::int64_t shift = std::min<std::int64_t>(64, std::int64_t{exponent_} - tiles_[t].n_max);
      const double least = static_cast<double>(kept.least_mass) * exact_power_of_two(static_cast<std::int32_t>(shift));
      for (std::size_t i = begin; i < end; ++i) {
        const double mass = (static_cast<double>(weights_[i]) * 0x1p44 + 0x1p52) - 0x1p52;  // mass_of_weight
        weights_[i] = mass >= least ? weights_[i] : 0.0f;
      }
    }
    std::int32_t kept_here = 0;
    for (std::size_t i = begin; i < end; ++i) kept_here += weights_[i] > 0.0f ? 1 : 0;
    tiles_[t].kept = kept_here;
    tiles_[t].sum = kernels.weight_sum(weights_.data() + begin, end - begin);
  }
  add_up();
}

double LogitsDistribution::kept_mass() const {
  return static_cast<double>(total_) / static_cast<double>(unfiltered_total_);
}

float LogitsDistribution::probability(Token token) const {
  if (!is_kept(token)) return 0.0f;
  return probability_of(exp_parts(logits_[static_cast<std::size_t>(token)]), exponent_, reciprocal_);
}

float LogitsDistribution::log_probability(Token token) const {
  return is_kept(token) ? log_normaliser().log_probability(logits_[static_cast<std::size_t>(token)]) : -kInfinity;
}

const float* LogitsDistribution::probabilities_in(std::size_t begin, std::size_t count, float* scratch) const {
  const TileMass& mass = tiles_[begin / kTileTokens];
  if (mass.n_max == kMaskedExponent) {
    std::fill_n(scratch, count, 0.0f);
  } else if (static_cast<std::int64_t>(mass.n_min) - exponent_ >= kDeepestWeight) {
    const float power = static_cast<float>(exact_power_of_two(mass.n_max - exponent_));
    row_kernels().scale_weights(weights_.data() + begin, count, power, reciprocal_, scratch);
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

  std::uint64_t left = multiply_high(high_half(block), total);
  std::size_t tile = 0;
  while (left >= row_mass_of_tile(tile)) left -= row_mass_of_tile(tile++);

  left = multiply_high(low_half(block), sum_of_tile(tile));
  Token token = static_cast<Token>(tile_begin(tile));
  for (;; ++token) {
    const std::uint64_t mass = token == excluded ? 0 : mass_in_tile(token);
    if (left < mass) return token;
    left -= mass;
  }
}

Token greedy_token(std::span<const float> logits, const RowName& row) {
  check_vocab(logits.size(), row);
  float best = -kInfinity;
  Token token = kPaddingToken;
  for (std::size_t begin = 0; begin < logits.size(); begin += kTileTokens) {
    const std::size_t count = std::min<std::size_t>(kTileTokens, logits.size() - begin);
    const TileExtremum top = row_kernels().maximum(logits.data() + begin, count);
    if (!top.valid) throw_bad_logit(logits, row, kInfinity);
    if (top.value > best) {
      best = top.value;
      token = static_cast<Token>(begin) + top.index;
    }
  }
  if (token == kPaddingToken) throw nothing_left(row);
  return token;
}

}  // namespace draftproof
