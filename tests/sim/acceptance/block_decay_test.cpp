#include "sim/acceptance/block_decay.hpp"

#include "sim/acceptance/position_rates.hpp"
#include "sim/acceptance/rates.hpp"
#include "tests/sim/acceptance/sampled_acceptance.hpp"
#include "tests/support/test.hpp"

TEST_CASE("a draft within the block fares as without it, one beyond is never accepted further") {
  const auto level = std::make_shared<PositionRates>(std::vector<double>{0.8}, 6, "test");
  const BlockDecay model(level, 7, 0.9);
  CHECK(model.survival(7, 7) == level->survival(7, 7));
  int shorter = 0;
  for (std::int32_t place = 1; place < 2000; ++place) {
    AcceptanceState a = model.begin(3);
    AcceptanceState b = level->begin(3);
    CHECK(model.accepted(a, {place, place}, 7, 7) == level->accepted(b, {place, place}, 7, 7));
    const std::int32_t beyond = model.accepted(a, {place, place}, 9, 9);
    CHECK(beyond <= level->accepted(b, {place, place}, 9, 9));
    shorter += beyond < level->accepted(b, {place, place}, 9, 9) ? 1 : 0;
  }
  CHECK(shorter > 200);
}

// Rates of 0.5 fall to 0.5 x 0.8^2 = 0.32 with two drafts beyond a block of 3 (by hand).
TEST_CASE("every draft beyond the block multiplies the rates of all slots, and is sampled so") {
  const auto level = std::make_shared<PositionRates>(std::vector<double>{0.5}, 6, "test");
  const BlockDecay model(level, 3, 0.8);
  const std::vector<double> survival = model.survival(5, 5);
  CHECK(survival[0] == Approx(0.32));
  CHECK(survival[4] == Approx(0.32 * 0.32 * 0.32 * 0.32 * 0.32));
  CHECK(follows(accepted_counts(model, 5, 5, 50'000), lengths_of(survival)));
  CHECK_FALSE(follows(accepted_counts(model, 5, 5, 50'000), lengths_of(level->survival(5, 5))));
}

// Lengths of DeepSeek-V4-Pro-0813 (InferenceX): 5.24 at 7 drafts, 4.95 at 8.
TEST_CASE("the acceptance length falls from 7 drafts to 8 where the head was trained for 7") {
  const std::vector<double> measured{0.94, 0.87, 0.77, 0.59, 0.57, 0.38, 0.12};
  const auto rates = std::make_shared<PositionRates>(conditional_of(measured, "test"), 6, "test");
  const BlockDecay model(rates, 7, 0.965);
  CHECK(acceptance_length_of(model.survival(7, 7)) == Approx(5.24));
  CHECK(acceptance_length_of(model.survival(8, 8)) == Approx(4.95).epsilon(0.03));
  CHECK(acceptance_length_of(rates->survival(8, 8)) > 5.24);
}
