#include "engine/weights/gguf_metadata.hpp"

#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "base/files/input_file.hpp"
#include "base/printable.hpp"
#include "engine/weights/unaligned.hpp"

namespace draftproof {
namespace {

static_assert(std::endian::native == std::endian::little, "values are read in place; the format is little-endian");

constexpr int kNestingMax = 4;  // of arrays in arrays; the format sets no limit and no known file nests at all

// 0 for what has no size of its own.
std::uint64_t size_bytes(GgufType type) {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean:
      return 1;
    case GgufType::u16:
    case GgufType::i16:
      return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32:
      return 4;
    case GgufType::u64:
    case GgufType::i64:
    case GgufType::f64:
      return 8;
    case GgufType::string:
    case GgufType::array:
      return 0;
  }
  return 0;
}

}  // namespace

std::string_view name_of(GgufType type) {
  static constexpr std::string_view kNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                "bool", "string", "array", "u64", "i64", "f64"};
  return kNames[static_cast<std::size_t>(type)];
}

std::span<const std::byte> GgufReader::take(std::uint64_t bytes, const std::string& what) {
  if (bytes > bytes_left())
    throw input_error(path_, "ends inside " + what + ": it takes " + bytes_text(bytes) + " from byte " +
                                 std::to_string(position_) + " on and the file has " + bytes_text(file_.size()) +
                                 "; is it truncated?");
  const auto taken = file_.subspan(position_, bytes);
  position_ += bytes;
  return taken;
}

std::uint32_t GgufReader::u32(const std::string& what) {
  return load_unaligned<std::uint32_t>(take(4, what).data());
}

std::uint64_t GgufReader::u64(const std::string& what) {
  return load_unaligned<std::uint64_t>(take(8, what).data());
}

