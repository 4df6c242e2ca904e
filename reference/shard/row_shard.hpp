// The part of a row that one device holds, in memory of its own: the functions of a row that need no other device, and
// what it contributes to those that do. Each is the whole row's code on a row whose other tokens are masked.
//
// Memory begins at the tile of the first token, so that tiles, edits and the race's noise stand where the whole row has
// them; tokens of that tile that another device holds are -infinity (of a row of probabilities 0).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/logits/pipeline.hpp"
#include "reference/sampling/distribution.hpp"
#include "reference/shard/devices.hpp"

namespace draftproof {

// A logit and its token as a word of a message, and back.
inline std::uint64_t word_of(const RankedLogit& logit) {
  return std::uint64_t{bit_cast<std::uint32_t>(logit.value)} << 32 | static_cast<std::uint32_t>(logit.token);
}
inline RankedLogit logit_of(std::uint64_t word) {
  return {bit_cast<float>(static_cast<std::uint32_t>(word >> 32)), static_cast<Token>(word & 0xffffffffu)};
}

class RowShard {
 public:
  explicit RowShard(const TokenRange& range);

  Token base() const { return base_; }  // a multiple of kTileTokens
  std::size_t first_tile() const { return static_cast<std::size_t>(base_ / kTileTokens); }
  const Distribution& distribution() const { return distribution_; }
  const LogitsDistribution& logits() const { return *distribution_.logits_distribution(); }

  // Edits a part [range.size()] of raw logits; input.logits and input.unconditional are those of the part. RowError
  // naming columns of the whole row, as from what follows.
  void edit(RowInput input);
  // The distribution of the edited part, before it knows the others, kept ready for filters where there are any. False:
  // a logit is bad, which these throw.
  bool try_assign(bool has_filters = false);
  void check_as_given();
  void throw_bad_logit();
  RankedLogit largest_logit();  // the greedy choice among the part's tokens
  void make_probabilities(const RowView& part, const RowName& row);
  void make_one_hot(Token token);  // one that this device may or may not hold
  // Runs what reads the part's tokens; a RowError names the column of the whole row.
  template <class Read>
  void read(const Read& read) const {
    try {
      read();
    } catch (const RowError& error) {
      if (error.column() < 0) throw;
      throw RowError(error.status(), error.row(), error.column() + base_, error.what_is_wrong());
    }
  }

  // For logits, over the tiles of the whole row: the largest exponents, and the sums S_t of the kept tokens.
  void raise_exponents(std::span<std::int32_t> row_tiles) const;
  void add_tile_sums(std::span<std::uint64_t> row_tiles) const;
  void join_tiles(std::span<const std::int32_t> row_tiles);
  void join_row(std::int32_t exponent, std::uint64_t total);

  // The first n kept tokens of the total order, fewer where there are fewer, by the tokens of the whole row.
  std::vector<RankedLogit> first_tokens(std::size_t n) const;
  // How many kept tokens stand before another.
  std::int64_t count_before(const RankedLogit& other) const;
  void keep(KeptSet set);

 private:
  RowView padded(const RowView& part, std::vector<std::uint32_t>& memory, bool with_zeros) const;
  std::vector<RankedLogit> kept_from(float least) const;

  TokenRange range_;
  Token base_;
  Pipeline pipeline_;
  Distribution distribution_;
  std::vector<std::uint32_t> logits_memory_, unconditional_memory_;
};

}  // namespace draftproof
