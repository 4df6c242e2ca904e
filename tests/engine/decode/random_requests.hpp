// Random requests and engine options for tests of whole runs: small caches, chunks, shared prefixes, both policies.
#pragma once

#include "engine/decode/engine.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {

struct Request {
  std::vector<Token> prompt;
  DecodingOptions options;
  bool speculates = true;
};

// Prompts of which many begin alike; options of all kinds.
inline std::vector<Request> random_requests(std::mt19937& random, std::size_t vocab, const std::string& verifier,
                                            bool greedy) {
  const auto below = [&](std::size_t n) { return random() % n; };
  std::vector<Token> common;
  for (int i = 0; i < 40; ++i) common.push_back(static_cast<Token>(below(vocab)));
  std::vector<Request> requests;
  for (std::size_t n = 1 + below(12); n > 0; --n) {
    Request request;
    request.prompt.assign(common.begin(), common.begin() + static_cast<long>(below(common.size())));
    for (std::size_t i = below(9); i > 0; --i) request.prompt.push_back(static_cast<Token>(below(vocab)));
    DecodingOptions& options = request.options;
    options.verify.verifier = parse_verifier(verifier, "test");
    options.parameters.temperature = greedy ? 0.0f : 0.8f;
    if (below(3) == 0) options.parameters.frequency_penalty = 0.4f;
    if (below(3) == 0) {
      options.parameters.guidance_scale = 1.5f;
      if (below(2) == 0) options.unconditional_prompt = {1, 2, 3};
    }
    options.stop.max_tokens = static_cast<std::int64_t>(1 + below(40));
    if (below(3) == 0) options.stop.stop_token_ids = {static_cast<Token>(below(vocab))};
    options.seed = random();
    options.num_speculative_tokens = static_cast<int>(below(6));
    const VerifierInfo& info = options.verify.verifier.info();
    if (info.draft != DraftForm::chain && info.proposal != DraftSampling::independent_paths &&
        info.verifier != Verifier::coupled_list && below(2) == 0)
      options.tree = branching_shape({2, 2, 1});
    request.speculates = below(5) != 0;
    requests.push_back(std::move(request));
  }
  return requests;
}

inline EngineOptions random_options(std::mt19937& random) {
  const auto below = [&](std::size_t n) { return random() % n; };
  EngineOptions options;
  SpeculationChoice choice;
  choice.rule = SpeculationRule::fixed;
  choice.num_drafts = 20;
  if (below(3) == 0) choice.rule = SpeculationRule::threshold;
  if (below(3) == 0) choice.rule = SpeculationRule::likely;
  options.policy = SpeculationPolicy(choice, std::make_shared<DefaultStepCost>());
  options.scheduler.num_blocks = static_cast<std::int32_t>(14 + below(8));
  options.scheduler.token_budget = static_cast<std::int32_t>(16 + below(100));
  options.scheduler.prefill_chunk_max = static_cast<std::int32_t>(1 + below(40));
  options.scheduler.running_max = static_cast<std::int32_t>(1 + below(12));
  if (below(3) == 0) options.scheduler.policy = StepPolicy::two_phase;
  if (below(3) == 0) {
    options.scheduler.preemption = Preemption::swap;
    options.scheduler.num_swap_blocks = 40;
  }
  options.share_prefixes = below(3) != 0;
  return options;
}

}  // namespace draftproof::testing
