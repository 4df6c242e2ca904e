#include "sim/serving/static_batch.hpp"

#include "sim/acceptance/acceptance_choice.hpp"
#include "sim/serving/simulation.hpp"
#include "tests/sim/serving/constant_models.hpp"
#include "tests/support/test.hpp"

namespace {}  // namespace

TEST_CASE("the static batch is the serving simulation without queue and prompts, nanosecond for nanosecond") {
  LinearCost cost;
  cost.fixed_ns = 5e6;
  cost.row_ns = 41'000.0;
  cost.kv_token_ns = 39.3;
  cost.draft_pass_ns = 3e5;
  cost.engine_ns = 1e6;
  WorkloadOptions workload;
  workload.num_requests = 90;
  workload.arrivals.kind = ArrivalKind::closed;
  workload.arrivals.concurrency = 16;
  workload.prompt.mean = 1.0;
  workload.output = {LengthKind::lognormal, 120.0, 0.8, 1, 1000};
  const ConstantAcceptance constant(0.75);
  const auto confident = make_acceptance("published:DSpark+confidence", 3, "test");
  for (const std::int32_t tree_depth : {0, 4})
    for (const char* const speculation :
         {"off", "fixed:5", "threshold:max=6", "schedule:1=5,8=2,16=1", "goodput:max=5", "tree:nodes=9,budget=160",
          "confidence:threshold=0.4", "confidence:max=8,threshold=0.1,budget=40"}) {
      const bool by_confidence = std::string_view(speculation).starts_with("confidence");
      if (by_confidence && tree_depth > 0) continue;
      const AcceptanceModel& acceptance = by_confidence ? *confident : constant;
      StaticBatchOptions options{16, parse_speculation(speculation, "test"), {tree_depth == 4, tree_depth, 0.0}};
      const StaticBatchResult fast = run_static_batch(Workload(workload, 3), cost, acceptance, options);
      ServingOptions serving;
      serving.scheduler.running_max = 16;
      serving.speculation = options.speculation;
      serving.drafting = options.drafting;
      const ServingResult full = simulate(Workload(workload, 3), cost, acceptance, serving);
      INFO(speculation << ", depth " << tree_depth);
      CHECK(fast.steps == full.metrics.steps);
      CHECK(fast.acceptance == full.metrics.acceptance);
      CHECK(fast.draft_ns == full.metrics.draft_ns);
      CHECK(fast.verify_ns == full.metrics.verify_ns);
      CHECK(fast.total_ns() == full.metrics.busy_ns);
      CHECK(fast.requests == 90);
      if (by_confidence) CHECK(fast.acceptance.draft_tokens < 7 * fast.acceptance.steps);
    }
}

TEST_CASE("a batch of none is refused") {
  const std::string message = error_of(ErrorKind::usage, [] {
    run_static_batch(Workload({}, 1), LinearCost(), ConstantAcceptance(0.5), {0, {}, {}});
  });
  CHECK(message == "batch: it is 0; expected 1 or more");
}
