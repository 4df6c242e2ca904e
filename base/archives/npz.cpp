#include "base/archives/npz.hpp"

#include <zip.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/archives/safetensors_header.hpp"
#include "base/error.hpp"
#include "base/files/input_file.hpp"
#include "base/printable.hpp"
#include "base/strict_number.hpp"

namespace draftproof {
namespace {

// Deflate makes at most about a thousandth of what it is given; more is a lie about the size.
constexpr std::uint64_t kDeflateRatioMax = 1100;

struct Array {
  std::string name;
  DType dtype{};
  std::vector<std::uint64_t> shape;
  std::vector<std::byte> file;  // the whole member
  std::size_t data_begin = 0;
};

class ZipArchive {
 public:
  ZipArchive(const std::string& path, std::span<const std::byte> file) : path_(path) {
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t* const source = zip_source_buffer_create(file.data(), file.size(), 0, &error);
    if (source != nullptr) archive_.reset(zip_open_from_source(source, ZIP_RDONLY, &error));
    if (!archive_) {
      const std::string what = zip_error_strerror(&error);
      if (source != nullptr) zip_source_free(source);
      zip_error_fini(&error);
      throw input_error(path, "is no archive that can be read (" + what + "); expected what numpy.savez writes");
    }
    zip_error_fini(&error);
  }

  std::int64_t members() const { return zip_get_num_entries(archive_.get(), 0); }

  std::pair<std::string, std::vector<std::byte>> read(std::int64_t index) const {
    zip_stat_t status;
    const auto i = static_cast<zip_uint64_t>(index);
    constexpr zip_uint64_t kNeeded = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE;
    if (zip_stat_index(archive_.get(), i, 0, &status) != 0 || (status.valid & kNeeded) != kNeeded)
      throw input_error(path_, "member " + std::to_string(index) + " of the archive cannot be examined");
    const std::string where = path_ + ": member " + in_quotes(status.name);
    if (status.size / kDeflateRatioMax > status.comp_size + 1)
      throw input_error(where, "says that it holds " + bytes_text(status.size) + " in " + bytes_text(status.comp_size) +
                                   ", more than compression can do");
    std::vector<std::byte> bytes(status.size);
    const std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> member(zip_fopen_index(archive_.get(), i, 0), zip_fclose);
    const zip_int64_t count = member ? zip_fread(member.get(), bytes.data(), bytes.size()) : -1;
    // The checksum is compared where the member is found to end.
    std::byte behind;
    if (count != static_cast<zip_int64_t>(bytes.size()) || zip_fread(member.get(), &behind, 1) != 0)
      throw input_error(where, "cannot be unpacked, or its checksum is another; expected what numpy.savez writes");
    return {status.name, std::move(bytes)};
  }

 private:
  std::string path_;
  std::unique_ptr<zip_t, void (*)(zip_t*)> archive_{nullptr, zip_discard};
};

// The value of a key in the header of an array, a Python dictionary on one line: what stands between the key and the
// comma after its value.
std::optional<std::string_view> value_in(std::string_view header, const std::string& key) {
  const std::size_t at = header.find("'" + key + "':");
  if (at == header.npos) return std::nullopt;
  std::string_view value = header.substr(at + key.size() + 3);
  value.remove_prefix(std::min(value.size(), value.find_first_not_of(' ')));
  const std::size_t end = value.starts_with('(') ? value.find(')') + 1 : value.find_first_of(",}");
  return end == value.npos || end == 0 ? std::optional<std::string_view>() : value.substr(0, end);
}

std::optional<DType> dtype_of(std::string_view descr) {
  static constexpr std::array<std::pair<std::string_view, DType>, 12> kTypes{{{"'|b1'", DType::boolean},
                                                                              {"'|u1'", DType::u8},
                                                                              {"'|i1'", DType::i8},
                                                                              {"'<i2'", DType::i16},
                                                                              {"'<u2'", DType::u16},
                                                                              {"'<f2'", DType::f16},
                                                                              {"'<i4'", DType::i32},
                                                                              {"'<u4'", DType::u32},
                                                                              {"'<f4'", DType::f32},
                                                                              {"'<f8'", DType::f64},
                                                                              {"'<i8'", DType::i64},
                                                                              {"'<u8'", DType::u64}}};
  for (const auto& [name, dtype] : kTypes)
    if (name == descr) return dtype;
  return std::nullopt;
}

std::vector<std::uint64_t> shape_of(std::string_view text, const std::string& where) {
  std::vector<std::uint64_t> shape;
  std::string number;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      number += c;
    } else if (!number.empty()) {
      const std::optional<std::uint64_t> size = read_unsigned(number);
      if (!size) throw input_error(where, "has a dimension of " + number + "; expected less than 2^64");
      shape.push_back(*size);
      number.clear();
    }
  }
  return shape;
}

