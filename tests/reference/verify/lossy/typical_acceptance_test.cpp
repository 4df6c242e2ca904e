#include "reference/verify/lossy/typical_acceptance.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "reference/verify/chance.hpp"
#include "tests/reference/verify/lossy/lossy_distribution.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/statistical.hpp"

using namespace draftproof;

namespace {

auto constant(const Rational& threshold) {
  return [threshold](const LossyRow&) { return threshold; };
}

OutputDistribution typical_distribution(const ModelPair<Rational>& models, std::int32_t draft_len,
                                        const Rational& threshold) {
  return enumerated_distribution([&](LossyChance& chance) {
    const DraftedChain chain = draw_chain_and_rows(models, draft_len, chance);
    return emitted_tokens(chain.tree, verify_typical(chain.tree, chain.target, constant(threshold), chance));
  });
}

}  // namespace

TEST_CASE("typical acceptance has its declared distribution and distance") {
  for (const ModelKind kind : kModelKinds)
    for (std::uint64_t seed = 0; seed < 4; ++seed)
      for (const Rational& threshold : {Rational(0), Rational(1, 5), Rational(1, 2), Rational(1)}) {
        const ModelPair<Rational> models(3, seed, kind);
        const LossyRow& p = models.target({});
        const LossyRow& q = models.draft({});
        const LossyRow distribution = first_token_distribution(typical_distribution(models, 1, threshold), 3);
        INFO(name_of(kind) << " seed " << seed << " threshold " << threshold);
        CHECK(distribution == typical_distribution(p, q, threshold));
        CHECK(total_variation_of(p, distribution) == typical_acceptance_distance(p, q, threshold));
        if (threshold == 1) CHECK(distribution == p);  // nothing is typical: plain decoding
        if (threshold == 0 && kind == ModelKind::equal) CHECK(distribution == p);
      }
}

TEST_CASE("a deterministic draft in the typical set is emitted always") {
  const LossyRow p{Rational(1, 2), Rational(3, 10), Rational(1, 5)};
  CHECK(typical_acceptance_distance(p, {0, 1, 0}, Rational(9, 100)) == Rational(7, 10));  // 1 - p(x)
  CHECK(typical_acceptance_distance(p, {0, 0, 1}, Rational(1, 5)) == 0);                  // p(x) is not above it
}

TEST_CASE("a greedy target is matched exactly and a random one is refuted") {
  for (const ModelKind kind : {ModelKind::one_hot_target, ModelKind::dense}) {
    const ModelPair<Rational> models(3, 4, kind);
    const TargetDistribution target = [&](const TokenString& text) -> const LossyRow& { return models.target(text); };
    CHECK(first_difference(typical_distribution(models, 2, Rational(9, 100)), target, 3).has_value() ==
          (kind == ModelKind::dense));
  }
}

TEST_CASE("the longest typical path is taken and the likelier of equally long ones") {
  // root: 0 (.5), 1 (.4), 2 (.1); every later row: 0 (.6), 1 (.3), 2 (.1). Threshold .2.
  DenseRows<double> target{{{0.5, 0.4, 0.1}}};
  target.rows.resize(8, {0.6, 0.3, 0.1});
  const auto threshold = [](const DenseMasses<double>&) { return 0.2; };
  PhiloxSource source;
  AddressedChance<PhiloxSource> chance(source, 0, 0);
  const auto path = [&](const DraftTree& tree) { return verify_typical(tree, target, threshold, chance).path; };
  using Path = std::vector<std::int32_t>;
  CHECK(path({{0, 1, 1, 0}, {-1, -1, 0, 1}}) == Path{1, 3});           // .4 .6 beats .5 .3
  CHECK(path({{0, 1, 1, 0, 2}, {-1, -1, 0, 1, 3}}) == Path{1, 3});     // what is not typical adds nothing
  CHECK(path({{0, 1, 1, 0, 1}, {-1, -1, 0, 1, 2}}) == Path{0, 2, 4});  // longer beats likelier
  CHECK(path({{2, 0}, {-1, 0}}).empty());                              // below a node that is not accepted
  CHECK(path({{1, 1}, {-1, -1}}) == Path{0});                          // a tie goes to the lowest node
  CHECK(path({}).empty());
}

TEST_CASE("the typical threshold is the lesser of epsilon and delta over the exponential of the entropy") {
  const DenseMasses<double> uniform(8, 0.125);  // exp(-H) = 1/8
  CHECK(typical_threshold(uniform, {0.09, 0.3}) == Approx(0.3 / 8).epsilon(1e-12));
  CHECK(typical_threshold(uniform, {0.03, 0.3}) == 0.03);
  CHECK(typical_threshold({0.0, 1.0, 0.0}, {0.5, 0.3}) == 0.3);  // H = 0, with 0 log 0 = 0
  const DenseMasses<double> p{0.5, 0.3, 0.2};
  const double entropy = -(0.5 * std::log(0.5) + 0.3 * std::log(0.3) + 0.2 * std::log(0.2));
  CHECK(typical_threshold(p, {1.0, 1.0}) == Approx(std::exp(-entropy)).epsilon(1e-12));
  const std::size_t largest = 1 << 19;
  CHECK(typical_threshold(DenseMasses<double>(largest, 0x1p-19), {1.0, 1.0}) == Approx(0x1p-19).epsilon(1e-9));
}

TEST_CASE("typical acceptance in floats has the proved distribution and uses no address twice") {
  // p = (.5, .3, .2), q = (.2, .3, .5), threshold .25: distribution (.45, .45, .1).
  const DenseRows<double> target{{{0.5, 0.3, 0.2}, {1.0, 0.0, 0.0}}};
  const DenseMasses<double> q{0.2, 0.3, 0.5};
  const auto counts = count_in_floats(8, 3, [&](auto& chance) {
    const DraftTree tree = draw_chain(
        [&](std::span<const Token>) -> const auto& { return q; }, 1, chance);
    const auto threshold = [](const DenseMasses<double>&) { return 0.25; };
    return emitted_tokens(tree, verify_typical(tree, target, threshold, chance)).front();
  });
  CHECK(follows(counts, std::vector<double>{0.45, 0.45, 0.1}));
  CHECK_FALSE(follows(counts, target.rows[0]));
}

TEST_CASE("typical options outside their range are errors that name them") {
  const DenseMasses<double> p{1.0};
  CHECK(error_of(ErrorKind::usage, [&] {
          typical_threshold(p, {1.5, 0.3});
        }).find("epsilon is 1.5") != std::string::npos);
  CHECK(error_of(ErrorKind::usage, [&] {
          typical_threshold(p, {0.1, -1.0});
        }).find("delta is -1") != std::string::npos);
}
