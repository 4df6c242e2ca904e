#include "sim/acceptance/context_decay.hpp"

#include "sim/acceptance/position_rates.hpp"
#include "sim/acceptance/rates.hpp"
#include "tests/sim/acceptance/sampled_acceptance.hpp"
#include "tests/support/test.hpp"

TEST_CASE("rates fall behind the context that a drafter was trained for, and only there") {
  const auto constant = std::make_shared<PositionRates>(std::vector<double>{0.8}, 6, "test");
  const ContextDecay model(constant, 2048, 4096);
  CHECK(model.survival(4, 4, 2048) == constant->survival(4, 4));
  for (std::int32_t place = 1; place < 500; ++place) {
    AcceptanceState a = model.begin(3);
    AcceptanceState b = constant->begin(3);
    CHECK(model.accepted(a, {place, 2000}, 5, 5) == constant->accepted(b, {place, 2000}, 5, 5));
    // Farther in, a draft is never worth more, since it meets the same words.
    CHECK(model.accepted(a, {place, 9000}, 5, 5) <= constant->accepted(b, {place, 9000}, 5, 5));
  }
  // A half at 2048 + 4096 tokens, a quarter twice as far: conditional rates 0.4 and 0.2.
  CHECK(model.factor(6144) == Approx(0.5));
  CHECK(conditional_of(model.survival(3, 3, 10'240), "test")[2] == Approx(0.2));
  CHECK(model.factor(1 << 28) == 0.0);
}

TEST_CASE("thinned drafts are sampled from their survival") {
  const auto constant = std::make_shared<PositionRates>(std::vector<double>{0.9}, 6, "test");
  const ContextDecay model(constant, 1000, 3000);
  CHECK(follows(accepted_counts(model, 8, 8, 50'000, 0, 3000), lengths_of(model.survival(8, 8, 3001))));
}
