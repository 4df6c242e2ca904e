#include "base/files/atomic_file.hpp"

#include "tests/support/test.hpp"

TEST_CASE("An output that is an input is refused under any of its names") {
  const TemporaryFolder folder;
  const std::string input = folder.file("input");
  write_whole_file(input, "data");
  std::filesystem::create_symlink("input", folder.file("symbolic"));
  std::filesystem::create_hard_link(input, folder.file("hard"));
  std::filesystem::create_directory(folder.file("folder"));
  for (const std::string& name : {std::string("input"), std::string("symbolic"), std::string("hard"),
                                  std::string("./input"), std::string("folder/../input")}) {
    INFO(name);
    CHECK_THROWS_WITH(require_no_overwriting({{"--probs", ""}, {"the trace", input}}, {{"--out", folder.file(name)}}),
                      Contains("--out: ") && Contains("is the same file as the input the trace; expected"));
  }
  CHECK_NOTHROW(require_no_overwriting({{"the trace", input}}, {{"--out", folder.file("other")}, {"--figure", ""}}));
}

TEST_CASE("An output that could not be written is refused before the work, and one that could stays as it is") {
  const TemporaryFolder folder;
  write_whole_file(folder.file("there"), "data");
  for (const std::string& name : {folder.file("absent/out"), folder.path(), std::string("/dev/null")}) {
    INFO(name);
    CHECK_THROWS_WITH(require_writable({{"--out", name}}), Contains(name));
  }
  CHECK_NOTHROW(require_writable({{"--out", ""}, {"--out", folder.file("there")}, {"--trace", folder.file("new")}}));
  CHECK(read_whole_file(folder.file("there")) == "data");
  CHECK(folder.file_names() == std::vector<std::string>{"there"});
}

TEST_CASE("Two outputs of one name are refused, and so is one that is not there yet under two spellings") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(require_no_overwriting({}, {{"--out", folder.file("a")}, {"--figure", folder.file("./a")}}),
                    Contains("--figure: ") && Contains("is the same file as the output --out"));
  CHECK_NOTHROW(require_no_overwriting({}, {{"--out", folder.file("a")}, {"--figure", folder.file("b")}}));
}
