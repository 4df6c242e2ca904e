// Many requests at once against each of them alone, decoded plainly: at temperature 0 and with the coupled verifier the
// same tokens, whatever the batch, the drafter, chunks, shared prefixes, preemption, swapping and cancellation.
#include "engine/decode/engine.hpp"

#include "engine/decode/generate.hpp"
#include "engine/draft/model_drafter.hpp"
#include "engine/draft/prompt_lookup.hpp"
#include "engine/draft/suffix_drafter.hpp"
#include "tests/engine/decode/random_requests.hpp"
#include "tests/engine/decode/toy_model.hpp"
#include "tests/support/test.hpp"

namespace {

constexpr std::int64_t kVocab = 7;

std::unique_ptr<Drafter> random_drafter(std::mt19937& random, LanguageModel& model, const RowParameters& parameters) {
  switch (random() % 3) {
    case 0:
      return std::make_unique<ModelDrafter>(model, parameters);
    case 1:
      return std::make_unique<LookupDrafter>(PromptLookup(1, 4));
    default:
      return std::make_unique<SuffixDrafter>();
  }
}

// Log-probabilities of the prompt are those of rows that are asked for one by one; the first has one behind the start.
void check_prompt(ToyModel& target, const Request& request, const Generation& found) {
  REQUIRE(found.prompt_logprobs.size() == request.prompt.size());
  std::vector<float> row(static_cast<std::size_t>(kVocab));
  for (std::size_t i = 0; i < request.prompt.size(); ++i) {
    std::vector<Token> seen;
    target.logits(std::span(request.prompt).first(i), row);
    double total = 0.0;
    for (const float x : row) total += std::exp(static_cast<double>(x));
    for (const TokenLogprob& entry : found.prompt_logprobs[i]) {
      seen.push_back(entry.token);
      const auto x = static_cast<double>(row[static_cast<std::size_t>(entry.token)]);
      CHECK(static_cast<double>(entry.logprob) == Approx(x - std::log(total)).epsilon(1e-5).margin(1e-5));
      CHECK(entry.rank > std::count_if(row.begin(), row.end(), [&](float y) { return static_cast<double>(y) > x; }));
    }
    for (const Token token : {request.prompt[i], Token{5}, Token{0}})
      CHECK(std::count(seen.begin(), seen.end(), token) == 1);
  }
}

TEST_CASE("requests in a batch get the tokens that each gets alone by plain decoding") {
  ToyModel target(kVocab, 1, 2);
  ToyModel draft_model(kVocab, 1, 3);
  std::int64_t preemptions = 0;
  std::int64_t shared = 0;
  std::int64_t accepted = 0;
  std::int64_t prompt_rows = 0;
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const bool greedy = seed % 3 != 0;
    const char* verifier =
        greedy ? std::array{"chain", "block", "traversal", "target_only", "typical"}[seed % 5] : "coupled";
    std::vector<Request> requests = random_requests(random, kVocab, verifier, greedy);
    const EngineOptions options = random_options(random);
    // Some ask for log-probabilities of their prompt, too: no token changes, and no row comes out of the cache.
    for (std::size_t i = seed % 2; i < requests.size(); i += 2) {
      requests[i].options.num_prompt_logprobs = 2;
      requests[i].options.logprob_token_ids = {5, 0};
    }
    RowParameters draft_parameters;
    draft_parameters.temperature = greedy ? 0.0f : 0.8f;
    const auto drafter = random_drafter(random, draft_model, draft_parameters);
    PhiloxSource source;
    SourceSampler<PhiloxSource> sampler(source);
    Engine engine(target, drafter.get(), sampler, options);
    for (const Request& request : requests) engine.submit(request.prompt, request.options, request.speculates);
    const bool cancels = random() % 4 == 0;
    if (cancels) {
      for (int i = 0; i < 3; ++i) engine.step();
      engine.cancel(0);
    }
    engine.run();
    CHECK(engine.scheduler().blocks().num_held() == 0);
    preemptions += engine.scheduler().metrics().preemptions;
    shared += engine.scheduler().metrics().prefix_hits;
    accepted += engine.scheduler().metrics().acceptance.accepted_tokens;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const Generation alone = generate(target, nullptr, requests[i].options, requests[i].prompt, source);
      const auto together = engine.take(i);
      REQUIRE(together.has_value());
      CHECK_FALSE(together->failure);
      if (requests[i].options.num_prompt_logprobs && together->finish_reason != FinishReason::abort) {
        check_prompt(target, requests[i], *together);
        prompt_rows += static_cast<std::int64_t>(together->prompt_logprobs.size());
      }
      if (i == 0 && cancels && together->finish_reason == FinishReason::abort) {
        REQUIRE(together->tokens.size() <= alone.tokens.size());
        CHECK(std::equal(together->tokens.begin(), together->tokens.end(), alone.tokens.begin()));
        continue;
      }
      CHECK(together->tokens == alone.tokens);
      CHECK(together->finish_reason == alone.finish_reason);
    }
  }
  CHECK(preemptions > 50);
  CHECK(shared > 1000);
  CHECK(accepted > 1000);
  CHECK(prompt_rows > 1000);
}

