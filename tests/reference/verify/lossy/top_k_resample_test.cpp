#include "reference/verify/lossy/top_k_resample.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "reference/verify/chance.hpp"
#include "reference/verify/lossy/distance.hpp"
#include "tests/reference/verify/lossy/lossy_distribution.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/statistical.hpp"

using namespace draftproof;

namespace {

OutputDistribution distribution_of(const ModelPair<Rational>& models, std::int32_t draft_len, std::size_t k) {
  return enumerated_distribution([&](LossyChance& chance) {
    const DraftedChain chain = draw_chain_and_rows(models, draft_len, chance);
    const std::span<const Token> draft = chain.tree.tokens;
    const ChainOutcome outcome = verify_top_k_resample(draft, chain.target, chain.proposal, k, chance);
    return emitted(draft, outcome.num_accepted, outcome.last_token);
  });
}

}  // namespace

TEST_CASE("the top-k resample is as far from the target as it says and exact where it keeps all tokens") {
  std::size_t positive = 0;
  for (const ModelKind kind : kModelKinds)
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      const ModelPair<Rational> models(4, seed, kind);
      const LossyRow& p = models.target({});
      const TargetDistribution target = [&](const TokenString& text) -> const LossyRow& { return models.target(text); };
      Rational before(2);
      for (std::size_t k = 1; k <= 4; ++k) {
        const Rational distance = total_variation_of(p, first_token_distribution(distribution_of(models, 1, k), 4));
        INFO(name_of(kind) << " seed " << seed << " k " << k);
        CHECK(distance == top_k_resample_distance(p, models.draft({}), k));
        CHECK(distance <= before);
        before = distance;
        positive += distance > 0;
      }
      if (seed == 0) CHECK_FALSE(first_difference(distribution_of(models, 2, 4), target, 4).has_value());
    }
  CHECK(positive > 20);
}

TEST_CASE("a residual that lies outside the top k is replaced by the top k") {
  // p's best token is overdrafted: k = 1 leaves no residual.
  const DenseRows<Rational> target{{{Rational(1, 2), Rational(3, 10), Rational(1, 5)}, {1, 0, 0}}};
  const DenseRows<Rational> proposal{{{1, 0, 0}}};
  const std::vector<Token> draft{0};
  const OutputDistribution distribution = enumerated_distribution([&](LossyChance& chance) {
    const ChainOutcome outcome = verify_top_k_resample(std::span<const Token>(draft), target, proposal, 1, chance);
    return emitted(draft, outcome.num_accepted, outcome.last_token);
  });
  CHECK(first_token_distribution(distribution, 3) == LossyRow{1, 0, 0});
  CHECK(top_k_resample_distance(target.rows[0], proposal.rows[0], 1) == Rational(1, 2));
}

TEST_CASE("over two drafts the top-k resample is refuted") {
  const ModelPair<Rational> models(4, 1, ModelKind::dense);
  const TargetDistribution target = [&](const TokenString& text) -> const LossyRow& { return models.target(text); };
  CHECK(first_difference(distribution_of(models, 2, 1), target, 4).has_value());
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

TEST_CASE("the top-k resample in floats has the proved distribution and uses no address twice") {
  // p = (.5, .3, .2), q = (.8, .1, .1), k = 2: distribution (.5, .4, .1).
  const DenseRows<double> target{{{0.5, 0.3, 0.2}, {1.0, 0.0, 0.0}}};
  const DenseRows<double> proposal{{{0.8, 0.1, 0.1}}};
  const auto counts = count_in_floats(6, 3, [&](auto& chance) {
    const std::vector<Token> draft{chance.draw(proposal.rows[0], 0, Purpose::draft_sample)};
    const ChainOutcome outcome = verify_top_k_resample(std::span<const Token>(draft), target, proposal, 2, chance);
    return outcome.num_accepted == 1 ? draft[0] : outcome.last_token;
  });
  CHECK(follows(counts, std::vector<double>{0.5, 0.4, 0.1}));
  CHECK_FALSE(follows(counts, target.rows[0]));
}

TEST_CASE("a top-k resample that keeps nothing is an error") {
  const DenseRows<double> rows{{{1.0}}};
  PhiloxSource source;
  AddressedChance<PhiloxSource> chance(source, 0, 0);
  CHECK(error_of(ErrorKind::usage, [&] {
          verify_top_k_resample(std::span<const Token>(), rows, rows, 0, chance);
        }).find("k is 0") != std::string::npos);
}