std::string_view GgufReader::string(const std::string& what) {
  const std::uint64_t length = u64("the length of " + what);
  const auto bytes = take(length, what);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

GgufType GgufReader::type(const std::string& what) {
  const std::uint32_t number = u32("the type of " + what);
  if (number > static_cast<std::uint32_t>(GgufType::f64))
    throw input_error(path_, what + " has type " + std::to_string(number) + "; expected 0 (u8) to 12 (f64)");
  return static_cast<GgufType>(number);
}

GgufValue GgufReader::value(const std::string& what) {
  GgufValue value;
  value.type = value.element = type(what);
  if (value.type == GgufType::array) {
    value.element = type("the elements of " + what);
    value.count = u64("the length of " + what);
  }
  const std::uint64_t begin = position_;
  skip_elements(value.element, value.count, what, 1);
  value.bytes = file_.subspan(begin, position_ - begin);
  return value;
}

// Every string and nested array takes at least the eight bytes of its length, so a count that the file cannot hold ends
// at the end of the file, after at most as many steps as it has bytes.
void GgufReader::skip_elements(GgufType element, std::uint64_t count, const std::string& what, int depth) {
  if (const std::uint64_t size = size_bytes(element); size > 0) {
    if (count > bytes_left() / size)
      throw input_error(path_, what + " has " + std::to_string(count) + " elements of " +
                                   std::string(name_of(element)) + ", more than the " + bytes_text(bytes_left()) +
                                   " that are left of the file hold");
    const auto bytes = take(count * size, what);
    if (element != GgufType::boolean) return;
    for (const std::byte byte : bytes)
      if (byte > std::byte{1})
        throw input_error(path_,
                          what + " holds the bool " + std::to_string(std::to_integer<int>(byte)) + "; expected 0 or 1");
    return;
  }
  if (element == GgufType::array && depth > kNestingMax)
    throw input_error(path_, what + " nests arrays deeper than " + std::to_string(kNestingMax));
  for (std::uint64_t i = 0; i < count; ++i) {
    if (element == GgufType::string) {
      string(what);
    } else {
      const GgufType inner = type("the elements of " + what);
      skip_elements(inner, u64("the length of " + what), what, depth + 1);
    }
  }
}

void GgufMetadata::add(std::string_view key, const GgufValue& value) {
  if (!values_.emplace(key, value).second)
    throw input_error(path_, "has the key " + in_quotes(key) + " twice; each must be there once");
}

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

const GgufValue* GgufMetadata::find_array(std::string_view key) const {
  const GgufValue* const value = find(key);
  if (value != nullptr && value->type != GgufType::array) fail(key, *value, "an array");
  return value;
}

void GgufMetadata::fail(std::string_view key, const GgufValue& value, const std::string& expected) const {
  std::string found(name_of(value.type));
  if (value.type == GgufType::array) found += " of " + std::string(name_of(value.element));
  throw input_error(path_, "metadata " + in_quotes(key) + " is of type " + found + "; expected " + expected);
}

std::optional<std::int64_t> GgufMetadata::integer_at(GgufType type, const std::byte* at) const {
  switch (type) {
    case GgufType::u8:
      return load_unaligned<std::uint8_t>(at);
    case GgufType::i8:
      return load_unaligned<std::int8_t>(at);
    case GgufType::u16:
      return load_unaligned<std::uint16_t>(at);
    case GgufType::i16:
      return load_unaligned<std::int16_t>(at);
    case GgufType::u32:
      return load_unaligned<std::uint32_t>(at);
    case GgufType::i32:
      return load_unaligned<std::int32_t>(at);
    case GgufType::i64:
      return load_unaligned<std::int64_t>(at);
    case GgufType::u64: {
      const auto number = load_unaligned<std::uint64_t>(at);
      if (number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        return static_cast<std::int64_t>(number);
      return std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

std::optional<std::string_view> GgufMetadata::string(std::string_view key) const {
  const GgufValue* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::string) fail(key, *value, "a string");
  return std::string_view(reinterpret_cast<const char*>(value->bytes.data()) + 8, value->bytes.size() - 8);
}

std::optional<std::int64_t> GgufMetadata::integer(std::string_view key) const {
  const GgufValue* const value = find(key);
  if (value == nullptr) return std::nullopt;
  const std::optional<std::int64_t> number = integer_at(value->type, value->bytes.data());
  if (!number) fail(key, *value, "an integer below 2^63");
  return number;
}

std::optional<double> GgufMetadata::number(std::string_view key) const {
  const GgufValue* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type == GgufType::f32) return static_cast<double>(load_unaligned<float>(value->bytes.data()));
  if (value->type == GgufType::f64) return load_unaligned<double>(value->bytes.data());
  const std::optional<std::int64_t> number = integer_at(value->type, value->bytes.data());
  if (!number) fail(key, *value, "a number");
  return static_cast<double>(*number);
}

std::optional<bool> GgufMetadata::boolean(std::string_view key) const {
  const GgufValue* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::boolean) fail(key, *value, "a bool");
  return value->bytes.front() != std::byte{0};
}

std::optional<std::vector<std::string_view>> GgufMetadata::strings(std::string_view key) const {
  const GgufValue* const value = find_array(key);
  if (value == nullptr) return std::nullopt;
  if (value->element != GgufType::string) fail(key, *value, "an array of string");
  std::vector<std::string_view> strings;
  strings.reserve(value->count);
  const std::byte* at = value->bytes.data();
  for (std::uint64_t i = 0; i < value->count; ++i) {
    const auto length = load_unaligned<std::uint64_t>(at);
    strings.emplace_back(reinterpret_cast<const char*>(at) + 8, length);
    at += 8 + length;
  }
  return strings;
}

std::optional<std::vector<std::int64_t>> GgufMetadata::integers(std::string_view key) const {
  const GgufValue* const value = find_array(key);
  if (value == nullptr) return std::nullopt;
  const std::uint64_t size = size_bytes(value->element);
  std::vector<std::int64_t> integers;
  for (std::uint64_t i = 0; i < value->count; ++i) {
    const auto number = integer_at(value->element, value->bytes.data() + i * size);
    if (!number) fail(key, *value, "an array of integers below 2^63");
    integers.push_back(*number);
  }
  return integers;
}

std::optional<std::vector<float>> GgufMetadata::floats(std::string_view key) const {
  const GgufValue* const value = find_array(key);
  if (value == nullptr) return std::nullopt;
  if (value->element != GgufType::f32) fail(key, *value, "an array of f32");
  std::vector<float> floats(value->count);
  if (!floats.empty()) std::memcpy(floats.data(), value->bytes.data(), value->bytes.size());
  return floats;
}

}  // namespace draftproof
