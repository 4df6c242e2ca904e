// The metadata of a GGUF file: keys and typed values, kept as the bytes that they are and decoded when they are asked
// for, since a vocabulary is some hundred thousand strings of which many readers want none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace draftproof {

// The numbers are those of the format.
enum class GgufType : std::uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};

std::string_view name_of(GgufType type);

// One value, or the elements of one array, inside the file; every length in it has been checked.
struct GgufValue {
  GgufType type{};
  GgufType element{};       // of an array
  std::uint64_t count = 1;  // elements of an array
  std::span<const std::byte> bytes;
};

// Reads little-endian values one after the other. Every error names the file, the place and what was to be read.
class GgufReader {
 public:
  GgufReader(std::string path, std::span<const std::byte> file) : path_(std::move(path)), file_(file) {}

  const std::string& path() const { return path_; }
  std::uint64_t position() const { return position_; }
  std::uint64_t bytes_left() const { return file_.size() - position_; }

  // `what` for the message: "the number of tensors".
  std::uint32_t u32(const std::string& what);
  std::uint64_t u64(const std::string& what);
  std::string_view string(const std::string& what);
  GgufValue value(const std::string& what);

 private:
  std::span<const std::byte> take(std::uint64_t bytes, const std::string& what);
  GgufType type(const std::string& what);
  void skip_elements(GgufType element, std::uint64_t count, const std::string& what, int depth);

  std::string path_;
  std::span<const std::byte> file_;
  std::uint64_t position_ = 0;
};

// Metadata of a file. The getters give nothing where the key is missing; where it is there with another type than asked
// for, or a number that does not fit, they throw an input error naming file and key.
class GgufMetadata {
 public:
  explicit GgufMetadata(std::string path) : path_(std::move(path)) {}
  // Input error: the key is there already.
  void add(std::string_view key, const GgufValue& value);

  const std::map<std::string, GgufValue, std::less<>>& values() const { return values_; }
  bool contains(std::string_view key) const { return values_.contains(key); }

  std::optional<std::string_view> string(std::string_view key) const;
  std::optional<std::int64_t> integer(std::string_view key) const;  // of any integer type
  std::optional<double> number(std::string_view key) const;         // of any type of numbers
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::vector<std::string_view>> strings(std::string_view key) const;  // valid as long as the file
  std::optional<std::vector<std::int64_t>> integers(std::string_view key) const;
  std::optional<std::vector<float>> floats(std::string_view key) const;

 private:
  const GgufValue* find(std::string_view key) const;
  const GgufValue* find_array(std::string_view key) const;
  [[noreturn]] void fail(std::string_view key, const GgufValue& value, const std::string& expected) const;
  std::optional<std::int64_t> integer_at(GgufType type, const std::byte* at) const;

  std::string path_;
  std::map<std::string, GgufValue, std::less<>> values_;
};

}  // namespace draftproof
