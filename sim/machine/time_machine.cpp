#include "sim/machine/time_machine.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "engine/decode/paired_run.hpp"
#include "engine/draft/drafter.hpp"

namespace draftproof {
namespace {

constexpr double kMsPerNs = 1e-6;

// Time where little disturbs the measurement.
double lower_quartile(std::vector<double> values) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 4);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

Token token_at(const LanguageModel& model, std::size_t position) {
  return static_cast<Token>(position * 37 % static_cast<std::size_t>(model.vocab_size()));
}

// Chains of the planned length at no cost: whatever becomes of them, the step has their rows.
class GuessingDrafter final : public Drafter {
 public:
  explicit GuessingDrafter(const LanguageModel& model) : model_(model) {}
  void propose(const DraftContext& context, const DraftPlan& plan, DraftChance&, Draft& out) override {
    out = {};
    for (std::int32_t i = 0; i < plan.shape.size(); ++i)
      out.tree.add(token_at(model_, 11 * context.tokens.size() + static_cast<std::size_t>(i)), i - 1);
  }

 private:
  const LanguageModel& model_;
};

// Greedy decoding by the engine, step by step, each with so many rows of the target.
class EngineSteps {
 public:
  EngineSteps(LanguageModel& model, std::int64_t context_len, std::int64_t rows, int steps) : drafter_(model) {
    const std::int64_t tokens = rows * (steps + 2);  // if every draft were accepted
    DecodeJob job;
    for (std::int64_t i = 0; i < context_len; ++i) job.prompt.push_back(token_at(model, static_cast<std::size_t>(i)));
    job.decoding.parameters.temperature = 0.0f;
    job.decoding.num_speculative_tokens = static_cast<int>(rows - 1);
    job.decoding.stop.max_tokens = tokens;
    DecodeRoom room;
    room.num_blocks = (context_len + tokens + rows) / kKvBlockSlots + 4;
    const SpeculationPolicy policy(whole_drafts(job.decoding, "rows"));
    run_ = std::make_unique<DecodeRun>(model, rows > 1 ? &drafter_ : nullptr,
                                       engine_options({&job, 1}, room, model, policy));
    run_->submit(job);
    run_->step();  // the prompt
  }
  StepTimes next() { return run_->step().value(); }

 private:
  GuessingDrafter drafter_;
  std::unique_ptr<DecodeRun> run_;
};

}  // namespace

MachineProfile time_machine(LanguageModel& model, const MachineTiming& timing, const std::function<void()>& done) {
  const std::int64_t longest = std::max(timing.far_context_len + timing.repeats + 3,
                                        timing.context_len + timing.rows.back() * (timing.repeats + 3));
  if (longest > model.context_len_max())
    throw usage_error("--model", "its context is " + std::to_string(model.context_len_max()) + "; expected " +
                                     std::to_string(longest) + " or more, to time passes in");
  MachineProfile profile;
  for (const std::int64_t rows : timing.rows) profile.passes.push_back({rows, timing.context_len, 0.0});
  profile.passes.push_back({timing.rows.front(), timing.far_context_len, 0.0});
  std::vector<std::unique_ptr<EngineSteps>> steps;
  for (const TimedPass& pass : profile.passes)
    steps.push_back(std::make_unique<EngineSteps>(model, pass.context_len, pass.rows, timing.repeats));

  std::vector<std::vector<double>> times(profile.passes.size());
  std::vector<double> rest;
  for (int repeat = 0; repeat < timing.repeats; ++repeat) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const StepTimes taken = steps[i]->next();
      times[i].push_back(taken.wall_ms());
      // Beside the pass.
      if (i == 0) rest.push_back(kMsPerNs * static_cast<double>(taken.wall_ns - taken.verify_ns));
    }
    if (done) done();
  }
  profile.step_ms = lower_quartile(rest);
  for (std::size_t i = 0; i < times.size(); ++i) profile.passes[i].ms = lower_quartile(times[i]) - profile.step_ms;
  return profile;
}

}  // namespace draftproof
