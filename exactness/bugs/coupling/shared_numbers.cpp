// Draws that share their numbers with other draws: each has the right distribution, and pairs of them do not.
#include <cstdint>
#include <vector>

#include "exactness/audit/independence.hpp"
#include "exactness/bugs/families.hpp"
#include "exactness/bugs/fixed_rows.hpp"
#include "exactness/statistics/battery.hpp"
#include "reference/random/philox.hpp"
#include "reference/random/uniform.hpp"

namespace draftproof {
namespace {

constexpr double kLevel = 1e-9;  // of a hunt

// Number n of a generator that was started from `seed`.
double number(std::uint64_t seed, std::uint32_t generator, std::uint32_t n) {
  return uniform_53(high_half(PhiloxSource().block(seed, {n, generator, 0, Purpose::choice})));
}

struct PlacedDraws {
  std::vector<double> transforms;
  DrawCoordinates at;
};

Finding find_dependence(const PlacedDraws& draws) {
  std::vector<TestResult> tests = independence_tests(draws.transforms, draws.at);
  judge(tests, kLevel);
  Finding finding{false, static_cast<std::int64_t>(draws.transforms.size()), "draws", {}};
  const TestResult* const worst = worst_test(tests);
  if (worst == nullptr || !worst->rejects) return finding;
  finding.caught = true;
  finding.evidence = worst->sentence;
  return finding;
}

// Exclude top choices: with probability 1/2 of the tokens with 0.15 or more only the last one stays. The coin takes one
// number a step, the draw of a token two; both generators start from the one seed that the user gave.
Finding find_shared_coin(bool faulty) {
  constexpr std::uint32_t kManySteps = 2000;
  constexpr double kUnfiltered[] = {0.4, 0.3, 0.2, 0.1};
  constexpr double kFiltered[] = {0.0, 0.0, 0.2 / 0.3, 0.1 / 0.3};
  PlacedDraws draws;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    for (std::uint32_t step = 1; step <= kManySteps; ++step) {
      const bool excludes = number(seed, faulty ? 0 : 1, step) < 0.5;
      const double u = number(seed, 0, 2 * step);
      std::size_t token = 0;
      double before = 0.0;
      const auto& p = excludes ? kFiltered : kUnfiltered;
      while (token < 3 && u >= before + p[token]) before += p[token++];
      // The transform under the distribution that a token has over both sides of the coin.
      double mass_before = 0.0;
      for (std::size_t i = 0; i < token; ++i) mass_before += (kUnfiltered[i] + kFiltered[i]) / 2.0;
      const double mass = (kUnfiltered[token] + kFiltered[token]) / 2.0;
      draws.transforms.push_back(mass_before + mass * number(derive_seed(77, seed), 2, step));
      draws.at.seed.push_back(seed);
      draws.at.step.push_back(step);
    }
  }
  return find_dependence(draws);
}

constexpr std::uint32_t kBatch = 16;

Finding find_shared_row_of_noise(bool faulty) {
  PlacedDraws draws;
  for (std::uint32_t step = 0; step < 400; ++step) {
    for (std::uint32_t row = 0; row < kBatch; ++row) {
      draws.transforms.push_back(number(79, faulty ? 0 : row, step));
      draws.at.step.push_back(step);
      draws.at.row.push_back(row);
    }
  }
  return find_dependence(draws);
}

}  // namespace

std::vector<Bug> shared_number_bugs() {
  return {{.id = "B77",
           .source = "llama-cpp-python 0.3.36, XTC and the final draw",
           .fault = "two samplers start the same generator from the one seed that was given: the coin that drops the "
                    "likeliest tokens at step 2t is the number that drew the token at step t",
           .hunts = {{Detector::independence, find_shared_coin}}},
          {.id = "B79",
           .source = "vLLM on one ROCm target",
           .fault = "one row of noise is broadcast over the batch, so that equal prompts get equal tokens",
           .hunts = {{Detector::independence, find_shared_row_of_noise}},
           .rows_sampler = [](const FixedRowsPointer& rows) {
             return plain_sampler(rows, [](std::uint64_t draw) {
               return RandomKey{derive_seed(0, draw / kBatch), {0, 0, 0, Purpose::target_sample}};
             });
           }}};
}

}  // namespace draftproof
