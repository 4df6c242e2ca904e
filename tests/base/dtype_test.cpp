#include "base/dtype.hpp"

#include "base/host_device.hpp"
#include "tests/support/test.hpp"

namespace {

std::uint32_t bits_of(float value) {
  return bit_cast<std::uint32_t>(value);
}

// A 16-bit float format, described by its parameters and decoded in double: independent of the bit tricks under test.
struct Format {
  int fraction_bits;
  int exponent_bits;
};
constexpr Format kF16{10, 5};
constexpr Format kBF16{7, 8};

double decode(Format format, std::uint16_t bits) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const int exponent = (bits & 0x7fff) >> format.fraction_bits;
  const int fraction = bits & ((1 << format.fraction_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << format.exponent_bits) - 1) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  const int implicit_one = exponent == 0 ? 0 : 1 << format.fraction_bits;
  const int scale = (exponent == 0 ? 1 : exponent) - bias - format.fraction_bits;
  return sign * std::ldexp(implicit_one + fraction, scale);
}

// The smallest magnitude that rounds to infinity: halfway from the largest finite number to the power of two above it.
double overflow_threshold(Format format) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  return std::ldexp(2.0 - std::ldexp(0.5, -format.fraction_bits), bias);
}

// Nearest by bisection over the ordered non-negative finite codes, ties to the even code.
std::uint16_t encode(Format format, float value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const auto infinity = static_cast<std::uint16_t>(((1 << format.exponent_bits) - 1) << format.fraction_bits);
  const double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude >= overflow_threshold(format)) return static_cast<std::uint16_t>(sign | infinity);
  int below = 0;
  int above = infinity - 1;  // the largest finite code
  if (magnitude >= decode(format, static_cast<std::uint16_t>(above))) below = above;
  while (above - below > 1) {
    const int middle = (below + above) / 2;
    (decode(format, static_cast<std::uint16_t>(middle)) <= magnitude ? below : above) = middle;
  }
  const double to_below = magnitude - decode(format, static_cast<std::uint16_t>(below));
  const double to_above = decode(format, static_cast<std::uint16_t>(above)) - magnitude;
  const bool take_above = to_above < to_below || (to_above == to_below && above % 2 == 0);
  return static_cast<std::uint16_t>(sign | (take_above ? above : below));
}

std::uint16_t hardware_f16(float value) {
  return bit_cast<std::uint16_t>(static_cast<_Float16>(value));
}

}  // namespace

TEST_CASE("Every dtype has its place in the table and its name leads back to it") {
  for (std::size_t i = 0; i < kDTypes.size(); ++i) {
    CHECK(static_cast<std::size_t>(kDTypes[i].dtype) == i);
    CHECK(dtype_from_name(kDTypes[i].name) == kDTypes[i].dtype);
    if (i > 0) CHECK(kDTypes[i].size_bytes >= kDTypes[i - 1].size_bytes);
  }
  CHECK(dtype_name(DType::bf16) == "BF16");
  CHECK(dtype_size_bytes(DType::bf16) == 2);
  CHECK(dtype_size_bytes(DType::u64) == 8);
  CHECK_FALSE(dtype_from_name("f32"));
  CHECK_FALSE(dtype_from_name(""));
  CHECK(dtype_names().find("F32, F64") != std::string::npos);
}

TEST_CASE("Each of the 65536 binary16 values widens to the same binary32 as through the compiler's own type") {
  int nans = 0;
  int wrong = 0;
  for (std::uint32_t code = 0; code < 65536; ++code) {
    const auto bits = static_cast<std::uint16_t>(code);
    const float value = f16_to_f32(bits);
    if (std::isnan(decode(kF16, bits))) {
      ++nans;
      // The compiler's conversion may quiet a NaN; ours keeps every bit.
      wrong += bits_of(value) != ((code & 0x8000u) << 16 | 0x7f800000u | (code & 0x3ffu) << 13);
      continue;
    }
    wrong += bits_of(value) != bits_of(static_cast<float>(bit_cast<_Float16>(bits)));
    wrong += !(static_cast<double>(value) == decode(kF16, bits));
    wrong += f32_to_f16(value) != bits;
  }
  CHECK(wrong == 0);
  CHECK(nans == 2 * 1023);
}

