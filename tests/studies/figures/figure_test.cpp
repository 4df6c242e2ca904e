#include "studies/figures/figure.hpp"

#include <chrono>
#include <regex>
#include <system_error>
#include <thread>

#include "tests/support/test.hpp"

namespace {

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

TEST_CASE("the ending of its name is a figure's format") {
  if (!gnuplot_is_here()) return;
  const TemporaryFolder folder;
  write_figure(folder.file("f.png"), "plot x notitle", {320, 160});
  const std::string png = read_whole_file(folder.file("f.png"));
  REQUIRE(png.size() > 24);
  CHECK(png.substr(1, 3) == "PNG");
  // The header of a PNG file: width and height, big-endian, at byte 16.
  CHECK(png.substr(16, 8) == std::string({0, 0, 1, 0x40, 0, 0, 0, static_cast<char>(0xa0)}));
  write_figure(folder.file("f.pdf"), "plot x notitle");
  CHECK(read_whole_file(folder.file("f.pdf")).starts_with("%PDF"));
  write_figure(folder.file("f.tex"), "set title 'a_b & 50 %'\nplot x title 'x_2'",
               {.form = {.command = "draftproof lab", .program = "draftproof 1.0 (abc)"}});
  const std::string tikz = read_whole_file(folder.file("f.tex"));
  CHECK(tikz.starts_with("% draftproof 1.0 (abc)\n% draftproof lab\n% a_b & 50 %\n"));  // the title is no part of it
  CHECK(tikz.find("{x\\_2};") != std::string::npos);
  CHECK(tikz.find("{$0$};") != std::string::npos);
  write_figure(folder.file("g.svg"), "plot x notitle", {.form = {.command = "draftproof lab"}});
  CHECK(read_whole_file(folder.file("g.svg")).find("<desc>draftproof lab</desc>") != std::string::npos);
  CHECK_THROWS_WITH(write_figure(folder.file("f.gif"), "plot x notitle"),
                    Contains("f.gif") && Contains(".svg, .png, .pdf or .tex"));
}

// The sizes that the files name: SVG in pixels of 1/96 inch, PDF in points of 1/72, TikZ in centimetres.
TEST_CASE("a figure for a paper has its column's width and its shape, in every format") {
  if (!gnuplot_is_here()) return;
  const TemporaryFolder folder;
  for (const auto& [width, svg, pdf, tex] :
       {std::tuple(PaperWidth::single_column, "width=\"302\" height=\"236\"", "MediaBox [ 0 0 226 177 ]",
                   "rectangle (8.001,6.2"),
        {PaperWidth::double_column, "width=\"614\" height=\"268\"", "MediaBox [ 0 0 460 201 ]",
         "rectangle (16.256,7.1"},
        {PaperWidth::screen, "width=\"800\" height=\"500\"", "MediaBox [ 0 0 600 374 ]", "rectangle (8.001,6.2"}})
    for (const auto& [ending, size] : {std::pair(".svg", svg), {".pdf", pdf}, {".tex", tex}}) {
      const std::string path = folder.file(std::string("f") + ending);
      write_figure(path, "plot x", {.form = {.width = width}});
      CHECK_THAT(read_whole_file(path), Contains(size));
    }
  // Plots beside each other stand one above the other in a single column, each over its width.
  const std::string path = folder.file("two.svg");
  write_figure(path, "set multiplot layout 1,2\nplot x\nplot x\nunset multiplot",
               {.form = {.width = PaperWidth::single_column}});
  const std::string picture = read_whole_file(path);
  CHECK_THAT(picture, Contains("width=\"302\" height=\"472\""));
  std::smatch marks;  // of one number on the left axis and on the right one
  REQUIRE(std::regex_search(picture, marks, std::regex("d='M([0-9.]+),[0-9.]+ L[0-9.,]+ M([0-9.]+),")));
  CHECK(std::stod(marks[2]) - std::stod(marks[1]) > 200.0);
}

// A program named gnuplot that runs these shell commands, and is the one that is found while it lives.
class FakeGnuplot {
 public:
  explicit FakeGnuplot(const std::string& commands) {
    const std::string path = folder_.file("gnuplot");
    write_whole_file(path, "#!/bin/sh\n" + commands + "\n");
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    setenv("PATH", (folder_.path() + ":" + path_before_).c_str(), 1);
  }
  ~FakeGnuplot() { setenv("PATH", path_before_.c_str(), 1); }
  FakeGnuplot(const FakeGnuplot&) = delete;
  FakeGnuplot& operator=(const FakeGnuplot&) = delete;