TEST_CASE("who looks at the steps sees each once, before it is committed, with its times") {
  ToyModel target(kVocab, 1, 2);
  PhiloxSource source;
  SourceSampler<PhiloxSource> sampler(source);
  Engine engine(target, nullptr, sampler, {});
  DecodingOptions options;
  options.stop.max_tokens = 5;
  const std::uint64_t request = engine.submit(std::array<Token, 3>{1, 2, 3}, options);
  std::int64_t steps = 0;
  std::int64_t last_end_ns = 0;
  engine.on_step([&](const StepPlan& plan, const StepOutcome& outcome) {
    CHECK(plan.step == steps);
    CHECK(outcome.sequences.size() == plan.requests.size());
    CHECK(engine.scheduler().metrics().steps == steps);
    CHECK(outcome.begin_ns >= last_end_ns);
    CHECK(outcome.draft_ns + outcome.verify_ns + outcome.sample_ns <= outcome.end_ns - outcome.begin_ns);
    last_end_ns = outcome.end_ns;
    ++steps;
  });
  engine.run();
  CHECK(steps == 5);
  CHECK(engine.scheduler().metrics().last_end_ns == last_end_ns);
  CHECK(engine.take(request)->tokens ==
        generate(target, nullptr, options, std::array<Token, 3>{1, 2, 3}, source).tokens);
}

TEST_CASE("a request that cannot go on ends alone, and says why") {
  PoisonedModel target(kVocab, 5);
  LookupDrafter drafter{PromptLookup(1, 4)};
  PhiloxSource source;
  SourceSampler<PhiloxSource> sampler(source);
  Engine engine(target, &drafter, sampler, {});
  DecodingOptions options;
  options.stop.max_tokens = 12;
  options.parameters.temperature = 0.0f;
  const std::vector<Token> sound{1, 2, 1, 2};
  const std::vector<Token> poisoned{6, 1, 2, 1};
  engine.submit(sound, options);
  engine.submit(poisoned, options);
  engine.submit(sound, options, false);
  engine.run();
  CHECK(engine.take(0)->tokens == generate(target, &drafter, options, sound, source).tokens);
  const auto failed = engine.take(1);
  REQUIRE(failed->failure);
  CHECK_THROWS_WITH(std::rethrow_exception(failed->failure), Contains("NaN") && Contains("column 3"));
  CHECK(failed->tokens.size() < 12);
  CHECK(engine.take(2)->tokens == generate(target, nullptr, options, sound, source).tokens);
  CHECK_FALSE(engine.take(2).has_value());
}

TEST_CASE("a request that the engine cannot take is refused by name and the others go on") {
  ToyModel target(kVocab, 1, 2);
  PhiloxSource source;
  SourceSampler<PhiloxSource> sampler(source);
  EngineOptions small;
  small.scheduler.num_blocks = 2;
  Engine engine(target, nullptr, sampler, small);
  DecodingOptions options;
  options.stop.max_tokens = 10;
  const std::vector<Token> prompt(20, 3);
  CHECK_NOTHROW(engine.submit(prompt, options));
  CHECK_THROWS_WITH(engine.submit(std::vector<Token>(30, 3), options, true, "prompts.jsonl, line 2"),
                    Contains("prompts.jsonl, line 2"));
  CHECK_THROWS_WITH(engine.submit(std::vector<Token>{8}, options), Contains("outside the vocabulary"));
  engine.run();
  CHECK(engine.take(0)->tokens.size() == 10);
}

}  // namespace
