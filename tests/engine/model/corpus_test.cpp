#include "engine/model/corpus.hpp"

#include <unistd.h>

#include "tests/support/test.hpp"

namespace fs = std::filesystem;
using Files = std::vector<std::string>;

namespace {

std::string written(const TemporaryFolder& folder, const std::string& name, const std::string& text) {
  write_whole_file(folder.file(name), text);
  return folder.file(name);
}

std::string text_of(const std::vector<std::uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

TEST_CASE("A corpus has the bytes of its files in the order in which they were named") {
  const TemporaryFolder folder;
  const std::string binary("\0\xff\r\n\x1a", 5);
  const std::string large(200'000, 'x');  // more than one block of the reader
  const Files files = {written(folder, "b", binary), written(folder, "a", large)};
  const draftproof::Corpus corpus = draftproof::load_corpus(files);
  CHECK(corpus.paths == files);
  REQUIRE(corpus.texts.size() == 2);
  CHECK(text_of(corpus.texts[0]) == binary);
  CHECK(text_of(corpus.texts[1]) == large);
}

TEST_CASE("A corpus file that cannot be used is named in the error") {
  const TemporaryFolder folder;
  const std::string good = written(folder, "good", "text");
  const auto read = [&](const std::string& bad) { return draftproof::read_corpus(Files{good, bad}); };
  const std::string missing = folder.file("missing.txt");
  CHECK_THROWS_WITH(read(missing), Contains(missing) && Contains("No such file"));
  const std::string empty = written(folder, "empty.txt", "");
  CHECK_THROWS_WITH(read(empty), Contains(empty) && Contains("is empty"));
  CHECK_THROWS_WITH(read(folder.path()), Contains(folder.path()) && Contains("is a folder"));
  CHECK_THROWS_WITH(read("/dev/zero"), Contains("/dev/zero") && Contains("is a device; expected a regular file"));
  CHECK_THROWS_WITH(draftproof::read_corpus(Files{}), Contains("--corpus"));
  CHECK_FALSE(draftproof::error_of(draftproof::ErrorKind::input, [&] { read(missing); }).empty());
}

TEST_CASE("A corpus above the limit is refused by its size before any of it is read") {
  const TemporaryFolder folder;
  const std::string text = written(folder, "text", "some text");
  const std::string huge = written(folder, "huge", "");
  fs::resize_file(huge, std::uintmax_t{1} << 40);  // a hole: it takes no place on the disk
  CHECK_THROWS_WITH(draftproof::read_corpus(Files{text, huge}),
                    Contains(huge) && Contains("(1 TiB); expected at most 67108864 bytes (64 MiB)"));
  fs::resize_file(huge, draftproof::kCorpusBytesMax - 8);
  CHECK_THROWS_WITH(draftproof::read_corpus(Files{text, huge}), Contains(huge) && Contains("larger than 67108864"));
}

TEST_CASE("A corpus file without read permission is named in the error") {
  const TemporaryFolder folder;
  const std::string locked = written(folder, "locked.txt", "text");
  fs::permissions(locked, fs::perms::none);
  if (geteuid() == 0) {
    WARN("SKIPPED: the superuser may read every file, so a missing permission cannot be tested");
    return;
  }
  CHECK_THROWS_WITH(draftproof::read_corpus(Files{locked}), Contains(locked) && Contains("cannot be opened"));
}

TEST_CASE("A corpus folder gives each text once and sorted by name") {
  const TemporaryFolder folder;
  written(folder, "b", "second");
  written(folder, "a", "first");
  written(folder, "B", "capitals come before small letters");
  fs::create_symlink("b", folder.file("0_link"));
  fs::create_symlink("nothing", folder.file("dangling"));
  fs::create_directory(folder.file("c"));
  written(folder, "c/inner", "not at the top");
  const draftproof::Corpus corpus = draftproof::read_corpus_folder(folder.path());
  Files names;
  for (const std::string& path : corpus.paths) names.push_back(fs::path(path).filename().string());
  CHECK(names == Files{"B", "a", "b"});
  REQUIRE(corpus.texts.size() == 3);
  CHECK(text_of(corpus.texts[1]) == "first");
  CHECK(text_of(corpus.texts[2]) == "second");
}

TEST_CASE("A corpus folder that is missing or empty points to the option that replaces it") {
  const TemporaryFolder folder;
  const std::string missing = folder.file("nowhere");
  CHECK_THROWS_WITH(draftproof::read_corpus_folder(missing), Contains(missing) && Contains("--corpus"));
  CHECK_THROWS_WITH(draftproof::read_corpus_folder(folder.path()),
                    Contains(folder.path()) && Contains("no regular file") && Contains("--corpus"));
  const std::string file = written(folder, "file", "text");
  CHECK_THROWS_WITH(draftproof::read_corpus_folder(file), Contains(file) && Contains("--corpus"));
}

TEST_CASE("The default corpus is the licence texts of the system") {
  if (!fs::is_directory(draftproof::kDefaultCorpusFolder)) {
    WARN("SKIPPED: " << draftproof::kDefaultCorpusFolder << " does not exist on this system");
    CHECK_THROWS_WITH(draftproof::load_corpus(Files{}), Contains("--corpus"));
    return;
  }
  const draftproof::Corpus corpus = draftproof::load_corpus(Files{});
  REQUIRE(corpus.paths.size() == corpus.texts.size());
  CHECK(std::is_sorted(corpus.paths.begin(), corpus.paths.end()));
  bool has_gpl_3 = false;
  for (std::size_t i = 0; i < corpus.paths.size(); ++i) {
    CHECK(corpus.texts[i].size() == fs::file_size(corpus.paths[i]));
    CHECK_FALSE(fs::is_symlink(corpus.paths[i]));
    has_gpl_3 = has_gpl_3 || text_of(corpus.texts[i]).find("GNU GENERAL PUBLIC LICENSE") != std::string::npos;
  }
  CHECK(has_gpl_3);
}
