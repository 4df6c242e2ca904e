// Drafts of which the policy keeps a part by the drafter's confidences.
#include "engine/decode/engine.hpp"
#include "engine/draft/model_drafter.hpp"
#include "tests/engine/decode/toy_model.hpp"
#include "tests/support/statistical.hpp"
#include "tests/support/test.hpp"

namespace {

// Another drafter's drafts with confidences made of the tokens before each.
class ConfidentDrafter final : public Drafter {
 public:
  explicit ConfidentDrafter(Drafter& drafter) : drafter_(drafter) {}
  void propose(const DraftContext& context, const DraftPlan& plan, DraftChance& chance, Draft& out) override {
    drafter_.propose(context, plan, chance, out);
    Token before = context.tokens.back();
    out.confidences.clear();
    for (const Token token : out.tree.tokens) {
      if (anticipates) before = token;
      out.confidences.push_back(before % 2 == 0 ? 0.9f : 0.3f);
      before = token;
    }
    drafted += out.tree.size();
    if (miscounts) out.confidences.push_back(0.5f);
  }
  bool has_confidences() const override { return true; }

  std::int64_t drafted = 0;
  bool anticipates = false;  // the fault: a confidence is made of the draft's own token
  bool miscounts = false;

 private:
  Drafter& drafter_;
};

struct ConfidentRun {
  explicit ConfidentRun(const char* policy, std::int64_t vocab = 7, float temperature = 0.0f)
      : target(vocab, 1, 2), draft_model(vocab, 1, 3), plain_drafter(draft_model, parameters(temperature)) {
    options.scheduler.num_blocks = 16;
    options.policy = SpeculationPolicy(parse_speculation(policy, "test"));
    decoding.num_speculative_tokens = 5;
    decoding.parameters.temperature = temperature;
    decoding.stop.max_tokens = 60;
  }
  static RowParameters parameters(float temperature) {
    RowParameters row;
    row.temperature = temperature;
    return row;
  }
  Generation generate(bool speculates = true) {
    Engine engine(target, &drafter, sampler, options);
    const std::uint64_t id = engine.submit(std::vector<Token>{1, 2, 0}, decoding, speculates);
    engine.run();
    return *engine.take(id);
  }

  ToyModel target, draft_model;
  ModelDrafter plain_drafter;
  ConfidentDrafter drafter{plain_drafter};
  PhiloxSource source;
  SourceSampler<PhiloxSource> sampler{source};
  EngineOptions options;
  DecodingOptions decoding;
};

std::int64_t verified(const Generation& generation) {
  return static_cast<std::int64_t>(generation.acceptance.draft_tokens);
}

}  // namespace

TEST_CASE("of confident drafts the beginning is verified, and greedy tokens are those of plain decoding") {
  ConfidentRun all("fixed:5");
  ConfidentRun none("confidence:max=5,threshold=1");
  ConfidentRun some("confidence:max=5,threshold=0.5");
  ConfidentRun few("confidence:max=5,threshold=0,budget=1");
  const Generation plain = all.generate(false);
  REQUIRE(plain.tokens.size() == 60);
  for (ConfidentRun* const run : {&all, &none, &some, &few}) {
    const Generation generation = run->generate();
    CHECK(generation.tokens == plain.tokens);
    const std::int64_t drafted = run->drafter.drafted;
    CHECK(drafted > 0);
    if (run == &all) CHECK(verified(generation) == drafted);
    if (run == &none) CHECK(verified(generation) == 0);
    if (run == &some) CHECK((verified(generation) > 0 && verified(generation) < drafted));
    if (run == &few) CHECK(verified(generation) <= generation.target_steps);
  }
}

TEST_CASE("the confidence policy is refused where the drafter gives none, and for trees") {
  ConfidentRun run("confidence:max=5");
  CHECK(error_of(ErrorKind::usage, [&] { Engine(run.target, &run.plain_drafter, run.sampler, run.options); }) ==
        "speculation policy confidence:max=5,threshold=0.3,budget=0: the drafter gives no confidences; expected "
        "one with a confidence head, or another policy");
  run.decoding.tree = branching_shape({2, 1});
  run.decoding.verify.verifier = parse_verifier("target_only", "test");
  CHECK(error_of(ErrorKind::usage, [&] { run.generate(); }) ==
        "request: it drafts a tree or several paths; expected a chain with speculation policy confidence");
}

TEST_CASE("a drafter that gives too many confidences ends its request") {
  ConfidentRun run("confidence:max=5");
  run.drafter.miscounts = true;
  const Generation generation = run.generate();
  REQUIRE(static_cast<bool>(generation.failure));
  CHECK(error_of(ErrorKind::internal, [&] { std::rethrow_exception(generation.failure); }) ==
        "drafter: it gives 6 confidences for 5 drafts; expected one for each");
}

// Three tokens over a vocabulary of 3, drafts drawn at temperature 1: 27 outputs, their probabilities from the target's
// rows. The second draft is kept or not by the first one's token.
TEST_CASE("drawn drafts cut by confidences keep the target's distribution, cut by their own token they do not",
          "[statistical][release]") {
  constexpr std::int64_t kTokens = 3;
  ConfidentRun model("off", kTokens, 1.0f);
  std::vector<double> expected;
  for (Token a = 0; a < kTokens; ++a)
    for (Token b = 0; b < kTokens; ++b)
      for (Token c = 0; c < kTokens; ++c) {
        std::vector<Token> context{1, 2, 0};
        double probability = 1.0;
        for (const Token token : {a, b, c}) {
          std::vector<float> row(kTokens);
          model.target.logits(context, row);
          double sum = 0.0;
          for (const float logit : row) sum += std::exp(static_cast<double>(logit));
          probability *= std::exp(static_cast<double>(row[static_cast<std::size_t>(token)])) / sum;
          context.push_back(token);
        }
        expected.push_back(probability);
      }
  for (const bool anticipates : {false, true}) {
    ConfidentRun run("confidence:max=5,threshold=0.5", kTokens, 1.0f);
    run.drafter.anticipates = anticipates;
    run.decoding.stop.max_tokens = 3;
    std::vector<std::int64_t> counts(27);
    for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
      run.decoding.seed = seed;
      const std::vector<Token> tokens = run.generate().tokens;
      REQUIRE(tokens.size() == 3);
      ++counts[static_cast<std::size_t>(9 * tokens[0] + 3 * tokens[1] + tokens[2])];
    }
    CHECK(follows(counts, expected) == !anticipates);
  }
}
