#include "sim/serving/planning_cost.hpp"

#include "engine/scheduler/step_cost.hpp"
#include "tests/support/test.hpp"

namespace {

LinearCost linear() {
  LinearCost cost;
  cost.fixed_ns = 5e6;
  cost.row_ns = 21e3;
  cost.kv_token_ns = 39.3;
  cost.draft_pass_ns = 3e5;
  cost.draft_kv_token_ns = 2.4;
  cost.engine_ns = 1e6;
  cost.speculation_ns = 2e5;
  return cost;
}

// Counts how often the model is asked.
struct Counting final : StepCost {
  mutable int asked = 0;
  LinearCost cost = linear();
  double target_ns(const PassLoad& load) const override {
    ++asked;
    return cost.target_ns(load);
  }
  double draft_ns(const DraftLoad& load) const override {
    ++asked;
    return cost.draft_ns(load);
  }
  double overhead_ns(std::int64_t requests, const DraftLoad& load) const override {
    return cost.overhead_ns(requests, load);
  }
};

}  // namespace

TEST_CASE(
    "the cost that a policy plans with is the model's at the batch's context; lines are exact of a linear model") {
  const LinearCost cost = linear();
  PlanningCost planning(cost, 8, false);
  for (const double context : {0.0, 500.0, 505.0, 2000.0}) {
    planning.set_context(context);
    const double taken = context == 505.0 ? 500.0 : context;  // too little more to count
    for (const std::int64_t batch : {1, 5, 69, 64, 5})
      for (const std::int64_t rows : {batch, batch + 3, batch * 5, batch * 9 + 2048}) {
        CHECK(planning.target_ns(planned_pass(rows, batch)) ==
              Approx(5e6 + 21e3 * static_cast<double>(rows) + 39.3 * taken * static_cast<double>(batch)));
        CHECK(planning.overhead_ns(batch, {}) == Approx(1e6));
        CHECK(planning.overhead_ns(batch, planned_drafting(3, batch)) == Approx(1.2e6));
        CHECK(planning.draft_ns(planned_drafting(3, batch)) ==
              Approx(3 * (3e5 + 2.4 * taken * static_cast<double>(batch))));
      }
  }
  CHECK(PlanningCost(cost, 8, true).draft_ns(planned_drafting(5, 4)) == Approx(3e5));
}

TEST_CASE("a policy that decides again and again asks the cost model a few times") {
  const Counting cost;
  PlanningCost planning(cost, 8, false);
  planning.set_context(1000.0);
  for (int decision = 0; decision < 100; ++decision)
    for (std::int64_t rows = 32; rows <= 32 * 9; ++rows) {
      planning.target_ns(planned_pass(rows, 32));
      planning.draft_ns(planned_drafting(static_cast<std::int32_t>(rows % 9), 32));
    }
  CHECK(cost.asked < 40);
}
