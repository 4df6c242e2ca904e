#include "exactness/proof/prove.hpp"

#include "exactness/proof/grammar_steps.hpp"
#include "exactness/proof/head_steps.hpp"
#include "exactness/proof/proof_json.hpp"
#include "exactness/proof/steps.hpp"
#include "tests/support/test.hpp"

namespace {

ProofOptions small_options() {
  ProofOptions options;
  options.draft_len = 2;
  options.instances = 7;  // one of every kind of models
  return options;
}

// Chain verification with a chosen fault.
enum class Fault { none, shared_coin, residual_is_target };

ProofCase chain_with(Fault fault) {
  return {"faulty chain", Verifier::chain, true, "",
          exact_only([fault](const Models& models, const TokenString& prefix, std::int32_t, ExactChance& chance) {
            const DenseMasses<Rational>& p = models.target(prefix);
            const DenseMasses<Rational>& q = models.draft(prefix);
            const Token drafted = chance.draw(q, 0, Purpose::draft_sample);
            const auto x = static_cast<std::size_t>(drafted);
            if (chance.accept(p[x], q[x], 0)) return ProofStep{{drafted}, 1};
            const DenseMasses<Rational> residual = positive_difference(p, q);
            const Purpose purpose = fault == Fault::shared_coin ? Purpose::accept : Purpose::residual;
            return ProofStep{{chance.draw(fault == Fault::residual_is_target ? p : residual, 0, purpose)}, 0};
          })};
}

}  // namespace

TEST_CASE("Every verifier has the distribution that it claims and every lossy rule is refuted") {
  // Three tokens and one step, two tokens and two steps, longer drafts; `draftproof prove` does all at once.
  const auto [vocab_size, steps, draft_len] = GENERATE(std::tuple{3, 1, 2}, std::tuple{2, 2, 2}, std::tuple{2, 1, 3});
  ProofOptions options = small_options();
  options.vocab_size = vocab_size;
  options.steps = steps;
  options.draft_len = draft_len;
  for (const ProofCase& proof_case : proof_cases()) {
    const ProofResult result = prove(proof_case, options, 2);
    INFO(proof_case.name << ", V = " << vocab_size << ", K = " << draft_len << ", " << steps << " steps");
    CHECK(result.exact == proof_case.lossless);
    CHECK(result.acceptance_holds);
    CHECK(result.paths > 7);
    CHECK(result.counterexample.has_value() == !proof_case.lossless);
    CHECK((result.total_variation_max == 0) == proof_case.lossless);
    CHECK(result.floats_hold());
    CHECK(result.float_distance_max.has_value() == !proof_case.name.starts_with("coupled"));
  }
}

TEST_CASE("Without drafts every verifier emits one token of the target") {
  ProofOptions options = small_options();
  options.draft_len = 0;
  for (const ProofCase& proof_case : proof_cases()) {
    const ProofResult result = prove(proof_case, options, 2);
    INFO(proof_case.name);
    CHECK(result.exact);
    CHECK(result.mean_accepted == 0);
  }
}

TEST_CASE("Every verifier of the registry has a proof case that claims what the registry claims") {
  std::map<Verifier, int> cases;
  for (const ProofCase& proof_case : proof_cases()) {
    INFO(proof_case.name);
    const VerifierInfo& info = info_of(proof_case.verifier);
    CHECK(proof_case.lossless == (info.lossless && proof_case.receives_drawn_q));
    CHECK(proof_case.acceptance_oracles.empty() == !proof_case.lossless);
    ++cases[info.verifier];
  }
  for (const VerifierInfo& info : verifiers()) {
    INFO(std::string(info.name));
    CHECK(cases[info.verifier] > 0);
  }
}

namespace {

// A case under the toy grammar: chains to depth 2, trees to depth 1.
ProofCase under_grammar_of(const ProofCase& plain, proof_steps::DraftsOf drafts) {
  ProofCase constrained = plain;
  constrained.acceptance_oracles.clear();
  constrained.output_distribution = proof_steps::target_under_grammar;
  constrained.step.floats = nullptr;
  constrained.step.exact = proof_steps::under_grammar(plain.step.exact, drafts);
  return constrained;
}

}  // namespace

