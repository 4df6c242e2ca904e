// Sampling by an exponential race (argmax of log mass + Gumbel noise) beside the inverse-mass sampler: the same
// distributions.
#include "reference/random/audit.hpp"
#include "reference/random/injected.hpp"
#include "reference/verify/chance.hpp"
#include "tests/reference/sampling/row_distributions.hpp"
#include "tests/support/row_kernel_sets.hpp"
#include "tests/support/statistical.hpp"
#include "tests/support/test.hpp"

namespace {

constexpr std::uint32_t kDraws = 600'000;

// Philox behind another type, so that AddressedChance takes the path of one word after the other.
struct WordByWord {
  RandomBlock block(std::uint64_t seed, const Address& a) const { return PhiloxSource().block(seed, a); }
};

template <class Masses>
std::vector<std::int64_t> counts_of(const Masses& masses, std::size_t vocab_size, Sampler sampler, std::uint64_t seed,
                                    std::uint32_t draws = kDraws) {
  PhiloxSource source;
  std::vector<std::int64_t> counts(vocab_size, 0);
  for (std::uint32_t step = 0; step < draws; ++step) {
    AddressedChance<> chance(source, seed, step, sampler);
    ++counts.at(static_cast<std::size_t>(chance.draw(masses, 0, Purpose::target_sample)));
  }
  return counts;
}

std::vector<double> normalised_distribution(std::vector<double> distribution) {
  double total = 0.0;
  for (const double x : distribution) total += x;
  for (double& x : distribution) x /= total;
  return distribution;
}

template <class Masses>
void check_both_samplers(const Masses& masses, const std::vector<double>& unnormalised, std::uint64_t seed) {
  const std::vector<double> distribution = normalised_distribution(unnormalised);
  for (const Sampler sampler : {Sampler::inverse, Sampler::race}) {
    INFO((sampler == Sampler::race ? "race" : "inverse") << ", seed " << seed);
    const std::vector<std::int64_t> counts = counts_of(masses, distribution.size(), sampler, seed);
    CHECK(follows(counts, distribution, 8));
    // The test can fail: a distribution in which one token has 3 % more is rejected.
    std::vector<double> bent = distribution;
    for (std::size_t i = 0; i < bent.size(); ++i) {
      if (bent[i] < 0.2) continue;
      bent[i] *= 1.03;
      break;
    }
    CHECK_FALSE(follows(counts, normalised_distribution(bent), 8));
  }
}

}  // namespace

TEST_CASE("The race over tiles gives the bits of the race over single words") {
  std::mt19937 random(111);
  std::normal_distribution<float> normal(0.0f, 3.0f);
  for (const std::size_t vocab_size : {1, 2, 3, 5, 31, 64, 65, 4097, 8200}) {
    std::vector<float> x(vocab_size);
    std::vector<float> p(vocab_size);
    std::vector<float> q(vocab_size);
    for (std::size_t i = 0; i < vocab_size; ++i) {
      x[i] = i % 7 == 6 ? -kInfinity : normal(random);
      p[i] = static_cast<float>(1 + random() % 100) / static_cast<float>(100 * vocab_size);
      q[i] = static_cast<float>(1 + random() % 100) / static_cast<float>(100 * vocab_size);
    }
    const Distribution logits = logits_of(x);
    const Distribution target = probabilities_of(p);
    const Distribution proposal = probabilities_of(q);
    const Distribution one_hot = one_hot_of(static_cast<Token>(vocab_size - 1), vocab_size);
    // Every kind of masses, as it is drawn and as coupled verification draws it.
    const auto winners = [&](auto chance) {
      std::vector<Token> tokens;
      const auto race = [&](const auto& masses, std::uint32_t row) {
        tokens.push_back(chance.draw(masses, row, Purpose::residual));
        tokens.push_back(chance.coupled_race(masses, row));
      };
      race(DistributionMasses(logits), 0);
      race(DistributionMasses(target), 1);
      race(DistributionMasses(one_hot), 2);
      race(ResidualMasses(logits, one_hot), 3);
      race(ResidualMasses(target, one_hot), 4);
      race(ResidualMasses(target, proposal), 5);
      race(ResidualMasses(logits, proposal), 6);
      return tokens;
    };
    for (std::uint32_t step = 0; step < (vocab_size < 1000 ? 20 : 2); ++step) {
      const std::uint64_t seed = 0x123456789abcdef0u + step;
      WordByWord words;
      const std::vector<Token> expected = winners(AddressedChance<WordByWord>(words, seed, step, Sampler::race));
      CHECK(expected[4] == static_cast<Token>(vocab_size - 1));  // a one-hot distribution
      for_each_row_kernel_set([&] {
        PhiloxSource tiles;
        CHECK(winners(AddressedChance<PhiloxSource>(tiles, seed, step, Sampler::race)) == expected);
      });
    }
  }
}

