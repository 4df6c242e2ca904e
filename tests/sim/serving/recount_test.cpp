// Every figure of a simulated run against a recount from its requests and steps: plain requests, and guided ones with
// their companions, whose rows and blocks count and whose tokens do not.
#include "base/split.hpp"
#include "sim/serving/comparison.hpp"
#include "sim/serving/run_files.hpp"
#include "tests/sim/serving/constant_models.hpp"
#include "tests/support/test.hpp"

namespace {

// Nearest rank, as one counts it off a sorted list.
double quantile_of(std::vector<std::int64_t> ns, double share) {
  std::ranges::sort(ns);
  std::size_t rank = 1;
  while (static_cast<double>(rank) < share * static_cast<double>(ns.size())) ++rank;
  return static_cast<double>(ns[rank - 1]);
}

double mean_of(const std::vector<std::int64_t>& ns) {
  double sum = 0.0;
  for (const std::int64_t value : ns) sum += static_cast<double>(value);
  return sum / static_cast<double>(ns.size());
}

class Recount final : public ServingObserver {
 public:
  Recount(const SchedulerOptions& scheduler, std::int64_t warmup)
      : level_(scheduler.service_level), num_blocks_(scheduler.num_blocks), warmup_(warmup) {}

  void on_step(const StepPlan& plan, const StepOutcome& outcome, const Scheduler& scheduler,
               const SimulatedBackend& backend) override {
    const std::int64_t ns = outcome.end_ns - outcome.begin_ns;
    if (steps_++ == 0) begin_ns_ = outcome.begin_ns;
    end_ns_ = outcome.end_ns;
    busy_ns_ += ns;
    draft_ns_ += outcome.draft_ns;
    verify_ns_ += outcome.verify_ns;
    sample_ns_ += outcome.sample_ns;
    swapped_blocks_ += std::ssize(plan.swap_out);
    sequence_steps_ += std::ssize(plan.requests);
    step_times_.push_back({outcome.begin_ns, outcome.end_ns});
    std::int64_t blocks = 0, committed = 0;
    std::set<RequestHandle> planned;
    for (std::size_t i = 0; i < plan.requests.size(); ++i) {
      const PlannedRequest& request = plan.requests[i];
      planned.insert(request.request);
      seen_.insert(request.request);
      CHECK(request.num_streams == num_streams);
      for (std::int32_t s = 0; s < request.num_streams; ++s) {
        const PlannedStream& stream = request.streams[static_cast<std::size_t>(s)];
        blocks += std::ssize(stream.context.blocks);
        committed += stream.end();
        count_computed(request.request, s, stream, scheduler, backend);
      }
      if (!request.sample) continue;
      const SequenceOutcome& o = outcome.sequences[i];
      ++emitting_steps_;
      drafts_ += o.num_drafted > 0 ? 1 : 0;
      draft_tokens_ += o.num_drafted;
      accepted_ += o.num_accepted;
      received_ += o.num_emitted;
      const std::uint64_t number = backend.number(request.request);
      const auto last = last_ns_.find(number);
      if (last != last_ns_.end() && static_cast<std::int64_t>(number) >= warmup_)
        inter_token_.push_back(outcome.end_ns - last->second);
      last_ns_[number] = outcome.end_ns;
    }
    held_slot_ns_ += static_cast<double>(blocks * kKvBlockSlots) * static_cast<double>(ns);
    committed_slot_ns_ += static_cast<double>(committed) * static_cast<double>(ns);
    // Requests that run and wait for the budget hold their blocks, too.
    for (const RequestHandle handle : seen_) {
      const RequestProgress& progress = scheduler.progress(handle);
      if (planned.contains(handle) || progress.state != RequestState::running) continue;
      for (const StreamProgress& stream : progress.streams) blocks += std::ssize(stream.table.blocks);
    }
    held_block_ns_ += static_cast<double>(blocks) * static_cast<double>(ns);
  }

  void on_end(std::uint64_t number, const RequestProgress& progress) override {
    CHECK(ended_.emplace(number, progress).second);
  }

