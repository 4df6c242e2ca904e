// Text drawn with heads, judged as an outsider would: by the audit of its verification steps.
#include <deque>

#include "engine/decode/engine.hpp"
#include "engine/heads/head_drafter.hpp"
#include "exactness/audit/audit.hpp"
#include "tests/engine/heads/random_heads.hpp"
#include "tests/support/statistical.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {
namespace {

std::vector<double> softmax(std::span<const float> logits) {
  const auto largest = static_cast<double>(std::ranges::max(logits));
  std::vector<double> probs;
  double sum = 0.0;
  for (const float logit : logits) sum += probs.emplace_back(std::exp(static_cast<double>(logit) - largest));
  for (double& p : probs) p /= sum;
  return probs;
}

struct DrawnText {
  DecodingOptions decoding;
  std::vector<Token> prompt;
  std::deque<Generation> generations;  // the sample's requests are views of them
  StepSample sample;
  std::int64_t accepted = 0, rejected = 0;

  DrawnText(const RandomHead& head, TransformerModel& target, int requests) {
    PhiloxSource source;
    SourceSampler<PhiloxSource> sampler(source);
    HeadDrafter drafter(head.head(target), std::nullopt);
    EngineOptions engine_options;
    engine_options.policy = SpeculationPolicy(parse_speculation("fixed:3", "test"));
    Engine engine(target, &drafter, sampler, engine_options);
    decoding.verify.verifier = parse_verifier("chain", "test");
    decoding.parameters.temperature = 1.0f;
    decoding.num_speculative_tokens = 3;
    decoding.stop.max_tokens = 40;
    decoding.keep_steps = true;
    prompt = {5, 6, 7, 8};
    for (int i = 0; i < requests; ++i) {
      decoding.seed = static_cast<std::uint64_t>(i);
      engine.submit(prompt, decoding);
    }
    engine.run();
    sample.begins = {0};
    for (int i = 0; i < requests; ++i) {
      generations.push_back(*engine.take(static_cast<std::uint64_t>(i)));
      const Generation& generation = generations.back();
      REQUIRE_FALSE(generation.failure);
      for (const SpeculativeStep& step : generation.steps) {
        if (step.draft.tree.empty()) continue;
        sample.requests.push_back(request_of(step, decoding, target.vocab_size(), prompt, generation.tokens));
        sample.tokens.insert(sample.tokens.end(), step.emission.tokens.begin(), step.emission.tokens.end());
        sample.begins.push_back(sample.tokens.size());
        accepted += static_cast<std::int64_t>(step.emission.num_accepted);
        rejected += rejected_a_draft(step.draft.tree, step.emission) ? 1 : 0;
      }
    }
  }

  // The tokens of an engine whose residual max(p - q, 0) is taken over the draft vocabulary only.
  StepSample with_drafted_residuals(const std::vector<Token>& drafted) const {
    StepSample faulty = sample;
    TestRandom random(7);
    std::size_t step_index = 0;
    for (const Generation& generation : generations)
      for (const SpeculativeStep& step : generation.steps) {
        if (step.draft.tree.empty()) continue;
        const std::size_t last = faulty.begins[++step_index] - 1;
        if (!rejected_a_draft(step.draft.tree, step.emission)) continue;
        const std::size_t vocab = step.target_logits.size() / (step.draft.tree.tokens.size() + 1);
        const auto row_of = [&](const std::vector<float>& logits) {
          return softmax(std::span(logits).subspan(step.emission.num_accepted * vocab, vocab));
        };
        const std::vector<double> p = row_of(step.target_logits);
        const std::vector<double> q = row_of(step.draft.logits);
        std::vector<double> residual;
        double sum = 0.0;
        for (const Token token : drafted) {
          const auto t = static_cast<std::size_t>(token);
          sum += residual.emplace_back(std::max(p[t] - q[t], 0.0));
        }
        for (double& mass : residual) mass /= sum;
        if (sum > 0.0) faulty.tokens[last] = drafted[random.draw(residual)];
      }
    return faulty;
  }
};

TEST_CASE("text drawn with heads is consistent, and with a residual over the draft vocabulary only it is not",
          "[release]") {
  const RandomLlama tiny(9, {TensorKind::q8_0}, RopePairing::adjacent, false);
  TransformerModel target(tiny.weights(), Arithmetic::int8, 1);
  AuditOptions options;
  options.alpha = suite_level(3);
  options.tv_wanted = 0.5;
  for (const auto& [family, markov] :
       {std::pair{HeadFamily::eagle3, false}, {HeadFamily::dflash, true}, {HeadFamily::medusa, false}}) {
    INFO(name_of(family));
    const RandomHead head(family, target.weights().shape, {.seed = 30, .markov = markov});
    const DrawnText text(head, target, 64);
    CHECK(text.accepted > 20);
    CHECK(text.rejected > 200);
    const Audit right = audit_steps(text.sample, options);
    INFO(right.sentence);
    CHECK(right.verdict == AuditVerdict::consistent);
    const Audit wrong = audit_steps(text.with_drafted_residuals(head.tensors.description.draft_tokens), options);
    INFO(wrong.sentence);
    CHECK(wrong.verdict == AuditVerdict::biased);
  }
}

}  // namespace
}  // namespace draftproof::testing
