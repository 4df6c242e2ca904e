#include "engine/weights/gguf.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "base/archives/safetensors_header.hpp"
#include "base/error.hpp"
#include "base/files/input_file.hpp"
#include "base/printable.hpp"

namespace draftproof {
namespace {

constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint64_t kAlignmentMax = std::uint64_t{1} << 20;
constexpr std::uint32_t kDimensionsMax = 4;

struct FileKind {
  std::uint32_t number;
  std::string_view name;
};
// Those that can be decoded have a name of block_formats.hpp; the others are named for the message.
constexpr FileKind kFileKinds[] = {
    {0, "F32"},      {1, "F16"},     {2, "Q4_0"},     {3, "Q4_1"},   {6, "Q5_0"},    {7, "Q5_1"},   {8, "Q8_0"},
    {9, "Q8_1"},     {10, "Q2_K"},   {11, "Q3_K"},    {12, "Q4_K"},  {13, "Q5_K"},   {14, "Q6_K"},  {15, "Q8_K"},
    {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"},
    {23, "IQ4_XS"},  {24, "I8"},     {25, "I16"},     {26, "I32"},   {27, "I64"},    {28, "F64"},   {29, "IQ1_M"},
    {30, "BF16"},    {34, "TQ1_0"},  {35, "TQ2_0"},   {39, "MXFP4"},
};

std::string readable_kinds() {
  std::string list;
  for (const TensorKindInfo& info : kTensorKinds)
    if (info.kind < TensorKind::b2) list.append(list.empty() ? "" : ", ").append(info.name);
  return list;
}

// Sets the kind of a tensor, or what its integers are.
void read_kind(std::uint32_t number, const std::string& where, GgufTensor& tensor) {
  std::string found = "the unknown kind " + std::to_string(number);
  for (const FileKind& in_file : kFileKinds) {
    if (in_file.number != number) continue;
    for (const TensorKindInfo& info : kTensorKinds)
      if (info.name == in_file.name) {
        tensor.kind = info.kind;
        return;
      }
    if (in_file.name.starts_with('I') && !in_file.name.starts_with("IQ")) {
      tensor.integers = dtype_from_name(in_file.name);
      return;
    }
    found = "kind " + std::string(in_file.name);
  }
  throw input_error(where, "is of " + found + "; expected one of " + readable_kinds());
}

std::uint32_t read_version(GgufReader& reader) {
  constexpr std::uint64_t kHeaderBytes = 24;
  if (reader.bytes_left() < kHeaderBytes)
    throw input_error(reader.path(), "has " + bytes_text(reader.bytes_left()) +
                                         "; a GGUF file begins with a header of " + std::to_string(kHeaderBytes));
  if (reader.u32("the magic") != kMagic)
    throw input_error(reader.path(), "does not begin with 'GGUF'; expected a GGUF file");
  const std::uint32_t version = reader.u32("the version");
  if (version == 2 || version == 3) return version;
  if (version << 16 == 0 && version != 0)
    throw input_error(reader.path(), "is a big-endian GGUF file; expected a little-endian one");
  throw input_error(reader.path(), "is of GGUF version " + std::to_string(version) + "; expected 2 or 3");
}

std::uint64_t read_alignment(const std::string& path, const GgufMetadata& metadata) {
  const std::int64_t alignment = metadata.integer("general.alignment").value_or(kDefaultAlignment);
  const auto number = static_cast<std::uint64_t>(alignment);
  if (alignment < 8 || number > kAlignmentMax || !std::has_single_bit(number))
    throw input_error(path, "metadata 'general.alignment' is " + std::to_string(alignment) +
                                "; expected a power of two from 8 to " + std::to_string(kAlignmentMax));
  return number;
}

struct Entry {
  GgufTensor tensor;
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
};

Entry read_entry(GgufReader& reader, std::uint64_t index) {
  const std::string place = "tensor " + std::to_string(index);
  Entry entry;
  entry.tensor.name = reader.string("the name of " + place);
  const std::string label = tensor_label(entry.tensor.name);
  const std::string where = reader.path() + ": " + label;
  const std::uint32_t dimensions = reader.u32("the number of dimensions of " + label);
  if (dimensions == 0 || dimensions > kDimensionsMax)
    throw input_error(where, "has " + std::to_string(dimensions) + " dimensions; expected 1 to 4");
  std::uint64_t values = 1;
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    const std::uint64_t length = reader.u64("the shape of " + label);
    // Below 2^56 values no number of bytes overflows.
    if (length == 0 || length > (std::uint64_t{1} << 56) / values)
      throw input_error(where, "dimension " + std::to_string(i) + " of its shape is " + std::to_string(length) +
                                   "; expected dimensions from 1 whose product is at most 2^56");
    values *= length;
    entry.tensor.shape.insert(entry.tensor.shape.begin(), static_cast<std::int64_t>(length));
  }
  read_kind(reader.u32("the kind of " + label), where, entry.tensor);
  if (entry.tensor.integers) {
    entry.size_bytes = values * dtype_size_bytes(*entry.tensor.integers);
    entry.offset = reader.u64("the offset of " + label);
    return entry;
  }
  const TensorKindInfo& info = info_of(entry.tensor.kind);
  if (entry.tensor.shape.back() % info.block_len != 0)
    throw input_error(where, "has rows of " + std::to_string(entry.tensor.shape.back()) +
                                 " values; expected a multiple of " + std::to_string(info.block_len) +
                                 ", the block length of " + std::string(info.name));
  entry.size_bytes = static_cast<std::uint64_t>(encoded_bytes(entry.tensor.kind, static_cast<std::int64_t>(values)));
  entry.offset = reader.u64("the offset of " + label);
  return entry;
}

// Gives the tensors their bytes; `entries` are sorted by offset.
void place(const std::string& path, std::span<const std::byte> data, std::uint64_t alignment,
           std::vector<Entry>& entries) {
  const Entry* previous = nullptr;
  for (Entry& entry : entries) {
    const std::string where = path + ": " + tensor_label(entry.tensor.name);
    const std::string begins = "begins at byte " + std::to_string(entry.offset) + " of the data";
    if (entry.offset % alignment != 0)
      throw input_error(where, begins + "; expected a multiple of the alignment " + std::to_string(alignment));
    if (entry.offset > data.size() || entry.size_bytes > data.size() - entry.offset)
      throw input_error(where, begins + " and takes " + bytes_text(entry.size_bytes) + ", but the data has " +
                                   bytes_text(data.size()) + "; is the file truncated?");
    if (previous != nullptr && entry.offset < previous->offset + previous->size_bytes)
      throw input_error(where, begins + " and overlaps " + tensor_label(previous->tensor.name) +
                                   ", which ends at byte " + std::to_string(previous->offset + previous->size_bytes));
    entry.tensor.bytes = data.subspan(entry.offset, entry.size_bytes);
    previous = &entry;
  }
}

// A tensor's entry takes at least this many bytes, and a metadata entry at least that many.
constexpr std::uint64_t kTensorEntryBytesMin = 8 + 4 + 8 + 4 + 8;
constexpr std::uint64_t kMetadataEntryBytesMin = 8 + 4 + 1;

std::uint64_t read_count(GgufReader& reader, const std::string& what, std::uint64_t entry_bytes_min) {
  const std::uint64_t count = reader.u64("the number of " + what);
  if (count > reader.bytes_left() / entry_bytes_min)
    throw input_error(reader.path(), "is said to have " + std::to_string(count) + " " + what + ", more than its " +
                                         bytes_text(reader.bytes_left()) + " can hold");
  return count;
}

}  // namespace

GgufFile GgufFile::open(const std::string& path) {
  const auto file = std::make_shared<const InputFile>(path);
  GgufFile result = parse(path, file->bytes());
  result.file_ = file;
  return result;
}

GgufFile GgufFile::parse(const std::string& path, std::span<const std::byte> file) {
  GgufReader reader(path, file);
  GgufFile result(path, GgufMetadata(path));
  result.version_ = read_version(reader);
  const std::uint64_t num_tensors = read_count(reader, "tensors", kTensorEntryBytesMin);
  const std::uint64_t num_metadata = read_count(reader, "metadata entries", kMetadataEntryBytesMin);
  for (std::uint64_t i = 0; i < num_metadata; ++i) {
    const std::string_view key = reader.string("the key of metadata entry " + std::to_string(i));
    result.metadata_.add(key, reader.value("metadata " + in_quotes(key)));
  }
  std::vector<Entry> entries;
  for (std::uint64_t i = 0; i < num_tensors; ++i) entries.push_back(read_entry(reader, i));

  const std::uint64_t alignment = read_alignment(path, result.metadata_);
  const std::uint64_t data_begin = (reader.position() + alignment - 1) / alignment * alignment;
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.offset < b.offset; });
  place(path, file.subspan(std::min<std::uint64_t>(data_begin, file.size())), alignment, entries);

  for (Entry& entry : entries) result.tensors_.push_back(std::move(entry.tensor));
  for (std::size_t i = 0; i < result.tensors_.size(); ++i) result.by_name_.push_back(i);
  const auto name = [&](std::size_t i) -> const std::string& { return result.tensors_[i].name; };
  std::sort(result.by_name_.begin(), result.by_name_.end(),
            [&](std::size_t a, std::size_t b) { return name(a) < name(b); });
  const auto twice = std::adjacent_find(result.by_name_.begin(), result.by_name_.end(),
                                        [&](std::size_t a, std::size_t b) { return name(a) == name(b); });
  if (twice != result.by_name_.end())
    throw input_error(path + ": " + tensor_label(name(*twice)), "is there twice; each name must be there once");
  return result;
}

const GgufTensor* GgufFile::find(std::string_view name) const {
  const auto found =
      std::lower_bound(by_name_.begin(), by_name_.end(), name,
                       [&](std::size_t i, std::string_view wanted) { return tensors_[i].name < wanted; });
  return found == by_name_.end() || tensors_[*found].name != name ? nullptr : &tensors_[*found];
}

}  // namespace draftproof
