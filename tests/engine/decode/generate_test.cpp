// The decoding loops against each other, against rows computed here and against an exact distribution enumerated here.
#include "engine/decode/generate.hpp"

#include "engine/draft/front_drafter.hpp"
#include "engine/draft/model_drafter.hpp"
#include "engine/draft/prompt_lookup.hpp"
#include "reference/random/audit.hpp"
#include "tests/engine/decode/toy_model.hpp"
#include "tests/support/statistical.hpp"
#include "tests/support/test.hpp"

namespace {

const std::vector<Token> kPrompt{3, 1, 4, 1, 5, 1, 4};

DecodingOptions options_of(std::int64_t max_tokens, int num_speculative_tokens) {
  DecodingOptions options;
  options.stop.max_tokens = max_tokens;
  options.num_speculative_tokens = num_speculative_tokens;
  options.seed = 42;
  return options;
}

template <class Source = PhiloxSource>
Generation plain(LanguageModel& target, const DecodingOptions& options) {
  Source source;
  return generate(target, nullptr, options, kPrompt, source);
}

template <class Source = PhiloxSource>
Generation speculative(LanguageModel& target, Drafter& drafter, const DecodingOptions& options) {
  Source source;
  return generate(target, &drafter, options, kPrompt, source);
}

struct Drafters {
  ToyModel model{7, 1, 3};
  ModelDrafter argmax;
  ModelDrafter sampling;
  LookupDrafter lookup{PromptLookup(1, 4)};

  explicit Drafters(RowParameters greedy = {})
      : argmax(model, (greedy.temperature = 0.0f, greedy)), sampling(model, {}) {}
  std::array<Drafter*, 3> all() { return {&argmax, &sampling, &lookup}; }
};

TEST_CASE("without drafts speculation is plain decoding bit for bit at any temperature") {
  ToyModel target(7, 1, 2);
  Drafters drafters;
  for (const Sampler sampler : {Sampler::inverse, Sampler::race}) {
    DecodingOptions options = options_of(60, 0);
    options.verify.sampler = sampler;
    options.parameters.temperature = 0.8f;
    options.parameters.filters.top_p = 0.9f;
    const Generation expected = plain(target, options);
    const Generation actual = speculative(target, drafters.sampling, options);
    CHECK(actual.tokens == expected.tokens);
    CHECK(actual.target_steps == 60);
    CHECK(actual.origins == std::vector<TokenOrigin>(60, TokenOrigin::bonus));
  }
}

TEST_CASE("no address is drawn twice over a whole generation and the audit changes no token", "[release]") {
  ToyModel target(7, 1, 2);
  Drafters drafters;
  for (const Sampler sampler : {Sampler::inverse, Sampler::race}) {
    for (const int k : {1, 5}) {
      for (const float guidance_scale : {1.0f, 1.5f}) {
        DecodingOptions options = options_of(80, k);
        options.verify.sampler = sampler;
        options.parameters.guidance_scale = guidance_scale;
        for (Drafter* drafter : drafters.all()) {
          const Generation audited = speculative<AuditedSource<>>(target, *drafter, options);
          CHECK(audited.target_steps > 10);
          CHECK(audited.tokens == speculative(target, *drafter, options).tokens);
        }
        CHECK(plain<AuditedSource<>>(target, options).tokens == plain(target, options).tokens);
      }
    }
  }
}

// A drafter that draws with the verifier's own purpose: the audit must catch it.
class SharingDrafter final : public Drafter {
 public:
  SharingDrafter(ContextModel& model, AuditedSource<>& source) : model_(model), source_(source) {}
  void propose(const DraftContext& context, const DraftPlan&, DraftChance&, Draft& out) override {
    out.proposal_kind = ProposalKind::logits;
    out.logits.resize(static_cast<std::size_t>(model_.vocab_size()));
    model_.logits(context.tokens, out.logits);
    source_.block(42, {0, 0, step_++, Purpose::accept});
    out.tree = DraftTree::chain(std::vector<Token>{0});
  }