  std::string file(const std::string& name) const { return folder_.file(name); }

 private:
  TemporaryFolder folder_;
  std::string path_before_ = std::getenv("PATH");
};

std::string error_of_figure(const std::string& path, std::chrono::milliseconds time_limit = std::chrono::seconds(10)) {
  return error_of(ErrorKind::input, [&] { write_figure(path, "plot no_such_function(x)", {100, 100, time_limit}); });
}

TEST_CASE("a script that gnuplot rejects is an error with its words and leaves the old figure") {
  if (!gnuplot_is_here()) return;
  const TemporaryFolder folder;
  write_whole_file(folder.file("f.svg"), "old");
  CHECK_THAT(error_of_figure(folder.file("f.svg")), Contains("no_such_function"));
  CHECK(read_whole_file(folder.file("f.svg")) == "old");
  CHECK(folder.file_names().size() == 1);
}

TEST_CASE("the user's environment does not change a figure or make gnuplot wait for a display") {
  if (!gnuplot_is_here()) return;
  const TemporaryFolder folder;
  write_figure(folder.file("plain.svg"), "plot x");
  for (const char* const setting : {"GNUTERM", "DISPLAY", "GNUPLOT_DRIVER_DIR"}) setenv(setting, "x11", 1);
  write_figure(folder.file("set.svg"), "plot x");
  for (const char* const setting : {"GNUTERM", "DISPLAY", "GNUPLOT_DRIVER_DIR"}) unsetenv(setting);
  CHECK(read_whole_file(folder.file("set.svg")) == read_whole_file(folder.file("plain.svg")));
  setenv("SECRET", "1", 1);
  const FakeGnuplot fake("env | grep -v PATH >&2; exit 1");
  const std::string environment = error_of_figure(folder.file("f.svg"));
  unsetenv("SECRET");
  CHECK_THAT(environment, Contains("failed with exit code 1") && Contains("LC_ALL=C"));
  CHECK_THAT(environment, !Contains("SECRET"));
}

TEST_CASE("a gnuplot that lacks a library, dies or draws nothing is an error that says which") {
  const TemporaryFolder folder;
  for (const auto& [commands, error] :
       {std::pair("echo 'gnuplot: error while loading shared libraries: libgd.so.3' >&2; exit 127",
                  "failed with exit code 127: gnuplot: error while"),
        {"kill -9 $$", "was ended by signal 9"},
        {"true", "drew nothing: it said nothing"}}) {
    const FakeGnuplot fake(commands);
    CHECK_THAT(error_of_figure(folder.file("f.svg")), Contains(error));
  }
  CHECK(folder.file_names().empty());
}

TEST_CASE("a gnuplot that does not end is ended, with what it started, when its time is up") {
  const TemporaryFolder folder;
  const FakeGnuplot fake("sleep 1000 &\necho $! > \"$(dirname \"$0\")/child\"\nwait");
  CHECK_THAT(error_of_figure(folder.file("f.svg"), std::chrono::seconds(1)),
             Contains("still running after 1000 ms and was ended"));
  const int child = std::stoi(read_whole_file(fake.file("child")));
  // A killed process may stay as a zombie where nobody waits for it; then it has no memory any more.
  const auto is_alive = [&] {
    std::error_code ignored;
    return std::filesystem::exists("/proc/" + std::to_string(child) + "/exe", ignored);
  };
  for (int i = 0; i < 500 && is_alive(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK_FALSE(is_alive());
  CHECK(folder.file_names().empty());
}

TEST_CASE("without gnuplot the error names the package") {
  const TemporaryFolder folder;
  const std::string path = std::getenv("PATH");
  setenv("PATH", folder.path().c_str(), 1);
  CHECK_THROWS_WITH(write_figure(folder.file("f.svg"), "plot x"), Contains("gnuplot-nox"));
  setenv("PATH", path.c_str(), 1);
  CHECK(folder.file_names().empty());
}

}  // namespace