  // Checks one run.
  void check(const ServingResult& result) const {
    const EngineMetrics& m = result.metrics;
    CHECK(m.steps == steps_);
    CHECK(m.sequence_steps == sequence_steps_);
    CHECK(m.busy_ns == busy_ns_);
    CHECK(m.draft_ns == draft_ns_);
    CHECK(m.verify_ns == verify_ns_);
    CHECK(m.sample_ns == sample_ns_);
    CHECK(m.first_begin_ns == begin_ns_);
    CHECK(m.last_end_ns == end_ns_);
    CHECK(m.swapped_blocks == swapped_blocks_);
    CHECK(m.num_blocks == num_blocks_);
    CHECK(m.blocks_held == 0);
    CHECK(m.held_block_ns == Approx(held_block_ns_).epsilon(1e-12));
    CHECK(m.num_running == 0);
    CHECK(m.num_waiting == 0);
    CHECK(m.prompt_tokens == prompt_tokens_);
    CHECK(m.recomputed_tokens == recomputed_tokens_);
    CHECK(m.prefix_queries == 0);
    CHECK(m.prefix_hits == 0);
    CHECK(m.acceptance.steps == emitting_steps_);
    CHECK(m.acceptance.drafts == drafts_);
    CHECK(m.acceptance.draft_tokens == draft_tokens_);
    CHECK(m.acceptance.accepted_tokens == accepted_);
    CHECK(m.acceptance.received_tokens == received_);
    CHECK(m.acceptance.discarded_tokens == accepted_ + emitting_steps_ - received_);
    // The same from the requests' own counts.
    RequestProgress sum;
    std::int64_t companion_tokens = 0, prompts = 0;
    for (const auto& [number, r] : ended_) {
      sum.steps += r.steps, sum.drafts += r.drafts, sum.draft_tokens += r.draft_tokens;
      sum.accepted_tokens += r.accepted_tokens, sum.preemptions += r.preemptions, sum.output_len += r.output_len;
      CHECK(r.end == RequestEnd::length);
      CHECK(r.num_streams == num_streams);
      for (std::int32_t s = 0; s < num_streams; ++s) prompts += r.streams[static_cast<std::size_t>(s)].prompt_len;
      if (num_streams == 2) companion_tokens += r.streams[1].prompt_len;
    }
    CHECK(sum.steps == emitting_steps_);
    CHECK(sum.drafts == drafts_);
    CHECK(sum.draft_tokens == draft_tokens_);
    CHECK(sum.accepted_tokens == accepted_);
    CHECK(sum.preemptions == m.preemptions);
    CHECK(sum.output_len == received_);
    CHECK(prompts == prompt_tokens_);
    CHECK((companion_tokens > 0) == (num_streams == 2));
    const auto requests = std::ssize(ended_);
    CHECK(m.added == requests);
    CHECK(m.ended[static_cast<std::size_t>(RequestEnd::length)] == requests);
    CHECK(m.ended_tokens == received_);
    CHECK(m.ended_within_service_level == within_service_level());
    CHECK(result.requested_tokens == received_);
    CHECK(result.events == requests + steps_);
    check_latencies(result);
    double in_system = 0.0;
    for (const auto& [begin, end] : step_times_)
      for (const auto& [number, r] : ended_)
        if (r.arrival_ns <= begin && r.last_token_ns > begin) in_system += static_cast<double>(end - begin);
    CHECK(result.requests_in_system == Approx(in_system / static_cast<double>(end_ns_)).epsilon(1e-9));
    CHECK(result.kv_waste == Approx(1.0 - committed_slot_ns_ / held_slot_ns_).epsilon(1e-9));
    CHECK(result.seconds() == Approx(seconds()));
    CHECK(result.throughput() == Approx(static_cast<double>(received_) / seconds()));
    CHECK(result.goodput() == Approx(static_cast<double>(within_service_level()) / seconds()));
  }

