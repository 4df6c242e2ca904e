#include "exactness/audit/acceptance.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include "exactness/audit/tests.hpp"
#include "exactness/statistics/chi_squared.hpp"

namespace draftproof {
namespace {

constexpr std::int64_t kRateBins = 10;
// Cells must have as much variance as a pool of counts, for the same reason (statistics/pooling.hpp).
constexpr double kVarianceMin = kExpectedCountMinOfAudits;
constexpr double kPositionLevel = 0.99;

Doubt doubt_of(const DraftRecord& draft, double tolerance) {
  if (draft.ratio > 1.0 + tolerance) return Doubt::none;
  return draft.ratio > 1.0 - tolerance ? Doubt::too_close : Doubt::open;
}

template <class Visit>
void for_each_decision(std::span<const StepRecord> records, const Visit& visit) {
  for (const StepRecord& record : records) {
    if (record.impossible_draft) continue;
    for (std::size_t i = 0; i < record.drafts.size() && i <= record.accepted; ++i)
      visit(Decision{static_cast<std::int64_t>(i), std::min(1.0, record.drafts[i].ratio),
                     doubt_of(record.drafts[i], record.ratio_tolerance), i < record.accepted});
    for (const Decision& decision : record.decisions) visit(decision);
  }
}

struct RateCell {
  CountedCell cell;
  double variance = 0.0;
  std::int64_t n = 0;

  void add(const RateCell& other) {
    cell.observed += other.cell.observed;
    cell.expected += other.cell.expected;
    variance += other.variance;
    n += other.n;
  }
};

// Cells in their order, joined until each has kVarianceMin; what is left joins the last one.
std::vector<RateCell> joined_cells(const std::vector<RateCell>& cells) {
  std::vector<RateCell> joined;
  bool open = false;
  for (const RateCell& next : cells) {
    if (next.n == 0) continue;
    if (!open) {
      joined.push_back(next);
    } else {
      joined.back().add(next);
    }
    open = joined.back().variance < kVarianceMin;
  }
  if (!open || joined.empty()) return joined;
  const RateCell rest = joined.back();
  joined.pop_back();
  if (!joined.empty()) joined.back().add(rest);  // else there is too little variance in all
  return joined;
}

// Nothing where the decisions leave no doubt.
std::vector<TestResult> rate_test(const std::string& name, const std::vector<RateCell>& all) {
  const std::vector<RateCell> cells = joined_cells(all);
  if (cells.empty()) return {};
  TestResult test;
  test.name = name;
  test.statistic_name = "score X^2";
  test.unit = "decisions";
  test.df = static_cast<std::int64_t>(cells.size());
  double distance = 0.0;
  for (const RateCell& c : cells) {
    const double difference = c.cell.observed - c.cell.expected;
    test.n += c.n;
    test.statistic += difference * difference / c.variance;
    distance += std::abs(difference) - mean_absolute_deviation(c.variance);
    test.worst_cells.push_back(c.cell);
  }
  test.p_value = chi_squared_p_value(test.statistic, *test.df);
  test.estimated_tv = std::max(0.0, distance / static_cast<double>(test.n));
  keep_worst(test.worst_cells);
  return {std::move(test)};
}

// [cells] by `cell_of`, over the decisions that are in doubt.
template <class CellOf>
std::vector<RateCell> rate_cells(std::span<const StepRecord> records, std::size_t count, const std::string& key,
                                 const CellOf& cell_of) {
  std::vector<RateCell> cells(count);
  for (std::size_t i = 0; i < count; ++i) cells[i].cell.keys = {{key, static_cast<std::int64_t>(i)}};
  for_each_decision(records, [&](const Decision& decision) {
    if (decision.doubt != Doubt::open || decision.rate <= 0.0) return;
    RateCell& cell = cells[cell_of(decision)];
    cell.cell.observed += decision.accepted ? 1.0 : 0.0;
    cell.cell.expected += decision.rate;
    cell.variance += decision.rate * (1.0 - decision.rate);
    ++cell.n;
  });
  return cells;
}

std::vector<TestResult> certain_decisions(std::span<const StepRecord> records) {
  std::int64_t certain = 0;
  std::int64_t wrong = 0;
  std::vector<CountedCell> cells;
  for_each_decision(records, [&](const Decision& decision) {
    if (decision.doubt != Doubt::none) return;
    ++certain;
    if (decision.accepted == (decision.rate > 0.0)) return;
    ++wrong;
    const auto found = std::find_if(cells.begin(), cells.end(), [&](const CountedCell& cell) {
      return cell.keys.front().second == decision.position;
    });
    if (found != cells.end()) {
      found->observed += 1.0;
    } else {
      cells.push_back({{{"position", decision.position}}, 1.0, 0.0});
    }
  });
  if (certain == 0) return {};
  std::sort(cells.begin(), cells.end(), [](const CountedCell& a, const CountedCell& b) { return a.keys < b.keys; });
  keep_worst(cells);
  return {certainty_test("acceptance_certain", "decisions that are certain", certain, wrong, std::move(cells))};
}

// The distribution of the number accepted [K + 1], given the drafts; empty where it is not known.
std::vector<double> accepted_distribution(const StepRecord& record) {
  if (record.impossible_draft || record.drafts.empty()) return record.accepted_distribution;
  std::vector<double> distribution;
  double reach = 1.0;
  for (const DraftRecord& draft : record.drafts) {
    const double rate = std::min(1.0, draft.ratio);
    distribution.push_back(reach * (1.0 - rate));
    reach *= rate;
  }
  distribution.push_back(reach);
  return distribution;
}

// Solves a x = b for a symmetric positive definite a [m, m] and returns b^T x: Cholesky, a and b are used up.
double quadratic_form(std::vector<double> a, std::vector<double> b) {
  const std::size_t m = b.size();
  double sum = 0.0;
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double entry = a[i * m + j];
      for (std::size_t k = 0; k < j; ++k) entry -= a[i * m + k] * a[j * m + k];
      a[i * m + j] = i == j ? std::sqrt(entry) : entry / a[j * m + j];
    }
    for (std::size_t k = 0; k < i; ++k) b[i] -= a[i * m + k] * b[k];
    b[i] /= a[i * m + i];
    sum += b[i] * b[i];
  }
  return sum;
}

