#include "exactness/parity/parity.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "base/parallel.hpp"
#include "exactness/parity/row_faults.hpp"
#include "reference/numerics/natural_exp.hpp"

namespace draftproof {
namespace {

constexpr std::size_t kColumnRanges = 64;

// One row of both files, and the columns that both hold as finite numbers.
struct RowPair {
  std::vector<float> a, b;
};

double mean_of_finite(const RowPair& pair, const std::vector<bool>& finite, bool of_difference) {
  double sum = 0.0;
  double count = 0.0;
  for (std::size_t i = 0; i < pair.a.size(); ++i) {
    if (!finite[i]) continue;
    sum += of_difference ? static_cast<double>(pair.b[i]) - static_cast<double>(pair.a[i])
                         : static_cast<double>(pair.a[i]);
    count += 1.0;
  }
  return count > 0.0 ? sum / count : 0.0;
}

// Lowest id of the greatest logit; a NaN is none.
std::size_t argmax_of(const std::vector<float>& row) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < row.size(); ++i)
    if (row[i] > row[best] || (std::isnan(row[best]) && !std::isnan(row[i]))) best = i;
  return best;
}

std::vector<double> softmax_of(const std::vector<float>& row, double temperature) {
  const auto largest = static_cast<double>(row[argmax_of(row)]);
  std::vector<double> p(row.size());
  double total = 0.0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    p[i] = natural_exp((static_cast<double>(row[i]) - largest) / temperature);
    total += p[i];
  }
  for (double& x : p) x /= total;
  return p;
}

double total_variation_at(const RowPair& pair, double temperature, bool argmax_turned) {
  if (temperature == 0.0) return argmax_turned ? 1.0 : 0.0;
  const std::vector<double> p = softmax_of(pair.a, temperature);
  const std::vector<double> q = softmax_of(pair.b, temperature);
  double sum = 0.0;
  for (std::size_t i = 0; i < p.size(); ++i) sum += std::abs(p[i] - q[i]);
  return sum / 2.0;
}

RowParity compare_row(const RowPair& pair, const RowPlace& place, const std::vector<double>& temperatures,
                      std::vector<double>& squares_by_range) {
  RowParity row;
  row.place = place;
  std::vector<bool> finite(pair.a.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < pair.a.size(); ++i) {
    finite[i] = std::isfinite(pair.a[i]) && std::isfinite(pair.b[i]);
    count += finite[i] ? 1 : 0;
    // The same infinity in both is a mask.
    if (!finite[i] && !row.not_finite && pair.a[i] != pair.b[i]) {
      row.not_finite = true;
      row.column = static_cast<std::int64_t>(i);
    }
  }
  if (row.not_finite || count == 0) return row;
  const double mean_a = mean_of_finite(pair, finite, false);
  const double shift = mean_of_finite(pair, finite, true);
  double squares = 0.0, squares_of_a = 0.0;
  const std::size_t range = (pair.a.size() + kColumnRanges - 1) / kColumnRanges;
  for (std::size_t i = 0; i < pair.a.size(); ++i) {
    if (!finite[i]) continue;
    const double a = static_cast<double>(pair.a[i]);
    const double difference = static_cast<double>(pair.b[i]) - a;
    if (std::abs(difference) > row.largest) {
      row.largest = std::abs(difference);
      row.column = static_cast<std::int64_t>(i);
    }
    const double square = (difference - shift) * (difference - shift);
    squares += square;
    squares_by_range[i / range] += square;
    squares_of_a += (a - mean_a) * (a - mean_a);
  }
  row.rms = std::sqrt(squares / static_cast<double>(count));
  row.scale = std::sqrt(squares_of_a / static_cast<double>(count));
  // Rows of one value have no scale: any difference is one of 1.
  row.relative = row.rms == 0.0 ? 0.0 : row.scale > 0.0 ? row.rms / row.scale : 1.0;
  row.argmax_turned = argmax_of(pair.a) != argmax_of(pair.b);
  for (const double temperature : temperatures)
    row.total_variation.push_back(total_variation_at(pair, temperature, row.argmax_turned));
  return row;
}

bool holds(LogitPrecision precision, float x) {
  if (precision == LogitPrecision::f32 || !std::isfinite(x)) return true;
  return precision == LogitPrecision::f16 ? f16_to_f32(f32_to_f16(x)) == x : bf16_to_f32(f32_to_bf16(x)) == x;
}

LogitPrecision inferred_precision(const LogitsFile& file) {
  std::vector<float> row;
  bool of_bf16 = true, of_f16 = true;
  for (std::size_t r = 0; r < file.rows() && (of_bf16 || of_f16); ++r) {
    file.row(r, row);
    for (const float x : row) {
      of_bf16 = of_bf16 && holds(LogitPrecision::bf16, x);
      of_f16 = of_f16 && holds(LogitPrecision::f16, x);
    }
  }
  return of_bf16 ? LogitPrecision::bf16 : of_f16 ? LogitPrecision::f16 : LogitPrecision::f32;
}

using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

