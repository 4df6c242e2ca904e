// Tests of acceptance decisions against statistics worked out by hand, on records made up for them.
#include "exactness/audit/acceptance.hpp"

#include "exactness/statistics/chi_squared.hpp"
#include "tests/exactness/audit/found_tests.hpp"
#include "tests/support/test.hpp"

namespace {

// `count` steps whose drafts have these ratios, of which the first `accepted` were accepted.
void add(std::vector<StepRecord>& records, int count, const std::vector<double>& ratios, std::uint32_t accepted) {
  StepRecord record;
  record.ratio_tolerance = 1e-5;
  record.accepted = accepted;
  for (const double ratio : ratios) {
    DraftRecord draft;
    draft.ratio = ratio;
    record.drafts.push_back(draft);
  }
  for (int i = 0; i < count; ++i) records.push_back(record);
}

TEST_CASE("one draft of one rate is a binomial count") {
  std::vector<StepRecord> records;
  add(records, 350, {0.3}, 1);
  add(records, 650, {0.3}, 0);
  const std::vector<TestResult> tests = acceptance_tests(records);
  // 350 of 1000 where 300 are expected: 50^2 / (1000 * 0.3 * 0.7), in all three tests.
  for (const char* name : {"acceptance_by_position", "acceptance_by_rate", "num_accepted"}) {
    INFO(name);
    const TestResult test = test_of(tests, name);
    CHECK(test.statistic == Approx(2500.0 / 210.0));
    CHECK(test.df == 1);
    CHECK(test.n == 1000);
    CHECK(test.p_value == Approx(chi_squared_p_value(2500.0 / 210.0, 1)));
  }
}

TEST_CASE("with equal rates the numbers accepted are multinomial and their statistic is Pearson's") {
  // Rates 0.6 and 0.5: the distribution of the number accepted is (0.4, 0.3, 0.3).
  std::vector<StepRecord> records;
  add(records, 430, {0.6, 0.5}, 0);
  add(records, 260, {0.6, 0.5}, 1);
  add(records, 310, {0.6, 0.5}, 2);
  const TestResult test = test_of(acceptance_tests(records), "num_accepted");
  const ChiSquaredTest pearson =
      goodness_of_fit(std::vector<std::int64_t>{430, 260, 310}, std::vector<double>{0.4, 0.3, 0.3});
  CHECK(test.statistic == Approx(pearson.statistic).epsilon(1e-12));
  CHECK(test.df == 2);
}

TEST_CASE("with unequal rates the variance is that of the sum of coins and not of one count") {
  // 500 coins of rate 0.9 and 500 of 0.1: 500 expected with variance 90, where equal coins would have 250.
  std::vector<StepRecord> records;
  add(records, 460, {0.9}, 1);
  add(records, 40, {0.9}, 0);
  add(records, 60, {0.1}, 1);
  add(records, 440, {0.1}, 0);
  const std::vector<TestResult> tests = acceptance_tests(records);
  CHECK(test_of(tests, "num_accepted").statistic == Approx(20.0 * 20.0 / 90.0));
  CHECK(test_of(tests, "acceptance_by_position").statistic == Approx(20.0 * 20.0 / 90.0));
  // Halves by rate, each for itself: 10 too many of either, variance 45 each.
  CHECK(test_of(tests, "acceptance_by_rate").statistic == Approx(100.0 / 45.0 + 100.0 / 45.0));
  CHECK(test_of(tests, "acceptance_by_rate").df == 2);
}

TEST_CASE("a rejection of a certain draft is a finding unless rounding can explain it") {
  std::vector<StepRecord> records;
  add(records, 100, {1.5}, 1);
  add(records, 1, {1.5}, 0);
  add(records, 1, {1.000001}, 0);
  const TestResult certain = test_of(acceptance_tests(records), "acceptance_certain");
  CHECK(certain.n == 101);
  CHECK(certain.statistic == 1.0);
  CHECK(certain.p_value == 0.0);
  CHECK(certain.worst_cells.at(0).label() == "position 0");
  // Nothing is in doubt, so there are no other tests.
  CHECK(acceptance_tests(records).size() == 1);
}

TEST_CASE("positions have their rates and their expected rates over what was reached") {
  std::vector<StepRecord> records;
  add(records, 30, {0.5, 0.25}, 0);
  add(records, 60, {0.5, 0.25}, 1);
  add(records, 10, {2.0, 0.75}, 2);
  StepRecord impossible;
  impossible.impossible_draft = true;
  impossible.drafts.resize(2);
  records.push_back(impossible);
  const std::vector<PositionAudit> positions = acceptance_by_position(records);
  REQUIRE(positions.size() == 2);
  CHECK(positions[0].reached == 100);
  CHECK(positions[0].accepted == 70);
  CHECK(positions[0].expected_rate == Approx(0.55));  // 90 of 0.5, 10 of 1
  CHECK(positions[1].reached == 70);
  CHECK(positions[1].accepted == 10);
  CHECK(positions[1].expected_rate == Approx((60 * 0.25 + 10 * 0.75) / 70));
  CHECK(positions[1].interval.low < 1.0 / 7.0);
  CHECK(positions[1].interval.high > 1.0 / 7.0);
  CHECK(acceptance_by_position({}).empty());
  CHECK(acceptance_tests({}).empty());
}

}  // namespace
