#include "sim/acceptance/position_rates.hpp"

#include "sim/acceptance/rates.hpp"
#include "tests/sim/acceptance/sampled_acceptance.hpp"
#include "tests/support/test.hpp"

TEST_CASE("a constant rate gives (1 - a^(K+1)) / (1 - a) tokens a step, and is sampled as such") {
  for (const double a : {0.3, 0.8}) {
    const PositionRates model(std::vector<double>{a}, 7, "test");
    for (const std::int32_t k : {1, 5, 12}) {
      const std::vector<double> survival = model.survival(k, k);
      CHECK(acceptance_length_of(survival) == Approx((1.0 - std::pow(a, k + 1)) / (1.0 - a)));
      CHECK(follows(accepted_counts(model, k, k, 50'000), lengths_of(survival), 6));
    }
  }
  // The test can fail: another rate is refused.
  const PositionRates model(std::vector<double>{0.8}, 7, "test");
  CHECK_FALSE(follows(accepted_counts(model, 5, 5, 50'000), lengths_of(survival_of(std::vector<double>(5, 0.78)))));
}

TEST_CASE("rates by position are conditional, and the last one holds behind it") {
  const std::vector<double> rates{0.782, 0.63, 0.44};
  const PositionRates model(rates, 1, "test");
  const std::vector<double> survival = model.survival(5, 5);
  CHECK(survival[0] == 0.782);
  CHECK(survival[2] == Approx(0.782 * 0.63 * 0.44));
  CHECK(survival[4] == Approx(0.782 * 0.63 * 0.44 * 0.44 * 0.44));
  CHECK(follows(accepted_counts(model, 5, 5, 50'000), lengths_of(survival)));
}

TEST_CASE("rates of 0 and 1 reject and accept every draft") {
  const PositionRates all(std::vector<double>{1.0}, 3, "test");
  const PositionRates none(std::vector<double>{0.0}, 3, "test");
  CHECK(accepted_counts(all, 64, 64, 1000).back() == 1000);
  CHECK(accepted_counts(none, 4, 4, 1000).front() == 1000);
  CHECK(accepted_counts(all, 0, 0, 10).front() == 10);
}

TEST_CASE("the same request and place give the same answer in any order, and a longer draft only adds to it") {
  const PositionRates model(std::vector<double>{0.85}, 11, "test");
  TestRandom random(5);
  for (int trial = 0; trial < 2000; ++trial) {
    const auto request = static_cast<std::uint64_t>(random.below(50));
    const auto output_len = static_cast<std::int32_t>(random.below(1000));
    AcceptanceState state = model.begin(request);
    AcceptanceState another = model.begin(request);
    const std::int32_t of_eight = model.accepted(state, {output_len, 17}, 8, 8);
    model.accepted(another, {output_len + 3, 20}, 4, 4);
    CHECK(model.accepted(another, {output_len, 2000}, 8, 8) == of_eight);
    CHECK(model.accepted(another, {output_len, 17}, 3, 3) == std::min(of_eight, 3));
  }
  // Other seeds, requests and places give other answers.
  const PositionRates other(std::vector<double>{0.85}, 12, "test");
  int equal = 0;
  for (std::uint64_t request = 0; request < 1000; ++request) {
    AcceptanceState a = model.begin(request);
    AcceptanceState b = other.begin(request);
    equal += model.accepted(a, {1, 1}, 64, 64) == other.accepted(b, {1, 1}, 64, 64) ? 1 : 0;
  }
  CHECK(equal < 200);
}

TEST_CASE("rates and drafts outside their range are refused in one sentence") {
  CHECK(error_of(ErrorKind::usage, [] {
          PositionRates(std::vector<double>{0.5, 1.2}, 0, "option");
        }) == "option: rate 2 is 1.200000; expected a number in [0, 1]");
  CHECK(error_of(ErrorKind::usage, [] { PositionRates(std::vector<double>{}, 0, "option"); }) ==
        "option: has no rate; expected one or more");
  const PositionRates model(std::vector<double>{0.5}, 0, "test");
  AcceptanceState state = model.begin(0);
  CHECK_THROWS_WITH(model.accepted(state, {}, 65, 65), Contains("65 nodes on 65 levels"));
  CHECK_THROWS_WITH(model.accepted(state, {}, 300, 4), Contains("at most 256 nodes"));
  CHECK_THROWS_WITH(model.survival(3, 4), Contains("a node for every level"));
}
