// Output of the engine with the shipped model, judged as an outsider would: files of counts and probabilities, read
// back and audited.
#include "engine/decode/engine.hpp"
#include "engine/draft/model_drafter.hpp"
#include "engine/draft/suffix_drafter.hpp"
#include "engine/grammar/compile_grammar.hpp"
#include "engine/model/model_files.hpp"
#include "engine/transformer/transformer_model.hpp"
#include "exactness/audit/audit.hpp"
#include "exactness/audit/audit_csv.hpp"
#include "tests/support/forward_alone.hpp"
#include "tests/support/statistical.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {
namespace {

using Counts = std::map<Token, std::int64_t>;

// The first tokens of answers, of which all were verified: a draft comes with the prompt.
struct FirstTokens {
  Counts emitted;
  Counts drafted;  // what a verifier that accepts every draft would have emitted
  std::int64_t accepted = 0;
};

FirstTokens first_tokens(LanguageModel& target, Drafter& drafter, std::span<const Token> prompt, std::uint64_t requests,
                         const GrammarChoice& grammar = {}) {
  constexpr std::uint64_t kBatch = 16;
  PhiloxSource source;
  SourceSampler<PhiloxSource> sampler(source);
  EngineOptions engine_options;
  engine_options.policy = SpeculationPolicy(parse_speculation("fixed:1", "test"));
  Engine engine(target, &drafter, sampler, engine_options);
  FirstTokens out;
  for (std::uint64_t begin = 0; begin < requests; begin += kBatch) {
    for (std::uint64_t seed = begin; seed < begin + kBatch; ++seed) {
      DecodingOptions options;
      options.seed = seed;
      options.stop.max_tokens = 2;
      options.num_speculative_tokens = 1;
      options.keep_steps = true;
      options.grammar = grammar;
      engine.submit(prompt, options);
    }
    engine.run();
    for (std::uint64_t request = begin; request < begin + kBatch; ++request) {
      const std::optional<Generation> generation = engine.take(request);
      REQUIRE(generation.has_value());
      REQUIRE_FALSE(generation->failure);
      const SpeculativeStep& step = generation->steps.front();
      if (step.draft.tree.empty()) continue;
      ++out.emitted[generation->tokens[0]];
      ++out.drafted[step.draft.tree.tokens[0]];
      if (step.emission.num_accepted > 0) ++out.accepted;
    }
  }
  return out;
}

// Distribution of the token after `tokens`, at temperature 1, of those that a mask allows.
std::vector<double> next_token_distribution(LanguageModel& model, std::span<const Token> tokens,
                                            std::span<const std::uint32_t> mask = {}) {
  const auto last = static_cast<std::int32_t>(tokens.size()) - 1;
  const std::vector<float> logits = forward_alone(model, tokens, std::span(&last, 1)).out.logits;
  const double largest = *std::max_element(logits.begin(), logits.end());
  std::vector<double> probs;
  for (const float logit : logits) {
    const std::size_t token = probs.size();
    const bool allowed = mask.empty() || (mask[token / 32] >> (token % 32) & 1u) != 0;
    probs.push_back(allowed ? std::exp(static_cast<double>(logit) - largest) : 0.0);
  }
  const double sum = std::accumulate(probs.begin(), probs.end(), 0.0);
  for (double& p : probs) p /= sum;
  return probs;
}

Audit audit_of(const Counts& counts, const std::vector<double>& probs, int decisions) {
  const TemporaryFolder folder;
  std::ostringstream count_lines, prob_lines;
  count_lines << "token,count\n";
  for (const auto& [token, count] : counts) count_lines << token << ',' << count << '\n';
  prob_lines.precision(17);
  prob_lines << "token,prob\n";
  for (std::size_t token = 0; token < probs.size(); ++token) prob_lines << token << ',' << probs[token] << '\n';
  write_whole_file(folder.file("counts.csv"), count_lines.str());
  write_whole_file(folder.file("probs.csv"), prob_lines.str());
  AuditOptions options;
  options.alpha = suite_level(decisions);
  options.tv_wanted = 0.5;
  return audit_draws(read_audit_csv(folder.file("counts.csv"), folder.file("probs.csv")), options);
}

TEST_CASE("the audit finds the shipped model's tokens consistent with speculation, and biased if drafts always pass",
          "[release]") {
  const auto path = shipped_model_at_full_speed();
  if (!path) return;
  const ModelFiles files = open_model_files(*path);
  TransformerModel target(std::make_shared<const TransformerWeights>(pack_weights(files.weights, 2)), Arithmetic::int8,
                          2);
  std::vector<std::int64_t> layers;
  for (std::int64_t layer = 0; layer < 30; ++layer)
    if (layer < 10 || layer > 14) layers.push_back(layer);
  const std::unique_ptr<TransformerModel> fewer_layers = target.with_layers(layers);

  const std::vector<Token> prompt = files.tokenizer->encode("He saw the cat and saw the");
  const std::vector<double> probs = next_token_distribution(target, prompt);
  constexpr std::uint64_t kRequests = 480;
  ModelDrafter model_drafter(*fewer_layers);
  SuffixDrafter suffix_drafter;
  for (Drafter* const drafter : {static_cast<Drafter*>(&model_drafter), static_cast<Drafter*>(&suffix_drafter)}) {
    INFO((drafter == &model_drafter ? "draft model" : "suffix"));
    const FirstTokens seen = first_tokens(target, *drafter, prompt, kRequests);
    CHECK(seen.accepted > 25);
    CHECK(seen.accepted < 440);
    const Audit right = audit_of(seen.emitted, probs, 2);
    INFO(right.sentence);
    CHECK(right.verdict == AuditVerdict::consistent);
    const Audit wrong = audit_of(seen.drafted, probs, 2);
    INFO(wrong.sentence);
    CHECK(wrong.verdict == AuditVerdict::biased);
  }
}

TEST_CASE("under a grammar the shipped model's tokens are those of its masked row, whether drafts follow it or not",
          "[release]") {
  const auto path = shipped_model_at_full_speed();
  if (!path || !has_grammars()) return;
  const ModelFiles files = open_model_files(*path);
  TransformerModel target(std::make_shared<const TransformerWeights>(pack_weights(files.weights, 2)), Arithmetic::int8,
                          2);
  std::vector<std::int64_t> layers;
  for (std::int64_t layer = 0; layer < 30; ++layer)
    if (layer < 10 || layer > 14) layers.push_back(layer);
  const std::unique_ptr<TransformerModel> fewer_layers = target.with_layers(layers);
  GrammarCompiler grammars(files.tokenizer, target.vocab_size(), files.tokenizer->end_tokens());
  const auto grammar = grammars.compile({GrammarForm::regex, " [d-z][a-z]{1,7} [a-z ]{3,30}[.]", {}, "test"});

  const std::vector<Token> prompt = files.tokenizer->encode("He saw the cat and saw the");
  std::vector<std::uint32_t> mask(static_cast<std::size_t>((target.vocab_size() + 31) / 32));
  grammar->start()->allowed(mask);
  const std::vector<double> probs = next_token_distribution(target, prompt, mask);
  ModelDrafter drafter(*fewer_layers);
  std::map<bool, std::int64_t> accepted;
  for (const bool masked : {false, true}) {
    INFO("masked drafts: " << masked);
    const FirstTokens seen = first_tokens(target, drafter, prompt, 320, {grammar, masked});
    accepted[masked] = seen.accepted;
    const Audit right = audit_of(seen.emitted, probs, 2);
    INFO(right.sentence);
    CHECK(right.verdict == AuditVerdict::consistent);
    const Audit unmasked = audit_of(seen.emitted, next_token_distribution(target, prompt), 2);
    CHECK(unmasked.verdict == AuditVerdict::biased);
  }
  CHECK(accepted[true] > accepted[false]);
}

}  // namespace
}  // namespace draftproof::testing
