#include "sim/acceptance/extrapolation.hpp"

#include "sim/acceptance/rates.hpp"
#include "sim/acceptance/tree_survival.hpp"
#include "sim/csv.hpp"
#include "sim/import/rates_csv.hpp"
#include "tests/support/test.hpp"

TEST_CASE("measured rates are kept, and the last conditional rate holds behind them") {
  const std::vector<double> measured{0.8, 0.6, 0.3};
  CHECK(extrapolate_rates(measured, 2).survival == std::vector<double>{0.8, 0.6});
  const ExtrapolatedSurvival longer = extrapolate_rates(measured, 5);
  CHECK(longer.survival[4] == Approx(0.3 * 0.5 * 0.5));
  CHECK(longer.length_spread > 0.0);
  CHECK(extrapolate_rates(measured, 3).length_spread == 0.0);
  CHECK(extrapolate_rates(std::vector<double>{0.5, 0.0}, 4).survival == std::vector<double>{0.5, 0.0, 0.0, 0.0});
  CHECK(extrapolate_rates(std::vector<double>{1.0}, 3).survival == std::vector<double>{1.0, 1.0, 1.0});
}

TEST_CASE("an acceptance length alone gives rates that add up to it, for chains and trees") {
  for (const double length : {1.3, 2.6, 4.9}) {
    CHECK(acceptance_length_of(extrapolate_length(length, 5, 5, "test").survival) == Approx(length).epsilon(1e-6));
    CHECK(acceptance_length_of(extrapolate_length(length, 5, 3, "test").survival) < length);
    const std::vector<double> chain = extrapolate_tree_length(length, 25, 5, 5, "test").survival;
    CHECK(acceptance_length_of(position_survivals(conditional_of(chain, "test"), 5)[25]) ==
          Approx(length).epsilon(1e-6));
  }
  CHECK(error_of(ErrorKind::usage, [] { extrapolate_length(4.5, 3, 5, "--acceptance-length"); }) ==
        "--acceptance-length: the acceptance length is 4.500000 with 3 drafts; expected a number from 1 (nothing "
        "accepted) to drafts + 1, since the bonus token counts");
}

namespace {

struct Errors {
  double median, p90;
  std::size_t rows;
};

Errors errors_of(std::vector<double> errors) {
  for (double& e : errors) e = std::abs(e);
  std::ranges::sort(errors);
  return {errors[errors.size() / 2], errors[errors.size() * 9 / 10], errors.size()};
}

// Survivals of a published table, at most 20 rows a source.
std::vector<std::vector<double>> published_survivals(const std::string& path) {
  const CsvTable table = read_csv(path);
  const int source = table.column("source_id");
  std::map<std::string, int> of_source;
  std::vector<std::vector<double>> survivals;
  for (const CsvRow& csv : table.rows) {
    CsvTable one;
    one.columns = table.columns;
    one.rows = {csv};
    try {
      const RateRow row = read_rate_rows(one, path).front();
      if (row.window.survival.size() < 3 || row.window.survival[0] < 0.05) continue;
      if (++of_source[csv.fields[static_cast<std::size_t>(source)]] <= 20) survivals.push_back(row.window.survival);
    } catch (const Error&) {  // rates by rank, and lists that were logged cut short
    }
  }
  return survivals;
}

}  // namespace

TEST_CASE("published rates are predicted from their length or first positions within the errors that are promised") {
  const auto path = shared_data("per_position.csv");
  if (!path) return;
  const auto survivals = published_survivals(*path);
  using Predict = std::function<ExtrapolatedSurvival(const std::vector<double>& known)>;
  const auto check = [&](std::size_t from, std::size_t to, double median, double p90, const Predict& predict) {
    std::vector<double> errors;
    std::int64_t within = 0;
    for (const std::vector<double>& s : survivals) {
      if (s.size() < std::max(from, to)) continue;
      const ExtrapolatedSurvival predicted = predict({s.begin(), s.begin() + static_cast<std::ptrdiff_t>(from)});
      const double measured = acceptance_length_of(std::span(s).first(to));
      errors.push_back(acceptance_length_of(predicted.survival) / measured - 1.0);
      within += std::abs(std::log1p(errors.back())) <= 1.28 * predicted.length_spread ? 1 : 0;
    }
    const Errors found = errors_of(errors);
    INFO("from " << from << " to " << to << ": median " << found.median << ", p90 " << found.p90 << ", rows "
                 << found.rows << ", within the 80 % band " << within);
    CHECK(found.rows >= 25);
    CHECK(found.median <= median);
    CHECK(found.p90 <= p90);
    if (to > from) CHECK(static_cast<double>(within) >= 0.75 * static_cast<double>(found.rows));
  };
  const auto by_rates = [](std::int32_t to) {
    return [to](const std::vector<double>& known) { return extrapolate_rates(known, to); };
  };
  const auto by_length = [](std::int32_t to) {
    return [to](const std::vector<double>& known) {
      return extrapolate_length(acceptance_length_of(known), static_cast<std::int32_t>(known.size()), to, "test");
    };
  };
  check(3, 3, 1e-12, 1e-12, by_rates(3));
  check(3, 5, 0.01, 0.03, by_rates(5));
  check(5, 8, 0.02, 0.05, by_rates(8));
  check(3, 5, 0.05, 0.12, by_length(5));
  check(5, 3, 0.05, 0.08, by_length(3));
  check(5, 8, 0.05, 0.09, by_length(8));
  check(1, 3, 0.05, 0.13, by_rates(3));
  check(1, 5, 0.09, 0.25, by_rates(5));
}
