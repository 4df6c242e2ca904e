#include "sim/machine/time_machine.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <span>

#include "reference/engine/engine.hpp"
#include "reference/error.hpp"
#include "reference/random/philox.hpp"

namespace draftproof {
namespace {

constexpr double kMsPerNs = 1e-6;

// What it takes where nothing much disturbs it.
double lower_quartile(std::vector<double> values) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 4);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

Token token_at(const LanguageModel& model, std::int64_t position) {
  return static_cast<Token>(position * 37 % model.vocab_size());
}

// A stream whose context is computed, and a chain of tokens after it.
class ChainPass {
 public:
  ChainPass(LanguageModel& model, std::int64_t context_len, std::int64_t rows)
      : model_(model),
        kv_(model.make_kv_cache((context_len + rows + kKvBlockSlots - 1) / kKvBlockSlots * kKvBlockSlots)),
        blocks_(static_cast<std::size_t>(kv_->num_slots() / kKvBlockSlots)) {
    std::iota(blocks_.begin(), blocks_.end(), 0);
    constexpr std::int64_t kChunk = 256;
    for (std::int64_t from = 0; from < context_len; from += kChunk) {
      set(from, std::min(kChunk, context_len - from));
      wanted_.assign(1, static_cast<std::int32_t>(tokens_.size() - 1));
      forward();
    }
    set(context_len, rows);
    wanted_.resize(tokens_.size());
    std::iota(wanted_.begin(), wanted_.end(), 0);
  }

  double timed_ms() {
    const auto begin = std::chrono::steady_clock::now();
    forward();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  }

 private:
  void set(std::int64_t from, std::int64_t count) {
    from_ = from;
    const auto n = static_cast<std::size_t>(count);
    tokens_.resize(n);
    positions_.resize(n);
    parents_.resize(n);
    slots_.resize(n);
    streams_.assign(n, 0);
    std::iota(parents_.begin(), parents_.end(), -1);
    std::iota(slots_.begin(), slots_.end(), from);
    std::iota(positions_.begin(), positions_.end(), static_cast<std::int32_t>(from));
    for (std::size_t i = 0; i < n; ++i) tokens_[i] = token_at(model_, slots_[i]);
  }
  void forward() {
    const StreamContext context{blocks_, from_};
    model_.forward({tokens_, positions_, streams_, parents_, slots_, {&context, 1}, wanted_, {}}, *kv_, out_);
  }

  LanguageModel& model_;
  std::unique_ptr<KvCache> kv_;
  std::vector<std::int32_t> blocks_;
  std::int64_t from_ = 0;
  std::vector<Token> tokens_;
  std::vector<std::int32_t> positions_, streams_, parents_, wanted_;
  std::vector<std::int64_t> slots_;
  ForwardOutput out_;
};

// Greedy decoding by the engine, step by step: the pass, and what comes with it.
class PlainSteps {
 public:
  PlainSteps(LanguageModel& model, std::int64_t context_len, int steps) : sampler_(source_) {
    EngineOptions options;
    options.share_prefixes = false;
    options.scheduler.num_blocks = static_cast<std::int32_t>((context_len + steps) / kKvBlockSlots + 4);
    options.scheduler.context_len_max = static_cast<std::int32_t>(model.context_len_max());
    engine_ = std::make_unique<Engine>(model, nullptr, sampler_, options);
    std::vector<Token> prompt;
    for (std::int64_t i = 0; i < context_len; ++i) prompt.push_back(token_at(model, i));
    DecodingOptions decoding;
    decoding.parameters.temperature = 0.0f;
    decoding.stop.max_tokens = steps + 2;
    engine_->submit(prompt, decoding, false);
    engine_->step();  // the prompt
  }

  struct Times {
    double pass_ms;
    double rest_ms;
  };
  Times next() {
    const std::int64_t before = engine_->scheduler().metrics().verify_ns;
    const auto begin = std::chrono::steady_clock::now();
    engine_->step();
    const double all = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    const double pass = kMsPerNs * static_cast<double>(engine_->scheduler().metrics().verify_ns - before);
    return {pass, all - pass};
  }

 private:
  PhiloxSource source_;
  SourceSampler<PhiloxSource> sampler_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace

MachineProfile time_machine(LanguageModel& model, const MachineTiming& timing, const std::function<void()>& done) {
  const std::int64_t longest =
      std::max(timing.far_context_len + 1, timing.context_len + timing.repeats + 2 + timing.rows.back());
  if (longest > model.context_len_max())
    throw usage_error("--model", "its context is " + std::to_string(model.context_len_max()) + "; expected " +
                                     std::to_string(longest) + " or more, to time passes in");
  PlainSteps plain(model, timing.context_len, timing.repeats);
  std::vector<std::unique_ptr<ChainPass>> chains;  // the first row count is timed in the engine
  MachineProfile profile;
  for (const std::int64_t rows : timing.rows) {
    profile.passes.push_back({rows, timing.context_len, 0.0});
    if (rows != timing.rows.front()) chains.push_back(std::make_unique<ChainPass>(model, timing.context_len, rows));
  }
  profile.passes.push_back({timing.rows.front(), timing.far_context_len, 0.0});
  chains.push_back(std::make_unique<ChainPass>(model, timing.far_context_len, timing.rows.front()));

  std::vector<std::vector<double>> times(profile.passes.size());
  std::vector<double> rest;
  for (int repeat = 0; repeat < timing.repeats; ++repeat) {
    const PlainSteps::Times step = plain.next();
    times[0].push_back(step.pass_ms);
    rest.push_back(step.rest_ms);
    for (std::size_t i = 0; i < chains.size(); ++i) times[i + 1].push_back(chains[i]->timed_ms());
    if (done) done();
  }
  for (std::size_t i = 0; i < times.size(); ++i) profile.passes[i].ms = lower_quartile(times[i]);
  profile.step_ms = lower_quartile(rest);
  return profile;
}

}  // namespace draftproof