// Rows of both files that have one place, by request and position.
Pairs common_rows(const LogitsFile& a, const LogitsFile& b) {
  if (!a.has_positions && !b.has_positions && a.rows() != b.rows())
    throw input_error(b.path, "has " + std::to_string(b.rows()) + " rows and " + a.path + " " +
                                  std::to_string(a.rows()) +
                                  "; without a tensor positions expected as many of one as of the other");
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> of_b;
  for (std::size_t r = 0; r < b.rows(); ++r) of_b[{b.places[r].request, b.places[r].position}] = r;
  std::map<std::pair<std::int64_t, std::int64_t>, std::pair<std::size_t, std::size_t>> found;
  for (std::size_t r = 0; r < a.rows(); ++r) {
    const std::pair place{a.places[r].request, a.places[r].position};
    if (const auto in_b = of_b.find(place); in_b != of_b.end()) found[place] = {r, in_b->second};
  }
  Pairs pairs;
  for (const auto& [place, rows] : found) pairs.push_back(rows);
  if (pairs.empty())
    throw input_error(b.path, "has no row of " + a.path + "; the first is of " + b.places[0].text() +
                                  " in one and of " + a.places[0].text() + " in the other");
  return pairs;
}

void summarise(Parity& parity, const ParityOptions& options) {
  std::vector<double> rms, relative;
  for (const RowParity& row : parity.rows) {
    if (row.not_finite || row.largest > 0.0) {
      ++parity.differing_rows;
      if (!parity.first_difference) parity.first_difference = row.place;
    }
    if (row.not_finite) continue;
    rms.push_back(row.rms);
    relative.push_back(row.relative);
    if (row.largest > parity.largest) {
      parity.largest = row.largest;
      parity.largest_at = row.place;
      parity.largest_column = row.column;
    }
    parity.turned += row.argmax_turned ? 1 : 0;
    if (row.argmax_turned && !parity.first_turned) parity.first_turned = row.place;
  }
  parity.typical_rms = median_of(rms);
  parity.typical_relative = median_of(relative);
  parity.units = parity.typical_relative / unit_of(parity.precision);
  for (std::size_t t = 0; t < options.temperatures.size(); ++t) {
    ParityAt at{options.temperatures[t], 0.0, 0.0, {}};
    double rows = 0.0;
    for (const RowParity& row : parity.rows) {
      if (row.total_variation.empty()) continue;
      rows += 1.0;
      at.mean += row.total_variation[t];
      if (row.total_variation[t] > at.most) {
        at.most = row.total_variation[t];
        at.most_at = row.place;
      }
    }
    if (rows > 0.0) at.mean /= rows;
    parity.at.push_back(at);
  }
}

}  // namespace

std::string_view name_of(LogitPrecision precision) {
  constexpr std::array<std::string_view, 3> kNames{"f32", "f16", "bf16"};
  return kNames[static_cast<std::size_t>(precision)];
}

double unit_of(LogitPrecision precision) {
  constexpr std::array<double, 3> kUnits{0x1p-24, 0x1p-11, 0x1p-8};
  return kUnits[static_cast<std::size_t>(precision)];
}

std::string_view name_of(ParityFault fault) {
  constexpr std::array<std::string_view, 8> kNames{"not_finite", "row",    "request", "draft_position",
                                                   "block_end",  "growth", "columns", "size"};
  return kNames[static_cast<std::size_t>(fault)];
}

std::string_view name_of(ParityVerdict verdict) {
  constexpr std::array<std::string_view, 4> kNames{"identical", "rounding", "fault", "unclear"};
  return kNames[static_cast<std::size_t>(verdict)];
}

Parity compare_logits(const LogitsFile& a, const LogitsFile& b, const ParityOptions& options) {
  if (a.vocab_size() != b.vocab_size())
    throw input_error(b.path, "has rows of " + std::to_string(b.vocab_size()) + " logits and " + a.path + " of " +
                                  std::to_string(a.vocab_size()) + "; expected one vocabulary");
  const Pairs pairs = common_rows(a, b);
  Parity parity;
  parity.only_a = a.rows() - pairs.size();
  parity.only_b = b.rows() - pairs.size();
  parity.precision_is_inferred = !options.precision;
  parity.precision = options.precision.value_or(std::max(inferred_precision(a), inferred_precision(b)));
  parity.rows.resize(pairs.size());
  std::vector<std::vector<double>> squares(pairs.size(), std::vector<double>(kColumnRanges, 0.0));
  parallel_for(std::ssize(pairs), options.threads, [&](std::int64_t i, int) {
    const auto r = static_cast<std::size_t>(i);
    RowPair pair;
    a.row(pairs[r].first, pair.a);
    b.row(pairs[r].second, pair.b);
    RowPlace place = a.places[pairs[r].first];
    if (place.draft_position < 0) place.draft_position = b.places[pairs[r].second].draft_position;
    parity.rows[r] = compare_row(pair, place, options.temperatures, squares[r]);
  });
  summarise(parity, options);
  parity.findings = parity_findings(parity, squares, a.vocab_size());
  parity.verdict = !parity.findings.empty()           ? ParityVerdict::fault
                   : parity.differing_rows == 0       ? ParityVerdict::identical
                   : parity.rows.size() < kParityRows ? ParityVerdict::unclear
                                                      : ParityVerdict::rounding;
  return parity;
}

std::string Parity::sentence() const {
  if (verdict == ParityVerdict::identical) return "no logit differs";
  if (verdict == ParityVerdict::fault) return "looks like a fault: " + findings.front().sentence;
  if (verdict == ParityVerdict::unclear)
    return "differs by rounding's size, in too few rows to say whether any place stands out";
  return "looks like rounding of " + std::string(name_of(precision)) + ": no request, position or column stands out";
}

}  // namespace draftproof
