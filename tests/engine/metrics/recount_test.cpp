// Every sample of the Prometheus text against a recount from what requests were seen to do: guided ones with their
// companions, shared prefixes, preemptions, swaps, failures and cancellations. No sample is left out, so that a metric
// without a recount fails.
#include "engine/decode/engine.hpp"
#include "engine/draft/prompt_lookup.hpp"
#include "engine/metrics/prometheus.hpp"
#include "tests/engine/decode/random_requests.hpp"
#include "tests/engine/decode/toy_model.hpp"
#include "tests/support/test.hpp"

namespace {

constexpr std::int64_t kVocab = 7;

using Samples = std::map<std::string, double>;

Samples samples_of(const std::string& text) {
  Samples samples;
  std::istringstream lines(text);
  const std::string labels = R"(engine="0",model_name="m")";
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    const std::size_t space = line.rfind(' ');
    std::string name = line.substr(0, space);
    const std::size_t at = name.find(labels);
    REQUIRE(at != std::string::npos);
    name.erase(at, labels.size() + (name[at + labels.size()] == ',' ? 1 : 0));
    CHECK(samples.emplace(name, std::stod(line.substr(space + 1))).second);
  }
  return samples;
}

class Recount {
 public:
  Recount(Engine& engine, bool share_prefixes) : engine_(engine), share_prefixes_(share_prefixes) {
    engine.on_tokens([this](const ActiveRequest& request, std::size_t num_tokens, const std::string&) {
      generated_ += static_cast<double>(num_tokens);
      ++emitting_;
      emitted_[request.id] = num_tokens;
      if (!request.speculates) return;
      if (const std::size_t drafted = request.step.draft.tree.size(); drafted > 0)
        shares_.push_back(static_cast<double>(1000 * request.step.emission.path.size() / drafted) / 1000.0);
      drafts_ += request.step.draft.tree.empty() ? 0 : 1;
      draft_tokens_ += request.step.draft.tree.size();
      for (std::size_t j = 0; j < request.step.emission.path.size(); ++j) ++accepted_[j];
    });
    engine.on_step([this](const StepPlan& plan, const StepOutcome& outcome) { count_step(plan, outcome); });
  }

  // After a step: what became of the requests.
  void look() {
    running_ = waiting_ = 0;
    std::set<std::int32_t> blocks;
    for (RequestHandle handle = 0; handle < engine_.backend().num_handles(); ++handle) {
      if (!engine_.backend().has(handle)) continue;
      const RequestProgress& progress = engine_.scheduler().progress(handle);
      RequestState& before = states_.try_emplace(id(handle), RequestState::waiting).first->second;
      running_ += progress.state == RequestState::running ? 1 : 0;
      waiting_ += progress.state == RequestState::running ? 0 : 1;
      preemptions_ += before == RequestState::running && progress.state != RequestState::running ? 1 : 0;
      before = progress.state;
      for (const StreamProgress& stream : progress.streams)
        blocks.insert(stream.table.blocks.begin(), stream.table.blocks.end());
    }
    usage_ = static_cast<double>(blocks.size()) / engine_.scheduler().options().num_blocks;
  }

  void count_end(std::uint64_t request, const Generation& generation) {
    const bool failed = generation.failure != nullptr;
    const std::string reason(failed ? "error" : engine_name(generation.finish_reason));
    ++ended_[reason];
    if (reason != "stop" && reason != "length") return;
    const Known& known = known_.at(request);
    const auto tokens = static_cast<std::int64_t>(generation.tokens.size());
    if (tokens > 1) tpot_.push_back((known.last_ns - known.first_ns) / (tokens - 1));
    e2e_.push_back(known.last_ns);
  }

