#include <memory>
#include <string>

#include "cli/bench/cases.hpp"
#include "engine/scheduler/scheduler.hpp"
#include "sim/acceptance/acceptance_choice.hpp"
#include "sim/acceptance/replay.hpp"
#include "sim/predict/published_replay.hpp"
#include "sim/serving/simulation.hpp"
#include "sim/serving/static_batch.hpp"

namespace draftproof {
namespace {

BenchGoal million_a_second(double millions) {
  return {"ns_per_element", true, 1e9 / (millions * 1e6)};
}

// Outputs of 200 tokens on average. With an arrival rate the server is busy to two thirds.
WorkloadOptions workload_of(std::int64_t requests, std::int32_t batch, double rate) {
  WorkloadOptions workload;
  workload.num_requests = requests;
  if (rate > 0.0) {
    workload.arrivals.rate = rate;
  } else {
    workload.arrivals.kind = ArrivalKind::closed;
    workload.arrivals.concurrency = batch;
  }
  workload.prompt = {LengthKind::lognormal, 300.0, 0.7, 1, 3000};
  workload.output = {LengthKind::lognormal, 200.0, 0.7, 1, 1000};
  return workload;
}

// Recording that a drafter might have made: three of four places take 1 to 5 drafts.
AcceptanceRecording synthetic_recording() {
  AcceptanceRecording recording;
  std::uint32_t word = 2463534242u;
  for (int r = 0; r < 64; ++r) {
    auto& request = recording.requests.emplace_back();
    for (int p = 0; p < 1000; ++p) {
      word = word * 1664525u + 1013904223u;
      request.accepted.push_back(static_cast<std::uint8_t>((word >> 28) % 4 == 0 ? 0 : (word >> 16) % 6));
    }
  }
  return recording;
}

BenchCase static_case(const char* name, const char* speculation, std::int64_t requests,
                      const std::function<std::shared_ptr<const AcceptanceModel>()>& acceptance_of) {
  const auto prepare = [=] {
    const auto workload = std::make_shared<Workload>(workload_of(requests, 64, 0.0), 1);
    const auto acceptance = acceptance_of();
    const StaticBatchOptions options{64, parse_speculation(speculation, name), {}};
    const auto run = [=] { return run_static_batch(*workload, published_cost_8b_h100(), *acceptance, options); };
    BenchWork work;
    work.elements = static_cast<std::uint64_t>(run().acceptance.steps);
    work.body = [run] { run(); };
    return work;
  };
  return {name, 1, million_a_second(20.0), false, prepare};
}

// per_request: counted in requests and not in sequence-steps.
BenchCase serving_case(const std::string& name, const char* speculation, std::int64_t requests, std::int32_t batch,
                       double rate, bool per_request) {
  const auto prepare = [=] {
    const auto workload = std::make_shared<Workload>(workload_of(requests, batch, rate), 1);
    const auto acceptance = make_acceptance("constant:0.8", 1, name);
    ServingOptions options;
    options.scheduler.num_blocks = 16'384;
    options.scheduler.running_max = batch;
    options.speculation = parse_speculation(speculation, name);
    const auto run = [=] { return simulate(*workload, published_cost_8b_h100(), *acceptance, options); };
    BenchWork work;
    work.elements = static_cast<std::uint64_t>(per_request ? requests : run().metrics.sequence_steps);
    work.body = [run] { run(); };
    return work;
  };
  return {name, 1, per_request ? std::nullopt : std::optional(million_a_second(3.0)), false, prepare};
}

// Serves the same load again and again: as soon as a request ends, another arrives. Four of five drafts are accepted.
class SchedulerLoad {
 public:
  SchedulerLoad(std::int32_t batch, const SpeculationChoice& speculation, bool preempts)
      : scheduler_(options_for(batch, preempts), SpeculationPolicy(speculation, cost_model())) {
    for (std::int32_t i = 0; i < batch; ++i) add();
  }

  // Runs until so many sequence-steps have been done.
  void run(std::int64_t sequence_steps) {
    for (std::int64_t done = 0; done < sequence_steps;) {
      const StepPlan& plan = scheduler_.plan();
      outcome_.sequences.resize(plan.requests.size());
      for (std::size_t i = 0; i < plan.requests.size(); ++i) verify(plan.requests[i], outcome_.sequences[i]);
      done += static_cast<std::int64_t>(plan.requests.size());
      outcome_.begin_ns = outcome_.end_ns;
      outcome_.end_ns += 10'000'000;
      scheduler_.commit(outcome_);
      for (std::size_t i = scheduler_.finished().size(); i > 0; --i) add();
    }
  }

