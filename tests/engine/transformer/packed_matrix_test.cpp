#include "engine/transformer/packed_matrix.hpp"

#include "tests/engine/transformer/random_tensors.hpp"
#include "tests/support/test.hpp"

TEST_CASE("a repacked matrix decodes to what its file's blocks decode to, bit for bit, for every kind") {
  TestRandom random(901);
  for (const TensorKindInfo& info : kTensorKinds) {
    INFO(info.name);
    constexpr std::int64_t kRows = 37;  // the last group is not whole
    constexpr std::int64_t kColumns = 512;
    const std::vector<std::byte> bytes = random_blocks(random, info.kind, kRows * kColumns, 0.3f);
    std::vector<float> expected(kRows * kColumns);
    decode_blocks(info.kind, bytes, expected);
    const PackedMatrix matrix("m", info.kind, kRows, kColumns, bytes, 2);
    CHECK(matrix.groups() == 3);
    std::vector<float> row(kColumns);
    int nonzero = 0;
    for (std::int64_t r = 0; r < kRows; ++r) {
      matrix.decode_row(r, row);
      CHECK(std::memcmp(row.data(), expected.data() + r * kColumns, kColumns * sizeof(float)) == 0);
      for (const float x : row) nonzero += x != 0.0f ? 1 : 0;
    }
    CHECK(nonzero > kRows * kColumns / 3);
    // Rows taken out of it, from other lanes and in another order, keep their bits.
    const std::vector<std::int32_t> taken{36, 3, 17, 17, 0, 35, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 34};
    const PackedMatrix some = matrix.gathered(taken, 2);
    REQUIRE(some.rows() == std::ssize(taken));
    for (std::size_t i = 0; i < taken.size(); ++i) {
      some.decode_row(static_cast<std::int64_t>(i), row);
      CHECK(std::memcmp(row.data(), expected.data() + taken[i] * kColumns, kColumns * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("a matrix of the formats of files takes no more memory than the file") {
  const std::vector<std::byte> q4_1(static_cast<std::size_t>(encoded_bytes(TensorKind::q4_1, 64 * 256)));
  CHECK(PackedMatrix("m", TensorKind::q4_1, 64, 256, q4_1, 1).bytes() == q4_1.size());
  const std::vector<std::byte> q8_0(static_cast<std::size_t>(encoded_bytes(TensorKind::q8_0, 64 * 256)));
  CHECK(PackedMatrix("m", TensorKind::q8_0, 64, 256, q8_0, 1).bytes() == q8_0.size());
  const std::vector<std::byte> q4_0(static_cast<std::size_t>(encoded_bytes(TensorKind::q4_0, 64 * 256)));
  CHECK(PackedMatrix("m", TensorKind::q4_0, 64, 256, q4_0, 1).bytes() == q4_0.size());
}

TEST_CASE("a weight that is not finite is an error that names the tensor and the row") {
  std::vector<float> values(32 * 32, 1.0f);
  values[5 * 32 + 7] = std::numeric_limits<float>::quiet_NaN();
  CHECK(error_of(ErrorKind::input, [&] {
          PackedMatrix("blk.3.weight", TensorKind::f32, 32, 32, std::as_bytes(std::span(values)), 1);
        }) == "blk.3.weight: row 5 has a value in columns 0 to 31 that is not finite; expected numbers");
  std::vector<std::byte> blocks(static_cast<std::size_t>(encoded_bytes(TensorKind::q8_0, 16 * 64)));
  const std::uint16_t infinity = 0x7c00;
  std::memcpy(blocks.data() + 34 * 3, &infinity, sizeof infinity);
  CHECK(error_of(ErrorKind::input, [&] { PackedMatrix("head", TensorKind::q8_0, 16, 64, blocks, 1); }) ==
        "head: row 1 has a value in columns 32 to 63 that is not finite; expected numbers");
}

TEST_CASE("rows that are no whole blocks, and bytes that are too few, are errors") {
  const std::vector<std::byte> bytes(100);
  CHECK(error_of(ErrorKind::input, [&] { PackedMatrix("m", TensorKind::f32, 4, 40, bytes, 1); }) ==
        "m: its rows have 40 values; expected a multiple of 32 for F32");
  CHECK(error_of(ErrorKind::input, [&] { PackedMatrix("m", TensorKind::q4_k, 4, 128, bytes, 1); }) ==
        "m: its rows have 128 values; expected a multiple of 256 for Q4_K");
  CHECK(error_of(ErrorKind::input, [&] { PackedMatrix("m", TensorKind::q4_0, 4, 64, bytes, 1); }) ==
        "m: it has 100 bytes; expected 144");
}
