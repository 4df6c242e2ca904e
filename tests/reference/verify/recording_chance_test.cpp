#include "reference/verify/recording_chance.hpp"

#include "tests/support/test.hpp"

namespace {

DenseMasses<double> random_masses(TestRandom& random, std::size_t size) {
  DenseMasses<double> masses(size);
  double total = 0.0;
  for (double& mass : masses)
    total += mass = random.chance(0.2) ? 0.0 : 0.001 * static_cast<double>(random.below(1000));
  masses[0] += 0.5;
  for (double& mass : masses) mass /= total + 0.5;
  return masses;
}

}  // namespace

TEST_CASE("a recording Chance answers as one that does not record, and what it wrote down explains the answer") {
  TestRandom random(3);
  PhiloxSource source;
  for (std::uint32_t step = 0; step < 40; ++step) {
    AddressedChance<PhiloxSource> plain(source, 11, step);
    RecordingChance<PhiloxSource> recording(source, 11, step);
    int accepted = 0;
    for (std::uint32_t row = 0; row < 50; ++row) {
      const double p = 0.01 * static_cast<double>(random.below(100));
      const double q = 0.01 * static_cast<double>(random.below(100));
      const bool answer = recording.accept(p, q, row);
      CHECK(answer == plain.accept(p, q, row));
      const RecordedDecision& coin = recording.decisions().back();
      CHECK((coin.q > 0.0 && (coin.p >= coin.q || coin.u * coin.q < coin.p)) == answer);
      accepted += answer ? 1 : 0;
    }
    CHECK(accepted > 5);
    CHECK(accepted < 48);
    // One tile, and three of them: the running sum passes u at the token.
    for (const std::size_t size : {std::size_t{7}, std::size_t{9000}}) {
      const DenseMasses<double> masses = random_masses(random, size);
      const Token token = recording.draw(masses, 3, Purpose::residual);
      CHECK(token == plain.draw(masses, 3, Purpose::residual));
      const RecordedDecision& draw = recording.decisions().back();
      double before = 0.0;
      for (Token t = 0; t < token; ++t) before += draw.masses[static_cast<std::size_t>(t)];
      CHECK(before <= draw.u + 1e-9);
      CHECK(draw.u <= before + draw.masses[static_cast<std::size_t>(token)] + 1e-9);
    }
    const DenseMasses<double> masses = random_masses(random, 30);
    CHECK(recording.coupled_race(masses, step) == plain.coupled_race(masses, step));
    CHECK(recording.coupled_list_race(masses, step, 3) == plain.coupled_list_race(masses, step, 3));
    CHECK(recording.below(9, step) == plain.below(9, step));
  }
}
