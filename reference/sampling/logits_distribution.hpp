// The distribution of a logits row: fixed-point masses over the tokens that its filters kept. See
// numerics/fixed_point.hpp for the formulas; everything that is summed here is an integer, so no result depends on an
// order.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/token.hpp"
#include "reference/random/philox.hpp"
#include "reference/row_kernels/row_kernels.hpp"
#include "reference/sampling/probability_row.hpp"
#include "reference/sampling/row_status.hpp"

namespace draftproof {

// A prefix of the total order (value descending, id ascending), cut further by a least mass. What top-k, top-p and
// min-p leave of a row is always of this form, and so is the intersection of several.
struct KeptSet {
  // Tokens stand in the prefix when they stand before (last_value, last_token) or are that token. The default keeps
  // all.
  float last_value;
  Token last_token;
  std::uint64_t least_mass;  // in the scale of the row
};

KeptSet intersection(const KeptSet& a, const KeptSet& b);

// log p_i = x_i - N ln 2 - log(S 2^-44) for every token of a row that has any mass.
struct LogNormaliser {
  std::int32_t exponent;  // N
  double log_total;

  // Natural log; -infinity for a masked logit.
  float log_probability(float logit) const;
};

// Between which Sigma m_i lies over the kept tokens: S itself is the sum of tiles, which lose their last bits once
// where single tokens lose them each.
struct MassBounds {
  std::uint64_t least;
  std::uint64_t most;
};

// The tokens of a row whose values lie in a band, and the sums of those above it. Search by value narrows bands
// (logits/prefix.hpp).
struct RowBand {
  float low = 0.0f;  // low <= x <= high
  float high = 0.0f;
  std::vector<float> values;          // of the band's tokens in ascending order of id; more room than `count`
  std::vector<float> weights;         // and their weights f 2^(n - N_t)
  std::size_t count = 0;              // of them
  std::vector<std::size_t> tile_end;  // where the part of each tile ends
  std::vector<TileBand> tiles;        // `above` and `above_count` of each tile
  std::uint64_t above_mass = 0;       // Sigma m_i over those above the band
  std::uint64_t band_mass = 0;        // Sigma m_i over those in the band
  std::int64_t above_count = 0;

  void make_room(std::size_t tokens);
  void begin(float low_value, float high_value, std::size_t tile_count);
  // Tokens of a tile that follow those added before.
  void add(std::size_t tile, const float* x, const float* token_weights, std::size_t tokens, std::int64_t shift);
  std::size_t tile_begin(std::size_t tile) const { return tile == 0 ? 0 : tile_end[tile - 1]; }
};

// Where a row is drawn from and no more, nothing as large as it is written: weights, and logits that have to be
// converted or divided, are made again for the tile that a draw asks for. Filters have them all made once (weigh).
class LogitsDistribution {
 public:
  // The distribution of logits [V] over a temperature: softmax, in fixed point. The logits are not copied and must
  // outlive the object. Errors (input, naming `row`, the number to be printed, and the column): NaN, a logit (over the
  // temperature) above 2^29 (of which +infinity), no token left, V = 0 or V > 2^19.
  void assign(const RowView& logits, float temperature, const RowName& row);
  void assign(std::span<const float> logits, const RowName& row) {
    assign({DType::f32, logits.data(), static_cast<std::int64_t>(logits.size())}, 1.0f, row);
  }
  // The same, but false where a logit is NaN or too large; the distribution is empty then.
  bool try_assign(const RowView& logits, float temperature, const RowName& row);

  // The same, and keeps what filters look at more than once: the weights, the logits where they had to be converted or
  // divided, and group_largest.
  bool try_weigh(const RowView& logits, float temperature, const RowName& row);

