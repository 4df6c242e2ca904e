#include "base/archives/gunzip.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>

#include "base/error.hpp"
#include "base/files/input_file.hpp"

namespace draftproof {
namespace {

constexpr std::uint64_t kRatioMax = 400;
constexpr std::uint64_t kAnyRatioBytes = std::uint64_t{1} << 26;

class Inflating {
 public:
  Inflating() {
    constexpr int kGzipOnly = 16;
    if (inflateInit2(&stream, kGzipOnly + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~Inflating() { inflateEnd(&stream); }
  Inflating(const Inflating&) = delete;
  Inflating& operator=(const Inflating&) = delete;

  z_stream stream{};
};

// Calls take(bytes) for what is unpacked, part by part.
template <class Take>
void for_each_part(std::string_view packed, const std::string& name, const Take& take) {
  constexpr std::size_t kTakenMost = std::size_t{1} << 30;  // zlib counts in 32 bits
  std::array<char, 1 << 16> part{};
  Inflating inflating;
  z_stream& stream = inflating.stream;
  std::uint64_t unpacked = 0;
  while (true) {
    if (stream.avail_in == 0) {
      const std::size_t taken = std::min(packed.size(), kTakenMost);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
      stream.avail_in = static_cast<uInt>(taken);
      packed.remove_prefix(taken);
    }
    stream.next_out = reinterpret_cast<Bytef*>(part.data());
    stream.avail_out = static_cast<uInt>(part.size());
    const int status = inflate(&stream, Z_NO_FLUSH);
    const std::size_t bytes = part.size() - stream.avail_out;
    unpacked += bytes;
    take(std::string_view(part.data(), bytes));
    if (status == Z_STREAM_END) {
      if (stream.avail_in == 0 && packed.empty()) return;
      inflateReset(&stream);  // the next member
    } else if (status != Z_OK || (bytes == 0 && stream.avail_in == 0 && packed.empty())) {
      throw input_error(name, "is gzip that is damaged or ends early, after " + bytes_text(unpacked) +
                                  " of text; expected a whole file (gzip -t)");
    }
  }
}

}  // namespace

std::string gunzip(std::string_view packed, const std::string& name, std::uint64_t limit_bytes) {
  const std::uint64_t likely_bytes = std::max(kAnyRatioBytes, kRatioMax * packed.size());
  std::uint64_t unpacked = 0;
  for_each_part(packed, name, [&](std::string_view part) {
    unpacked += part.size();
    if (unpacked > limit_bytes)
      throw input_error(name, "unpacks to more than " + bytes_text(limit_bytes) + "; expected a shorter text");
    if (unpacked > likely_bytes)
      throw input_error(name, "unpacks to more than " + std::to_string(kRatioMax) +
                                  " times its size; expected a log or a document (if it is one, unpack it: gunzip)");
  });
  std::string text;
  text.reserve(unpacked);
  for_each_part(packed, name, [&](std::string_view part) { text.append(part); });
  return text;
}

}  // namespace draftproof
