// safetensors files: tensors by name, read into memory and written atomically. The container only; what the
// tensors of a trace mean is trace.hpp's business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/archives/safetensors_header.hpp"
#include "base/dtype.hpp"

namespace draftproof {

// One tensor of a file, row-major, little-endian. Valid as long as any copy of it lives, also after the file object is
// gone; copies are cheap.
struct TensorView {
  std::string name;
  DType dtype{};
  std::vector<std::uint64_t> shape;  // no entry: a scalar
  std::span<const std::byte> bytes;  // aligned for its elements

  std::string where;  // "trace.safetensors: tensor 'seed'", the first argument of an input_error about it
  std::shared_ptr<const void> owner;  // of `bytes`: the file, or an aligned copy where the file's data is not aligned

  std::size_t element_count() const { return bytes.size() / dtype_size_bytes(dtype); }

  // The elements; an input error naming the tensor when its dtype is another. T is a type of DTypeOf. BOOL is read as
  // std::uint8_t, because a C++ bool that is neither 0 nor 1 is undefined behaviour and a file may hold one; 8-bit
  // floats have no type and are read through `bytes`.
  template <class T>
  std::span<const T> as() const {
    const bool is_byte_of_bool = std::is_same_v<T, std::uint8_t> && dtype == DType::boolean;
    if (dtype != DTypeOf<T>::value && !is_byte_of_bool) fail_dtype(DTypeOf<T>::value);
    return {reinterpret_cast<const T*>(bytes.data()), element_count()};
  }

 private:
  [[noreturn]] void fail_dtype(DType expected) const;
};

class InputFile;

// An open file whose header has been checked completely (see safetensors_header.hpp).
class SafetensorsFile {
 public:
  // Input error naming the file, the tensor and what would be right.
  static SafetensorsFile open(const std::string& path);

  const std::string& path() const { return path_; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  std::vector<std::string> names() const;  // in the order of their data
  bool contains(std::string_view name) const;

  // Input error listing the names that are there when there is no such tensor. Copies the data when the file has it at
  // an address that its dtype cannot be read from (a header of odd length), so call it once for each tensor.
  TensorView tensor(std::string_view name) const;

  std::span<const std::byte> bytes() const;  // the whole file as it was read, for hashing

 private:
  SafetensorsFile() = default;
  const SafetensorsEntry* find(std::string_view name) const;

  std::string path_;
  std::shared_ptr<const InputFile> file_;
  SafetensorsHeader header_;
};

// Collects tensors and writes them as the Python package would: descending dtype order, then name, the header padded
// with spaces so that the data is aligned to 8 bytes. The file appears complete or not at all.
class SafetensorsWriter {
 public:
  // `bytes` is not copied: it must live until write(). Input error when the name is taken or is `__metadata__`, or when
  // the number of bytes is not what dtype and shape take.
  void add(const std::string& name, DType dtype, std::vector<std::uint64_t> shape, std::span<const std::byte> bytes);

  void metadata(const std::string& key, const std::string& value) { metadata_[key] = value; }

  // Input error naming the path when it cannot be written, or when a name or text is not UTF-8.
  void write(const std::string& path) const;

 private:
  struct Tensor {
    DType dtype;
    std::vector<std::uint64_t> shape;
    std::span<const std::byte> bytes;
  };
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace draftproof
