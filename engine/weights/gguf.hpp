// GGUF files, versions 2 and 3: metadata and tensors by name, read into memory.
//
// A file is "GGUF", u32 version, u64 number of tensors, u64 number of metadata entries; the entries (a key, a type, a
// value); for each tensor its name, u32 number of dimensions, the dimensions as u64 with that of a row's length first,
// u32 kind and u64 offset; then, from the next multiple of `general.alignment` (32 unless said otherwise) on, the data.
// Offsets count from there and are multiples of the alignment. Strings are a u64 length and bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "engine/weights/block_formats.hpp"
#include "engine/weights/gguf_metadata.hpp"

namespace draftproof {

class InputFile;

// One tensor of a file. The bytes are aligned to the file's alignment and live as long as the file object.
struct GgufTensor {
  std::string name;
  TensorKind kind{};                // means nothing where `integers` says what the elements are
  std::optional<DType> integers;    // I8, I16, I32, I64: a table, no weights
  std::vector<std::int64_t> shape;  // row-major, 1 to 4 dimensions: [rows, columns]; a row is whole blocks
  std::span<const std::byte> bytes;
};

// An open file, checked completely: every tensor lies inside the file, overlaps no other one, and has a kind of
// block_formats.hpp or integers, and a size that fits.
class GgufFile {
 public:
  // Input error naming the file, the tensor or key, and what was expected.
  static GgufFile open(const std::string& path);
  // The same from memory, which must outlive the object; `path` is for messages.
  static GgufFile parse(const std::string& path, std::span<const std::byte> file);

  const std::string& path() const { return path_; }
  std::uint32_t version() const { return version_; }
  const GgufMetadata& metadata() const { return metadata_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }  // in the order of their data
  const GgufTensor* find(std::string_view name) const;                 // null: there is none

 private:
  GgufFile(std::string path, GgufMetadata metadata) : path_(std::move(path)), metadata_(std::move(metadata)) {}

  std::string path_;
  std::uint32_t version_ = 0;
  GgufMetadata metadata_;
  std::vector<GgufTensor> tensors_;
  std::vector<std::size_t> by_name_;  // indices of tensors_
  std::shared_ptr<const InputFile> file_;
};

}  // namespace draftproof
