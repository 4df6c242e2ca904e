// Where a prefix of a row's total order ends: the longest one in which every token has less than a limit of a measure
// (tokens, or their masses) strictly before it.
//
// The search looks at a band of values: the sums above it are known, and its tokens are few. Where a band is to be
// looked for is guessed from a sample of the row; whether the end lies in it is known exactly, and where it does not
// the rest of the row on that side is looked at. The guess costs or saves time and nothing else.
#pragma once

#include <cstdint>

#include "reference/logits/filters.hpp"
#include "reference/sampling/logits_distribution.hpp"

namespace draftproof {

enum class Measure : std::uint8_t { count, mass };

struct ValueBand {
  float low;
  float high;
};

// A band that probably holds the end of the prefix of k tokens, or of a fraction of the mass. The distribution's range
// must be known.
ValueBand guess_by_count(LogitsDistribution& row, std::int64_t k);
ValueBand guess_by_mass(LogitsDistribution& row, float fraction);

// The measure of what stands above a band, and of its tokens.
std::uint64_t measure_above(const RowBand& band, Measure measure);
std::uint64_t measure_within(const LogitsDistribution& row, const RowBand& band, Measure measure);

// The prefix of the row's tokens; `band` is one of a scan of the row. Where the prefix ends outside of it, the band is
// scanned anew. The limit is at least 1 and at most the measure of the whole row.
KeptSet prefix_of_row(const LogitsDistribution& row, Ties ties, Measure measure, std::uint64_t limit, RowBand& band);

// The prefix among the tokens of a band, counting those above it; it must end there.
KeptSet prefix_of_band(const LogitsDistribution& row, Ties ties, Measure measure, std::uint64_t limit,
                       const RowBand& band);

}  // namespace draftproof
