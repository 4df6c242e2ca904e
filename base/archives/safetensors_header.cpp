#include "base/archives/safetensors_header.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"

namespace draftproof {
namespace {

constexpr std::size_t kLengthFieldBytes = 8;
constexpr std::size_t kShapeDimensionsShown = 8;

// Takes the parser's events one at a time and knows at each what the format allows next, so that nesting deeper than
// the format's three levels, and every repeated key, is refused on sight. Returns true always and throws instead.
class HeaderEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderEvents(const std::string& path) : path_(path) {}

  SafetensorsHeader header;

  bool start_object(std::size_t) override {
    if (place_ == Place::outside) {
      place_ = Place::header;
    } else if (place_ == Place::header && key_ == kSafetensorsMetadataKey) {
      place_ = Place::metadata;
    } else if (place_ == Place::header) {
      place_ = Place::tensor;
      header.entries.emplace_back().name = key_;
      fields_seen_.clear();
    } else {
      refuse("an object");
    }
    return true;
  }

  bool key(std::string& key) override {
    switch (place_) {
      case Place::header:
        if (!header_keys_seen_.insert(key).second) {
          throw input_error(path_, "the header has the key " + in_quotes(key) + " twice; each name must be there once");
        }
        break;
      case Place::metadata:
        if (header.metadata.contains(key)) {
          throw input_error(path_, "__metadata__ has the key " + in_quotes(key) + " twice; each must be there once");
        }
        break;
      default:
        if (key != "dtype" && key != "shape" && key != "data_offsets") {
          throw tensor_error("has the unknown field " + in_quotes(key) + "; dtype, shape and data_offsets are allowed");
        }
        if (!fields_seen_.insert(key).second) {
          throw tensor_error("has the field " + in_quotes(key) + " twice; each must be there once");
        }
    }
    key_ = std::move(key);
    return true;
  }

  bool end_object() override {
    if (place_ == Place::tensor) {
      finish_tensor();
    }
    place_ = place_ == Place::header ? Place::outside : Place::header;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::tensor || key_ == "dtype") refuse("an array");
    place_ = key_ == "shape" ? Place::shape : Place::offsets;
    return true;
  }

  bool end_array() override {
    place_ = Place::tensor;
    return true;
  }

  bool string(std::string& text) override {
    if (place_ == Place::metadata) {
      header.metadata.emplace(key_, std::move(text));
    } else if (place_ == Place::tensor && key_ == "dtype") {
      const std::optional<DType> dtype = dtype_from_name(text);
      if (!dtype) throw tensor_error("has the unknown dtype " + in_quotes(text) + "; known are " + dtype_names());
      header.entries.back().dtype = *dtype;
    } else {
      refuse("the string " + in_quotes(text));
    }
    return true;
  }

  bool number_unsigned(std::uint64_t number) override {
    if (place_ == Place::shape) {
      header.entries.back().shape.push_back(number);
    } else if (place_ == Place::offsets) {
      if (offsets_.size() == 2) throw tensor_error("has more than two data_offsets; expected [begin, end]");
      offsets_.push_back(number);
    } else {
      refuse("the number " + std::to_string(number));
    }
    return true;
  }

