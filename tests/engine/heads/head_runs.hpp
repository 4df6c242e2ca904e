// Runs of heads on the tiny Llama: schedules, and what became of their requests.
#pragma once

#include "engine/decode/engine.hpp"
#include "tests/engine/decode/random_requests.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {

struct HeadSchedule {
  std::vector<Request> requests;
  std::vector<int> arrival_steps;  // [requests]
  std::vector<int> cancel_steps;   // [requests]; -1: never
  EngineOptions options;
};

struct HeadRun {
  std::vector<std::vector<Token>> texts;  // of cancelled requests what they had
  std::int64_t steps = 0;                 // of speculating requests
  EngineMetrics metrics;

  double acceptance_length() const {
    return 1.0 + static_cast<double>(metrics.acceptance.accepted_tokens) /
                     static_cast<double>(std::max<std::int64_t>(1, metrics.acceptance.drafts));
  }
};

inline HeadRun run_schedule_of_heads(LanguageModel& target, Drafter* drafter, const HeadSchedule& schedule) {
  PhiloxSource source;
  SourceSampler<PhiloxSource> sampler(source);
  Engine engine(target, drafter, sampler, schedule.options);
  std::vector<std::optional<std::uint64_t>> numbers(schedule.requests.size());
  int last_arrival = 0;
  for (const int step : schedule.arrival_steps) last_arrival = std::max(last_arrival, step);
  for (int step = 0;; ++step) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const Request& request = schedule.requests[i];
      if (schedule.arrival_steps[i] == step)
        numbers[i] = engine.submit(request.prompt, request.options, request.speculates);
      if (schedule.cancel_steps[i] == step && numbers[i]) engine.cancel(*numbers[i]);
    }
    if (!engine.step() && step >= last_arrival) break;
  }
  HeadRun run;
  for (const std::optional<std::uint64_t>& number : numbers) {
    const std::optional<Generation> generation = engine.take(*number);
    if (generation && generation->failure) std::rethrow_exception(generation->failure);
    run.texts.push_back(generation ? generation->tokens : std::vector<Token>());
  }
  run.metrics = engine.scheduler().metrics();
  return run;
}

inline HeadSchedule random_head_schedule(std::mt19937& random, std::size_t vocab) {
  const auto below = [&](std::size_t n) { return random() % n; };
  std::vector<std::string> lossless;
  for (const VerifierInfo& info : verifiers())
    if (info.lossless) lossless.emplace_back(info.name);
  HeadSchedule schedule;
  schedule.options = random_options(random);
  if (below(2) == 0) {  // more requests than the cache holds
    schedule.options.scheduler.num_blocks = 14;
    schedule.options.scheduler.running_max = 16;
  }
  schedule.requests = random_requests(random, vocab, "target_only", true);
  std::vector<Token> longest;
  for (const Request& request : schedule.requests)
    if (request.prompt.size() > longest.size()) longest = request.prompt;
  while (schedule.requests.size() < 1 + below(16)) schedule.requests.push_back(schedule.requests.front());
  for (Request& request : schedule.requests) {
    // Prompts that share whole blocks and differ in the next token.
    if (below(2) == 0) request.prompt.assign(longest.begin(), longest.begin() + std::ssize(longest) / 16 * 16);
    request.prompt.push_back(static_cast<Token>(below(vocab)));
    DecodingOptions& options = request.options;
    options.parameters.temperature = below(2) == 0 ? 0.0f : 0.8f;
    if (options.parameters.guidance_scale != 1.0f) options.unconditional_prompt = {1, 2, 3};
    options.verify.verifier = parse_verifier(lossless[below(lossless.size())], "test");
    const VerifierInfo& info = options.verify.verifier.info();
    const bool takes_trees = info.draft != DraftForm::chain && info.proposal != DraftSampling::independent_paths &&
                             info.verifier != Verifier::coupled_list;
    options.tree.reset();
    if (takes_trees && below(2) == 0) options.tree = branching_shape({2, 2, 1});
    if (takes_trees && below(4) == 0) options.tree = branching_shape({3, 1, 1, 1});
    options.num_speculative_tokens = static_cast<int>(below(6));
    options.seed = random();
    schedule.arrival_steps.push_back(below(2) == 0 ? 0 : static_cast<int>(below(20)));
    schedule.cancel_steps.push_back(below(8) == 0 ? static_cast<int>(below(30)) : -1);
  }
  // Steps without drafts among others: later drafts make up for them.
  if (below(3) == 0)
    schedule.options.policy = SpeculationPolicy(parse_speculation("schedule:1=4,2=0,4=4,6=0,9=4", "test"));
  return schedule;
}

}  // namespace draftproof::testing