  // A part of a row whose other tokens lie elsewhere (shard/row_shard.hpp): whole tiles from a multiple of kTileTokens
  // on, tokens of other parts masked; it may be empty. It is given the largest exponents of its tiles, [tile_count()],
  // where others hold tokens of them, and then the whole row's exponent and total, again after each keep(). What speaks
  // of a single token or of a tile is then that of the row; kept_count() is the part's.
  bool try_assign_part(const RowView& logits, float temperature, bool weighs = false);
  void join_tiles(std::span<const std::int32_t> n_max);
  void join_row(std::int32_t exponent, std::uint64_t total);
  std::span<const TileMass> tiles() const { return tiles_; }

  // Makes a row that was assigned without them, and not filtered since, one that was weighed.
  void weigh();

  // Largest logit of every kGroupTokens tokens of a tile, tile by tile; -infinity where all are masked. Empty where
  // the row was not weighed.
  std::span<const float> group_largest() const {
    return is_weighed_ ? std::span<const float>(group_largest_) : std::span<const float>();
  }

  // How many of a tile's tokens up to `last_token` have this logit.
  std::int64_t count_up_to(float value, Token last_token, std::size_t tile) const;

  // f 2^(n - N_t) of the tokens from `begin` on, kept or not. Of a weighed row.
  const float* unfiltered_weights(std::size_t begin) const { return weights_.data() + begin; }

  // Sums, values and weights of the unfiltered row by a band of values. Groups that lie below it are not looked at.
  // Requires a weighed row.
  void scan(float low, float high, RowBand& out) const;
  // The same among the tokens of another band.
  void narrow(const RowBand& from, float low, float high, RowBand& out) const;
  // All tokens that are kept, as a band.
  void kept_band(RowBand& out) const;

  // Drops every token outside the set. At least one token must remain. With a band of the unfiltered row in which the
  // prefix ends: least_mass must be 0, and only the band is looked at.
  void keep(const KeptSet& kept, const RowBand& band);

  // Drops every token outside the set. At least one token must remain; the sets made by logits/filters.hpp see to that.
  void keep(const KeptSet& kept);

  // Drops every token whose byte in `allowed` [V] is 0, of those that the prefixes above left: for sets that are no
  // prefix. The rest is weighed anew, as a row in which all others are masked: where the likeliest are dropped, the
  // masses of what is left would be too coarse. A token that has mass must remain.
  void keep_only(const std::vector<std::uint8_t>& allowed);

  std::int64_t vocab_size() const { return view_.vocab_size; }
  std::size_t tile_count() const { return tiles_.size(); }
  std::size_t tile_size(std::size_t tile) const {
    const std::size_t left = static_cast<std::size_t>(view_.vocab_size) - tile_begin(tile);
    return left < kTileTokens ? left : kTileTokens;
  }

  // The logit of a token over the temperature.
  float logit(Token token) const;
  // The same of the tokens [begin, begin + count), in place or written to `scratch` [count].
  const float* logits_in(std::size_t begin, std::size_t count, float* scratch) const;

  // The first of the total order, kept or not. Of a weighed row.
  Token first_token() const;

  bool is_kept(Token token) const;
  std::int64_t kept_count() const { return kept_count_; }
  // Share of the unfiltered row's mass that the kept tokens have, in (0, 1].
  double kept_mass() const;

  std::int32_t exponent() const { return exponent_; }  // N
  std::uint64_t total() const { return total_; }       // S, over the kept tokens
  MassBounds mass_bounds() const;
  // Sigma m_i over all tokens of a weighed row, looked up token by token.
  std::uint64_t sum_of_masses() const;
  std::int64_t shift_of(std::size_t tile) const { return std::int64_t{exponent_} - tiles_[tile].n_max; }  // N - N_t
  std::uint64_t tile_mass(std::size_t tile) const { return row_scale(tiles_[tile].sum, exponent_, tiles_[tile].n_max); }

