// GGUF files made in a test, right ones and lying ones: each number of the header may be set to something else.
#pragma once

#include "engine/weights/gguf.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {

// Bytes, little-endian.
class ByteWriter {
 public:
  template <class T>
  ByteWriter& number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  ByteWriter& string(std::string_view text) {
    number<std::uint64_t>(text.size());
    bytes_.append(text);
    return *this;
  }
  ByteWriter& raw(std::string_view bytes) {
    bytes_.append(bytes);
    return *this;
  }
  void pad_to(std::size_t alignment) { bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class GgufBuilder {
 public:
  struct Tensor {
    std::string name;
    std::vector<std::uint64_t> dimensions;  // as in the file: a row's length first
    std::uint32_t kind = 0;
    std::string data;
    std::optional<std::uint64_t> offset;  // instead of the right one
  };

  std::uint32_t version = 3;
  std::uint64_t alignment = 32;
  std::optional<std::uint64_t> num_tensors;
  std::optional<std::uint64_t> num_metadata;
  std::vector<Tensor> tensors;

  GgufBuilder& metadata(std::string_view key, GgufType type, std::string_view value) {
    metadata_.string(key).number(static_cast<std::uint32_t>(type)).raw(value);
    ++metadata_count_;
    return *this;
  }
  GgufBuilder& string(std::string_view key, std::string_view value) {
    return metadata(key, GgufType::string, ByteWriter().string(value).bytes());
  }
  GgufBuilder& u32(std::string_view key, std::uint32_t value) {
    return metadata(key, GgufType::u32, ByteWriter().number(value).bytes());
  }
  GgufBuilder& f32(std::string_view key, float value) {
    return metadata(key, GgufType::f32, ByteWriter().number(value).bytes());
  }
  GgufBuilder& boolean(std::string_view key, bool value) {
    return metadata(key, GgufType::boolean, ByteWriter().number<std::uint8_t>(value ? 1 : 0).bytes());
  }
  GgufBuilder& strings(std::string_view key, std::span<const std::string> values) {
    ByteWriter array = array_of(GgufType::string, values.size());
    for (const std::string& value : values) array.string(value);
    return metadata(key, GgufType::array, array.bytes());
  }
  template <class T>
  GgufBuilder& numbers(std::string_view key, GgufType element, std::span<const T> values) {
    ByteWriter array = array_of(element, values.size());
    for (const T value : values) array.number(value);
    return metadata(key, GgufType::array, array.bytes());
  }

  GgufBuilder& tensor(std::string name, std::vector<std::uint64_t> dimensions, std::uint32_t kind, std::string data) {
    tensors.push_back({std::move(name), std::move(dimensions), kind, std::move(data), {}});
    return *this;
  }
  GgufBuilder& f32_tensor(std::string name, std::vector<std::uint64_t> dimensions, std::span<const float> values) {
    std::string data(values.size_bytes(), '\0');
    if (!values.empty()) std::memcpy(data.data(), values.data(), values.size_bytes());
    return tensor(std::move(name), std::move(dimensions), 0, std::move(data));
  }

  std::string bytes() const {
    ByteWriter file;
    file.raw("GGUF").number(version).number<std::uint64_t>(num_tensors.value_or(tensors.size()));
    file.number<std::uint64_t>(num_metadata.value_or(metadata_count_)).raw(metadata_.bytes());
    std::uint64_t offset = 0;
    for (const Tensor& tensor : tensors) {
      file.string(tensor.name).number(static_cast<std::uint32_t>(tensor.dimensions.size()));
      for (const std::uint64_t dimension : tensor.dimensions) file.number(dimension);
      file.number(tensor.kind).number(tensor.offset.value_or(offset));
      offset = (offset + tensor.data.size() + alignment - 1) / alignment * alignment;
    }
    for (const Tensor& tensor : tensors) {
      file.pad_to(alignment);
      file.raw(tensor.data);
    }
    return file.bytes();
  }

 private:
  static ByteWriter array_of(GgufType element, std::size_t count) {
    ByteWriter array;
    array.number(static_cast<std::uint32_t>(element)).number<std::uint64_t>(count);
    return array;
  }

  ByteWriter metadata_;
  std::uint64_t metadata_count_ = 0;
};

inline std::span<const std::byte> as_file(const std::string& bytes) {
  return std::as_bytes(std::span(bytes));
}

}  // namespace draftproof::testing