  void check(const std::string& text) const {
    Samples found = samples_of(text);
    const auto take = [&](const std::string& name, double expected, const std::string& of = "vllm:") {
      INFO(name);
      const auto at = found.find(of + name);
      REQUIRE(at != found.end());
      CHECK(at->second == Approx(expected).margin(1e-12));
      found.erase(at);
    };
    take("num_requests_running{}", running_);
    take("num_requests_waiting{}", waiting_);
    take("kv_cache_usage_perc{}", usage_);
    take("prefix_cache_queries_total{}", queries_);
    take("prefix_cache_hits_total{}", hits_);
    take("num_preemptions_total{}", preemptions_);
    take("prompt_tokens_total{}", prompt_tokens_);
    take("generation_tokens_total{}", generated_);
    for (const std::string reason : {"stop", "length", "abort", "error"}) {
      const auto at = ended_.find(reason);
      take("request_success_total{finished_reason=\"" + reason + "\"}", at == ended_.end() ? 0 : at->second);
    }
    take("spec_decode_num_drafts_total{}", drafts_);
    take("spec_decode_num_draft_tokens_total{}", draft_tokens_);
    double accepted = 0;
    for (std::size_t j = 0;; ++j) {
      const std::string name = "spec_decode_num_accepted_tokens_per_pos_total{position=\"" + std::to_string(j) + "\"}";
      const auto at = accepted_.find(j);
      if (at == accepted_.end() && !found.contains("vllm:" + name)) break;
      take(name, at == accepted_.end() ? 0 : at->second);
      accepted += at == accepted_.end() ? 0 : at->second;
    }
    take("spec_decode_num_accepted_tokens_total{}", accepted);
    std::vector<double> shares = shares_;
    std::ranges::sort(shares);
    take("acceptance_rate_p50{}", shares.empty() ? 0.0 : shares[(shares.size() - 1) / 2], "draftproof:");
    take("tokens_per_row{}", drafts_ > 0 ? (accepted + drafts_) / (draft_tokens_ + drafts_) : 0.0, "draftproof:");
    take("draft_seconds_total{}", draft_s_, "draftproof:");
    take("verify_seconds_total{}", verify_s_, "draftproof:");
    const double overhead = verify_s_ > 0 ? draft_s_ / verify_s_ : 0.0;
    take("overhead_ratio{}", overhead, "draftproof:");
    take("effective_speedup{}", emitting_ > 0 ? generated_ / emitting_ / (1 + overhead) : 0.0, "draftproof:");
    const auto histogram = [&](const std::string& name, const std::vector<std::int64_t>& observed) {
      std::vector<std::pair<std::string, double>> expected;
      const std::string bucket = name + "_bucket{le=\"";
      for (const auto& [key, value] : found) {
        if (!key.starts_with("vllm:" + bucket)) continue;
        const std::string bound = key.substr(bucket.size() + 5, key.find('"', bucket.size() + 5) - bucket.size() - 5);
        const double most_ns = bound == "+Inf" ? 1e300 : std::round(std::stod(bound) * 1e9);
        expected.emplace_back(key.substr(5), std::ranges::count_if(observed, [&](std::int64_t ns) {
                                return static_cast<double>(ns) <= most_ns;
                              }));
      }
      CHECK(expected.size() > 10);
      for (const auto& [key, count] : expected) take(key, count);
      double sum = 0;
      for (const std::int64_t ns : observed) sum += static_cast<double>(ns) * 1e-9;
      take(name + "_count{}", static_cast<double>(observed.size()));
      take(name + "_sum{}", sum);
    };
    histogram("time_to_first_token_seconds", ttft_);
    histogram("inter_token_latency_seconds", inter_token_);
    histogram("request_time_per_output_token_seconds", tpot_);
    histogram("request_queue_time_seconds", queue_);
    histogram("e2e_request_latency_seconds", e2e_);
    for (const auto& [key, value] : found) FAIL_CHECK("no recount of " << key);
  }

  double preemptions() const { return preemptions_; }
  double companion_prompt_tokens() const { return companion_prompt_tokens_; }
  double hits() const { return hits_; }
  double companion_hits() const { return companion_hits_; }
  const std::map<std::string, double>& ended() const { return ended_; }

 private:
  struct Known {
    bool begun = false;
    std::int64_t first_ns = -1, last_ns = -1;
    std::array<std::int64_t, kStreamsMax> prompt_len{}, end{};  // end: positions that once had their KV
  };

  std::uint64_t id(RequestHandle handle) const { return engine_.backend().request(handle).id; }

