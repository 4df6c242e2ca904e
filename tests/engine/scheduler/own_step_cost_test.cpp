#include "engine/scheduler/own_step_cost.hpp"

#include "tests/support/test.hpp"

namespace {

std::shared_ptr<const StepCost> expected() {
  auto cost = std::make_shared<LinearCost>();
  cost->fixed_ns = 1e6;
  cost->row_ns = 1e5;
  cost->draft_pass_ns = 7.0;
  cost->engine_ns = 11.0;
  return cost;
}

double target_ns(const OwnStepCost& cost, std::int64_t rows) {
  return cost.target_ns(planned_pass(rows, 1));
}

TEST_CASE("own costs are the expected ones until a step is timed, and where times are not trusted") {
  OwnStepCost cost(expected());
  const auto are_expected = [&] {
    CHECK(target_ns(cost, 4) == 1.4e6);
    CHECK(cost.draft_ns(planned_drafting(3, 2)) == 21.0);
    CHECK(cost.overhead_ns(2, {}) == 11.0);
  };
  are_expected();
  CHECK(!cost.knows(4));
  for (int i = 0; i < 3; ++i) cost.observe(4, 1, planned_drafting(3, 1), 5'000'000, 1'000'000);
  CHECK(cost.knows(4));
  CHECK(!cost.knows(8));
  cost.trust(false);
  are_expected();
  cost.trust(true);
  CHECK(target_ns(cost, 4) == Approx(4e6));
}

TEST_CASE("own costs are what was timed at that size, and the expected shape behind the nearest size elsewhere") {
  OwnStepCost cost(expected());
  for (int i = 0; i < 200; ++i) {
    cost.observe(4, 4, {}, 2 * 1'400'000, 0);
    cost.observe(64, 4, {}, 5 * 7'400'000, 0);
  }
  CHECK(target_ns(cost, 4) == Approx(2 * 1.4e6).epsilon(1e-3));
  CHECK(target_ns(cost, 1) == Approx(2 * 1.1e6).epsilon(1e-2));
  CHECK(target_ns(cost, 64) == Approx(5 * 7.4e6).epsilon(1e-3));
  CHECK(target_ns(cost, 1000) == Approx(5 * 101e6).epsilon(1e-2));
  CHECK(target_ns(cost, 16) > 2.2 * 2.6e6);
  CHECK(target_ns(cost, 16) < 4.8 * 2.6e6);
  // Newer steps displace older ones, and one that something else delayed counts as three at most.
  cost.observe(4, 4, {}, 1'000'000'000, 0);
  CHECK(target_ns(cost, 4) < 2.1 * 1.4e6);
  for (int i = 0; i < 400; ++i) cost.observe(4, 4, {}, 3 * 1'400'000, 0);
  CHECK(target_ns(cost, 4) == Approx(3 * 1.4e6).epsilon(0.01));
  CHECK(cost.age(4) == 0);
  CHECK(cost.age(64) == 401);
}

TEST_CASE("a drafting pass costs what was timed beyond what the drafter does in every step") {
  OwnStepCost cost(expected());
  for (int i = 0; i < 1000; ++i) cost.observe(8, 8, {}, 2'000'000, 80'000);
  for (int i = 0; i < 10; ++i) cost.observe(32, 8, planned_drafting(3, 8), 4'380'000, 380'000);
  CHECK(cost.draft_ns(planned_drafting(3, 8)) == Approx(300'000).epsilon(1e-3));
  CHECK(cost.draft_ns(planned_drafting(1, 8)) == Approx(100'000).epsilon(1e-3));
  CHECK(cost.draft_ns({}) == 0.0);
  CHECK(target_ns(cost, 32) == Approx(4e6).epsilon(1e-3));
  // Fewer requests: by the shape of the target's passes, 1.1 to 1.8.
  CHECK(cost.draft_ns(planned_drafting(1, 1)) == Approx(100'000 * 1.1 / 1.8).epsilon(0.01));
}

}  // namespace
