#include "sim/machine/time_machine.hpp"

#include <algorithm>
#include <chrono>

#include "base/error.hpp"
#include "engine/decode/engine.hpp"
#include "engine/draft/drafter.hpp"
#include "reference/random/philox.hpp"

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
  EngineSteps(LanguageModel& model, std::int64_t context_len, std::int64_t rows, int steps)
      : drafter_(model), sampler_(source_) {
    const std::int64_t drafts = rows - 1;
    const std::int64_t tokens = rows * (steps + 2);  // if every draft were accepted
    EngineOptions options;
    options.share_prefixes = false;
    options.scheduler.num_blocks = static_cast<std::int32_t>((context_len + tokens + rows) / kKvBlockSlots + 4);
    options.scheduler.context_len_max = static_cast<std::int32_t>(model.context_len_max());
    SpeculationChoice choice;
    choice.rule = drafts > 0 ? SpeculationRule::fixed : SpeculationRule::off;
    choice.num_drafts = static_cast<std::int32_t>(drafts);
    options.policy = SpeculationPolicy(choice);
    engine_ = std::make_unique<Engine>(model, drafts > 0 ? &drafter_ : nullptr, sampler_, options);
    std::vector<Token> prompt;
    for (std::int64_t i = 0; i < context_len; ++i) prompt.push_back(token_at(model, static_cast<std::size_t>(i)));
    DecodingOptions decoding;
    decoding.parameters.temperature = 0.0f;
    decoding.num_speculative_tokens = static_cast<int>(drafts);
    decoding.stop.max_tokens = tokens;
    engine_->submit(prompt, decoding, drafts > 0);
    engine_->step();  // the prompt
  }

  struct Times {
    double step_ms;
    double rest_ms;  // beside the pass
  };
  Times next() {
    const std::int64_t before = engine_->scheduler().metrics().verify_ns;
    const auto begin = std::chrono::steady_clock::now();
    engine_->step();
    const double all = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    return {all, all - kMsPerNs * static_cast<double>(engine_->scheduler().metrics().verify_ns - before)};
  }

 private:
  GuessingDrafter drafter_;
  PhiloxSource source_;
  SourceSampler<PhiloxSource> sampler_;
  std::unique_ptr<Engine> engine_;
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
      const EngineSteps::Times taken = steps[i]->next();
      times[i].push_back(taken.step_ms);
      if (i == 0) rest.push_back(taken.rest_ms);
    }
    if (done) done();
  }
  profile.step_ms = lower_quartile(rest);
  for (std::size_t i = 0; i < times.size(); ++i) profile.passes[i].ms = lower_quartile(times[i]) - profile.step_ms;
  return profile;
}

}  // namespace draftproof
