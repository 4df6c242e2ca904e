#include "base/archives/npz.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <new>
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

// A little-endian number of so many bytes, which are there.
std::uint64_t number_at(std::span<const std::byte> bytes, std::size_t at, std::size_t size) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < size; ++i) number |= static_cast<std::uint64_t>(bytes[at + i]) << (8 * i);
  return number;
}

bool has_signature(std::span<const std::byte> bytes, std::size_t at, std::string_view signature) {
  return at <= bytes.size() && bytes.size() - at >= signature.size() &&
         std::memcmp(bytes.data() + at, signature.data(), signature.size()) == 0;
}

// An entry of the archive's directory (APPNOTE 6.3.10, section 4.3.12).
struct ZipEntry {
  std::string name;
  bool encrypted = false;
  std::uint64_t method = 0;
  std::uint64_t checksum = 0;  // CRC-32
  std::uint64_t packed_bytes = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t begin = 0;  // of its own header, in the file
};
constexpr std::uint64_t kStored = 0;
constexpr std::uint64_t kDeflated = 8;

// The contents of a member, from the front to its end.
class ZipMember {
 public:
  ZipMember(std::span<const std::byte> file, const ZipEntry& entry, const std::string& where)
      : entry_(entry), where_(where) {
    if (entry.encrypted || !has_signature(file, entry.begin, "PK\3\4") || file.size() - entry.begin < kHeaderBytes)
      fail();
    const std::uint64_t begin =
        entry.begin + kHeaderBytes + number_at(file, entry.begin + 26, 2) + number_at(file, entry.begin + 28, 2);
    if (begin > file.size() || entry.packed_bytes > file.size() - begin) fail();
    packed_ = file.subspan(begin, entry.packed_bytes);
    if (entry.method == kDeflated && inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~ZipMember() { inflateEnd(&stream_); }  // of stored members nothing happens
  ZipMember(const ZipMember&) = delete;
  ZipMember& operator=(const ZipMember&) = delete;

  // The next bytes, as many as there are places.
  void read(std::span<std::byte> bytes) {
    if (entry_.method == kStored) {
      if (bytes.size() > packed_.size()) fail();
      std::ranges::copy(packed_.first(bytes.size()), bytes.begin());
      packed_ = packed_.subspan(bytes.size());
    } else if (unpacked(bytes) != bytes.size()) {
      fail();
    }
    checksum_ = crc32_z(checksum_, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  }
  // The checksum is compared where the member is found to end.
  void require_end() {
    std::byte behind{};
    const bool ended = entry_.method == kStored ? packed_.empty() : unpacked(std::span(&behind, 1)) == 0 && at_end_;
    if (!ended || checksum_ != entry_.checksum) fail();
  }

 private:
  static constexpr std::size_t kHeaderBytes = 30;

  // Fills `bytes` from the deflated data, as far as these go; returns how many there were.
  std::size_t unpacked(std::span<std::byte> bytes) {
    constexpr std::size_t kBytesMax = std::size_t{1} << 30;  // zlib counts in 32 bits
    std::size_t done = 0;
    while (done < bytes.size() && !at_end_) {
      const auto in = static_cast<uInt>(std::min(packed_.size(), kBytesMax));
      const auto out = static_cast<uInt>(std::min(bytes.size() - done, kBytesMax));
      stream_.next_in = reinterpret_cast<z_const Bytef*>(const_cast<std::byte*>(packed_.data()));
      stream_.avail_in = in;
      stream_.next_out = reinterpret_cast<Bytef*>(bytes.data() + done);
      stream_.avail_out = out;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      if (status != Z_OK && status != Z_STREAM_END) fail();  // also where nothing more can come
      packed_ = packed_.subspan(in - stream_.avail_in);
      done += out - stream_.avail_out;
      at_end_ = status == Z_STREAM_END;
    }
    return done;
  }
  [[noreturn]] void fail() const {
    throw input_error(where_, "cannot be unpacked, or its checksum is another; expected what numpy.savez writes");
  }

  const ZipEntry& entry_;
  const std::string& where_;
  std::span<const std::byte> packed_;  // what is not read yet
  z_stream stream_{};
  bool at_end_ = false;
  uLong checksum_ = 0;
};

class ZipArchive {
 public:
  ZipArchive(const std::string& path, std::span<const std::byte> file)
      : path_(path), file_(file), unclaimed_bytes_(file.size()) {
    const auto [count, begin] = directory();
    std::uint64_t at = begin;
    for (std::uint64_t i = 0; i < count; ++i) at = read_entry(at);
  }

  std::uint64_t members() const { return entries_.size(); }

  // A member with a size that its part of the file can hold. Each member is claimed once: the claims of all must fit
  // into the file, so that no part of it is unpacked again and again.
  struct Claim {
    std::string where;
    std::string name;
    std::uint64_t size_bytes;
  };
  Claim claim(std::uint64_t index) {
    const ZipEntry& entry = entries_[index];
    Claim claim{path_ + ": member " + in_quotes(entry.name), entry.name, entry.size_bytes};
    if (entry.method != kStored && entry.method != kDeflated)
      throw input_error(claim.where, "is compressed by method " + std::to_string(entry.method) +
                                         "; expected stored (0) or deflated (8), as numpy.savez writes");
    const std::uint64_t headers_bytes = kMemberHeaderBytes + 2 * claim.name.size();
    if (headers_bytes > unclaimed_bytes_ || entry.packed_bytes > unclaimed_bytes_ - headers_bytes)
      throw input_error(claim.where, "takes " + bytes_text(entry.packed_bytes) +
                                         " of the archive, more than the other members leave; expected members that "
                                         "do not overlap");
    unclaimed_bytes_ -= headers_bytes + entry.packed_bytes;
    const std::uint64_t ratio = entry.method == kDeflated ? kDeflateRatioMax : 1;
    if (entry.size_bytes / ratio > entry.packed_bytes)
      throw input_error(claim.where, "says that it holds " + bytes_text(entry.size_bytes) + " in " +
                                         bytes_text(entry.packed_bytes) + "; expected at most " +
                                         (ratio == 1 ? "as many" : std::to_string(ratio) + " times as many"));
    return claim;
  }

  ZipMember open(std::uint64_t index, const std::string& where) const { return {file_, entries_[index], where}; }

 private:
  struct Directory {
    std::uint64_t entries;
    std::uint64_t begin;
  };

  [[noreturn]] void fail(const std::string& what) const {
    throw input_error(path_, "is no archive that can be read (" + what + "); expected what numpy.savez writes");
  }

  // The directory stands before its end record, which stands at the end of the file, with a comment behind it. Where
  // its numbers do not fit there, another record has them.
  Directory directory() const {
    constexpr std::size_t kRecordBytes = 22;
    constexpr std::size_t kLocatorBytes = 20;
    constexpr std::size_t kLongRecordBytes = 56;
    constexpr std::size_t kCommentBytesMax = 0xffff;
    for (std::size_t comment = 0; comment <= kCommentBytesMax && kRecordBytes + comment <= file_.size(); ++comment) {
      const std::size_t at = file_.size() - kRecordBytes - comment;
      if (!has_signature(file_, at, "PK\5\6") || number_at(file_, at + 20, 2) != comment) continue;
      const Directory directory{number_at(file_, at + 10, 2), number_at(file_, at + 16, 4)};
      if (directory.entries != 0xffff && directory.begin != 0xffffffff) return directory;
      if (at < kLocatorBytes || !has_signature(file_, at - kLocatorBytes, "PK\6\7")) return directory;
      const std::uint64_t more = number_at(file_, at - kLocatorBytes + 8, 8);
      if (!has_signature(file_, more, "PK\6\6") || file_.size() - more < kLongRecordBytes)
        fail("its record of 64 bits is not where it should be");
      return {number_at(file_, more + 32, 8), number_at(file_, more + 48, 8)};
    }
    fail("it has no end record");
  }

  // Returns where the next entry begins.
  std::uint64_t read_entry(std::uint64_t at) {
    constexpr std::size_t kEntryBytes = 46;
    if (!has_signature(file_, at, "PK\1\2") || file_.size() - at < kEntryBytes)
      fail("entry " + std::to_string(entries_.size()) + " of its directory is missing");
    const std::uint64_t name = number_at(file_, at + 28, 2);
    const std::uint64_t extra = number_at(file_, at + 30, 2);
    const std::uint64_t comment = number_at(file_, at + 32, 2);
    if (file_.size() - at - kEntryBytes < name + extra + comment)
      fail("entry " + std::to_string(entries_.size()) + " of its directory is cut off");
    ZipEntry entry;
    entry.encrypted = (number_at(file_, at + 8, 2) & 1) != 0;
    entry.method = number_at(file_, at + 10, 2);
    entry.checksum = number_at(file_, at + 16, 4);
    entry.packed_bytes = number_at(file_, at + 20, 4);
    entry.size_bytes = number_at(file_, at + 24, 4);
    entry.begin = number_at(file_, at + 42, 4);
    entry.name.assign(reinterpret_cast<const char*>(file_.data()) + at + kEntryBytes, name);
    read_long_numbers(file_.subspan(at + kEntryBytes + name, extra), entry);
    entries_.push_back(std::move(entry));
    return at + kEntryBytes + name + extra + comment;
  }

  // Numbers of 64 bits in place of those that are all ones (APPNOTE 6.3.10, section 4.5.3).
  static void read_long_numbers(std::span<const std::byte> fields, ZipEntry& entry) {
    constexpr std::uint64_t kLongNumbers = 1;
    while (fields.size() >= 4) {
      const std::uint64_t size = std::min<std::uint64_t>(number_at(fields, 2, 2), fields.size() - 4);
      std::span<const std::byte> field = fields.subspan(4, size);
      if (number_at(fields, 0, 2) == kLongNumbers)
        for (std::uint64_t* const number : {&entry.size_bytes, &entry.packed_bytes, &entry.begin})
          if (*number == 0xffffffff && field.size() >= 8) {
            *number = number_at(field, 0, 8);
            field = field.subspan(8);
          }
      fields = fields.subspan(4 + size);
    }
  }

  std::string path_;
  std::span<const std::byte> file_;
  std::vector<ZipEntry> entries_;
  std::uint64_t unclaimed_bytes_;
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