  // The tokens of the step have come to the requests already; the scheduler does not know of them.
  void count_step(const StepPlan& plan, const StepOutcome& outcome) {
    draft_s_ += static_cast<double>(outcome.draft_ns) * 1e-9;
    verify_s_ += static_cast<double>(outcome.verify_ns) * 1e-9;
    for (const PlannedRequest& planned : plan.requests) {
      const ActiveRequest& request = engine_.backend().request(planned.request);
      Known& known = known_[request.id];
      const auto now = emitted_.find(request.id);
      const std::size_t emitted = now == emitted_.end() ? 0 : now->second;
      const auto state = states_.find(request.id);
      const bool looked_up = state == states_.end() || state->second == RequestState::waiting;
      for (std::size_t s = 0; s < request.streams.size(); ++s) {
        const PlannedStream& stream = planned.streams[s];
        const auto tokens = static_cast<std::int64_t>(request.streams[s].size() - emitted);
        if (!known.begun) known.prompt_len[s] = tokens;
        if (looked_up && share_prefixes_ && tokens >= kKvBlockSlots) {
          queries_ += static_cast<double>(tokens);
          hits_ += static_cast<double>(stream.context.length);
          if (s == 1) companion_hits_ += static_cast<double>(stream.context.length);
        }
        for (std::int64_t position = stream.context.length; position < stream.end(); ++position) {
          if (position >= known.prompt_len[s] || position < known.end[s]) continue;
          ++prompt_tokens_;
          if (s == 1) ++companion_prompt_tokens_;
        }
        known.end[s] = std::max(known.end[s], stream.end());
      }
      if (!std::exchange(known.begun, true)) queue_.push_back(outcome.begin_ns);
      if (emitted == 0) continue;
      (known.first_ns < 0 ? ttft_ : inter_token_)
          .push_back(known.first_ns < 0 ? outcome.end_ns : outcome.end_ns - known.last_ns);
      if (known.first_ns < 0) known.first_ns = outcome.end_ns;
      known.last_ns = outcome.end_ns;
    }
    emitted_.clear();
  }

  Engine& engine_;
  bool share_prefixes_;
  std::map<std::uint64_t, RequestState> states_;  // after the last step
  std::map<std::uint64_t, Known> known_;
  std::map<std::uint64_t, std::size_t> emitted_;  // in the step under way
  double running_ = 0, waiting_ = 0, usage_ = 0;
  double queries_ = 0, hits_ = 0, companion_hits_ = 0, preemptions_ = 0;
  double prompt_tokens_ = 0, companion_prompt_tokens_ = 0, generated_ = 0, drafts_ = 0, draft_tokens_ = 0;
  double emitting_ = 0, draft_s_ = 0, verify_s_ = 0;
  std::vector<double> shares_;              // accepted of each draft, rounded down to a thousandth
  std::map<std::size_t, double> accepted_;  // by position
  std::map<std::string, double> ended_;     // by reason
  std::vector<std::int64_t> ttft_, inter_token_, tpot_, queue_, e2e_;
};

TEST_CASE("every sample that the engine exports is that of a recount from its requests", "[metrics]") {
  PoisonedModel target(kVocab, 20);
  double preemptions = 0, hits = 0, companions = 0, companion_hits = 0;
  std::map<std::string, double> ended;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    std::vector<Request> requests = random_requests(random, kVocab, seed % 2 == 0 ? "chain" : "target_only", false);
    // Companions that share more than a block.
    for (Request& request : requests)
      if (!request.options.unconditional_prompt.empty()) request.options.unconditional_prompt.assign(20, 1);
    const EngineOptions options = random_options(random);
    LookupDrafter drafter{PromptLookup(1, 4)};
    PhiloxSource source;
    SourceSampler<PhiloxSource> sampler(source);
    Engine engine(target, &drafter, sampler, options);
    Recount recount(engine, options.share_prefixes);
    for (const Request& request : requests) engine.submit(request.prompt, request.options, request.speculates);
    const auto collect = [&] {
      for (std::uint64_t request = 0; request < requests.size(); ++request)
        if (const auto generation = engine.take(request)) recount.count_end(request, *generation);
      recount.look();
    };
    std::uint64_t cancelled = 0;
    for (int steps = 1; engine.step(); ++steps) {
      collect();
      if (steps % 7 == 0) recount.check(prometheus_text(engine.scheduler().metrics(), "m"));
      if (steps % 40 == 0 && engine.cancel(cancelled++)) collect();
    }
    recount.check(prometheus_text(engine.scheduler().metrics(), "m"));
    preemptions += recount.preemptions();
    hits += recount.hits();
    companions += recount.companion_prompt_tokens();
    companion_hits += recount.companion_hits();
    for (const auto& [reason, count] : recount.ended()) ended[reason] += count;
  }
  CHECK(preemptions > 10);
  CHECK(hits > companion_hits);
  CHECK(companion_hits > 0);
  CHECK(companions > 100);
  for (const std::string reason : {"stop", "length", "abort", "error"}) {
    INFO(reason);
    CHECK(ended[reason] > 0);
  }
}

}  // namespace