  // Checks a policy with one replication, each figure by its name.
  void check(const PolicyReport& report) const {
    const auto n = static_cast<double>(ended_.size());
    const auto steps = static_cast<double>(steps_);
    const Latencies all = latencies(0), counted = latencies(warmup_);
    std::map<Figure, double> expected{
        {Figure::throughput, static_cast<double>(received_) / seconds()},
        {Figure::goodput, static_cast<double>(within_service_level()) / seconds()},
        {Figure::slo_share, static_cast<double>(within_service_level()) / n},
        {Figure::queue_mean, mean_of(all.queue) * 1e-6},
        {Figure::running_mean, static_cast<double>(sequence_steps_) / steps},
        {Figure::kv_use, held_block_ns_ / static_cast<double>(num_blocks_) / static_cast<double>(busy_ns_)},
        {Figure::kv_waste, 1.0 - committed_slot_ns_ / held_slot_ns_},
        {Figure::wasted_draft_tokens, static_cast<double>(draft_tokens_ - accepted_)},
        {Figure::acceptance_length, 1.0 + static_cast<double>(accepted_) / static_cast<double>(drafts_)},
        {Figure::tokens_per_step, static_cast<double>(received_) / static_cast<double>(emitting_steps_)},
        {Figure::step_ms, static_cast<double>(busy_ns_) * 1e-6 / steps},
        {Figure::draft_share, static_cast<double>(draft_ns_) / static_cast<double>(busy_ns_)},
    };
    double preemptions = 0.0;
    for (const auto& [number, r] : ended_) preemptions += r.preemptions;
    expected[Figure::preemptions] = preemptions;
    const std::pair<Figure, const std::vector<std::int64_t>*> durations[] = {
        {Figure::ttft_p50, &counted.ttft}, {Figure::tpot_p50, &counted.tpot}, {Figure::itl_p50, &inter_token_}};
    for (const auto& [p50, ns] : durations)
      for (int i = 0; i < 3; ++i)
        expected[static_cast<Figure>(static_cast<int>(p50) + i)] =
            quantile_of(*ns, std::array{0.5, 0.9, 0.99}[static_cast<std::size_t>(i)]) * 1e-6;
    CHECK(expected.size() == kFigures);
    for (const auto& [figure, value] : expected) {
      INFO(name_of(figure));
      // Times between tokens are counted in buckets.
      const bool in_buckets = figure >= Figure::itl_p50 && figure <= Figure::itl_p99;
      CHECK(report.figure(figure).mean == Approx(value).epsilon(in_buckets ? 2e-3 : 1e-9));
    }
    CHECK(report.requests == std::ssize(ended_));
    CHECK(report.sequence_steps == sequence_steps_);
    CHECK(report.events == std::ssize(ended_) + steps_);
    CHECK(report.acceptance.draft_tokens == draft_tokens_);
  }

  std::int32_t num_streams = 1;

 private:
  struct Latencies {
    std::vector<std::int64_t> ttft, tpot, e2e, queue;
  };
  Latencies latencies(std::int64_t from) const {
    Latencies all;
    for (const auto& [number, r] : ended_) {
      if (static_cast<std::int64_t>(number) < from) continue;
      all.ttft.push_back(r.first_token_ns - r.arrival_ns);
      all.e2e.push_back(r.last_token_ns - r.arrival_ns);
      all.queue.push_back(r.begin_ns - r.arrival_ns);
      if (r.output_len > 1) all.tpot.push_back((r.last_token_ns - r.first_token_ns) / (r.output_len - 1));
    }
    return all;
  }

  double seconds() const { return static_cast<double>(end_ns_ - begin_ns_) * 1e-9; }

  std::int64_t within_service_level() const {
    return std::ranges::count_if(ended_, [&](const auto& entry) {
      const RequestProgress& r = entry.second;
      const std::int64_t tokens_after = r.output_len - 1;
      return r.first_token_ns - r.arrival_ns <= level_.ttft_ns &&
             (tokens_after == 0 || (r.last_token_ns - r.first_token_ns) / tokens_after <= level_.tpot_ns);
    });
  }

