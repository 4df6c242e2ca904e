#include "engine/transformer/transformer_kernels.hpp"

#include "base/dtype.hpp"
#include "tests/engine/transformer/random_tensors.hpp"
#include "tests/support/test.hpp"

namespace {

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Rows of normal numbers, some a hundred times larger, one of zeros, one of the least that does not count as zero.
std::vector<float> awkward_rows(TestRandom& random, std::size_t rows, std::size_t columns) {
  std::vector<float> x(rows * columns);
  for (float& v : x) v = random.normal() * (random.chance(0.05) ? 100.0f : 1.0f);
  for (std::size_t c = 0; c < 32; ++c) {
    x[c] = 0.0f;
    x[32 + c] = c == 3 ? 1.5e-30f : 0.0f;
  }
  return x;
}

Int8Rows quantised(const TransformerKernels& kernels, const std::vector<float>& x, int rows, std::int64_t columns) {
  Int8Rows out;
  out.resize(rows, columns);
  for (int r = 0; r < rows; ++r) {
    const Int8Tile& tile = out.tile_of(r);
    kernels.quantise(x.data() + r * columns, 0, out.blocks(), tile, r - tile.first_row);
  }
  return out;
}

std::vector<float> int8_products(const TransformerKernels& kernels, const PackedMatrix& matrix, const Int8Rows& rows) {
  const auto stride = static_cast<std::size_t>(matrix.groups() * kGroupRows);
  std::vector<float> out(static_cast<std::size_t>(rows.rows()) * stride, kNan);
  // In two parts, as two threads would.
  const std::int64_t cut = matrix.groups() / 2;
  kernels.int8_product({&matrix, 0, cut, out.data(), stride, matrix.group(cut)}, rows.tiles());
  kernels.int8_product({&matrix, cut, matrix.groups(), out.data(), stride, nullptr}, rows.tiles());
  return out;
}

std::vector<float> float_products(const TransformerKernels& kernels, const PackedMatrix& matrix,
                                  const std::vector<float>& x, int rows) {
  const auto stride = static_cast<std::size_t>(matrix.groups() * kGroupRows);
  std::vector<float> out(static_cast<std::size_t>(rows) * stride, kNan);
  kernels.float_product({&matrix, 0, matrix.groups(), out.data(), stride, nullptr}, x.data(),
                        static_cast<std::size_t>(matrix.columns()), rows);
  return out;
}

// Relative error in the Euclidean norm of products against those in double precision.
double relative_error(const PackedMatrix& matrix, const std::vector<float>& x, const std::vector<float>& products,
                      std::size_t rows) {
  const auto columns = static_cast<std::size_t>(matrix.columns());
  const auto stride = static_cast<std::size_t>(matrix.groups() * kGroupRows);
  double error = 0.0;
  double norm = 0.0;
  std::vector<float> weights(columns);
  for (std::int64_t r = 0; r < matrix.rows(); ++r) {
    matrix.decode_row(r, weights);
    for (std::size_t m = 0; m < rows; ++m) {
      double exact = 0.0;
      for (std::size_t k = 0; k < columns; ++k)
        exact += static_cast<double>(weights[k]) * static_cast<double>(x[m * columns + k]);
      const double off = static_cast<double>(products[m * stride + static_cast<std::size_t>(r)]) - exact;
      error += off * off;
      norm += exact * exact;
    }
  }
  return std::sqrt(error / norm);
}

template <class Check>
void for_each_vector_set(Check check) {
  const std::vector<TransformerKernels> sets = available_transformer_kernels();
  for (std::size_t i = 1; i < sets.size(); ++i) {
    INFO("kernels: " << sets[i].target);
    check(sets[i]);
  }
}

}  // namespace

