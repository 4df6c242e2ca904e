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

// A match of 258 bytes in two bits is the most that deflate makes.
constexpr std::uint64_t kDeflateRatioMax = 1032;
// Bytes that a member takes of an archive besides its name, twice, and its data: its own header and that in the
// directory.
constexpr std::uint64_t kMemberHeaderBytes = 30 + 46;
constexpr std::uint64_t kArrayHeaderBytesMax = 1 << 20;  // the shape and type of one array; NumPy writes a few hundred

struct Array {
  std::uint64_t member = 0;
  std::string where;
  std::string name;
  DType dtype{};
  std::vector<std::uint64_t> shape;
  std::uint64_t data_begin = 0;  // in the member
  std::uint64_t size_bytes = 0;  // of the elements
};

class ZipMember {
 public:
  ZipMember(zip_t* archive, std::uint64_t index, const std::string& where)
      : file_(zip_fopen_index(archive, index, 0), zip_fclose), where_(where) {
    if (!file_) fail();
  }

  // The next bytes, as many as there are places.
  void read(std::span<std::byte> bytes) {
    if (zip_fread(file_.get(), bytes.data(), bytes.size()) != static_cast<zip_int64_t>(bytes.size())) fail();
  }
  // The checksum is compared where the member is found to end.
  void require_end() {
    std::byte behind{};
    if (zip_fread(file_.get(), &behind, 1) != 0) fail();
  }

 private:
  [[noreturn]] void fail() const {
    throw input_error(where_, "cannot be unpacked, or its checksum is another; expected what numpy.savez writes");
  }
  std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> file_;
  const std::string& where_;
};

