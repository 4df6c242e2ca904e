#include <memory>
#include <string>

#include "cli/bench/cases.hpp"
#include "engine/scheduler/scheduler.hpp"

namespace draftproof {
namespace {

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

std::vector<BenchCase> scheduler_cases(const BenchSizes& sizes) {
  struct Setting {
    const char* name;
    const char* speculation;
    std::int32_t batch;
    bool preempts;
  };
  constexpr Setting kSettings[] = {
      {"scheduler_b1", "fixed:4", 1, false},           {"scheduler_b64", "fixed:4", 64, false},
      {"scheduler_b256", "fixed:4", 256, false},       {"scheduler_b64_off", "off", 64, false},
      {"scheduler_b64_goodput", "goodput", 64, false}, {"scheduler_b64_preempting", "fixed:4", 64, true},
  };
  std::vector<BenchCase> cases;
  for (const Setting& setting : kSettings) {
    BenchCase out;
    out.name = setting.name;
    out.goal = BenchGoal{"ns_per_element", true, 1e9 / 3e6};  // 3 million a second
    out.prepare = [setting, steps = sizes.sequence_steps] {
      const auto load = std::make_shared<SchedulerLoad>(
          setting.batch, parse_speculation(setting.speculation, setting.name), setting.preempts);
      BenchWork work;
      work.elements = static_cast<std::uint64_t>(steps);
      work.body = [load, steps] { load->run(steps); };
      return work;
    };
    cases.push_back(out);
  }
  return cases;
}

}  // namespace draftproof