  bool number_integer(std::int64_t number) override { refuse("the negative number " + std::to_string(number)); }
  // Also an integer of 2^64 or more comes here.
  bool number_float(double, const std::string& text) override { refuse("the number " + in_quotes(text)); }
  bool null() override { refuse("null"); }
  bool boolean(bool value) override { refuse(value ? "true" : "false"); }
  bool binary(nlohmann::json::binary_t&) override { refuse("binary data"); }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& exception) override {
    std::string reason = printable_line(exception.what());  // it may repeat bytes of the header
    constexpr std::size_t kReasonBytesMax = 200;
    if (reason.size() > kReasonBytesMax) reason = printable_line(reason.substr(0, kReasonBytesMax)) + "...";
    throw input_error(path_,
                      "the header is not JSON in UTF-8, at its byte " + std::to_string(position) + ": " + reason);
  }

 private:
  enum class Place { outside, header, metadata, tensor, shape, offsets };

  Error tensor_error(const std::string& what) const {
    return input_error(path_ + ": " + tensor_label(header.entries.back().name), what);
  }

  [[noreturn]] void refuse(const std::string& found) const {
    switch (place_) {
      case Place::outside:
        throw input_error(path_, "the header is " + found + "; expected a JSON object");
      case Place::header:
        throw input_error(path_, "the header's " + in_quotes(key_) + " is " + found + "; expected an object");
      case Place::metadata:
        throw input_error(path_,
                          "the value of " + in_quotes(key_) + " in __metadata__ is " + found + "; expected a string");
      case Place::tensor:
        throw tensor_error(
            "its " + key_ + " is " + found +
            (key_ == "dtype" ? "; expected a string such as \"F32\"" : "; expected an array of non-negative integers"));
      default:
        throw tensor_error(std::string("its ") + (place_ == Place::shape ? "shape" : "data_offsets") + " holds " +
                           found + "; expected non-negative integers below 2^64");
    }
  }

  void finish_tensor() {
    for (const char* const field : {"dtype", "shape", "data_offsets"}) {
      if (!fields_seen_.contains(field)) throw tensor_error(std::string("lacks the field ") + field);
    }
    if (offsets_.size() != 2) {
      throw tensor_error("has " + std::to_string(offsets_.size()) + " data_offsets; expected [begin, end]");
    }
    header.entries.back().begin_byte = offsets_[0];
    header.entries.back().end_byte = offsets_[1];
    offsets_.clear();
  }

  const std::string& path_;
  Place place_ = Place::outside;
  std::string key_;  // the latest
  std::set<std::string> header_keys_seen_;
  std::set<std::string> fields_seen_;
  std::vector<std::uint64_t> offsets_;
};

void check_size(const std::string& path, const SafetensorsEntry& entry, std::uint64_t data_section_bytes) {
  const std::string where = path + ": " + tensor_label(entry.name);
  const std::optional<std::uint64_t> size_bytes = tensor_size_bytes(entry.dtype, entry.shape);
  const std::string shape_and_dtype =
      "shape " + shape_text(entry.shape) + " of " + std::string(dtype_name(entry.dtype));
  if (!size_bytes) throw input_error(where, shape_and_dtype + " overflows 64 bits; no file holds that much");
  const std::string range = "bytes " + std::to_string(entry.begin_byte) + " to " + std::to_string(entry.end_byte);
  if (entry.begin_byte > entry.end_byte) {
    throw input_error(where, "its data_offsets say " + range + "; the end must not lie before the begin");
  }
  if (entry.end_byte > data_section_bytes) {
    throw input_error(where, "its data_offsets say " + range + " but the data section has " +
                                 std::to_string(data_section_bytes) + " bytes; is the file truncated?");
  }
  if (entry.end_byte - entry.begin_byte != *size_bytes) {
    throw input_error(where, "its data_offsets say " + range + ", which is " +
                                 std::to_string(entry.end_byte - entry.begin_byte) + " bytes, but " + shape_and_dtype +
                                 " takes " + std::to_string(*size_bytes));
  }
}

// `entries` are sorted by their place in the data section.
void check_coverage(const std::string& path, const std::vector<SafetensorsEntry>& entries,
                    std::uint64_t data_section_bytes) {
  std::uint64_t covered_bytes = 0;
  const SafetensorsEntry* previous = nullptr;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin_byte < covered_bytes) {
      throw input_error(path + ": " + tensor_label(entry.name),
                        "begins at byte " + std::to_string(entry.begin_byte) + " and overlaps " +
                            tensor_label(previous->name) + ", which ends at byte " + std::to_string(covered_bytes));
    }
    if (entry.begin_byte > covered_bytes) {
      throw input_error(path + ": " + tensor_label(entry.name), "begins at byte " + std::to_string(entry.begin_byte) +
                                                                    "; expected byte " + std::to_string(covered_bytes) +
                                                                    ", as the format allows no hole");
    }
    covered_bytes = entry.end_byte;
    previous = &entry;
  }
  if (covered_bytes != data_section_bytes) {
    throw input_error(path, "the data section has " + std::to_string(data_section_bytes) +
                                " bytes but the tensors cover " + std::to_string(covered_bytes) +
                                "; the format allows no bytes after the last tensor");
  }
}

