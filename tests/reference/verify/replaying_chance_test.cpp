#include "reference/verify/replaying_chance.hpp"

#include "exactness/rational.hpp"
#include "tests/support/test.hpp"

namespace {

// Numbers on a coarse grid, so that there are ties and zeros.
double coarse(TestRandom& random, std::int64_t steps) {
  return static_cast<double>(random.below(steps + 1)) / static_cast<double>(steps);
}

bool accepts_as_documented(Convention convention, const Rational& p, const Rational& q, const Rational& u) {
  switch (convention) {
    case Convention::vllm_v1:
    case Convention::huggingface:
      return q > 0 && u <= p / q;
    case Convention::vllm_v2:
      return q > 0 && p > 0 && p / q > u;
    case Convention::flashinfer:
    case Convention::tensorrt_llm:
      return u * q < p;
    case Convention::sglang:
      return p > 0 && u * q < p;
    case Convention::textbook:
      return q == 0 || u < p / q;
    case Convention::draftproof:
      break;
  }
  return q > 0 && (p >= q || u < p / q);
}

DenseMasses<double> coarse_masses(TestRandom& random, std::size_t size) {
  DenseMasses<double> masses(size);
  for (double& mass : masses) mass = random.chance(0.4) ? 0.0 : coarse(random, 8) / 8.0;
  masses[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(size)))] = 0.125;
  return masses;
}

}  // namespace

TEST_CASE("a recorded coin falls as the fractions say, at the endpoints of each engine") {
  TestRandom random(51);
  for (const ConventionInfo& info : kConventions) {
    int ties = 0;
    for (int i = 0; i < 4000; ++i) {
      const double p = random.chance(0.3) ? random.uniform() : coarse(random, 8);
      const double q = random.chance(0.3) ? random.uniform() : coarse(random, 8);
      double u = coarse(random, 8);
      if (random.chance(0.3)) u = random.uniform();
      if (random.chance(0.3) && q > p) u = p / q;  // rounded: which side it falls on must be found exactly
      ties += Rational(u) * Rational(q) == Rational(p) ? 1 : 0;
      CAPTURE(std::string(info.name), p, q, u);
      REQUIRE(accepts_exactly(info.convention, p, q, u) ==
              accepts_as_documented(info.convention, Rational(p), Rational(q), Rational(u)));
    }
    CHECK(ties > 100);
  }
  CHECK(accepts_exactly(Convention::vllm_v1, 0.0, 0.5, 0.0));
  CHECK_FALSE(accepts_exactly(Convention::flashinfer, 0.5, 0.5, 1.0));
  CHECK(accepts_exactly(Convention::draftproof, 0.5, 0.5, 1.0));
}

TEST_CASE("a recorded uniform number draws the token at which the running sum passes it") {
  TestRandom random(52);
  for (int i = 0; i < 3000; ++i) {
    const DenseMasses<double> masses = coarse_masses(random, 1 + static_cast<std::size_t>(random.below(9)));
    const double u = random.chance(0.5) ? coarse(random, 16) : random.uniform();
    Rational total = 0;
    for (const double mass : masses) total += Rational(mass);
    Rational sum = 0;
    Token expected = kPaddingToken;
    Token last = kPaddingToken;
    for (std::size_t t = 0; t < masses.size(); ++t) {
      sum += Rational(masses[t]);
      if (masses[t] > 0.0) last = static_cast<Token>(t);
      if (expected == kPaddingToken && sum > Rational(u) * total) expected = static_cast<Token>(t);
    }
    REQUIRE(draw_by_uniform(masses, u) == (expected == kPaddingToken ? last : expected));
  }
  CHECK(draw_by_uniform({0.0, 0.5, 0.5, 0.0}, 0.0) == 1);
  CHECK(draw_by_uniform({0.0, 0.5, 0.5, 0.0}, 0.5) == 2);  // a tie goes to the next token
  CHECK(draw_by_uniform({0.0, 0.5, 0.5, 0.0}, 1.0) == 2);
}

TEST_CASE("recorded noise draws the token with the best score, the lowest of equal ones") {
  TestRandom random(53);
  int ties = 0;
  for (int i = 0; i < 3000; ++i) {
    const DenseMasses<double> masses = coarse_masses(random, 1 + static_cast<std::size_t>(random.below(9)));
    std::vector<float> noise(2 * masses.size());
    for (float& x : noise)
      x = random.chance(0.05) ? 0.0f
                              : static_cast<float>(random.chance(0.5) ? 0.25 + coarse(random, 4)
                                                                      : -std::log(1.0 - random.uniform()) + 1e-9);
    const RecordedNumbers recorded{noise, {}};
    Token expected = kPaddingToken;
    for (std::size_t t = 0; t < masses.size(); ++t) {
      if (masses[t] == 0.0) continue;
      const float x = noise[masses.size() + t];
      if (expected == kPaddingToken) {
        expected = static_cast<Token>(t);
        continue;
      }
      const auto best = static_cast<std::size_t>(expected);
      const float best_x = noise[masses.size() + best];
      if (best_x == 0.0f) continue;
      if (x == 0.0f || Rational(masses[t]) / Rational(x) > Rational(masses[best]) / Rational(best_x))
        expected = static_cast<Token>(t);
      else
        ties += Rational(masses[t]) / Rational(x) == Rational(masses[best]) / Rational(best_x) ? 1 : 0;
    }
    REQUIRE(draw_by_noise(masses, recorded, masses.size(), NoiseKind::exponential) == expected);
    // Gumbel noise -log E is the same race.
    bool zeros = false;
    std::vector<double> gumbel;
    for (const float x : noise) gumbel.push_back(-std::log(static_cast<double>(x))), zeros = zeros || x == 0.0f;
    const Token by_gumbel = draw_by_noise(masses, {{}, gumbel}, masses.size(), NoiseKind::gumbel);
    const auto score = [&](Token t) {
      return std::log(masses[static_cast<std::size_t>(t)]) + gumbel[masses.size() + static_cast<std::size_t>(t)];
    };
    if (!zeros) REQUIRE(score(by_gumbel) >= score(expected) - 1e-12);
  }
  CHECK(ties > 40);
}
