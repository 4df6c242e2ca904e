// The simulated server against what queueing theory says of it.
#include "sim/serving/simulation.hpp"
#include "tests/sim/serving/constant_models.hpp"
#include "tests/support/test.hpp"

namespace {

constexpr double kStepNs = 1e6;

// One request at a time; a request of n output tokens takes n steps.
ServingOptions single_server() {
  ServingOptions options;
  options.scheduler.running_max = 1;
  options.scheduler.context_len_max = 1 << 20;
  options.scheduler.num_blocks = 1 << 16;
  return options;
}

WorkloadOptions poisson(std::int64_t requests, double rate, LengthOptions output) {
  WorkloadOptions workload;
  workload.num_requests = requests;
  workload.arrivals.rate = rate;
  workload.prompt.mean = 1.0;
  workload.output = output;
  return workload;
}

ServingResult serve(const WorkloadOptions& workload, const ServingOptions& options, std::uint64_t seed,
                    double step_ns = kStepNs) {
  LinearCost cost;
  cost.fixed_ns = step_ns;
  return simulate(Workload(workload, seed), cost, ConstantAcceptance(0.0), options);
}

}  // namespace

// Pollaczek and Khinchine for constant service S: wait = rho S / (2 (1 - rho)). N = 400,000; the mean wait of so many
// has a standard error of 0.9 % at rho = 0.8 (the wait is correlated over about 1 / (1 - rho)^2 requests).
TEST_CASE("waiting times at constant service are those of M/D/1") {
  for (const double load : {0.3, 0.6, 0.8}) {
    const ServingResult result =
        serve(poisson(400'000, load * 1e9 / kStepNs, {LengthKind::constant, 1.0}), single_server(), 1);
    const double wait_ns = load * kStepNs / (2.0 * (1.0 - load));
    INFO("load " << load);
    CHECK(result.ttft.mean_ns - kStepNs == Approx(wait_ns).epsilon(0.03));
    CHECK(result.metrics.queue.mean_ns() == Approx(wait_ns).epsilon(0.03));
    CHECK(static_cast<double>(result.metrics.busy_ns) / static_cast<double>(result.metrics.last_end_ns) ==
          Approx(load).epsilon(0.01));
  }
}

// Exponential service of mean 1/mu: time in the system = 1 / (mu - lambda). Lengths are whole tokens, so service is
// geometric: E[S] = t/p, E[S^2] = t^2 (2 - p) / p^2 with p = 1 - exp(-1/mean), and the wait lambda E[S^2] / (2 (1 -
// rho)).
TEST_CASE("waiting times at exponential service are those of M/M/1") {
  constexpr double kMeanTokens = 40.0;
  constexpr double kTokenNs = 25'000.0;
  const double p = 1.0 - std::exp(-1.0 / kMeanTokens);
  const double service_ns = kTokenNs / p;
  const double load = 0.6;
  const double rate = load * 1e9 / service_ns;
  LengthOptions output{LengthKind::exponential, kMeanTokens};
  const ServingResult result = serve(poisson(120'000, rate, output), single_server(), 2, kTokenNs);
  const double wait_ns = rate * 1e-9 * kTokenNs * kTokenNs * (2.0 - p) / (p * p) / (2.0 * (1.0 - load));
  CHECK(result.metrics.queue.mean_ns() == Approx(wait_ns).epsilon(0.03));
  CHECK(result.e2e.mean_ns == Approx(wait_ns + service_ns).epsilon(0.03));
  CHECK(result.e2e.mean_ns == Approx(service_ns / (1.0 - load)).epsilon(0.04));  // as if service were continuous
}

TEST_CASE("Little's law holds between what the scheduler counts and how long requests stay") {
  ServingOptions options = single_server();
  options.scheduler.running_max = 16;
  options.speculation = parse_speculation("fixed:3", "test");
  LengthOptions output{LengthKind::lognormal, 60.0, 0.7};
  WorkloadOptions workload = poisson(20'000, 90.0, output);
  workload.arrivals.kind = ArrivalKind::gamma;
  workload.arrivals.variation = 2.0;
  LinearCost cost;
  cost.fixed_ns = 2e6;
  cost.row_ns = 20e3;
  const ServingResult result = simulate(Workload(workload, 3), cost, ConstantAcceptance(0.6), options);
  const double arrivals_per_ns =
      static_cast<double>(workload.num_requests) / static_cast<double>(result.metrics.last_end_ns);
  // Arrivals within a step are counted from the next one on: half a step of 2 ms in a stay of 90 ms and more.
  const double stay_ns = result.e2e.mean_ns -
                         0.5 * static_cast<double>(result.metrics.busy_ns) / static_cast<double>(result.metrics.steps);
  CHECK(result.requests_in_system == Approx(arrivals_per_ns * stay_ns).epsilon(0.01));
  CHECK(result.requests_in_system > 4.0);  // else the check would show little
}

// tokens per step = (1 - a^(K+1)) / (1 - a); its standard error over 1e5 steps is below 0.6 %.
TEST_CASE("tokens per step at a constant acceptance rate are those of the chain formula") {
  for (const double rate : {0.0, 0.3, 0.8, 1.0})
    for (const int drafts : {1, 4, 8}) {
      ServingOptions options = single_server();
      LinearCost cost;
      cost.fixed_ns = kStepNs;
      options.speculation.rule = SpeculationRule::fixed;
      options.speculation.num_drafts = drafts;
      WorkloadOptions workload = poisson(1, 1.0, {LengthKind::constant, 1e5});
      const ServingResult result = simulate(Workload(workload, 4), cost, ConstantAcceptance(rate), options);
      const double expected = rate == 1.0 ? drafts + 1.0 : (1.0 - std::pow(rate, drafts + 1)) / (1.0 - rate);
      INFO("a = " << rate << ", K = " << drafts);
      CHECK(result.metrics.tokens_per_step() == Approx(expected).epsilon(0.015));
      CHECK(result.metrics.acceptance_length() == Approx(expected).epsilon(0.015));
      if (rate == 0.0) CHECK(result.metrics.wasted_drafts() == result.metrics.acceptance.draft_tokens);
    }
}

TEST_CASE("requests that come one by one wait for nothing") {
  ServingOptions options = single_server();
  options.scheduler.running_max = 64;
  const ServingResult result = serve(poisson(2000, 0.5, {LengthKind::constant, 20.0}), options, 5);
  CHECK(result.ttft.p90_ns == static_cast<std::int64_t>(kStepNs));
  CHECK(result.tpot.p99_ns == static_cast<std::int64_t>(kStepNs));
  CHECK(result.inter_token.p50_ns == Approx(kStepNs).epsilon(0.002));
  CHECK(result.throughput() == Approx(0.5 * 20.0).epsilon(0.05));
}

TEST_CASE("a saturated server gives what a full batch gives, however many wait") {
  ServingOptions options = single_server();
  options.scheduler.running_max = 32;
  LinearCost cost;
  cost.fixed_ns = 5e6;
  cost.row_ns = 1e5;
  const ServingResult open =
      simulate(Workload(poisson(2000, 1e6, {LengthKind::constant, 100.0}), 6), cost, ConstantAcceptance(0.0), options);
  const double step_s = (5e6 + 32 * 1e5) * 1e-9;
  CHECK(open.throughput() == Approx(32 / step_s).epsilon(0.02));
  WorkloadOptions closed = poisson(2000, 1.0, {LengthKind::constant, 100.0});
  closed.arrivals.kind = ArrivalKind::closed;
  closed.arrivals.concurrency = 32;
  const ServingResult held = simulate(Workload(closed, 6), cost, ConstantAcceptance(0.0), options);
  CHECK(held.throughput() == Approx(32 / step_s).epsilon(0.02));
  CHECK(held.metrics.queue.mean_ns() == 0.0);
}

// Pools split a Poisson stream by lot, so that each server is M/D/1 at its own load. In turn at constant service is one
// queue before both, M/D/2, of which Cosmetatos (Operational Research Quarterly 26, 1975) has the mean wait within 1 %:
// 0.4916 S at a load of 0.7. At exponential service the fewest requests wait least.
TEST_CASE("servers in pools wait as M/D/1 does, in turn as M/D/2, and by the fewest requests least if lengths differ") {
  constexpr double kLoad = 0.7;
  const double wait_ns = kLoad * kStepNs / (2.0 * (1.0 - kLoad));
  WorkloadOptions workload = poisson(200'000, 2.0 * kLoad * 1e9 / kStepNs, {LengthKind::constant, 1.0});
  workload.companion_prompt_len = 1;
  workload.guided_share = 0.5;
  ServingOptions options = single_server();
  options.fleet = {2, Router::in_turn, 1};
  const ServingResult pools = serve(workload, options, 1);
  CHECK(pools.ttft_guided.mean_ns - kStepNs == Approx(wait_ns).epsilon(0.05));
  CHECK(pools.ttft_plain.mean_ns - kStepNs == Approx(wait_ns).epsilon(0.05));
  CHECK(pools.queue_mean_ns == Approx(wait_ns).epsilon(0.05));
  CHECK(pools.ttft_guided.count + pools.ttft_plain.count == 200'000);
  CHECK(static_cast<double>(pools.ttft_guided.count) == Approx(100'000).epsilon(0.01));
  options.fleet.guided_servers = 0;
  CHECK(serve(workload, options, 1).queue_mean_ns == Approx(0.4916 * kStepNs).epsilon(0.03));
  WorkloadOptions differ = poisson(20'000, 2.0 * kLoad * 1e9 / (20.0 * kStepNs), {LengthKind::exponential, 20.0});
  const ServingResult in_turn = serve(differ, options, 1);
  options.fleet.router = Router::fewest_requests;
  const ServingResult fewest = serve(differ, options, 1);
  CHECK(fewest.queue_mean_ns < 0.8 * in_turn.queue_mean_ns);
  CHECK(fewest.ttft.p99_ns < in_turn.ttft.p99_ns);
}

TEST_CASE("two servers that are always busy serve twice what one does") {
  WorkloadOptions closed = poisson(1000, 1.0, {LengthKind::constant, 20.0});
  closed.arrivals.kind = ArrivalKind::closed;
  const ServingResult one = serve(closed, single_server(), 1);
  closed.arrivals.concurrency = 2;
  ServingOptions two = single_server();
  two.fleet.servers = 2;
  for (const Router router : {Router::in_turn, Router::fewest_requests, Router::fewest_tokens}) {
    two.fleet.router = router;
    const ServingResult both = serve(closed, two, 1);
    CHECK(both.throughput() == Approx(2.0 * one.throughput()));
    CHECK(both.metrics.steps == one.metrics.steps);
  }
}