struct AcceptedCounts {
  std::vector<double> observed;    // [categories]
  std::vector<double> expected;    // [categories]
  std::vector<double> covariance;  // [categories, categories]
  std::int64_t n = 0;
};

// Counts with the numbers accepted mapped to categories.
AcceptedCounts count_accepted(std::span<const StepRecord> records, const std::vector<std::size_t>& category,
                              std::size_t categories) {
  AcceptedCounts counts{std::vector<double>(categories, 0.0), std::vector<double>(categories, 0.0),
                        std::vector<double>(categories * categories, 0.0)};
  for (const StepRecord& record : records) {
    const std::vector<double> fine = accepted_distribution(record);
    if (fine.size() < 2) continue;
    std::vector<double> distribution(categories, 0.0);
    for (std::size_t i = 0; i < fine.size(); ++i) distribution[category[i]] += fine[i];
    counts.observed[category[record.accepted]] += 1.0;
    ++counts.n;
    for (std::size_t i = 0; i < categories; ++i) {
      counts.expected[i] += distribution[i];
      for (std::size_t j = 0; j < categories; ++j)
        counts.covariance[i * categories + j] += (i == j ? distribution[i] : 0.0) - distribution[i] * distribution[j];
    }
  }
  return counts;
}

// Joins neighbouring numbers until each category has the variance that the approximation needs; a rest joins the last.
std::pair<std::vector<std::size_t>, std::size_t> accepted_categories(std::span<const StepRecord> records,
                                                                     std::size_t numbers) {
  std::vector<double> variance(numbers, 0.0);
  for (const StepRecord& record : records) {
    const std::vector<double> distribution = accepted_distribution(record);
    for (std::size_t i = 0; i < distribution.size(); ++i) variance[i] += distribution[i] * (1.0 - distribution[i]);
  }
  std::vector<std::size_t> category(numbers, 0);
  std::size_t current = 0;
  double in_category = 0.0;
  for (std::size_t i = 0; i < numbers; ++i) {
    category[i] = current;
    in_category += variance[i];
    if (in_category < kVarianceMin) continue;
    ++current;
    in_category = 0.0;
  }
  const std::size_t categories = std::max<std::size_t>(1, current);
  for (std::size_t& c : category) c = std::min(c, categories - 1);
  return {category, categories};
}

