#include "exactness/parity/row_faults.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/printable.hpp"

namespace draftproof {
namespace {

constexpr double kLevel = 1e-4;        // over all rank tests
constexpr double kGroupRatio = 2.0;    // of medians
constexpr double kRowRatio = 8.0;      // to the median of rows, or of ranges of columns
constexpr double kRowUnits = 16.0;     // and in units of the precision
constexpr std::size_t kGroupRows = 4;  // of a group, and beside it
constexpr std::array<std::int64_t, 6> kBlocks{8, 16, 32, 64, 128, 256};

// Units that rounding makes: products of 16-bit numbers are summed in f32, those of f32 in nothing better.
double most_units(LogitPrecision precision) {
  return precision == LogitPrecision::f32 ? 1024.0 : 64.0;
}

// A group of rows that may stand out.
struct Group {
  ParityFault fault;
  std::string said;  // "request 3"
  std::function<bool(const RowPlace&)> holds;
};

std::vector<Group> groups_of(const std::vector<RowParity>& rows) {
  std::set<std::int64_t> requests, in_steps;
  std::int64_t last = 0;
  for (const RowParity& row : rows) {
    requests.insert(row.place.request);
    if (row.place.draft_position >= 0) in_steps.insert(row.place.draft_position);
    last = std::max(last, row.place.position);
  }
  std::vector<Group> groups;
  if (requests.size() > 1)
    for (const std::int64_t request : requests)
      groups.push_back({ParityFault::request, "request " + std::to_string(request),
                        [request](const RowPlace& place) { return place.request == request; }});
  if (in_steps.size() > 1)
    for (const std::int64_t row : in_steps)
      groups.push_back({ParityFault::draft_position, "row " + std::to_string(row) + " of the steps",
                        [row](const RowPlace& place) { return place.draft_position == row; }});
  for (const std::int64_t block : kBlocks) {
    if (block > last) continue;
    groups.push_back({ParityFault::block_end, "the last position of every block of " + std::to_string(block),
                      [block](const RowPlace& place) { return (place.position + 1) % block == 0; }});
    groups.push_back({ParityFault::block_end, "the first position of every block of " + std::to_string(block),
                      [block](const RowPlace& place) { return place.position > 0 && place.position % block == 0; }});
  }
  return groups;
}

class Finder {
 public:
  Finder(const Parity& parity, const std::vector<std::vector<double>>& squares, std::size_t vocab_size)
      : parity_(parity), squares_(squares), vocab_size_(vocab_size) {
    std::vector<double> differing;
    std::map<std::int64_t, std::int64_t> begins;  // where a request's rows begin to differ
    for (const RowParity& row : parity.rows) {
      if (row.not_finite || !(row.relative > 0.0)) continue;
      differing.push_back(row.relative);
      const auto [at, is_new] = begins.try_emplace(row.place.request, row.place.position);
      at->second = std::min(at->second, row.place.position);
    }
    // Rows before it were computed alike, a prompt in one pass: behind them rounding is no growth.
    differing_units_ = median_of(differing) / unit_of(parity.precision);
    const bool rounds = !differing.empty() && differing_units_ <= most_units(parity.precision);
    for (const RowParity& row : parity.rows) {
      if (row.not_finite) continue;
      const auto begin = begins.find(row.place.request);
      if (rounds && (begin == begins.end() || row.place.position < begin->second)) continue;
      rows_.push_back(&row);
      relative_.push_back(row.relative);
    }
  }

  std::vector<ParityFinding> find() {
    look_at_infinities();
    if (rows_.empty()) return findings_;
    if (rows_.size() >= kParityRows) {
      look_at_groups();
      look_at_columns();
      if (findings_.empty()) look_at_rows();
    }
    look_at_size();
    return findings_;
  }

 private:
  void look_at_infinities() {
    std::size_t count = 0;
    const RowParity* first = nullptr;
    for (const RowParity& row : parity_.rows) {
      if (!row.not_finite) continue;
      ++count;
      if (first == nullptr) first = &row;
    }
    if (first != nullptr)
      add({ParityFault::not_finite,
           std::to_string(count) + " of " + std::to_string(parity_.rows.size()) +
               " rows hold a NaN, or an infinity in one path alone; the first at " + first->place.text() + ", column " +
               std::to_string(first->column),
           first->place, 0.0, std::nullopt});
  }

  void look_at_size() {
    if (!(differing_units_ > most_units(parity_.precision))) return;
    add({ParityFault::size,
         "the typical relative difference of rows that differ is " +
             number("%.3g", differing_units_ * unit_of(parity_.precision)) + ", " + number("%.3g", differing_units_) +
             " units of " + std::string(name_of(parity_.precision)) + "; rounding makes at most " +
             number("%.3g", most_units(parity_.precision)),
         parity_.first_difference.value_or(RowPlace{}), differing_units_, std::nullopt});
  }