Array parse_array(const std::string& path, std::string name, std::vector<std::byte> file) {
  const std::string where = path + ": member " + in_quotes(name);
  if (!name.ends_with(".npy")) throw input_error(where, "is no array; expected names that end in .npy");
  name.resize(name.size() - 4);
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  constexpr std::string_view kMagic = "\x93NUMPY";
  if (!text.starts_with(kMagic) || text.size() < 12)
    throw input_error(where, "does not begin as an array of NumPy does");
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(file[i]); };
  const bool is_first_version = byte(6) == 1;
  const std::size_t begin = is_first_version ? 10 : 12;
  const std::size_t length =
      is_first_version ? byte(8) | byte(9) << 8 : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  if (length > file.size() - begin) throw input_error(where, "is cut off in its header");
  const std::string_view header = text.substr(begin, length);
  const std::optional<std::string_view> descr = value_in(header, "descr");
  const std::optional<std::string_view> order = value_in(header, "fortran_order");
  const std::optional<std::string_view> shape = value_in(header, "shape");
  if (!descr || !order || !shape) throw input_error(where, "has a header without descr, fortran_order or shape");
  const std::optional<DType> dtype = dtype_of(*descr);
  if (!dtype)
    throw input_error(where, "has elements of type " + in_quotes(*descr) +
                                 "; expected numbers of 1 to 8 bytes, little-endian, or truth values");
  Array array{std::move(name), *dtype, shape_of(*shape, where), std::move(file), begin + length};
  if (*order != "False" && array.shape.size() > 1)
    throw input_error(where, "is in Fortran order; expected C order (numpy.ascontiguousarray)");
  if (tensor_size_bytes(array.dtype, array.shape) != array.file.size() - array.data_begin)
    throw input_error(where, "has " + bytes_text(array.file.size() - array.data_begin) + " of data; expected shape " +
                                 shape_text(array.shape) + " of " + std::string(dtype_name(array.dtype)));
  return array;
}

void append(std::vector<std::byte>& bytes, const void* data, std::size_t count) {
  const auto* const first = static_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), first, first + count);
}

}  // namespace

bool is_zip(std::span<const std::byte> file) {
  return file.size() >= 4 && (std::memcmp(file.data(), "PK\3\4", 4) == 0 || std::memcmp(file.data(), "PK\5\6", 4) == 0);
}

std::vector<std::byte> safetensors_of_npz(const std::string& path, std::span<const std::byte> file) {
  const ZipArchive archive(path, file);
  std::vector<Array> arrays;
  for (std::int64_t i = 0; i < archive.members(); ++i) {
    auto [name, bytes] = archive.read(i);
    arrays.push_back(parse_array(path, std::move(name), std::move(bytes)));
  }
  // Falling sizes of elements keep every tensor aligned.
  std::stable_sort(arrays.begin(), arrays.end(), [](const Array& a, const Array& b) { return a.dtype > b.dtype; });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::uint64_t end = 0;
  for (const Array& array : arrays) {
    if (header.contains(array.name)) throw input_error(path, "holds two arrays named " + in_quotes(array.name));
    const std::uint64_t begin = end;
    end += array.file.size() - array.data_begin;
    header[array.name] = {{"dtype", dtype_name(array.dtype)}, {"shape", array.shape}, {"data_offsets", {begin, end}}};
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    throw input_error(path, "holds a name that is not UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::vector<std::byte> image;
  const auto length = static_cast<std::uint64_t>(text.size());
  image.reserve(sizeof length + text.size() + end);
  append(image, &length, sizeof length);
  append(image, text.data(), text.size());
  for (const Array& array : arrays)
    append(image, array.file.data() + array.data_begin, array.file.size() - array.data_begin);
  return image;
}

}  // namespace draftproof