TEST_CASE("int8 rows have the same codes, scales and sums on every instruction set") {
  TestRandom random(11);
  constexpr int kRows = 21;
  constexpr std::int64_t kColumns = 160;
  std::vector<float> x = awkward_rows(random, kRows, kColumns);
  x[3 * kColumns + 40] = kNan;
  x[4 * kColumns + 70] = -kInfinity;
  x[5 * kColumns + 1] = 3e38f;
  const Int8Rows expected = quantised(scalar_transformer_kernels(), x, kRows, kColumns);
  const auto whole = [&](const Int8Rows& rows) {
    std::vector<float> all;
    for (const Int8Tile& tile : rows.tiles()) {
      const std::int64_t cells = tile.rows * rows.blocks();
      for (std::int64_t i = 0; i < cells; ++i) {
        const Int8Block& block = tile.blocks[i];
        for (const std::int8_t code : block.q) all.push_back(static_cast<float>(code));
        for (const float v :
             {block.scale, block.scaled_sum, static_cast<float>(block.minus_8_sum),
              static_cast<float>(block.minus_128_sum), block.scaled_half_sums[0], block.scaled_half_sums[1],
              static_cast<float>(block.minus_32_half_sums[0]), static_cast<float>(block.minus_32_half_sums[1])})
          all.push_back(v);
      }
    }
    return all;
  };
  for_each_vector_set([&](const TransformerKernels& kernels) {
    CHECK(same_bits(whole(quantised(kernels, x, kRows, kColumns)), whole(expected)));
  });
  // Two tiles of nearly the same size; the definition by hand in one block.
  REQUIRE(expected.tiles().size() == 2);
  CHECK(expected.tiles()[0].rows == 10);
  CHECK(expected.tiles()[1].rows == 11);
  const Int8Tile& tile = expected.tiles()[0];
  const Int8Block& block = tile.blocks[2 * tile.rows + 7];  // block 2 of row 7
  float amax = 0.0f;
  for (int i = 0; i < 32; ++i) amax = std::max(amax, std::fabs(x[7 * kColumns + 64 + i]));
  CHECK(block.scale == amax / 127.0f);
  std::int32_t sum = 0;
  for (int i = 0; i < 32; ++i) {
    CHECK(block.q[i] == std::lrint(x[7 * kColumns + 64 + i] * (127.0f / amax)));
    sum += block.q[i];
  }
  CHECK(block.minus_128_sum == -128 * sum);
  CHECK(std::isnan(tile.blocks[1 * tile.rows + 3].scale));
  CHECK(std::isnan(tile.blocks[2 * tile.rows + 4].scale));
  CHECK(tile.blocks[0].scale == 0.0f);
}

TEST_CASE("int8 products have the same bits on every instruction set, for every format and number of rows") {
  TestRandom random(12);
  for (const TensorKindInfo& info : kTensorKinds) {
    if (info.block_len == 1) continue;
    INFO(info.name);
    for (const std::int64_t columns : {std::int64_t{256}, std::int64_t{768}}) {
      const std::int64_t matrix_rows = 70;
      const PackedMatrix matrix("m", info.kind, matrix_rows, columns,
                                random_blocks(random, info.kind, matrix_rows * columns, 0.1f), 1);
      const std::vector<float> x = awkward_rows(random, 35, static_cast<std::size_t>(columns));
      const std::vector<float> alone =
          int8_products(scalar_transformer_kernels(), matrix, quantised(scalar_transformer_kernels(), x, 35, columns));
      CHECK(relative_error(matrix, x, alone, 35) < 0.015);
      for_each_vector_set([&](const TransformerKernels& kernels) {
        for (int rows = 1; rows <= 35; rows = rows < 17 ? rows + 1 : rows + 9) {
          INFO("rows: " << rows);
          const std::vector<float> products = int8_products(kernels, matrix, quantised(kernels, x, rows, columns));
          // A row does not depend on how many there are with it.
          CHECK(std::memcmp(products.data(), alone.data(), products.size() * sizeof(float)) == 0);
        }
      });
    }
  }
}

TEST_CASE("float products have the same bits on every instruction set, for every kind and number of rows") {
  TestRandom random(13);
  for (const TensorKindInfo& info : kTensorKinds) {
    INFO(info.name);
    const std::int64_t columns = info.block_len > 32 ? 512 : 224;
    const std::int64_t matrix_rows = 40;
    const PackedMatrix matrix("m", info.kind, matrix_rows, columns,
                              random_blocks(random, info.kind, matrix_rows * columns, 0.1f), 1);
    const std::vector<float> x = awkward_rows(random, 17, static_cast<std::size_t>(columns));
    const std::vector<float> expected = float_products(scalar_transformer_kernels(), matrix, x, 17);
    CHECK(relative_error(matrix, x, expected, 17) < 3e-7);
    for_each_vector_set([&](const TransformerKernels& kernels) {
      for (int rows = 1; rows <= 17; ++rows) {
        const std::vector<float> products = float_products(kernels, matrix, x, rows);
        CHECK(std::memcmp(products.data(), expected.data(), products.size() * sizeof(float)) == 0);
      }
    });
  }
}