  // Rows that no group explains.
  void look_at_rows() {
    std::vector<double> differing;
    for (const double x : relative_)
      if (x > 0.0) differing.push_back(x);
    const double usual = median_of(differing);
    const double least = std::max(kRowRatio * usual, kRowUnits * unit_of(parity_.precision));
    const RowParity* first = nullptr;
    std::size_t count = 0;
    double most = 0.0;
    for (const RowParity* row : rows_) {
      if (!(row->relative > least)) continue;
      ++count;
      most = std::max(most, row->relative);
      if (first == nullptr) first = row;
    }
    if (first == nullptr) return;
    add({ParityFault::row,
         std::to_string(count) + " of " + std::to_string(rows_.size()) + " rows stand out, up to " +
             number("%.3g", most / usual) + " times the median of those that differ; the first at " +
             first->place.text(),
         first->place, most / usual, std::nullopt});
  }

  void look_at_groups() {
    std::vector<double> positions;
    for (const RowParity* row : rows_) positions.push_back(static_cast<double>(row->place.position));
    const std::vector<Group> groups = groups_of(parity_.rows);
    const double level = kLevel / static_cast<double>(groups.size() + 1);
    std::map<ParityFault, ParityFinding> worst;  // of each kind the one with the least p value
    for (const Group& group : groups) {
      std::vector<bool> holds;
      for (const RowParity* row : rows_) holds.push_back(group.holds(row->place));
      const double p_value = group_is_greater(relative_, holds);
      const double ratio = ratio_of_medians(holds);
      if (!(p_value <= level) || !(ratio >= kGroupRatio)) continue;
      const auto first = rows_[static_cast<std::size_t>(std::ranges::find(holds, true) - holds.begin())]->place;
      ParityFinding found{group.fault,
                          group.said + " stands out: its differences are " + ratio_text(ratio) +
                              " those of other rows; the first at " + first.text(),
                          first, ratio, p_value};
      const auto [at, is_new] = worst.try_emplace(group.fault, found);
      if (!is_new && p_value < at->second.p_value) at->second = found;
    }
    look_at_growth(positions, level);
    for (auto& [fault, found] : worst) add(found);
  }

  void look_at_growth(const std::vector<double>& positions, double level) {
    std::vector<double> sorted = positions;
    std::ranges::sort(sorted);
    const double late = sorted[sorted.size() * 2 / 3];
    const double early = sorted[sorted.size() / 3];
    std::vector<double> of_late, of_early;
    const RowParity* first = nullptr;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (positions[i] >= late) {
        of_late.push_back(relative_[i]);
        if (first == nullptr) first = rows_[i];
      }
      if (positions[i] <= early) of_early.push_back(relative_[i]);
    }
    const double ratio = quotient(median_of(of_late), median_of(of_early));
    const double p_value = grows_along(relative_, positions);
    if (!(p_value <= level) || !(ratio >= kGroupRatio)) return;
    add({ParityFault::growth,
         "differences grow with length: in the last third of positions they are " + ratio_text(ratio) +
             " those in the first third",
         first->place, ratio, p_value});
  }

  void look_at_columns() {
    std::vector<double> sums;
    const std::size_t ranges = squares_.front().size();
    const std::size_t range = (vocab_size_ + ranges - 1) / ranges;
    for (std::size_t c = 0; c * range < vocab_size_; ++c) {
      double sum = 0.0;
      for (const std::vector<double>& row : squares_) sum += row[c];
      sums.push_back(std::sqrt(sum));
    }
    if (sums.size() < kParityRows) return;
    const double usual = median_of(sums);
    const auto worst = std::ranges::max_element(sums);
    const double ratio = quotient(*worst, usual);
    if (!(ratio >= kRowRatio)) return;
    const auto begin = static_cast<std::size_t>(worst - sums.begin()) * range;
    add({ParityFault::columns,
         "columns " + std::to_string(begin) + " to " + std::to_string(std::min(begin + range, vocab_size_) - 1) +
             " stand out: their differences are " + ratio_text(ratio) + " those of other columns",
         parity_.first_difference.value_or(RowPlace{}), ratio, std::nullopt});
  }

  double ratio_of_medians(const std::vector<bool>& holds) const {
    std::vector<double> inside, outside;
    for (std::size_t i = 0; i < holds.size(); ++i) (holds[i] ? inside : outside).push_back(relative_[i]);
    if (inside.size() < kGroupRows || outside.size() < kGroupRows) return 0.0;
    return quotient(median_of(inside), median_of(outside));
  }

  static double quotient(double a, double b) {
    if (a == 0.0) return 0.0;
    return b > 0.0 ? a / b : std::numeric_limits<double>::max();
  }
  static std::string ratio_text(double ratio) {
    return ratio == std::numeric_limits<double>::max() ? "above 0 and not" : number("%.3g", ratio) + " times";
  }

  void add(ParityFinding finding) { findings_.push_back(std::move(finding)); }

  const Parity& parity_;
  const std::vector<std::vector<double>>& squares_;
  std::size_t vocab_size_;
  std::vector<const RowParity*> rows_;  // with finite differences
  std::vector<double> relative_;
  double differing_units_ = 0.0;  // of the median row that differs
  std::vector<ParityFinding> findings_;
};

}  // namespace

std::vector<ParityFinding> parity_findings(const Parity& parity, const std::vector<std::vector<double>>& squares,
                                           std::size_t vocab_size) {
  return Finder(parity, squares, vocab_size).find();
}

}  // namespace draftproof