  void check_latencies(const ServingResult& result) const {
    const Latencies counted = latencies(warmup_), all = latencies(0);
    const auto check_summary = [](const LatencySummary& summary, const std::vector<std::int64_t>& ns, double slack) {
      const auto& [count, mean, p50, p90, p99] = summary;
      CHECK(count == std::ssize(ns));
      CHECK(mean == Approx(mean_of(ns)).epsilon(1e-9));
      CHECK(static_cast<double>(p50) == Approx(quantile_of(ns, 0.5)).epsilon(slack));
      CHECK(static_cast<double>(p90) == Approx(quantile_of(ns, 0.9)).epsilon(slack));
      CHECK(static_cast<double>(p99) == Approx(quantile_of(ns, 0.99)).epsilon(slack));
    };
    check_summary(result.ttft, counted.ttft, 1e-12);
    check_summary(result.tpot, counted.tpot, 1e-12);
    check_summary(result.e2e, counted.e2e, 1e-12);
    check_summary(result.inter_token, inter_token_, 2e-3);
    const auto check_histogram = [](const LatencyHistogram& histogram, const std::vector<std::int64_t>& ns) {
      CHECK(histogram.count() == std::ssize(ns));
      CHECK(histogram.mean_ns() == Approx(mean_of(ns)).epsilon(1e-9));
    };
    check_histogram(result.metrics.ttft, all.ttft);
    check_histogram(result.metrics.tpot, all.tpot);
    check_histogram(result.metrics.e2e, all.e2e);
    check_histogram(result.metrics.queue, all.queue);
    if (warmup_ == 0) check_histogram(result.metrics.inter_token, inter_token_);
  }

  // Positions of the prompt count once; any position that is computed a second time counts as that.
  void count_computed(RequestHandle handle, std::int32_t s, const PlannedStream& stream, const Scheduler& scheduler,
                      const SimulatedBackend& backend) {
    const StreamProgress& now = scheduler.progress(handle).streams[static_cast<std::size_t>(s)];
    std::int64_t& known = known_[{backend.number(handle), s}];
    for (std::int64_t position = stream.context.length; position < stream.end(); ++position) {
      if (position < known)
        ++recomputed_tokens_;
      else if (position < now.prompt_len)
        ++prompt_tokens_;
    }
    known = std::max<std::int64_t>({known, stream.end(), now.computed});
  }

  const ServiceLevel level_;
  const std::int64_t num_blocks_;
  const std::int64_t warmup_;
  std::int64_t steps_ = 0, sequence_steps_ = 0, busy_ns_ = 0, draft_ns_ = 0, verify_ns_ = 0, sample_ns_ = 0;
  std::int64_t begin_ns_ = -1, end_ns_ = -1, swapped_blocks_ = 0, prompt_tokens_ = 0, recomputed_tokens_ = 0;
  std::int64_t emitting_steps_ = 0, drafts_ = 0, draft_tokens_ = 0, accepted_ = 0, received_ = 0;
  double held_slot_ns_ = 0.0, committed_slot_ns_ = 0.0, held_block_ns_ = 0.0;
  std::set<RequestHandle> seen_;
  std::map<std::uint64_t, RequestProgress> ended_;
  std::map<std::uint64_t, std::int64_t> last_ns_;
  std::map<std::pair<std::uint64_t, std::int32_t>, std::int64_t> known_;  // positions that had their KV, by stream
  std::vector<std::pair<std::int64_t, std::int64_t>> step_times_;
  std::vector<std::int64_t> inter_token_;
};

Scenario busy_scenario(const char* speculation, bool guided) {
  Scenario scenario;
  scenario.workload.num_requests = 150;
  scenario.workload.arrivals.kind = ArrivalKind::on_off;
  scenario.workload.arrivals.rate = 20.0;
  scenario.workload.prompt = {LengthKind::lognormal, 200.0, 0.8, 1, 900};
  scenario.workload.output = {LengthKind::lognormal, 60.0, 0.8, 1, 400};
  if (guided) scenario.workload.companion_prompt_len = 30;
  scenario.scheduler.num_blocks = 200;
  scenario.scheduler.token_budget = 512;
  scenario.scheduler.running_max = 32;
  scenario.scheduler.service_level = {300'000'000, 5'000'000};
  scenario.policies.push_back({.name = "policy",
                               .speculation = parse_speculation(speculation, "test"),
                               .drafting = {},
                               .drafter = "",
                               .acceptance = "constant:0.7",
                               .acceptance_where = "test",
                               .cost = std::make_shared<LinearCost>(slow_cost())});
  return scenario;
}

}  // namespace

