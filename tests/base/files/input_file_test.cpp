#include "base/files/input_file.hpp"

#include <sys/stat.h>
#include <thread>

#include "base/archives/sha256.hpp"
#include "base/files/inputs_read.hpp"
#include "tests/support/test.hpp"

TEST_CASE("An input file has the bytes of the file, also of an empty one and of one longer than a piece") {
  const TemporaryFolder folder;
  std::string large(20'000'001, '\0');
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 7 >> 5);
  // One byte, and one byte in the last piece: what a read that finds the end must not be taken for.
  for (const std::string& content :
       {std::string(), std::string("x"), std::string("a\0b\n", 4), large, large.substr(0, (1 << 23) + 1)}) {
    write_whole_file(folder.file("f"), content);
    const InputFile file(folder.file("f"));
    CHECK(file.text() == content);
    CHECK(reinterpret_cast<std::uintptr_t>(file.bytes().data()) % 4096 == 0);
  }
}

TEST_CASE("The bytes of an input file stay when the file is shortened or rewritten afterwards") {
  const TemporaryFolder folder;
  write_whole_file(folder.file("f"), std::string(100'000, 'x'));
  const InputFile file(folder.file("f"));
  std::filesystem::resize_file(folder.file("f"), 0);  // read from a mapping, this would be a SIGBUS
  CHECK(file.text() == std::string(100'000, 'x'));
  write_whole_file(folder.file("f"), std::string(100'000, 'y'));
  CHECK(file.text() == std::string(100'000, 'x'));
}

TEST_CASE("A file that another process changes while it is read is refused, never mixed") {
  const TemporaryFolder folder;
  write_whole_file(folder.file("f"), std::string(1 << 26, 'x'));
  std::jthread writer([&](const std::stop_token& stop) {
    for (int i = 0; !stop.stop_requested(); ++i) std::filesystem::resize_file(folder.file("f"), (1 << 26) - i % 2);
  });
  int refused = 0;
  for (int i = 0; i < 20; ++i) {
    try {
      const InputFile file(folder.file("f"));
    } catch (const Error& error) {
      CHECK_THAT(error.what(), Contains("while it was read; expected a file that nobody is writing") ||
                                   Contains("was shortened while it was read"));
      ++refused;
    }
  }
  CHECK(refused > 0);
}

TEST_CASE("What is no regular file is refused at once by its kind, through links too") {
  const TemporaryFolder folder;
  REQUIRE(::mkfifo(folder.file("pipe").c_str(), 0600) == 0);
  std::filesystem::create_symlink("/dev/zero", folder.file("link"));
  CHECK_THROWS_WITH(InputFile(folder.path()), folder.path() + ": is a folder; expected a regular file");
  CHECK_THROWS_WITH(InputFile(folder.file("pipe")), Contains("is a pipe; expected a regular file"));
  CHECK_THROWS_WITH(InputFile("/dev/zero"), "/dev/zero: is a device; expected a regular file");
  CHECK_THROWS_WITH(InputFile(folder.file("link")), Contains("is a device"));
  CHECK_THROWS_WITH(InputFile(folder.file("absent")), Contains("cannot be opened: No such file"));
}

TEST_CASE("A file above a limit or above the machine's memory is refused by its size") {
  const TemporaryFolder folder;
  write_whole_file(folder.file("f"), "12345");
  CHECK(InputFile(folder.file("f"), 5).text() == "12345");
  CHECK_THROWS_WITH(InputFile(folder.file("f"), 4), Contains("has 5 bytes; expected at most 4 bytes"));
  CHECK(require_regular_file(folder.file("f"), 5) == 5);
  CHECK_THROWS_WITH(require_regular_file(folder.file("f"), 4), Contains("expected at most 4 bytes"));
  std::filesystem::resize_file(folder.file("f"), std::uintmax_t{1} << 43);
  CHECK_THROWS_WITH(InputFile(folder.file("f")), Contains("has 8796093022208 bytes (8 TiB)") && Contains("memory"));
}

TEST_CASE("Sizes are written in bytes and in a unit where that is easier to read") {
  CHECK(bytes_text(1) == "1 byte");
  CHECK(bytes_text(0) == "0 bytes");
  CHECK(bytes_text(9999) == "9999 bytes");
  CHECK(bytes_text(1024) == "1024 bytes (1 KiB)");
  CHECK(bytes_text(20000) == "20000 bytes (19 KiB)");
  CHECK(bytes_text(std::uint64_t{1} << 27) == "134217728 bytes (128 MiB)");
  CHECK(bytes_text(~std::uint64_t{0}) == "18446744073709551615 bytes (15 EiB)");
}

TEST_CASE("What is read while somebody takes note is known by its contents, and may not change meanwhile") {
  const TemporaryFolder folder;
  const auto write_and_read = [&](const char* name, const std::string& text) {
    write_whole_file(folder.file(name), text);
    const InputFile file(folder.file(name));
  };
  write_and_read("before", "1");
  ContentsRead contents;
  CHECK(contents.sha256().empty());
  write_and_read("a", "1");
  write_and_read("b", "");
  write_and_read("a", "1");  // another file with the same contents
  std::thread([&] { write_and_read("other thread", "1"); }).join();
  const std::string both = sha256_hex(sha256_hex("1") + sha256_hex(""));
  CHECK(contents.sha256() == both);
  CHECK_THROWS_WITH(write_and_read("a", "2"), Contains("a: has changed since this command first read it"));
  {
    const ContentsRead inner;
    write_and_read("a", "2");
    CHECK(inner.sha256() == sha256_hex(sha256_hex("2")));
  }
  CHECK_THROWS_AS(write_and_read("b", "x"), Error);
  std::filesystem::create_directory(folder.file("presets"));
  write_and_read("presets/c", "3");
  CHECK(contents.sha256() != both);
  CHECK(contents.sha256(folder.file("presets")) == both);
  contents.end();
  write_and_read("a", "4");
  {
    const ContentsRead later(&contents);
    write_and_read("d", "5");
    CHECK(later.sha256() == sha256_hex(sha256_hex("5")));
    CHECK_THROWS_WITH(write_and_read("a", "6"), Contains("a: has changed since this command first read it"));
  }
  write_and_read("a", "7");
}