TEST_CASE("Every lossless verifier is exact under a grammar, with drafts from masked rows and from bare ones") {
  ProofOptions options = small_options();
  options.steps = 1;
  int proved = 0;
  for (const ProofCase& plain : proof_cases()) {
    if (!plain.lossless || plain.output_distribution || plain.draft_tokens == DraftTokens::half) continue;
    options.draft_len = plain.draft_len_max.usual > 2 ? 2 : 1;
    for (const auto drafts : {proof_steps::DraftsOf::masked_rows, proof_steps::DraftsOf::bare_rows}) {
      INFO(plain.name << (drafts == proof_steps::DraftsOf::masked_rows ? ", masked" : ", bare"));
      CHECK(prove(under_grammar_of(plain, drafts), options, 2).exact);
      ++proved;
    }
  }
  CHECK(proved == 44);
}

TEST_CASE("Forced tokens are emitted behind every step and the string stays the masked target's") {
  const auto find = [](const char* name) {
    return *std::ranges::find_if(proof_cases(), [&](const ProofCase& one) { return one.name == name; });
  };
  const ProofCase forced = find("chain_grammar_forced");
  const ProofCase plain = find("chain_grammar_bare");
  ProofOptions options = small_options();
  CHECK(prove(forced, options, 2).exact);
  // The string 0, 0 is forced on to 0, 0, 1, 0: see toy_grammar.
  const Models models(3, 0, ModelKind::dense);
  const OutputDistribution with = step_distribution(forced.step, models, {}, 1).distribution;
  const OutputDistribution without = step_distribution(plain.step, models, {}, 1).distribution;
  CHECK(with.at({0, 0, 1, 0}) == without.at({0, 0}));
  CHECK(without.at({0, 0}) > 0);
  // Token 1 is forced where it is not: the distribution is refuted.
  ProofCase early = forced;
  early.step.exact = [step = forced.step.exact](const Models& pair, const TokenString& prefix, std::int32_t length,
                                                ExactChance& chance) {
    ProofStep outcome = step(pair, prefix, length, chance);
    const ToyGrammar grammar = toy_grammar(pair.vocab_size());
    if (grammar.allows(grammar.after(proof_steps::joined(prefix, outcome.emitted)), 1)) outcome.emitted.push_back(1);
    return outcome;
  };
  CHECK_FALSE(prove(early, options, 2).exact);
}

TEST_CASE("A toy grammar packs its masks as the pipeline takes them and its end is absorbing") {
  const ToyGrammar grammar = toy_grammar(70);
  const std::vector<std::uint32_t> mask = grammar.mask(0);
  REQUIRE(mask.size() == 3);
  CHECK(mask[0] == 0x55555555u);
  CHECK(mask[1] == 0x55555555u);
  CHECK(mask[2] == 0x35u);  // 64, 66, 68 and the end, 69
  CHECK(grammar.mask(grammar.ended()) == std::vector<std::uint32_t>{0, 0, 0x20u});
  CHECK(grammar.mask(ToyGrammar::kDead) == std::vector<std::uint32_t>{~0u, ~0u, 0x3Fu});
  CHECK(grammar.after(TokenString{0, 0, 1, 0}) == 0);
  CHECK(grammar.after(TokenString{1}) == ToyGrammar::kDead);
  CHECK(grammar.after(TokenString{69, 69}) == grammar.ended());
  CHECK(grammar.after(TokenString{0, 69}) == ToyGrammar::kDead);  // not accepting
  CHECK(grammar.forced_tokens(2) == TokenString{1, 0});
  CHECK(grammar.forced_tokens(0).empty());
}

TEST_CASE("A chain that draws the recovered token from the target is refuted with a counterexample") {
  CHECK(prove(chain_with(Fault::none), small_options(), 2).exact);
  const ProofResult result = prove(chain_with(Fault::residual_is_target), small_options(), 2);
  CHECK_FALSE(result.exact);
  REQUIRE(result.counterexample);
  CHECK(result.counterexample->difference.prefix.empty());
  CHECK(result.counterexample->difference.emitted != result.counterexample->difference.expected);
}

