// A trace with damaged bytes is refused or read, and nothing else happens.
#include "reference/step/batch.hpp"
#include "reference/trace/trace.hpp"
#include "tests/reference/trace/trace_builder.hpp"
#include "tests/support/test.hpp"

namespace {

// Opens, and verifies when it opens. Anything but success and our own error escapes and fails the test.
bool opens(const std::string& path) {
  try {
    const Trace trace = Trace::open(path);
    verify_batch(trace.requests(), trace.verify_options(), 1);
    return true;
  } catch (const Error& error) {
    CHECK(error.kind() != ErrorKind::internal);
    return false;
  }
}

// Writes a new file each time: writing over one makes some file systems wait for the disk.
void replace_file(const std::string& path, const std::string& bytes) {
  std::filesystem::remove(path);
  write_whole_file(path, bytes);
}

std::string flipped(std::string bytes, std::size_t index, unsigned flip) {
  bytes[index] = static_cast<char>(static_cast<unsigned char>(bytes[index]) ^ flip);
  return bytes;
}

std::size_t header_end_of(const std::string& bytes) {
  std::uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), sizeof header_size);
  return sizeof header_size + header_size;
}

TEST_CASE("a trace with any byte of its header changed or cut anywhere never crashes") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t");
  const std::string whole = read_whole_file(ragged_trace(make_batch(2, 33, 2, 5)).write(path));
  const std::size_t header_end = header_end_of(whole);
  REQUIRE(opens(path));
  REQUIRE(header_end < whole.size());
  std::size_t refused = 0;
  for (std::size_t i = 0; i < header_end; ++i) {
    replace_file(path, flipped(whole, i, 1u << (i * 5 % 8)));
    if (!opens(path)) ++refused;
  }
  CHECK(refused > header_end * 9 / 10);
  for (std::size_t size = 0; size < whole.size(); size += 1 + size / 50) {
    replace_file(path, whole.substr(0, size));
    CHECK_FALSE(opens(path));
  }
}

TEST_CASE("a trace with any byte of its data changed never crashes") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t");
  const std::string whole = read_whole_file(ragged_trace(make_batch(2, 5, 2, 5)).write(path));
  int refused = 0;
  for (std::size_t i = header_end_of(whole); i < whole.size(); ++i) {
    replace_file(path, flipped(whole, i, 0xc1u));
    if (!opens(path)) ++refused;
  }
  CHECK(refused > 20);
}

}  // namespace