  std::uint64_t mass_in_tile(Token token) const { return mass_of_weight(weight(token)); }  // W_i
  std::uint64_t mass(Token token) const {                                                  // m_i
    return row_mass(weight(token), static_cast<std::size_t>(token / kTileTokens));
  }
  std::uint64_t total_without(Token token) const;  // S with the mass of one token taken out of its tile
  float probability(Token token) const;            // p_i; 0 for a dropped token
  float log_probability(Token token) const;        // natural log; -infinity for a dropped token
  LogNormaliser log_normaliser() const { return {exponent_, log_total_}; }
  LogNormaliser unfiltered_log_normaliser() const { return {unfiltered_.exponent, log_total(unfiltered_.total)}; }

  // f 2^(n - N_t) of the tokens [begin, begin + count), all of one tile, written to `scratch` [count]; 0 for a dropped
  // token. row_mass() makes m_i of it. Returns `scratch`.
  const float* weights_in(std::size_t begin, std::size_t count, float* scratch) const;
  // x_i of a tile's tokens as log weights, -infinity for dropped ones; written to `out` [count of the tile].
  void log_weights_of_tile(std::size_t tile, double* out) const;
  std::uint64_t row_mass(float weight, std::size_t tile) const {
    return row_scale(mass_of_weight(weight), exponent_, tiles_[tile].n_max);
  }

  // Probabilities of the tokens [begin, begin + count), all of one tile, written to `scratch` [count]; returns
  // `scratch`.
  const float* probabilities_in(std::size_t begin, std::size_t count, float* scratch) const;
  const float* tile_probabilities(std::size_t tile, float* scratch) const {
    return probabilities_in(tile_begin(tile), tile_size(tile), scratch);
  }

  // Inverse mass: the block's high half picks the tile, its low half the token inside. `excluded` (-1: none) has its
  // mass taken out, which is the residual of a one-hot proposal; if nothing else has mass, `excluded` is returned.
  Token draw(const RandomBlock& block, Token excluded = kPaddingToken) const;
  // The token of a tile at which the sum of W_i first exceeds `before`.
  Token token_at(std::size_t tile, std::uint64_t before, Token excluded = kPaddingToken) const;

 private:
  std::size_t tile_begin(std::size_t tile) const { return tile * kTileTokens; }
  void begin(const RowView& logits, float temperature);
  bool weigh_tiles();
  static constexpr double kLn2 = 0.6931471805599453;
  float weight(Token token) const;
  TileCut cut_of(std::size_t begin) const;
  void make_weights(std::size_t begin, const float* x, std::size_t count, float* weights) const;
  void add_up();
  void take_total(std::uint64_t total);

  RowView view_;
  float temperature_ = 1.0f;
  struct RowSum {
    std::int32_t exponent = kMaskedExponent;  // N
    std::uint64_t total = 0;                  // S
  };

  std::vector<TileMass> tiles_;   // of the kept tokens; exponents are those of the row before a prefix was kept
  std::optional<KeptSet> kept_;   // once there is a filter
  std::vector<float> weights_;    // [V] of a weighed row, before any filter
  std::vector<float> processed_;  // [V] its logits over the temperature, where they are not the caller's
  bool is_weighed_ = false;
  bool is_processed_ = false;
  std::vector<float> group_largest_;
  std::int32_t exponent_ = kMaskedExponent;
  std::uint64_t total_ = 0;
  RowSum unfiltered_;
  std::int64_t kept_count_ = 0;
  float reciprocal_ = 0.0f;
  double log_total_ = 0.0;
};

// A logit and its token; kPaddingToken: none, all are -infinity.
struct RankedLogit {
  float value;
  Token token;
};

// Does a stand before b in the total order?
inline bool comes_first(const RankedLogit& a, const RankedLogit& b) {
  return a.value > b.value || (a.value == b.value && a.token < b.token);
}

// The first of the total order. Errors: NaN, +infinity.
RankedLogit largest_logit(std::span<const float> logits, const RowName& row);

// A row without a token that could be drawn.
RowError nothing_left(const RowName& row);

// The greedy choice of processed logits [V]: the largest value, lowest id first among equals. Errors as
// LogitsDistribution's.
Token greedy_token(std::span<const float> logits, const RowName& row);

}  // namespace draftproof
