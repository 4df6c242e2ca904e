#include "sim/serving/simulation.hpp"

#include "engine/metrics/prometheus.hpp"
#include "tests/sim/serving/constant_models.hpp"
#include "tests/support/test.hpp"

namespace {

WorkloadOptions busy_workload() {
  WorkloadOptions workload;
  workload.num_requests = 400;
  workload.arrivals.kind = ArrivalKind::on_off;
  workload.arrivals.rate = 20.0;
  workload.prompt = {LengthKind::lognormal, 200.0, 0.8, 1, 1500};
  workload.output = {LengthKind::lognormal, 100.0, 0.8, 1, 800};
  return workload;
}

ServingOptions small_server(const char* speculation) {
  ServingOptions options;
  options.scheduler.num_blocks = 260;
  options.scheduler.token_budget = 512;
  options.scheduler.running_max = 32;
  options.speculation = parse_speculation(speculation, "test");
  return options;
}

// All that a run says, as text.
struct Transcript final : ServingObserver {
  std::ostringstream text;
  std::map<std::uint64_t, RequestProgress> ended;
  std::int64_t now_ns = 0;
  bool orderly = true;

  void on_step(const StepPlan& plan, const StepOutcome& outcome, const Scheduler& scheduler,
               const SimulatedBackend& backend) override {
    orderly = orderly && outcome.begin_ns >= now_ns && outcome.end_ns > outcome.begin_ns;
    now_ns = outcome.end_ns;
    text << plan.step << ' ' << outcome.begin_ns << ' ' << outcome.end_ns << ' ' << backend.pass().rows << ' '
         << scheduler.metrics().num_waiting << '\n';
  }
  void on_end(std::uint64_t request, const RequestProgress& progress) override {
    ended[request] = progress;
    text << request << " ends " << progress.last_token_ns << ' ' << progress.accepted_tokens << '\n';
  }
};

}  // namespace

// Costs without noise: a turn's arrival is the end of the one before and its delay, to the nanosecond.
TEST_CASE("a later turn arrives its delay after the turn before has ended, and each request is served once") {
  WorkloadOptions workload;
  workload.num_requests = 12;
  workload.arrivals.kind = ArrivalKind::recorded;
  workload.arrivals.rate = 0.0;
  workload.prompt.kind = workload.output.kind = LengthKind::recorded;
  workload.recorded = std::make_shared<const ArrivalTrace>(ArrivalTrace{
      {{0, 100, 5}, {10'000'000, 50, 40}, {700'000'000, 30, 3, 0}, {0, 20, 2, 1}, {20'000'000, 10, 7, 3}}, "s"});
  const LinearCost cost = slow_cost();
  Transcript seen;
  const Workload requests(workload, 1);
  const ServingResult result = simulate(requests, cost, ConstantAcceptance(0.5), small_server("off"), &seen);
  CHECK(result.e2e.count == 12);
  REQUIRE(seen.ended.size() == 12);
  for (std::uint64_t request = 0; request < 12; ++request) {
    const std::uint64_t in_round = request % 5;
    const RecordedArrival& row = workload.recorded->requests[in_round];
    CHECK(seen.ended[request].streams[0].prompt_len == row.prompt_len);
    CHECK(seen.ended[request].output_len == row.output_len);
    if (row.turn_before < 0) continue;
    const std::uint64_t before = request - in_round + static_cast<std::uint64_t>(row.turn_before);
    CHECK(seen.ended[request].arrival_ns == seen.ended[before].last_token_ns + row.arrival_ns);
  }
}

