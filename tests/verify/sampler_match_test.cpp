#include "reference/verify/sampler_match.hpp"

#include <catch2/catch.hpp>

#include "tests/verify/measured_law.hpp"
#include "tests/verify/small_step.hpp"

using namespace draftproof;
using namespace draftproof::small_step;

namespace {

using Models = ModelPair<Rational>;
using Draft = std::span<const Token>;

constexpr auto kMatch = [](Draft draft, auto& target, auto&, auto& chance) {
  return verify_sampler_match(draft, target, chance);
};
constexpr auto kTokenwise = [](Draft draft, auto& target, auto& proposal, auto& chance) {
  return verify_chain(draft, target, proposal, chance);
};

template <class Verify>
OutputLaw step_law(const Models& models, const TokenString& prefix, std::uint32_t draft_len, const Verify& verify) {
  return enumerate([&](auto& chance) { return chain_step(models, prefix, draft_len, chance, verify); }).law;
}

}  // namespace

TEST_CASE("sampler match is exact over two steps on every kind of model") {
  for (const ModelKind kind : kModelKinds) {
    for (std::uint32_t draft_len = 0; draft_len <= 2; ++draft_len) {
      const Models models(3, 40 + draft_len, kind);
      CAPTURE(name_of(kind), draft_len);
      const auto step = [&](const TokenString& prefix) { return step_law(models, prefix, draft_len, kMatch); };
      CHECK_FALSE(first_difference(compose(step({}), step), target_of(models), 3).has_value());
    }
    const Models models(2, 50, kind);
    const EnumeratedLaw law = enumerate_two_steps(
        [&](const TokenString& prefix, auto& chance) { return chain_step(models, prefix, 2, chance, kMatch); });
    CHECK(law.reused == 0);
    CHECK_FALSE(first_difference(law.law, target_of(models), 2).has_value());
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

TEST_CASE("sampler match of deterministic drafts has the law of the chain rule") {
  const Models models(3, 60, ModelKind::one_hot_draft);
  CHECK(step_law(models, {}, 3, kMatch) == step_law(models, {}, 3, kTokenwise));
  const Models dense(3, 60, ModelKind::dense);
  CHECK(step_law(dense, {}, 2, kMatch) != step_law(dense, {}, 2, kTokenwise));
}

TEST_CASE("sampler match with doubles and Philox follows the target over three steps") {
  for (const ModelKind kind : {ModelKind::dense, ModelKind::zeros}) {
    const ModelPair<double> models(3, 70, kind);
    const ChiSquaredTest test = measure(models, {}, [&](const TokenString& prefix, AuditedChance& chance) {
      return chain_step(models, prefix, 3, chance, kMatch);
    });
    CAPTURE(name_of(kind), test.statistic, test.df, test.p_value);
    CHECK_FALSE(test.rejects(1e-6));
  }
}
