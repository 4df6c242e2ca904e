// Where the prefix that a filter keeps ends in a row on several devices: a radix search over the order keys, eight bits
// a round, whose histograms are added up over the devices; then over the tokens of the value that it ends at.
//
//   round 0 to 3   histogram of the measure (a count for top-k, m_i for top-p) by eight bits more
//   round 4        the measure that each device's tokens of that value have
//   round 5        the device in which it ends finds the token
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/logits/prefix.hpp"
#include "reference/shard/row_shard.hpp"

namespace draftproof {

inline constexpr std::size_t kSearchBuckets = 256;
inline constexpr int kHistogramRounds = 4;

// Words of a histogram: one a bucket, of counts, which are below 2^20, two in each.
inline std::size_t histogram_words(Measure measure) {
  return measure == Measure::count ? kSearchBuckets / 2 : kSearchBuckets;
}
inline std::uint64_t bucket_of(Measure measure, std::span<const std::uint64_t> words, std::size_t bucket) {
  return measure == Measure::mass ? words[bucket] : words[bucket / 2] >> 32 * (bucket % 2) & 0xffffffffu;
}

// State: `before`, the measure of the tokens before those whose order keys begin with `key`, and `limit`, at which the
// prefix ends; 0: no token is dropped.
//
// Takes the histogram of a round. limit_of(measure of all tokens) is asked in round 0.
template <class State, class Limit>
void take_histogram(State& state, Measure measure, int round, std::span<const std::uint64_t> words,
                    const Limit& limit_of) {
  if (round == 0) {
    std::uint64_t whole = 0;
    for (std::size_t b = 0; b < kSearchBuckets; ++b) whole += bucket_of(measure, words, b);
    state.limit = limit_of(whole);
    if (state.limit == 0) return;
  }
  std::size_t bucket = kSearchBuckets - 1;
  for (; bucket > 0 && state.before + bucket_of(measure, words, bucket) < state.limit; --bucket)
    state.before += bucket_of(measure, words, bucket);
  state.key |= static_cast<std::uint32_t>(bucket) << (24 - 8 * round);
}
// Takes what each device has of the value, and returns the device in which the prefix ends.
template <class State>
std::size_t take_shares(State& state, std::span<const std::uint64_t> shares) {
  std::size_t owner = 0;
  for (; owner + 1 < shares.size() && state.before + shares[owner] < state.limit; ++owner)
    state.before += shares[owner];
  return owner;
}

// min_p's least mass, by the first token's logit.
std::uint64_t least_mass_of(float min_p, float first, std::int32_t exponent, std::int32_t tile_exponent);

// The kept tokens of a device's part of a row in a search. Rounds are asked in order; from the second on the tokens
// that are left are listed, and later rounds read these alone.
class PartSearch {
 public:
  explicit PartSearch(const RowShard& shard) : shard_(&shard) {}

  // Before each search; the part keeps its filters until the next.
  void begin(Measure measure) {
    measure_ = measure;
    is_listed_ = false;
  }

  // Adds to words [histogram_words], of the tokens whose bits of earlier rounds are those of `key`.
  void add_histogram(int round, std::uint32_t key, std::span<std::uint64_t> words);
  // The measure of the tokens of one value, and the first of these with which it reaches `limit`.
  std::uint64_t measure_of_ties(std::uint32_t key);
  Token token_of_ties(std::uint32_t key, std::uint64_t limit);

 private:
  struct Candidate {
    std::uint32_t key;
    Token token;
    std::uint64_t amount;
  };
  template <class Take>
  void for_each_group(float low, const Take& take) const;
  std::uint64_t amount(float x, float weight, std::size_t column) const;
  void list(std::uint32_t known_bits, std::uint32_t key);

  const RowShard* shard_;
  Measure measure_ = Measure::count;
  bool is_listed_ = false;
  std::vector<Candidate> listed_;
};

}  // namespace draftproof