 private:
  ContextModel& model_;
  AuditedSource<>& source_;
  std::uint32_t step_ = 0;
};

TEST_CASE("a drafter that uses the acceptance coin is found by the audit") {
  ToyModel target(7, 1, 2);
  AuditedSource<> source;
  SharingDrafter drafter(target, source);
  CHECK_THROWS_WITH(generate(target, &drafter, options_of(10, 1), kPrompt, source), Contains("was drawn before"));
}

TEST_CASE("the rows of a step stand at their own prefixes in both branches") {
  ToyModel target(7, 1, 2);
  Drafters drafters;
  DecodingOptions options = options_of(30, 4);
  options.parameters.guidance_scale = 2.0f;
  options.unconditional_prompt = {0, 2};
  options.keep_steps = true;
  const Generation generation = speculative(target, drafters.sampling, options);
  REQUIRE(generation.steps.size() == static_cast<std::size_t>(generation.target_steps));
  std::vector<float> row(7);
  std::size_t output_len = 0;
  for (const SpeculativeStep& step : generation.steps) {
    CHECK(step.output_len == output_len);
    CHECK(step.target_logits.size() == 5 * 7);
    std::vector<Token> written(generation.tokens.begin(), generation.tokens.begin() + static_cast<long>(output_len));
    for (std::size_t i = 0; i <= 4; ++i) {
      const auto check_row = [&](std::vector<Token> context, const std::vector<float>& rows) {
        context.insert(context.end(), written.begin(), written.end());
        target.logits(context, row);
        CHECK(std::vector<float>(rows.begin() + static_cast<long>(7 * i),
                                 rows.begin() + static_cast<long>(7 * i + 7)) == row);
      };
      check_row(kPrompt, step.target_logits);
      check_row(options.unconditional_prompt, step.unconditional_logits);
      if (i < 4) written.push_back(step.draft.tree.tokens[i]);
    }
    output_len += step.emission.tokens.size();
  }
}

TEST_CASE("the last step drafts no more than what still fits into max_tokens") {
  ToyModel target(7, 1, 2);
  ModelDrafter drafter(target, {});
  const Generation generation = speculative(target, drafter, options_of(8, 5));
  CHECK(generation.tokens.size() == 8);
  CHECK(generation.origins.size() == 8);
  CHECK(generation.finish_reason == FinishReason::length);
  CHECK(generation.acceptance.received_tokens == 8);
  CHECK(generation.acceptance.discarded_tokens == 0);
  CHECK(generation.acceptance.draft_tokens == 5 + 1);
  CHECK(generation.acceptance.accepted_tokens == 6);  // every draft of the target itself
  CHECK(generation.origins[4] == TokenOrigin::accepted);
  CHECK(generation.origins[5] == TokenOrigin::bonus);
  // A longer request begins with the same tokens.
  const Generation longer = speculative(target, drafter, options_of(30, 5));
  CHECK(std::equal(generation.tokens.begin(), generation.tokens.end(), longer.tokens.begin()));
}

TEST_CASE("max_steps ends plain decoding and speculation") {
  ToyModel target(7, 1, 2);
  Drafters drafters;
  DecodingOptions options = options_of(200, 5);
  options.parameters.temperature = 0.0f;
  options.stop = {};
  options.max_steps = 6;
  CHECK(speculative(target, drafters.argmax, options).target_steps == 6);
  CHECK(speculative(target, drafters.argmax, options).finish_reason == FinishReason::none);
  CHECK(plain(target, options).tokens.size() == 6);
}

const std::vector<Token> kToyPrompt{1, 2, 0, 1};

// The distribution of the first four tokens, enumerated: a product of softmaxes in double.
std::vector<double> exact_distribution(ToyModel& target, std::size_t length, double temperature) {
  const auto v = static_cast<std::size_t>(target.vocab_size());
  std::vector<double> distribution{1.0};
  std::vector<float> row(v);
  for (std::size_t n = 0; n < length; ++n) {
    std::vector<double> longer(distribution.size() * v);
    for (std::size_t string = 0; string < distribution.size(); ++string) {
      std::vector<Token> context = kToyPrompt;
      for (std::size_t i = 0, scale = distribution.size(); i < n; ++i) {
        scale /= v;
        context.push_back(static_cast<Token>(string / scale % v));
      }
      target.logits(context, row);
      double sum = 0.0;
      for (const float l : row) sum += std::exp(static_cast<double>(l) / temperature);
      for (std::size_t t = 0; t < v; ++t)
        longer[string * v + t] = distribution[string] * std::exp(static_cast<double>(row[t]) / temperature) / sum;
    }
    distribution = longer;
  }
  return distribution;
}

TEST_CASE("four tokens of speculative output follow the product of the targets", "[release]") {
  // 81 strings. Of 6000 a TV of 0.083 is found with probability 99 %.
  constexpr std::uint64_t kSamples = 6000;
  constexpr int kDecisions = 2 * 4;
  ToyModel target(3, 1, 2, 1);
  ToyModel draft_model(3, 1, 5, 1);
  RowParameters sharp;
  sharp.temperature = 0.5f;
  ModelDrafter sharper(draft_model, sharp);
  sharp.temperature = 0.0f;
  ModelDrafter argmax(draft_model, sharp);
  LookupDrafter lookup{PromptLookup(1, 3)};
  SuffixFrontDrafter hybrid(std::make_shared<ModelDrafter>(draft_model, RowParameters{}), 2);
  const std::vector<double> distribution = exact_distribution(target, 4, 1.25);
  for (const Sampler sampler : {Sampler::inverse, Sampler::race}) {
    for (Drafter* drafter : std::array<Drafter*, 4>{&sharper, &argmax, &lookup, &hybrid}) {
      DecodingOptions options = options_of(4, 2);
      options.parameters.temperature = 1.25f;
      options.verify.sampler = sampler;
      std::vector<std::int64_t> counts(distribution.size());
      for (std::uint64_t i = 0; i < kSamples; ++i) {
        options.seed = derive_seed(11, i);
        PhiloxSource source;
        const Generation generation = generate(target, drafter, options, kToyPrompt, source);
        std::size_t string = 0;
        for (const Token token : generation.tokens) string = 3 * string + static_cast<std::size_t>(token);
        ++counts[string];
      }
      INFO("sampler " << static_cast<int>(sampler));
      CHECK(follows(counts, distribution, kDecisions));
      // The test can fail: the drafter's own distribution is another one.
      CHECK_FALSE(follows(counts, exact_distribution(draft_model, 4, 1.25), kDecisions));
    }
  }
}

TEST_CASE("bad decoding options are errors that name the option") {
  ToyModel target(7, 1, 2);
  DecodingOptions options = options_of(5, 65);
  CHECK_THROWS_WITH(plain(target, options), Contains("num_speculative_tokens"));
  options = options_of(5, 5);
  options.parameters.temperature = -1.0f;
  CHECK_THROWS_WITH(plain(target, options), Contains("temperature"));
  options = options_of(5, 5);
  options.unconditional_prompt = {7};
  CHECK_THROWS_WITH(plain(target, options), Contains("unconditional prompt, token 0"));
  options = options_of(5, 5);
  options.logprob_token_ids.assign(128, 6);
  CHECK(plain(target, options).tokens == plain(target, options_of(5, 5)).tokens);
  options.logprob_token_ids.push_back(0);
  CHECK_THROWS_WITH(plain(target, options), Contains("logprob_token_ids: has 129 ids; expected at most 128"));
  options.logprob_token_ids = {7};
  CHECK_THROWS_WITH(plain(target, options), Contains("logprob_token_ids, token 0"));
  options = options_of(5, 5);
  options.stop = {};
  CHECK_THROWS_WITH(plain(target, options), Contains("nothing limits the output"));
  RowParameters penalised;
  penalised.frequency_penalty = 1.0f;
  CHECK_THROWS_WITH(ModelDrafter(target, penalised), Contains("target's alone"));
}

}  // namespace