TEST_CASE("loops over rows have the same bits on every instruction set") {
  TestRandom random(14);
  const TransformerKernels& scalar = scalar_transformer_kernels();
  for (const std::size_t count : {std::size_t{16}, std::size_t{48}, std::size_t{576}}) {
    std::vector<float> x(count), y(count), expected(count), out(count);
    for (float& v : x) v = random.normal() * (random.chance(0.1) ? 60.0f : 2.0f);
    for (float& v : y) v = random.normal();
    x[0] = 0.0f;
    x[1] = 400.0f;
    x[2] = -400.0f;
    std::vector<std::uint16_t> halves(count), expected_halves(count);
    for_each_vector_set([&](const TransformerKernels& kernels) {
      scalar.rms_norm(x.data(), y.data(), count, 1e-5f, expected.data());
      kernels.rms_norm(x.data(), y.data(), count, 1e-5f, out.data());
      CHECK(same_bits(out, expected));
      scalar.swiglu(x.data(), y.data(), count, expected.data());
      kernels.swiglu(x.data(), y.data(), count, out.data());
      CHECK(same_bits(out, expected));
      expected = out = x;
      scalar.add(expected.data(), y.data(), count);
      kernels.add(out.data(), y.data(), count);
      CHECK(same_bits(out, expected));
      expected = x;
      scalar.scale(expected.data(), count, 0.3f, expected.data());
      kernels.scale(x.data(), count, 0.3f, out.data());
      CHECK(same_bits(out, expected));
      CHECK(scalar.to_f16(x.data(), count, expected_halves.data()));
      CHECK(kernels.to_f16(x.data(), count, halves.data()));
      CHECK(halves == expected_halves);
      CHECK(kernels.all_finite(x.data(), count - 3));
    });
  }
  // Against double precision.
  std::vector<float> gate(4096), up(4096, 1.0f), out(4096);
  for (std::size_t i = 0; i < gate.size(); ++i) gate[i] = (static_cast<float>(i) - 2048.0f) / 40.0f;
  scalar.swiglu(gate.data(), up.data(), gate.size(), out.data());
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const double g = static_cast<double>(gate[i]);
    CHECK(std::fabs(static_cast<double>(out[i]) - g / (1.0 + std::exp(-g))) <= std::fabs(g) * 4e-7);
  }
}

TEST_CASE("what is not finite stays so, or is reported, on every instruction set") {
  for (const TransformerKernels& kernels : available_transformer_kernels()) {
    INFO("kernels: " << kernels.target);
    for (const float bad : {kNan, kInfinity, -kInfinity}) {
      std::vector<float> x(48, 1.0f), ones(48, 1.0f), out(48);
      x[37] = bad;
      CHECK_FALSE(kernels.all_finite(x.data(), x.size()));
      std::vector<std::uint16_t> halves(48);
      CHECK_FALSE(kernels.to_f16(x.data(), x.size(), halves.data()));
      kernels.rms_norm(x.data(), ones.data(), x.size(), 1e-5f, out.data());
      CHECK_FALSE(kernels.all_finite(out.data(), out.size()));
      kernels.swiglu(ones.data(), x.data(), x.size(), out.data());
      CHECK_FALSE(kernels.all_finite(out.data(), out.size()));
    }
    // Above the largest binary16, and just not.
    std::vector<float> x(16, 65519.0f);
    std::vector<std::uint16_t> halves(16);
    CHECK(kernels.to_f16(x.data(), x.size(), halves.data()));
    x[5] = 65520.0f;
    CHECK_FALSE(kernels.to_f16(x.data(), x.size(), halves.data()));
    for (const std::size_t at : {std::size_t{0}, std::size_t{13}, std::size_t{20}}) {
      std::vector<float> scores(32, 0.5f);
      scores[at] = kNan;
      const float factor = kernels.softmax(scores.data(), 0, 21, 16);
      CHECK(std::isnan(factor));
    }
  }
}

