// Block formats against the Python package gguf (vectors from make_block_formats.py), and our own against their rule.
#include "engine/weights/block_formats.hpp"

#include <bit>

#include "base/dtype.hpp"
#include "tests/support/test.hpp"

namespace {

std::vector<std::byte> bytes_of_hex(const std::string& hex) {
  std::vector<std::byte> bytes(hex.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  return bytes;
}

std::vector<float> floats_of_hex(const std::string& hex) {
  const std::vector<std::byte> bytes = bytes_of_hex(hex);
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), bytes.size());
  return floats;
}

TensorKind kind_named(const std::string& name) {
  const auto found = std::find_if(kTensorKinds.begin(), kTensorKinds.end(),
                                  [&](const TensorKindInfo& info) { return info.name == name; });
  REQUIRE(found != kTensorKinds.end());
  return found->kind;
}

struct VectorLine {
  std::string direction;
  TensorKind kind{};
  std::string from;
  std::string to;
};

std::vector<VectorLine> vector_lines() {
  std::ifstream file(DRAFTPROOF_SOURCE_DIR "/tests/vectors/block_formats.txt");
  std::vector<VectorLine> lines;
  std::string kind;
  for (VectorLine line; file >> line.direction >> kind >> line.from >> line.to;) {
    line.kind = kind_named(kind);
    lines.push_back(line);
  }
  return lines;
}

std::size_t differing_values(TensorKind kind, const std::vector<std::byte>& block, const std::vector<float>& expected) {
  std::vector<float> values(expected.size(), -123.0F);
  decode_blocks(kind, block, values);
  std::size_t differing = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    differing += std::bit_cast<std::uint32_t>(values[i]) != std::bit_cast<std::uint32_t>(expected[i]);
  return differing;
}

TEST_CASE("every kind of file decodes to the bits of the Python package gguf") {
  std::map<TensorKind, int> blocks_of;
  for (const VectorLine& line : vector_lines()) {
    if (line.direction != "decode") continue;
    INFO(info_of(line.kind).name << " block " << line.from);
    CHECK(differing_values(line.kind, bytes_of_hex(line.from), floats_of_hex(line.to)) == 0);
    ++blocks_of[line.kind];
  }
  CHECK(blocks_of.size() == 10);
  for (const auto& [kind, blocks] : blocks_of) CHECK(blocks >= 4);
}

TEST_CASE("a block with one other bit decodes to other values") {
  for (const VectorLine& line : vector_lines()) {
    if (line.direction != "decode") continue;
    std::vector<std::byte> block = bytes_of_hex(line.from);
    block.back() ^= std::byte{1};
    INFO(info_of(line.kind).name);
    CHECK(differing_values(line.kind, block, floats_of_hex(line.to)) > 0);
  }
}

TEST_CASE("encoding gives the bytes of the Python package gguf") {
  int lines = 0;
  for (const VectorLine& line : vector_lines()) {
    if (line.direction != "encode") continue;
    const std::vector<std::byte> expected = bytes_of_hex(line.to);
    std::vector<std::byte> block(expected.size());
    encode_blocks(line.kind, floats_of_hex(line.from), block);
    INFO(info_of(line.kind).name << " of " << line.from);
    CHECK(block == expected);
    ++lines;
  }
  CHECK(lines == 25);
}

TEST_CASE("blocks of b bits hold the nearest of 2^b levels between the least and the greatest value") {
  TestRandom random(5);
  for (int bits = 2; bits <= 8; ++bits) {
    const TensorKind kind = kind_of_bits(bits);
    INFO(info_of(kind).name);
    CHECK(info_of(kind).block_bytes == 4 + 2 * bits);
    std::vector<float> values(16 * 64);
    for (float& value : values) value = random.normal();
    std::vector<std::byte> blocks(static_cast<std::size_t>(encoded_bytes(kind, std::ssize(values))));
    std::vector<float> decoded(values.size());
    encode_blocks(kind, values, blocks);
    decode_blocks(kind, blocks, decoded);
    for (std::size_t begin = 0; begin < values.size(); begin += 16) {
      const auto [least, most] = std::minmax_element(values.begin() + static_cast<long>(begin),
                                                     values.begin() + static_cast<long>(begin) + 16);
      const float step = (*most - *least) / static_cast<float>((1 << bits) - 1);
      // Half a step, and what binary16 rounds off the least value and, times the levels, off the step.
      const float bound = step * 0.5F + (std::fabs(*least) + (*most - *least)) * 0x1p-11F * 1.01F;
      for (std::size_t i = begin; i < begin + 16; ++i) CHECK(std::fabs(decoded[i] - values[i]) <= bound);
    }
  }
}

TEST_CASE("blocks of b bits decode the bit string by their definition") {
  TestRandom random(6);
  for (int bits = 2; bits <= 8; ++bits) {
    const TensorKind kind = kind_of_bits(bits);
    std::vector<std::byte> block(static_cast<std::size_t>(info_of(kind).block_bytes));
    for (std::byte& byte : block) byte = static_cast<std::byte>(random.below(256));
    const std::uint16_t d = f32_to_f16(0.25F);
    const std::uint16_t m = f32_to_f16(-3.0F);
    std::memcpy(block.data(), &d, 2);
    std::memcpy(block.data() + 2, &m, 2);
    std::vector<float> decoded(16);
    decode_blocks(kind, block, decoded);
    for (int j = 0; j < 16; ++j) {
      int q = 0;
      for (int bit = 0; bit < bits; ++bit) {
        const int place = j * bits + bit;
        q |= ((std::to_integer<int>(block[static_cast<std::size_t>(4 + place / 8)]) >> (place % 8)) & 1) << bit;
      }
      CHECK(decoded[static_cast<std::size_t>(j)] == 0.25F * static_cast<float>(q) - 3.0F);
    }
  }
}

TEST_CASE("a block of one value, and one of zeros, decode to themselves") {
  for (const TensorKindInfo& info : kTensorKinds) {
    if (!can_encode(info.kind)) continue;
    for (const float value : {0.0F, 0.5F, -2.0F}) {
      const std::vector<float> values(static_cast<std::size_t>(info.block_len), value);
      std::vector<std::byte> block(static_cast<std::size_t>(info.block_bytes));
      encode_blocks(info.kind, values, block);
      std::vector<float> decoded(values.size());
      decode_blocks(info.kind, block, decoded);
      INFO(info.name << " of " << value);
      // Q8_0 has 127 steps of a rounded size.
      for (const float x : decoded) CHECK(std::fabs(x - value) <= std::fabs(value) * 0x1p-10F);
    }
  }
}

}  // namespace
