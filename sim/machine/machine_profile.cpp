#include "sim/machine/machine_profile.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "base/error.hpp"
#include "engine/decode/paired_run.hpp"
#include "engine/draft/drafter.hpp"
#include "sim/toml.hpp"

namespace draftproof {
namespace {

constexpr double kNsPerMs = 1e6;
constexpr double kMsMax = 1e9;
constexpr std::int64_t kCountMax = 1'000'000'000;

// Those at the context of the first, by rows.
std::vector<TimedPass> by_rows(const MachineProfile& profile) {
  std::vector<TimedPass> passes;
  for (const TimedPass& pass : profile.passes)
    if (pass.context_len == profile.passes.front().context_len) passes.push_back(pass);
  return passes;
}

// Milliseconds that a token of context adds to a row.
double ms_of_context_token(const MachineProfile& profile) {
  const TimedPass& near = profile.passes.front();
  for (const TimedPass& far : profile.passes)
    if (far.rows == near.rows && far.context_len > near.context_len)
      return std::max(0.0, far.ms - near.ms) / static_cast<double>(far.context_len - near.context_len);
  return 0.0;
}

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

double MachineProfile::pass_ms(double rows, double context_len) const {
  const std::vector<TimedPass> timed = by_rows(*this);
  std::size_t above = 1;
  while (above + 1 < timed.size() && static_cast<double>(timed[above].rows) < rows) ++above;
  const TimedPass& a = timed[above - 1];
  const TimedPass& b = timed[above];
  const double slope = (b.ms - a.ms) / static_cast<double>(b.rows - a.rows);
  const double at_context = a.ms + slope * (rows - static_cast<double>(a.rows));
  const double ms = at_context + rows * ms_of_context_token(*this) * (context_len - static_cast<double>(a.context_len));
  const auto fastest = std::ranges::min_element(passes, {}, &TimedPass::ms);
  return std::max(ms, 0.5 * fastest->ms);
}

void check(const MachineProfile& profile, const std::string& where) {
  if (profile.passes.empty()) throw input_error(where, "it has no timed passes; expected two or more");
  for (const TimedPass& pass : profile.passes)
    if (!(pass.ms > 0.0 && std::isfinite(pass.ms)) || pass.rows < 1 || pass.context_len < 0)
      throw input_error(where, "a pass of " + std::to_string(pass.rows) + " rows takes " + std::to_string(pass.ms) +
                                   " ms; expected rows and times above 0");
  const std::vector<TimedPass> timed = by_rows(profile);
  if (timed.size() < 2)
    throw input_error(where, "it has " + std::to_string(timed.size()) + " row counts at context " +
                                 std::to_string(profile.passes.front().context_len) + "; expected two or more");
  for (std::size_t i = 1; i < timed.size(); ++i) {
    if (timed[i].rows <= timed[i - 1].rows)
      throw input_error(where, "passes of " + std::to_string(timed[i - 1].rows) + " and " +
                                   std::to_string(timed[i].rows) + " rows; expected rising row counts");
  }
}

std::string toml_of(const MachineProfile& profile) {
  std::ostringstream out;
  out << std::setprecision(17) << "[machine]\ncpu = " << toml_quoted(profile.cpu)
      << "\nsimd = " << toml_quoted(profile.simd) << "\nmodel = " << toml_quoted(profile.model)
      << "\narithmetic = " << toml_quoted(profile.arithmetic) << "\nthreads = " << profile.threads
      << "\nstep_ms = " << profile.step_ms << "\npasses = [\n";
  for (const TimedPass& pass : profile.passes)
    out << "  { rows = " << pass.rows << ", context_len = " << pass.context_len << ", ms = " << pass.ms << " },\n";
  out << "]\n";
  return out.str();
}

MachineProfile read_machine_profile(const std::string& path) {
  const TomlValue file = read_toml(path);
  file.allow_only({"machine"});
  const TomlValue& machine = file.at("machine");
  machine.allow_only({"cpu", "simd", "model", "arithmetic", "threads", "step_ms", "passes"});
  MachineProfile profile;
  profile.cpu = machine.at("cpu").text();
  profile.simd = machine.at("simd").text();
  profile.model = machine.at("model").text();
  profile.arithmetic = machine.at("arithmetic").text();
  profile.threads = static_cast<int>(machine.at("threads").integer(1, 1024));
  profile.step_ms = machine.at("step_ms").number(0.0, kMsMax);
  for (const TomlValue& pass : machine.at("passes").items()) {
    pass.allow_only({"rows", "context_len", "ms"});
    profile.passes.push_back({pass.at("rows").integer(1, kCountMax), pass.at("context_len").integer(0, kCountMax),
                              pass.at("ms").number(0.0, kMsMax)});
  }
  check(profile, machine.where());
  return profile;
}

double MachineCost::target_ns(const PassLoad& load) const {
  const auto context = static_cast<double>(profile_.passes.front().context_len);
  return kNsPerMs * (profile_.pass_ms(static_cast<double>(load.rows), context) +
                     profile_.step_ms * static_cast<double>(load.streams));
}

double MachineCost::draft_ns(const DraftLoad& load) const {
  const auto context = static_cast<double>(profile_.passes.front().context_len);
  return kNsPerMs * draft_share_ * load.passes * profile_.pass_ms(static_cast<double>(load.requests), context);
}

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