TEST_CASE("A race on equal words is won by the largest mass and among equals by the lowest id") {
  std::vector<float> x(9000, 0.0f);
  x[3] = -kInfinity;
  std::vector<float> p(9000, 1.0f / 9000);
  p[0] = 0.0f;
  for (const RandomBlock& block : {InjectedSource::kZeros, InjectedSource::kOnes}) {
    InjectedSource source;
    source.inject(Purpose::target_sample, block);
    AddressedChance<InjectedSource> chance(source, 1, 0, Sampler::race);
    x[0] = -1.0f;
    x[8999] = 0.0f;
    CHECK(chance.draw(DistributionMasses(logits_of(x)), 0, Purpose::target_sample) == 1);
    x[0] = -kInfinity;
    CHECK(chance.draw(DistributionMasses(logits_of(x)), 0, Purpose::target_sample) == 1);
    x[8999] = 1.0f;
    CHECK(chance.draw(DistributionMasses(logits_of(x)), 0, Purpose::target_sample) == 8999);
    CHECK(chance.draw(DistributionMasses(probabilities_of(p)), 0, Purpose::target_sample) == 1);
  }
}

TEST_CASE("A race asks for every block of its row once and the audit refuses the same race again") {
  for (const std::size_t vocab_size : {1, 4, 5, 4096, 4099}) {
    const std::vector<float> x(vocab_size, 0.25f);
    const Distribution distribution = logits_of(x);
    AuditedSource<> audited;
    AddressedChance<AuditedSource<>> chance(audited, 9, 2, Sampler::race);
    const Token token = chance.draw(DistributionMasses(distribution), 1, Purpose::draft_sample);
    CHECK(audited.used() == (vocab_size + 3) / 4);
    CHECK_THROWS_AS(chance.draw(DistributionMasses(distribution), 1, Purpose::draft_sample), Error);
    CHECK_NOTHROW(chance.draw(DistributionMasses(distribution), 2, Purpose::draft_sample));
    // The noise of coupled verification has the position for its row and no step.
    chance.coupled_race(DistributionMasses(distribution), 1);
    CHECK_THROWS_AS(audited.block(9, {0, 1, 0, Purpose::gumbel_noise}), Error);
    PhiloxSource plain;
    CHECK(
        token ==
        AddressedChance<>(plain, 9, 2, Sampler::race).draw(DistributionMasses(distribution), 1, Purpose::draft_sample));
  }
}

TEST_CASE("Both samplers follow logits, probabilities and the residuals of two rows and of a one-hot proposal") {
  const std::vector<float> x = {0.0f, 1.0f, -kInfinity, 2.0f, -2.0f, 1.5f};
  std::vector<double> softmax;
  for (const float logit : x) softmax.push_back(std::exp(static_cast<double>(logit)));
  check_both_samplers(DistributionMasses(logits_of(x)), softmax, 501);
  const std::vector<float> p = {0.5f, 0.0f, 0.25f, 0.125f, 0.0625f, 0.0625f};
  check_both_samplers(DistributionMasses(probabilities_of(p)), {p.begin(), p.end()}, 502);
  const std::vector<float> q = {0.25f, 0.125f, 0.125f, 0.4375f, 0.0f, 0.0625f};
  const Distribution target = probabilities_of(p);
  const Distribution proposal = probabilities_of(q);
  check_both_samplers(ResidualMasses(target, proposal), {0.25, 0.0, 0.125, 0.0, 0.0625, 0.0}, 503);
  const Distribution logits = logits_of(x);
  const Distribution one_hot = one_hot_of(3, 6);
  softmax[3] = 0.0;
  check_both_samplers(ResidualMasses(logits, one_hot), softmax, 504);
}
