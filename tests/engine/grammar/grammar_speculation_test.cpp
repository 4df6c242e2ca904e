// Requests with grammars in the engine: speculation gives the tokens, or the distribution, of plain decoding under the
// same masks, whatever the drafter, the verifier, the tree, the batch, chunks, preemption and cancellation.
#include "engine/decode/engine.hpp"
#include "engine/decode/generate.hpp"
#include "engine/draft/grammar_drafter.hpp"
#include "engine/draft/model_drafter.hpp"
#include "engine/draft/prompt_lookup.hpp"
#include "engine/draft/suffix_drafter.hpp"
#include "tests/engine/decode/random_requests.hpp"
#include "tests/engine/decode/toy_model.hpp"
#include "tests/engine/grammar/toy_grammar.hpp"
#include "tests/support/statistical.hpp"
#include "tests/support/test.hpp"

namespace {

constexpr std::int64_t kVocab = 9;
constexpr Token kEnd = 8;

std::shared_ptr<Drafter> random_drafter(std::mt19937& random, LanguageModel& model, const RowParameters& parameters) {
  std::shared_ptr<Drafter> drafter;
  switch (random() % 4) {
    case 0:
      drafter = std::make_shared<LookupDrafter>(PromptLookup(1, 4));
      break;
    case 1:
      drafter = std::make_shared<SuffixDrafter>();
      break;
    case 2:
      return std::make_shared<ModelDrafter>(model, parameters);
    default:
      break;
  }
  return random() % 2 == 0 || drafter == nullptr ? std::make_shared<GrammarDrafter>(drafter, nullptr) : drafter;
}

// Runs the requests together and each alone, plainly; counts what differs.
struct Differences {
  std::int64_t tokens = 0;
  std::int64_t failed = 0;
  std::int64_t accepted = 0;
  std::int64_t rejected = 0;
  std::int64_t preemptions = 0;
  std::int64_t ended = 0;  // by the grammar, or its end token
  std::int64_t cut = 0;    // by their length, incomplete
};

void run_together(std::uint32_t seed, bool forgets_to_roll_back, Differences& found) {
  std::mt19937 random(seed);
  ToyModel target(kVocab, 1, 2);
  ToyModel draft_model(kVocab, 1, 3);
  const bool greedy = seed % 3 != 0;
  const char* verifier =
      greedy ? std::array{"chain", "block", "traversal", "target_only", "typical"}[seed % 5] : "coupled";
  std::vector<Request> requests = random_requests(random, kVocab, verifier, greedy);
  std::vector<std::shared_ptr<ToyGrammar>> grammars;
  for (Request& request : requests) {
    grammars.push_back(ToyGrammar::random(random, kVocab, random() % 4 == 0 ? kPaddingToken : kEnd));
    request.options.stop.stop_token_ids.clear();
    if (grammars.back()->end_token != kPaddingToken) request.options.stop.eos_ids = {kEnd};
    request.options.grammar = {grammars.back(), random() % 2 == 0};
  }
  RowParameters draft_parameters;
  draft_parameters.temperature = greedy ? 0.0f : 0.8f;
  const auto drafter = random_drafter(random, draft_model, draft_parameters);
  PhiloxSource source;
  SourceSampler<PhiloxSource> sampler(source);
  Engine engine(target, drafter.get(), sampler, random_options(random));
  std::vector<Generation> alone;
  for (const Request& request : requests)
    alone.push_back(generate(target, nullptr, request.options, request.prompt, source));
  for (const auto& grammar : grammars) grammar->forgets_to_roll_back = forgets_to_roll_back;
  for (const Request& request : requests) engine.submit(request.prompt, request.options, request.speculates);
  engine.run();
  found.accepted += engine.scheduler().metrics().acceptance.accepted_tokens;
  found.rejected += engine.scheduler().metrics().acceptance.draft_tokens;
  found.preemptions += engine.scheduler().metrics().preemptions;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto together = engine.take(i);
    REQUIRE(together.has_value());
    if (together->failure) {
      ++found.failed;
      continue;
    }
    if (together->tokens != alone[i].tokens || together->finish_reason != alone[i].finish_reason ||
        together->grammar_complete != alone[i].grammar_complete) {
      ++found.tokens;
      continue;
    }
    const int state = grammars[i]->state_after(together->tokens);
    REQUIRE(state != ToyGrammar::kRefused);
    const bool complete = state == grammars[i]->ended() || grammars[i]->accepting[static_cast<std::size_t>(state)];
    CHECK(together->grammar_complete == complete);
    found.ended += engine_name(together->finish_reason) == "stop";
    if (together->finish_reason == FinishReason::length && !complete) ++found.cut;
    if (together->finish_reason == FinishReason::eos) CHECK(state == grammars[i]->ended());
  }
}

TEST_CASE(
    "requests with grammars get the tokens of plain decoding under the same masks, and every output is of its "
    "grammar") {
  Differences found;
  for (std::uint32_t seed = 0; seed < fewer_if_sanitized(400); ++seed) {
    INFO("seed " << seed);
    run_together(seed, false, found);
  }
  CHECK(found.tokens == 0);
  CHECK(found.failed == 0);
  CHECK(found.accepted > fewer_if_sanitized(1000));
  CHECK(found.rejected > found.accepted);
  CHECK(found.preemptions > fewer_if_sanitized(50));
  CHECK(found.ended > fewer_if_sanitized(100));
  CHECK(found.cut > fewer_if_sanitized(100));
}

