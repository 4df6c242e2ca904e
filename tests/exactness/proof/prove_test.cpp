#include "exactness/proof/prove.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <utility>

#include "base/error.hpp"

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
  // Three tokens and one step, two tokens and two steps; `draftproof prove` does both at once.
  const auto [vocab_size, steps] = GENERATE(std::pair{3, 1}, std::pair{2, 2});
  ProofOptions options = small_options();
  options.vocab_size = vocab_size;
  options.steps = steps;
  for (const ProofCase& proof_case : proof_cases()) {
    const ProofResult result = prove(proof_case, options, 2);
    INFO(proof_case.name << ", V = " << vocab_size << ", " << steps << " steps");
    CHECK(result.exact == proof_case.lossless);
    CHECK(result.acceptance_holds);
    CHECK(result.paths > 7);
    CHECK(result.counterexample.has_value() == !proof_case.lossless);
    CHECK((result.total_variation_max == 0) == proof_case.lossless);
    CHECK(result.floats_hold());
    CHECK(result.float_distance_max.has_value() == !proof_case.name.starts_with("coupled"));
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
