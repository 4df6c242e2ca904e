// The hidden features that a drafter asks for: those of every committed token once, in order, as a pass over the plain
// text computes them.
#include <catch2/catch.hpp>
#include <numeric>

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

// Drafts a tree of guesses, and keeps what it is shown.
class WatchingDrafter final : public Drafter {
 public:
  void propose(const DraftContext& context, const DraftPlan&, DraftChance&, Draft& out) override {
    out = {};
    out.tree.add(static_cast<Token>(context.tokens.size() % 117), kRootNode);
    out.tree.add(next_guess++ % 117, kRootNode);
    out.tree.add(5, 1);
    seen.insert(seen.end(), context.hidden.begin(), context.hidden.end());
    tokens.assign(context.tokens.begin(), context.tokens.end());
  }
  std::span<const std::int32_t> hidden_layers() const override { return kLayers; }

  Token next_guess = 0;
  std::vector<float> seen;
  std::vector<Token> tokens;
};

TEST_CASE("a drafter sees the hidden features of every committed token once and in order") {
  const RandomLlama tiny(9, {TensorKind::q4_1}, RopePairing::adjacent, false);
  TransformerModel target(tiny.weights(), Arithmetic::int8, 1);
  WatchingDrafter drafter;
  PhiloxSource source;
  SourceSampler<PhiloxSource> sampler(source);
  EngineOptions options;
  options.scheduler.prefill_chunk_max = 7;
  options.policy = SpeculationPolicy(parse_speculation("fixed:3", "test"));
  Engine engine(target, &drafter, sampler, options);
  DecodingOptions decoding;
  decoding.verify.verifier = parse_verifier("target_only", "test");
  decoding.tree = branching_shape({2, 1});
  decoding.parameters.temperature = 2.0f;
  decoding.stop.max_tokens = 200;
  std::vector<Token> prompt(20);
  std::iota(prompt.begin(), prompt.end(), 3);
  engine.submit(prompt, decoding);
  engine.run();
  CHECK(engine.scheduler().metrics().acceptance.accepted_tokens > 0);
  // All but the newest token, which no pass has computed when the last draft is proposed.
  REQUIRE(drafter.tokens.size() > 150);
  const std::vector<float> expected =
      features_of(target, std::span<const Token>(drafter.tokens).first(drafter.tokens.size() - 1));
  CHECK(drafter.seen == expected);
}

}  // namespace
}  // namespace draftproof::testing
