// Metrics of a run that is followed by hand, and their Prometheus text.
#include "engine/metrics/metrics.hpp"

#include "engine/metrics/prometheus.hpp"
#include "engine/scheduler/scheduler.hpp"
#include "tests/support/test.hpp"

namespace {

constexpr std::int64_t kMs = 1'000'000;

// Two requests; K = 2. Steps end at 20, 50, 90 ms; the second request arrives at 30 ms.
Scheduler three_steps() {
  SchedulerOptions options;
  options.num_blocks = 10;
  options.drafts_with_prefill = false;
  options.service_level = {25 * kMs, 0};
  Scheduler scheduler(options, SpeculationPolicy(parse_speculation("fixed:2", "test")));
  RequestSpec spec;
  spec.prompt_len = 10;
  spec.output_len_max = 5;
  scheduler.add(spec);
  const auto step = [&](std::int64_t begin_ms, std::int64_t end_ms, std::vector<SequenceOutcome> sequences) {
    scheduler.plan();
    StepOutcome outcome;
    outcome.sequences = std::move(sequences);
    outcome.begin_ns = begin_ms * kMs;
    outcome.end_ns = end_ms * kMs;
    outcome.draft_ns = 1 * kMs;
    outcome.verify_ns = 5 * kMs;
    outcome.sample_ns = 2 * kMs;
    scheduler.commit(outcome);
  };
  step(10, 20, {{0, 0, 1, -1, false, SequenceEnd::none}});
  spec.arrival_ns = 30 * kMs;
  scheduler.add(spec);
  step(40, 50, {{2, 1, 2, -1, true, SequenceEnd::none}, {0, 0, 1, -1, false, SequenceEnd::none}});
  step(50, 90, {{1, 1, 2, -1, false, SequenceEnd::none}, {2, 2, 3, -1, false, SequenceEnd::none}});
  return scheduler;
}

TEST_CASE("the metrics of three steps are those counted by hand", "[metrics]") {
  const Scheduler scheduler = three_steps();
  const EngineMetrics& m = scheduler.metrics();
  CHECK(m.steps == 3);
  CHECK(m.sequence_steps == 5);
  CHECK(m.acceptance.drafts == 3);
  CHECK(m.acceptance.draft_tokens == 5);
  CHECK(m.acceptance.accepted_tokens == 4);
  CHECK(m.acceptance.accepted == std::vector<std::int64_t>{3, 1});
  CHECK(m.acceptance.reached == std::vector<std::int64_t>{3, 2});
  CHECK(m.acceptance_length() == 1.0 + 4.0 / 3.0);
  CHECK(m.wasted_drafts() == 1);
  // Drafts of 2, 1 and 2 tokens with 1, 1 and 2 accepted: the median of 1/2, 1, 1. Drafting took 3 ms, verification 15.
  CHECK(m.acceptance_rate_p50() == 1.0);
  CHECK(m.overhead_ratio() == 3.0 / 15.0);
  CHECK(m.effective_speedup() == 9.0 / 5.0 / (1.0 + 3.0 / 15.0));
  CHECK(m.tokens_per_row() == 7.0 / 8.0);
  CHECK(m.generation_tokens() == 9);
  CHECK(m.tokens_per_step() == 9.0 / 5.0);
  CHECK(m.goodput() == Approx(9.0 / 0.080));
  CHECK(m.prompt_tokens == 20);
  CHECK(m.draft_ns == 3 * kMs);
  CHECK(m.verify_ns == 15 * kMs);
  CHECK(m.sample_ns == 6 * kMs);
  CHECK(m.busy_ns == 60 * kMs);
  CHECK(m.ttft.count() == 2);
  CHECK(m.ttft.sum_ns() == (20 + 20) * kMs);
  CHECK(m.queue.sum_ns() == (10 + 10) * kMs);
  CHECK(m.inter_token.count() == 3);
  CHECK(m.inter_token.sum_ns() == (30 + 40 + 40) * kMs);
  // The first request ended: 5 tokens from 20 to 90 ms.
  CHECK(m.ended[static_cast<std::size_t>(RequestEnd::length)] == 1);
  CHECK(m.tpot.sum_ns() == 70 * kMs / 4);
  CHECK(m.e2e.sum_ns() == 90 * kMs);
  CHECK(m.ended_within_service_level == 1);
  CHECK(m.requests_per_second_within_service_level() == Approx(1.0 / 0.080));
  CHECK(m.num_running == 1);
  CHECK(m.kv_usage() == 0.1);
  CHECK(m.blocks_held_max == 2);
  CHECK(m.kv_usage_mean() == Approx((1 * 10.0 + 2 * 10.0 + 2 * 40.0) / (10.0 * 60.0)));
}

TEST_CASE("the median acceptance is the share that half of the drafts do not exceed, in thousandths", "[metrics]") {
  EngineMetrics m;
  CHECK(m.acceptance_rate_p50() == 0.0);
  for (const auto& [drafted, accepted] : {std::pair(7, 7), {3, 1}, {4, 0}, {0, 0}, {3, 2}}) {
    m.count_draft(drafted, accepted);
    m.acceptance.drafts += drafted > 0 ? 1 : 0;
  }
  CHECK(m.acceptance_rate_p50() == 0.333);  // the second of 0, 1/3, 2/3, 1
  m.count_draft(8, 8);
  ++m.acceptance.drafts;
  CHECK(m.acceptance_rate_p50() == 0.666);
  CHECK(m.overhead_ratio() == 0.0);
}

TEST_CASE("a duration lies in the first bucket whose bound it does not exceed", "[metrics]") {
  const std::vector<std::int64_t> bounds = {10, 20, 40};
  LatencyHistogram histogram(bounds);
  for (const std::int64_t ns : {0, 10, 10, 11, 20, 21, 40, 41, 1000}) histogram.observe(ns);
  CHECK(std::vector(histogram.counts().begin(), histogram.counts().end()) == std::vector<std::int64_t>{3, 2, 2, 2});
  CHECK(histogram.count() == 9);
  CHECK(histogram.sum_ns() == 1153);
  // Three durations that 64 bits hold, whose sum they do not.
  for (int i = 0; i < 3; ++i) histogram.observe(4'000'000'000'000'000'001);
  CHECK(histogram.sum_ns() == TotalNs{1153} + 3 * TotalNs{4'000'000'000'000'000'001});
  CHECK(histogram.mean_ns() > 1e18);
}

TEST_CASE("the Prometheus text has vLLM's names and the metrics' values", "[metrics]") {
  const Scheduler scheduler = three_steps();
  const std::string text = prometheus_text(scheduler.metrics(), "n-gram \"3\"");
  const std::string labels = R"({engine="0",model_name="n-gram \"3\"")";
  // The other samples are recounted in recount_test.cpp.
  for (const std::string line : {"# TYPE vllm:time_to_first_token_seconds histogram",
                                 "# TYPE vllm:num_preemptions_total counter", "# TYPE vllm:kv_cache_usage_perc gauge"})
    CHECK(text.find("\n" + line + "\n") != std::string::npos);
  for (const auto& [name, label, value] : {std::tuple("kv_cache_usage_perc", "", "0.10000000000000001"),
                                           {"spec_decode_num_accepted_tokens_per_pos_total", ",position=\"1\"", "1"},
                                           {"time_to_first_token_seconds_bucket", ",le=\"0.01\"", "0"},
                                           {"time_to_first_token_seconds_bucket", ",le=\"0.02\"", "2"},
                                           {"time_to_first_token_seconds_sum", "", "0.04"}})
    CHECK_THAT(text, Contains(std::string("\nvllm:") + name + labels + label + "} " + value + "\n"));
}

}  // namespace