std::vector<TestResult> num_accepted_test(std::span<const StepRecord> records) {
  std::size_t numbers = 1;
  for (const StepRecord& record : records) numbers = std::max(numbers, accepted_distribution(record).size());
  const auto [category, categories] = accepted_categories(records, numbers);
  if (categories < 2) return {};
  const AcceptedCounts counts = count_accepted(records, category, categories);
  TestResult test;
  test.name = "num_accepted";
  test.statistic_name = "X^2 with exact covariance";
  test.unit = "steps";
  test.n = counts.n;
  test.df = static_cast<std::int64_t>(categories) - 1;
  // The counts sum to n, so one of them says nothing new: the first one is left out.
  const std::size_t m = categories - 1;
  std::vector<double> covariance(m * m);
  std::vector<double> difference(m);
  double distance = 0.0;
  for (std::size_t i = 0; i < categories; ++i) {
    distance += (std::abs(counts.observed[i] - counts.expected[i]) -
                 mean_absolute_deviation(counts.covariance[i * categories + i])) /
                2.0;
    const auto first = static_cast<std::int64_t>(std::find(category.begin(), category.end(), i) - category.begin());
    test.worst_cells.push_back({{{"num_accepted", first}}, counts.observed[i], counts.expected[i]});
    if (i == 0) continue;
    difference[i - 1] = counts.observed[i] - counts.expected[i];
    for (std::size_t j = 1; j < categories; ++j)
      covariance[(i - 1) * m + (j - 1)] = counts.covariance[i * categories + j];
  }
  test.statistic = quadratic_form(std::move(covariance), std::move(difference));
  // Rates of 0 and 1 alone can tie categories together; then there is no such test.
  if (!std::isfinite(test.statistic)) return {};
  test.p_value = chi_squared_p_value(test.statistic, *test.df);
  test.estimated_tv = std::max(0.0, distance / static_cast<double>(test.n));
  keep_worst(test.worst_cells);
  return {std::move(test)};
}

}  // namespace

std::vector<PositionAudit> acceptance_by_position(std::span<const StepRecord> records) {
  std::vector<PositionAudit> positions;
  for (const StepRecord& record : records) {
    if (record.impossible_draft) continue;
    for (std::size_t i = 0; i < record.drafts.size() && i <= record.accepted; ++i) {
      if (positions.size() <= i) positions.resize(i + 1);
      ++positions[i].reached;
      positions[i].accepted += i < record.accepted ? 1 : 0;
      positions[i].expected_rate += std::min(1.0, record.drafts[i].ratio);
      positions[i].expected_by_rows += record.drafts[i].accept_by_row;
    }
  }
  for (PositionAudit& position : positions) {
    position.interval = clopper_pearson(position.accepted, position.reached, kPositionLevel);
    position.expected_rate /= static_cast<double>(position.reached);
    position.expected_by_rows /= static_cast<double>(position.reached);
  }
  return positions;
}

std::vector<TestResult> acceptance_tests(std::span<const StepRecord> records) {
  std::size_t positions = 0;
  for_each_decision(records, [&](const Decision& decision) {
    positions = std::max(positions, static_cast<std::size_t>(decision.position) + 1);
  });
  std::vector<TestResult> tests = certain_decisions(records);
  const auto by_position = rate_cells(records, positions, "position", [](const Decision& decision) {
    return static_cast<std::size_t>(decision.position);
  });
  const auto by_rate = rate_cells(records, kRateBins, "rate_tenth", [](const Decision& decision) {
    return static_cast<std::size_t>(decision.rate * static_cast<double>(kRateBins));
  });
  append(tests, rate_test("acceptance_by_position", by_position));
  append(tests, rate_test("acceptance_by_rate", by_rate));
  append(tests, num_accepted_test(records));
  return tests;
}

}  // namespace draftproof
