// A device's part of a row, and what every device knows of the row, as the twins of the calls on rows across devices
// make them anew in each call.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "gpu/reference_executor/rows.hpp"
#include "reference/shard/row_shard.hpp"

namespace draftproof::reference_executor {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr std::int64_t kNobody = std::numeric_limits<std::int64_t>::min();  // below every message of a maximum

inline Token token_of_largest(std::int64_t largest) {
  return static_cast<Token>(kVocabularyLimit - 1 - largest % kVocabularyLimit);
}
// The lowest token is the largest message; its log-probability comes with it.
inline std::int64_t drawn_message(Token token, float logprob) {
  return std::int64_t{-1 - token} * (std::int64_t{1} << 32) + bit_cast<std::uint32_t>(logprob);
}
inline Token token_of_message(std::int64_t drawn) {
  return static_cast<Token>(-1 - (drawn >> 32));
}
inline float logprob_of_message(std::int64_t drawn) {
  return bit_cast<float>(static_cast<std::uint32_t>(drawn & 0xffffffff));
}

inline std::size_t tiles_of(const draftproof_shard& s) {
  return static_cast<std::size_t>((s.vocab_size + kTileTokens - 1) / kTileTokens);
}
inline float temperature_of(const draftproof_shard& s, std::int64_t row) {
  return value_of(s.temperature, row, 1.0f);
}

// A device's part of one row.
class Part {
 public:
  Part(const draftproof_shard& s, std::int64_t row)
      : shard_({static_cast<Token>(s.begin), static_cast<Token>(s.end)}), temperature_(temperature_of(s, row)) {
    if (!(temperature_ >= 0.0f && std::isfinite(temperature_))) {
      if (s.begin != s.end) status_ = RowStatus::bad_parameter;
      return;
    }
    RowInput input;
    if (s.begin != s.end) input.logits = row_view(s.logits, row, s.end - s.begin);
    input.parameters.temperature = temperature_;
    input.row = row;
    try {
      shard_.edit(input);
      if (is_greedy()) {
        first_ = shard_.largest_logit();
      } else if (!shard_.try_assign()) {
        shard_.check_as_given();
        shard_.throw_bad_logit();
      }
    } catch (const RowError& error) {
      status_ = error.status();
      return;
    }
    if (is_greedy()) return;
    const std::vector<RankedLogit> first = shard_.first_tokens(1);
    if (!first.empty()) first_ = first[0];
  }

  RowStatus status() const { return status_; }
  bool is_greedy() const { return temperature_ == 0.0f; }
  const RankedLogit& first() const { return first_; }
  RowShard& shard() { return shard_; }
  // The logit over the temperature of a token of the part.
  float logit(Token token) { return shard_.logits().logit(token - shard_.base()); }
  // Tiles of the whole row to their place in the part.
  std::size_t place(std::size_t tile) const { return tile - shard_.first_tile(); }
  bool holds(std::size_t tile) const {
    return tile >= shard_.first_tile() && place(tile) < shard_.logits().tile_count();
  }

 private:
  RowShard shard_;
  float temperature_;
  RowStatus status_ = RowStatus::ok;
  RankedLogit first_{-kInfinity, kPaddingToken};
};

// State of a row that all devices share.
struct Known {
  std::int32_t status;
  std::span<const std::int32_t> exponents;  // [tiles]
  std::int32_t exponent;                    // N
  std::uint64_t total = 0;                  // S

  float log_probability(float logit) const { return LogNormaliser{exponent, log_total(total)}.log_probability(logit); }
};

inline Known known(const draftproof_shard& s, std::int64_t row, const std::int32_t* tile_exponent, std::int64_t largest,
                   const draftproof_shard_kept* kept, const std::uint64_t* tile_sum = nullptr) {
  const std::size_t tiles = tiles_of(s);
  const std::int32_t* const of_row = tile_exponent + row * static_cast<std::int64_t>(tiles + 1);
  Known out{of_row[tiles], {of_row, tiles}, *std::max_element(of_row, of_row + tiles)};
  if (kept != nullptr) out.status = std::max(out.status, kept[row].status);
  const bool is_empty = temperature_of(s, row) == 0.0f ? largest < 0 : out.exponent == kMaskedExponent;
  if (out.status == DRAFTPROOF_ROW_OK && is_empty) out.status = DRAFTPROOF_ROW_NOTHING_LEFT;
  for (std::size_t t = 0; tile_sum != nullptr && t < tiles; ++t)
    out.total += row_scale(tile_sum[row * static_cast<std::int64_t>(tiles) + static_cast<std::int64_t>(t)],
                           out.exponent, of_row[t]);
  return out;
}

// The part of a row that draws, in the scale of the row, with its filters.
inline Part joined_part(const draftproof_shard& s, std::int64_t row, const Known& of_row,
                        const draftproof_shard_kept* kept) {
  Part part(s, row);
  part.shard().join_tiles(of_row.exponents);
  const std::uint64_t total = std::max<std::uint64_t>(of_row.total, 1);
  part.shard().join_row(of_row.exponent, total);
  if (kept != nullptr) {
    const draftproof_shard_kept& k = kept[row];
    if (k.last_value != -kInfinity || k.least_mass != 0) part.shard().keep({k.last_value, k.last_token, k.least_mass});
    part.shard().join_row(of_row.exponent, total);  // keep() knows the part's own sum alone
  }
  return part;
}

// What is left of the mass `before` of a tile where it falls into this device's share of it.
inline std::optional<std::uint64_t> left_of_share(const draftproof_shard& s, const std::int64_t* shares,
                                                  std::uint64_t before) {
  for (std::int32_t d = 0; d < s.device; ++d) {
    const auto share = static_cast<std::uint64_t>(shares[d]);
    if (before < share) return std::nullopt;  // another device's
    before -= share;
  }
  if (before >= static_cast<std::uint64_t>(shares[s.device])) return std::nullopt;
  return before;
}

}  // namespace draftproof::reference_executor
