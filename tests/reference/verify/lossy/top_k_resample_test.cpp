#include "reference/verify/lossy/top_k_resample.hpp"

#include "reference/verify/chance.hpp"
#include "tests/reference/verify/exact_steps.hpp"
#include "tests/support/test.hpp"

namespace {

using Row = DenseMasses<Rational>;

ProofSteps top_k_step(std::size_t k) {
  return exact_only(
      proof_steps::chain_step([k](std::span<const Token> draft, const auto& target, const auto& proposal,
                                  auto& chance) { return verify_top_k_resample(draft, target, proposal, k, chance); }));
}

}  // namespace

TEST_CASE("the top-k resample is as far from the target as it says and exact where it keeps all tokens") {
  std::size_t positive = 0;
  for (const ModelKind kind : kModelKinds)
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      const Models models(4, seed, kind);
      const Row& p = models.target({});
      Rational before(2);
      for (std::size_t k = 1; k <= 4; ++k) {
        const Rational distance = total_variation_of(p, first_token_of(top_k_step(k), models));
        INFO(name_of(kind) << " seed " << seed << " k " << k);
        CHECK(distance == top_k_resample_distance(p, models.draft({}), k));
        CHECK(distance <= before);
        before = distance;
        positive += distance > 0;
      }
      if (seed == 0) CHECK(is_exact(top_k_step(4), models, 2));
    }
  CHECK(positive > 20);
}

TEST_CASE("a residual that lies outside the top k is replaced by the top k") {
  // p's best token is overdrafted: k = 1 leaves no residual.
  const Models models(Row{Rational(1, 2), Rational(3, 10), Rational(1, 5)}, Row{1, 0, 0});
  CHECK(first_token_of(top_k_step(1), models) == Row{1, 0, 0});
  CHECK(top_k_resample_distance(models.target({}), models.draft({}), 1) == Rational(1, 2));
}

TEST_CASE("the table of distances has the closed forms of peaked and flat and Zipf rows") {
  const auto harmonic = [](std::size_t n) {
    double sum = 0;
    for (std::size_t i = n; i > 0; --i) sum += 1.0 / static_cast<double>(i);
    return sum;
  };
  const std::vector<TopKResampleRow> table = top_k_resample_table();
  REQUIRE(table.size() == 33);
  for (const TopKResampleRow& row : table) {
    const auto k = static_cast<double>(row.k);
    double expected = 1.0 - harmonic(row.k) / harmonic(1024);
    if (row.row == "peaked") expected = std::exp2(-k);
    if (row.row == "flat") expected = 1.0 - k / 1024.0;
    INFO(row.row << " k " << row.k);
    CHECK(row.one_hot_draft == Approx(expected).margin(1e-12));
    CHECK(row.warm_draft <= row.one_hot_draft + 1e-12);
    // At temperature 2 tails are drafted too often: the residual lies in the head, where p > q.
    if (row.row == "flat") CHECK(row.warm_draft == 0.0);
    if (row.row == "peaked" && row.k == 1) {
      // p = 1/2, 1/4, 1/8, ... and q = (1 - r) r^i with r = sqrt(1/2).
      double outside = 0;
      const double r = std::sqrt(0.5);
      for (int i = 1; i < 60; ++i) outside += std::max(0.0, std::exp2(-i - 1) - (1 - r) * std::pow(r, i));
      CHECK(row.warm_draft == Approx(outside).margin(1e-12));
    }
  }
}

TEST_CASE("a top-k resample that keeps nothing is an error") {
  const DenseRows<double> rows{{{1.0}}};
  PhiloxSource source;
  AddressedChance<PhiloxSource> chance(source, 0, 0);
  CHECK(error_of(ErrorKind::usage, [&] {
          verify_top_k_resample(std::span<const Token>(), rows, rows, 0, chance);
        }).find("k is 0") != std::string::npos);
}
