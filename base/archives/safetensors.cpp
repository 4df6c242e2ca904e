#include "base/archives/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "base/archives/npz.hpp"
#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "base/files/input_file.hpp"
#include "base/printable.hpp"

namespace draftproof {

static_assert(std::endian::native == std::endian::little, "elements are read in place; the format is little-endian");

namespace {

// The names of a file for a message; a model's file may have hundreds.
std::string name_list(const std::vector<SafetensorsEntry>& entries) {
  constexpr std::size_t kNamesShown = 32;
  std::string list;
  for (std::size_t i = 0; i < entries.size() && i < kNamesShown; ++i) {
    list.append(i == 0 ? "" : ", ").append(in_quotes(entries[i].name));
  }
  if (entries.size() > kNamesShown) list += ", ...";
  return entries.empty() ? "it has no tensors" : "it has " + list;
}

// The text in JSON's quotes. nlohmann's exception for text that is not UTF-8 is turned into ours by the caller.
std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump();
}

}  // namespace

void TensorView::fail_dtype(DType expected) const {
  throw input_error(where,
                    "has dtype " + std::string(dtype_name(dtype)) + "; expected " + std::string(dtype_name(expected)));
}

SafetensorsFile SafetensorsFile::open(const std::string& path) {
  SafetensorsFile result;
  result.path_ = path;
  result.file_ = std::make_shared<const InputFile>(path);
  if (is_zip(result.file_->bytes()))
    result.file_ = std::make_shared<const InputFile>(safetensors_of_npz(path, result.file_->bytes()));
  result.header_ = parse_safetensors_header(path, result.file_->bytes());
  return result;
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  for (const SafetensorsEntry& entry : header_.entries) names.push_back(entry.name);
  return names;
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  const auto found = std::find_if(header_.entries.begin(), header_.entries.end(),
                                  [&](const SafetensorsEntry& entry) { return entry.name == name; });
  return found == header_.entries.end() ? nullptr : &*found;
}

bool SafetensorsFile::contains(std::string_view name) const {
  return find(name) != nullptr;
}

TensorView SafetensorsFile::tensor(std::string_view name) const {
  const SafetensorsEntry* const entry = find(name);
  if (entry == nullptr) {
    throw input_error(path_ + ": " + tensor_label(name), "is not in the file; " + name_list(header_.entries));
  }
  TensorView view;
  view.name = entry->name;
  view.dtype = entry->dtype;
  view.shape = entry->shape;
  view.where = path_ + ": " + tensor_label(name);
  view.bytes =
      bytes().subspan(header_.data_section_begin_byte + entry->begin_byte, entry->end_byte - entry->begin_byte);
  view.owner = file_;
  if (reinterpret_cast<std::uintptr_t>(view.bytes.data()) % dtype_size_bytes(entry->dtype) != 0) {
    // Whole 64-bit words are aligned for every dtype.
    const auto words = std::make_shared<std::vector<std::uint64_t>>(view.bytes.size() / sizeof(std::uint64_t) + 1);
    std::memcpy(words->data(), view.bytes.data(), view.bytes.size());
    view.bytes = std::as_bytes(std::span(*words)).first(view.bytes.size());
    view.owner = words;
  }
  return view;
}

std::span<const std::byte> SafetensorsFile::bytes() const {
  return file_->bytes();
}

void SafetensorsWriter::add(const std::string& name, DType dtype, std::vector<std::uint64_t> shape,
                            std::span<const std::byte> bytes) {
  if (name == kSafetensorsMetadataKey) throw input_error(tensor_label(name), "is a reserved name; take another");
  if (tensors_.contains(name)) throw input_error(tensor_label(name), "is already there; each name can be written once");
  const std::optional<std::uint64_t> size_bytes = tensor_size_bytes(dtype, shape);
  if (size_bytes != bytes.size()) {
    throw input_error(tensor_label(name), "has " + std::to_string(bytes.size()) + " bytes of data but shape " +
                                              shape_text(shape) + " of " + std::string(dtype_name(dtype)) + " takes " +
                                              (size_bytes ? std::to_string(*size_bytes) : "2^64 or more"));
  }
  tensors_.emplace(name, Tensor{dtype, std::move(shape), bytes});
}

void SafetensorsWriter::write(const std::string& path) const {
  // The map is sorted by name, so a stable sort leaves names as the second criterion. Dtypes in descending order are in
  // descending size, which aligns every tensor.
  using Named = std::map<std::string, Tensor>::value_type;
  std::vector<const Named*> in_file_order;
  for (const Named& named : tensors_) in_file_order.push_back(&named);
  std::stable_sort(in_file_order.begin(), in_file_order.end(),
                   [](const Named* a, const Named* b) { return a->second.dtype > b->second.dtype; });

  std::string header;
  std::uint64_t offset_bytes = 0;
  try {
    if (!metadata_.empty())
      header += json_text(std::string(kSafetensorsMetadataKey)) + ":" + nlohmann::json(metadata_).dump();
    for (const Named* const named : in_file_order) {
      const auto& [name, tensor] = *named;
      const std::uint64_t end_bytes = offset_bytes + tensor.bytes.size();
      header.append(header.empty() ? "" : ",").append(json_text(name));
      header.append(":{\"dtype\":").append(json_text(std::string(dtype_name(tensor.dtype))));
      header.append(",\"shape\":").append(nlohmann::json(tensor.shape).dump());
      header.append(",\"data_offsets\":").append(nlohmann::json({offset_bytes, end_bytes}).dump()).append("}");
      offset_bytes = end_bytes;
    }
  } catch (const nlohmann::json::exception&) {
    throw input_error(path, "a tensor name or a metadata text is not UTF-8; the format allows nothing else");
  }
  header = "{" + header + "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  if (header.size() > kSafetensorsHeaderBytesMax) {
    throw input_error(path, "its header would take " + std::to_string(header.size()) + " bytes; the format allows " +
                                std::to_string(kSafetensorsHeaderBytesMax));
  }

  AtomicFile file(path);
  const auto header_size_bytes = static_cast<std::uint64_t>(header.size());
  file.stream().write(reinterpret_cast<const char*>(&header_size_bytes), sizeof header_size_bytes);
  file.stream().write(header.data(), static_cast<std::streamsize>(header.size()));
  for (const Named* const named : in_file_order) {
    const std::span<const std::byte> bytes = named->second.bytes;
    file.stream().write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  file.commit();
}

}  // namespace draftproof