 private:
  static SchedulerOptions options_for(std::int32_t batch, bool preempts) {
    SchedulerOptions options;
    options.running_max = batch;
    options.token_budget = 64 * batch;
    options.num_blocks = batch * (preempts ? 12 : 40);  // of 16 to 25 that a request needs
    return options;
  }
  static std::shared_ptr<const StepCost> cost_model() {
    auto cost = std::make_shared<LinearCost>();
    cost->fixed_ns = 5.9e6;
    cost->row_ns = 21e3;
    cost->draft_pass_ns = 0.5e6;
    return cost;
  }

  void add() {
    RequestSpec spec;
    spec.prompt_len = 128;
    spec.output_len_max = 128 + static_cast<std::int32_t>(word() % 128);
    scheduler_.add(spec);
  }
  std::uint32_t word() {  // xorshift: the scheduler is measured, not the randomness
    state_ ^= state_ << 13;
    state_ ^= state_ >> 17;
    return state_ ^= state_ << 5;
  }
  void verify(const PlannedRequest& planned, SequenceOutcome& outcome) {
    outcome = SequenceOutcome{};
    if (!planned.sample) return;
    outcome.num_drafted = planned.num_drafts_max;
    for (std::uint32_t coins = word(); outcome.num_accepted < outcome.num_drafted; coins >>= 3) {
      if (coins % 8 < 2) break;
      ++outcome.num_accepted;
    }
    outcome.num_emitted = outcome.num_accepted + 1;
    outcome.rejected = outcome.num_accepted < outcome.num_drafted;
  }

  Scheduler scheduler_;
  StepOutcome outcome_;
  std::uint32_t state_ = 2463534242u;
};

}  // namespace

std::vector<BenchCase> simulator_cases(const BenchSizes& sizes) {
  const std::int64_t requests = sizes.simulated_requests;
  const auto constant = [] { return make_acceptance("constant:0.8", 1, "bench"); };
  const auto replay = [] { return std::shared_ptr<const AcceptanceModel>(new Replay(synthetic_recording())); };
  return {static_case("sim_static_b64", "fixed:4", requests, constant),
          static_case("sim_static_b64_off", "off", requests, constant),
          static_case("sim_replay_b64", "fixed:5", requests, replay),
          serving_case("sim_serving_b64", "fixed:4", requests, 64, 0.0, false),
          serving_case("sim_serving_b64_off", "off", requests, 64, 0.0, false),
          serving_case("sim_serving_b64_goodput", "goodput", requests, 64, 0.0, false),
          serving_case("sim_serving_b8_goodput", "goodput", requests, 8, 0.0, false),
          serving_case("sim_serving_poisson", "fixed:4", requests, 64, 12.0, false),
          serving_case("sim_requests_1x", "fixed:4", requests, 64, 12.0, true),
          serving_case("sim_requests_8x", "fixed:4", 8 * requests, 64, 12.0, true)};
}

std::vector<BenchCase> scheduler_cases(const BenchSizes& sizes) {
  struct Setting {
    const char* name;
    const char* speculation;
    std::int32_t batch;
    bool preempts;
  };
  constexpr Setting kSettings[] = {
      {"scheduler_b1", "fixed:4", 1, false},
      {"scheduler_b64", "fixed:4", 64, false},
      {"scheduler_b256", "fixed:4", 256, false},
      {"scheduler_b64_off", "off", 64, false},
      {"scheduler_b64_goodput", "goodput", 64, false},
      {"scheduler_b8_goodput", "goodput", 8, false},
      {"scheduler_b64_preempting", "fixed:4", 64, true},
  };
  std::vector<BenchCase> cases;
  for (const Setting& setting : kSettings) {
    const auto prepare = [setting, steps = sizes.sequence_steps] {
      const auto load = std::make_shared<SchedulerLoad>(
          setting.batch, parse_speculation(setting.speculation, setting.name), setting.preempts);
      BenchWork work;
      work.elements = static_cast<std::uint64_t>(steps);
      work.body = [load, steps] { load->run(steps); };
      return work;
    };
    cases.push_back({setting.name, 1, million_a_second(3.0), false, prepare});
  }
  return cases;
}

}  // namespace draftproof