TEST_CASE("every figure of a simulated run is that of a recount from its requests and steps, companions' too") {
  for (const bool guided : {false, true})
    for (const Preemption preemption : {Preemption::recompute, Preemption::swap})
      for (const std::int64_t warmup : {0, 40}) {
        INFO("guided " << guided << ", swap " << (preemption == Preemption::swap) << ", warm-up " << warmup);
        Scenario scenario = busy_scenario("fixed:4", guided);
        scenario.scheduler.preemption = preemption;
        scenario.scheduler.num_swap_blocks = 150;
        const ScenarioPolicy& policy = scenario.policies[0];
        const ServingOptions options{scenario.scheduler, policy.speculation, policy.drafting, warmup};
        Recount recount(scenario.scheduler, warmup);
        recount.num_streams = guided ? 2 : 1;
        const ServingResult result =
            simulate(Workload(scenario.workload, 5), *policy.cost, ConstantAcceptance(0.7), options, &recount);
        recount.check(result);
        CHECK(result.metrics.preemptions > 5);
        CHECK(result.metrics.ended_within_service_level > 5);
        CHECK(result.metrics.ended_within_service_level < 145);
      }
}

namespace {

// Expected contents of a run's files, from what the run reported.
class ExpectedFiles final : public ServingObserver {
 public:
  ExpectedFiles(std::ostream& requests, std::ostream& steps) : files_(requests, steps, "policy") {
    events.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", 1}, {"args", {{"name", "policy"}}}});
  }

  void on_step(const StepPlan& plan, const StepOutcome& outcome, const Scheduler& scheduler,
               const SimulatedBackend& backend) override {
    files_.on_step(plan, outcome, scheduler, backend);
    std::int64_t rows = 0, cached = 0, drafted = 0, accepted = 0, emitted = 0;
    for (std::size_t i = 0; i < plan.requests.size(); ++i) {
      const PlannedRequest& request = plan.requests[i];
      const SequenceOutcome& sequence = outcome.sequences[i];
      for (std::int32_t s = 0; s < request.num_streams; ++s) {
        const PlannedStream& stream = request.streams[static_cast<std::size_t>(s)];
        rows += stream.num_tokens + sequence.num_drafted;
        cached += stream.context.length;
      }
      drafted += sequence.num_drafted, accepted += sequence.num_accepted, emitted += sequence.num_emitted;
    }
    const auto requests = std::ssize(plan.requests);
    const std::int64_t begin = outcome.begin_ns;
    slice("step", begin, outcome.end_ns - begin,
          {{"step", plan.step},
           {"requests", requests},
           {"rows", rows},
           {"cached_tokens", cached},
           {"drafted", drafted},
           {"accepted", accepted},
           {"emitted", emitted}});
    slice("draft", begin, outcome.draft_ns, {{"passes", backend.draft().passes}});
    slice("target", begin + outcome.draft_ns, outcome.verify_ns, {{"rows", rows}});
    slice("engine", begin + outcome.draft_ns + outcome.verify_ns, outcome.sample_ns, nlohmann::json::object());
    counter("requests", begin, {{"running", requests}, {"waiting", scheduler.metrics().num_waiting}});
    counter("KV blocks", outcome.end_ns, {{"held", scheduler.blocks().num_held()}});
    counter("tokens of the step", begin, {{"accepted", accepted}, {"rejected", drafted - accepted}});
  }

