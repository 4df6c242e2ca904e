// Parity of logits: two paths of an engine (plain step and verification step, two batches, two tensor-parallel sizes,
// two precisions) computed the same rows. How far apart are they, what does that do to sampling, and does it look like
// rounding or like a fault?
//
// Rounding has a size, that of its precision, and no place: the relative difference of a row says nothing of its
// request, its position or its row in the step. A fault has a place or another size. The verdict is `fault` where
//   a number is not finite in one path alone, or NaN
//   one row stands out: its relative difference is 8 times the median and 16 units of the precision
//   a group of rows stands out: a request, a row of the step, block ends (positions p with p + 1 a multiple of b), or
//     late positions: its median is twice that of the others, and a rank test says so at the level 1e-4 over all groups
//   a range of columns stands out: 8 times the median of 64 ranges
//   the typical relative difference is more than 64 units of the precision, of f32 1024
// Otherwise `rounding`, or `identical` where no number differs; `unclear` with fewer than 8 rows, since rows have no
// places to compare. These factors are conventions; what was measured under them: docs/parity.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exactness/parity/logits_file.hpp"

namespace draftproof {

// The precision that the paths computed in: its unit roundoff.
enum class LogitPrecision : std::uint8_t { f32, f16, bf16 };
std::string_view name_of(LogitPrecision precision);
double unit_of(LogitPrecision precision);  // 2^-24, 2^-11, 2^-8

struct RowParity {
  RowPlace place;
  double largest = 0.0;                 // |a - b|
  std::int64_t column = 0;              // where
  double rms = 0.0;                     // of a - b without its mean, which no softmax sees
  double scale = 0.0;                   // rms of a without its mean
  double relative = 0.0;                // rms / scale
  bool argmax_turned = false;           // ties to the lowest id
  bool not_finite = false;              // NaN, or an infinity in one path alone
  std::vector<double> total_variation;  // for each temperature
};

// Effect on sampling at a temperature.
struct ParityAt {
  double temperature;
  double mean = 0.0, most = 0.0;  // total variation of a row
  RowPlace most_at;
};

enum class ParityFault : std::uint8_t { not_finite, row, request, draft_position, block_end, growth, columns, size };
std::string_view name_of(ParityFault fault);

struct ParityFinding {
  ParityFault fault;
  std::string sentence;
  RowPlace first;                 // the first row that shows it
  double ratio = 0.0;             // of the medians, or to the median
  std::optional<double> p_value;  // of the rank test
};

enum class ParityVerdict : std::uint8_t { identical, rounding, fault, unclear };
std::string_view name_of(ParityVerdict verdict);

struct ParityOptions {
  std::vector<double> temperatures{1.0};    // 0: the argmax
  std::optional<LogitPrecision> precision;  // none: the coarsest that holds every logit of either file
  int threads = 1;
};

struct Parity {
  std::vector<RowParity> rows;  // those of both files, by request and position
  std::size_t only_a = 0, only_b = 0;
  LogitPrecision precision{};
  bool precision_is_inferred = false;
  double largest = 0.0;  // of all rows
  RowPlace largest_at;
  std::int64_t largest_column = 0;
  double typical_rms = 0.0, typical_relative = 0.0;  // medians over rows
  double units = 0.0;                                // typical_relative / unit
  std::size_t differing_rows = 0, turned = 0;
  std::optional<RowPlace> first_difference, first_turned;
  std::vector<ParityAt> at;
  std::vector<ParityFinding> findings;
  ParityVerdict verdict{};

  std::string sentence() const;
};

// Input errors: vocabularies differ, no row is in both files; without positions in either, other numbers of rows.
Parity compare_logits(const LogitsFile& a, const LogitsFile& b, const ParityOptions& options);

}  // namespace draftproof
