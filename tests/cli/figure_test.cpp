#include "cli/figure.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "reference/error.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/support/run_program.hpp"

namespace draftproof {
namespace {

using testing::read_whole_file;
using testing::TemporaryFolder;

bool gnuplot_is_here() {
  if (testing::run_command({"sh", "-c", "command -v gnuplot"}).exit_code == 0) return true;
  WARN("SKIPPED: gnuplot is not installed");
  return false;
}

TEST_CASE("a figure is an SVG file with the script's text in it") {
  if (!gnuplot_is_here()) return;
  const TemporaryFolder folder;
  const std::string path = folder.file("it's a $(figure).svg");
  write_figure(path, "set title " + gnuplot_quoted("it's 5 \"`id`\" \\n a_b\nc") + "\nplot x notitle\n", {321, 123});
  const std::string picture = read_whole_file(path);
  CHECK(picture.find("<svg") != std::string::npos);
  CHECK(picture.find("width=\"321\" height=\"123\"") != std::string::npos);
  // Nothing is expanded: no command ran, no escape was read, and a_b has no subscript.
  CHECK(picture.find("it's 5 \"`id`\" \\n a_b c") != std::string::npos);
  CHECK(folder.file_names().size() == 1);
}

TEST_CASE("a figure is the same bytes each time") {
  if (!gnuplot_is_here()) return;
  const TemporaryFolder folder;
  for (const char* name : {"a.svg", "b.svg"}) write_figure(folder.file(name), "plot sin(x) title 'sin'");
  CHECK(read_whole_file(folder.file("a.svg")) == read_whole_file(folder.file("b.svg")));
}

TEST_CASE("a script that gnuplot rejects is our error and leaves the old figure") {
  if (!gnuplot_is_here()) return;
  const TemporaryFolder folder;
  testing::write_whole_file(folder.file("f.svg"), "old");
  try {
    write_figure(folder.file("f.svg"), "plot no_such_function(x)");
    FAIL("gnuplot accepted it");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::internal);
    CHECK(std::string(error.what()).find("no_such_function") != std::string::npos);
  }
  CHECK(read_whole_file(folder.file("f.svg")) == "old");
  CHECK(folder.file_names().size() == 1);
}

TEST_CASE("without gnuplot the error names the package") {
  const TemporaryFolder folder;
  const std::string path = std::getenv("PATH");
  setenv("PATH", folder.path().c_str(), 1);
  CHECK_THROWS_WITH(write_figure(folder.file("f.svg"), "plot x"), Catch::Contains("gnuplot-nox"));
  setenv("PATH", path.c_str(), 1);
  CHECK(folder.file_names().empty());
}

}  // namespace
}  // namespace draftproof
