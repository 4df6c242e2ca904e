#include "reference/verify/sampler_match.hpp"

#include <catch2/catch.hpp>

#include "tests/reference/verify/chain_rules.hpp"

using namespace draftproof;
using namespace draftproof::small_step;

namespace {

constexpr auto kMatch = [](Draft draft, auto& target, auto&, auto& chance) {
  return verify_sampler_match(draft, target, chance);
};

}  // namespace

TEST_CASE("sampler match is exact over two steps on every kind of model") {
  for (const ModelKind kind : kModelKinds) {
    for (std::uint32_t draft_len = 0; draft_len <= 2; ++draft_len) {
      const Models models(3, 40 + draft_len, kind);
      CAPTURE(name_of(kind), draft_len);
      const auto step = [&](const TokenString& prefix) { return step_distribution(models, prefix, draft_len, kMatch); };
      CHECK_FALSE(first_difference(compose(step({}), step), target_of(models), 3).has_value());
    }
    CAPTURE(name_of(kind));
    check_two_steps(Models(2, 50, kind), kMatch);
  }
}

TEST_CASE("sampler match accepts a draft with the chance that two independent samples agree") {
  DenseRows<Rational> target{{golden_p(), golden_p()}};
  Rational accepted(0);
  EnumeratingChance<Rational> chance;
  do {
    const std::vector<Token> draft{chance.draw(golden_q(), 0, Purpose::draft_sample)};
    accepted += chance.probability() * verify_sampler_match(Draft(draft), target, chance).num_accepted;
  } while (chance.next());
  CHECK(accepted == Rational(29, 100));  // .5 .2 + .3 .3 + .2 .5
}

TEST_CASE("sampler match of deterministic drafts has the distribution of the chain rule") {
  const Models models(3, 60, ModelKind::one_hot_draft);
  CHECK(step_distribution(models, {}, 3, kMatch) == step_distribution(models, {}, 3, kTokenwise));
  const Models dense(3, 60, ModelKind::dense);
  CHECK(step_distribution(dense, {}, 2, kMatch) != step_distribution(dense, {}, 2, kTokenwise));
}

TEST_CASE("sampler match with doubles and Philox follows the target over three steps") {
  check_production(70, kMatch);
}
