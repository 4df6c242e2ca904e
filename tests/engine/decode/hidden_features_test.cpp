// The hidden features that a drafter asks for: those of every committed token once, in order, as a pass over the plain
// text computes them.
#include "engine/decode/engine.hpp"
#include "engine/transformer/transformer_model.hpp"
#include "tests/engine/transformer/random_tensors.hpp"
#include "tests/support/forward_alone.hpp"
#include "tests/support/test.hpp"

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
  }
  std::span<const std::int32_t> hidden_layers() const override { return kLayers; }
  void observe(std::span<const ComputedTokens> computed, std::span<const float> features, DraftCache*) override {
    const std::size_t width = kLayers.size() * 96;
    for (const ComputedTokens& of : computed) {
      Shown& shown = requests[of.request];
      shown.tokens.assign(of.stream.begin(), of.stream.end());
      shown.spans.push_back({of.first, static_cast<std::int64_t>(of.rows.size())});
      for (std::size_t i = 0; i < of.rows.size(); ++i) {
        const auto row = features.subspan(static_cast<std::size_t>(of.rows[i]) * width, width);
        shown.features[of.first + static_cast<std::int64_t>(i)].push_back({row.begin(), row.end()});
      }
    }
  }

  struct Shown {
    std::map<std::int64_t, std::vector<std::vector<float>>> features;  // by position, as often as they came
    std::vector<std::pair<std::int64_t, std::int64_t>> spans;          // first and number, as they came
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

  // Features of a request that were shown are those of a pass over its text, at every position and as often as they
  // came. Returns the positions that were shown, times included.
  std::int64_t check(std::uint64_t request) {
    const WatchingDrafter::Shown& shown = drafter.requests.at(request);
    const std::vector<float> all = features_of(target, shown.tokens);
    const std::size_t width = all.size() / shown.tokens.size();
    std::int64_t times = 0;
    bool equal = true;
    for (const auto& [position, rows] : shown.features)
      for (const std::vector<float>& row : rows) {
        equal =
            equal && std::ranges::equal(row, std::span(all).subspan(static_cast<std::size_t>(position) * width, width));
        ++times;
      }
    INFO("request " << request);
    CHECK(equal);
    return times;
  }
};

TEST_CASE("a drafter is shown the hidden features of every computed token once and in order") {
  WatchedRun run;
  Engine engine(run.target, &run.drafter, run.sampler, run.options);
  engine.submit(run.prompt, run.decoding);
  engine.run();
  CHECK(engine.scheduler().metrics().acceptance.accepted_tokens > 0);
  const WatchingDrafter::Shown& shown = run.drafter.requests.at(0);
  REQUIRE(shown.tokens.size() == 220);
  const std::int64_t times = run.check(0);
  CHECK(times >= 219);  // the newest token need not have been computed
  CHECK(times == static_cast<std::int64_t>(shown.features.size()));
  std::int64_t end = 0;
  for (const auto& [first, count] : shown.spans) {
    CHECK(first == end);
    end = first + count;
  }
}

TEST_CASE("what a preemption makes the target compute again is shown again, and the same") {
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
  std::int64_t times = 0;
  std::int64_t positions = 0;
  for (std::uint64_t request = 0; request < 3; ++request) {
    times += run.check(request);
    positions += std::ssize(run.drafter.requests.at(request).features);
    CHECK(run.drafter.requests.at(request).features.size() >= 119);
  }
  CHECK(times == positions + engine.scheduler().metrics().recomputed_tokens);
}

TEST_CASE("features match their tokens whatever caches and preemptions do, and tokens that are spared have none") {
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
  for (std::uint64_t request = 0; request < kRequests; ++request) run.check(request);
  CHECK(run.drafter.requests.at(kRequests - 1).features.begin()->first > 0);
}

}  // namespace
}  // namespace draftproof::testing