TEST_CASE("Each of the 65536 bfloat16 values widens to the number that its fields say") {
  int nans = 0;
  int wrong = 0;
  for (std::uint32_t code = 0; code < 65536; ++code) {
    const auto bits = static_cast<std::uint16_t>(code);
    const float value = bf16_to_f32(bits);
    wrong += bits_of(value) != code << 16;
    if (std::isnan(decode(kBF16, bits))) {
      ++nans;
      wrong += !std::isnan(value);
      continue;
    }
    wrong += !(static_cast<double>(value) == decode(kBF16, bits));
    wrong += f32_to_bf16(value) != bits;
  }
  CHECK(wrong == 0);
  CHECK(nans == 2 * 127);
}

TEST_CASE("Narrowing rounds to nearest and ties to even at every boundary between neighbours") {
  int wrong = 0;
  int ties_after_an_odd_code = 0;
  for (const Format format : {kF16, kBF16}) {
    const auto infinity = static_cast<std::uint16_t>(((1 << format.exponent_bits) - 1) << format.fraction_bits);
    const bool is_f16 = format.fraction_bits == kF16.fraction_bits;
    for (std::uint16_t code = 0; code < infinity; ++code) {
      // The midpoint towards the next code is a binary32 for both formats, and so are its neighbours.
      const std::uint16_t next = static_cast<std::uint16_t>(code + 1);
      const double upper =
          next == infinity ? 2 * overflow_threshold(format) - decode(format, code) : decode(format, next);
      const float midpoint = static_cast<float>((decode(format, code) + upper) / 2);
      for (const int distance_ulp : {-1, 0, 1}) {
        for (const std::uint32_t sign : {0u, 0x80000000u}) {
          const auto value_bits =
              static_cast<std::uint32_t>(static_cast<std::int64_t>(bits_of(midpoint)) + distance_ulp);
          const float value = bit_cast<float>(sign | value_bits);
          const std::uint16_t magnitude = distance_ulp < 0 ? code : distance_ulp > 0 ? next : code + code % 2;
          const std::uint16_t expected = static_cast<std::uint16_t>(magnitude | sign >> 16);
          wrong += (is_f16 ? f32_to_f16(value) : f32_to_bf16(value)) != expected;
          wrong += encode(format, value) != expected;
          if (is_f16) wrong += hardware_f16(value) != expected;
          ties_after_an_odd_code += distance_ulp == 0 && code % 2 == 1;
        }
      }
    }
  }
  CHECK(wrong == 0);
  CHECK(ties_after_an_odd_code > 30000);  // Truncation or ties-away would have been seen.
}

TEST_CASE("Narrowing agrees with an independent rounding all over the binary32 range") {
  int wrong = 0;
  int nans = 0;
  constexpr std::uint32_t kStride = 20'011;  // prime, so that all low bit patterns occur
  for (std::uint64_t pattern = 0; pattern <= 0xffffffffu; pattern += kStride) {
    const float value = bit_cast<float>(static_cast<std::uint32_t>(pattern));
    if (std::isnan(value)) {
      ++nans;
      const auto sign = static_cast<std::uint32_t>(pattern >> 16) & 0x8000u;
      const std::uint32_t f16 = f32_to_f16(value);
      const std::uint32_t bf16 = f32_to_bf16(value);
      // Quiet, with the sign and the upper payload of the original.
      wrong += f16 != (sign | 0x7e00u | ((pattern >> 13) & 0x3ffu));
      wrong += bf16 != (sign | 0x7fc0u | ((pattern >> 16) & 0x7fu));
      continue;
    }
    wrong += f32_to_f16(value) != hardware_f16(value);
    wrong += f32_to_f16(value) != encode(kF16, value);
    wrong += f32_to_bf16(value) != encode(kBF16, value);
  }
  CHECK(wrong == 0);
  CHECK(nans > 500);
}

TEST_CASE("The edges of the 16-bit formats are where the standards put them, when a program is compiled too") {
  CHECK(f16_to_f32(0x7bff) == 65504.0f);
  CHECK(f16_to_f32(0x0001) == 0x1p-24f);
  CHECK(f16_to_f32(0x0400) == 0x1p-14f);
  CHECK(f32_to_f16(65519.996f) == 0x7bff);
  CHECK(f32_to_f16(65520.0f) == 0x7c00);
  CHECK(f32_to_bf16(std::numeric_limits<float>::max()) == 0x7f80);
  CHECK(to_f32(Float16{0xc000}) == -2.0f);
  CHECK(to_f32(BFloat16{0xc000}) == -2.0f);
  CHECK(to_f32(-2.0f) == -2.0f);
  STATIC_REQUIRE(f16_to_f32(0x3555) == 0x1.554p-2f);
  STATIC_REQUIRE(f32_to_f16(1.0f / 3) == 0x3555);
  STATIC_REQUIRE(f32_to_bf16(1.0f / 3) == 0x3eab);
}
