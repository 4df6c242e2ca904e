#include "reference/verify/lossy/relaxed_accept_k.hpp"

#include "reference/step/verify_step.hpp"
#include "reference/verify/lossy/distance.hpp"
#include "tests/reference/verify/exact_steps.hpp"
#include "tests/support/test.hpp"

namespace {

using Row = DenseMasses<Rational>;
using Tokens = std::vector<Token>;

Tokens near(const Row& p, std::size_t count, const Rational& delta) {
  return tokens_near_best(p, count, [&](const Rational& x, const Rational& best) { return x >= best - delta; });
}

// How many of `draft` a verifier accepts against rows that are all p, and the token behind them.
std::pair<std::uint32_t, Token> decided(const std::string& verifier, const Tokens& draft, const Tokens& prompt = {},
                                        const Tokens& output = {}) {
  std::vector<float> target;
  for (std::size_t row = 0; row <= draft.size(); ++row) target.insert(target.end(), {0.4f, 0.35f, 0.2f, 0.05f});
  VerifyRequest request;
  request.draft = DraftTree::chain(draft);
  request.target_is_probabilities = true;
  request.target = {DType::f32, target.data(), request.rows(), 4, 4};
  request.prompt_tokens = prompt;
  request.output_tokens = output;
  VerifyOptions options;
  options.verifier = parse_verifier(verifier, "test");
  PhiloxSource source;
  StepWorkspace workspace;
  const Emission emission = verify_step(request, options, source, workspace);
  return {emission.num_accepted, emission.tokens.back()};
}

}  // namespace

TEST_CASE("drafts near the argmax are emitted as often as they are drafted, and the argmax otherwise") {
  for (const ModelKind kind : kModelKinds)
    for (std::uint64_t seed = 0; seed < 4; ++seed)
      for (const std::size_t count : {1U, 2U, 3U})
        for (const Rational& delta : {Rational(0), Rational(1, 5), Rational(1)}) {
          const Models models(3, seed, kind);
          const Row& p = models.target({});
          const Row& q = models.draft({});
          const ProofSteps step = exact_only(
              proof_steps::chain_step([&](std::span<const Token> draft, const auto& target, const auto&, auto& chance) {
                return verify_near_best(
                    draft, target, [&](const Row& row) { return near(row, count, delta); }, chance);
              }));
          const Row emitted = first_token_of(step, models);
          const Tokens tokens = near(p, count, delta);
          INFO(name_of(kind) << " seed " << seed << " of " << count << " within " << delta);
          CHECK(emitted == near_best_distribution(q, tokens));
          CHECK(total_variation_of(proof_steps::greedy_distribution(p), emitted) == near_best_distance(q, tokens));
          if (count == 1) CHECK(emitted == proof_steps::greedy_distribution(p));
          if (kind == ModelKind::one_hot_target) CHECK(emitted == p);
        }
}

TEST_CASE("relaxed acceptance looks at ranks and at differences, as far as the phase lasts") {
  CHECK(decided("relaxed:top_k=2,delta=0.1", {1, 0, 2}) == std::pair<std::uint32_t, Token>{2, 0});
  CHECK(decided("relaxed:top_k=3,delta=0.1", {1, 2}) == std::pair<std::uint32_t, Token>{1, 0});
  CHECK(decided("relaxed:top_k=3,delta=0.25", {1, 2, 3}) == std::pair<std::uint32_t, Token>{2, 0});
  CHECK(decided("relaxed:top_k=1,delta=1", {0, 1}) == std::pair<std::uint32_t, Token>{1, 0});
  // begin 2, end 3: closed without a begin, opened by the prompt or the output, closed by the output's end.
  const std::string phase = "relaxed:top_k=2,delta=1,begin=2,end=3";
  CHECK(decided(phase, {1}).first == 0);
  CHECK(decided(phase, {1}, {0, 2, 1}).first == 1);
  CHECK(decided(phase, {1}, {2}, {1, 3, 0}).first == 0);
  CHECK(decided(phase, {1}, {0}, {3, 2}).first == 1);
  CHECK(decided("relaxed:top_k=2,delta=1,end=3", {1}, {}, {3}).first == 0);
}

TEST_CASE("verifier_accept_k measures in nats, and a tolerance of 0 is decoding by argmax") {
  CHECK(decided("accept_k:k=3,tolerance=0.7", {1, 2}) == std::pair<std::uint32_t, Token>{2, 0});  // 0.2 / 0.4 = e^-0.69
  CHECK(decided("accept_k:k=3,tolerance=0.69", {1, 2}).first == 1);
  CHECK(decided("accept_k:k=2,tolerance=5", {1, 2}).first == 1);
  CHECK(decided("accept_k:k=3,tolerance=0", {0, 1}).first == 1);
}