  void on_end(std::uint64_t request, const RequestProgress& r) override {
    files_.on_end(request, r);
    const auto ms = [](std::int64_t ns) { return static_cast<double>(ns) / 1e6; };
    std::vector<std::optional<double>> row{static_cast<double>(request),
                                           ms(r.arrival_ns),
                                           r.streams[0].prompt_len,
                                           r.output_len,
                                           ms(r.begin_ns - r.arrival_ns),
                                           ms(r.first_token_ns - r.arrival_ns),
                                           std::nullopt,
                                           ms(r.last_token_ns - r.arrival_ns),
                                           r.steps,
                                           r.draft_tokens,
                                           r.accepted_tokens,
                                           r.preemptions};
    if (r.output_len > 1) row[6] = ms((r.last_token_ns - r.first_token_ns) / (r.output_len - 1));
    table.push_back(row);
  }

  std::vector<nlohmann::json> events;
  std::vector<std::vector<std::optional<double>>> table;

 private:
  static double us(std::int64_t ns) { return static_cast<double>(ns) / 1e3; }
  void slice(const char* name, std::int64_t begin_ns, std::int64_t duration_ns, const nlohmann::json& arguments) {
    if (duration_ns == 0) return;
    events.push_back({{"name", name},
                      {"ph", "X"},
                      {"pid", 1},
                      {"tid", 1},
                      {"ts", us(begin_ns)},
                      {"dur", us(duration_ns)},
                      {"args", arguments}});
  }
  void counter(const char* name, std::int64_t ns, const nlohmann::json& values) {
    events.push_back({{"name", name}, {"ph", "C"}, {"pid", 1}, {"ts", us(ns)}, {"args", values}});
  }

  RunFiles files_;
};

}  // namespace

TEST_CASE("every cell and event of the files of a run is that of its requests and steps") {
  for (const bool guided : {false, true}) {
    INFO("guided " << guided);
    Scenario scenario = busy_scenario("fixed:4", guided);
    std::ostringstream requests, steps;
    std::vector<nlohmann::json> events;
    std::vector<std::vector<std::optional<double>>> table;
    {
      ExpectedFiles expected(requests, steps);
      const ScenarioPolicy& policy = scenario.policies[0];
      simulate(Workload(scenario.workload, 6), *policy.cost, ConstantAcceptance(0.7),
               {scenario.scheduler, policy.speculation, policy.drafting}, &expected);
      events = expected.events;
      table = expected.table;
    }
    const nlohmann::json trace = nlohmann::json::parse(steps.str());
    CHECK(trace.at("displayTimeUnit") == "ms");
    REQUIRE(trace.at("traceEvents").size() == events.size());
    for (std::size_t i = 0; i < events.size(); ++i) {
      INFO("event " << i);
      CHECK(trace.at("traceEvents")[i] == events[i]);
    }
    std::istringstream lines(requests.str());
    std::string line;
    std::getline(lines, line);
    CHECK(line ==
          "request,arrival_ms,prompt_len,output_len,queue_ms,ttft_ms,tpot_ms,e2e_ms,steps,draft_tokens,accepted_tokens,"
          "preemptions");
    REQUIRE(table.size() == 150);
    for (const auto& row : table) {
      REQUIRE(std::getline(lines, line));
      INFO(line);
      std::vector<std::optional<double>> found;
      for (const std::string_view cell : split(line, ','))
        found.push_back(cell.empty() ? std::nullopt : std::optional(std::stod(std::string(cell))));
      CHECK((found == row));
    }
    CHECK_FALSE(std::getline(lines, line));
  }
}

TEST_CASE("every figure of a compared policy is that of a recount from its requests and steps, companions' too") {
  for (const bool guided : {false, true}) {
    INFO("guided " << guided);
    Scenario scenario = busy_scenario("threshold:max=6", guided);
    scenario.warmup_requests = 20;
    Recount recount(scenario.scheduler, scenario.warmup_requests);
    recount.num_streams = guided ? 2 : 1;
    const std::vector<PolicyReport> reports = compare(scenario, 1, [&](std::size_t) { return &recount; });
    REQUIRE(reports.size() == 1);
    recount.check(reports[0]);
  }
}
