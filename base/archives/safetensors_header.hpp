// The header of a safetensors file: what it promises, checked against itself and against the file's size.
//
// A file is an 8-byte little-endian header length, that many bytes of JSON, and the data section. The JSON is an object
// {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ..., "__metadata__": {"key": "text", ...}}
// with offsets in bytes from the start of the data section. Tensors may come in any order but must cover the data
// section exactly, without overlaps and, as the format demands and its Python package enforces, without holes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"

namespace draftproof {

inline constexpr std::uint64_t kSafetensorsHeaderBytesMax = 100'000'000;  // the format's limit
inline constexpr std::string_view kSafetensorsMetadataKey = "__metadata__";

struct SafetensorsEntry {
  std::string name;
  DType dtype{};
  std::vector<std::uint64_t> shape;
  std::uint64_t begin_byte = 0;  // in the data section
  std::uint64_t end_byte = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their data
  std::map<std::string, std::string> metadata;
  std::uint64_t data_section_begin_byte = 0;  // in the file
};

// The bytes that a tensor of this shape takes; nothing when its nonzero dimensions multiply, with the element size, to
// 2^64 or more. (Zeros are left out so that no product over some of the dimensions of an accepted shape can overflow.)
std::optional<std::uint64_t> tensor_size_bytes(DType dtype, std::span<const std::uint64_t> shape);

// "[2, 3]"; a long shape is cut short.
std::string shape_text(std::span<const std::uint64_t> shape);

// "tensor 'draft_tokens'".
std::string tensor_label(std::string_view name);

// Reads and checks the header of a whole file. `path` is for messages only. Input error naming the file, the tensor and
// what would be right; every offset of the result lies inside `file`. Takes no more stack for any nesting of the JSON.
// Stricter than the Python package where a lie could hide: a repeated key, a key that the format does not know, a
// header that does not begin with '{', and a `__metadata__` that is null are errors.
SafetensorsHeader parse_safetensors_header(const std::string& path, std::span<const std::byte> file);

}  // namespace draftproof