TEST_CASE("the same seed gives the same bytes, another seed does not") {
  const auto text_of = [](std::uint64_t seed) {
    Transcript transcript;
    const ServingResult result = simulate(Workload(busy_workload(), seed), slow_cost(), ConstantAcceptance(0.7),
                                          small_server("goodput:max=5"), &transcript);
    CHECK(transcript.orderly);
    return transcript.text.str() + prometheus_text(result.metrics, "model");
  };
  const std::string text = text_of(1);
  CHECK(text.size() > 20'000);
  CHECK(text == text_of(1));
  CHECK(text != text_of(2));
}

TEST_CASE("requests, tokens and blocks are conserved under preemption, with every policy") {
  for (const char* const speculation : {"off", "fixed:4", "threshold", "schedule:1=5,8=2,16=0", "goodput"})
    for (const Preemption preemption : {Preemption::recompute, Preemption::swap}) {
      ServingOptions options = small_server(speculation);
      options.scheduler.preemption = preemption;
      options.scheduler.num_swap_blocks = 200;
      options.drafting.swap_block_ns = 2e4;
      Transcript transcript;
      const ServingResult result =
          simulate(Workload(busy_workload(), 8), slow_cost(), ConstantAcceptance(0.7), options, &transcript);
      INFO(speculation);
      CHECK(result.metrics.preemptions > 20);
      CHECK((result.metrics.swapped_blocks > 0) == (preemption == Preemption::swap));
      CHECK(transcript.ended.size() == 400);
      std::int64_t tokens = 0;
      for (const auto& [request, progress] : transcript.ended) {
        const RequestLengths lengths = Workload(busy_workload(), 8).lengths(static_cast<std::int64_t>(request));
        CHECK(progress.output_len == lengths.output_len);
        CHECK(progress.streams[0].prompt_len == lengths.prompt_len);
        tokens += lengths.output_len;
      }
      CHECK(result.metrics.generation_tokens() == tokens);
      CHECK(result.kv_waste > 0.0);
      CHECK(result.kv_waste < 0.2);
    }
}

TEST_CASE("conservation notices what is lost, made or held back") {
  const ConservationCounts balanced{10, 10, 10, 10, 100, 100, 100, 0};
  CHECK(!violated_conservation(balanced));
  for (std::int64_t ConservationCounts::*count :
       {&ConservationCounts::requests_wanted, &ConservationCounts::requests_arrived,
        &ConservationCounts::requests_ended, &ConservationCounts::requests_served,
        &ConservationCounts::tokens_requested, &ConservationCounts::tokens_received, &ConservationCounts::tokens_ended,
        &ConservationCounts::blocks_held}) {
    ConservationCounts counts = balanced;
    ++(counts.*count);
    CHECK(violated_conservation(counts));
  }
}

TEST_CASE("a simulation serves all requests of its workload or is refused") {
  WorkloadOptions sparse = busy_workload();
  sparse.num_requests = 50;
  sparse.arrivals = {.kind = ArrivalKind::poisson, .rate = 1e-9};
  CHECK_THAT(
      error_of(ErrorKind::usage,
               [&] { simulate(Workload(sparse, 1), slow_cost(), ConstantAcceptance(0.7), small_server("off")); }),
      Contains("arrivals: request "));
  LinearCost endless = slow_cost();
  endless.fixed_ns = 1e18;
  CHECK_THAT(
      error_of(ErrorKind::usage,
               [&] { simulate(Workload(busy_workload(), 1), endless, ConstantAcceptance(0.7), small_server("off")); }),
      Catch::StartsWith("simulation: it lasts 5e+09 s; expected at most 4.61e+09 s of simulated time"));
}

TEST_CASE("under guidance every request has a companion, whose rows and blocks count") {
  WorkloadOptions guided = busy_workload();
  guided.companion_prompt_len = 1;
  ServingOptions options = small_server("fixed:3");
  options.scheduler.num_blocks = 2000;
  options.scheduler.token_budget = 4096;  // else it cuts drafts
  const ServingResult plain = simulate(Workload(busy_workload(), 12), slow_cost(), ConstantAcceptance(0.7), options);
  const ServingResult both = simulate(Workload(guided, 12), slow_cost(), ConstantAcceptance(0.7), options);
  CHECK(both.metrics.generation_tokens() == plain.metrics.generation_tokens());
  CHECK(both.metrics.acceptance.accepted_tokens == plain.metrics.acceptance.accepted_tokens);  // drawn by place
  CHECK(both.metrics.prompt_tokens == plain.metrics.prompt_tokens + 400);
  CHECK(both.metrics.verify_ns > plain.metrics.verify_ns);
  CHECK(both.metrics.blocks_held_max > plain.metrics.blocks_held_max);
}

TEST_CASE("speculation pays at a small batch and costs at a large one") {
  LinearCost cost = slow_cost();
  cost.row_ns = 2e5;
  const auto throughput = [&](const char* speculation, std::int32_t batch) {
    WorkloadOptions workload;
    workload.num_requests = 4 * batch + 20;
    workload.arrivals.kind = ArrivalKind::closed;
    workload.arrivals.concurrency = batch;
    workload.prompt.mean = 64.0;
    workload.output.mean = 200.0;
    ServingOptions options = small_server(speculation);
    options.scheduler.num_blocks = 4000;
    options.scheduler.token_budget = 4096;
    options.scheduler.running_max = batch;
    return simulate(Workload(workload, 10), cost, ConstantAcceptance(0.6), options).throughput();
  };
  CHECK(throughput("fixed:4", 1) > 1.3 * throughput("off", 1));
  CHECK(throughput("fixed:4", 64) < 0.9 * throughput("off", 64));
  // A policy that knows the cost is never much worse than the better of the two.
  CHECK(throughput("goodput:max=4", 1) > 0.97 * throughput("fixed:4", 1));
  CHECK(throughput("goodput:max=4", 64) > 0.97 * throughput("off", 64));
}

TEST_CASE("a request that can never run is named") {
  WorkloadOptions workload = busy_workload();
  workload.prompt = {LengthKind::constant, 5000.0};
  const std::string message = error_of(ErrorKind::input, [&] {
    simulate(Workload(workload, 1), slow_cost(), ConstantAcceptance(0.5), small_server("off"));
  });
  CHECK(message.find("request 0 of the workload: the prompt has 5000 tokens; expected at most 4095") == 0);
}
