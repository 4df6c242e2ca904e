#include "base/archives/gunzip.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>

#include "base/error.hpp"
#include "base/files/input_file.hpp"

namespace draftproof {
namespace {

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

}  // namespace

std::string gunzip(std::string_view packed, const std::string& name, std::uint64_t limit_bytes) {
  constexpr std::size_t kTakenMost = std::size_t{1} << 30;  // zlib counts in 32 bits
  std::string text;
  std::array<char, 1 << 16> part{};
  Inflating inflating;
  z_stream& stream = inflating.stream;
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
    if (text.size() + bytes > limit_bytes)
      throw input_error(name, "unpacks to more than " + bytes_text(limit_bytes) + "; expected a shorter text");
    text.append(part.data(), bytes);
    if (status == Z_STREAM_END) {
      if (stream.avail_in == 0 && packed.empty()) return text;
      inflateReset(&stream);  // the next member
    } else if (status != Z_OK || (bytes == 0 && stream.avail_in == 0 && packed.empty())) {
      throw input_error(name, "is gzip that is damaged or ends early, after " + bytes_text(text.size()) +
                                  " of text; expected a whole file (gzip -t)");
    }
  }
}

}  // namespace draftproof