TEST_CASE("a grammar that is not rolled back behind rejected drafts is found by the same comparison") {
  Differences found;
  for (std::uint32_t seed = 0; seed < 20; ++seed) run_together(seed, true, found);
  CHECK(found.tokens + found.failed > 20);
}

TEST_CASE("a grammar that ends without an end token ends the request, and one that cannot go on is an error") {
  ToyModel target(4, 1, 2);
  PhiloxSource source;
  ToyGrammar rule;
  rule.next = {{1, -1, -1, -1}, {-1, 2, 2, -1}, {-1, -1, -1, -1}};
  rule.accepting = {false, false, true};
  DecodingOptions options;
  options.stop.max_tokens = 10;
  options.grammar.grammar = std::make_shared<ToyGrammar>(rule);
  LookupDrafter lookup{PromptLookup(1, 4)};
  const std::vector<Token> prompt{1, 0, 1, 0, 1, 3, 0, 2, 1};
  for (Drafter* drafter : {static_cast<Drafter*>(nullptr), static_cast<Drafter*>(&lookup)}) {
    const Generation generation = generate(target, drafter, options, prompt, source);
    CHECK(generation.finish_reason == FinishReason::grammar);
    CHECK(engine_name(generation.finish_reason) == "stop");
    CHECK(generation.tokens.size() == 2);
    CHECK(generation.grammar_complete == true);
  }
  rule.accepting = {false, false, false};
  options.grammar.grammar = std::make_shared<ToyGrammar>(rule);
  for (Drafter* drafter : {static_cast<Drafter*>(nullptr), static_cast<Drafter*>(&lookup)})
    CHECK_THROWS_WITH(generate(target, drafter, options, prompt, source),
                      Contains("no token of the vocabulary goes on with its grammar behind 2 tokens"));
}

// The distribution of the first `length` tokens under plain decoding with masks, by enumeration.
void enumerate(ToyModel& target, const ToyGrammar& grammar, std::vector<Token>& context, std::size_t prompt_len,
               std::size_t length, double probability, std::map<std::vector<Token>, double>& outputs) {
  const std::vector<Token> output(context.begin() + static_cast<std::ptrdiff_t>(prompt_len), context.end());
  const int state = grammar.state_after(output);
  if (output.size() == length || state == grammar.ended()) {
    outputs[output] += probability;
    return;
  }
  std::vector<float> logits(static_cast<std::size_t>(target.vocab_size()));
  target.logits(context, logits);
  double sum = 0.0;
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (grammar.allows(state, static_cast<Token>(i))) sum += std::exp(static_cast<double>(logits[i]));
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!grammar.allows(state, static_cast<Token>(i))) continue;
    context.push_back(static_cast<Token>(i));
    enumerate(target, grammar, context, prompt_len, length,
              probability * std::exp(static_cast<double>(logits[i])) / sum, outputs);
    context.pop_back();
  }
}

TEST_CASE("drawn text under a grammar follows the masked distribution, with drafts that follow the grammar or do not",
          "[release]") {
  constexpr std::size_t kLength = 3;
  constexpr int kRuns = 4000;
  const std::vector<const char*> verifiers{"chain", "block", "traversal", "rrsw", "coupled"};
  std::map<bool, double> lengths;  // acceptance, with masked drafts or not
  int decisions = 0;
  for (std::uint32_t seed = 0; seed < verifiers.size(); ++seed)
    for (const bool masked : {false, true}) {
      INFO("verifier " << verifiers[seed] << ", masked drafts: " << masked);
      std::mt19937 random(seed + 7);
      ToyModel target(kVocab, 1, 2, 1);
      ToyModel draft_model(kVocab, 1, 3, 1);
      const auto grammar = ToyGrammar::random(random, kVocab, kEnd);
      std::vector<Token> context{1, 2, 3};
      std::map<std::vector<Token>, double> expected;
      enumerate(target, *grammar, context, 3, kLength, 1.0, expected);
      DecodingOptions options;
      options.verify.verifier = parse_verifier(verifiers[seed], "test");
      if (options.verify.verifier.info().draft != DraftForm::chain) options.tree = branching_shape({2, 1});
      options.stop.max_tokens = static_cast<std::int64_t>(kLength);
      options.stop.eos_ids = {kEnd};
      options.num_speculative_tokens = 3;
      options.grammar = {grammar, masked};
      ModelDrafter drafter(draft_model);
      PhiloxSource source;
      std::map<std::vector<Token>, std::int64_t> counts;
      std::int64_t accepted = 0, steps = 0;
      for (int run = 0; run < kRuns; ++run) {
        options.seed = static_cast<std::uint64_t>(run);
        const Generation generation = generate(target, &drafter, options, context, source);
        ++counts[generation.tokens];
        accepted += generation.acceptance.accepted_tokens;
        steps += generation.target_steps;
      }
      lengths[masked] += static_cast<double>(accepted) / static_cast<double>(steps);
      std::vector<std::int64_t> cells;
      std::vector<double> probabilities;
      for (const auto& [output, probability] : expected) {
        cells.push_back(counts[output]);
        probabilities.push_back(probability);
        counts.erase(output);
      }
      CHECK(counts.empty());  // nothing that the grammar refuses
      CHECK(follows(cells, probabilities, 2 * static_cast<int>(verifiers.size())));
      ++decisions;
    }
  CHECK(decisions == 10);
  CHECK(lengths[true] > lengths[false]);
}

}  // namespace
