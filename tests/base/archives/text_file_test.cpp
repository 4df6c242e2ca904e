// Files, and gzip that another program made.
#include "base/archives/text_file.hpp"

#include <zlib.h>

#include "tests/support/test.hpp"

namespace {

// Made by Python's gzip: 'accept len\n'.
const std::string kPacked(
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff\x4b\x4c\x4e\x4e\x2d\x28\x51\xc8\x49\xcd\xe3\x02\x00\x66\x0a\xb5"
    "\xa4\x0b\x00\x00\x00",
    31);

}  // namespace

TEST_CASE("gzip is unpacked, members behind one another too, and any other file is itself") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/log";
  const auto text_of = [&](const std::string& bytes) {
    write_whole_file(path, bytes);
    return read_text(path, 1 << 20);
  };
  CHECK(text_of(kPacked) == "accept len\n");
  CHECK(text_of(kPacked + kPacked) == "accept len\naccept len\n");
  CHECK(text_of("plain\n") == "plain\n");
  CHECK(text_of("") == "");
  CHECK(text_of("\xEF\xBB\xBF"
                "a\r\nb") == "a\nb");
}

TEST_CASE("gzip that unpacks to more than any log does is refused before memory is taken") {
  constexpr std::size_t kUnpacked = (std::size_t{1} << 26) + 1;
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string zeros(kUnpacked, '0');
  std::string packed(deflateBound(&stream, zeros.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(zeros.data());
  stream.avail_in = static_cast<uInt>(zeros.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  REQUIRE(packed.size() < kUnpacked / 400);
  const TemporaryFolder folder;
  write_whole_file(folder.path() + "/log.gz", packed);
  CHECK_THROWS_WITH(read_text(folder.path() + "/log.gz", std::uint64_t{1} << 30),
                    Contains("unpacks to more than 400 times its size"));
}

TEST_CASE("damaged gzip, and one that unpacks to more than is allowed, are refused by name") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/log.gz";
  const auto refused = [&](const std::string& bytes, std::uint64_t limit) -> std::string {
    write_whole_file(path, bytes);
    try {
      read_text(path, limit);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::input);
      return error.what();
    }
    return "";
  };
  std::string changed = kPacked;
  changed[24] = static_cast<char>(changed[24] ^ 1);  // of the checksum
  for (const std::string& bytes : {kPacked.substr(0, 20), kPacked.substr(0, 30), changed, kPacked + "x"}) {
    const std::string what = refused(bytes, 1 << 20);
    CHECK(what.starts_with(path + ": is gzip that is damaged or ends early"));
  }
  CHECK(refused(kPacked + kPacked, 40) == path + ": has 62 bytes; expected at most 40 bytes");
  CHECK(refused(kPacked + kPacked + kPacked + kPacked, 124).empty());
}