namespace {

ProofCase half_vocabulary_case(ProofSteps step) {
  ProofCase planted{"planted", Verifier::chain, true, "", std::move(step)};
  planted.draft_tokens = DraftTokens::half;
  return planted;
}

// Judges by the chain rule, after `edit` has had every target row and `told` every proposal row.
template <class Edit, class Told>
auto edited_chain(Edit edit, Told told) {
  return [edit, told](std::span<const Token> draft, const auto& target, const auto& proposal, auto& chance) {
    auto rows = target;
    auto told_rows = proposal;
    for (auto& row : rows.rows) row = edit(row);
    for (auto& row : told_rows.rows) row = told(row);
    return verify_chain(draft, rows, told_rows, chance);
  };
}
constexpr auto kAsItIs = [](const auto& row) { return row; };
constexpr auto kDraftableAlone = [](const auto& row) {
  const DraftVocabulary vocabulary = half_vocabulary(static_cast<std::int32_t>(row.size()));
  auto part = vocabulary.scattered(vocabulary.gathered(row));
  return total_of(part) > 0 ? normalised(std::move(part)) : row;
};
// The head's row at the ids of the draft vocabulary, not at the target's.
constexpr auto kNotMapped = [](const auto& row) {
  const DraftVocabulary vocabulary = half_vocabulary(static_cast<std::int32_t>(row.size()));
  auto unmapped = vocabulary.gathered(row);
  unmapped.resize(row.size());
  return unmapped;
};

// Slot rows without the bias that the drafts were drawn with, or with that of the committed token in every slot.
constexpr auto kWithoutBias = proof_steps::parallel_slots;
constexpr auto kBiasOfAnchor = [](const auto& models, const TokenString& prefix) {
  return [&models, &prefix](std::span<const Token> path) {
    auto masses = proof_steps::parallel_slots(models, prefix)(path);
    if (prefix.empty()) return masses;
    for (std::size_t x = 0; x < masses.size(); ++x)
      masses[x] *=
          proof_steps::markov_factor<typename decltype(masses)::value_type>(prefix.back(), static_cast<Token>(x));
    return normalised(std::move(masses));
  };
};

}  // namespace

TEST_CASE("Drafts of half the vocabulary are exact, and every planted fault of the map between the two is refuted") {
  using namespace proof_steps;
  ProofOptions options = small_options();
  options.steps = 1;
  const auto proved = [&](auto verify) {
    return prove(half_vocabulary_case(half_vocabulary_chain_step(verify)), options, 2);
  };
  const ProofResult sound = proved(edited_chain(kAsItIs, kAsItIs));
  CHECK(sound.exact);
  CHECK(sound.vocab_size == 6);
  CHECK(sound.floats_hold());
  // The target has tokens that the head cannot draft, so that verification over the draft vocabulary alone never emits
  // them.
  const ProofResult hot = proved(edited_chain(kDraftableAlone, kAsItIs));
  CHECK_FALSE(hot.as_claimed());
  REQUIRE(hot.counterexample);
  CHECK(hot.counterexample->p.size() == 6);
  CHECK_FALSE(proved(edited_chain(kAsItIs, kNotMapped)).as_claimed());
  const ProofResult read = proof_of(json_of(hot), "test");
  CHECK(read.vocab_size == 6);
  CHECK(read.receives_drawn_q);
}

TEST_CASE("Drafts of a Markov head are exact with q given the draft before, and with no other q") {
  using namespace proof_steps;
  ProofOptions options = small_options();
  options.vocab_size = 2;
  const auto proved = [&](auto told) {
    return prove({"planted", Verifier::chain, true, "", chain_step(markov_head, told, chain)}, options, 2);
  };
  CHECK(proved(markov_head).exact);
  CHECK_FALSE(proved(markov_marginal).as_claimed());
  CHECK_FALSE(proved(kWithoutBias).as_claimed());
  CHECK_FALSE(proved(kBiasOfAnchor).as_claimed());
}

