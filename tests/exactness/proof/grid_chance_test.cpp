#include "exactness/proof/grid_chance.hpp"

#include "exactness/proof/output_distribution.hpp"
#include "reference/sampling/distribution.hpp"
#include "reference/verify/chain.hpp"
#include "tests/support/test.hpp"

namespace {

Rational power_of_two(int n) {
  Rational power(1);
  for (int i = 0; i < n; ++i) power *= 2;
  return power;
}

// Rows of 32-bit probabilities as production holds them.
struct FloatRows {
  std::vector<std::vector<float>> values;
  std::vector<Distribution> distributions;

  explicit FloatRows(std::vector<std::vector<float>> rows) : values(std::move(rows)), distributions(values.size()) {
    for (std::size_t r = 0; r < values.size(); ++r)
      distributions[r].make_probabilities({DType::f32, values[r].data(), static_cast<std::int64_t>(values[r].size())},
                                          static_cast<std::int64_t>(r));
  }
  float probability(std::uint32_t row, Token token) { return distributions[row].probability(token); }
  DistributionMasses masses(std::uint32_t row) { return DistributionMasses(distributions[row]); }
};
ResidualMasses residual_masses(FloatRows& p, FloatRows& q, std::uint32_t row) {
  return {p.distributions[row], q.distributions[row]};
}

// The same numbers as fractions, normalised.
DenseRows<Rational> fractions_of(const FloatRows& rows) {
  DenseRows<Rational> out;
  for (const std::vector<float>& row : rows.values) {
    DenseMasses<Rational> masses;
    for (const float x : row) masses.emplace_back(static_cast<double>(x));
    out.rows.push_back(normalised(masses));
  }
  return out;
}

template <class Chance, class Rows>
OutputDistribution chain_distribution(Rows& target, Rows& proposal, Chance chance, std::uint32_t draft_len) {
  OutputDistribution distribution;
  do {
    TokenString draft;
    for (std::uint32_t i = 0; i < draft_len; ++i)
      draft.push_back(chance.draw(proposal.masses(i), i, Purpose::draft_sample));
    const ChainOutcome outcome = verify_chain(std::span<const Token>(draft), target, proposal, chance);
    draft.resize(outcome.num_accepted);
    draft.push_back(outcome.last_token);
    distribution[draft] += chance.probability();
  } while (chance.next());
  return distribution;
}

}  // namespace

TEST_CASE("The coins that accept are those below the ratio") {
  CHECK(accepting_coins(0.5, 1.0) == std::uint64_t{1} << 52);
  CHECK(accepting_coins(0.0, 0.5) == 0);
  CHECK(accepting_coins(0.25, 0.25) == std::uint64_t{1} << 53);
  CHECK(accepting_coins(0.75, 0.25) == std::uint64_t{1} << 53);
  CHECK(accepting_coins(0.25, 0.0) == 0);
  CHECK(accepting_coins(0x1p-60, 1.0) == 1);  // u = 0 alone
  int wrong = 0;
  for (int i = 1; i < 400; ++i) {
    const double p = i / 1009.0;
    const double q = (400 + i * i % 600) / 1013.0;
    const std::uint64_t coins = accepting_coins(p, q);
    wrong += !accepts(Convention::draftproof, p, q, block_of_coin(coins - 1));
    wrong += accepts(Convention::draftproof, p, q, block_of_coin(coins));
    wrong += abs(Rational(coins) - Rational(p) / Rational(q) * power_of_two(53)) > 2;
  }
  CHECK(wrong == 0);
}

TEST_CASE("The words that draw a token are its share of 2 to the 64") {
  const std::vector<double> masses{0.0, 0.125, 0.5, 0.0, 0.3125, 0.0625, 0.0};
  const DenseDraw draw(masses);
  const DrawnWords words = drawn_words([&](const RandomBlock& block) { return draw.draw(block); });
  CHECK(words.first == 1);
  const DenseMasses<Rational> shares = words.shares(masses.size());
  for (std::size_t i = 0; i < masses.size(); ++i) CHECK(shares[i] == Rational(masses[i]) * power_of_two(64));
}

TEST_CASE("The chain verifier over 32-bit probabilities has the distribution of the fractions to within rounding") {
  FloatRows target({{0.1f, 0.6f, 0.3f}, {0.0f, 0.25f, 0.75f}, {0.2f, 0.2f, 0.6f}});
  FloatRows proposal({{0.5f, 0.4f, 0.1f}, {0.3f, 0.3f, 0.4f}});
  const OutputDistribution floats = chain_distribution(target, proposal, GridChance(3), 2);
  DenseRows<Rational> p = fractions_of(target);
  DenseRows<Rational> q = fractions_of(proposal);
  const OutputDistribution fractions = chain_distribution(p, q, EnumeratingChance<Rational>(), 2);
  Rational total(0);
  for (const auto& [string, probability] : floats) total += probability;
  CHECK(total == 1);
  const double distance = static_cast<double>(distance_between(floats, fractions));
  CHECK(distance > 0.0);  // numbers of 24 bits do not sum to 1
  CHECK(distance < 0x1p-22);
  const auto distribution = [&](const TokenString& prefix) -> const DenseMasses<Rational>& {
    return p.row(static_cast<std::uint32_t>(prefix.size()));
  };
  CHECK(static_cast<double>(total_variation(floats, distribution, 3)) < 0x1p-22);
}

TEST_CASE("A vocabulary of several tiles is refused") {
  CHECK_THROWS_WITH(GridChance(0), Contains("a vocabulary of 0 tokens"));
  CHECK_THROWS_WITH(GridChance(4097), Contains("4097"));
}