class ZipArchive {
 public:
  ZipArchive(const std::string& path, std::span<const std::byte> file) : path_(path), unclaimed_bytes_(file.size()) {
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

  std::uint64_t members() const { return static_cast<std::uint64_t>(zip_get_num_entries(archive_.get(), 0)); }

  // A member with a size that its part of the file can hold. Each member is claimed once: the claims of all must fit
  // into the file, so that no part of it is unpacked again and again.
  struct Claim {
    std::string where;
    std::string name;
    std::uint64_t size_bytes;
  };
  Claim claim(std::uint64_t index) {
    zip_stat_t status;
    constexpr zip_uint64_t kNeeded = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
    if (zip_stat_index(archive_.get(), index, 0, &status) != 0 || (status.valid & kNeeded) != kNeeded)
      throw input_error(path_, "member " + std::to_string(index) + " of the archive cannot be examined");
    Claim claim{path_ + ": member " + in_quotes(status.name), status.name, status.size};
    if (status.comp_method != ZIP_CM_STORE && status.comp_method != ZIP_CM_DEFLATE)
      throw input_error(claim.where, "is compressed by method " + std::to_string(status.comp_method) +
                                         "; expected stored (0) or deflated (8), as numpy.savez writes");
    const std::uint64_t headers_bytes = kMemberHeaderBytes + 2 * claim.name.size();
    if (headers_bytes > unclaimed_bytes_ || status.comp_size > unclaimed_bytes_ - headers_bytes)
      throw input_error(claim.where, "takes " + bytes_text(status.comp_size) +
                                         " of the archive, more than the other members leave; expected members that "
                                         "do not overlap");
    unclaimed_bytes_ -= headers_bytes + status.comp_size;
    const std::uint64_t ratio = status.comp_method == ZIP_CM_DEFLATE ? kDeflateRatioMax : 1;
    if (status.size / ratio > status.comp_size)
      throw input_error(claim.where, "says that it holds " + bytes_text(status.size) + " in " +
                                         bytes_text(status.comp_size) + "; expected at most " +
                                         (ratio == 1 ? "as many" : std::to_string(ratio) + " times as many"));
    return claim;
  }

  ZipMember open(std::uint64_t index, const std::string& where) const { return {archive_.get(), index, where}; }

 private:
  std::string path_;
  std::uint64_t unclaimed_bytes_;
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

// Reads the header of a member, and of its data nothing.
Array parse_array(ZipArchive& archive, std::uint64_t index) {
  ZipArchive::Claim claim = archive.claim(index);
  const std::string& where = claim.where;
  if (!claim.name.ends_with(".npy")) throw input_error(where, "is no array; expected names that end in .npy");
  claim.name.resize(claim.name.size() - 4);
  ZipMember member = archive.open(index, where);
  constexpr std::string_view kMagic = "\x93NUMPY";
  std::array<std::byte, 12> preamble;
  const auto text_of = [](std::span<const std::byte> bytes) {
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  if (claim.size_bytes >= preamble.size()) member.read(preamble);
  if (claim.size_bytes < preamble.size() || !text_of(preamble).starts_with(kMagic))
    throw input_error(where, "does not begin as an array of NumPy does");
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(preamble[i]); };
  const bool is_first_version = byte(6) == 1;
  const std::size_t begin = is_first_version ? 10 : 12;
  const std::size_t length =
      is_first_version ? byte(8) | byte(9) << 8 : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  if (length > claim.size_bytes - begin || length + begin < preamble.size())
    throw input_error(where, "is cut off in its header");
  if (length > kArrayHeaderBytesMax)
    throw input_error(
        where, "has a header of " + bytes_text(length) + "; expected at most " + bytes_text(kArrayHeaderBytesMax));
  std::vector<std::byte> header_bytes(begin + length);
  std::ranges::copy(preamble, header_bytes.begin());
  member.read(std::span(header_bytes).subspan(preamble.size()));
  const std::string_view header = text_of(header_bytes).substr(begin);
  const std::optional<std::string_view> descr = value_in(header, "descr");
  const std::optional<std::string_view> order = value_in(header, "fortran_order");
  const std::optional<std::string_view> shape = value_in(header, "shape");
  if (!descr || !order || !shape) throw input_error(where, "has a header without descr, fortran_order or shape");
  const std::optional<DType> dtype = dtype_of(*descr);
  if (!dtype)
    throw input_error(where, "has elements of type " + in_quotes(*descr) +
                                 "; expected numbers of 1 to 8 bytes, little-endian, or truth values");
  Array array{index,
              where,
              std::move(claim.name),
              *dtype,
              shape_of(*shape, where),
              begin + length,
              claim.size_bytes - begin - length};
  if (*order != "False" && array.shape.size() > 1)
    throw input_error(where, "is in Fortran order; expected C order (numpy.ascontiguousarray)");
  if (tensor_size_bytes(array.dtype, array.shape) != array.size_bytes)
    throw input_error(where, "has " + bytes_text(array.size_bytes) + " of data; expected shape " +
                                 shape_text(array.shape) + " of " + std::string(dtype_name(array.dtype)));
  return array;
}

}  // namespace

bool is_zip(std::span<const std::byte> file) {
  return file.size() >= 4 && (std::memcmp(file.data(), "PK\3\4", 4) == 0 || std::memcmp(file.data(), "PK\5\6", 4) == 0);
}

std::vector<std::byte> safetensors_of_npz(const std::string& path, std::span<const std::byte> file) {
  ZipArchive archive(path, file);
  std::vector<Array> arrays;
  for (std::uint64_t i = 0; i < archive.members(); ++i) arrays.push_back(parse_array(archive, i));
  // Falling sizes of elements keep every tensor aligned.
  std::stable_sort(arrays.begin(), arrays.end(), [](const Array& a, const Array& b) { return a.dtype > b.dtype; });
  nlohmann::json header = nlohmann::json::object();
  std::uint64_t end = 0;
  for (const Array& array : arrays) {
    if (header.contains(array.name)) throw input_error(path, "holds two arrays named " + in_quotes(array.name));
    const std::uint64_t begin = end;
    end += array.size_bytes;
    header[array.name] = {{"dtype", dtype_name(array.dtype)}, {"shape", array.shape}, {"data_offsets", {begin, end}}};
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    throw input_error(path, "holds a name that is not UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const auto length = static_cast<std::uint64_t>(text.size());
  std::vector<std::byte> image(sizeof length + text.size() + end);
  std::memcpy(image.data(), &length, sizeof length);
  std::memcpy(image.data() + sizeof length, text.data(), text.size());
  std::span<std::byte> rest = std::span(image).subspan(sizeof length + text.size());
  for (const Array& array : arrays) {
    ZipMember member = archive.open(array.member, array.where);
    std::vector<std::byte> skipped(array.data_begin);
    member.read(skipped);
    member.read(rest.first(array.size_bytes));
    member.require_end();
    rest = rest.subspan(array.size_bytes);
  }
  return image;
}

}  // namespace draftproof
