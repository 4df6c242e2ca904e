#include "reference/verify/lossy/typical_acceptance.hpp"

#include "reference/verify/chance.hpp"
#include "tests/reference/verify/exact_steps.hpp"
#include "tests/support/test.hpp"

namespace {

using Row = DenseMasses<Rational>;

ProofSteps typical_step(const Rational& threshold) {
  const auto draw = [](const auto& distribution, std::int32_t draft_len, auto& chance) {
    return draw_chain(distribution, draft_len, chance);
  };
  return exact_only(
      proof_steps::tree_step(draw, [threshold](const DraftTree& tree, const auto& target, const auto&, auto& chance) {
        return verify_typical(
            tree, target, [&](const Row&) { return threshold; }, chance);
      }));
}

}  // namespace

TEST_CASE("typical acceptance has its declared distribution and distance") {
  for (const ModelKind kind : kModelKinds)
    for (std::uint64_t seed = 0; seed < 4; ++seed)
      for (const Rational& threshold : {Rational(0), Rational(1, 5), Rational(1, 2), Rational(1)}) {
        const Models models(3, seed, kind);
        const Row& p = models.target({});
        const Row& q = models.draft({});
        const Row distribution = first_token_of(typical_step(threshold), models);
        INFO(name_of(kind) << " seed " << seed << " threshold " << threshold);
        CHECK(distribution == typical_distribution(p, q, threshold));
        CHECK(total_variation_of(p, distribution) == typical_acceptance_distance(p, q, threshold));
        if (threshold == 1) CHECK(distribution == p);  // nothing is typical: plain decoding
        if (threshold == 0 && kind == ModelKind::equal) CHECK(distribution == p);
      }
}

TEST_CASE("a deterministic draft in the typical set is emitted always") {
  const Row p{Rational(1, 2), Rational(3, 10), Rational(1, 5)};
  CHECK(typical_acceptance_distance(p, {0, 1, 0}, Rational(9, 100)) == Rational(7, 10));  // 1 - p(x)
  CHECK(typical_acceptance_distance(p, {0, 0, 1}, Rational(1, 5)) == 0);                  // p(x) is not above it
}

TEST_CASE("a greedy target is matched exactly and a random one is refuted") {
  for (const ModelKind kind : {ModelKind::one_hot_target, ModelKind::dense})
    CHECK(is_exact(typical_step(Rational(9, 100)), Models(3, 4, kind), 2) == (kind == ModelKind::one_hot_target));
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
  // Every row has the threshold of its own probabilities.
  const auto of_row = [](const DenseMasses<double>& p) { return p[0] > 0.5 ? 0.35 : 0.2; };
  CHECK(verify_typical(DraftTree{{0, 1}, {-1, 0}}, target, of_row, chance).path == Path{0});
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

TEST_CASE("typical options outside their range are errors that name them") {
  const auto message = [](TypicalOptions options) {
    return error_of(ErrorKind::usage, [&] { typical_threshold(DenseMasses<double>{1.0}, options); });
  };
  CHECK_THAT(message({1.5, 0.3}), Contains("epsilon is 1.5"));
  CHECK_THAT(message({0.1, -1.0}), Contains("delta is -1"));
}
