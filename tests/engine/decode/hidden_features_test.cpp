// The hidden features that a drafter asks for: those of every committed token once, in order, as a pass over the plain
// text computes them.
#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <utility>

#include "engine/decode/engine.hpp"
#include "engine/transformer/transformer_model.hpp"
#include "tests/engine/transformer/random_tensors.hpp"
#include "tests/support/forward_alone.hpp"

namespace draftproof::testing {
namespace {

constexpr std::array<std::int32_t, 2> kLayers{1, 3};

// Features [tokens, layers, width] of a text, computed at once.
std::vector<float> features_of(TransformerModel& model, std::span<const Token> tokens) {
  return forward_alone(model, tokens, {}, kLayers).out.hidden;
}

// Drafts a tree of guesses, and keeps what it is shown of each request.
class WatchingDrafter final : public Drafter {
 public:
  void propose(const DraftContext& context, const DraftPlan& plan, DraftChance&, Draft& out) override {
    out = {};
    out.tree.add(static_cast<Token>(context.tokens.size() % 117), kRootNode);
    if (plan.shape.size() > 1) out.tree.add(next_guess++ % 117, kRootNode);
    if (plan.shape.size() > 2) out.tree.add(5, 1);
    Shown& shown = requests[context.request];
    shown.features.insert(shown.features.end(), context.hidden.begin(), context.hidden.end());
    shown.tokens.assign(context.tokens.begin(), context.tokens.end());
    shown.parts.push_back({context.hidden_end, {context.hidden.begin(), context.hidden.end()}});
  }
  std::span<const std::int32_t> hidden_layers() const override { return kLayers; }

  struct Part {
    std::size_t end;  // behind the last token with features
    std::vector<float> features;
  };
  struct Shown {
    std::vector<float> features;
    std::vector<Part> parts;  // the same, as they came
    std::vector<Token> tokens;
  };
  Token next_guess = 0;
  std::map<std::uint64_t, Shown> requests;
};

struct WatchedRun {
  RandomLlama tiny{9, {TensorKind::q4_1}, RopePairing::adjacent, false};
  TransformerModel target{tiny.weights(), Arithmetic::int8, 1};
  WatchingDrafter drafter;
  PhiloxSource source;
  SourceSampler<PhiloxSource> sampler{source};
  EngineOptions options;
  DecodingOptions decoding;
  std::vector<Token> prompt = std::vector<Token>(20);

  WatchedRun() {
    options.scheduler.prefill_chunk_max = 7;
    options.policy = SpeculationPolicy(parse_speculation("fixed:3", "test"));
    decoding.verify.verifier = parse_verifier("target_only", "test");
    decoding.tree = branching_shape({2, 1});
    decoding.parameters.temperature = 2.0f;
    decoding.stop.max_tokens = 200;
    std::iota(prompt.begin(), prompt.end(), 3);
  }

  // All but the newest token, which no pass has computed when the last draft is proposed.
  std::vector<float> expected(std::uint64_t request) {
    const std::vector<Token>& tokens = drafter.requests.at(request).tokens;
    REQUIRE(tokens.size() > 20);
    return features_of(target, std::span<const Token>(tokens).first(tokens.size() - 1));
  }
};

TEST_CASE("a drafter sees the hidden features of every committed token once and in order") {
  WatchedRun run;
  Engine engine(run.target, &run.drafter, run.sampler, run.options);
  engine.submit(run.prompt, run.decoding);
  engine.run();
  CHECK(engine.scheduler().metrics().acceptance.accepted_tokens > 0);
  REQUIRE(run.drafter.requests.at(0).tokens.size() > 150);
  CHECK(run.drafter.requests.at(0).features == run.expected(0));
}

TEST_CASE("a drafter sees no hidden features again that a preemption makes the target compute again") {
  WatchedRun run;
  run.options.share_prefixes = false;
  run.options.scheduler.num_blocks = 10;
  run.decoding.stop.max_tokens = 100;
  Engine engine(run.target, &run.drafter, run.sampler, run.options);
  for (std::uint64_t request = 0; request < 3; ++request) {
    run.decoding.seed = request;
    engine.submit(run.prompt, run.decoding);
  }
  engine.run();
  CHECK(engine.scheduler().metrics().preemptions > 0);
  CHECK(engine.scheduler().metrics().recomputed_tokens > 0);
  for (std::uint64_t request = 0; request < 3; ++request) {
    CHECK(run.drafter.requests.at(request).tokens.size() > 100);
    CHECK(run.drafter.requests.at(request).features == run.expected(request));
  }
}

TEST_CASE("tokens that the prefix cache spares have no hidden features, and those behind them follow") {
  WatchedRun run;
  Engine engine(run.target, &run.drafter, run.sampler, run.options);
  for (std::uint64_t request = 0; request < 2; ++request) {
    engine.submit(run.prompt, run.decoding);
    engine.run();
  }
  const std::int64_t hits = engine.scheduler().metrics().prefix_hits;
  REQUIRE(hits > 0);
  const std::vector<float> all = run.expected(1);
  const std::vector<float>& seen = run.drafter.requests.at(1).features;
  const std::size_t per_token = all.size() / (run.drafter.requests.at(1).tokens.size() - 1);
  REQUIRE(seen.size() == all.size() - static_cast<std::size_t>(hits) * per_token);
  CHECK(std::equal(seen.begin(), seen.end(), all.end() - std::ssize(seen)));
}

TEST_CASE(
    "the features that a drafter sees always match the tokens that it receives, whatever caches and preemptions do") {
  // The second: requests that begin together are preempted within their prompt, and the cache then has more of it.
  const auto [num_blocks, steps_between] = GENERATE(std::pair{16, 3}, std::pair{9, 0});
  WatchedRun run;
  run.prompt.resize(70);
  std::iota(run.prompt.begin(), run.prompt.end(), 3);
  run.decoding.stop.max_tokens = 30;
  run.options.scheduler.num_blocks = num_blocks;
  Engine engine(run.target, &run.drafter, run.sampler, run.options);
  constexpr std::uint64_t kRequests = 12;
  for (std::uint64_t request = 0; request < kRequests; ++request) {
    run.decoding.seed = request;
    engine.submit(run.prompt, run.decoding);
    for (int i = 0; i < steps_between; ++i) engine.step();
  }
  engine.run();
  CHECK(engine.scheduler().metrics().preemptions > 0);
  CHECK(engine.scheduler().metrics().prefix_hits > 0);
  for (std::uint64_t request = 0; request < kRequests; ++request) {
    const WatchingDrafter::Shown& shown = run.drafter.requests.at(request);
    const std::vector<float> all = run.expected(request);
    const std::size_t per_token = all.size() / (shown.tokens.size() - 1);
    bool equal = true;
    for (const WatchingDrafter::Part& part : shown.parts) {
      REQUIRE(part.features.size() <= part.end * per_token);
      const auto behind = all.begin() + static_cast<std::ptrdiff_t>(part.end * per_token);
      equal = equal && std::equal(part.features.begin(), part.features.end(), behind - std::ssize(part.features));
    }
    INFO("request " << request);
    CHECK(equal);
  }
}

}  // namespace
}  // namespace draftproof::testing
