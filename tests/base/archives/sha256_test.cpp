#include "base/archives/sha256.hpp"

#include "tests/support/test.hpp"

namespace {

// The example messages that NIST publishes with FIPS 180-4.
const std::string kDigestOfNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const std::string kDigestOfAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const std::string kDigestOfAMillionA = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

}  // namespace

TEST_CASE("SHA-256 gives the published digests of the published messages") {
  CHECK(sha256_hex("") == kDigestOfNothing);
  CHECK(sha256_hex("abc") == kDigestOfAbc);
  CHECK(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256_hex(std::string(1'000'000, 'a')) == kDigestOfAMillionA);
}

TEST_CASE("SHA-256 of pieces is that of the whole and can be read in between") {
  Sha256 sha256;
  CHECK(sha256.hex_digest() == kDigestOfNothing);
  sha256.update("a");
  sha256.update("");
  sha256.update("bc");
  CHECK(sha256.hex_digest() == kDigestOfAbc);
  CHECK(sha256.hex_digest() == kDigestOfAbc);
  sha256.update("d");
  CHECK(sha256.hex_digest() == sha256_hex("abcd"));
}

// bare/sha256.cpp is in no other build than the one for a bare GPU machine: a program of its own is compiled here.
TEST_CASE("the SHA-256 of the bare build is that of the library, around the ends of blocks") {
  const TemporaryFolder folder;
  write_whole_file(folder.file("main.cpp"),
                   "#include <cstdio>\n#include <cstdlib>\n#include \"base/archives/sha256.hpp\"\n"
                   "int main() { for (int n : {0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 1000}) "
                   "std::printf(\"%s\\n\", draftproof::sha256_hex(std::string(n, (char)('a' + n % 26))).c_str()); }\n");
  const ProgramResult compiled =
      run_command({"c++", "-std=c++20", "-I" DRAFTPROOF_SOURCE_DIR, folder.file("main.cpp"),
                   DRAFTPROOF_SOURCE_DIR "/base/archives/bare/sha256.cpp", "-o", folder.file("digests")});
  INFO(compiled.err);
  REQUIRE(compiled.exit_code == 0);
  std::string expected;
  for (const std::size_t n : {0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 1000})
    expected += sha256_hex(std::string(n, static_cast<char>('a' + n % 26))) + "\n";
  CHECK(run_command({folder.file("digests")}).out == expected);
}
