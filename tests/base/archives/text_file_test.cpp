// Files, and gzip that another program made.
#include "base/archives/text_file.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "base/error.hpp"
#include "tests/reference/trace/temporary_folder.hpp"

namespace draftproof {
namespace {

// Of Python's gzip: 'accept len\n'.
const std::string kPacked(
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff\x4b\x4c\x4e\x4e\x2d\x28\x51\xc8\x49\xcd\xe3\x02\x00\x66\x0a\xb5"
    "\xa4\x0b\x00\x00\x00",
    31);

}  // namespace

TEST_CASE("gzip is unpacked, members behind one another too, and any other file is itself") {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/log";
  const auto text_of = [&](const std::string& bytes) {
    testing::write_whole_file(path, bytes);
    return read_text(path, 1 << 20);
  };
  CHECK(text_of(kPacked) == "accept len\n");
  CHECK(text_of(kPacked + kPacked) == "accept len\naccept len\n");
  CHECK(text_of("plain\n") == "plain\n");
  CHECK(text_of("") == "");
}

TEST_CASE("damaged gzip, and one that unpacks to more than is allowed, are refused by name") {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/log.gz";
  const auto refused = [&](const std::string& bytes, std::uint64_t limit) -> std::string {
    testing::write_whole_file(path, bytes);
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

}  // namespace draftproof
