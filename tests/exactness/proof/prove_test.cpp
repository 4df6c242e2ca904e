#include "exactness/proof/prove.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <tuple>

#include "base/error.hpp"
#include "exactness/proof/proof_json.hpp"
#include "exactness/proof/steps.hpp"

using namespace draftproof;

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
    CHECK(proof_case.lossless == info.lossless);
    CHECK(proof_case.acceptance_oracles.empty() == !info.lossless);
    ++cases[info.verifier];
  }
  for (const VerifierInfo& info : verifiers()) {
    INFO(std::string(info.name));
    CHECK(cases[info.verifier] > 0);
  }
}

TEST_CASE("A chain that draws the recovered token from the target is refuted with a counterexample") {
  CHECK(prove(chain_with(Fault::none), small_options(), 2).exact);
  const ProofResult result = prove(chain_with(Fault::residual_is_target), small_options(), 2);
  CHECK_FALSE(result.exact);
  REQUIRE(result.counterexample);
  CHECK(result.counterexample->difference.prefix.empty());
  CHECK(result.counterexample->difference.emitted != result.counterexample->difference.expected);
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
             Catch::Contains("throws 'a draw from masses that are all zero' on the draft [" + draft + "]"));
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
  CHECK_THAT(result.counterexample->sentence(), Catch::Contains("the rule in doubles throws 'planted'"));
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
