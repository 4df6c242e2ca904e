// Filters without sampling: logits as somebody else's filters left them, beside the raw logits and parameters, row by
// row. Nothing is estimated: a token is wrongly kept or dropped, or it is not.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "exactness/audit/audit_sample.hpp"

namespace draftproof {

enum class FilterFault : std::uint8_t {
  none,
  wrong_set,     // tokens wrongly kept or dropped
  wrong_values,  // the right tokens, with other logits
  not_a_number,  // NaN or +infinity among the filtered logits
};
std::string name_of(FilterFault fault);

struct FilterRow {
  FilterFault fault = FilterFault::none;
  std::int64_t expected_count = 0;  // tokens that the reference keeps
  std::int64_t kept_count = 0;
  std::vector<Token> wrongly_kept;     // the first kTokensShown, likeliest first
  std::vector<Token> wrongly_dropped;  // likewise
  std::int64_t wrongly_kept_count = 0;
  std::int64_t wrongly_dropped_count = 0;
  double wrongly_kept_mass = 0.0;     // of the unfiltered distribution
  double wrongly_dropped_mass = 0.0;  // likewise
  double distance = 0.0;              // total variation between the distribution that is left and the reference's

  static constexpr std::size_t kTokensShown = 8;
};

struct FilterCheck {
  bool holds = true;
  std::string sentence;
  std::vector<FilterRow> rows;        // [G]
  std::vector<std::int64_t> failing;  // rows with a fault, the largest distance first
};

// A token counts as wrongly kept, or dropped, only where no usual reading of the parameters allows it: ties at a cut
// may be broken in either direction, or all be kept; a cumulative mass within filter_tolerance of top_p, and a ratio
// within that of min_p, may fall on either side, as sums of floats do; filters may see the whole row, or each what the
// ones before it left. With further
// samplers (logits/samplers.hpp) the order is the reference's, and parameters may be off by a factor 1 +-
// filter_tolerance. Rows of temperature 0 may keep any of the largest logits. Errors (input) as of processing the
// rows; (usage) of shapes that do not fit.
FilterCheck check_filter(const FilterSample& sample, int threads);

// [G V] each: tokens that every usual reading keeps, and tokens that some reading keeps. Audits of filters and of draws
// share them.
struct UsualReadings {
  std::vector<std::uint8_t> must;
  std::vector<std::uint8_t> may;
};
UsualReadings usual_readings(const FilterSample& sample, int threads);  // `filtered` and `kept` are not looked at

// Sums of V floats one after the other, each rounded by 2^-25 at most below 1, and so the divisor, are off by so much.
constexpr double filter_tolerance(std::int64_t vocab_size) {
  return 1e-5 + 4e-8 * static_cast<double>(vocab_size);
}
// Distance from the reference's distribution over the tokens kept, from which logits count as wrong.
inline constexpr double kFilterValueTolerance = 1e-4;

}  // namespace draftproof