TEST_CASE("With the marginal of a slot for q every token has its probability and the pairs have not") {
  // Two tokens, p and every slot row (1/2, 1/2). The bias doubles token 1 behind token 0 and leaves the rest, so that
  // slot 1 is drawn from (1/3, 2/3) behind 0 and from (1/2, 1/2) behind 1; its marginal is (5/12, 7/12). Slot 0 always
  // stands. Behind 0, token 0 stands for certain and token 1 with 6/7, else the residual gives 0: 1/3 + 2/3 1/7 = 3/7.
  // Behind 1, in the same way 1/2 + 1/2 1/7 = 4/7.
  using namespace proof_steps;
  const Rational half = Rational(1) / 2;
  const Models models({half, half}, {half, half});
  CHECK(markov_head(models, {})(std::vector<Token>{0}) == DenseMasses<Rational>{Rational(1) / 3, Rational(2) / 3});
  CHECK(markov_marginal(models, {})(std::vector<Token>{0}) ==
        DenseMasses<Rational>{Rational(5) / 12, Rational(7) / 12});
  const OutputDistribution emitted =
      step_distribution(chain_step(markov_head, markov_marginal, chain), models, {}, 2).distribution;
  std::map<Token, Rational> first, second;
  std::map<TokenString, Rational> pairs;
  for (const auto& [string, probability] : emitted) {
    REQUIRE(string.size() >= 2);
    first[string[0]] += probability;
    second[string[1]] += probability;
    pairs[{string[0], string[1]}] += probability;
  }
  for (const Token token : {0, 1}) {
    CHECK(first[token] == half);
    CHECK(second[token] == half);
  }
  CHECK(pairs[{0, 0}] == Rational(3) / 14);
  CHECK(pairs[{0, 1}] == Rational(4) / 14);
  CHECK(pairs[{1, 0}] == Rational(4) / 14);
}

TEST_CASE("A draft length that other requests' drafts decide leaves the distribution as it is") {
  // The other request's draft model is this one's after token 0; its draft says how many of ours are verified.
  const auto step = [](const Models& models, const TokenString& prefix, std::int32_t draft_len, ExactChance& chance) {
    constexpr std::uint32_t kOtherRequest = 100;
    const Token length = chance.draw(models.draft(std::vector<Token>{0}), kOtherRequest, Purpose::draft_sample);
    return proof_steps::chain_step(proof_steps::chain)(models, prefix, std::min<std::int32_t>(length, draft_len),
                                                       chance);
  };
  CHECK(prove({"planted", Verifier::chain, true, "", exact_only(step)}, small_options(), 2).exact);
}

TEST_CASE("A case whose verifier is told another distribution than drafts are drawn from claims to be biased") {
  int biased = 0;
  for (const ProofCase& proof_case : proof_cases()) {
    if (proof_case.receives_drawn_q) continue;
    ++biased;
    ProofOptions options = small_options();
    options.steps = 1;
    const ProofResult result = prove(proof_case, options, 2);
    CHECK(result.claim() == "biased");
    CHECK(result.as_claimed());
    CHECK(proof_of(json_of(result), "test").claim() == "biased");
  }
  CHECK(biased == 1);
}

TEST_CASE("The tree of EAGLE-2 holds the best of the candidates with the nodes that they hang from") {
  using namespace proof_steps;
  // q after every prefix: of the candidates 2, 1; 22, 21, 12, 11 the products are 1/2, 3/10; 1/4, 3/20, 3/20, 9/100.
  const DenseMasses<Rational> q{Rational(1) / 5, Rational(3) / 10, Rational(1) / 2};
  const auto row = [&](std::span<const Token>) { return q; };
  ExactChance chance;
  const auto tree_of = [&](std::size_t count) { return eagle2_tree(2, count)(row, 2, chance); };
  CHECK(tree_of(6).tokens == std::vector<Token>{2, 1, 2, 1, 2, 1});
  CHECK(tree_of(6).parents == std::vector<std::int32_t>{-1, -1, 0, 0, 1, 1});
  CHECK(tree_of(3).tokens == std::vector<Token>{2, 1, 2});
  CHECK(tree_of(3).parents == std::vector<std::int32_t>{-1, -1, 0});
  // 21 and 12 tie, and the earlier candidate stays.
  CHECK(tree_of(4).tokens == std::vector<Token>{2, 1, 2, 1});
  CHECK(tree_of(4).parents == std::vector<std::int32_t>{-1, -1, 0, 0});
  CHECK(tree_of(1).tokens == std::vector<Token>{2});
  // A drawn tree keeps its order: the root's children 1, 2 and below them 0, 2 and 2, 1.
  const DraftTree drawn({1, 2, 0, 2, 2, 1}, {-1, -1, 0, 0, 1, 1});
  const DraftTree kept = reranked(drawn, row, 3);
  CHECK(kept.tokens == std::vector<Token>{1, 2, 2});
  CHECK(kept.parents == std::vector<std::int32_t>{-1, -1, 1});
}

TEST_CASE("A chain that uses its acceptance coin again for the recovered token fails the key audit") {
  CHECK_THROWS_AS(prove(chain_with(Fault::shared_coin), small_options(), 1), Error);
}

