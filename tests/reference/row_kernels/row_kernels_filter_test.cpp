// The row kernels that filters, temperatures and races are made of: every set against the scalar one, bit by bit, and
// the scalar one against what it is said to do.
#include "reference/row_kernels/row_kernels.hpp"
#include "tests/support/test.hpp"

namespace {

const std::vector<std::size_t> kSizes{1, 2, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 255, 257, 1000, 4095, 4096};

// Rows whose values tie, are masked, lie deep, or are zeros of both signs.
std::vector<std::vector<float>> rows_of(std::size_t count, std::mt19937& random) {
  std::vector<std::vector<float>> rows(8, std::vector<float>(count));
  for (std::size_t i = 0; i < count; ++i) {
    const float normal = std::normal_distribution<float>(0.0f, 3.0f)(random);
    rows[0][i] = normal;
    rows[1][i] = static_cast<float>(random() % 3);
    rows[2][i] = random() % 3 == 0 ? -kInfinity : normal;
    rows[3][i] = 1.5f;
    rows[4][i] = random() % 2 == 0 ? 0.0f : -0.0f;
    rows[5][i] = normal * 40.0f;
    rows[6][i] = random() % 5 == 0 ? -1e30f : normal * 30000.0f;
    rows[7][i] = i == count / 2 ? 2.0f : -kInfinity;
  }
  return rows;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("What a cut leaves of a tile is the same in every set of row kernels and is the cut's definition") {
  std::mt19937 random(211);
  int wrong = 0;
  int dropped = 0;
  for (const std::size_t count : kSizes) {
    for (const std::vector<float>& row : rows_of(count, random)) {
      TileMass mass;
      REQUIRE(scalar_row_kernels().tile_mass(row.data(), count, &mass));
      std::vector<float> weights(count);
      scalar_row_kernels().tile_weights(row.data(), count, mass.n_max, weights.data());
      const std::uint64_t some_mass = mass_of_weight(weights[random() % count]);
      for (const float last_value : {-kInfinity, row[random() % count], 0.0f, kInfinity}) {
        for (const std::size_t position : {std::size_t{0}, random() % count, count}) {
          for (const double least : {0.0, 1.0, static_cast<double>(some_mass), static_cast<double>(some_mass) + 1.0}) {
            const TileCut cut{last_value, position, least};
            std::vector<float> expected = weights;
            std::uint64_t sum = 0;
            std::int32_t kept = 0;
            for (std::size_t i = 0; i < count; ++i) {
              const bool before = row[i] > last_value || (row[i] == last_value && i < position);
              const std::uint64_t m = mass_of_weight(weights[i]);
              if (!before || static_cast<double>(m) < least) expected[i] = 0.0f;
              if (expected[i] > 0.0f) {
                sum += m;
                ++kept;
              }
            }
            dropped += kept < mass.kept;
            for (const RowKernels& kernels : available_row_kernels()) {
              std::vector<float> got = weights;
              const TileKept left = kernels.keep_in_tile(row.data(), count, cut, got.data());
              wrong += left.sum != sum || left.kept != kept || !same_bits(got, expected);
            }
          }
        }
      }
    }
  }
  CHECK(wrong == 0);
  CHECK(dropped > 1000);
}

TEST_CASE(
    "The range of a tile is that of its masses in every set of row kernels, with the largest logit of each group") {
  std::mt19937 random(229);
  int wrong = 0;
  for (const std::size_t count : kSizes) {
    for (const std::vector<float>& row : rows_of(count, random)) {
      TileMass mass;
      REQUIRE(scalar_row_kernels().tile_mass(row.data(), count, &mass));
      for (const RowKernels& kernels : available_row_kernels()) {
        TileMass range{1, 2, 3, 4};
        const std::size_t groups = (count + kGroupTokens - 1) / kGroupTokens;
        std::vector<float> largest(groups, 7.0f);
        wrong += !kernels.tile_range(row.data(), count, 1.0f, nullptr, &range, largest.data());
        wrong += range.sum != 0 || range.n_max != mass.n_max || range.n_min != mass.n_min || range.kept != mass.kept;
        for (std::size_t g = 0; g < groups; ++g) {
          float expected = -kInfinity;
          for (std::size_t i = g * kGroupTokens; i < std::min(count, (g + 1) * kGroupTokens); ++i)
            if (row[i] >= -kLogitLimit) expected = std::max(expected, row[i]);
          wrong += !(largest[g] == expected);
        }
        // Quotients: the same as for a row that was divided before.
        for (const float divisor : {0.7f, 2.0f}) {
          std::vector<float> divided(count);
          std::transform(row.begin(), row.end(), divided.begin(), [&](float x) { return x / divisor; });
          std::vector<float> quotients = row;
          std::vector<float> largest_quotient(groups);
          TileMass of_quotients;
          wrong += !kernels.tile_range(quotients.data(), count, divisor, quotients.data(), &of_quotients,
                                       largest_quotient.data());
          wrong += !same_bits(quotients, divided);
          wrong += !kernels.tile_range(divided.data(), count, 1.0f, nullptr, &range, largest.data());
          wrong += of_quotients.n_max != range.n_max || of_quotients.n_min != range.n_min ||
                   of_quotients.kept != range.kept || largest_quotient != largest;
        }
        for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInfinity, 1e30f}) {
          std::vector<float> broken = row;
          broken[random() % count] = bad;
          wrong += kernels.tile_range(broken.data(), count, 1.0f, nullptr, &range, largest.data());
        }
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("Sums by a band of values are the same in every set of row kernels and are the sums of single masses") {
  std::mt19937 random(233);
  int wrong = 0;
  int lossy = 0;
  for (const std::size_t count : kSizes) {
    for (const std::vector<float>& row : rows_of(count, random)) {
      TileMass range;
      REQUIRE(scalar_row_kernels().tile_mass(row.data(), count, &range));
      std::vector<float> weights(count);
      scalar_row_kernels().tile_weights(row.data(), count, range.n_max, weights.data());
      for (const RowKernels& kernels : available_row_kernels()) {
        std::vector<float> got(count);
        wrong += kernels.weigh_tile(row.data(), count, range, got.data()) != range.sum || !same_bits(got, weights);
      }
      for (const std::int64_t shift : {0, 1, 7, 40, 44, 45, 46, 51, 63, 64, 100000}) {
        const float one = std::max(-kLogitLimit, row[random() % count]);
        const float other = std::max(-kLogitLimit, row[random() % count]);
        for (const auto& [low, high] : {std::pair{std::min(one, other), std::max(one, other)}, std::pair{one, one},
                                        std::pair{-kLogitLimit, kInfinity}, std::pair{kInfinity, kInfinity},
                                        std::pair{-kLogitLimit, one}, std::pair{0.0f, 0.5f}}) {
          TileBand expected;
          std::vector<float> values;
          std::vector<float> band_weights;
          for (std::size_t i = 0; i < count; ++i) {
            const std::uint64_t mass = mass_of_weight(weights[i]);
            const std::uint64_t in_row = shift > 63 ? 0 : mass >> shift;
            if (row[i] > high) {
              expected.above += mass;
              expected.above_in_row += in_row;
              ++expected.above_count;
            } else if (row[i] >= low) {
              expected.band_in_row += in_row;
              values.push_back(row[i]);
              band_weights.push_back(weights[i]);
            }
          }
          lossy += expected.above_in_row != (shift > 63 ? 0 : expected.above >> shift);
          for (const RowKernels& kernels : available_row_kernels()) {
            std::vector<float> band(count + kBandSlack);
            std::vector<float> got_weights(count + kBandSlack);
            const TileBand got =
                kernels.tile_band(row.data(), weights.data(), count, shift, low, high, band.data(), got_weights.data());
            wrong += got.above != expected.above || got.above_in_row != expected.above_in_row ||
                     got.band_in_row != expected.band_in_row || got.above_count != expected.above_count;
            band.resize(static_cast<std::size_t>(got.band_count));
            got_weights.resize(static_cast<std::size_t>(got.band_count));
            wrong += !same_bits(band, values) || !same_bits(got_weights, band_weights);
          }
        }
      }
    }
  }
  CHECK(wrong == 0);
  CHECK(lossy > 100);
}

TEST_CASE("Log weights and divided logits have the same bits in every set of row kernels") {
  std::mt19937 random(223);
  int wrong = 0;
  for (const std::size_t count : kSizes) {
    for (const std::vector<float>& row : rows_of(count, random)) {
      std::vector<float> weights(count);
      for (float& w : weights) w = random() % 2 == 0 ? 0.0f : 0.5f;
      for (const RowKernels& kernels : available_row_kernels()) {
        std::vector<double> out(count);
        kernels.log_weights_of(row.data(), nullptr, count, out.data());
        for (std::size_t i = 0; i < count; ++i)
          wrong += out[i] != (row[i] >= -kLogitLimit ? static_cast<double>(row[i]) : kNoWeight);
        kernels.log_weights_of(row.data(), weights.data(), count, out.data());
        for (std::size_t i = 0; i < count; ++i)
          wrong += out[i] != (weights[i] > 0.0f ? static_cast<double>(row[i]) : kNoWeight);
        for (const float divisor : {0.7f, 2.0f, 0.1f, 3.0f, 1e-30f, 1e30f, 0x1p-149f}) {
          std::vector<float> expected(count);
          for (std::size_t i = 0; i < count; ++i) expected[i] = row[i] / divisor;
          std::vector<float> got = row;
          kernels.divide(got.data(), count, divisor, got.data());
          wrong += !same_bits(got, expected);
        }
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("A race that skips tokens which cannot win has the winner of the race that skips none") {
  std::mt19937_64 random(227);
  int wrong = 0;
  for (const std::size_t count : kSizes) {
    for (int repeat = 0; repeat < 40; ++repeat) {
      // Spread from a tie of all tokens to a single one that can win, at offsets up to the largest logit.
      const double spread = std::ldexp(1.0, static_cast<int>(random() % 12) - 4);
      const double offset = (random() % 4 == 0 ? 0.999 * kLogitLimit : 0.0) * (random() % 2 == 0 ? 1.0 : -1.0);
      std::vector<double> log_weights(count);
      for (std::size_t i = 0; i < count; ++i) {
        log_weights[i] = offset + spread * std::normal_distribution<double>()(random);
        if (repeat % 5 == 1) log_weights[i] = offset + spread * static_cast<double>(i) / static_cast<double>(count);
        if (repeat % 5 == 2) log_weights[i] = offset - spread * static_cast<double>(i) / static_cast<double>(count);
        if (repeat % 5 == 3 && random() % 3 != 0) log_weights[i] = kNoWeight;
        if (repeat % 5 == 4) log_weights[i] = static_cast<double>(static_cast<float>(log_weights[i]));
      }
      const NoiseAddress noise{{static_cast<std::uint32_t>(random()), static_cast<std::uint32_t>(random())},
                               static_cast<std::uint32_t>(random()),
                               static_cast<std::uint32_t>(random()),
                               4};
      const RaceWinner alone = scalar_row_kernels().race(log_weights.data(), count, 8192, noise, RaceWinner::none());
      // Incumbents that lose, tie (and keep their place) and win by the least difference.
      std::vector<RaceWinner> incumbents{RaceWinner::none()};
      if (alone.token >= 0) {
        incumbents.push_back({std::nextafter(alone.score, -1e300), 17});
        incumbents.push_back({alone.score, 17});
        incumbents.push_back({std::nextafter(alone.score, 1e300), 17});
      }
      for (std::size_t i = 0; i < incumbents.size(); ++i) {
        const RaceWinner expected = i < 2 ? alone : incumbents[i];
        for (const RowKernels& kernels : available_row_kernels()) {
          const RaceWinner got = kernels.race(log_weights.data(), count, 8192, noise, incumbents[i]);
          wrong += got.token != expected.token ||
                   bit_cast<std::uint64_t>(got.score) != bit_cast<std::uint64_t>(expected.score);
        }
      }
    }
  }
  CHECK(wrong == 0);
}