std::uint64_t header_size_bytes(const std::string& path, std::span<const std::byte> file) {
  if (file.size() < kLengthFieldBytes) {
    throw input_error(path, "is " + std::to_string(file.size()) +
                                " bytes long; a safetensors file begins with an 8-byte header length");
  }
  std::uint64_t size_bytes = 0;
  for (std::size_t i = 0; i < kLengthFieldBytes; ++i) size_bytes |= std::to_integer<std::uint64_t>(file[i]) << (8 * i);
  if (size_bytes > kSafetensorsHeaderBytesMax) {
    throw input_error(path, "is no safetensors file: as the length of a header its first 8 bytes say " +
                                std::to_string(size_bytes) + "; the format allows " +
                                std::to_string(kSafetensorsHeaderBytesMax));
  }
  if (size_bytes > file.size() - kLengthFieldBytes) {
    throw input_error(path, "its header is said to be " + std::to_string(size_bytes) + " bytes long but the file has " +
                                std::to_string(file.size() - kLengthFieldBytes) +
                                " bytes after the length; is it truncated?");
  }
  return size_bytes;
}

}  // namespace

std::optional<std::uint64_t> tensor_size_bytes(DType dtype, std::span<const std::uint64_t> shape) {
  std::uint64_t product = dtype_size_bytes(dtype);
  bool empty = false;
  for (const std::uint64_t dimension : shape) {
    if (dimension == 0) {
      empty = true;
    } else if (dimension > std::numeric_limits<std::uint64_t>::max() / product) {
      return std::nullopt;
    } else {
      product *= dimension;
    }
  }
  return empty ? 0 : product;
}

std::string shape_text(std::span<const std::uint64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size() && i < kShapeDimensionsShown; ++i) {
    text.append(i == 0 ? "" : ", ").append(std::to_string(shape[i]));
  }
  if (shape.size() > kShapeDimensionsShown) text += ", ... (" + std::to_string(shape.size()) + " dimensions)";
  return text + "]";
}

std::string tensor_label(std::string_view name) {
  return "tensor " + in_quotes(name);
}

SafetensorsHeader parse_safetensors_header(const std::string& path, std::span<const std::byte> file) {
  const std::uint64_t size_bytes = header_size_bytes(path, file);
  const std::string_view json(reinterpret_cast<const char*>(file.data()) + kLengthFieldBytes, size_bytes);
  if (json.empty() || json.front() != '{') throw input_error(path, "its header must begin with '{'");
  // The parser takes a zero byte for the end of its input and would not look at what follows.
  if (json.find('\0') != std::string_view::npos)
    throw input_error(path, "its header holds a zero byte; it must be JSON");

  HeaderEvents events(path);
  nlohmann::json::sax_parse(json, &events);
  SafetensorsHeader header = std::move(events.header);
  header.data_section_begin_byte = kLengthFieldBytes + size_bytes;
  const std::uint64_t data_section_bytes = file.size() - header.data_section_begin_byte;
  for (const SafetensorsEntry& entry : header.entries) check_size(path, entry, data_section_bytes);
  // An empty tensor shares its begin with its successor; by end it comes first. The name makes the order total.
  std::sort(header.entries.begin(), header.entries.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::tie(a.begin_byte, a.end_byte, a.name) < std::tie(b.begin_byte, b.end_byte, b.name);
  });
  check_coverage(path, header.entries, data_section_bytes);
  return header;
}

}  // namespace draftproof
