// Drafting while the target verifies, against counts by hand and against the simulator.
#include "sim/cost/drafting_ahead.hpp"

#include "sim/cost/step_ratio.hpp"
#include "sim/serving/simulation.hpp"
#include "tests/sim/serving/constant_models.hpp"
#include "tests/support/test.hpp"

namespace {

double share_of_ready(const DraftingAhead& ahead, const std::vector<double>& fan) {
  double ready = 0.0;
  const auto last = static_cast<int>(fan.size()) - 1;
  for (int k = 0; k <= last; ++k)
    ready += std::pow(ahead.rate, k) * (k < last ? 1.0 - ahead.rate : 1.0) *
             (1.0 - std::pow(fan[static_cast<std::size_t>(k)], -ahead.exponent));
  return ready;
}

// Passes of 10 ms, a draft pass of so many: K = 2 in 2 of them, ahead in 3.
ServingResult serve(DraftingAhead ahead, double draft_pass_ms, std::int32_t at_once, double rate = 0.6) {
  WorkloadOptions workload;
  workload.num_requests = 40 * at_once;
  workload.arrivals = {.kind = ArrivalKind::closed, .concurrency = at_once};
  workload.prompt = {LengthKind::constant, 16.0};
  workload.output = {LengthKind::constant, 400.0};
  LinearCost cost;
  cost.fixed_ns = 10e6;
  cost.draft_pass_ns = draft_pass_ms * 1e6;
  ServingOptions options;
  options.speculation = parse_speculation("fixed:2", "test");
  options.drafting.ahead = ahead;
  return simulate(Workload(workload, 3), cost, ConstantAcceptance(rate), options);
}

}  // namespace

TEST_CASE("outcomes are shared out as the hand count says, and no other way has more ready drafts") {
  const DraftingAhead ahead{.outcomes = 12.0, .exponent = 1.0, .rate = 0.5};
  const std::vector<double> fan = fan_outs(ahead, 2);
  // Weights are sqrt(1/2), 1/2, 1/2; the miss is the square of their sum over B.
  CHECK(fan[0] == Approx(12.0 / (1.0 + std::sqrt(2.0))));
  CHECK(fan[1] == Approx(fan[2]));
  CHECK(std::accumulate(fan.begin(), fan.end(), 0.0) == Approx(12.0));
  CHECK(ready_probability(ahead, {0.5, 0.25}) == Approx(1.0 - std::pow(1.0 + std::sqrt(0.5), 2.0) / 12.0));
  for (const DraftingAhead& other : {ahead, DraftingAhead{.outcomes = 40.0, .exponent = 0.7, .rate = 0.8}}) {
    const std::vector<double> best = fan_outs(other, 5);
    for (std::size_t from = 0; from < best.size(); ++from)
      for (std::size_t to = 0; to < best.size(); ++to) {
        std::vector<double> moved = best;
        moved[from] -= 0.05;
        moved[to] += 0.05;
        if (from != to) CHECK(share_of_ready(other, moved) < share_of_ready(other, best));
      }
  }
  // A measured share stands for every outcome; one outcome alone is always missed by the power law.
  CHECK(ready_probability({.outcomes = 3.0, .hit = 0.9}, {0.7, 0.2}) == Approx(0.9));
  CHECK(ready_probabilities({.outcomes = 2.0, .rate = 0.5}, 2) == std::vector<double>{0.0, 0.0, 0.0});
}

TEST_CASE("a request whose drafts are ready waits for the longer of verification and drafting, else for a backup too") {
  for (const double pass_ms : {3.0, 4.0}) {
    INFO("passes of " << pass_ms << " ms");
    const ServingResult result = serve({.outcomes = 4.0, .hit = 0.8}, pass_ms, 1);
    const auto asked = static_cast<double>(result.asked_drafts);
    const double ready = static_cast<double>(result.ready_drafts) / asked;
    CHECK(ready == Approx(0.8).margin(4.0 * std::sqrt(0.8 * 0.2 / asked)));
    // E[tokens] = 1 + a + a^2 = 1.96; in times of a verification T_p is 0.9 or 1.2, T_b 0.6 or 0.8.
    const double round_ms = 10.0 * (0.8 * std::max(1.0, 0.3 * pass_ms) + 0.2 * (1.0 + 0.2 * pass_ms));
    CHECK(result.throughput() == Approx(1960.0 / round_ms).epsilon(0.03));
    // Drafting first takes 2 passes and a verification.
    CHECK(serve({}, pass_ms, 1).throughput() == Approx(1960.0 / (10.0 + 2.0 * pass_ms)).epsilon(0.03));
  }
  // Every step takes 10 ms and the backup's passes: 6 ms where drafts were not ready, 3 for a request's last token.
  const ServingResult result = serve({.outcomes = 4.0, .hit = 0.8}, 3.0, 1);
  CHECK(result.metrics.busy_ns == 10'000'000 * result.metrics.steps + result.metrics.draft_ns);
  CHECK(static_cast<double>(result.metrics.draft_ns) ==
        Approx(6e6 * static_cast<double>(result.asked_drafts - result.ready_drafts)).margin(40 * 3e6));
}

TEST_CASE("without a backup a missed step yields one token, and a batch waits for the one that missed") {
  const ServingResult none = serve({.outcomes = 4.0, .hit = 0.8, .backup = false}, 3.0, 1);
  CHECK(none.metrics.busy_ns == 10'000'000 * none.metrics.steps);
  CHECK(none.metrics.acceptance.drafts == none.ready_drafts);
  // 0.8 x 1.96 + 0.2 x 1 tokens a step.
  CHECK(none.throughput() == Approx(176.8).epsilon(0.03));
  const ServingResult eight = serve({.outcomes = 4.0, .hit = 0.9}, 3.0, 8);
  const double step_ms = 10.0 + 6.0 * (1.0 - std::pow(0.9, 8.0));
  CHECK(eight.throughput() == Approx(8.0 * 1960.0 / step_ms).epsilon(0.04));
}

TEST_CASE("the step that predict takes is the one that the simulator runs") {
  LinearCost cost;
  cost.fixed_ns = 10e6;
  cost.draft_pass_ns = 3e6;
  const auto step_ms = [&](std::int64_t batch, double ready, bool backup = true) {
    const DraftingAhead ahead{.outcomes = 4.0, .hit = ready, .backup = backup};
    return 1e-6 * ahead_step_ns(cost, {batch, 100, false}, {2, 2}, DraftingKind::model, ahead, ready);
  };
  CHECK(step_ms(1, 0.8) == Approx(0.8 * 10.0 + 0.2 * 16.0));
  CHECK(step_ms(8, 0.9) == Approx(10.0 + 6.0 * (1.0 - std::pow(0.9, 8.0))));
  CHECK(step_ms(8, 0.9, false) == Approx(10.0));
  cost.draft_pass_ns = 4e6;
  CHECK(step_ms(1, 0.8) == Approx(0.8 * 12.0 + 0.2 * 18.0));
}

TEST_CASE("drafts ahead are one pass of the step's tokens and K of the outcomes, a drafter of one pass takes two") {
  const DraftingAhead ahead{.outcomes = 6.0, .hit = 0.5};
  DraftLoad load;
  add_drafts_ahead(load, ahead, 3, 100, false);
  add_drafts_ahead(load, ahead, 2, 50, false);
  CHECK(load.requests == 2);
  CHECK(load.passes == 4);
  CHECK(load.rows == 4 + 18 + 3 + 12);
  CHECK(load.kv_tokens == 150);
  DraftLoad one;
  add_drafts_ahead(one, ahead, 3, 100, true);
  CHECK(one.passes == 2);
}
