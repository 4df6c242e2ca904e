// Where a prefix of a row's total order ends: the longest one in which every token has less than a limit of a measure
// (tokens, or their masses) strictly before it.
//
// The search looks at a band of values: the sums above it are known, and its tokens are few. Where a band is to be
// looked for is guessed from a sample of the row; whether the end lies in it is known exactly, and where it does not
// the rest of the row on that side is looked at, guided by what is then known. Guesses cost or save time and nothing
// else; every look is a pass over stored weights, which is cheap beside the pass that made them.
#pragma once

#include <cstdint>

#include "reference/logits/filters.hpp"
#include "reference/sampling/logits_distribution.hpp"

namespace draftproof {

enum class Measure : std::uint8_t { count, mass };

// A prefix and the measure of its tokens, at the least up to the first that reaches the limit.
struct Prefix {
  KeptSet set;
  std::uint64_t measure;  // any limit from the one that was searched for up to this has the same prefix
};

struct ValueBand {
  float low;
  float high;
};

// The value of an order key (numerics/order_key.hpp); of zeros +0.
inline float value_of_key(std::uint32_t key) {
  return bit_cast<float>((key & 0x80000000u) != 0 ? key ^ 0x80000000u : ~key);
}

// A band that probably holds the end of the prefix of k tokens, or of a fraction of the mass. Of a weighed row.
ValueBand guess_by_count(const LogitsDistribution& row, std::int64_t k);
ValueBand guess_by_mass(const LogitsDistribution& row, float fraction);

// The measure of what stands above a band, and of its tokens.
std::uint64_t measure_above(const RowBand& band, Measure measure);
std::uint64_t measure_within(const RowBand& band, Measure measure);

// The prefix of the row's tokens; `band` is one of a scan of the row. Where the prefix ends outside of it, the band is
// scanned anew. The limit is at least 1 and at most the measure of the whole row.
Prefix prefix_of_row(const LogitsDistribution& row, Ties ties, Measure measure, std::uint64_t limit, RowBand& band);

// The prefix among the tokens of a band, counting those above it; it must end there.
Prefix prefix_of_band(const LogitsDistribution& row, Ties ties, Measure measure, std::uint64_t limit,
                      const RowBand& band);

}  // namespace draftproof