TEST_CASE("A rule that throws is refuted with its models, prefix and draft, and never as claimed") {
  // The recovered token comes from min(0, p - q), which has no mass.
  const auto faulty = [](std::span<const Token> draft, auto& target, auto& proposal, auto& chance) {
    auto residual = positive_difference(target.row(0), proposal.row(0));
    for (auto& mass : residual) mass = 0;
    const auto x = static_cast<std::size_t>(draft[0]);
    const bool accepted = chance.accept(target.row(0)[x], proposal.row(0)[x], 0);
    ChainOutcome outcome{0, 0};
    if (!accepted) outcome.last_token = chance.draw(residual, 0, Purpose::residual);
    return outcome;
  };
  const bool lossless = GENERATE(true, false);
  ProofCase faulty_case{"faulty", Verifier::chain, lossless, "", exact_only(proof_steps::chain_step(faulty))};
  const ProofResult result = prove(faulty_case, small_options(), 2);
  CHECK_FALSE(result.exact);
  CHECK_FALSE(result.as_claimed());
  REQUIRE(result.counterexample);
  REQUIRE(result.counterexample->failure);
  const RuleFailure& failure = *result.counterexample->failure;
  CHECK(failure.message == "a draw from masses that are all zero");
  CHECK(failure.prefix.empty());
  CHECK(failure.draft.size() == 2);
  CHECK_FALSE(failure.in_floats);
  const Models models(3, result.counterexample->seed, result.counterexample->kind);
  CHECK(result.counterexample->p == models.target({}));
  CHECK(result.counterexample->q == models.draft({}));
  const std::string draft = std::to_string(failure.draft.tokens[0]) + " " + std::to_string(failure.draft.tokens[1]);
  CHECK_THAT(result.counterexample->sentence(),
             Contains("throws 'a draw from masses that are all zero' on the draft [" + draft + "]"));
  // JSON says the same, and the way back too.
  const ProofResult read = proof_of(json_of(result), "test");
  REQUIRE(read.counterexample);
  CHECK(read.counterexample->sentence() == result.counterexample->sentence());
  CHECK_FALSE(read.as_claimed());
}

TEST_CASE("A rule that throws in doubles alone is refuted with a sentence that says so") {
  ProofCase faulty = chain_with(Fault::none);
  faulty.step.floats = [](const FloatModels&, const TokenString&, std::int32_t, GridChance&) -> ProofStep {
    throw std::out_of_range("planted");
  };
  const ProofResult result = prove(faulty, small_options(), 1);
  CHECK_FALSE(result.as_claimed());
  REQUIRE(result.counterexample);
  CHECK_THAT(result.counterexample->sentence(), Contains("the rule in doubles throws 'planted'"));
}

TEST_CASE("Float code with another distribution than its fractions is found on the grid of u") {
  // The exact step is right; the float step judges with a coin of 24 bits, which is off by up to 2^-24.
  ProofCase rounded = chain_with(Fault::none);
  rounded.step.floats = [](const FloatModels& models, const TokenString& prefix, std::int32_t, GridChance& chance) {
    const DenseMasses<double>& p = models.target(prefix);
    const DenseMasses<double>& q = models.draft(prefix);
    const Token drafted = chance.draw(q, 0, Purpose::draft_sample);
    const auto x = static_cast<std::size_t>(drafted);
    const double rate = p[x] >= q[x] ? 1.0 : static_cast<double>(static_cast<float>(p[x] / q[x]));
    if (chance.accept(rate, 1.0, 0)) return ProofStep{{drafted}, 1};
    return ProofStep{{chance.draw(positive_difference(p, q), 0, Purpose::residual)}, 0};
  };
  ProofOptions options = small_options();
  options.draft_len = 1;
  options.instances = 1;  // dense models: ratios that 24 bits cannot hold
  const ProofResult result = prove(rounded, options, 1);
  REQUIRE(result.float_distance_max);
  CHECK_FALSE(result.floats_hold());
  CHECK(*result.float_distance_max < Rational(1) / (1 << 24));
}

TEST_CASE("Proof results do not depend on the number of threads") {
  const ProofCase& chain = proof_cases().at(1);
  REQUIRE(chain.name == "chain");
  const ProofResult one = prove(chain, small_options(), 1);
  const ProofResult two = prove(chain, small_options(), 2);
  CHECK(one.mean_accepted == two.mean_accepted);
  CHECK(one.paths == two.paths);
}
