// Element types of tensors, and the conversions between binary32 and the two 16-bit float formats.
//
// Widening is exact. Narrowing rounds to nearest, ties to even, and is written with integers, so that it does not
// depend on the machine's rounding mode, on flush-to-zero or on which instructions the target has.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/host_device.hpp"

namespace draftproof {

// The order is that in which the safetensors package lays out tensors (last one first): sizes never decrease along it.
enum class DType : std::uint8_t {
  boolean,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  f64,
  i64,
  u64,
};

struct DTypeInfo {
  DType dtype;
  std::string_view name;  // as in a safetensors header
  std::size_t size_bytes;
};

inline constexpr std::array<DTypeInfo, 15> kDTypes = {{
    {DType::boolean, "BOOL", 1},
    {DType::u8, "U8", 1},
    {DType::i8, "I8", 1},
    {DType::f8_e5m2, "F8_E5M2", 1},
    {DType::f8_e4m3, "F8_E4M3", 1},
    {DType::i16, "I16", 2},
    {DType::u16, "U16", 2},
    {DType::f16, "F16", 2},
    {DType::bf16, "BF16", 2},
    {DType::i32, "I32", 4},
    {DType::u32, "U32", 4},
    {DType::f32, "F32", 4},
    {DType::f64, "F64", 8},
    {DType::i64, "I64", 8},
    {DType::u64, "U64", 8},
}};

constexpr std::string_view dtype_name(DType dtype) {
  return kDTypes[static_cast<std::size_t>(dtype)].name;
}
constexpr std::size_t dtype_size_bytes(DType dtype) {
  return kDTypes[static_cast<std::size_t>(dtype)].size_bytes;
}

constexpr std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeInfo& info : kDTypes) {
    if (info.name == name) return info.dtype;
  }
  return std::nullopt;
}

// "BOOL, U8, ..., U64", for error messages.
inline std::string dtype_names() {
  std::string names;
  for (const DTypeInfo& info : kDTypes) names.append(names.empty() ? "" : ", ").append(info.name);
  return names;
}

// --- binary16 and bfloat16 <-> binary32
// --------------------------------------------------------------------------------

// Exact. A NaN keeps its sign and payload.
DRAFTPROOF_HD constexpr float bf16_to_f32(std::uint16_t bits) {
  return bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Exact. A NaN keeps its sign and payload.
DRAFTPROOF_HD constexpr float f16_to_f32(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t fraction = bits & 0x3ffu;
  if (exponent == 0x1f) return bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  if (exponent != 0) return bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  // Zero or subnormal: fraction * 2^-24. Both factors and the product are exact and none is a binary32 subnormal.
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return bit_cast<float>(sign | bit_cast<std::uint32_t>(magnitude));
}

// Round to nearest, ties to even; overflow gives infinity. A NaN is quieted and keeps its sign and upper payload.
DRAFTPROOF_HD constexpr std::uint16_t f32_to_bf16(float value) {
  const std::uint32_t bits = bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x0040u);
  // A carry out of the fraction raises the exponent, which is what rounding up must do, up to infinity.
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// Round to nearest, ties to even; from 65520 on it is infinity, up to 2^-25 it is zero. A NaN is quieted and keeps its
// sign and upper payload.
DRAFTPROOF_HD constexpr std::uint16_t f32_to_f16(float value) {
  const std::uint32_t bits = bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude >= 0x38800000u) {  // at least 2^-14, a normal binary16
    const std::uint32_t rebiased = magnitude - (112u << 23);
    return static_cast<std::uint16_t>(sign | ((rebiased + 0xfffu + ((rebiased >> 13) & 1u)) >> 13));
  }
  if (magnitude < 0x33000000u) return static_cast<std::uint16_t>(sign);  // below 2^-25
  // A subnormal counts units of 2^-24: the significand, which counts 2^(exponent - 150), is shifted right with
  // rounding.
  const std::uint32_t shift = 126u - (magnitude >> 23);  // 14 to 24
  const std::uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
  const std::uint32_t quotient = significand >> shift;
  const std::uint32_t remainder = significand & ((1u << shift) - 1u);
  const std::uint32_t half = 1u << (shift - 1u);
  const bool round_up = remainder > half || (remainder == half && (quotient & 1u) != 0);
  return static_cast<std::uint16_t>(sign | (quotient + (round_up ? 1u : 0u)));
}

// The 16-bit formats as types of their own, so that a template over the element type of a row cannot take one for the
// other or for an integer.
struct Float16 {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

// The dtype whose elements are objects of type T.
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<std::uint8_t> : std::integral_constant<DType, DType::u8> {};
template <>
struct DTypeOf<std::int8_t> : std::integral_constant<DType, DType::i8> {};
template <>
struct DTypeOf<std::int16_t> : std::integral_constant<DType, DType::i16> {};
template <>
struct DTypeOf<std::uint16_t> : std::integral_constant<DType, DType::u16> {};
template <>
struct DTypeOf<Float16> : std::integral_constant<DType, DType::f16> {};
template <>
struct DTypeOf<BFloat16> : std::integral_constant<DType, DType::bf16> {};
template <>
struct DTypeOf<std::int32_t> : std::integral_constant<DType, DType::i32> {};
template <>
struct DTypeOf<std::uint32_t> : std::integral_constant<DType, DType::u32> {};
template <>
struct DTypeOf<float> : std::integral_constant<DType, DType::f32> {};
template <>
struct DTypeOf<double> : std::integral_constant<DType, DType::f64> {};
template <>
struct DTypeOf<std::int64_t> : std::integral_constant<DType, DType::i64> {};
template <>
struct DTypeOf<std::uint64_t> : std::integral_constant<DType, DType::u64> {};

DRAFTPROOF_HD constexpr float to_f32(float value) {
  return value;
}
DRAFTPROOF_HD constexpr float to_f32(Float16 value) {
  return f16_to_f32(value.bits);
}
DRAFTPROOF_HD constexpr float to_f32(BFloat16 value) {
  return bf16_to_f32(value.bits);
}

}  // namespace draftproof