TEST_CASE("softmax and sums over values have the same bits on every instruction set") {
  TestRandom random(15);
  const TransformerKernels& scalar = scalar_transformer_kernels();
  const auto [first, count] = GENERATE(table<std::size_t, std::size_t>({{0, 1},
                                                                        {0, 2},
                                                                        {0, 15},
                                                                        {0, 16},
                                                                        {0, 17},
                                                                        {0, 31},
                                                                        {0, 64},
                                                                        {0, 100},
                                                                        {0, 333},
                                                                        {1, 2},
                                                                        {1, 16},
                                                                        {5, 40},
                                                                        {15, 16},
                                                                        {9, 12}}));
  {
    INFO("positions: " << first << " to " << count);
    // Tiles lie apart, as those of one of several queries do.
    constexpr std::size_t kStride = 48;
    const std::size_t tiles = (count + 15) / 16;
    std::vector<float> scores(tiles * kStride, kNan);
    const auto at = [](std::size_t p) { return p / 16 * kStride + p % 16; };
    for (std::size_t p = 0; p < count; ++p) scores[at(p)] = random.normal() * (random.chance(0.1) ? 90.0f : 3.0f);
    std::vector<float> expected = scores;
    const float factor = scalar.softmax(expected.data(), first, count, kStride);
    double sum = 0.0;
    for (std::size_t p = 0; p < tiles * 16; ++p) sum += static_cast<double>(expected[at(p)]);
    CHECK(std::fabs(sum * static_cast<double>(factor) - 1.0) < 1e-5);
    for (std::size_t p = 0; p < tiles * 16; ++p)
      if (p < first || p >= count) CHECK(expected[at(p)] == 0.0f);
    for_each_vector_set([&](const TransformerKernels& kernels) {
      std::vector<float> weights = scores;
      CHECK(kernels.softmax(weights.data(), first, count, kStride) == factor);
      CHECK(same_bits(weights, expected));
    });
  }
}

TEST_CASE("tiles of attention have the same bits on every instruction set, for any number of queries") {
  TestRandom random(16);
  const TransformerKernels& scalar = scalar_transformer_kernels();
  for (const std::int64_t head_len : {16, 64, 80, 128}) {
    const auto elements = static_cast<std::size_t>(head_len * kTilePositions);
    std::vector<std::uint16_t> tile(elements);
    for (std::uint16_t& h : tile) h = f32_to_f16(random.normal());
    for (const int queries : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 17}) {
      const auto length = static_cast<std::size_t>(queries) * static_cast<std::size_t>(head_len);
      std::vector<float> q(length), w(static_cast<std::size_t>(queries) * 16), start(length);
      for (float& v : q) v = random.normal();
      for (float& v : w) v = static_cast<float>(random.uniform());
      for (float& v : start) v = random.normal();
      const auto run = [&](const TransformerKernels& kernels, std::size_t positions, std::vector<float>& scores,
                           std::vector<float>& out) {
        kernels.tile_scores(q.data(), static_cast<std::size_t>(queries), queries, tile.data(), head_len, scores.data());
        kernels.tile_values(w.data(), queries, positions, tile.data(), head_len, out.data());
      };
      for (const std::size_t positions : {std::size_t{1}, std::size_t{9}, std::size_t{16}}) {
        std::vector<float> expected_scores(w.size()), expected = start;
        run(scalar, positions, expected_scores, expected);
        double exact = 0.0;
        for (std::int64_t i = 0; i < head_len; ++i)
          exact += static_cast<double>(q[static_cast<std::size_t>(i * queries)]) *
                   static_cast<double>(f16_to_f32(tile[static_cast<std::size_t>(i * 16 + 3)]));
        CHECK(std::fabs(exact - static_cast<double>(expected_scores[3])) < 1e-4);
        for_each_vector_set([&](const TransformerKernels& kernels) {
          std::vector<float> scores(w.size()), out = start;
          run(kernels, positions, scores, out);
          CHECK(same_bits(scores, expected_scores));
          CHECK(same_bits(out, expected));
        });
      }
    }
  }
}

TEST_CASE("this machine's fastest set is among those that are compared") {
  bool found = false;
  for (const TransformerKernels& kernels : available_transformer_kernels())
    found = found || std::string(kernels.target) == transformer_kernels().target;
  CHECK(found);
}
